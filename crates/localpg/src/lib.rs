//! An ephemeral PostgreSQL server, for demos and tests.
//!
//! [`LocalPg::start`] finds PostgreSQL's programs ([`Binaries`]; they are downloaded where none are
//! installed), makes a private directory with a new data directory in it, runs the server there and
//! returns when it takes connections, over the loopback address and a Unix socket. When the value is
//! dropped the server ends and the directory goes.
//!
//! ```no_run
//! let server = sawmill_localpg::LocalPg::builder().setting("shared_buffers", "256MB").start()?;
//! println!("psql '{}'", server.url());
//! server.stop()?;
//! # Ok::<(), sawmill_localpg::Error>(())
//! ```
//!
//! # What it promises
//!
//! * **Nothing stays.** A failed start removes what it made. What a killed process leaves is ended
//!   and removed by the next start ([`sweep_abandoned`]).
//! * **Private.** The directory has mode 0700; both ways in ask for a password that is made anew for
//!   each server and stands in its addresses.
//! * **Not as root.** Root's server runs as `postgres`, where that account exists, or as `nobody`,
//!   without supplementary groups.
//! * **The data is thrown away**, so the server runs with `fsync` and `full_page_writes` off. A crash
//!   of the server loses nothing that was committed ([`LocalPg::restart_immediate`]); a crash of the
//!   operating system would.
//! * **The same everywhere.** Encoding UTF-8, collation and messages of locale C, time zone UTC.
//!
//! Works on Linux and macOS with PostgreSQL 10 or newer.

mod account;
mod binaries;
mod builder;
mod cluster;
mod download;
mod error;
mod home;
mod postmaster;
mod process;
mod search;
mod server;
mod shared_memory;
mod sweep;

pub use binaries::Binaries;
pub use builder::Builder;
pub use download::DownloadProgress;
pub use error::Error;
pub use search::Search;
pub use server::{Kept, LocalPg};
pub use sweep::{Swept, sweep_abandoned, sweep_abandoned_in};
