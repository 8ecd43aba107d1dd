//! Tables: names, the catalogue, how columns of source and table fit together, how tables are made and
//! replaced.

pub(crate) mod blockers;
pub(crate) mod catalogue;
pub(crate) mod columns;
pub(crate) mod empty_table;
pub(crate) mod evolution;
pub(crate) mod loaded_at;
pub(crate) mod new_table;
pub(crate) mod part_tables;
pub(crate) mod planned_columns;
pub(crate) mod replaced;
