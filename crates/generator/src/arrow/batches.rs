//! Records as Arrow batches: the same rows as in the files, from the same levels and values.
//!
//! A slot of an array is a present entry of the enclosing list or record. The levels of the first leaf of a
//! field determine which entries are present, which are null, and how long a list is.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::take::take;

use crate::arrow::leaf_arrays::leaf_array;
use crate::arrow::schema::arrow_field;
use crate::draw::nulls::Nulls;
use crate::error::{Error, Result};
use crate::random::rng::BLOCK_ROWS;
use crate::shred::block::{LeafBuffer, Shredded, Shredder};
use crate::shred::chosen_fields::ChosenFields;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, ListStyle};

/// The most string bytes of a column in a batch, where they are drawn value by value.
const MAX_BATCH_BYTES: u64 = 128 << 20;

/// The rows of a dataset in batches.
#[derive(Debug)]
pub struct Batches<'a> {
    fields: Vec<&'a Field>,
    shredder: Shredder<'a>,
    schema: SchemaRef,
    rows: Range<u64>,
    batch_rows: u64,
    /// The most string bytes and list elements of one column in a batch, because arrays have 32-bit offsets.
    most: usize,
}

impl Dataset {
    /// The rows of a range as Arrow batches of at most `batch_rows` rows each. Multiples of
    /// 1,024 rows are the fastest. Batches are smaller where a column's strings are long.
    pub fn batches(&self, rows: Range<u64>, seed: u64, batch_rows: usize) -> Batches<'_> {
        let shredder = Shredder::new(self, seed);
        self.made_of(self.fields.iter().collect(), self.arrow_schema(), shredder, rows, batch_rows)
    }

    /// As [`batches`](Self::batches), with the fields at the places `fields` of the record alone, in this order.
    /// Other fields are drawn only if the expression of a field needs them.
    ///
    /// ```
    /// let contacts = sawmill_generator::Dataset::built_in("contacts").unwrap()?;
    /// let batch = contacts.batches_of(&[1], 0..1000, 42, 1000)?.next().unwrap()?;
    /// assert_eq!(batch.schema().field(0), contacts.arrow_schema().field(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The record has fewer fields than one of `fields`.
    pub fn batches_of(
        &self,
        fields: &[usize],
        rows: Range<u64>,
        seed: u64,
        batch_rows: usize,
    ) -> Result<Batches<'_>> {
        let count = self.fields.len();
        if let Some(place) = fields.iter().find(|place| **place >= count) {
            let what = format!("there is no field {place}: the record has {count} fields, counted from 0");
            return Err(Error::spec(what, self.name.clone(), "choose fields by their place in the schema"));
        }
        let shredder = Shredder::of_fields(self, seed, ChosenFields::new(self, fields));
        let fields: Vec<&Field> = fields.iter().map(|place| &self.fields[*place]).collect();
        let schema = Arc::new(Schema::new(fields.iter().map(|field| arrow_field(field)).collect::<Fields>()));
        Ok(self.made_of(fields, schema, shredder, rows, batch_rows))
    }

    fn made_of<'a>(
        &'a self,
        fields: Vec<&'a Field>,
        schema: SchemaRef,
        shredder: Shredder<'a>,
        rows: Range<u64>,
        batch_rows: usize,
    ) -> Batches<'a> {
        let mut most = 1;
        self.each_leaf(&mut |_, leaf| {
            most = most.max(leaf.drawn_late().saturating_mul(leaf.most_in_record));
        });
        // All columns together are in memory.
        most = most.max(self.row_bytes_in_memory() as u64);
        let batch_rows = (batch_rows as u64).min(MAX_BATCH_BYTES / most).max(1);
        Batches { fields, shredder, schema, rows, batch_rows, most: i32::MAX as usize }
    }
}

