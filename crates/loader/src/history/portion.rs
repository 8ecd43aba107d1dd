//! Some files of a source, seen as a source.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_source::{
    Facts, Known, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, recut,
};

/// Some files of a source, renumbered in the given order. The plan is the same as for a source of these files
/// alone.
pub struct Portion<'a> {
    source: &'a dyn Source,
    /// Their positions in the source, without repetition.
    places: Vec<u32>,
    files: Vec<SourceFile>,
    /// The order that its rows are to be loaded in.
    order: String,
}

impl<'a> Portion<'a> {
    /// The files of `source` at these positions, in this order.
    pub fn new(source: &'a dyn Source, places: Vec<u32>) -> Self {
        let files = places.iter().filter_map(|place| source.files().get(*place as usize).cloned());
        Self { source, files: files.collect(), places, order: source.facts().order }
    }

    /// The same as its load in this order is identified.
    pub(crate) fn in_order(self, order: &str) -> Self {
        Self { order: order.to_owned(), ..self }
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

    fn facts(&self) -> Facts {
        let rows = self.files.iter().map(|file| file.rows).sum();
        Facts { rows, order: self.order.clone(), ..self.source.facts() }
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

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        self.source.locate(self.key(group), rows, named)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(PortionReader { portion: self, reader: self.source.open(read, batch_rows) })
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

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}
