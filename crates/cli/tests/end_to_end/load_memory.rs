//! A load into PostgreSQL takes the configured memory, whatever the size of a row group.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_localpg::LocalPg;

use crate::harness::{peak, start, wait};

/// Writes one column of distinct texts of `width` bytes each, in one row group.
fn write_row_group(path: &Path, rows: usize, width: usize) {
    let rest = "x".repeat(width - 16);
    let batch = |from: usize, rows: usize| {
        let texts = (from..from + rows).map(|row| format!("{row:016x}{rest}"));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        RecordBatch::try_from_iter([("text", array)]).unwrap()
    };
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_dictionary_enabled(false)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch(0, 0).schema(), Some(properties)).unwrap();
    let at_once = ((16 << 20) / width).max(1);
    for from in (0..rows).step_by(at_once) {
        writer.write(&batch(from, at_once.min(rows - from))).unwrap();
    }
    assert_eq!(writer.close().unwrap().row_groups().len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn memory_follows_the_connections_and_not_the_size_of_a_row_group() {
    let dir = tempfile::tempdir().unwrap();
    let server = LocalPg::builder().setting("max_wal_size", "4GB").start().unwrap();
    // 240 MB each, more than any of the bounds.
    for (rows, width) in [(800_000, 300), (1_200, 200_000)] {
        let file = dir.path().join(format!("{width}.parquet"));
        write_row_group(&file, rows, width);
        for degree in [1, 2] {
            let (url, table, degree_word) = (server.url(), format!("t{width}_{degree}"), degree.to_string());
            let args = ["load", file.to_str().unwrap(), "--to", &url, "--table", &table];
            let mut child =
                start(args.into_iter().chain(["--unit-rows", "100000", "--connections", &degree_word]));
            let mut most = 0;
            while child.try_wait().unwrap().is_none() {
                most = most.max(peak(child.id()).unwrap_or(0));
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            wait(child).ok();
            println!("{width} bytes a row, {degree} connections: {} MiB at most", most >> 20);
            let bound = (64 + degree * 48) << 20;
            assert!(most > 0 && most < bound, "{width} bytes a row: {most}, not below {bound}");
        }
    }
}
