//! Where the CPU time goes: this process interrupts itself at a steady rate of CPU time
//! (`setitimer(2)`, `ITIMER_PROF`) and notes the stack that was running, with the thread's name.
//!
//! The sampling and the unwinding are those of the crate `pprof`, behind the feature `flamegraph`:
//! its 45 crates take 40 s of CPU time to build, so it is not there by default. Sampling 199 times a
//! second of CPU time makes a run take 0.99 to 1.03 times the CPU time, which is what runs on the
//! same machine differ by without it (41 interleaved runs, three times;
//! `cargo run --release -p sawmill-profile --features flamegraph --example sampler_cost`). Threads
//! that wait are not seen here; [`crate::wait`] tells of those.

use crate::error::{Error, Result};
use crate::folded_stacks::FoldedStacks;

/// How often a second of CPU time a sample is taken; a prime, so that it does not beat with loops.
#[cfg(all(unix, feature = "flamegraph"))]
const FREQUENCY: i32 = 199;

/// Samples the stacks of all threads until it is stopped or dropped. One at a time in a process.
pub struct CpuSampler {
    /// There until it is stopped.
    #[cfg(all(unix, feature = "flamegraph"))]
    guard: Option<pprof::ProfilerGuard<'static>>,
    #[cfg(all(unix, feature = "flamegraph"))]
    open_before: std::collections::BTreeSet<std::path::PathBuf>,
    #[cfg(not(all(unix, feature = "flamegraph")))]
    never: std::convert::Infallible,
}

impl std::fmt::Debug for CpuSampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuSampler").finish_non_exhaustive()
    }
}

#[cfg(all(unix, feature = "flamegraph"))]
impl CpuSampler {
    /// Tells whether this program can sample its stacks, without starting to: that takes 40 MiB.
    ///
    /// # Errors
    /// It was built without the feature `flamegraph`, or not for Unix.
    pub fn available() -> Result<()> {
        Ok(())
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// Another one is running, or the system gives no timer.
    pub fn start() -> Result<Self> {
        // These libraries unwind or lock themselves; a sample in their midst could hang.
        let blocked = ["libc.so", "libgcc_s", "libpthread", "vdso"];
        let open_before = crate::sampler_files::open_now();
        let guard = pprof::ProfilerGuardBuilder::default().frequency(FREQUENCY).blocklist(&blocked).build();
        let guard = guard.map_err(|error| {
            Error::new(
                format!("the CPU cannot be sampled: {error}"),
                "",
                "sample once at a time; leave the flame graph out",
            )
        })?;
        Ok(Self { guard: Some(guard), open_before })
    }

    /// Ends sampling and gives the stacks, with names a person can read. Frames of the start of the
    /// program and of threads are left out.
    ///
    /// # Errors
    /// The samples cannot be read back.
    pub fn stop(self) -> Result<FoldedStacks> {
        let lost =
            |error: &dyn std::fmt::Display| Error::new(format!("the CPU samples are lost: {error}"), "", "");
        let Some(guard) = &self.guard else { return Err(lost(&"it was stopped before")) };
        let report = guard.report().build().map_err(|error| lost(&error))?;
        let mut stacks = FoldedStacks::default();
        for (frames, samples) in &report.data {
            let thread = if frames.thread_name.is_empty() { "a thread" } else { &frames.thread_name };
            let inner_first = frames.frames.iter().flatten();
            let mut names: Vec<String> = inner_first.map(name_of).collect();
            names.reverse();
            // Outside of the first frame of our own the program and the thread are started.
            let start = names.iter().rposition(|name| is_start(name)).map_or(0, |at| at + 1);
            let names = names.split_off(start.min(names.len()));
            let frames = std::iter::once(thread.to_owned()).chain(names);
            stacks.add(frames, u64::try_from(*samples).unwrap_or(0));
        }
        Ok(stacks)
    }
}

#[cfg(all(unix, feature = "flamegraph"))]
impl Drop for CpuSampler {
    fn drop(&mut self) {
        crate::sampler_files::remove_at_exit(&self.open_before);
        // Ending makes a new file.
        self.guard = None;
        crate::sampler_files::remove_at_exit(&self.open_before);
    }
}

#[cfg(all(unix, feature = "flamegraph"))]
fn name_of(symbol: &pprof::Symbol) -> String {
    let name = crate::frame_name::readable(&symbol.name());
    crate::frame_name::located(name, symbol.filename.as_deref())
}

/// Whether a frame belongs to the start of a program or a thread.
#[cfg(all(unix, feature = "flamegraph"))]
fn is_start(name: &str) -> bool {
    ["__rust_begin_short_backtrace", "lang_start", "__libc_start", "clone3", "start_thread", "thread_start"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(not(all(unix, feature = "flamegraph")))]
impl CpuSampler {
    /// Tells whether this program can sample its stacks.
    ///
    /// # Errors
    /// Always: it was built without the feature `flamegraph`, or not for Unix.
    pub fn available() -> Result<()> {
        Self::start().map(drop)
    }

    /// Says that this program cannot sample its stacks.
    ///
    /// # Errors
    /// Always: it was built without the feature `flamegraph`, or not for Unix.
    pub fn start() -> Result<Self> {
        Err(Error::new(
            "this program was built without the sampling of stacks",
            "",
            "build it for Unix with the feature flamegraph",
        ))
    }

    /// Cannot be reached: there is no such sampler here.
    ///
    /// # Errors
    /// None.
    pub fn stop(self) -> Result<FoldedStacks> {
        match self.never {}
    }
}

#[cfg(all(test, target_os = "linux", feature = "flamegraph"))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[inline(never)]
    fn burn_for_the_flame_graph(time: Duration) -> u64 {
        let until = crate::cpu_time() + time;
        let mut sum = 0u64;
        while crate::cpu_time() < until {
            for n in 0..200_000u64 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
            }
        }
        sum
    }

    #[test]
    fn the_function_that_burns_the_time_is_seen_under_its_thread() {
        let sampler = CpuSampler::start().unwrap();
        let thread = std::thread::Builder::new().name("burner".into());
        let burn = || burn_for_the_flame_graph(Duration::from_millis(900));
        thread.spawn(burn).unwrap().join().unwrap();
        let stacks = sampler.stop().unwrap();
        let text = stacks.to_string();
        let seen: u64 = stacks
            .iter()
            .filter(|(frames, _)| frames[0] == "burner")
            .filter(|(frames, _)| frames.iter().any(|name| name.contains("burn_for_the_flame_graph")))
            .map(|(_, samples)| samples)
            .sum();
        assert!(seen >= 20, "{text}");
        assert!(!text.contains("__rust_begin_short_backtrace"), "{text}");
    }
}
