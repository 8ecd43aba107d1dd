//! Watching a run: observers that show, store and serve what happens, a second at a time.
//!
//! ```text
//! engine ─Snapshot a second─▶ Watchers ─▶ LiveScreen | JsonLines | Prometheus | HdrLog
//! ```
//!
//! An observer that fails does not stop the run: what went wrong is kept in [`Troubles`] for its end.

pub(crate) mod exposition;
pub(crate) mod hdr_log;
pub(crate) mod hdr_v2;
pub(crate) mod json_lines;
pub(crate) mod prometheus;
pub(crate) mod screen;
pub(crate) mod watchers;
