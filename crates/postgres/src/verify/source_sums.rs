//! The sums of a source's encoded rows: the same sums that the loader computes.

use std::collections::BTreeSet;
use std::sync::Arc;

use sawmill_loader::{BatchEncoder, LoadOptions, Reading, Reread, Sums, TableName, Tally};
use sawmill_pgcopy::{Buffers, Column, ValueOptions};
use sawmill_source::{Control, Read, Result, Source, UnitKey};

use crate::encode::canonical_row::CanonicalRow;
use crate::encode::rejecting::RejectingEncoder;
use crate::encode::summing::SummingEncoder;
use crate::rejected::bad_records::BadRecords;
use crate::table::columns::natural;
use crate::types::natural::Nested;
use crate::verify::tuples::Tuples;

/// A source, and how it is encoded.
#[derive(Clone, Copy)]
pub(crate) struct SourceSums<'a> {
    pub source: &'a dyn Source,
    pub columns: &'a Arc<Vec<Column>>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    /// Also sums each column separately.
    pub each_column: bool,
    /// Numerics that differ only in their display scale are equal.
    pub by_value: bool,
    /// Leaves out and counts rows that cannot be encoded; otherwise the first of them is an error.
    pub leave_out: bool,
    /// Other rows to leave out, if rows are left out, and not to count.
    pub refused: Option<&'a BadRecords>,
}

impl SourceSums<'_> {
    /// Encodes and sums all rows, with as many threads as there are connections. Also returns the rows that could not be
    /// encoded, by their units.
    pub(crate) fn run(&self, control: &Control<'_>) -> Result<(Sums, Vec<(UnitKey, u64)>)> {
        let Self { source, columns, options, .. } = *self;
        let encoders = || -> Result<Box<dyn BatchEncoder>> {
            let encoder = SummingEncoder::new(Arc::clone(columns), Buffers::new(options.batch_bytes));
            Ok(if self.leave_out { Box::new(RejectingEncoder::new(encoder)) } else { Box::new(encoder) })
        };
        // The encoder sums all whole rows that it encodes. For anything else they are parsed again.
        let again = self.each_column || self.by_value || self.refused.is_some();
        let start = || Summing {
            tuples: Tuples::new(columns.len(), CanonicalRow::new(columns, self.by_value), self.each_column),
            encoded: Tally::empty(columns.len()),
            left_out: Vec::new(),
            unit: UnitKey { file: 0, row_group: 0, first_row: 0 },
            refused: BTreeSet::new(),
        };
        let look = |summing: &mut Summing, item: Reread<'_>| match item {
            Reread::Unit(unit) => {
                summing.unit = unit.key;
                summing.refused =
                    self.refused.map(|records| records.rows_of(unit)).transpose()?.unwrap_or_default();
                Ok(())
            }
            Reread::Rows(block) => {
                let unit = summing.unit;
                let rows = block.marks.iter().flat_map(|marks| &marks.refused);
                let rows = rows.map(|(row, _)| unit.first_row + u64::from(*row));
                let rows = rows.filter(|row| !summing.refused.contains(row));
                summing.left_out.extend(rows.map(|row| (unit, row)));
                match again {
                    true => summing.tuples.feed_without(&summing.refused, unit.first_row, block),
                    false => Ok(()),
                }
            }
            Reread::End(_, tally) => {
                summing.encoded.add(&tally);
                Ok(())
            }
        };
        let (runs, read) = (source.plan(self.unit_rows), Read { broken_text: true, ..Read::default() });
        let reading = Reading { source, runs, read, encoders: &encoders, options, control };
        let parts = reading.run(start, look)?;
        let mut left_out = Vec::new();
        let sums = parts.into_iter().map(|part| {
            left_out.extend(part.left_out);
            if again { part.tuples.into_sums() } else { Sums { whole: part.encoded, each: Vec::new() } }
        });
        let sums = Sums::new(sums.collect(), columns.len());
        Ok((sums, left_out))
    }
}

/// A thread's sums.
struct Summing {
    tuples: Tuples,
    encoded: Tally,
    /// Rows that cannot be encoded.
    left_out: Vec<(UnitKey, u64)>,
    /// The unit, and its rows that are left out and not counted.
    unit: UnitKey,
    refused: BTreeSet<u64>,
}

/// The number of rows of `source`, their content sum and the non-null values of each column, as a load into a
/// new table of PostgreSQL with default options reports them. Rows are encoded by as many threads as
/// `options` has connections.
///
/// ```
/// use sawmill_loader::LoadOptions;
/// use sawmill_postgres::content;
/// use sawmill_source::{Control, GeneratedRows};
/// let devices = sawmill_generator::Dataset::built_in("devices").unwrap()?;
/// let profile = sawmill_profile::Profile::new();
/// let (phase, cancel) = (profile.phase("sum"), false.into());
/// let source = GeneratedRows::new(devices, 1000, 42);
/// let tally = content(&source, &LoadOptions::default(), &Control::new(&cancel, &phase))?;
/// assert_eq!(tally.rows, 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A column or a value that PostgreSQL cannot represent; errors of the source.
pub fn content(source: &dyn Source, options: &LoadOptions, control: &Control<'_>) -> Result<Tally> {
    // The sum does not depend on the name.
    let table: TableName = "content".parse()?;
    let planned = natural(source.schema(), &table, Nested::default(), &ValueOptions::default())?;
    let sums = SourceSums {
        source,
        columns: &planned.columns,
        options,
        unit_rows: options.unit_rows,
        each_column: false,
        by_value: false,
        leave_out: false,
        refused: None,
    };
    Ok(sums.run(control)?.0.whole)
}
