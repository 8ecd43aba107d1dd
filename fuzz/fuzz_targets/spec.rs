//! Any text as a dataset spec: a spec or an error with its place. The first rows of a spec are the same in batches of
//! any size, column by column, and in files made by any number of threads in any layout.
#![no_main]

use std::num::NonZeroUsize;
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_select::concat::concat_batches;
use libfuzzer_sys::fuzz_target;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use sawmill_generator::{Dataset, Job, Layout, Output, write};
use sawmill_profile::Profile;

const ROWS: u64 = 10;
const SEED: u64 = 7;
/// Larger rows take more time than they show.
const MAX_ROW_BYTES: f64 = 10_000.0;
const MAX_COLUMNS: usize = 50;

/// The first rows, in batches that end at these rows and before.
fn rows(dataset: &Dataset, ends: &[u64], batch_rows: usize) -> Option<RecordBatch> {
    let mut batches = Vec::new();
    let mut start = 0;
    for end in ends {
        batches.extend(dataset.batches(start..*end, SEED, batch_rows).collect::<Result<Vec<_>, _>>().ok()?);
        start = *end;
    }
    Some(concat_batches(&dataset.arrow_schema(), &batches).expect("batches of one schema"))
}

/// The rows of the files that `threads` threads make.
fn of_files(dataset: &Dataset, threads: usize, files: u32) -> Option<Vec<RecordBatch>> {
    let folder = Path::new(if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "target" });
    let folder = folder.join(format!("sawmill-fuzz-{}-spec", std::process::id()));
    let (layout, output) = (Layout::new(ROWS, files).expect("a layout"), Output::Directory(folder.clone()));
    let (phase, cancel) = (Profile::new().phase("fuzz"), false.into());
    let threads = NonZeroUsize::new(threads).expect("one or more");
    let made = write(dataset, &Job { seed: SEED, threads, ..Job::new(&layout, &output, &phase, &cancel) });
    let batches = made.ok().map(|made| {
        let of_file = |path: &Path| {
            let file = std::fs::File::open(path).expect("a file that was written");
            // The types of Parquet's schema suffice.
            let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options);
            let reader = reader.and_then(|reader| reader.build()).expect("a file that was written");
            let schema = reader.schema();
            (schema, reader.map(|batch| batch.expect("a page that was written")).collect::<Vec<_>>())
        };
        let (schemas, batches): (Vec<_>, Vec<_>) = made.iter().map(|file| of_file(&file.path)).unzip();
        vec![concat_batches(&schemas[0], &batches.concat()).expect("batches of one schema")]
    });
    drop(std::fs::remove_dir_all(folder));
    batches
}

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let dataset = match Dataset::from_toml(text) {
        Ok(dataset) => dataset,
        Err(error) => return assert!(!error.what().is_empty(), "{error}"),
    };
    let explained = dataset.explain();
    assert!(!explained.schema.is_empty());
    let is_small = |bytes: f64| bytes <= MAX_ROW_BYTES;
    if !is_small(explained.bytes_a_row) || explained.columns.len() > MAX_COLUMNS {
        return;
    }
    let whole = rows(&dataset, &[ROWS], ROWS as usize);
    assert_eq!(whole, rows(&dataset, &[1, 4, ROWS], 2), "in pieces");
    if let Some(whole) = &whole {
        for field in 0..whole.num_columns() {
            let alone =
                dataset.batches_of(&[field], 0..ROWS, SEED, ROWS as usize).expect("a field that there is");
            let alone = alone.collect::<Result<Vec<_>, _>>().expect("rows that could be drawn");
            assert_eq!(alone[0].column(0), whole.column(field), "field {field} alone");
        }
    }
    assert_eq!(of_files(&dataset, 1, 1), of_files(&dataset, 2, 3), "in files");
});
