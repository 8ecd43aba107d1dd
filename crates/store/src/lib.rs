//! Files that are whole or not there at all, and directories whose entries survive a crash of the machine.
//!
//! ```text
//! WholeFile::create ─▶ NAME.RUN.partial, locked ─ write ─▶ finish: fsync ─ rename ─ fsync of the directory ─▶ NAME
//!                                                      └── dropped, or the process killed ─▶ removed, by the next run at the latest
//! ```
//!
//! ```
//! use std::io::Write;
//! use sawmill_store::WholeFile;
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("a.txt");
//! WholeFile::remove_abandoned(&path)?;
//! let mut file = WholeFile::create(&path)?;
//! file.write_all(b"all of it")?;
//! assert!(!path.exists());
//! file.finish()?;
//! assert_eq!(std::fs::read(&path)?, b"all of it");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! | room | what it does |
//! |---|---|
//! | `whole_file` | a file that takes its name when every byte is on disk |
//! | `partial` | the names of files until then |
//! | [`directories`] | directories made, and their entries put on disk |

pub mod directories;
mod partial;
mod whole_file;

pub use partial::{name_of_partial, partial_name};
pub use whole_file::{Identity, WholeFile};
