//! Loads Parquet into database servers: exactly once, and provably.
//!
//! ```text
//! Source ─ plan ─▶ Schedule of units ─▶ decode ─▶ encode ═bounded channel═▶ COPY ─▶ commit + checkpoint
//!                                       └── one thread ──┘                  └── one connection ──┘
//! ```
//!
//! A [`Source`] ([`ParquetFiles`], [`GeneratedRows`]) plans units of rows; [`load`] has them decoded, encoded and sent by
//! as many pairs of threads as there are connections; a [`Target`] (such as [`Postgres`]) commits each
//! unit together with a record of it, so that the same call after any failure finishes exactly what is missing.
//! An order-independent sum over the rows' bytes ([`ContentSum`]) is taken on the way and again from the target
//! to prove that both hold the same.
//!
//! | room | what it does |
//! |---|---|
//! | `source` | units of rows, conditions, columns of several files and of folders, generated rows |
//! | `parquet_files` | Parquet files as a source: opened, planned, decoded, flattened into several tables |
//! | `engine` | a load from plan to report: workers, schedule, identity of files, content sums, verification |
//! | `postgres` | PostgreSQL as a target |
//! | `cratedb` | CrateDB as a target |
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use sawmill_loader::{Control, LoadOptions, ParquetFiles, Postgres, load};
//!
//! let cancel = AtomicBool::new(false);
//! let profile = sawmill_profile::Profile::new();
//! let phase = profile.phase("load");
//! let source = ParquetFiles::open(&["taxi.parquet"])?;
//! let target = Postgres::new("postgres://localhost/postgres".parse()?, "public.taxi".parse()?);
//! let options = LoadOptions { verify: true, ..LoadOptions::default() };
//! let report = load(&source, &target, &options, &Control::new(&cancel, &phase))?;
//! println!("{} rows, content sum {}", report.rows, report.content.content_sum);
//! # Ok::<(), sawmill_loader::Error>(())
//! ```

mod cratedb;
mod engine;
pub(crate) mod identity;
pub(crate) mod pgcopy;
pub(crate) mod pgwire;
mod postgres;
mod source;
pub(crate) mod table;

pub use crate::identity::remembered::{AlreadyLoaded, Remembered};
pub use crate::source::control::Control;
pub use crate::source::error::{Error, Kind, Result};
pub use crate::source::parquet_files::files::ParquetFiles;
pub use crate::source::parquet_files::filtered::{Filtered, Pruned};
pub use crate::source::parquet_files::guarded::silence_guarded_panics;
pub use cratedb::{
    Binary, CrateDb, CrateExplanation, CrateOptions, CrateServer, Dates, ExplainedColumn, LongText, Objects,
    Times, Timestamps, Transport, crate_status, unnest_blocks,
};
pub use engine::content_sum::{ContentSum, Tally};
pub use engine::load::{LoadOptions, LoadReport, load};
pub use engine::server_waits::ServerWaits;
pub use engine::target::{
    Arrived, BatchEncoder, Block, Parcel, Parcels, Refusal, Session, Standing, Target, UnitWriter,
};
pub use engine::verification::{Located, LocatedUnit, Verification};
pub use postgres::{
    Enums, Nanoseconds, Nested, Nul, OfTable, PartitionBy, Partitions, Postgres, PostgresTables, Rehearsal,
    Server, Strategy, Survey, TableKind, ValueOptions, content, forget, status, verify,
};
pub use source::condition::pruning::{Bounds, Known, Nulls};
pub use source::condition::{Condition, Literal};
pub use source::generated_rows::GeneratedRows;
pub use source::hive::{FolderColumn, FolderKind, Hive};
pub use source::limited::Limited;
pub use source::units::{Source, SourceFile, Unit, UnitKey, UnitReader};
pub use table::mode::Mode;
pub use table::name::TableName;
pub use table::records::{FileStatus, Forgotten, LoadStatus};
pub use table::rejects::RejectOptions;
