//! A build without the feature `delta`: its tables are errors that say how to get it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_schema::Schema;
use sawmill_source::TableFile;

use super::NamedTable;
use crate::arguments::stores::{Objects, StoreArgs};
use crate::error::Error;

/// A version of a table, of which there are none.
#[allow(dead_code, reason = "builds with the feature make some")]
pub(crate) struct DeltaTable {
    pub version: u64,
    pub columns: Schema,
    pub files: Vec<TableFile>,
    pub objects: Objects,
}

pub(crate) fn open(named: &NamedTable, _: &StoreArgs, _: &Arc<AtomicBool>) -> Result<DeltaTable, Error> {
    Err(Error::not_built(format!("delta:{}", named.root.display()), "delta"))
}
