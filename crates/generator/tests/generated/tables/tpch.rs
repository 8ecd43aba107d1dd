//! The tables of TPC-H, compared row by row with `tpchgen`'s own text of them.

use std::num::NonZeroUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sawmill_generator::{Benchmark, Dataset, FileOptions, Job, Layout, Output, write};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

const SCALE: f64 = 0.02;

/// The rows of a table as `tpchgen` prints them.
fn expected(table: &str) -> Vec<String> {
    macro_rules! rows {
        ($generator:ident) => {
            $generator::new(SCALE, 1, 1).iter().map(|row| row.to_string()).collect()
        };
    }
    match table {
        "region" => rows!(RegionGenerator),
        "nation" => rows!(NationGenerator),
        "supplier" => rows!(SupplierGenerator),
        "customer" => rows!(CustomerGenerator),
        "part" => rows!(PartGenerator),
        "partsupp" => rows!(PartSuppGenerator),
        "orders" => rows!(OrderGenerator),
        "lineitem" => rows!(LineItemGenerator),
        other => panic!("a table {other}"),
    }
}

fn dataset(table: &str, scale: f64) -> Dataset {
    Dataset::named(&format!("tpch/{table}"), Some(scale)).unwrap()
}

/// A value as TPC-H's text form has it.
fn text(column: &dyn Array, row: usize) -> String {
    match column.data_type() {
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Date32 => {
            column.as_primitive::<Date32Type>().value_as_date(row).map(|date| date.to_string()).unwrap()
        }
        DataType::Decimal128(15, 2) => {
            let cents = column.as_primitive::<Decimal128Type>().value(row);
            let sign = if cents < 0 { "-" } else { "" };
            format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
        }
        other => panic!("a column of {other}"),
    }
}

fn lines(batch: &RecordBatch) -> impl Iterator<Item = String> {
    let schema = batch.schema();
    (0..batch.num_rows()).map(move |row| {
        let values = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
            let text = text(column, row);
            // TPC-H's text has quantities without decimals.
            if field.name() == "l_quantity" { text.replace(".00", "") } else { text }
        });
        values.map(|value| value + "|").collect()
    })
}

#[test]
fn every_table_has_the_rows_of_tpchgen() {
    for table in Benchmark::TpcH.tables() {
        let dataset = dataset(table, SCALE);
        let rows = dataset.rows().unwrap();
        let batches = dataset.batches(0..rows, 42, 1000).map(Result::unwrap);
        let ours: Vec<String> = batches.flat_map(|batch| lines(&batch).collect::<Vec<_>>()).collect();
        let theirs = expected(table);
        assert_eq!(ours.len(), theirs.len(), "{table}");
        for (row, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "{table}, row {row}");
        }
    }
}

/// A row depends on its number alone: in ranges that begin anywhere, in any order, it is the same.
#[test]
fn rows_are_reached_directly() {
    for table in ["lineitem", "partsupp", "orders"] {
        let dataset = dataset(table, SCALE);
        let theirs = expected(table);
        let rows = theirs.len() as u64;
        for (start, n) in [(rows - 1, 1), (0, 1), (rows / 2, 5000), (8191, 3), (rows / 3, 1), (1, 2048)] {
            let batches = dataset.batches(start..start + n, 7, 700).map(Result::unwrap);
            let ours: Vec<String> = batches.flat_map(|batch| lines(&batch).collect::<Vec<_>>()).collect();
            assert_eq!(ours, theirs[start as usize..(start + n) as usize], "{table} from {start}");
        }
    }
}

#[test]
fn files_hold_the_rows_and_are_the_same_on_any_number_of_threads() {
    let dataset = dataset("lineitem", SCALE);
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
        let mut ours = Vec::new();
        for file in &files {
            let reader = std::fs::File::open(&file.path).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(reader).unwrap().build().unwrap();
            reader.for_each(|batch| ours.extend(lines(&batch.unwrap())));
        }
        assert!(ours == expected("lineitem"), "{threads} threads");
        files.iter().map(|file| file.sum).collect::<Vec<_>>()
    });
    assert!(sums.iter().all(|sum| *sum == sums[0]));
}

/// The numbers of rows that TPC-H states (4.2.5.1).
#[test]
fn tables_have_as_many_rows_as_tpc_h_says() {
    let rows = |table, scale| dataset(table, scale).rows().unwrap();
    assert_eq!(rows("lineitem", 1.0), 6_001_215);
    assert_eq!(rows("orders", 1.0), 1_500_000);
    assert_eq!(rows("partsupp", 1.0), 800_000);
    assert_eq!(rows("part", 1.0), 200_000);
    assert_eq!(rows("customer", 1.0), 150_000);
    assert_eq!(rows("supplier", 1.0), 10_000);
    assert_eq!(rows("nation", 30.0), 25);
    assert_eq!(rows("region", 30.0), 5);
    assert_eq!(rows("lineitem", 10.0), 59_986_052);
}

#[test]
fn a_scale_that_is_not_one_is_refused() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6] {
        let error = Dataset::named("tpch/orders", Some(scale)).unwrap_err();
        assert!(error.to_string().contains("scale factor"), "{error}");
    }
    let error = Dataset::named("tpch/lineitems", None).unwrap_err();
    assert!(error.to_string().contains("partsupp"), "{error}");
}
