//! Sampling on systems without per-thread timers: the crate `pprof`, with one timer for the process.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::FREQUENCY;
use crate::watch::folded_stacks::FoldedStacks;
use crate::watch::frame_name;
use crate::watch::sampler_files;

pub(super) struct Collector {
    /// Present until stopped.
    guard: Option<pprof::ProfilerGuard<'static>>,
    open_before: BTreeSet<PathBuf>,
}

/// The stacks of a sampled run.
#[derive(Clone, Debug, Default)]
pub struct SampledStacks(FoldedStacks);

impl SampledStacks {
    /// The stacks with readable names, without the frames that start the program and its threads.
    pub fn named(&self) -> FoldedStacks {
        self.0.clone()
    }
}

impl Collector {
    pub(super) fn start() -> Result<Self, pprof::Error> {
        // These libraries unwind or take locks themselves; sampling inside them could deadlock.
        let blocked = ["libc.so", "libgcc_s", "libpthread", "vdso"];
        let open_before = sampler_files::open_now();
        let builder = pprof::ProfilerGuardBuilder::default();
        let guard = builder.frequency(FREQUENCY as i32).blocklist(&blocked).build()?;
        Ok(Self { guard: Some(guard), open_before })
    }

    pub(super) fn stop(self) -> Option<SampledStacks> {
        let report = self.guard.as_ref()?.report().build().ok()?;
        let mut stacks = FoldedStacks::default();
        for (frames, samples) in &report.data {
            let thread = if frames.thread_name.is_empty() { "a thread" } else { &frames.thread_name };
            let inner_first = frames.frames.iter().flatten();
            let mut names: Vec<String> = inner_first.map(name_of).collect();
            names.reverse();
            // Frames outside our first own frame start the program or the thread.
            let start = names.iter().rposition(|name| frame_name::is_start(name)).map_or(0, |at| at + 1);
            let names = names.split_off(start.min(names.len()));
            let frames = std::iter::once(thread.to_owned()).chain(names);
            stacks.add(frames, u64::try_from(*samples).unwrap_or(0));
        }
        Some(SampledStacks(stacks))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        sampler_files::remove_at_exit(&self.open_before);
        // Ending creates another file.
        self.guard = None;
        sampler_files::remove_at_exit(&self.open_before);
    }
}

fn name_of(symbol: &pprof::Symbol) -> String {
    let name = frame_name::readable(&symbol.name());
    frame_name::located(name, symbol.filename.as_deref())
}
