//! Sources that wait before each unit, so that something can happen in the middle of a load on any machine.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_profile::Phase;
use sawmill_source::{Facts, Known, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader};

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
}

impl Source for Slowed<'_> {
    fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    fn files(&self) -> &[SourceFile] {
        self.source.files()
    }

    fn facts(&self) -> Facts {
        self.source.facts()
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        self.source.plan(unit_rows)
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
        Box::new(SlowedReader { reader: self.source.open(read, batch_rows), wait: self.wait })
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

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}
