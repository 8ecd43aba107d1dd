//! A file from another writer arrives as the plain `parquet` crate reads it.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sawmill_loader::{LoadOptions, LoadState};
use sawmill_source::ParquetFiles;

use crate::database::{Database, run};

/// A row in PostgreSQL's wire format, encoded here independently and in the simplest way.
fn wire(batch: &RecordBatch, row: usize) -> Vec<Option<Vec<u8>>> {
    let value = |array: &dyn Array| match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_be_bytes().to_vec(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_be_bytes().to_vec(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_bits().to_be_bytes().to_vec(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            (micros - 946_684_800_000_000).to_be_bytes().to_vec()
        }
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes().to_vec(),
        other => panic!("{other} is not in the taxi file"),
    };
    batch.columns().iter().map(|array| array.is_valid(row).then(|| value(array.as_ref()))).collect()
}

#[test]
fn every_row_of_the_taxi_file_arrives_exactly() {
    // Made-up trips in six row groups, written by pyarrow (`scripts/peers/files/fixtures.py`).
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/taxi.parquet");
    let database = Database::new();
    let source = ParquetFiles::open(&[&path]).unwrap();
    let options = LoadOptions { unit_rows: 512, verify: true, ..LoadOptions::default() };
    let report = run(&source, &database.target("public.taxi"), &options).unwrap();
    assert_eq!((report.rows, report.rows_loaded, report.state), (5_000, 5_000, LoadState::New));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["rows"], &json["standing"]), (&5_000.into(), &"new".into()));
    assert_eq!(json["content"]["content_sum"], report.content.content_sum.to_string());
    assert!(report.verified.unwrap().matches());

    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let mut expected = Vec::new();
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        expected.extend((0..batch.num_rows()).map(|row| wire(&batch, row)));
    }
    expected.sort();
    let rows = database.rows("SELECT * FROM public.taxi");
    assert_eq!(rows.len(), expected.len());
    assert!(rows == expected, "rows differ");
}
