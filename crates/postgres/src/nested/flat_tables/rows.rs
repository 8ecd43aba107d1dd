//! The rows of one flat table, as a source of their own.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StructArray, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::SchemaRef;
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use sawmill_pgcopy::{Items, Lists};
use sawmill_source::{
    Error, Facts, Kind, Known, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader,
};

use super::{FlatColumn, FlatTable, RecordNumbers};

/// The rows of a flat table. It has the units of its source, which count the source's rows. How many rows of
/// the table a unit has is known only after reading it.
pub(crate) struct FlatRows<'a> {
    source: &'a dyn Source,
    table: &'a FlatTable,
    numbers: Arc<RecordNumbers>,
}

impl<'a> FlatRows<'a> {
    /// The rows of `source`, whose records have these numbers.
    pub(crate) fn new(source: &'a dyn Source, table: &'a FlatTable, numbers: &Arc<RecordNumbers>) -> Self {
        Self { source, table, numbers: Arc::clone(numbers) }
    }
}

impl Source for FlatRows<'_> {
    fn schema(&self) -> &SchemaRef {
        &self.table.schema
    }

    fn files(&self) -> &[SourceFile] {
        self.source.files()
    }

    fn facts(&self) -> Facts {
        Facts { knows_rows: self.table.levels.is_empty(), ..self.source.facts() }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        self.source.plan(unit_rows)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    /// Columns of the source are others.
    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        self.source.locate(group, rows, named)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let reads = Read { columns: Some(&self.table.reads), numbered: false, ..read };
        let inner = self.source.open(reads, batch_rows);
        let unit = UnitKey { file: 0, row_group: 0, first_row: 0 };
        read.of(Box::new(FlatReader {
            rows: self,
            batch_rows: batch_rows.max(1),
            inner,
            unit,
            next_row: 0,
            cursor: None,
        }))
    }
}

struct FlatReader<'a> {
    rows: &'a FlatRows<'a>,
    batch_rows: usize,
    inner: Box<dyn UnitReader + 'a>,
    unit: UnitKey,
    /// The number, in its row group, of the row with which the source's next batch begins.
    next_row: u64,
    cursor: Option<ItemCursor<'a>>,
}

impl UnitReader for FlatReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.inner.start(unit)?;
        self.unit = unit.key;
        self.next_row = unit.key.first_row;
        self.cursor = None;
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(cursor) = &mut self.cursor
                && let Some(batch) = cursor.next(self.batch_rows).map_err(|error| self.placed(error))?
            {
                return Ok(Some(batch));
            }
            let Some(batch) = self.inner.next_batch()? else { return Ok(None) };
            let rows = batch.num_rows() as u64;
            let group = self.rows.numbers.of_group(self.unit.file, self.unit.row_group);
            let cursor = ItemCursor::new(self.rows.table, batch, group, self.next_row);
            self.cursor = Some(cursor.map_err(|error| self.placed(error))?);
            self.next_row += rows;
        }
    }

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.cursor.as_ref()?.batch_rows.get(in_batch).copied()
    }
}

impl FlatReader<'_> {
    fn placed(&self, error: Error) -> Error {
        error.at(format!("{}, row group {}", self.rows.name_of(self.unit.file), self.unit.row_group))
    }
}

/// Goes through one batch of the source, item by item.
struct ItemCursor<'a> {
    table: &'a FlatTable,
    levels: Vec<Level>,
    /// The arrays of the table's columns, for all items.
    columns: Vec<InnerArray>,
    /// The remaining rows of the batch.
    rows: Range<usize>,
    /// The number of the row group's first record.
    group: u64,
    /// The number of the batch's first row in its row group.
    first_in_group: u64,
    /// The current row in the batch.
    row: usize,
    /// For each level, the remaining items of the current list, and the position of the last one.
    left: Vec<Range<usize>>,
    ordinals: Vec<i32>,
    /// The rows of the last batch, numbered in their row group.
    batch_rows: Vec<u64>,
}

/// Lists of one level.
struct Level {
    lists: ArrayRef,
    /// Which of them are not NULL.
    valid: Option<NullBuffer>,
}

/// An array inside structs.
#[derive(Clone)]
struct InnerArray {
    array: ArrayRef,
    /// Where all structs around it are not NULL.
    within: Option<NullBuffer>,
}

impl InnerArray {
    /// The field at a place below this.
    fn below(&self, place: &[usize]) -> Result<Self> {
        let mut part = self.clone();
        for field in place {
            let structs = part.array.as_struct_opt();
            let column = structs.and_then(|structs| structs.columns().get(*field));
            let Some(array) = column.map(Arc::clone) else { return Err(other_layout(&part.array)) };
            part = Self { array, within: part.valid() };
        }
        Ok(part)
    }

    /// Where the values are not NULL.
    fn valid(&self) -> Option<NullBuffer> {
        NullBuffer::union(self.within.as_ref(), self.array.nulls()).filter(|nulls| nulls.null_count() > 0)
    }
}

fn other_layout(array: &ArrayRef) -> Error {
    Error::new(Kind::Source, format!("the reader returned an unexpected array of {}", array.data_type()))
}

