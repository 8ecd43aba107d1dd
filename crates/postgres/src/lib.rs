//! PostgreSQL as a target: binary COPY over several connections, exactly once.
//!
//! ```text
//! units ─ encode ─▶ blocks ─ COPY ─▶ table or part tables ─┬─ COMMIT ─ … ─ verify ─▶ table in its place
//!                                    record of the unit ───┘
//! ```
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use sawmill_loader::{LoadOptions, load};
//! use sawmill_postgres::Postgres;
//! use sawmill_source::{Control, ParquetFiles};
//!
//! let cancel = AtomicBool::new(false);
//! let profile = sawmill_profile::Profile::new();
//! let phase = profile.phase("load");
//! let source = ParquetFiles::open(&["taxi.parquet"])?;
//! let target = Postgres::new("postgres://localhost/postgres".parse()?, "public.taxi".parse()?);
//! let options = LoadOptions { verify: true, ..LoadOptions::default() };
//! let report = load(&source, &target, &options, &Control::new(&cancel, &phase))?;
//! println!("{} rows, content sum {}", report.rows, report.content.content_sum);
//! # Ok::<(), sawmill_source::Error>(())
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `target` | a table as a target: how it is created and filled |
//! | `session` | a load: how it begins, how its table takes its place; the rows of one statement |
//! | `table` | the catalogue, how columns of source and table fit together, how tables are created and replaced |
//! | `types` | the types of new columns; composite types and enumerations |
//! | `encode` | batches into blocks of rows: with their sums, and without refused rows |
//! | `write` | COPY and the units' records in one transaction, directly or through part tables |
//! | `records` | the records of loads on the server, and whether the tables still hold their rows |
//! | `partition` | which partitions each row group has rows of; reading the source partition by partition |
//! | `nested` | a nested source as several flat tables, loaded together |
//! | `rejected` | rejected rows and records |
//! | `verify` | reading the table back, summing it, and comparing it with the source |

mod encode;
mod nested;
mod partition;
mod records;
mod rejected;
mod session;
mod table;
mod target;
mod types;
mod verify;
mod write;

pub use nested::child_tables::{OfTable, PostgresTables};
pub use partition::by::PartitionBy;
pub use partition::survey::{Partitions, Survey};
pub use records::commands::{forget, prune, status};
pub use session::insertion::Insertion;
pub use session::rehearsal::Rehearsal;
pub use table::new_table::TableKind;
pub use target::{Postgres, Strategy};
pub use types::made_types::Nested;
pub use verify::compare::verify;
pub use verify::sums::content;
pub use write::upsert::OnConflict;
