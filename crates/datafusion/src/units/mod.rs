//! Work in units that an engine can place: the units are rows of a memory table, an operator above it does them.
//!
//! Ballista cuts a stage into tasks by restricting the leaves that it knows: scans of files, memory tables,
//! shuffles. A leaf of another kind runs whole in every task, without an error, and its rows are counted several
//! times. So [`UnitsExec`] is never a leaf: its one child is a memory table with a partition for each share of the
//! units.

pub(crate) mod exec;
#[cfg(feature = "cluster")]
pub(crate) mod job;
pub(crate) mod row_ranges;
pub(crate) mod work;

pub(crate) use exec::UnitsExec;
