//! The eight tables of TPC-H: the rows of the crate `tpchgen`, pages written by ours.
//!
//! (TPC Benchmark H, revision 3.0.1, sections 1.4 and 4.2.) A table is a [`Dataset`] whose number of rows follows
//! from the scale factor, so layouts, parts, formats, Arrow batches and content sums work as for any other. Rows
//! are made in chunks that can be reached directly; [`rows`] finds the chunk of a row. The columns of line items
//! and orders, nine tenths of the rows, and all comments are drawn by our own code, the other columns by `tpchgen`;
//! every row equals `tpchgen`'s. Columns with few distinct values (dates, flags, quantities) are stored as indices
//! of a sorted dictionary that is known in advance.
//!
//! Comments are cut from 300 MiB of text, which [`text`] makes block by block as they need it.

mod columns;
mod line_items;
mod lists;
mod orders;
mod rows;
mod stream;
mod tables;
mod text;

use std::str::FromStr;

use xxhash_rust::xxh3::xxh3_128;

use crate::error::Error;
use crate::spec::dataset::Dataset;

/// The largest scale factor: at 100,000 TPC-H has 600 billion line items, some 100 TB.
pub const MAX_SCALE: f64 = 100_000.0;

/// A table of TPC-H.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of TPC-H")]
pub enum TpchTable {
    Region,
    Nation,
    Supplier,
    Customer,
    Part,
    PartSupp,
    Orders,
    LineItem,
}

impl TpchTable {
    /// All tables, each after the tables that it refers to.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Customer,
        Self::Part,
        Self::PartSupp,
        Self::Orders,
        Self::LineItem,
    ];

    /// Its name in TPC-H, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Customer => "customer",
            Self::Part => "part",
            Self::PartSupp => "partsupp",
            Self::Orders => "orders",
            Self::LineItem => "lineitem",
        }
    }
}

impl FromStr for TpchTable {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|table| table.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::spec(
                format!("no table of TPC-H is named {name:?}"),
                "tpch",
                format!("the tables are {names}"),
            )
        })
    }
}

impl Dataset {
    /// A table of TPC-H at a scale factor: 6 million line items at 1. It has exactly [`Dataset::rows`] rows; a
    /// seed does not change them. Line items are counted first, which takes a second for each billion.
    ///
    /// ```
    /// use sawmill_generator::{Dataset, TpchTable};
    /// let orders = Dataset::tpch(TpchTable::Orders, 0.1)?;
    /// assert_eq!(orders.rows(), Some(150_000));
    /// # Ok::<(), sawmill_generator::Error>(())
    /// ```
    ///
    /// # Errors
    /// The scale is not a number from 0.001 to [`MAX_SCALE`].
    pub fn tpch(table: TpchTable, scale: f64) -> Result<Self, Error> {
        if !(0.001..=MAX_SCALE).contains(&scale) {
            let advice = format!("use 0.001 to {MAX_SCALE}");
            return Err(Error::spec(format!("a scale factor of {scale}"), table.name(), advice));
        }
        let fields = columns::fields(table);
        let (rows, maker) = tables::maker(table, scale);
        Ok(Dataset {
            name: table.name().to_owned(),
            rows: Some(rows),
            leaves: fields.len(),
            fields,
            present: None,
            text_hash: xxh3_128(format!("tpch {} {scale} by tpchgen 4", table.name()).as_bytes()),
            salt: 0,
            most_rows: None,
            changes: None,
            maker: Some(maker),
        })
    }
}