impl<'a> ItemCursor<'a> {
    /// Goes through `batch`, whose first row is row `first_in_group` of its row group, whose first record has the
    /// number `group`.
    fn new(table: &'a FlatTable, batch: RecordBatch, group: u64, first_in_group: u64) -> Result<Self> {
        let rows = 0..batch.num_rows();
        let mut at = InnerArray { array: Arc::new(StructArray::from(batch)), within: None };
        let mut levels = Vec::with_capacity(table.levels.len());
        for (level, place) in table.levels.iter().enumerate() {
            // For a table of lists only their column was read.
            let place: Vec<usize> = match level {
                0 => [0].iter().chain(place.get(1..).unwrap_or_default()).copied().collect(),
                _ => place.clone(),
            };
            let lists = at.below(&place)?;
            let valid = lists.valid();
            let items = match Lists::bind(&lists.array).map(|lists| lists.items) {
                Some(Items::Values(values)) => Arc::clone(values),
                Some(Items::Entries(entries)) => Arc::new(entries.clone()),
                None => return Err(other_layout(&lists.array)),
            };
            levels.push(Level { lists: lists.array, valid });
            at = InnerArray { array: items, within: None };
        }
        let columns = table.columns.iter().map(|column| match column {
            FlatColumn::Value(place) | FlatColumn::Count(place) | FlatColumn::Present(place) => {
                at.below(place)
            }
        });
        Ok(Self {
            table,
            columns: columns.collect::<Result<_>>()?,
            rows,
            group,
            first_in_group,
            row: 0,
            left: vec![0..0; levels.len()],
            ordinals: vec![0; levels.len()],
            levels,
            batch_rows: Vec::new(),
        })
    }

    /// The next item of the lists of the first `depth` levels, or of the rows themselves if that is 0.
    fn step(&mut self, depth: usize) -> Result<Option<usize>> {
        let Some(level) = depth.checked_sub(1) else {
            let row = self.rows.next();
            self.row = row.unwrap_or(self.row);
            return Ok(row);
        };
        loop {
            if let Some(item) = self.left[level].next() {
                self.ordinals[level] = self.ordinals[level].checked_add(1).ok_or_else(too_long)?;
                return Ok(Some(item));
            }
            let Some(list) = self.step(level)? else { return Ok(None) };
            self.left[level] = self.levels[level].range(list)?;
            self.ordinals[level] = 0;
        }
    }

    /// The next rows of the table, at most `most`; `None` at the end.
    fn next(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let depth = self.levels.len();
        let mut items = Vec::new();
        let mut numbers = Vec::new();
        let mut ordinals = vec![Vec::new(); depth];
        self.batch_rows.clear();
        while items.len() < most
            && let Some(item) = self.step(depth)?
        {
            items.push(item);
            let row = self.first_in_group + self.row as u64;
            numbers.push((self.group + row) as i64);
            self.batch_rows.push(row);
            for (column, ordinal) in ordinals.iter_mut().zip(&self.ordinals) {
                column.push(*ordinal);
            }
        }
        if items.is_empty() {
            return Ok(None);
        }
        let items = Chosen::new(items);
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(numbers))];
        arrays.extend(ordinals.into_iter().map(|column| Arc::new(Int32Array::from(column)) as ArrayRef));
        for (column, part) in self.table.columns.iter().zip(&self.columns) {
            arrays.push(match column {
                FlatColumn::Value(_) => items.values(part)?,
                FlatColumn::Count(_) => items.counts(part)?,
                FlatColumn::Present(_) => items.present(part),
            });
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.table.schema), arrays);
        batch.map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()))
    }
}

fn too_long() -> Error {
    Error::new(Kind::Value, format!("a list has more than {} items", i32::MAX))
}

impl Level {
    /// The items of a list; empty if it is NULL.
    fn range(&self, list: usize) -> Result<Range<usize>> {
        if self.valid.as_ref().is_some_and(|valid| valid.is_null(list)) {
            return Ok(0..0);
        }
        let bound = Lists::bind(&self.lists).ok_or_else(|| other_layout(&self.lists))?;
        Ok(bound.offsets.range(list))
    }
}

/// The items that become rows.
struct Chosen {
    items: Vec<usize>,
    /// Whether they are consecutive. They always are, unless NULL hides lists.
    together: bool,
}

impl Chosen {
    fn new(items: Vec<usize>) -> Self {
        let together = items.windows(2).all(|pair| pair[1] == pair[0] + 1);
        Self { items, together }
    }

    /// The values, NULL if a struct around them is.
    fn values(&self, part: &InnerArray) -> Result<ArrayRef> {
        let failed = |error: arrow_schema::ArrowError| Error::new(Kind::Source, error.to_string());
        let values = match (self.together, self.items.first()) {
            (true, Some(first)) => part.array.slice(*first, self.items.len()),
            _ => {
                let places = UInt64Array::from_iter_values(self.items.iter().map(|item| *item as u64));
                take(part.array.as_ref(), &places, None).map_err(failed)?
            }
        };
        match &part.within {
            None => Ok(values),
            Some(within) => {
                let hidden = self.items.iter().map(|item| within.is_null(*item));
                let hidden = BooleanArray::new(hidden.collect::<BooleanBuffer>(), None);
                nullif(values.as_ref(), &hidden).map_err(failed)
            }
        }
    }

    /// The lengths of lists, NULL for NULL lists.
    fn counts(&self, part: &InnerArray) -> Result<ArrayRef> {
        let valid = part.valid();
        let lists = Lists::bind(&part.array).ok_or_else(|| other_layout(&part.array))?;
        let counts =
            self.items.iter().map(|item| match valid.as_ref().is_some_and(|valid| valid.is_null(*item)) {
                true => Ok(None),
                false => i32::try_from(lists.offsets.range(*item).len()).map(Some).map_err(|_| too_long()),
            });
        Ok(Arc::new(counts.collect::<Result<Int32Array>>()?))
    }

    /// Whether structs are not NULL.
    fn present(&self, part: &InnerArray) -> ArrayRef {
        let valid = part.valid();
        let there = self.items.iter().map(|item| valid.as_ref().is_none_or(|valid| valid.is_valid(*item)));
        Arc::new(BooleanArray::new(there.collect::<BooleanBuffer>(), None))
    }
}
