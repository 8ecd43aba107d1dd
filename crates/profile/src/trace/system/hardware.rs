//! Hardware counters of this process through `perf_event_open(2)`: cycles, instructions, caches and branches.
//! If the kernel does not provide them, the result is the reason, never a zero.
//!
//! The system call is made directly: six counters need 64 bytes of attributes and one call each, and a crate
//! would bring bindings to all of perf. The counters follow every thread that exists when they are opened and
//! all threads started from those (`inherit`). They are read only at the edges of a phase, so they cost
//! nothing in between.

use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
pub use linux::HardwareCounters;
#[cfg(not(target_os = "linux"))]
pub use missing::HardwareCounters;

/// The counters of a phase, or why they are missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Hardware {
    /// Not requested.
    #[default]
    NotMeasured,
    /// The system does not provide them.
    NotAvailable {
        /// The system's reason.
        reason: String,
    },
    /// The counts.
    Counted(HardwareCounts),
}

/// Hardware events of all threads; `None` for events that the processor does not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HardwareCounts {
    /// CPU cycles.
    pub cycles: Option<u64>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Accesses to the last-level cache, as the processor defines them.
    pub cache_references: Option<u64>,
    /// Last-level cache misses.
    pub cache_misses: Option<u64>,
    /// Branches retired.
    pub branches: Option<u64>,
    /// Mispredicted branches.
    pub branch_misses: Option<u64>,
}

impl HardwareCounts {
    /// Instructions per cycle.
    pub fn instructions_per_cycle(&self) -> Option<f64> {
        share(self.instructions, self.cycles)
    }

    #[cfg(target_os = "linux")]
    fn fields(values: [Option<u64>; EVENTS]) -> Self {
        let [cycles, instructions, cache_references, cache_misses, branches, branch_misses] = values;
        Self { cycles, instructions, cache_references, cache_misses, branches, branch_misses }
    }
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<f64> {
    let (part, whole) = (part?, whole.filter(|whole| *whole > 0)?);
    Some(part as f64 / whole as f64)
}

impl std::fmt::Display for Hardware {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = match self {
            Self::NotMeasured => return f.write_str("not measured"),
            Self::NotAvailable { reason } => return write!(f, "not available here ({reason})"),
            Self::Counted(counts) => counts,
        };
        let number = |value: Option<f64>, unit: &str, scale: f64| {
            value.map_or_else(
                || "not available here".to_owned(),
                |value| format!("{:.2}{unit}", value * scale),
            )
        };
        write!(
            f,
            "{} instructions per cycle, {} of cache references missed, {} of branches missed",
            number(counts.instructions_per_cycle(), "", 1.0),
            number(share(counts.cache_misses, counts.cache_references), " %", 100.0),
            number(share(counts.branch_misses, counts.branches), " %", 100.0),
        )
    }
}

/// The number of events counted.
const EVENTS: usize = 6;

