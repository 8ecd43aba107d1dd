//! The comparison of any table with any source, whoever loaded it.

use std::sync::Arc;

use sawmill_loader::{LoadOptions, Verification};
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::connect::client::{Client, Cluster};
use crate::encode::canonical::Sums;
use crate::encode::encoder::{EncodePlan, file_hash, longest_row};
use crate::session::existing_plan;
use crate::table::catalogue;
use crate::table::columns::Purpose;
use crate::target::CrateDb;
use crate::verify::read_back::{ReadBack, paging_key};
use crate::verify::read_source::{Part, ReadSource};
use crate::write::writer::values_of;

/// Compares table and source: number of rows, non-null values of each column, and the content sum. If they differ,
/// both sides are read once more to name the columns that differ. The mode of `crate_db` does not matter.
///
/// # Errors
/// A table that does not exist or cannot hold the source's columns exactly, a source that cannot be read,
/// no connection.
pub(crate) fn verify(
    source: &dyn Source,
    crate_db: &CrateDb,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Verification> {
    let table = crate_db.table()?;
    let cluster = Cluster::new(&crate_db.server, options.patience)?;
    let mut client = Client::new(&cluster, false);
    // Verification writes nothing, so it needs no key.
    let mut reading = crate_db.clone();
    reading.options.row_key = None;
    reading.options.at_least_once = true;
    let (plan, primary) =
        existing_plan(&reading, source, &mut client, &table, options.retries, control, Purpose::Compare)?;
    let existing = catalogue::columns(&mut client, &table, options.retries, control)?;
    let compared = |name: &String| plan.columns.iter().any(|column| column.name == *name);
    let not_compared =
        existing.into_iter().map(|column| column.name).filter(|name| !compared(name)).collect();
    let encode = Arc::new(EncodePlan {
        rows: crate_db.options.request_rows(),
        bytes: options.batch_bytes.clamp(4096, CrateDb::MAX_BATCH_BYTES),
        longest_row: longest_row(0),
        columns: false,
        leave_out: false,
        files: source.files().iter().map(file_hash).collect(),
        plan,
    });
    let read = ReadBack {
        cluster: &cluster,
        table: &table,
        columns: &encode.plan.columns,
        of_files: None,
        key: paging_key(&encode.plan.key, &primary),
        retries: options.retries,
    };
    let expected = |each_column| {
        let unit_rows = options.unit_rows;
        encode_source(source, &encode, options, unit_rows, each_column, control)
    };
    let columns = encode.plan.columns.iter().map(|column| column.name.clone()).collect();
    let mut verification = Verification {
        not_compared,
        ..Verification::new(columns, expected(false)?.whole, read.run(control)?)
    };
    if !verification.matches() {
        verification.differing = expected(true)?.differing(&read.sums(true, control)?, &encode.plan.columns);
    }
    Ok(verification)
}

/// Encodes the whole source and sums it up as the loader did.
pub(crate) fn encode_source(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    options: &LoadOptions,
    unit_rows: u64,
    each_column: bool,
    control: &Control<'_>,
) -> Result<Sums> {
    let columns = encode.plan.columns.len();
    let reading = ReadSource { source, encode, options, unit_rows, control };
    let start = || Sums::empty(columns, each_column);
    let parts = reading.run(start, |sums, part| match part {
        Part::Rows(block) => match (&block.marks, each_column) {
            (Some(marks), true) => (0..marks.rows.len()).try_for_each(|row| {
                let values = values_of(&encode.plan, &block.bytes, marks, row);
                sums.add_written(values).map_err(|what| Error::new(Kind::Source, what))
            }),
            _ => Ok(()),
        },
        Part::End(tally) => {
            sums.whole.add(tally);
            Ok(())
        }
        Part::Unit(_) => Ok(()),
    })?;
    let mut total = Sums::empty(columns, each_column);
    parts.iter().for_each(|sums| total.merge(sums));
    Ok(total)
}
