//! Which partitions a source has rows of, and how many rows of each row group belong to each partition.
//!
//! ```text
//! statistics ─▶ row groups within one partition: counted without reading their rows
//!           └─▶ the others: only the column is read, by as many threads as there are cores
//! ```
//!
//! The result is a number for each row group and each of its partitions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use arrow_schema::Field;
use sawmill_pgcopy::ValueOptions;
use sawmill_profile::known_columns;
use sawmill_source::{Control, Error, Kind, Result, Source, Unit, UnitKey};
use serde::Serialize;

use crate::partition::by::{PartitionBy, Scheme};
use crate::partition::slot::{Book, Rule, Slot, Unplaced};
use crate::write::refusals::LEAVE_OUT;

/// Maximum partitions of a table. Each is a table, which the server keeps open while rows go to all of them.
const MAX: usize = 1000;

/// Rows of a row group that one thread reads at a time.
pub(super) const WINDOW_ROWS: u64 = 1 << 20;

/// Rows of a batch of the column.
const BATCH_ROWS: usize = 8192;

/// The partitions of a new table, and where the source has their rows. Created by
/// [`Postgres::partitioned`](crate::target::Postgres::partitioned).
#[derive(Clone, Debug)]
pub struct Partitions {
    pub(crate) by: PartitionBy,
    /// The column's position in the source.
    pub(crate) column: usize,
    /// How its values are assigned to partitions; `None` if only the server does that.
    pub(crate) rule: Option<Rule>,
    /// In the order of their values.
    pub(crate) slots: Vec<Slot>,
    /// Rows of each partition; empty if unknown.
    rows: Vec<u64>,
    /// For each file and row group its partitions, ascending, with their rows.
    groups: HashMap<(u32, u32), Vec<(u32, u64)>>,
    survey: Survey,
}

/// The result of a survey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Rows of the source.
    pub rows: u64,
    /// Row groups that have rows.
    pub row_groups: u64,
    /// Row groups that are within one partition according to their statistics: their rows were not read.
    pub row_groups_known: u64,
    /// Rows that partition-by-partition reading has to read: a row group's rows count once per partition.
    pub rows_by_partition: u64,
}

/// The rows of a partition within a row group, whose rows are counted as if ordered by partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub partition: u32,
    /// Rows of other partitions before it.
    pub first: u64,
    pub rows: u64,
    /// Rows of the whole row group.
    pub of: u64,
}

impl Partitions {
    /// Finds the partitions of a source. For a hash, rows are counted only if `hashed`.
    pub(crate) fn survey(
        by: &PartitionBy,
        source: &dyn Source,
        values: &ValueOptions,
        hashed: bool,
        control: &Control<'_>,
    ) -> Result<Self> {
        let schema = source.schema();
        let Ok(column) = schema.index_of(&by.column) else {
            let names = schema.fields().iter().map(|field| field.name().as_str());
            return Err(Error::new(
                Kind::Config,
                format!("column {:?} is not among those loaded", by.column),
            )
            .at(format!("--partition-by {by}"))
            .advise(known_columns(&by.column, names)));
        };
        if !source.facts().knows_rows {
            return Err(Error::new(Kind::Config, "tables of nested values cannot be partitioned")
                .at(format!("--partition-by {by}"))
                .advise("load nested values as jsonb, or leave the option out"));
        }
        let remainders = match by.scheme {
            Scheme::Hash(modulus) => (0..modulus).map(|remainder| Slot::Number(remainder.into())).collect(),
            _ => Vec::new(),
        };
        if !remainders.is_empty() && !hashed {
            return Ok(Self {
                by: by.clone(),
                column,
                rule: None,
                slots: remainders,
                rows: Vec::new(),
                groups: HashMap::new(),
                survey: Survey { rows: source.rows(), ..Survey::default() },
            });
        }
        let field: &Field = schema.field(column);
        let rule = Rule::new(by, field, values).map_err(|what| {
            Error::new(Kind::Config, format!("column {:?} cannot be partitioned this way: {what}", by.column))
                .at(format!("--partition-by {by}"))
                .advise("choose another column, or another way to partition")
        })?;
        // A hash also has partitions without rows.
        Self::counted(by, source, (column, rule), remainders, control)
    }

