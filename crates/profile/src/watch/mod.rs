//! Samples during a run: memory, CPU time and stacks of this process and others.

mod background;
pub(crate) mod cpu_sampler;
pub(crate) mod folded_stacks;
#[cfg(any(test, all(target_os = "linux", feature = "flamegraph")))]
pub(crate) mod frame_name;
#[cfg(target_os = "linux")]
pub(crate) mod listener;
pub(crate) mod observed;
#[cfg(target_os = "linux")]
pub(crate) mod proc_files;
#[cfg(target_os = "linux")]
pub(crate) mod process_tree;
pub(crate) mod sampler;
pub(crate) mod timeline;
