//! Reads 3 of 10,000 columns with arrow-rs, whose metadata this crate makes for those columns alone.
//!
//! ```sh
//! cargo run --release -p sawmill-footer --features parquet-59 --example three_of_many_columns
//! ```

use std::error::Error;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float32Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::properties::WriterProperties;
use sawmill_footer::{Footer, Options};

const COLUMNS: usize = 10_000;
const ROWS: usize = 20;
const WANTED: [&str; 3] = ["c00007", "c05000", "c09999"];

/// A file of many columns: column `c00042` holds 42.0, 43.0, ...
fn write(path: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let column = |at: usize| -> (String, ArrayRef) {
        let values = Float32Array::from_iter_values((0..ROWS).map(|row| (at + row) as f32));
        (format!("c{at:05}"), Arc::new(values))
    };
    let batch = RecordBatch::try_from_iter((0..COLUMNS).map(column))?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(ROWS / 2))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("wide.parquet");
    write(&path)?;

    let started = Instant::now();
    let footer = Footer::open_with(&path, &Options::new().column_paths(WANTED))?;
    // The metadata of three columns: arrow-rs neither knows nor pays for the other 9,997.
    let metadata =
        ArrowReaderMetadata::try_new(Arc::new(footer.to_parquet_59(None)?), ArrowReaderOptions::new())?;
    let ours = started.elapsed();
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(&path)?, metadata).build()?;
    let mut rows = 0;
    for batch in reader {
        let batch = batch?;
        assert_eq!(batch.schema().fields().len(), WANTED.len());
        let column = batch.column(1).as_primitive::<Float32Type>();
        assert_eq!(column.value(0), (5_000 + rows) as f32);
        rows += batch.num_rows();
    }
    assert_eq!(rows, ROWS);

    let started = Instant::now();
    let theirs = ArrowReaderMetadata::load(&File::open(&path)?, ArrowReaderOptions::new())?;
    println!(
        "metadata of {} columns by this crate {ours:?}, of all {} by parquet {:?}",
        WANTED.len(),
        theirs.parquet_schema().num_columns(),
        started.elapsed(),
    );
    Ok(())
}
