//! Where rows come from: units, conditions, columns of several files and of folders, generated rows.

pub(crate) mod column_choice;
pub(crate) mod common_columns;
pub(crate) mod condition;
pub(crate) mod filtered;
pub(crate) mod generated_rows;
pub(crate) mod hive;
pub(crate) mod known_columns;
pub(crate) mod limited;
pub(crate) mod units;
