//! Makes the row groups of a planned group: one for the file or, if rows are partitioned into folders by the
//! values of a column, one for each folder.
//!
//! Rows are drawn as without folders, and copied, column by column, to their folder. The drawn rows determine
//! which folders exist. The column itself is in the names of the folders and not in the files, as readers of
//! such directories expect.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::ops::Range;

use sawmill_profile::span;

use crate::encode::physical::{PhysicalRoom, physical};
use crate::error::{Error, Result};
use crate::layout::rows::GroupBytes;
use crate::shred::block::{LeafBuffer, Shredded, Shredder};
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::{Field, Leaf};
use crate::types::civil::date_text;
use crate::types::logical_type::LogicalType;
use crate::write::column_chunk::ColumnChunk;
use crate::write::page::maker::PageMaker;
use crate::write::plan::FilePlan;
use crate::write::row_group::{RowGroupMaker, add_pages, bytes_of, empty_chunks, finish_chunks};

/// The folder for null values, as named by Hive.
const NULL_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The most folders of a dataset. Each has an unfinished file, and a larger number is probably a mistake.
pub(crate) const MAX_PARTITIONS: usize = 4096;

/// Makes the row groups of planned groups.
pub(crate) struct PlannedGroupMaker<'a> {
    grouping: Grouping<'a>,
    groups: Vec<MadeGroup>,
}

enum Grouping<'a> {
    Whole(Box<RowGroupMaker<'a>>),
    Sorted(Box<Sorter<'a>>),
}

/// A finished row group.
#[derive(Debug)]
pub(crate) struct MadeGroup {
    /// `COLUMN=VALUE`; empty without folders.
    pub folder: String,
    pub rows: u64,
    pub chunks: Vec<ColumnChunk>,
}

impl<'a> PlannedGroupMaker<'a> {
    /// # Errors
    /// The codec cannot be set up.
    pub(crate) fn new(plan: &'a FilePlan<'a>, seed: u64) -> Result<Self> {
        let Some((field, leaf)) = plan.partition else {
            let grouping = Grouping::Whole(Box::new(RowGroupMaker::new(plan, seed)?));
            let group = MadeGroup { folder: String::new(), rows: 0, chunks: empty_chunks(plan) };
            return Ok(PlannedGroupMaker { grouping, groups: vec![group] });
        };
        let folders = Folders {
            field,
            leaf,
            of_values: HashMap::new(),
            of_nulls: None,
            of_rows: Vec::new(),
            physical: PhysicalRoom::default(),
        };
        let (shredder, maker) = (Shredder::new(plan.dataset, seed), PageMaker::new(plan)?);
        let sorter = Sorter { folders, shredder, maker, waiting: Vec::new() };
        Ok(PlannedGroupMaker { grouping: Grouping::Sorted(Box::new(sorter)), groups: Vec::new() })
    }

    /// The row groups that [`make`](Self::make) made; folders without rows have empty ones.
    pub(crate) fn groups(&self) -> &[MadeGroup] {
        &self.groups
    }

    /// Makes the row groups of `rows`. It stops after the page that reaches `most` bytes, and returns the end
    /// of the rows made.
    ///
    /// # Errors
    /// `check` fails, a page cannot be encoded, or there are too many folders.
    pub(crate) fn make(
        &mut self,
        rows: Range<u64>,
        page_rows: u64,
        most: GroupBytes,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        match (&mut self.grouping, self.groups.as_mut_slice()) {
            (Grouping::Whole(maker), [group]) => {
                let start = rows.start;
                let end = maker.make(rows, page_rows, most, check, &mut group.chunks)?;
                group.rows = end - start;
                Ok(end)
            }
            (Grouping::Sorted(sorter), _) => sorter.make(rows, page_rows, most, check, &mut self.groups),
            // Without folders there is exactly one group.
            (Grouping::Whole(_), _) => Ok(rows.end),
        }
    }
}

/// Sorts rows into folders.
struct Sorter<'a> {
    folders: Folders<'a>,
    shredder: Shredder<'a>,
    maker: PageMaker<'a>,
    /// The rows of each folder that are not in a page yet.
    waiting: Vec<Shredded>,
}

/// The folders of the values that were drawn so far, as indices among the groups.
#[derive(Debug)]
struct Folders<'a> {
    field: &'a Field,
    leaf: &'a Leaf,
    of_values: HashMap<Vec<u8>, usize>,
    of_nulls: Option<usize>,
    /// The folder of each row.
    of_rows: Vec<usize>,
    physical: PhysicalRoom,
}

