//! A load into CrateDB takes the configured memory, whatever the width of rows.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_cratedb_standin::StandIn;

use crate::harness::{peak, sawmill, start, wait};

/// Writes one column of distinct texts of `width` bytes each, in row groups of 64 MiB, without compression.
fn write(path: &Path, rows: usize, width: usize) {
    let schema_of = |rows: std::ops::Range<usize>| {
        let texts = rows.map(|row| format!("{row:010}{}", "x".repeat(width - 10)));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        RecordBatch::try_from_iter([("text", array)]).unwrap()
    };
    let group = ((64 << 20) / width).max(1);
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .set_dictionary_enabled(false)
        .build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema_of(0..0).schema(), Some(properties)).unwrap();
    for from in (0..rows).step_by(group) {
        writer.write(&schema_of(from..(from + group).min(rows))).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn memory_follows_the_options_and_not_the_width_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    for (rows, width) in [(500_000, 500), (2_500, 100_000), (150, 2_000_000)] {
        for transport in ["http", "pg"] {
            let cluster = StandIn::start(1);
            let file = dir.path().join(format!("{width}.parquet"));
            if !file.exists() {
                write(&file, rows, width);
            }
            let url = cluster.url();
            let file = file.to_str().unwrap();
            let args = [
                "load",
                file,
                "--to",
                &url,
                "--table",
                "c",
                "--row-key",
                "--transport",
                transport,
                "--connections",
                "2",
                "--batch-bytes",
                "1M",
                "--long-text",
                "noindex",
            ];
            let plan = sawmill(args.into_iter().chain(["--explain", "--json"])).ok().json();
            let encoded = plan["memory_bytes"].as_u64().unwrap();
            assert_eq!(encoded, 28 << 20);
            let mut child = start(args);
            let mut most = 0;
            while child.try_wait().unwrap().is_none() {
                most = most.max(peak(child.id()).unwrap_or(0));
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
            wait(child).ok();
            println!("{width} bytes a row over {transport}: {} MiB at most", most >> 20);
            // A row longer than a batch gets a separate block. Besides encoded rows, memory holds the
            // program and two decoded batches of 16 MiB with their pages, one being read and one being
            // dropped. Each file has at least 250 MB.
            let encoded = encoded.max(24 * width as u64);
            let bound = encoded + 2 * 3 * (16 << 20) + (64 << 20);
            assert!(most < bound, "{width} bytes a row over {transport}: {most}, not below {bound}");
            assert_eq!(cluster.engine().rows_in("doc", "c"), Some(rows));
        }
    }
    // The cluster had 2 GB in this process, and each process that later tests fork would copy its page table.
    // SAFETY: it only gives free memory back to the system.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
