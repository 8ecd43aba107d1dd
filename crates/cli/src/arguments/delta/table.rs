//! Opens Delta tables in directories and stores.

use std::path::Path;

use arrow_schema::Schema;
use sawmill_delta::{LocalTable, Snapshot, TableFolder};
use sawmill_source::{DeletedRows, GivenValue, TableFile};
use sawmill_store::{Confinement, Location};

use super::NamedTable;
use crate::arguments::stores::{Objects, StoreArgs};
use crate::error::{Error, Result};

/// A version of a table.
pub(crate) struct DeltaTable {
    pub version: u64,
    pub columns: Schema,
    pub files: Vec<TableFile>,
    pub objects: Objects,
}

/// Opens a version of a table.
///
/// # Errors
///
/// The table or the version does not exist, or Sawmill cannot read it.
pub(crate) fn open(named: &NamedTable, stores: &StoreArgs) -> Result<DeltaTable> {
    let (table, objects) = folder(&named.root, stores)?;
    let confinement = match (stores.confinement()?, Location::new(&named.root)?) {
        // Whoever writes to the store must not read the files of this machine or of other buckets through us.
        (None, Location::Object(url)) => Some(Confinement::Objects(url.sibling(""))),
        (given, _) => given,
    };
    let snapshot = Snapshot::open_within(table.as_ref(), named.version, confinement.as_ref())?;
    let snapshot = snapshot.ok_or_else(|| {
        let place = table.location("").map_or_else(|_| String::new(), |place| place.to_string());
        Error::failure("no Delta table: _delta_log has no commits", place, "check the name of the folder")
    })?;
    let given = |(column, value, text)| GivenValue { column, value, text };
    let files = snapshot.files.into_iter().map(|file| TableFile {
        place: file.place,
        bytes: file.bytes,
        given: file.partition_values.into_iter().map(given).collect(),
        deleted: file.deleted.map(|of| DeletedRows { rows: of.rows, name: of.name }),
    });
    Ok(DeltaTable { version: snapshot.version, columns: snapshot.schema, files: files.collect(), objects })
}

/// The folder of a table, and the stores that its files need.
pub(crate) fn folder(root: &Path, stores: &StoreArgs) -> Result<(Box<dyn TableFolder>, Objects)> {
    match Location::new(root)? {
        // All files of a local table are local.
        Location::Path(path) => Ok((Box::new(LocalTable::new(path)), Objects::new(stores, None)?)),
        Location::Object(url) => {
            let objects = Objects::new(stores, Some(&url))?;
            let folder = objects.table(&url)?;
            Ok((folder, objects))
        }
    }
}
