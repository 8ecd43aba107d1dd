//! What the operating system says of this process: CPU time and resident memory.

use std::time::Duration;

/// CPU time that all threads of this process have used, user and system (`getrusage(2)`).
pub fn cpu_time() -> Duration {
    // SAFETY: an all-zero rusage is a valid value, and getrusage fills it through a valid pointer.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
            return Duration::ZERO;
        }
        usage
    };
    let duration = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.max(0) as u64) + Duration::from_micros(t.tv_usec.max(0) as u64)
    };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// Peak resident memory in bytes since the last [`reset_peak_memory`] (`VmHWM` of
/// `/proc/self/status`), `None` where the system does not tell.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Sets the peak back to what is resident now (`proc(5)`, `/proc/pid/clear_refs`). Without effect
/// where the system does not offer it.
pub fn reset_peak_memory() {
    // Where this fails the peak counts from the start of the process, which PhaseReport documents.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