/// The counters at one moment; `None` for events that are not counted.
pub type HardwareSnapshot = [Option<u64>; EVENTS];

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::FromRawFd;

    use super::{EVENTS, Hardware, HardwareCounts, HardwareSnapshot};
    use crate::trace::system::proc_text::numbered;

    /// The most existing threads to follow; each takes six file descriptors.
    const MAX_THREADS: usize = 64;

    /// `PERF_TYPE_HARDWARE` and its events, in the order of the fields of [`HardwareCounts`]
    /// (`linux/perf_event.h`).
    const HARDWARE: u32 = 0;
    const CONFIGS: [u64; EVENTS] = [0, 1, 2, 3, 4, 5];

    /// `struct perf_event_attr` in its first version (`PERF_ATTR_SIZE_VER0`, 64 bytes), which every kernel
    /// accepts.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup: u32,
        breakpoint: u32,
        config1: u64,
    }

    const READ_TIMES: u64 = 0b11;
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

    /// Open counters of this process. Dropping them closes them.
    #[derive(Debug)]
    pub struct HardwareCounters {
        /// For each event, one descriptor per thread; empty if the event is not counted.
        events: Vec<Vec<File>>,
        /// Why nothing is counted.
        refused: Option<String>,
    }

    impl HardwareCounters {
        /// Opens the counters for all threads of this process and those they will start. Kernel time is
        /// excluded: most systems forbid users to count it.
        pub fn open() -> Self {
            Self::open_events(HARDWARE, &CONFIGS)
        }

        pub(crate) fn open_events(kind: u32, configs: &[u64]) -> Self {
            let threads = threads_of_this_process();
            let mut refused = None;
            let events: Vec<Vec<File>> = configs
                .iter()
                .map(|config| {
                    let opened = threads.iter().filter_map(|thread| {
                        open_counter(kind, *config, *thread)
                            .inspect_err(|error| {
                                refused.get_or_insert_with(|| reason(error));
                            })
                            .ok()
                    });
                    opened.collect()
                })
                .collect();
            if events.iter().any(|event| !event.is_empty()) {
                refused = None;
            }
            Self { events, refused }
        }

        /// The current counters.
        pub fn snapshot(&self) -> HardwareSnapshot {
            std::array::from_fn(|event| {
                let files = self.events.get(event).filter(|files| !files.is_empty())?;
                let counts: Vec<u64> = files.iter().filter_map(read_counter).collect();
                (!counts.is_empty()).then(|| counts.iter().sum())
            })
        }

        /// The counts since a snapshot.
        pub fn since(&self, before: &HardwareSnapshot) -> Hardware {
            if let Some(reason) = &self.refused {
                return Hardware::NotAvailable { reason: reason.clone() };
            }
            let now = self.snapshot();
            Hardware::Counted(HardwareCounts::fields(std::array::from_fn(|event| {
                Some(now[event]?.saturating_sub(before[event]?))
            })))
        }
    }

    fn reason(error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
                "this processor or virtual machine provides no hardware counters".into()
            }
            Some(libc::EACCES | libc::EPERM) => {
                "forbidden: set kernel.perf_event_paranoid to 2 or less, or grant CAP_PERFMON".into()
            }
            Some(libc::ENOSYS) => "this kernel is built without perf events".into(),
            Some(libc::EMFILE) => "too many open files".into(),
            _ => error.to_string(),
        }
    }

    fn threads_of_this_process() -> Vec<libc::pid_t> {
        let threads = numbered("/proc/self/task").into_iter().take(MAX_THREADS);
        let threads: Vec<libc::pid_t> = threads.map(|thread| thread as libc::pid_t).collect();
        // Without /proc, use the calling thread, which is thread 0 to the system call.
        if threads.is_empty() { vec![0] } else { threads }
    }

    fn open_counter(kind: u32, config: u64, thread: libc::pid_t) -> io::Result<File> {
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: READ_TIMES,
            flags: INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads `size` bytes of attributes from a valid pointer and keeps no reference;
        // the other arguments are plain numbers.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &attributes as *const Attributes,
                thread,
                -1 as libc::c_int,
                -1 as libc::c_int,
                CLOSE_ON_EXEC,
            )
        };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
        Ok(unsafe { File::from_raw_fd(answer as libc::c_int) })
    }

    /// A count, scaled up if the processor had to share its counters among events (`perf_event_open(2)`,
    /// time_enabled and time_running).
    fn read_counter(mut counter: &File) -> Option<u64> {
        let mut bytes = [0u8; 24];
        counter.read_exact(&mut bytes).ok()?;
        let word = |at: usize| {
            let mut word = [0u8; 8];
            word.copy_from_slice(bytes.get(at * 8..at * 8 + 8)?);
            Some(u64::from_ne_bytes(word))
        };
        let (count, enabled, running) = (word(0)?, word(1)?, word(2)?);
        if running == 0 {
            // Never scheduled: the count is right if it was never enabled, otherwise unknown.
            return (enabled == 0).then_some(count);
        }
        Some((u128::from(count) * u128::from(enabled) / u128::from(running)) as u64)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_TASK_CLOCK`: available on every Linux with perf, so that
        /// opening, inheriting and reading is tested even without hardware counters.
        #[test]
        fn counters_follow_threads_that_are_started_later() {
            let counters = HardwareCounters::open_events(1, &[1]);
            if let Some(reason) = &counters.refused {
                eprintln!("skipped: no perf events here ({reason})");
                return;
            }
            let before = counters.snapshot();
            let busy = std::time::Duration::from_millis(40);
            let worker = std::thread::spawn(move || {
                let before = crate::trace::system::process::cpu_time();
                while crate::trace::system::process::cpu_time() < before + busy {
                    std::hint::spin_loop();
                }
            });
            worker.join().unwrap();
            let Hardware::Counted(counts) = counters.since(&before) else { panic!("refused") };
            let nanoseconds = counts.cycles.unwrap();
            assert!(nanoseconds > 1_000_000, "{nanoseconds}");
            assert_eq!(counts.instructions, None, "not opened, so not counted rather than zero");
        }

        #[test]
        fn hardware_is_counted_or_the_reason_is_reported() {
            let counters = HardwareCounters::open();
            let before = counters.snapshot();
            match counters.since(&before) {
                Hardware::Counted(counts) => assert!(counts != HardwareCounts::default()),
                Hardware::NotAvailable { reason } => assert!(!reason.is_empty()),
                Hardware::NotMeasured => panic!("it was requested"),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod missing {
    use super::{Hardware, HardwareSnapshot};

    /// Hardware counters, which are available on Linux only.
    #[derive(Debug)]
    pub struct HardwareCounters;

    impl HardwareCounters {
        /// Returns counters that report that they are not available.
        pub fn open() -> Self {
            Self
        }

        /// No counts.
        pub fn snapshot(&self) -> HardwareSnapshot {
            Default::default()
        }

        /// Reports that they are not available.
        pub fn since(&self, _before: &HardwareSnapshot) -> Hardware {
            Hardware::NotAvailable { reason: "hardware counters are available on Linux only".into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_counters_are_shown_as_not_available() {
        let refused = Hardware::NotAvailable { reason: "virtual machine".into() };
        assert_eq!(refused.to_string(), "not available here (virtual machine)");
        let counts = HardwareCounts { cycles: Some(200), instructions: Some(300), ..Default::default() };
        assert_eq!(counts.instructions_per_cycle(), Some(1.5));
        let text = Hardware::Counted(counts).to_string();
        assert_eq!(
            text,
            "1.50 instructions per cycle, not available here of cache references missed, \
             not available here of branches missed"
        );
    }
}
