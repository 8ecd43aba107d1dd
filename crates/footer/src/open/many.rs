//! Opens the footers of many files.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::error::Error;
use crate::footer::Footer;
use crate::open::opener::Opener;
use crate::options::Options;

impl Footer {
    /// Opens many files like [`Footer::open_with`], on as many threads as the options allow. Calls `take`
    /// with the index of every path and its footer or error. Unless `take` keeps them, memory holds at most
    /// one footer per thread, plus the ends of 32 files per thread with at most 64 KiB each. If `take`
    /// breaks, the call ends after the files in progress.
    ///
    /// Costs for each file what [`Decoder::open`](crate::Decoder::open) does, on as many threads as the
    /// options say.
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
                // If a thread cannot be started, the others do its share.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
}
