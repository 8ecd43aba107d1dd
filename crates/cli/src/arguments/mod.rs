//! Arguments that several sub-commands share: sources, targets, tables, rows and values.

pub(crate) mod crate_options;
pub(crate) mod delta;
pub(crate) mod given;
pub(crate) mod inputs;
pub(crate) mod lineage_args;
pub(crate) mod merge_args;
pub(crate) mod nested_args;
pub(crate) mod order_args;
pub(crate) mod part_arg;
pub(crate) mod paths;
pub(crate) mod record_args;
pub(crate) mod row_args;
pub(crate) mod schema_args;
pub(crate) mod size_arg;
pub(crate) mod stores;
pub(crate) mod table_args;
pub(crate) mod target;
pub(crate) mod text;
pub(crate) mod value_args;
pub(crate) mod words;
