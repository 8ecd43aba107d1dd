//! Where rows come from: units, conditions, columns of several files and of folders, generated rows.

pub(crate) mod all_cores;
pub(crate) mod columns;
pub(crate) mod condition;
pub(crate) mod control;
pub(crate) mod error;
pub(crate) mod generated_rows;
pub(crate) mod hive;
pub(crate) mod limited;
pub(crate) mod parquet_files;
pub(crate) mod units;
