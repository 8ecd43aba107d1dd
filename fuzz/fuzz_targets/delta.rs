//! Any bytes as the log of a Delta table: reading gives a snapshot or an error, the same each time. Files appended
//! to a snapshot are in the next one, with all earlier files.
//!
//! The first byte chooses the kind of the bytes: commits, a checkpoint in JSON or Parquet, or both. 0xff separates
//! files.
#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use arrow_array::Array;
use libfuzzer_sys::fuzz_target;
use sawmill_delta::{Change, Commit, NewFile, Result, Snapshot, TableFolder};
use sawmill_store::Location;

const CHECKPOINTS: [&str; 3] = [
    "checkpoint.parquet",
    "checkpoint.0000000001.0000000001.parquet",
    "checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
];
/// The version of the first file.
const FIRST: [u64; 4] = [0, 0, 4_000_000_000, i64::MAX as u64 - 5000];

/// A table in memory.
struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn new(choice: u8, bytes: &[u8]) -> Self {
        let first = FIRST[usize::from(choice / 4 % 4)];
        let commits = (first..).map(|version| format!("_delta_log/{version:020}.json"));
        let checkpoint = |kind: u8| format!("_delta_log/{first:020}.{}", CHECKPOINTS[usize::from(kind)]);
        let mut parts = bytes.split(|byte| *byte == 0xff).map(<[u8]>::to_vec);
        let files = match choice % 4 {
            0 => commits.zip(parts).collect(),
            // Parquet has bytes of any kind: it is the only file.
            kind @ 1..=2 => BTreeMap::from([(checkpoint(kind - 1), bytes.to_vec())]),
            _ => {
                let entries = parts.next().map(|lines| (checkpoint(2), lines));
                entries.into_iter().chain(commits.skip(1).zip(parts)).collect()
            }
        };
        Self(Mutex::new(files))
    }
}

impl TableFolder for Memory {
    fn names(&self, below: &str) -> Result<Vec<String>> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let within = files.keys().filter_map(|name| name.strip_prefix(below)?.strip_prefix('/'));
        Ok(within.map(str::to_owned).collect())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    fn read_at(&self, place: &Location) -> Result<Option<Vec<u8>>> {
        let place = place.to_string();
        place.strip_prefix("/table/").map_or(Ok(None), |name| self.read(name))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = !files.contains_key(name);
        if is_free {
            files.insert(name.to_owned(), bytes.to_vec());
        }
        Ok(is_free)
    }

    fn location(&self, name: &str) -> Result<Location> {
        Ok(Location::Path(PathBuf::from("/table").join(name)))
    }
}

fn paths(snapshot: &Snapshot) -> Vec<(&str, Option<&str>)> {
    snapshot
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.deleted.as_ref().map(|deleted| deleted.name.as_str())))
        .collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let table = Memory::new(choice, bytes);
    let first = match Snapshot::open(&table, None) {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let again = Snapshot::open(&table, Some(first.version)).expect("as before").expect("as before");
    assert_eq!((paths(&first), &first.schema), (paths(&again), &again.schema));
    for file in &first.files {
        let rows = file.deleted.iter().flat_map(|deleted| deleted.rows.windows(2));
        assert!(rows.into_iter().all(|pair| pair[0].end < pair[1].start), "rows that are deleted twice");
        assert_eq!(file.partition_values.len(), first.partition_columns.len());
        assert!(file.partition_values.iter().all(|(column, value, _)| {
            value.len() == 1 && value.data_type() == first.schema.field(*column).data_type()
        }));
    }
    let new = NewFile { path: "new \u{fc}%.parquet".to_owned(), bytes: 7, rows: 1, ..NewFile::default() };
    let commit = Commit::new("fuzz", &first.schema, Change::Append, vec![new.clone()])
        .and_then(|commit| commit.partitioned_by(&first.partition_columns, &first.schema));
    // Not every table that can be read can be written.
    let Ok(made) = commit.and_then(|commit| commit.make(&table)) else { return };
    let after = Snapshot::open(&table, None).expect("a table that was just written").expect("a table");
    if !made.already {
        assert_eq!(after.version, first.version + 1);
        let mut expected = paths(&first);
        expected.retain(|(path, deleted)| (*path, *deleted) != (new.path.as_str(), None));
        expected.push((&new.path, None));
        expected.sort_unstable();
        let mut there = paths(&after);
        there.sort_unstable();
        assert_eq!(there, expected);
    }
});
