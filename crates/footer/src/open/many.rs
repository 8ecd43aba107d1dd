//! The footers of many files.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::error::Error;
use crate::footer::Footer;
use crate::open::opener::Opener;
use crate::options::Options;

impl Footer {
    /// Opens many files, each as [`Footer::open_with`] does, on as many threads as the options say; `take`
    /// gets every footer, or why there is none, with the place of its path. No more footers are in memory
    /// than there are threads, unless `take` keeps them, and the ends of 32 files a thread, 64 KiB of each
    /// at most. A `take` that breaks ends it after the files at hand.
    pub fn open_many<P: AsRef<Path> + Sync>(
        paths: &[P],
        options: &Options,
        take: impl Fn(usize, Result<Self, Error>) -> ControlFlow<()> + Sync,
    ) {
        let each = options.clone().threads(1);
        let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut opener = Opener::new(&each, paths.len() / options.threads.max(1));
            loop {
                let count = opener.at_a_time();
                let start = next.fetch_add(count, Relaxed);
                let Some(rest) = paths.get(start..).filter(|rest| !rest.is_empty()) else { break };
                let files = rest.get(..count).unwrap_or(rest);
                opener.look_at(files);
                for (place, path) in files.iter().enumerate() {
                    if ended.load(Relaxed) {
                        return;
                    }
                    if take(start + place, opener.open(place, path.as_ref())).is_break() {
                        ended.store(true, Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..options.threads.min(paths.len()) {
                // A thread that cannot be started leaves its share to the others.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
}
