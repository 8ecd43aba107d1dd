//! Where bytes are: files that are whole or not there at all, and objects in stores.
//!
//! ```text
//! WholeFile::create ─▶ NAME.RUN.partial, locked ─ write ─▶ finish: fsync ─ rename ─ fsync of the directory ─▶ NAME
//!                                                      └── dropped, or the process killed ─▶ removed, by the next run at the latest
//!
//! text ─▶ Location ─▶ a path
//!             └────▶ ObjectUrl ─ Stores::open, Stores::list (feature `objects`) ─▶ Object ─▶ ranges of bytes
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
//! | room | content |
//! |---|---|
//! | `whole_file` | a file that takes its name when every byte is on disk |
//! | `whole_directory` | a directory that takes its name when everything in it is on disk |
//! | `streams` | devices, pipes and terminals, which are not waited for once the process is asked to stop |
//! | `partial` | the names of files until then |
//! | `path_name` | paths of any bytes as text |
//! | [`shared_places`] | files and folders where other users may write: nothing of theirs is followed |
//! | [`directories`] | directories made, and their entries put on disk |
//! | [`found_files`] | files by a pattern of their names or below a directory, and objects among listed names |
//! | `location` | paths and URLs |
//! | `confinement` | the folder that files must be in |
//! | `objects` | objects, requests for their bytes, and readers of them; needs only the standard library |
//! | `remote` | S3, Google Cloud Storage, Azure and HTTP (feature `objects`) |
//! | `error` | the error of objects |

mod confinement;
pub mod directories;
mod error;
pub mod found_files;
mod location;
mod objects;
mod partial;
mod path_name;
#[cfg(feature = "objects")]
mod remote;
pub mod shared_places;
mod streams;
mod whole_directory;
mod whole_file;

pub use confinement::{Confinement, are_inputs_confined, open_input};
pub use error::{Error, Kind};
pub use location::{Location, ObjectUrl, Scheme, percent_decoded};
pub use objects::{
    Access, Answer, Digest, Fault, Object, ObjectReader, Pending, PlannedReader, ReadAhead, RequestPlan,
    Traffic, Version,
};
pub use partial::{name_of_partial, partial_name};
pub use path_name::path_name;
#[cfg(all(fuzzing, feature = "objects"))]
#[doc(hidden)]
pub use remote::fuzzed_answer;
#[cfg(feature = "objects")]
#[doc(hidden)]
pub use remote::simulated;
#[cfg(feature = "objects")]
pub use remote::{
    Entry, ObjectFolder, ObjectWriter, Sent, StoreOptions, Stores, Unfinished, UploadLimits, WholeFolder,
};
pub use streams::{
    ends_waits, has_ended_a_wait, is_stream, open_regular, open_regular_input, read, read_small, read_text,
    unless_stopped,
};
pub use whole_directory::WholeDirectory;
pub use whole_file::{Identity, WholeFile, followed};
