//! The engine of loads: it moves rows from a source into a target exactly once, and proves it.
//!
//! ```text
//! Source ─ plan ─▶ Schedule of units ─▶ decode ─▶ encode ═bounded channel═▶ send ─▶ commit + checkpoint
//!                                       └── one thread ──┘                  └── one connection ──┘
//! ```
//!
//! A [`Source`](sawmill_source::Source) plans units of rows. [`load`] decodes, encodes and sends them on a
//! pair of threads per connection. A [`Target`] commits each unit together with its record, so that after any
//! failure the same call loads exactly the missing units. The engine computes an order-independent sum over
//! the rows' bytes ([`ContentSum`]) on the way, and again from the target, to prove that both hold the same
//! rows. The targets are separate crates: `sawmill-postgres` and `sawmill-cratedb`.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use sawmill_loader::{LoadOptions, Target, load};
//! use sawmill_source::{Control, Error, ParquetFiles};
//!
//! fn load_taxi(target: &dyn Target) -> Result<u64, Error> {
//!     let cancel = AtomicBool::new(false);
//!     let profile = sawmill_profile::Profile::new();
//!     let phase = profile.phase("load");
//!     let source = ParquetFiles::open(&["taxi.parquet"])?;
//!     let options = LoadOptions { verify: true, ..LoadOptions::default() };
//!     let report = load(&source, target, &options, &Control::new(&cancel, &phase))?;
//!     println!("{} rows, content sum {}", report.rows, report.content.content_sum);
//!     Ok(report.rows)
//! }
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `engine` | plans units, hands them to workers, counts, verifies |
//! | `history` | finds the loads that contain a source's files, and decides what an append does with these |
//! | `identity` | recognises files by their content |
//! | `table` | the table's name, the mode of the load, and the records of loads |

/// Methods that set a field of the same name.
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $of:ty,)+) => {
        $($(#[$doc])*
        pub fn $field(self, $field: $of) -> Self {
            Self { $field, ..self }
        })+
    };
}

mod engine;
mod history;
mod identity;
mod table;

pub use engine::load::{
    Arrange, CHANNEL, LoadArranged, LoadOptions, backoff, load, load_in_order, refuse_cut_otherwise,
    retry_lost, retry_reached,
};
pub use engine::note::Note;
pub use engine::part::{Part, PartReport, Share};
pub use engine::report::LoadReport;
pub use engine::schedule::Schedule;
pub use engine::server_waits::ServerWaits;
pub use engine::target::{
    Arrived, BatchEncoder, Block, LoadState, Mark, Marks, Parcel, Parcels, Refusal, Session, Target,
    UnitWriter,
};
pub use engine::verification::{ContentSum, Located, LocatedUnit, Sums, Tally, Verification};
pub use engine::worker::received;
pub use history::append::{Encoding, History, remember};
pub use history::lookup::{Found, refuse_begun, refuse_changed, refuse_to_replace, taken};
pub use history::opening::{OnRecord, Standing, open};
pub use history::portion::Portion;
pub use history::presence::Presence;
pub use history::record::{AlreadyLoaded, LoadRecord, Loads, RecordedUnit, Remembered};
pub use history::taken_up::held_units;
pub use identity::load_id::{id_of_names, load_id};
pub use identity::recheck::{Encoders, Reading, Reread};
pub use identity::{REPLACED, RecordedFiles};
pub use table::mode::Mode;
pub use table::name::{MAX_LENGTH, PART, TableName, check_name, fitted, literal, quote};
pub use table::prune::{Kept, KeptLoad, Pruned};
pub use table::records::{FileStatus, Forgotten, LoadFacts, LoadStatus};
pub use table::rejects::RejectOptions;
pub use table::schema_change::{
    AddedColumn, ColumnChanges, NewColumns, NullColumn, SchemaChange, Widen, WidenedColumn, and_more_files,
    first_file_with, refused_changes, renamed, with_ways_out,
};
