//! Text as a sample's source: it is read once, with the types of its columns inferred as in a load, into a Parquet
//! file that is removed afterwards. That has random access, and statistics of all rows.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use sawmill_source::Unit;
use tempfile::TempDir;

use crate::arguments::inputs::{self, ColumnArgs, ObjectArgs};
use crate::arguments::stores::StoreArgs;
use crate::arguments::text::TextArgs;
use crate::arguments::words::YesNo;
use crate::convert::MAX_DICTIONARIES;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;

/// Rows of a unit and of a batch.
const UNIT_ROWS: u64 = 64 * 1024;
const BATCH_ROWS: usize = 8192;

/// The rows of the text files that `named` names, and the directory that holds them.
pub(super) fn as_parquet(named: &Path, stores: &StoreArgs) -> Result<(PathBuf, TempDir)> {
    let columns = ColumnArgs { hive: YesNo::No, ..ColumnArgs::default() };
    let objects = ObjectArgs::with_defaults(stores);
    let console = Console { json: false, quiet: true, verbose: 0 };
    let inputs = inputs::open(&[named.to_owned()], &columns, &TextArgs::default(), &objects, console)?;
    let source = inputs.source();
    let failed = |error: &dyn std::fmt::Display| {
        let advice = "free space in the directory of temporary files, or name another one by TMPDIR";
        Error::failure(error.to_string(), format!("the copy of {}", named.display()), advice)
    };
    let directory = tempfile::tempdir().map_err(|error| failed(&error))?;
    let path = directory.path().join("rows.parquet");
    let file = File::create(&path).map_err(|error| failed(&error))?;
    let options = WriterProperties::builder().set_compression(Compression::SNAPPY);
    let has_few = source.schema().fields().len() <= MAX_DICTIONARIES;
    let options = options.set_dictionary_enabled(has_few).build();
    let mut writer =
        ArrowWriter::try_new(file, source.schema().clone(), Some(options)).map_err(|error| failed(&error))?;
    let mut units: Vec<Unit> = source.plan(UNIT_ROWS).concat();
    units.sort_unstable_by_key(|unit| unit.key);
    let mut reader = source.reader(BATCH_ROWS);
    for unit in &units {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            writer.write(&batch).map_err(|error| failed(&error))?;
            interrupt::check()?;
        }
    }
    writer.close().map_err(|error| failed(&error))?;
    Ok((path, directory))
}
