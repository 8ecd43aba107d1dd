//! The first rows of a source: its units in their order, up to a number of rows.

use arrow_schema::SchemaRef;
use sawmill_profile::Result;

use crate::condition::pruning::Known;
use crate::units::{Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader};

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

    fn facts(&self) -> Facts {
        let facts = self.source.facts();
        let mut mapping = facts.mapping;
        mapping.columns += &format!(" limit {}", self.rows);
        Facts { rows: facts.rows.min(self.rows), mapping, whole_files: false, ..facts }
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

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        self.source.locate(group, rows, named)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.source.open(read, batch_rows)
    }
}
