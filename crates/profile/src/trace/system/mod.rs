//! What the operating system reports about this process: clocks, memory, hardware counters.

pub(crate) mod hardware;
pub(crate) mod peak_memory;
#[cfg(target_os = "linux")]
pub(crate) mod proc_text;
pub(crate) mod process;
pub(crate) mod target;
pub(crate) mod thread_clock;