impl Batches<'_> {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rows.start >= self.rows.end {
            return None;
        }
        loop {
            // End at the end of a block, if more than one block fits.
            let mut end = self.rows.start.saturating_add(self.batch_rows).min(self.rows.end);
            let aligned = end - end % BLOCK_ROWS;
            if end < self.rows.end && aligned > self.rows.start {
                end = aligned;
            }
            let rows = self.rows.start..end;
            let n = rows.end - rows.start;
            let shredded = match self.shredder.rows(rows.clone()) {
                Ok(shredded) => shredded,
                Err(error) => {
                    self.rows.start = end;
                    return Some(Err(error));
                }
            };
            let made = batch(&self.fields, shredded, &self.schema, n as usize, self.most);
            if matches!(made, Err(ArrowError::OffsetOverflowError(_))) && n > 1 {
                self.batch_rows = n.div_ceil(2);
                continue;
            }
            self.rows.start = end;
            return Some(made.map_err(|error| {
                let place = format!("rows {} to {}", rows.start, rows.end);
                match error {
                    ArrowError::OffsetOverflowError(length) => Error::spec(
                        format!("a field has {length} bytes or elements in one row, more than the {} of an Arrow batch", self.most),
                        place,
                        "shorten its values",
                    ),
                    _ => Error::spec(format!("cannot make an Arrow batch: {error}"), place, "report this with the dataset spec"),
                }
            }));
        }
    }
}

fn batch(
    fields: &[&Field],
    shredded: &Shredded,
    schema: &SchemaRef,
    rows: usize,
    most: usize,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        columns.push(array(field, shredded, Scope { repetition: 0, definition: 0 }, most)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// The list or record whose entries are the slots of an array.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    /// Entries begin at repetition levels of at most this.
    pub repetition: u8,
    /// The smallest definition level of a present entry.
    pub definition: u8,
}

/// The levels of a leaf.
pub(super) struct LeafLevels<'a> {
    definition: &'a [u8],
    repetition: &'a [u8],
    pub entries: usize,
}

impl LeafLevels<'_> {
    pub(super) fn definition(&self, i: usize) -> u8 {
        self.definition.get(i).copied().unwrap_or(0)
    }

    fn repetition(&self, i: usize) -> u8 {
        self.repetition.get(i).copied().unwrap_or(0)
    }

    /// The entries that are slots in `scope`.
    fn slots(&self, scope: Scope) -> impl Iterator<Item = usize> {
        (0..self.entries).filter(move |i| {
            self.repetition(*i) <= scope.repetition && self.definition(*i) >= scope.definition
        })
    }
}

fn first_leaf(field: &Field) -> &Leaf {
    match &field.kind {
        Kind::Leaf(leaf) => leaf,
        // Groups always have fields: the reader refuses specs without.
        Kind::Struct { fields: children, .. } | Kind::List { children, .. } => first_leaf(&children[0]),
    }
}

fn levels<'a>(leaf: &Leaf, shredded: &'a Shredded) -> LeafLevels<'a> {
    let LeafBuffer { definition, values, list } = &shredded.leaves[leaf.index];
    let repetition = list.map_or(&[][..], |list| &shredded.lists[list]);
    let entries = if definition.is_empty() { values.len() } else { definition.len() };
    LeafLevels { definition, repetition, entries: entries.max(repetition.len()) }
}

