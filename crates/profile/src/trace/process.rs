//! What the operating system says of this process: CPU time and memory.

use std::time::Duration;

/// CPU time that all threads of this process have used, user and system (`getrusage(2)`); zero
/// where the system does not tell.
pub fn cpu_time() -> Duration {
    self_usage().map_or(Duration::ZERO, |usage| user_time(&usage) + system_time(&usage))
}

/// The same, apart: in user space and in the kernel.
pub(crate) fn cpu_times() -> (Duration, Duration) {
    self_usage().map_or((Duration::ZERO, Duration::ZERO), |usage| (user_time(&usage), system_time(&usage)))
}

#[cfg(unix)]
fn self_usage() -> Option<libc::rusage> {
    // SAFETY: an all-zero rusage is a valid value, and getrusage fills it through a valid pointer.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)
    }
}

#[cfg(unix)]
pub(crate) fn user_time(usage: &libc::rusage) -> Duration {
    timeval(usage.ru_utime)
}

#[cfg(unix)]
pub(crate) fn system_time(usage: &libc::rusage) -> Duration {
    timeval(usage.ru_stime)
}

#[cfg(unix)]
fn timeval(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64)
}

/// Peak resident memory of a rusage in bytes: Linux counts it in KiB, macOS in bytes
/// (`getrusage(2)` of each).
#[cfg(unix)]
pub(crate) fn peak_of(usage: &libc::rusage) -> u64 {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    usage.ru_maxrss.max(0) as u64 * unit
}

#[cfg(not(unix))]
fn self_usage() -> Option<std::convert::Infallible> {
    None
}

#[cfg(not(unix))]
fn user_time(usage: &std::convert::Infallible) -> Duration {
    match *usage {}
}

#[cfg(not(unix))]
fn system_time(usage: &std::convert::Infallible) -> Duration {
    match *usage {}
}

/// Peak resident memory in bytes since the last [`reset_peak_memory`] (`VmHWM` of
/// `/proc/self/status`; `ru_maxrss` on other Unix systems, where it cannot be reset), `None` where
/// the system does not tell.
pub fn peak_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return crate::watch::proc_files::status_bytes("/proc/self/status", "VmHWM:");
    #[cfg(all(unix, not(target_os = "linux")))]
    return self_usage().as_ref().map(peak_of);
    #[cfg(not(unix))]
    return None;
}

/// Sets the peak back to what is resident now (`proc(5)`, `/proc/pid/clear_refs`). Without effect
/// where the system does not offer it.
pub fn reset_peak_memory() {
    // Where this fails the peak counts from the start of the process, which PhaseReport documents.
    #[cfg(target_os = "linux")]
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Gives the calling thread a name that the system, and so [`crate::Sampler`] and every debugger,
/// shows; for threads of pools that were not named when they were started. Linux keeps 15 bytes of
/// it. Elsewhere it has no effect: name threads with [`std::thread::Builder::name`] there.
pub fn name_thread(name: &str) {
    #[cfg(target_os = "linux")]
    {
        let mut bytes = [0u8; 16];
        for (to, from) in bytes.iter_mut().zip(name.bytes().filter(|byte| *byte != 0).take(15)) {
            *to = from;
        }
        // SAFETY: PR_SET_NAME reads a text that ends with a zero from the pointer, at most 16
        // bytes; the last of the 16 bytes is always zero.
        unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = name;
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_can_be_named_from_within() {
        std::thread::spawn(|| {
            name_thread("a name longer than fifteen");
            let comm = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(comm.trim_end(), "a name longer t");
        })
        .join()
        .unwrap();
    }
}
