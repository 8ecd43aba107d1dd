//! CrateDB as a target: every row accounted for, and exactly once, with a key or without.
//!
//! ```text
//! units ─ encode ─▶ JSON rows ─ bulk requests over HTTP ──────┬─▶ table ─▶ account of every row ─▶ record of the unit
//!               └─▶ arrays ── UNNEST, the PostgreSQL wire ────┘
//! ```
//!
//! CrateDB has no transactions. Rows of a new table carry the tag of their request until all are counted; in
//! other tables a primary key makes it harmless to repeat a batch.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! use sawmill_loader::{LoadOptions, load};
//! use sawmill_cratedb::CrateDb;
//! use sawmill_source::{Control, ParquetFiles};
//!
//! let cancel = AtomicBool::new(false);
//! let profile = sawmill_profile::Profile::new();
//! let phase = profile.phase("load");
//! let source = ParquetFiles::open(&["taxi.parquet"])?;
//! let target = CrateDb::new("crate://localhost:4200/doc".parse()?, "taxi".parse()?);
//! let options = LoadOptions { verify: true, ..LoadOptions::default() };
//! let report = load(&source, &target, &options, &Control::new(&cancel, &phase))?;
//! println!("{} rows, content sum {}", report.rows, report.content.content_sum);
//! # Ok::<(), sawmill_source::Error>(())
//! ```
//!
//! [`CrateDb::insert`] inserts the rows of one statement, which no later run could resume.
//!
//! | module | what it does |
//! |---|---|
//! | `target` | a table as a target: how it is made and filled |
//! | `options` | what becomes of values, and how they are sent |
//! | `explain` | what a load would do, without doing it |
//! | `session` | one load, from the decision what to do to the finished table |
//! | `connect` | HTTP, the PostgreSQL wire, TLS, and waiting for a cluster that restarts |
//! | `table` | names, the catalogue, types, and whether a source's values fit the columns |
//! | `encode` | Arrow batches as JSON rows and, for the PostgreSQL wire, as binary arrays |
//! | `write` | blocks sent, and an account of every row |
//! | `records` | the records of loads in the cluster, and which run may continue one |
//! | `tags` | exactly once without a key: requests that carry tags, ended, counted, audited |
//! | `verify` | the table read back in pages, and rows compared by their keys |

mod connect;
mod encode;
mod explain;
mod options;
mod records;
mod session;
mod table;
mod tags;
mod target;
mod verify;
mod write;

pub use connect::address::CrateServer;
pub use connect::sql::{CrateReply, CrateStatements};
pub use explain::{CrateExplanation, ExplainedColumn, ExplainedWay};
pub use options::{Binary, CrateOptions, Dates, LongText, Objects, Times, Timestamps, Transport};
pub use records::commands::{crate_prune, crate_status};
pub use records::stored_text::StoredText;
pub use session::insertion::{InsertedPartition, Insertion};
pub use table::existing::is_native_type;
pub use table::names::{refused_column_name, table_name};
pub use target::CrateDb;
