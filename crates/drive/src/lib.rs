//! Load tests of databases that do not flatter them: operations have intended start times, latency counts from
//! these, and every acknowledged row is looked for afterwards.
//!
//! ```
//! use sawmill_drive::Durations;
//! let (mut a, mut b) = (Durations::default(), Durations::default());
//! a.record_micros(800, 99);
//! b.record_micros(20_000, 1);
//! a.add(&b);
//! assert_eq!((a.count(), a.quantile(0.5)), (100, 800));
//! ```

mod observer;
mod result;

pub use observer::{IntervalHistograms, Observer, Snapshot};
pub use result::file::{
    DriveResult, DriverReport, FORMAT, FindMax, LimitResult, OperationResult, RunDescription, Trial, VERSION,
};
pub use result::histogram::Durations;
pub use result::latency::{Distribution, Percentiles};
pub use result::proof::Proof;
pub use result::second::{ChaosEvent, OperationSecond, Second, ServerSample};
