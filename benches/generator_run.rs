//! Generates datasets of a spec without storing them, for the generator's benchmarks: draws, shreds and
//! encodes rows as for files, on one thread, and writes to `/dev/null`.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use sawmill_generator::{Dataset, FileOptions, Job, Layout, Output, write};
use sawmill_profile::Profile;

/// Generates `rows` rows on `threads` threads and returns the size that the file would have.
pub fn generate(dataset: &Dataset, rows: u64, threads: usize, options: &FileOptions) -> u64 {
    let layout = Layout::new(rows, 1).unwrap();
    let phase = Profile::new().phase("generate");
    let (output, cancel) = (Output::from_path("/dev/null".as_ref()), AtomicBool::new(false));
    let threads = NonZeroUsize::new(threads).unwrap();
    let job = Job { threads, options: options.clone(), ..Job::new(&layout, &output, &phase, &cancel) };
    write(dataset, &job).unwrap().iter().map(|file| file.bytes).sum()
}
