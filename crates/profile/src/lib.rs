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

mod phase;
mod process;

pub use phase::{Phase, PhaseReport, Profile};
pub use process::{cpu_time, peak_memory, reset_peak_memory};
