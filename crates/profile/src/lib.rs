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
//! | room | content | feature |
//! |---|---|---|
//! | `trace` | phases, spans, waits and counters of a run, and the bottleneck they reveal; threads of one job | |
//! | `watch` | samples during a run: memory, CPU time and stacks of this process and others | `measure` |
//! | `measure` | runs and compares whole processes, statistics with intervals, result files | `measure` |
//! | `reports` | tables for the terminal, HTML pages, flame graphs | `measure` |
//! | `control`, `error` | cancelling and notices of a job, its error | |
//! | `text` | formats and parses sizes, counts, durations and dates; the names like a wrong one | |
//!
//! Libraries need only `trace`, `control`, `error` and `text`, which know nothing of the other rooms.

mod control;
mod error;
#[cfg(feature = "measure")]
mod measure;
#[cfg(feature = "measure")]
mod reports;
mod text;
mod trace;
#[cfg(feature = "measure")]
mod watch;

pub use control::{Control, LOOK};
pub use error::{Error, Kind, Result};
pub use sawmill_store::{open_regular, read_small, read_text};
pub use text::byte_sizes::{format_byte_rate, format_bytes, format_decimal_bytes, parse_bytes};
pub use text::calendar::{civil, days_from_civil, utc_text};
pub use text::counts::{format_count, format_counted, format_grouped, format_rate, parse_count};
pub use text::durations::{format_duration, parse_duration};
pub use text::known_columns::known_columns;
pub use trace::bottleneck::{Bottleneck, Limit, bottleneck};
pub use trace::ledger::{AttachedThread, SpanSink};
pub use trace::live::LiveThread;
pub use trace::phase::{Phase, PhaseReport, Profile};
pub use trace::pool::Pool;
pub use trace::span::{Span, span, wait};
pub use trace::span_report::{SpanReport, ThreadReport};
pub use trace::system::hardware::{Hardware, HardwareCounts};
pub use trace::system::process::{cpu_time, peak_memory};
pub use trace::system::target::Target;
pub use trace::threads::{
    ScopedThread, Spawned, ThreadFailure, beside, caught, joined, on_threads, spawn, spawn_scoped,
};
pub use trace::turns::{self, scope};
pub use trace::unit_key::UnitKey;
pub use trace::wait::WaitKind;
pub use trace::wire::WireCounters;

#[cfg(feature = "measure")]
pub use measuring::*;

/// What the feature `measure` adds.
#[cfg(feature = "measure")]
mod measuring {
    pub use crate::measure::command::captured_output::CapturedOutput;
    pub use crate::measure::command::command_run::{CommandLine, CommandRun, Ending, Output};
    pub use crate::measure::command::command_words::split_command;
    pub use crate::measure::commit::Commit;
    pub use crate::measure::compare::comparison::{Comparison, Method, Verdict};
    pub use crate::measure::compare::order::{Interval, median_interval};
    pub use crate::measure::compare::statistics::Statistics;
    pub use crate::measure::machine::{Filesystem, Machine};
    pub use crate::measure::results::{Case, ResultFile, SideComparison, SideResult};
    pub use crate::measure::run::{Run, RunNumber, RunPlan, Side, run_interleaved};
    pub use crate::reports::bench::{html_report, write_html_report};
    pub use crate::reports::chart::axis::Scale;
    pub use crate::reports::chart::frame::Room;
    pub use crate::reports::chart::heat::{Heat, HeatColumn};
    pub use crate::reports::chart::lines::{Across, Event, Line, Lines, Point, Upward};
    pub use crate::reports::chart::svg::escape as escape_html;
    pub use crate::reports::page::{Fold, Page, Section, text_table};
    pub use crate::reports::results_table::results_table;
    pub use crate::reports::sweep_table::sweep_tables;
    pub use crate::reports::table::{Align, Table};
    pub use crate::reports::whole_file::write_whole;
    pub use crate::watch::cpu_sampler::{CpuSampler, SampledStacks};
    pub use crate::watch::folded_stacks::FoldedStacks;
    pub use crate::watch::sampler::{Sampler, SamplerOptions};
    pub use crate::watch::timeline::{Maxima, Points, Sample, Timeline, Usage};
}
