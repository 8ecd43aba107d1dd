//! Datasets of one spec generated into nothing, for the benchmarks of the generator: rows are drawn,
//! shredded and encoded as for files, on one thread, and handed to `/dev/null`.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use sawmill_generator::{Dataset, FileOptions, Job, Layout, Output, write};
use sawmill_profile::Profile;

/// Generates `rows` rows on `threads` threads, and gives the bytes that the file would have.
pub fn generate(dataset: &Dataset, rows: u64, threads: usize, options: &FileOptions) -> u64 {
    let layout = Layout::new(rows, 1).unwrap();
    let phase = Profile::new().phase("generate");
    let (output, cancel) = (Output::from_path("/dev/null".as_ref()), AtomicBool::new(false));
    let threads = NonZeroUsize::new(threads).unwrap();
    let job = Job { threads, options: options.clone(), ..Job::new(&layout, &output, &phase, &cancel) };
    write(dataset, &job).unwrap().iter().map(|file| file.bytes).sum()
}
