//! Opens the footers of many files.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::decode::carried::Carried;
use crate::error::Result;
use crate::footer::Footer;
use crate::options::Options;

/// The fewest bytes to read first from the next file.
const MIN_TAIL: usize = 1024;

impl Footer {
    /// Opens many files like [`Footer::open_with`], on as many threads as the options allow. Calls `take`
    /// with the index of every path and its footer or error. Unless `take` keeps them, memory holds at most
    /// one footer per thread. If `take` breaks, the call ends after the files in progress.
    ///
    /// Costs for each file what [`Decoder::open`](crate::Decoder::open) does, on as many threads as the
    /// options say. Of each file about as many bytes are read as the footer before it had.
    pub fn open_many<P: AsRef<Path> + Sync>(
        paths: &[P],
        options: &Options,
        take: impl Fn(usize, Result<Self>) -> ControlFlow<()> + Sync,
    ) {
        let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut each = options.clone();
            let mut carried = Carried::first_of_many();
            while !ended.load(Relaxed) {
                let place = next.fetch_add(1, Relaxed);
                let Some(path) = paths.get(place) else { break };
                let footer = Footer::open_after(path.as_ref(), &each, &mut carried);
                if let Ok(footer) = &footer {
                    let len = footer.footer_len();
                    each.tail_hint = (len + len / 32 + 64).max(MIN_TAIL).min(options.tail_hint);
                }
                if take(place, footer).is_break() {
                    ended.store(true, Relaxed);
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
