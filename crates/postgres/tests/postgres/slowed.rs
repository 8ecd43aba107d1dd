//! Sources that wait before each unit, so that something can happen in the middle of a load on any machine.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_profile::Phase;
use sawmill_source::{Known, Result, Source, SourceFile, Unit, UnitKey, UnitReader};

/// A source whose readers wait before they start a unit.
pub struct Slowed<'a> {
    source: &'a dyn Source,
    wait: &'a (dyn Fn() + Sync),
}

/// Waits as soon as `rows` rows are counted, until something has `happened`.
pub fn halt<'a>(phase: &'a Phase, rows: u64, happened: &'a AtomicBool) -> impl Fn() + Sync + 'a {
    move || {
        while phase.rows() >= rows && !happened.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl<'a> Slowed<'a> {
    /// Calls `wait` before each unit that a reader of `source` starts.
    pub fn new(source: &'a dyn Source, wait: &'a (dyn Fn() + Sync)) -> Self {
        Self { source, wait }
    }

    fn slowed<'s>(&'s self, reader: Box<dyn UnitReader + 's>) -> Box<dyn UnitReader + 's> {
        Box::new(SlowedReader { reader, wait: self.wait })
    }
}

impl Source for Slowed<'_> {
    fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    fn files(&self) -> &[SourceFile] {
        self.source.files()
    }

    fn rows(&self) -> u64 {
        self.source.rows()
    }

    fn knows_rows(&self) -> bool {
        self.source.knows_rows()
    }

    fn mapping(&self) -> String {
        self.source.mapping()
    }

    fn has_whole_files(&self) -> bool {
        self.source.has_whole_files()
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        self.source.plan(unit_rows)
    }

    fn keeps_runs(&self) -> bool {
        self.source.keeps_runs()
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

    fn lacks_rejected(&self) -> bool {
        self.source.lacks_rejected()
    }

    fn counts_all_rows(&self) -> bool {
        self.source.counts_all_rows()
    }

    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.slowed(self.source.reader(batch_rows))
    }

    fn numbering_reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.slowed(self.source.numbering_reader(batch_rows))
    }

    fn reader_of(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        self.slowed(self.source.reader_of(columns, batch_rows))
    }
}

struct SlowedReader<'a> {
    reader: Box<dyn UnitReader + 'a>,
    wait: &'a (dyn Fn() + Sync),
}

impl UnitReader for SlowedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        (self.wait)();
        self.reader.start(unit)
    }

    fn expect(&mut self, unit: &Unit) {
        self.reader.expect(unit);
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.reader.next_batch()
    }

    fn row_in_group(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_group(in_batch)
    }
}
