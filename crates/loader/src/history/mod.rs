//! The history of a table: which loads are on record, and what an append does with files that they contain.
//!
//! ```text
//! files of the source + records of loads ─▶ already loaded · interrupted (finished first) · changed · new
//! ```
//!
//! The decisions are made here, once for all targets. A target supplies its records ([`LoadRecord`],
//! [`RecordedUnit`]) and the answers that only its server has ([`History`]).

pub(crate) mod append;
pub(crate) mod lookup;
pub(crate) mod opening;
pub(crate) mod portion;
pub(crate) mod presence;
pub(crate) mod record;
pub(crate) mod taken_up;