impl Folders<'_> {
    /// Finds the folder of each row; calls `open` with the name of a new one.
    ///
    /// # Errors
    /// There are too many folders.
    fn find(&mut self, shredded: &Shredded, mut open: impl FnMut(String)) -> Result<()> {
        let column = &shredded.leaves[self.leaf.index];
        let max = self.field.levels.definition;
        let mut values = Vec::with_capacity(column.values.len());
        physical(self.leaf, &column.values, &mut self.physical).each(|value| values.push(value));
        let mut values = values.into_iter();
        self.of_rows.clear();
        for row in 0..shredded.rows {
            let there = max == 0 || column.definition[row] == max;
            let value = if there { values.next() } else { None };
            let known = value.map_or(self.of_nulls, |value| self.of_values.get(value).copied());
            if let Some(folder) = known {
                self.of_rows.push(folder);
                continue;
            }
            let new = self.of_values.len() + usize::from(self.of_nulls.is_some());
            if new == MAX_PARTITIONS {
                return Err(Error::spec(
                    format!("more than {MAX_PARTITIONS} values, each with its own folder"),
                    format!("column {}", self.field.path),
                    "partition by a column with fewer values",
                ));
            }
            // Hive reads both as null, and so would other readers.
            let named = value.and_then(|value| match value {
                [] => Some("an empty string"),
                value => (value == NULL_VALUE.as_bytes()).then_some(NULL_VALUE),
            });
            if let Some(named) = named {
                return Err(Error::spec(
                    format!("{named}, which a folder's name cannot tell from null"),
                    format!("column {}", self.field.path),
                    "partition by another column, or do not draw this value",
                ));
            }
            // Only new keys are copied.
            match value {
                Some(value) => _ = self.of_values.insert(value.to_vec(), new),
                None => self.of_nulls = Some(new),
            }
            open(folder_name(&self.field.name, &self.leaf.kind, value));
            self.of_rows.push(new);
        }
        Ok(())
    }
}

impl Sorter<'_> {
    fn make(
        &mut self,
        rows: Range<u64>,
        page_rows: u64,
        most: GroupBytes,
        check: &dyn Fn() -> Result<()>,
        groups: &mut Vec<MadeGroup>,
    ) -> Result<u64> {
        for group in groups.iter_mut() {
            group.rows = 0;
            group.chunks.iter_mut().for_each(ColumnChunk::clear);
        }
        let (mut at, mut drawn) = (rows.start, 0u64);
        while at < rows.end {
            check()?;
            let end = rows.end.min(at.saturating_add(page_rows));
            let drawing = span("draw");
            let shredded = self.shredder.rows_up_to(at..end, most.drawn())?;
            drop(drawing);
            drawn = drawn.saturating_add(shredded.bytes() as u64);
            let sorting = span("sort into folders");
            let (plan, waiting) = (self.maker.plan, &mut self.waiting);
            self.folders.find(shredded, |folder| {
                groups.push(MadeGroup { folder, rows: 0, chunks: empty_chunks(plan) });
                waiting.push(empty_like(plan, shredded));
            })?;
            let mut counts = BTreeMap::new();
            for folder in &self.folders.of_rows {
                *counts.entry(*folder).or_insert(0) += 1;
            }
            for (folder, count) in counts {
                if self.waiting[folder].rows + count > page_rows as usize {
                    flush(&mut self.maker, &mut self.waiting[folder], &mut groups[folder])?;
                }
            }
            scatter(plan, shredded, &self.folders.of_rows, &mut self.waiting);
            at += shredded.rows as u64;
            drop(sorting);
            // `drawn` is the raw size of the rows in all folders, `stored` the size of the pages in the largest
            // folder.
            let stored = groups.iter().map(|group| bytes_of(&group.chunks).0).max().unwrap_or(0);
            if most.reached(stored, drawn) {
                break;
            }
        }
        for (waiting, group) in self.waiting.iter_mut().zip(groups) {
            flush(&mut self.maker, waiting, group)?;
            if group.rows > 0 {
                finish_chunks(&mut self.maker, &mut group.chunks)?;
            }
        }
        Ok(at)
    }
}

/// Encodes the waiting rows of a folder as pages.
fn flush(maker: &mut PageMaker<'_>, waiting: &mut Shredded, group: &mut MadeGroup) -> Result<()> {
    if waiting.rows > 0 {
        add_pages(maker, waiting, &mut group.chunks)?;
        group.rows += waiting.rows as u64;
    }
    waiting.rows = 0;
    for leaf in &mut waiting.leaves {
        leaf.definition.clear();
        leaf.values.clear();
    }
    waiting.lists.iter_mut().for_each(Vec::clear);
    Ok(())
}

