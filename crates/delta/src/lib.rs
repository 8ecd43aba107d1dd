//! Versions of Delta tables: which files they list, and new ones.
//!
//! ```text
//! _delta_log/ ─ names ─▶ newest checkpoint + commits after it ─ replay ─▶ Snapshot: files, partition values, schema
//!
//! files of a run ─▶ Commit ─ N+1.json, created only if it does not exist ─▶ version N+1
//!                     ▲                                    │ it exists
//!                     └───────── the snapshot, again ◀─────┘
//! ```
//!
//! ```
//! use sawmill_delta::{Change, Commit, LocalTable, NewFile, Snapshot};
//! # use arrow_schema::{DataType, Field, Schema};
//! # let directory = tempfile::tempdir()?;
//! let table = LocalTable::new(directory.path());
//! let schema = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
//! let file = NewFile { path: "a.parquet".to_owned(), bytes: 1234, rows: 10, ..NewFile::default() };
//! let commit = Commit::new("run-1", &schema, Change::Append, vec![file])?;
//! assert_eq!(commit.make(&table)?.version, 0);
//! // The same commit again changes nothing.
//! assert!(commit.make(&table)?.already);
//! let snapshot = Snapshot::open(&table, None)?.unwrap();
//! assert_eq!(snapshot.files[0].path, "a.parquet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | room | content |
//! |---|---|
//! | `table_folder` | lists, reads and creates files of a table's log: in a directory, or in a store (feature `objects`) |
//! | `log_name` | the names of commits and checkpoints |
//! | `action` | the entries of the log |
//! | `checkpoint` | reads checkpoints |
//! | `deletion_vector` | the rows of a file that are deleted |
//! | `snapshot` | the files, the schema and the transactions of one version |
//! | `protocol` | what a table demands of its readers and writers |
//! | `schema` | Delta schemas and Arrow schemas |
//! | `partition` | partition values as Arrow values |
//! | `commit` | writes a new version |
//! | `error` | the error type: problem, place and remedy |

mod action;
mod checkpoint;
mod commit;
mod deletion_vector;
mod log_name;
mod partition;
mod protocol;
mod schema;
mod snapshot;
mod table_folder;

pub use commit::{Change, Commit, Committed, NewFile};
pub use sawmill_profile::{Error, Result};
pub use snapshot::{DeletedRows, Snapshot, SnapshotFile};
#[cfg(feature = "objects")]
pub use table_folder::StoreTable;
pub use table_folder::{LocalTable, TableFolder};
