//! Units into tables: COPY and the unit's record in one transaction, directly or through part tables.

pub(crate) mod durable;
pub(crate) mod part_writer;
pub(crate) mod reject_part_writer;
pub(crate) mod reject_writer;
pub(crate) mod rejecting_unit;
pub(crate) mod route;
pub(crate) mod unit_group;
pub(crate) mod unit_records;
pub(crate) mod upsert;
pub(crate) mod write_ahead;
pub(crate) mod writer;
