//! The profiling suite that generator, footer decoder and loader share.
//!
//! A [`Profile`] is one measured run. It hands out [`Phase`]s; the code under measurement counts
//! rows and bytes on the phase it was given, a progress bar reads the same counters while it runs,
//! and [`Phase::finish`] turns them, together with clocks and memory, into a [`PhaseReport`].
//!
//! ```
//! let profile = sawmill_profile::Profile::new();
//! let phase = profile.phase("generate");
//! phase.add_rows(1000);
//! phase.add_bytes(64_000);
//! let report = phase.finish();
//! assert_eq!((report.rows, report.bytes), (1000, 64_000));
//! ```
//!
//! Inside a phase, threads that are attached to it ([`Phase::attach`]) record nested [`span`]s of
//! work and [`wait`]s of a kind; [`bottleneck`] reads off them what set the speed.

mod bootstrap;
mod bottleneck;
mod byte_sizes;
mod calendar;
mod captured_output;
mod command_run;
mod command_words;
mod commit;
mod comparison;
mod counts;
mod cpu_sampler;
mod durations;
mod error;
mod flamegraph;
mod folded_stacks;
#[cfg(any(test, all(unix, feature = "flamegraph")))]
mod frame_name;
mod hardware;
mod ledger;
#[cfg(target_os = "linux")]
mod listener;
mod live;
mod machine;
#[cfg(unix)]
mod measured_child;
mod number_text;
mod observed;
#[cfg(unix)]
mod output_reader;
mod peak_memory;
mod phase;
mod phase_table;
#[cfg(target_os = "linux")]
mod proc_files;
mod process;
#[cfg(target_os = "linux")]
mod process_tree;
mod report;
mod results;
mod run;
mod sampler;
#[cfg(all(unix, not(target_os = "linux"), feature = "flamegraph"))]
mod sampler_files;
mod seconds;
mod span;
mod span_report;
mod statistics;
mod svg;
mod sweep_table;
mod table;
mod thread_clock;
mod timeline;
mod wait;
mod whole_file;
mod wire;

pub use bootstrap::Interval;
pub use bottleneck::{Bottleneck, Limit, StageTime, bottleneck, stages};
pub use byte_sizes::{format_byte_rate, format_bytes, format_decimal_bytes, parse_bytes};
pub use captured_output::CapturedOutput;
pub use command_run::{CommandLine, CommandRun, Ending, Output};
pub use command_words::split_command;
pub use commit::Commit;
pub use comparison::{Comparison, Method, Verdict};
pub use counts::{format_count, format_grouped, format_rate, parse_count};
pub use cpu_sampler::{CpuSampler, SampledStacks};
pub use durations::{format_duration, parse_duration};
pub use error::{Error, Result};
pub use folded_stacks::FoldedStacks;
pub use hardware::{Hardware, HardwareCounters, HardwareCounts, HardwareSnapshot};
pub use ledger::{AttachedThread, SpanSink, flush_thread};
pub use live::LiveThread;
pub use machine::{Filesystem, Machine};
pub use phase::{Phase, PhaseReport, Profile};
pub use phase_table::{phases_table, results_table, spans_table};
pub use process::{cpu_time, name_thread, peak_memory, reset_peak_memory};
pub use report::{html_report, write_html_report};
pub use results::{Case, RESULT_FORMAT, RESULT_VERSION, ResultFile, SideComparison, SideResult};
pub use run::{Run, RunNumber, RunPlan, Side, run_interleaved};
pub use sampler::{Sampler, SamplerOptions, Target};
pub use span::{Span, span, wait};
pub use span_report::{SpanReport, ThreadReport};
pub use statistics::Statistics;
pub use sweep_table::sweep_tables;
pub use table::{Align, Table};
pub use timeline::{Maxima, Points, Sample, Timeline, Usage};
pub use wait::WaitKind;
pub use wire::{CountedStream, WireCounters};
