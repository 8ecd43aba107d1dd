//! The operating system's figures for this process: CPU time and memory.

use std::time::Duration;

/// CPU time used by all threads of this process, user plus system (`getrusage(2)`); zero if the system does
/// not report it.
pub fn cpu_time() -> Duration {
    self_usage().map_or(Duration::ZERO, |usage| user_time(&usage) + system_time(&usage))
}

/// The same separately: in user space and in the kernel.
pub(crate) fn cpu_times() -> (Duration, Duration) {
    self_usage().map_or((Duration::ZERO, Duration::ZERO), |usage| (user_time(&usage), system_time(&usage)))
}

fn self_usage() -> Option<libc::rusage> {
    // SAFETY: an all-zero rusage is a valid value, and getrusage fills it through a valid pointer.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)
    }
}

pub(crate) fn user_time(usage: &libc::rusage) -> Duration {
    timeval(usage.ru_utime)
}

pub(crate) fn system_time(usage: &libc::rusage) -> Duration {
    timeval(usage.ru_stime)
}

fn timeval(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64)
}

/// The peak resident memory of a rusage in bytes: Linux counts it in KiB, macOS in bytes (`getrusage(2)` of
/// each).
#[cfg(any(feature = "measure", not(target_os = "linux")))]
pub(crate) fn peak_of(usage: &libc::rusage) -> u64 {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage.ru_maxrss.max(0) as u64 * unit
}

/// Peak resident memory in bytes since the start of the last phase (`VmHWM` of `/proc/self/status`), or of
/// the process where that cannot be reset (`ru_maxrss` of other Unix systems); `None` if the system does not
/// report it.
pub fn peak_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return crate::trace::system::proc_text::status_bytes("/proc/self/status", "VmHWM:");
    #[cfg(not(target_os = "linux"))]
    return self_usage().as_ref().map(peak_of);
}

/// Resets the peak to the memory that is resident now (`proc(5)`, `/proc/pid/clear_refs`). No effect if the system does
/// not support it.
pub(crate) fn reset_peak_memory() {
    // If this fails, the peak counts from the start of the process, as PhaseReport documents.
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu_time();
        let mut sum = 0u64;
        while cpu_time() < before + Duration::from_millis(10) {
            for n in 0..10_000u64 {
                sum = std::hint::black_box(sum ^ n);
            }
        }
    }
}
