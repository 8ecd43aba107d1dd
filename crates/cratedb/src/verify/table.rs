//! The comparison of any table with any source, whoever loaded it.

use std::sync::Arc;

use sawmill_loader::{BatchEncoder, LoadOptions, Reading, Reread, Sums, Verification};
use sawmill_source::{Control, Error, Kind, Read, Result, Source};

use crate::connect::client::{Client, Cluster};
use crate::encode::canonical::add_written;
use crate::encode::encoder::{CrateEncoder, EncodePlan};
use crate::session::existing_plan;
use crate::table::catalogue;
use crate::table::columns::Purpose;
use crate::target::CrateDb;
use crate::verify::read_back::ReadBack;
use crate::write::writer::values_of;

impl CrateDb {
    /// Compares table and source: number of rows, non-null values of each column, and the content sum. If they differ,
    /// both sides are read once more to name the columns that differ. The mode does not matter, whoever loaded the table. The verification may say that they differ; see
    /// [`Verification::matches`].
    ///
    /// # Errors
    /// A table that does not exist or cannot hold the source's columns exactly, a source that cannot be read,
    /// no connection.
    pub fn verify(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Verification> {
        let table = self.table()?;
        let cluster = Cluster::new(&self.server, options.patience, options.retries)?;
        let mut client = Client::new(&cluster);
        let sql = &mut client.on(control);
        // Verification writes nothing, so it needs no key.
        let mut reading = self.clone();
        reading.options.row_key = None;
        reading.options.at_least_once = true;
        let (plan, primary) = existing_plan(&reading, source, &table, Purpose::Compare, sql)?;
        let existing = catalogue::columns(sql, &table)?;
        let compared = |name: &String| plan.columns.iter().any(|column| column.name == *name);
        let not_compared =
            existing.into_iter().map(|column| column.name).filter(|name| !compared(name)).collect();
        let encode = Arc::new(EncodePlan::new(&self.options, source, options.batch_bytes, plan));
        let read = ReadBack::new(&table, &encode.plan, &primary);
        let expected = |each_column| {
            let unit_rows = options.unit_rows;
            encode_source(source, &encode, options, unit_rows, each_column, control)
        };
        let columns = encode.plan.filled();
        let mut verification = Verification {
            not_compared,
            ..Verification::new(columns, expected(false)?.whole, read.run(sql)?)
        };
        if !verification.matches() {
            let names = encode.plan.columns.iter().map(|column| &column.name);
            verification.differing = expected(true)?.differing(&read.sums(true, sql)?, names);
        }
        Ok(verification)
    }
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
    let start = || Sums::empty(columns, each_column);
    let parts = reread(source, encode, options, unit_rows, control, start, |sums, item| match item {
        Reread::Rows(block) => match (&block.marks, each_column) {
            (Some(marks), true) => (0..marks.rows.len()).try_for_each(|row| {
                let values = values_of(&encode.plan, &block.bytes, marks, row);
                add_written(sums, values).map_err(|what| Error::new(Kind::Source, what))
            }),
            _ => Ok(()),
        },
        Reread::End(_, tally) => {
            sums.whole.add(&tally);
            Ok(())
        }
        Reread::Unit(_) => Ok(()),
    })?;
    Ok(Sums::new(parts, columns))
}

/// Encodes a source again as a load did; see [`Reading::run`].
pub(crate) fn reread<S: Send>(
    source: &dyn Source,
    encode: &Arc<EncodePlan>,
    options: &LoadOptions,
    unit_rows: u64,
    control: &Control<'_>,
    start: impl Fn() -> S + Sync,
    look: impl Fn(&mut S, Reread<'_>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let encoders =
        || -> Result<Box<dyn BatchEncoder>> { Ok(Box::new(CrateEncoder::new(Arc::clone(encode)))) };
    let (runs, read) =
        (source.plan(unit_rows), Read { numbered: true, broken_text: true, ..Read::default() });
    Reading { source, runs, read, encoders: &encoders, options, control }.run(start, look)
}
