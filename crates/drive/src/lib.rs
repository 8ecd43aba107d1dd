//! Load tests that do not flatter databases: operations have intended start times, latency counts from these, and
//! the run looks for every acknowledged row afterwards.
//!
//! ```text
//! plan ─▶ schedule: intended starts ─▶ connections: make, wait, carry out ─▶ samples ─▶ recorder ─▶ result
//!            (arrivals over a rate)      rows by their numbers │                              └─▶ observer
//!                                                              └─ known state of each row ─▶ proof
//! ```
//!
//! ```
//! use sawmill_drive::Durations;
//! let (mut a, mut b) = (Durations::default(), Durations::default());
//! a.record_micros(800, 99);
//! b.record_micros(20_000, 1);
//! a.add(&b);
//! assert_eq!((a.count(), a.quantile(0.5)), (100, 800));
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | the plan of a run: read from TOML, or made for a dataset |
//! | `arrivals` | intended starts: arrival processes over a rate that changes with time |
//! | `mix` | operations by weight; rows as functions of their numbers; the choice of earlier rows |
//! | `work` | operations carried out on PostgreSQL, CrateDB or nothing, each with an outcome |
//! | `proof` | the state of every row, and whether the server holds it |
//! | `run` | the engine: connections, recorder, chaos, the search for the highest rate |
//! | `result` | the result file, the seconds of a run, histograms that merge exactly |
//! | `observer` | how a run is watched |
//! | `watch` | a live screen, lines of JSON, metrics for Prometheus, logs of HdrHistogram |
//! | `report` | the text of one run; the HTML page of one, or of several side by side |
//! | `merge` | the results of several driving processes as one |

mod arrivals;
mod merge;
mod mix;
mod observer;
mod plan;
mod proof;
mod report;
mod result;
mod run;
mod watch;
mod work;

pub use arrivals::process::Arrivals;
pub use arrivals::shape::Shape;
pub use merge::merge;
pub use mix::pick::Pick;
pub use observer::{IntervalHistograms, Observer, Snapshot};
pub use plan::abort::Abort;
pub use plan::limit::Limit;
pub use plan::pooling::{Pooling, Reconnect};
pub use plan::reader::MAX_CONNECTIONS;
pub use plan::types::{
    Chaos, ChaosAction, ChosenRow, Operation, Pace, Parameter, Plan, PlanCheck, PlanTable, Variable, Work,
    Writes,
};
pub use report::{NamedResult, html_report, operations_table, text_report};
pub use result::file::{
    DriveResult, DriverReport, FORMAT, FindMax, LimitResult, OperationResult, RunDescription, Trial, VERSION,
};
pub use result::histogram::Durations;
pub use result::latency::{Distribution, Percentiles};
pub use result::proof::Proof;
pub use result::second::{ChaosEvent, OperationSecond, Second, ServerSample};
pub use run::engine::{Driving, run};
pub use run::find_max::find_max;
pub use watch::hdr_log::HdrLog;
pub use watch::json_lines::JsonLines;
pub use watch::prometheus::Prometheus;
pub use watch::screen::LiveScreen;
pub use watch::watchers::{Troubles, Watchers};
pub use work::target::Address;
