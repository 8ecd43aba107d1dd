//! The profiling suite shared by the generator, the footer decoder and the loader.
//!
//! A [`Profile`] is one measured run. It hands out [`Phase`]s; the measured code counts rows and bytes on its
//! phase, a progress bar reads the same counters during the run, and [`Phase::finish`] turns them, together
//! with clocks and memory, into a [`PhaseReport`].
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
//! Threads attached to a phase ([`Phase::attach`]) record nested [`span`]s of work and [`wait`]s by kind;
//! from these, [`bottleneck`] determines what limited the speed.
//!
//! | room | what it does |
//! |---|---|
//! | `trace` | phases, spans, waits and counters of a run, and the bottleneck they reveal |
//! | `watch` | samples during a run: memory, CPU time and stacks of this process and others |
//! | `measure` | runs and compares whole processes, statistics with intervals, result files |
//! | `reports` | tables for the terminal, HTML pages, flame graphs |
//! | `text` | formats and parses sizes, counts, durations and dates |

mod error;
mod measure;
mod reports;
mod text;
mod trace;
mod watch;

pub use error::{Error, Result};
pub use measure::bootstrap::Interval;
pub use measure::captured_output::CapturedOutput;
pub use measure::command_run::{CommandLine, CommandRun, Ending, Output};
pub use measure::command_words::split_command;
pub use measure::commit::Commit;
pub use measure::comparison::{Comparison, Method, Verdict};
pub use measure::hardware::{Hardware, HardwareCounters, HardwareCounts, HardwareSnapshot};
pub use measure::machine::{Filesystem, Machine};
pub use measure::results::{Case, RESULT_FORMAT, RESULT_VERSION, ResultFile, SideComparison, SideResult};
pub use measure::run::{Run, RunNumber, RunPlan, Side, run_interleaved};
pub use measure::statistics::Statistics;
pub use reports::html::{html_report, write_html_report};
pub use reports::phase_table::{phases_table, results_table, spans_table};
pub use reports::sweep_table::sweep_tables;
pub use reports::table::{Align, Table};
pub use text::byte_sizes::{format_byte_rate, format_bytes, format_decimal_bytes, parse_bytes};
pub use text::counts::{format_count, format_grouped, format_rate, parse_count};
pub use text::durations::{format_duration, parse_duration};
pub use trace::bottleneck::{Bottleneck, Limit, StageTime, bottleneck, stages};
pub use trace::ledger::{AttachedThread, SpanSink, flush_thread};
pub use trace::live::LiveThread;
pub use trace::phase::{Phase, PhaseReport, Profile};
pub use trace::process::{cpu_time, name_thread, peak_memory, reset_peak_memory};
pub use trace::span::{Span, span, wait};
pub use trace::span_report::{SpanReport, ThreadReport};
pub use trace::wait::WaitKind;
pub use trace::wire::{CountedStream, WireCounters};
pub use watch::cpu_sampler::{CpuSampler, SampledStacks};
pub use watch::folded_stacks::FoldedStacks;
pub use watch::sampler::{Sampler, SamplerOptions, Target};
pub use watch::timeline::{Maxima, Points, Sample, Timeline, Usage};
