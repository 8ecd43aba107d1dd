//! Datasets of one spec generated into nothing, for the benchmarks of the generator: rows are drawn,
//! shredded and encoded as for files, on one thread, and handed to `/dev/null`.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use sawmill_generator::{Dataset, Job, Layout, Output, write};
use sawmill_profile::Profile;

/// Generates `rows` rows on `threads` threads, and gives the bytes that the file would have.
pub fn generate(dataset: &Dataset, rows: u64, threads: usize) -> u64 {
    let layout = Layout::new(rows, 1).unwrap();
    let phase = Profile::new().phase("generate");
    let job = Job {
        layout: &layout,
        output: &Output::from_path("/dev/null".as_ref()),
        seed: 42,
        threads: NonZeroUsize::new(threads).unwrap(),
        phase: &phase,
        cancel: &AtomicBool::new(false),
    };
    write(dataset, &job).unwrap().iter().map(|file| file.bytes).sum()
}
