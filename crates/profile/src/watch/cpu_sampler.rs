//! Samples where the CPU time goes: interrupts each thread at a steady rate of its CPU time and records its
//! stack with the thread's name.
//!
//! ```text
//! timer of each thread ─SIGPROF─▶ handler unwinds into a slot ─every 5 ms─▶ collector: addresses and counts
//!     run is over ─▶ SampledStacks ─after all measurements─▶ names ─▶ FoldedStacks
//! ```
//!
//! Requires the feature `flamegraph`, which adds the crate `backtrace` for unwinding and symbols, and Linux: other
//! systems have no timers for a thread's CPU time. Waiting threads are not sampled; [`crate::trace::wait`] covers
//! those.

#[cfg(all(target_os = "linux", feature = "flamegraph"))]
mod collector;
#[cfg(not(all(target_os = "linux", feature = "flamegraph")))]
mod unavailable;

use crate::error::{Error, Result};

#[cfg(all(target_os = "linux", feature = "flamegraph"))]
use collector as sampling;
#[cfg(not(all(target_os = "linux", feature = "flamegraph")))]
use unavailable as sampling;

use sampling::Collector;
pub use sampling::SampledStacks;

/// Samples the stacks of all threads until stopped or dropped. Only one may run per process.
#[derive(Debug)]
pub struct CpuSampler {
    collector: Collector,
    // Released last, after the timers are gone.
    _alone: Alone,
}

impl CpuSampler {
    /// Checks whether this program can sample its stacks, without starting.
    ///
    /// # Errors
    /// The program was built without the feature `flamegraph`, or not for Linux.
    pub fn available() -> Result<()> {
        match cfg!(all(target_os = "linux", feature = "flamegraph")) {
            true => Ok(()),
            false => Err(Error::failed(
                "this program was built without stack sampling",
                "",
                "build it for Linux with the feature flamegraph",
            )),
        }
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// Another sampler is running, the system provides no timer, or sampling is not
    /// [`CpuSampler::available`].
    pub fn start() -> Result<Self> {
        Self::available()?;
        let failed = |error: &dyn std::fmt::Display| {
            let advice = "run one sampler at a time, or leave out the flame graph";
            Error::failed(format!("the CPU cannot be sampled: {error}"), "", advice)
        };
        let alone = Alone::take().ok_or_else(|| failed(&"another sampler is running"))?;
        let collector = Collector::start().map_err(|error| failed(&error))?;
        Ok(Self { collector, _alone: alone })
    }

    /// Ends sampling and returns the stacks.
    ///
    /// # Errors
    /// The samples cannot be read back.
    pub fn stop(self) -> Result<SampledStacks> {
        self.collector.stop().ok_or_else(|| Error::failed("the CPU samples are lost", "", ""))
    }
}

/// The claim to the process's only sampler.
#[derive(Debug)]
struct Alone;

static SAMPLING: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

impl Alone {
    fn take() -> Option<Self> {
        let before = SAMPLING.swap(true, std::sync::atomic::Ordering::AcqRel);
        (!before).then_some(Self)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        SAMPLING.store(false, std::sync::atomic::Ordering::Release);
    }
}

#[cfg(all(target_os = "linux", feature = "flamegraph"))]
#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use super::*;
    use crate::watch::folded_stacks::FoldedStacks;

    /// Only one sampler can run per process.
    static ONE: Mutex<()> = Mutex::new(());

    fn thread_cpu_time() -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec to write to during the call.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[inline(never)]
    fn burn_for_the_flame_graph(time: Duration) -> u64 {
        let until = thread_cpu_time() + time;
        let mut sum = 0u64;
        while thread_cpu_time() < until {
            for n in 0..20_000u64 {
                sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(n));
            }
        }
        sum
    }

    fn burners(threads: usize, time: Duration) -> FoldedStacks {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let sampler = CpuSampler::start().unwrap();
        assert!(CpuSampler::start().is_err(), "one at a time");
        std::thread::scope(|scope| {
            for number in 0..threads {
                let thread = std::thread::Builder::new().name(format!("burner {number}"));
                thread.spawn_scoped(scope, move || burn_for_the_flame_graph(time)).unwrap();
            }
        });
        sampler.stop().unwrap().named()
    }

    fn seen(stacks: &FoldedStacks, thread: &str, function: &str) -> u64 {
        let frames = |frames: &[String]| {
            frames[0].starts_with(thread) && frames.iter().any(|name| name.contains(function))
        };
        stacks.iter().filter(|(stack, _)| frames(stack)).map(|(_, samples)| samples).sum()
    }

    #[test]
    fn each_thread_is_sampled_199_times_per_second_of_its_cpu_time() {
        for (threads, time) in [(1, 900), (2, 900), (7, 400)] {
            let stacks = burners(threads, Duration::from_millis(time));
            let expected = threads as f64 * time as f64 / 1000.0 * 199.0;
            let found = seen(&stacks, "burner", "") as f64;
            assert!((found / expected - 1.0).abs() < 0.05, "{threads}: {found} of {expected}\n{stacks}");
        }
    }

    #[test]
    fn the_busy_function_appears_under_its_thread() {
        let stacks = burners(1, Duration::from_millis(300));
        assert!(seen(&stacks, "burner", "burn_for_the_flame_graph") > 50, "{stacks}");
        assert!(!stacks.to_string().contains("__rust_begin_short_backtrace"), "{stacks}");
    }

    #[test]
    fn threads_that_live_for_30_ms_are_counted_like_others() {
        let stacks = burners(40, Duration::from_millis(30));
        let expected = 40.0 * 0.03 * 199.0;
        let found = seen(&stacks, "burner", "") as f64;
        assert!((found / expected - 1.0).abs() < 0.25, "{found} of {expected}\n{stacks}");
    }

    #[test]
    fn time_in_the_kernel_and_the_c_library_appears_under_its_caller() {
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let sampler = CpuSampler::start().unwrap();
        let until = thread_cpu_time() + Duration::from_millis(300);
        #[inline(never)]
        fn write_zeros(until: Duration) {
            use std::io::{Read, Write};
            let (mut zero, mut null) =
                (std::fs::File::open("/dev/zero").unwrap(), std::fs::File::create("/dev/null").unwrap());
            let mut bytes = vec![0; 1 << 20];
            while thread_cpu_time() < until {
                zero.read_exact(&mut bytes).unwrap();
                null.write_all(&bytes).unwrap();
            }
        }
        write_zeros(until);
        let stacks = sampler.stop().unwrap().named();
        assert!(seen(&stacks, "", "write_zeros") >= 45, "{stacks}");
    }
}
