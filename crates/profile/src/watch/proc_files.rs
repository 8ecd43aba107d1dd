//! Parses the files of `/proc` that the sampler reads (`proc(5)`), without allocating for those read ten
//! times a second.

use std::time::Duration;

pub(crate) use crate::trace::system::proc_text::numbered;
use crate::trace::system::proc_text::with_text;

/// The contents of `/proc/<pid>/stat` or `/proc/<pid>/task/<tid>/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) parent: u32,
    /// User plus system time of the process or thread itself.
    pub(crate) own_cpu: Duration,
    /// The CPU time of its children that have ended and been waited for.
    pub(crate) reaped_cpu: Duration,
    /// When it started, relative to the start of the system.
    pub(crate) started: Duration,
}

impl Stat {
    /// Reads the file; `None` if the process is gone.
    pub(crate) fn read(path: &str) -> Option<Self> {
        with_text(path, |text| Self::parse(text, setting(libc::_SC_CLK_TCK, 100)))?
    }

    fn parse(text: &str, ticks: u64) -> Option<Self> {
        // The name is in parentheses and can contain parentheses: the last one ends it.
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after.split_ascii_whitespace();
        // Numbered as in proc(5): the state is field 3.
        let parent = fields.nth(1)?.parse().ok()?;
        let mut time = |skip: usize| {
            let count: u64 = fields.nth(skip)?.parse().ok()?;
            Some(Duration::from_nanos((u128::from(count) * 1_000_000_000 / u128::from(ticks)) as u64))
        };
        let (user, system) = (time(9)?, time(0)?);
        let (reaped_user, reaped_system) = (time(0)?, time(0)?);
        let started = time(4)?;
        Some(Self {
            name: name.to_owned(),
            parent,
            own_cpu: user + system,
            reaped_cpu: reaped_user + reaped_system,
            started,
        })
    }
}

/// CPU time of a thread in nanoseconds, finer than the ticks of `stat`: the first number of
/// `/proc/<pid>/task/<tid>/schedstat`, if the kernel provides it.
pub(crate) fn run_time(path: &str) -> Option<Duration> {
    with_text(path, |text| text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos))?
}

/// Resident and shared memory in bytes: fields 2 and 3 of `/proc/<pid>/statm`.
pub(crate) fn resident_and_shared(path: &str) -> Option<(u64, u64)> {
    with_text(path, |text| {
        let mut pages = text.split_ascii_whitespace().skip(1);
        let resident: u64 = pages.next()?.parse().ok()?;
        let shared: u64 = pages.next()?.parse().ok()?;
        let size = setting(libc::_SC_PAGESIZE, 4096);
        Some((resident * size, shared.min(resident) * size))
    })?
}

/// Bytes read from and written to storage: `read_bytes` and `write_bytes` of `/proc/<pid>/io`.
pub(crate) fn storage_bytes(path: &str) -> Option<(u64, u64)> {
    with_text(path, |text| {
        let value = |key: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()
        };
        Some((value("read_bytes:")?, value("write_bytes:")?))
    })?
}

/// The id of the process or thread started most recently on the system: the last number of `/proc/loadavg`.
/// While it is unchanged, nothing was started.
pub(crate) fn last_started() -> Option<u32> {
    with_text("/proc/loadavg", |text| text.split_ascii_whitespace().last()?.parse().ok())?
}

/// Time since the start of the system, on the clock of [`Stat::started`]; accurate to 10 ms.
pub(crate) fn since_boot() -> Option<Duration> {
    with_text("/proc/uptime", |text| {
        let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    })?
}

/// A setting of the system, or a usual value.
fn setting(name: libc::c_int, usual: u64) -> u64 {
    // SAFETY: sysconf takes and returns a number.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|value| *value > 0).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b (c)) S 7 1 1 0 -1 4194560 1 2 3 4 150 50 30 20 20 0 1 0 900 1 1";
        let stat = Stat::parse(text, 100).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent), ("a) b (c)", 7));
        assert_eq!(stat.own_cpu, Duration::from_secs(2));
        assert_eq!(stat.reaped_cpu, Duration::from_millis(500));
        assert_eq!(stat.started, Duration::from_secs(9));
    }

    #[test]
    fn this_process_can_be_read() {
        let stat = Stat::read("/proc/self/stat").unwrap();
        assert!(stat.parent > 0 && !stat.name.is_empty());
        let (resident, shared) = resident_and_shared("/proc/self/statm").unwrap();
        assert!(resident > shared && shared > 0);
        let peak = crate::trace::system::proc_text::status_bytes("/proc/self/status", "VmHWM:");
        assert!(peak.unwrap() >= resident / 2);
        assert!(numbered("/proc").contains(&std::process::id()));
        assert_eq!(Stat::read("/proc/0/stat"), None);
    }
}
