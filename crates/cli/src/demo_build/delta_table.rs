//! Tables that `delta:` names.

use crate::arguments::delta::NamedTable;
use crate::arguments::stores::{Objects, StoreArgs};
use crate::error::{Error, Result};

/// A version of a table, which this build cannot open.
pub(crate) struct DeltaTable {
    pub version: u64,
    pub columns: arrow_schema::Schema,
    pub files: Vec<sawmill_source::TableFile>,
    pub objects: Objects,
}

pub(crate) fn open(named: &NamedTable, _: &StoreArgs) -> Result<DeltaTable> {
    Err(Error::not_built(format!("delta:{}", named.root.display())))
}
