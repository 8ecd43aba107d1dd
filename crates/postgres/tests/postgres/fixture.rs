//! Parquet files for the tests.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// Writes a batch in row groups of `group_rows` rows.
pub fn write(path: &Path, batch: &RecordBatch, group_rows: usize) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(200);
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    // In pieces: the limits of pages are looked at between writes.
    for start in (0..batch.num_rows()).step_by(100) {
        writer.write(&batch.slice(start, 100.min(batch.num_rows() - start))).unwrap();
    }
    writer.close().unwrap();
}

/// A directory with one file of these columns.
pub fn file_of(columns: Vec<(&str, ArrayRef)>, group_rows: usize) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.parquet");
    write(
        &path,
        &RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap(),
        group_rows,
    );
    (directory, path)
}

/// A file of `id bigint, name text, amount double precision`, ids from `first` on; every third name is NULL.
pub fn people(path: &Path, first: i64, rows: usize, group_rows: usize) {
    let ids = first..first + rows as i64;
    let names = ids.clone().map(|id| (id % 3 != 0).then(|| format!("name {id} ü")));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
        ("name", Arc::new(StringArray::from_iter(names))),
        ("amount", Arc::new(Float64Array::from_iter_values(ids.map(|id| id as f64 / 8.0)))),
    ];
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    write(path, &RecordBatch::try_from_iter_with_nullable(columns).unwrap(), group_rows);
}