    /// As [`survey`](Self::survey), with this column's position and its rule.
    pub(super) fn counted(
        by: &PartitionBy,
        source: &dyn Source,
        (column, rule): (usize, Rule),
        slots: Vec<Slot>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let counts = Counts { book: Book::beginning_with(slots, MAX), groups: HashMap::new() };
        let counting = Counting { by, source, column, rule: &rule, counts: Mutex::new(counts) };
        let mut survey = Survey { rows: source.rows(), ..Survey::default() };
        let unknown = counting.by_statistics(&mut survey, control)?;
        counting.by_rows(&unknown, control)?;
        let Counts { book, groups } = counting.counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self::of_counts(by, column, rule, &book.slots, groups, survey))
    }

    fn of_counts(
        by: &PartitionBy,
        column: usize,
        rule: Rule,
        found: &[Slot],
        mut groups: HashMap<(u32, u32), Vec<(u32, u64)>>,
        mut survey: Survey,
    ) -> Self {
        let mut slots = found.to_vec();
        slots.sort_unstable();
        let places: Vec<u32> =
            found.iter().map(|slot| slots.binary_search(slot).unwrap_or(0) as u32).collect();
        let mut rows = vec![0; slots.len()];
        for counts in groups.values_mut() {
            for (partition, count) in counts.iter_mut() {
                *partition = places.get(*partition as usize).copied().unwrap_or(0);
                if let Some(rows) = rows.get_mut(*partition as usize) {
                    *rows += *count;
                }
            }
            counts.sort_unstable();
            let of: u64 = counts.iter().map(|(_, rows)| rows).sum();
            survey.rows_by_partition += of * counts.len() as u64;
        }
        survey.row_groups = groups.len() as u64;
        Self { by: by.clone(), column, rule: Some(rule), slots, rows, groups, survey }
    }

    /// The result of the survey.
    pub fn found(&self) -> Survey {
        self.survey
    }

    /// The definition of the partitions.
    pub fn by(&self) -> &PartitionBy {
        &self.by
    }

    /// The number of partitions.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// The number of a partition's rows, if known.
    pub(crate) fn rows_of(&self, partition: u32) -> Option<u64> {
        self.rows.get(partition as usize).copied()
    }

    /// The number of rows that are null in the column, as far as known.
    pub(crate) fn null_rows(&self) -> u64 {
        let null = self.slots.iter().position(|slot| *slot == Slot::Null);
        null.and_then(|place| self.rows.get(place).copied()).unwrap_or(0)
    }

    /// The shares of partitions in a row group.
    pub(crate) fn shares(&self, file: u32, row_group: u32) -> impl Iterator<Item = Share> + '_ {
        let counts = self.groups.get(&(file, row_group)).map_or(&[][..], Vec::as_slice);
        let of = counts.iter().map(|(_, rows)| rows).sum();
        counts.iter().scan(0, move |before, (partition, rows)| {
            let share = Share { partition: *partition, first: *before, rows: *rows, of };
            *before += rows;
            Some(share)
        })
    }

    /// The share of a unit that counts rows in the order of partitions.
    pub(crate) fn share_of(&self, key: UnitKey) -> Option<Share> {
        self.shares(key.file, key.row_group)
            .find(|share| (share.first..share.first + share.rows).contains(&key.first_row))
    }
}

/// The counts so far.
struct Counts {
    book: Book,
    groups: HashMap<(u32, u32), Vec<(u32, u64)>>,
}

impl Counts {
    fn add(&mut self, key: UnitKey, slot: &Slot, rows: u64) -> Result<(), Unplaced> {
        let number = self.book.number(slot)?;
        let counts = self.groups.entry((key.file, key.row_group)).or_default();
        match counts.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += rows,
            None => counts.push((number, rows)),
        }
        Ok(())
    }
}

struct Counting<'a> {
    by: &'a PartitionBy,
    source: &'a dyn Source,
    column: usize,
    rule: &'a Rule,
    counts: Mutex<Counts>,
}

impl Counting<'_> {
    /// Counts the row groups that are within one partition according to statistics. Returns the others'
    /// units.
    fn by_statistics(&self, survey: &mut Survey, control: &Control<'_>) -> Result<Vec<Unit>> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unknown = Vec::new();
        let mut file = None;
        let mut known = Vec::new();
        for run in self.source.plan(WINDOW_ROWS) {
            let Some(first) = run.first() else { continue };
            if file != Some(first.key.file) {
                control.check()?;
                known = self.source.known(first.key.file, self.column)?;
                file = Some(first.key.file);
            }
            let slot = known.get(first.key.row_group as usize).and_then(|known| self.rule.slot_of(known));
            match slot {
                Some(slot) => {
                    let rows = run.iter().map(|unit| unit.rows).sum();
                    survey.row_groups_known += 1;
                    control.phase().add_rows(rows);
                    counts.add(first.key, &slot, rows).map_err(|error| self.refused(error, first.key, 0))?;
                }
                None => unknown.extend(run),
            }
        }
        Ok(unknown)
    }

    /// Counts by reading the column.
    fn by_rows(&self, units: &[Unit], control: &Control<'_>) -> Result<()> {
        let reader = || self.source.reader_of(&[self.column], BATCH_ROWS);
        control.on_all_cores("surveyor", units, reader, |reader, unit, control| {
            let mut book = Book::of_at_most(MAX);
            let (mut rows, mut numbers, mut seen) = (Vec::new(), Vec::new(), 0);
            reader.start(unit)?;
            while let Some(batch) = reader.next_batch()? {
                control.check()?;
                let Some(column) = batch.columns().first() else { continue };
                let numbered = self.rule.numbers(column.as_ref(), &mut book, &mut numbers);
                numbered.map_err(|error| self.refused(error, unit.key, seen))?;
                rows.resize(book.slots.len(), 0);
                for number in &numbers {
                    rows[*number as usize] += 1;
                }
                seen += batch.num_rows() as u64;
                control.phase().add_rows(batch.num_rows() as u64);
            }
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            for (slot, rows) in book.slots.iter().zip(rows) {
                counts.add(unit.key, slot, rows).map_err(|error| self.refused(error, unit.key, 0))?;
            }
            Ok(())
        })
    }

    /// The error for a row after `seen` rows of the unit.
    fn refused(&self, error: Unplaced, key: UnitKey, seen: u64) -> Error {
        let column = &self.by.column;
        match error {
            Unplaced::TooMany => {
                Error::new(Kind::Config, format!("there would be more than {MAX} partitions"))
                    .at(format!("--partition-by {}", self.by))
                    .advise("partition by longer periods, by a column with fewer values, or by its hash")
            }
            Unplaced::Value(row, what) => {
                let row = key.first_row + seen + row as u64;
                let row = match self.source.place_of_row(key, row) {
                    Some(place) => format!("row {}", place.row),
                    None => format!("row {row} of those that are loaded"),
                };
                let (file, row_group) = (self.source.name_of(key.file), key.row_group);
                Error::new(Kind::Value, format!("the value has no partition: {what}"))
                    .at(format!("{file}, row group {row_group}, {row}, column {column:?}"))
                    .advise(format!(
                        "correct the value in the source, {LEAVE_OUT}, or partition by another column"
                    ))
            }
        }
    }
}
