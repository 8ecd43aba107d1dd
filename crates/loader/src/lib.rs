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

mod all_cores;
mod buffers;
mod certificates;
mod column_choice;
mod common_columns;
mod condition;
mod content_sum;
mod control;
mod cratedb;
mod error;
mod filtered;
mod flat_columns;
mod flat_tables;
mod generated_rows;
mod guarded;
mod hive;
mod identity;
mod inline_view;
mod known_columns;
mod limited;
mod load;
mod page_checksums;
mod parquet_files;
mod parquet_interval;
mod parquet_reader;
mod parquet_schema;
mod postgres;
mod progress;
mod schedule;
mod server_waits;
mod source;
mod target;
mod verify;
mod worker;

pub use condition::pruning::{Bounds, Known, Nulls};
pub use condition::{Condition, Literal};
pub use content_sum::{ContentSum, Tally};
pub use control::Control;
pub use cratedb::{
    Binary, CrateDb, CrateExplanation, CrateOptions, CrateServer, Dates, ExplainedColumn, LongText, Objects,
    Times, Timestamps, Transport, crate_status, unnest_blocks,
};
pub use error::{Error, Kind, Result};
pub use filtered::{Filtered, Pruned};
pub use generated_rows::GeneratedRows;
pub use guarded::silence_guarded_panics;
pub use hive::{FolderColumn, FolderKind, Hive};
pub use identity::remembered::{AlreadyLoaded, Remembered};
pub use limited::Limited;
pub use load::{LoadOptions, LoadReport, load};
pub use parquet_files::ParquetFiles;
pub use postgres::{
    Enums, FileStatus, Forgotten, LoadStatus, Mode, Nanoseconds, Nested, Nul, OfTable, PartitionBy,
    Partitions, Postgres, PostgresTables, Rehearsal, RejectOptions, Server, Strategy, Survey, TableKind,
    TableName, ValueOptions, content, forget, status, verify,
};
pub use server_waits::ServerWaits;
pub use source::{Source, SourceFile, Unit, UnitKey, UnitReader};
pub use target::{
    Arrived, BatchEncoder, Block, Parcel, Parcels, Refusal, Session, Standing, Target, UnitWriter,
};
pub use verify::{Located, LocatedUnit, Verification};
