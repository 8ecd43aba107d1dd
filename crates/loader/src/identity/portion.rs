//! Some files of a source, seen as a source.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_source::{Known, Result, Source, SourceFile, Unit, UnitKey, UnitReader, recut};

/// Some files of a source, renumbered in the given order. The plan is that of a source with these files
/// alone.
pub struct Portion<'a> {
    source: &'a dyn Source,
    /// Their positions in the source, without repetition.
    places: Vec<u32>,
    files: Vec<SourceFile>,
}

impl<'a> Portion<'a> {
    /// The files of `source` at these positions, in this order.
    pub fn new(source: &'a dyn Source, places: Vec<u32>) -> Self {
        let files = places.iter().filter_map(|place| source.files().get(*place as usize).cloned());
        Self { source, files: files.collect(), places }
    }

    /// The unit as the whole source numbers it.
    fn key(&self, key: UnitKey) -> UnitKey {
        let file = self.places.get(key.file as usize).copied().unwrap_or(u32::MAX);
        UnitKey { file, ..key }
    }
}

impl Source for Portion<'_> {
    fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
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
        let numbers: HashMap<u32, u32> = self.places.iter().copied().zip(0..).collect();
        let groups = self.source.plan(u64::MAX).into_iter().flatten();
        let mut wanted: Vec<Unit> = groups
            .filter_map(|unit| {
                let file = *numbers.get(&unit.key.file)?;
                Some(Unit { key: UnitKey { file, ..unit.key }, ..unit })
            })
            .collect();
        wanted.sort_unstable_by_key(|unit| unit.key);
        recut(wanted, unit_rows)
    }

    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        let key = self.key(UnitKey { file, row_group: 0, first_row: 0 });
        self.source.known(key.file, column)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    fn row_in_group(&self, unit: UnitKey, row: u64) -> Option<u64> {
        self.source.row_in_group(self.key(unit), row)
    }

    fn rows_in_group(&self, unit: UnitKey, rows: &[u64]) -> Result<Vec<u64>> {
        self.source.rows_in_group(self.key(unit), rows)
    }

    fn place_of_row(&self, unit: UnitKey, row: u64) -> Option<String> {
        self.source.place_of_row(self.key(unit), row)
    }

    fn lacks_rejected(&self) -> bool {
        self.source.lacks_rejected()
    }

    fn counts_all_rows(&self) -> bool {
        self.source.counts_all_rows()
    }

    fn reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(PortionReader { portion: self, reader: self.source.reader(batch_rows) })
    }

    fn numbering_reader(&self, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(PortionReader { portion: self, reader: self.source.numbering_reader(batch_rows) })
    }

    fn reader_of(&self, columns: &[usize], batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(PortionReader { portion: self, reader: self.source.reader_of(columns, batch_rows) })
    }
}

struct PortionReader<'a> {
    portion: &'a Portion<'a>,
    reader: Box<dyn UnitReader + 'a>,
}

impl UnitReader for PortionReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.reader.start(&Unit { key: self.portion.key(unit.key), ..*unit })
    }

    fn expect(&mut self, unit: &Unit) {
        self.reader.expect(&Unit { key: self.portion.key(unit.key), ..*unit });
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.reader.next_batch()
    }

    fn row_in_group(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_group(in_batch)
    }
}
