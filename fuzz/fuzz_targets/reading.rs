//! A file with an input's bytes, and the rows of a source in one batch.

#![allow(dead_code, reason = "each target compiles this module and calls a part of it")]

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use sawmill_profile::Profile;
use sawmill_source::{Control, Result, Source};

/// Writes the bytes to a file, always the same one, in memory where Linux has a place for that.
pub fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let path = folder.join(format!("sawmill-fuzz-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).expect("room for a small file");
    path
}

pub fn with_control<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let (cancel, profile) = (AtomicBool::new(false), Profile::new());
    let phase = profile.phase("fuzz");
    work(&Control::new(&cancel, &phase))
}

/// All rows, read in units and batches of these sizes, which the plan has promised.
pub fn rows(source: &dyn Source, unit_rows: u64, batch_rows: usize) -> Result<RecordBatch> {
    let mut reader = source.reader(batch_rows);
    let mut batches = Vec::new();
    for unit in source.plan(unit_rows).concat() {
        reader.start(&unit)?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch()? {
            assert!(batch.num_rows() <= batch_rows, "a batch of {} rows", batch.num_rows());
            rows += batch.num_rows() as u64;
            batches.push(batch);
        }
        assert_eq!(rows, unit.rows, "rows of {:?}", unit.key);
    }
    Ok(concat_batches(source.schema(), &batches).expect("batches of the source's schema"))
}

/// The text of a refusal, which must have a message and must not come from a panic.
pub fn refusal(error: &sawmill_source::Error) -> String {
    let text = error.to_string();
    assert!(!error.what().is_empty() && !text.contains("panicked: "), "{text}");
    text
}
