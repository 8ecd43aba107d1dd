//! Some files of a source, seen as a source.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sawmill_source::{
    Facts, Known, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, recut,
};

use crate::table::records::LoadFacts;

/// Some files of a source, renumbered in the given order. The plan is the same as for a source of these files
/// alone.
pub struct Portion<'a> {
    source: &'a dyn Source,
    /// Their positions in the source, without repetition.
    places: Vec<u32>,
    files: Vec<SourceFile>,
    /// The order that its rows are to be loaded in.
    order: String,
    /// Units that the plan has as they are, in order.
    kept: Vec<Unit>,
}

impl<'a> Portion<'a> {
    /// The files of `source` at these positions, in this order.
    pub fn new(source: &'a dyn Source, places: Vec<u32>) -> Self {
        let files = places.iter().filter_map(|place| source.files().get(*place as usize).cloned());
        Self { source, files: files.collect(), places, order: source.facts().order, kept: Vec::new() }
    }

    /// The whole source with a plan that has some units as a load keeps them, and divides all other rows around them.
    /// `None` if the load keeps none.
    pub fn around(source: &'a dyn Source, load: &LoadFacts) -> Option<Self> {
        let kept = load.kept_units.iter();
        let unit = |&(file, row_group, first_row, rows): &_| Unit {
            key: UnitKey { file, row_group, first_row },
            rows,
            bytes: 0,
        };
        let mut kept: Vec<Unit> = kept.map(unit).collect();
        kept.sort_unstable_by_key(|unit| unit.key);
        let whole = Self::new(source, (0..source.files().len() as u32).collect());
        (!kept.is_empty()).then_some(Self { kept, ..whole })
    }

    /// The units of a row group, divided around those that are kept.
    fn around_kept(&self, group: Unit, unit_rows: u64) -> Vec<Unit> {
        let is_of_group =
            |unit: &&Unit| (unit.key.file, unit.key.row_group) == (group.key.file, group.key.row_group);
        let unit = |first_row: u64, rows: u64| {
            let bytes = (u128::from(group.bytes) * u128::from(rows) / u128::from(group.rows.max(1))) as u64;
            Unit { key: UnitKey { first_row, ..group.key }, rows, bytes }
        };
        let (mut units, mut next) = (Vec::new(), 0);
        for kept in self.kept.iter().filter(is_of_group).chain([&unit(group.rows, 0)]) {
            let others = unit(next, kept.key.first_row.saturating_sub(next));
            units.extend(recut(vec![others], unit_rows).into_iter().flatten());
            units.extend((kept.rows > 0).then(|| unit(kept.key.first_row, kept.rows)));
            next = kept.key.first_row + kept.rows;
        }
        units
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
        match self.kept.is_empty() {
            true => recut(wanted, unit_rows),
            false => wanted.into_iter().map(|group| self.around_kept(group, unit_rows)).collect(),
        }
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