fn array(field: &Field, shredded: &Shredded, scope: Scope, most: usize) -> Result<ArrayRef, ArrowError> {
    let leaf = first_leaf(field);
    let levels = levels(leaf, shredded);
    // The level at which the field itself is present: for lists, one less than the level of an element.
    let there = match field.kind {
        Kind::List { .. } => field.levels.definition - 1,
        _ => field.levels.definition,
    };
    let valid = || -> NullBuffer {
        let valid = levels.slots(scope).map(|i| levels.definition(i) >= there);
        NullBuffer::from(valid.collect::<Vec<bool>>())
    };
    let nulls = || (field.nulls != Nulls::Never).then(valid);
    match &field.kind {
        Kind::Leaf(leaf) => leaf_array(field, leaf, shredded, &levels, scope, most),
        Kind::Struct { fields, .. } => {
            let children = fields
                .iter()
                .map(|field| array(field, shredded, scope, most))
                .collect::<Result<Vec<_>, _>>()?;
            let arrow = fields.iter().map(arrow_field).collect();
            let slots = levels.slots(scope).count();
            // Lists of a fixed size are null where what encloses the struct is.
            let has_nulls =
                |(child, field): (&ArrayRef, &Field)| field.nulls == Nulls::Never && child.null_count() > 0;
            let nulls = nulls().or_else(|| children.iter().zip(fields).any(has_nulls).then(valid));
            Ok(Arc::new(StructArray::try_new_with_length(arrow, children, nulls, slots)?))
        }
        Kind::List { style, children, .. } => {
            let inner = Scope { repetition: field.levels.repetition, definition: field.levels.definition };
            if levels.entries > most {
                return Err(ArrowError::OffsetOverflowError(levels.entries));
            }
            let mut offsets: Vec<i32> = vec![0];
            let mut elements = 0;
            let mut open = false;
            for i in 0..levels.entries {
                let (definition, repetition) = (levels.definition(i), levels.repetition(i));
                if repetition <= scope.repetition {
                    if open {
                        offsets.push(elements);
                    }
                    open = definition >= scope.definition;
                }
                elements += i32::from(repetition <= inner.repetition && definition >= inner.definition);
            }
            if open {
                offsets.push(elements);
            }
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let parts = children
                .iter()
                .map(|child| array(child, shredded, inner, most))
                .collect::<Result<Vec<_>, _>>()?;
            if *style == ListStyle::Map {
                let arrow: arrow_schema::Fields = children.iter().map(arrow_field).collect();
                let entries = StructArray::try_new(arrow.clone(), parts, None)?;
                let field = ArrowField::new("key_value", DataType::Struct(arrow), false);
                return Ok(Arc::new(MapArray::try_new(Arc::new(field), offsets, entries, nulls(), false)?));
            }
            let element = Arc::new(arrow_field(&children[0]));
            let values = parts
                .into_iter()
                .next()
                .ok_or_else(|| ArrowError::InvalidArgumentError("a list without an element".to_owned()))?;
            match style {
                ListStyle::Fixed(size) => fixed_size_list(element, *size, &offsets, &values, nulls()),
                _ => Ok(Arc::new(ListArray::try_new(element, offsets, values, nulls())?)),
            }
        }
    }
}

/// Lists of `size` elements each. Lists that are not there, which have no elements in `values`, have some in Arrow,
/// too; they are null, or what encloses them is.
fn fixed_size_list(
    element: FieldRef,
    size: u32,
    offsets: &OffsetBuffer<i32>,
    values: &ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let lists = offsets.len() - 1;
    let made =
        |values, nulls| FixedSizeListArray::try_new_with_length(element, size as i32, values, nulls, lists);
    if values.len() == lists * size as usize {
        return Ok(Arc::new(made(Arc::clone(values), nulls)?));
    }
    let ends = || offsets.windows(2);
    let indices = ends().flat_map(|ends| {
        let there = ends[1] > ends[0];
        (0..u64::from(size)).map(move |i| there.then_some(ends[0] as u64 + i))
    });
    let values = take(values, &indices.collect::<UInt64Array>(), None)?;
    let there: Vec<bool> = ends().map(|ends| ends[1] > ends[0]).collect();
    Ok(Arc::new(made(values, Some(there.into()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_fewer_rows_and_the_same_values_if_its_strings_are_too_long() {
        let dataset = Dataset::built_in("contacts").unwrap().unwrap();
        let whole = dataset.batches(0..500, 7, 500).next().unwrap().unwrap();
        let mut batches = Batches { most: 2_000, ..dataset.batches(0..500, 7, 500) };
        let (mut rows, mut number) = (0, 0);
        for batch in batches.by_ref() {
            let batch = batch.unwrap();
            assert_eq!(batch, whole.slice(rows, batch.num_rows()));
            (rows, number) = (rows + batch.num_rows(), number + 1);
        }
        assert!(rows == 500 && number > 3, "{rows} rows in {number} batches");
    }

    #[test]
    fn a_single_row_that_is_too_long_is_an_error_with_its_number() {
        let dataset = Dataset::built_in("contacts").unwrap().unwrap();
        let batches = Batches { most: 1, ..dataset.batches(3..500, 7, 100) };
        let mut row = 3;
        for batch in batches {
            match batch {
                // Rows without a name and with at most one phone are short enough.
                Ok(batch) => row += batch.num_rows(),
                Err(error) => {
                    let (error, place) = (error.to_string(), format!("rows {row} to {}", row + 1));
                    assert!(error.contains(&place) && error.contains("in one row"), "{error}");
                    return;
                }
            }
        }
        panic!("every row was short enough");
    }
}
