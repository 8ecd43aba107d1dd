//! The tables of TPC-DS, compared row by row with the batches of `tpcdsgen-arrow`.

use std::num::NonZeroUsize;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sawmill_generator::{Benchmark, Dataset, FileOptions, Job, Layout, Output, write};
use tpcdsgen::config::{Session, SessionBuilder};
use tpcdsgen_arrow as ds;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// The rows of a table as `tpcdsgen-arrow` makes them, with strings in the form of ours.
fn expected(table: &str, scale: f64) -> RecordBatch {
    macro_rules! rows {
        ($($name:literal $generator:ident)*) => {
            match table {
                $($name => |session: Session| Box::new(ds::$generator::new(session)) as Batches,)*
                other => panic!("a table {other}"),
            }
        };
    }
    let make = rows! {
        "call_center" CallCenterArrow
        "catalog_page" CatalogPageArrow
        "catalog_returns" CatalogReturnsArrow
        "catalog_sales" CatalogSalesArrow
        "customer" CustomerArrow
        "customer_address" CustomerAddressArrow
        "customer_demographics" CustomerDemographicsArrow
        "date_dim" DateDimArrow
        "household_demographics" HouseholdDemographicsArrow
        "income_band" IncomeBandArrow
        "inventory" InventoryArrow
        "item" ItemArrow
        "promotion" PromotionArrow
        "reason" ReasonArrow
        "ship_mode" ShipModeArrow
        "store" StoreArrow
        "store_returns" StoreReturnsArrow
        "store_sales" StoreSalesArrow
        "time_dim" TimeDimArrow
        "warehouse" WarehouseArrow
        "web_page" WebPageArrow
        "web_returns" WebReturnsArrow
        "web_sales" WebSalesArrow
        "web_site" WebSiteArrow
    };
    let session = SessionBuilder::new().with_scale_factor(scale).build().unwrap();
    let batches: Vec<RecordBatch> = make(session).map(Result::unwrap).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// Asserts that `ours` are the rows of `theirs` from `first` on.
fn assert_rows(ours: &RecordBatch, theirs: &RecordBatch, first: usize, place: &str) {
    let theirs = theirs.slice(first, ours.num_rows());
    assert_eq!(ours.num_columns(), theirs.num_columns(), "{place}");
    let schemas = (ours.schema(), theirs.schema());
    let fields = schemas.0.fields().iter().zip(schemas.1.fields());
    for ((field, other), (column, expected)) in fields.zip(ours.columns().iter().zip(theirs.columns())) {
        assert_eq!(field.name(), other.name(), "{place}");
        assert_eq!(field.is_nullable(), other.is_nullable(), "{place}, {}", field.name());
        let expected: ArrayRef = match expected.as_string_view_opt() {
            Some(strings) => Arc::new(strings.iter().collect::<StringArray>()),
            None => Arc::clone(expected),
        };
        assert!(
            column.as_ref() == expected.as_ref(),
            "{place}, {}:\n{column:?}\nand\n{expected:?}",
            field.name()
        );
    }
}

/// The rows of a table from `rows` on.
fn ours(dataset: &Dataset, rows: std::ops::Range<u64>) -> RecordBatch {
    let batches: Vec<RecordBatch> = dataset.batches(rows, 42, 1000).map(Result::unwrap).collect();
    concat_batches(&dataset.arrow_schema(), &batches).unwrap()
}

fn dataset(table: &str, scale: f64) -> Dataset {
    Dataset::named(&format!("tpcds/{table}"), Some(scale)).unwrap()
}

/// Compares the rows of tables; of the largest, which is the same at each scale, the first ones.
fn assert_tables(tables: &[&str], scale: f64) {
    for table in tables {
        let theirs = expected(table, scale);
        let dataset = dataset(table, scale);
        assert_eq!(dataset.rows(), Some(theirs.num_rows() as u64), "{table} at {scale}");
        let rows = dataset.rows().unwrap().min(100_000);
        assert_rows(&ours(&dataset, 0..rows), &theirs, 0, &format!("{table} at {scale}"));
    }
}

#[test]
fn every_table_has_the_rows_of_tpcdsgen() {
    assert_tables(&Benchmark::TpcDs.tables(), 0.02);
}

/// With a thousandth of the rows, days and keys are unusual.
#[test]
fn the_smallest_tables_have_the_rows_of_tpcdsgen() {
    let tables =
        ["inventory", "store_returns", "catalog_sales", "catalog_returns", "web_sales", "web_returns"];
    assert_tables(&tables, 0.001);
}

/// A row depends on its number alone: in ranges that begin anywhere, in any order, it is the same.
#[test]
fn rows_are_reached_directly() {
    for table in ["store_sales", "catalog_returns", "web_sales", "item", "customer_demographics"] {
        let theirs = expected(table, 0.02);
        let dataset = dataset(table, 0.02);
        let rows = theirs.num_rows();
        for (start, n) in [(rows - 1, 1), (0, 1), (rows / 2, 300), (511, 3), (rows / 3, 1), (rows - 200, 200)]
        {
            let ours = ours(&dataset, start as u64..(start + n) as u64);
            assert_rows(&ours, &theirs, start, &format!("{table} from {start}"));
        }
    }
}

#[test]
fn files_hold_the_rows_and_are_the_same_on_any_number_of_threads() {
    let theirs = expected("catalog_sales", 0.05);
    let dataset = dataset("catalog_sales", 0.05);
    let layout = Layout::new(dataset.rows().unwrap(), 3).unwrap().with_row_group_rows(10_000).unwrap();
    let profile = sawmill_profile::Profile::new();
    let (phase, cancel) = (profile.phase("generate"), false.into());
    let sums = [1, 2, 5].map(|threads| {
        let directory = tempfile::tempdir().unwrap();
        let output = Output::Directory(directory.path().into());
        let options = FileOptions::default();
        let threads = NonZeroUsize::new(threads).unwrap();
        let job = Job { threads, options, ..Job::new(&layout, &output, &phase, &cancel) };
        let files = write(&dataset, &job).unwrap();
        let mut first = 0;
        for file in files.iter().filter(|_| threads.get() == 2) {
            let reader = std::fs::File::open(&file.path).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(reader).unwrap().build().unwrap();
            for batch in reader {
                let batch = batch.unwrap();
                assert_rows(&batch, &theirs, first, "catalog_sales in a file");
                first += batch.num_rows();
            }
        }
        assert!(threads.get() != 2 || first == theirs.num_rows());
        files.iter().map(|file| file.sum).collect::<Vec<_>>()
    });
    assert!(sums.iter().all(|sum| *sum == sums[0]));
}

/// The numbers of rows that TPC-DS states (table 3-2); sales and returns as the reference implementation makes them.
#[test]
fn tables_have_as_many_rows_as_tpc_ds_says() {
    for (table, rows) in [
        ("call_center", 6),
        ("catalog_page", 11_718),
        ("customer", 100_000),
        ("customer_address", 50_000),
        ("customer_demographics", 1_920_800),
        ("date_dim", 73_049),
        ("household_demographics", 7200),
        ("income_band", 20),
        ("inventory", 11_745_000),
        ("item", 18_000),
        ("store_sales", 2_880_404),
        ("store_returns", 287_514),
        ("catalog_sales", 1_441_548),
        ("catalog_returns", 144_067),
        ("web_sales", 719_384),
        ("web_returns", 71_763),
        ("time_dim", 86_400),
        ("warehouse", 5),
        ("web_site", 30),
    ] {
        assert_eq!(dataset(table, 1.0).rows(), Some(rows), "{table}");
    }
}

#[test]
fn a_table_that_is_not_one_is_refused() {
    let error = |table: &str| Dataset::named(&format!("tpcds/{table}"), None).unwrap_err().to_string();
    assert!(
        error("sales").contains("no table of TPC-DS is named \"sales\" - tpcds - the tables are date_dim")
    );
    assert!(error("dbgen_version").contains("the tables are date_dim"));
}
