//! The 24 tables of TPC-DS: the rows of the crate `tpcdsgen`, pages written by our encoder.
//!
//! (TPC Benchmark DS, revision 4.0.0, section 2.) `tpcdsgen-arrow` makes the rows of a chunk of keys as Arrow batches,
//! and we append their values to the pages. Numbers from a small range (days, quantities, keys of small tables) are
//! stored as indices of a sorted dictionary that is known in advance.
//!
//! We leave out `dbgen_version`: its only row states when and by which command it was made.

mod columns;
mod orders;
mod rows;

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use tpcdsgen::config::{Session, SessionBuilder, Table as DsTable};
use tpcdsgen_arrow as ds;

use crate::benchmark::Benchmark;
use crate::benchmark::columns::Column;
use crate::benchmark::rows::{Chunk, Table};
use crate::error::{Error, Result};
use crate::shred::row_maker::RowMaker;
use crate::tpcds::columns::columns;
use crate::tpcds::orders::OrderLines;
use crate::tpcds::rows::{Appender, Rows};

/// The rows of a batch: its columns fit into the second-level cache.
const BATCH_ROWS: usize = 1024;

/// The keys whose rows show how columns look.
const SAMPLE_KEYS: i64 = 1024;

/// The rows of some keys, in order.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// A table, its schema, and the function that opens its rows.
pub(crate) struct Source {
    table: DsTable,
    schema: fn() -> SchemaRef,
    /// The rows of keys counted from 0.
    open: fn(Session, Range<u64>) -> Batches,
}

macro_rules! sources {
    ($($table:ident $arrow:ident),* $(,)?) => {
        [$(Source {
            table: DsTable::$table,
            schema: ds::$arrow::schema_ref,
            open: |session, keys| {
                let rows = ds::$arrow::new(session).with_source_row_range(keys.start + 1, keys.end);
                Box::new(rows.with_batch_size(BATCH_ROWS))
            },
        }),*]
    };
}

/// All tables, each after the tables that it refers to.
pub(crate) static SOURCES: [Source; 24] = sources! {
    DateDim DateDimArrow, TimeDim TimeDimArrow, IncomeBand IncomeBandArrow, Reason ReasonArrow,
    ShipMode ShipModeArrow, Warehouse WarehouseArrow, CustomerDemographics CustomerDemographicsArrow,
    HouseholdDemographics HouseholdDemographicsArrow, CustomerAddress CustomerAddressArrow,
    Customer CustomerArrow, Item ItemArrow, Promotion PromotionArrow, CatalogPage CatalogPageArrow,
    CallCenter CallCenterArrow, Store StoreArrow, WebSite WebSiteArrow, WebPage WebPageArrow,
    Inventory InventoryArrow, StoreSales StoreSalesArrow, StoreReturns StoreReturnsArrow,
    CatalogSales CatalogSalesArrow, CatalogReturns CatalogReturnsArrow, WebSales WebSalesArrow,
    WebReturns WebReturnsArrow,
};

/// The names of all tables, in TPC-DS's spelling.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.table.get_name())
}

/// The columns of a table, the number of its rows, and their maker.
type Made = (Vec<Column>, u64, Box<dyn RowMaker>);

/// A table at a scale factor.
///
/// # Errors
/// `tpcdsgen` refuses the scale or makes no rows.
pub(crate) fn table(source: &'static Source, scale: f64) -> Result<Made> {
    let wrong = |error: &dyn std::fmt::Display| {
        Error::spec(format!("tpcdsgen: {error}"), source.table.get_name(), "use another scale factor")
    };
    let session = SessionBuilder::new().with_scale_factor(scale).build().map_err(|error| wrong(&error))?;
    let scaling = session.get_scaling();
    let lines = OrderLines::new(source.table);
    // Rows of sales and returns are counted by their orders.
    let keys = scaling.get_row_count(lines.as_ref().map_or(source.table, |lines| lines.sales)) as i64;
    let sample = (source.open)(session.clone(), 0..keys.min(SAMPLE_KEYS) as u64).next();
    let sample = sample.unwrap_or_else(|| Ok(RecordBatch::new_empty((source.schema)())));
    let sample = sample.map_err(|error| wrong(&error))?;
    let rows = lines.as_ref().map_or(keys, |lines| lines.expected(keys));
    let columns = columns(source.table, rows, &sample, scaling)?;
    let appenders: Vec<Appender> = columns.iter().map(Appender::new).collect();
    let open = move |chunk: Chunk| Rows::new((source.open)(session.clone(), chunk.keys()), appenders.clone());
    let (rows, maker) = match lines {
        None => Table::even(Benchmark::TpcDs, keys, 1, open),
        Some(lines) => {
            Table::counted(Benchmark::TpcDs, keys, move |first, counts| lines.count(first, counts), open)
        }
    };
    Ok((columns, rows, maker))
}