/// Empty buffers for the columns of `shredded`.
fn empty_like(plan: &FilePlan<'_>, shredded: &Shredded) -> Shredded {
    let mut leaves: Vec<&Leaf> = Vec::with_capacity(shredded.leaves.len());
    plan.dataset.each_column(&mut |_, leaf| leaves.push(leaf));
    let leaves = leaves.into_iter().zip(&shredded.leaves).map(|(leaf, column)| LeafBuffer {
        definition: Vec::new(),
        values: ValueBuffer::new(leaf),
        list: column.list,
    });
    Shredded { rows: 0, leaves: leaves.collect(), lists: vec![Vec::new(); shredded.lists.len()] }
}

/// Appends each row to the waiting rows of its folder.
fn scatter(plan: &FilePlan<'_>, shredded: &Shredded, of_rows: &[usize], waiting: &mut [Shredded]) {
    // Neighbouring rows of the same folder are copied together.
    let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
    for (row, folder) in of_rows.iter().enumerate() {
        match runs.last_mut() {
            Some((last, rows)) if last == folder => rows.end = row + 1,
            _ => runs.push((*folder, row..row + 1)),
        }
        waiting[*folder].rows += 1;
    }
    // The first entry of each row.
    let starts: Vec<Vec<usize>> = (shredded.lists.iter())
        .map(|levels| {
            let starts = levels.iter().enumerate().filter(|(_, level)| **level == 0).map(|(i, _)| i);
            starts.chain([levels.len()]).collect()
        })
        .collect();
    for (list, (levels, starts)) in shredded.lists.iter().zip(&starts).enumerate() {
        for (folder, rows) in &runs {
            let entries = starts[rows.start]..starts[rows.end];
            waiting[*folder].lists[list].extend_from_slice(&levels[entries]);
        }
    }
    for (field, leaf) in &plan.leaves {
        let column = &shredded.leaves[leaf.index];
        let max = field.levels.definition;
        let mut value = 0;
        for (folder, rows) in &runs {
            let entries = match column.list {
                Some(list) => starts[list][rows.start]..starts[list][rows.end],
                None => rows.clone(),
            };
            let to = &mut waiting[*folder].leaves[leaf.index];
            let values = if max == 0 {
                entries.len()
            } else {
                let levels = &column.definition[entries];
                to.definition.extend_from_slice(levels);
                levels.iter().filter(|level| **level == max).count()
            };
            to.values.extend_from(&column.values, value..value + values);
            value += values;
        }
    }
}

/// `COLUMN=VALUE`, with characters that a path cannot contain as `%` and two digits, as in Hive.
fn folder_name(column: &str, kind: &LogicalType, value: Option<&[u8]>) -> String {
    let unsigned = matches!(kind, LogicalType::Integer { signed: false, .. });
    let text = match (kind, value) {
        (_, None) => return format!("{}={NULL_VALUE}", escaped(column)),
        (LogicalType::Boolean, Some(value)) => (value == [1]).to_string(),
        (LogicalType::Date, Some(&[a, b, c, d])) => date_text(i32::from_le_bytes([a, b, c, d]).into()),
        (LogicalType::Integer { .. }, Some(&[a, b, c, d])) => match i32::from_le_bytes([a, b, c, d]) {
            number if unsigned => (number as u32).to_string(),
            number => number.to_string(),
        },
        (LogicalType::Integer { .. }, Some(&[a, b, c, d, e, f, g, h])) => {
            match i64::from_le_bytes([a, b, c, d, e, f, g, h]) {
                number if unsigned => (number as u64).to_string(),
                number => number.to_string(),
            }
        }
        (_, Some(value)) => String::from_utf8_lossy(value).into_owned(),
    };
    format!("{}={}", escaped(column), escaped(&text))
}

fn escaped(text: &str) -> String {
    const SPECIAL: &str = "\"#%'*/:=?\\{}[]^";
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_control() || SPECIAL.contains(c) {
            out.push_str(&format!("%{:02X}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_hive_names_them() {
        let name = |kind, value: Option<&[u8]>| folder_name("c", &kind, value);
        assert_eq!(name(LogicalType::String, Some(b"a/b=c 1%")), "c=a%2Fb%3Dc 1%25");
        assert_eq!(name(LogicalType::String, None), "c=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(name(LogicalType::Boolean, Some(&[1])), "c=true");
        assert_eq!(
            name(LogicalType::Integer { bits: 32, signed: true }, Some(&(-5i32).to_le_bytes())),
            "c=-5"
        );
        let unsigned = LogicalType::Integer { bits: 64, signed: false };
        assert_eq!(name(unsigned, Some(&u64::MAX.to_le_bytes())), "c=18446744073709551615");
        assert_eq!(name(LogicalType::Date, Some(&0i32.to_le_bytes())), "c=1970-01-01");
        assert_eq!(name(LogicalType::Date, Some(&19_782i32.to_le_bytes())), "c=2024-02-29");
        assert_eq!(name(LogicalType::Date, Some(&(-1i32).to_le_bytes())), "c=1969-12-31");
    }
}
