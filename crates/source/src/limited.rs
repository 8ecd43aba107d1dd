//! The first rows of a source: its units in their order, up to a number of rows.

use arrow_schema::SchemaRef;

use crate::condition::pruning::Known;
use crate::error::Result;
use crate::units::{Source, SourceFile, Unit, UnitKey, UnitReader};

/// A source that ends after a number of rows.
pub struct Limited<'a> {
    source: &'a dyn Source,
    rows: u64,
}

impl<'a> Limited<'a> {
    /// Returns the first `rows` rows of `source`, in the order of its files and of the rows in them.
    pub fn new(source: &'a dyn Source, rows: u64) -> Self {
        Self { source, rows }
    }
}

impl Source for Limited<'_> {
    fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    fn files(&self) -> &[SourceFile] {
        self.source.files()
    }

    fn rows(&self) -> u64 {
        self.source.rows().min(self.rows)
    }

    fn mapping(&self) -> String {
        format!("{} limit {}", self.source.mapping(), self.rows)
    }

    fn has_whole_files(&self) -> bool {
        false
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let mut left = self.rows;
        let mut runs = self.source.plan(unit_rows);
        for run in &mut runs {
            run.retain_mut(|unit| {
                let rows = unit.rows.min(left);
                left -= rows;
                let share = u128::from(unit.bytes) * u128::from(rows) / u128::from(unit.rows.max(1));
                (unit.rows, unit.bytes) = (rows, share as u64);
                rows > 0
            });
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        self.source.known(file, column)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    fn row_in_group(&self, unit: UnitKey, row: u64) -> Option<u64> {
        self.source.row_in_group(unit, row)
    }

    fn rows_in_group(&self, unit: UnitKey, rows: &[u64]) -> Result<Vec<u64>> {
        self.source.rows_in_group(unit, rows)
    }

    fn place_of_row(&self, unit: UnitKey, row: u64) -> Option<String> {
        self.source.place_of_row(unit, row)
    }

    fn counts_all_rows(&self) -> bool {
        self.source.counts_all_rows()
    }

    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.source.reader(batch_rows)
    }

    fn numbering_reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.source.numbering_reader(batch_rows)
    }

    fn reader_of(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.source.reader_of(columns, batch_rows)
    }
}
