//! An ephemeral PostgreSQL server for demos and tests.
//!
//! [`LocalPg::start`] finds PostgreSQL's programs ([`Binaries`]; it downloads them if none are installed),
//! creates a private directory with a new data directory, starts the server there and returns once it accepts
//! connections, over the loopback address and a Unix socket. Dropping the value ends the server and removes
//! the directory.
//!
//! ```no_run
//! let server = sawmill_localpg::LocalPg::builder().setting("shared_buffers", "256MB").start()?;
//! println!("psql '{}'", server.url());
//! server.stop()?;
//! # Ok::<(), sawmill_localpg::Error>(())
//! ```
//!
//! # Guarantees
//!
//! * **Everything is removed afterwards.** A failed start removes its directory. The next start ends and
//!   removes the leftovers of a killed process ([`sweep_abandoned`]).
//! * **Private.** The directory has mode 0700; both addresses require a password, generated for each server
//!   and included in its URLs.
//! * **Not as root.** Root's server runs as `postgres` if that account exists, otherwise as `nobody`, without
//!   supplementary groups.
//! * **The data is disposable**, so the server runs with `fsync` and `full_page_writes` off. A crash of the
//!   server loses nothing committed ([`LocalPg::restart_immediate`]); a crash of the operating system would.
//! * **The same everywhere.** Encoding UTF-8, collation and messages of locale C, time zone UTC.
//!
//! Works on Linux and macOS with PostgreSQL 10 or newer.

mod error;
mod housekeeping;
mod install;
mod server;

pub use error::Error;
pub use housekeeping::sweep::{Swept, sweep_abandoned, sweep_abandoned_in};
pub use install::binaries::Binaries;
pub use install::download::DownloadProgress;
pub use install::search::Search;
pub use server::builder::Builder;
pub use server::local_pg::{Kept, LocalPg};
