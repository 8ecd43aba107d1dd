//! Rows that go to the server together: a block of one unit, or small units whole.

use std::ops::Range;

use bytes::Bytes;
use sawmill_loader::{Block, Mark, Marks};
use sawmill_source::{Error, Kind, Result, Unit, UnitKey};
use serde_json::value::RawValue;

use crate::encode::unnest;
use crate::table::columns::{Key, Plan};
use crate::verify::rows::Sent;
use crate::verify::source::Place;

/// Encoded rows, and the units that they are of.
#[derive(Debug)]
pub(super) struct Batch {
    /// The rows, joined by commas.
    bytes: Bytes,
    pub marks: Marks,
    /// Each unit with its first row in the batch.
    units: Vec<(usize, Unit)>,
}

impl Batch {
    /// A block of a unit.
    pub(super) fn new(unit: &Unit, block: Block) -> Result<Self> {
        let Some(marks) = block.marks else {
            return Err(Error::new(Kind::Source, "a block came without the places of its rows"));
        };
        Ok(Self { bytes: block.bytes, marks: *marks, units: vec![(0, *unit)] })
    }

    pub(super) fn rows(&self) -> usize {
        self.marks.rows.len()
    }

    /// Bytes of its rows, or of its columns where these are more.
    pub(super) fn size(&self) -> usize {
        self.bytes.len().max(self.marks.columns.iter().map(Bytes::len).sum())
    }

    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter().map(|(_, unit)| unit)
    }

    /// The units, each with the number of its rows in the batch.
    pub(super) fn rows_of_units(&self) -> impl Iterator<Item = (&Unit, u64)> {
        let ends = self.units.iter().skip(1).map(|(first, _)| *first).chain([self.rows()]);
        self.units.iter().zip(ends).map(|((first, unit), end)| (unit, (end - first) as u64))
    }

    /// The unit that a row is of.
    pub(super) fn unit_of(&self, row: usize) -> &Unit {
        let after = self.units.partition_point(|(first, _)| *first <= row);
        // A batch consists of units; the first unit starts at its first row.
        &self.units[after.saturating_sub(1)].1
    }

    /// Rows that follow one another, joined by commas.
    pub(super) fn range(&self, rows: Range<usize>) -> &[u8] {
        let end = rows.end.checked_sub(1).map_or(0, |last| self.end_of(last));
        self.bytes.get(self.start_of(rows.start)..end).unwrap_or_default()
    }

    /// A row's JSON array.
    pub(super) fn row(&self, row: usize) -> &[u8] {
        self.range(row..row + 1)
    }

    fn start_of(&self, row: usize) -> usize {
        // After the comma.
        if row == 0 { 0 } else { self.end_of(row - 1) + 1 }
    }

    fn end_of(&self, row: usize) -> usize {
        self.marks.rows.get(row).map_or(0, |mark| mark.end as usize)
    }

    /// A row's values, without brackets and row key.
    pub(super) fn values(&self, plan: &Plan, row: usize) -> &[u8] {
        values_of(plan, &self.bytes, &self.marks, row)
    }

    /// A row's place in the source.
    pub(super) fn place_of(&self, row: usize) -> Place {
        let UnitKey { file, row_group, first_row } = self.unit_of(row).key;
        let number = self.marks.rows.get(row).map_or(0, |mark| mark.row);
        (file, row_group, first_row + u64::from(number))
    }

    /// A row's primary key for messages: `"a" = 1, "b" = "x"`.
    pub(super) fn key_of(&self, plan: &Plan, names: &[String], row: usize) -> String {
        shown_key(plan, names, self.values(plan, row))
    }

    /// A row as it is compared with the one that is in the table.
    pub(super) fn sent_row(&self, plan: &Plan, row: usize) -> Sent<'_> {
        let (whole, values) = (self.row(row), self.values(plan, row));
        let row_key = match plan.key {
            // Between the bracket and the comma before the values.
            Key::Row(_) => whole.get(1..whole.len().saturating_sub(values.len() + 2)),
            _ => None,
        };
        Sent { number: row, row_key, values }
    }
}

/// Small units that wait to be sent together. Their rows are copied: buffers of the encoder go back to it.
#[derive(Debug, Default)]
pub(super) struct Together {
    bytes: Vec<u8>,
    rows: Vec<Mark>,
    columns: Vec<Vec<u8>>,
    units: Vec<(usize, Unit)>,
}

impl Together {
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// As of [`Batch::size`].
    pub(super) fn size(&self) -> usize {
        self.bytes.len().max(self.columns.iter().map(Vec::len).sum())
    }

    pub(super) fn append(&mut self, batch: &Batch) {
        if batch.rows() == 0 {
            return;
        }
        self.units.extend(batch.units.iter().map(|(at, unit)| (self.rows.len() + at, *unit)));
        if !self.rows.is_empty() {
            self.bytes.push(b',');
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&batch.bytes);
        // If one batch has no columns, all are sent without.
        if self.rows.is_empty() {
            self.columns.resize(batch.marks.columns.len(), Vec::new());
        } else if batch.marks.columns.is_empty() {
            self.columns.clear();
        }
        let moved = batch.marks.rows.iter().map(|mark| Mark { end: start + mark.end, ..*mark });
        self.rows.extend(moved);
        let columns = self.columns.iter_mut().zip(&batch.marks.columns);
        columns.for_each(|(array, more)| unnest::append(array, more));
    }

    /// Takes all waiting rows as one batch.
    pub(super) fn take(&mut self) -> Batch {
        let Self { bytes, rows, columns, units } = std::mem::take(self);
        let columns = columns.into_iter().map(Bytes::from).collect();
        Batch { bytes: bytes.into(), marks: Marks { rows, columns, ..Marks::default() }, units }
    }
}

/// The columns of a primary key and their values in a row, shortened.
pub(crate) fn shown_key(plan: &Plan, names: &[String], values: &[u8]) -> String {
    let array = [b"[", values, b"]"].concat();
    let fields: Vec<&RawValue> = serde_json::from_slice(&array).unwrap_or_default();
    let of_key = plan.columns.iter().zip(fields).filter(|(column, _)| names.contains(&column.name));
    let shown = of_key.map(|(column, value)| match value.get().char_indices().nth(60) {
        Some((end, _)) => format!("{:?} = {}...", column.name, &value.get()[..end]),
        None => format!("{:?} = {}", column.name, value.get()),
    });
    match shown.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => format!("{}, which the server computes", names.join(", ")),
        shown => shown,
    }
}

/// A row's values: without brackets and row key. Keys have nothing in them that JSON escapes.
pub(crate) fn values_of<'a>(plan: &Plan, bytes: &'a [u8], marks: &Marks, row: usize) -> &'a [u8] {
    let start = match row {
        0 => 0,
        row => marks.rows.get(row - 1).map_or(0, |mark| mark.end as usize + 1),
    };
    let end = marks.rows.get(row).map_or(start, |mark| mark.end as usize);
    let row = bytes.get(start..end).unwrap_or_default();
    let inner = row.get(1..row.len().saturating_sub(1)).unwrap_or_default();
    match plan.key {
        Key::Row(_) => memchr::memmem::find(inner, b"\",").map_or(inner, |at| &inner[at + 2..]),
        _ => inner,
    }
}
