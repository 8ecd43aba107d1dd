//! First step of a block: computes the bytes of each row.
//!
//! Fixed-width columns add a constant, and byte strings the length of their value. All others are encoded
//! now, into a buffer of the column, because their length is not known before.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::valid::Valid;
use crate::arrays::byte_strings::ByteStrings;
use crate::arrays::dictionary::Keys;
use crate::arrays::fault::Fault;
use crate::rows::encoder::CopyEncoder;
use crate::values::element::{BoundElement, Element};
use crate::values::fixed_width::Words;
use crate::values::short_numeric::ShortNumeric;

/// The state of a column between layout and writing, and between blocks.
#[derive(Default)]
pub(crate) struct ColumnLayout {
    pub valid: Valid,
    /// The encoded values of the block, or the entries of the dictionary.
    pub encoded: Encoded,
    /// The numerics of the block, if all of them are short.
    pub numerics: Vec<ShortNumeric>,
    /// The dictionary whose entries are in `encoded`.
    entries_of: Option<ArrayRef>,
}

/// Encoded values one after the other.
#[derive(Default)]
pub(crate) struct Encoded {
    pub bytes: Vec<u8>,
    /// The end of each value; a value starts at the end of the one before.
    ends: Vec<usize>,
    /// Entries that are NULL, or that cannot be encoded.
    missing: Vec<bool>,
}

impl Encoded {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.missing.clear();
    }

    fn push(&mut self, missing: bool) {
        self.ends.push(self.bytes.len());
        self.missing.push(missing);
    }

    #[inline]
    pub(crate) fn value(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }
}

/// A column with the array of the current batch.
pub(crate) enum BoundColumn<'a> {
    Null,
    Fixed { words: Words<'a>, width: u32, array: &'a ArrayRef },
    Bytes { values: ByteStrings<'a>, array: &'a ArrayRef },
    Encoded { element: BoundElement<'a>, array: &'a ArrayRef },
    Dictionary { keys: Keys<'a>, array: &'a ArrayRef },
}

impl<'a> BoundColumn<'a> {
    pub(crate) fn bind(
        element: &'a Element,
        array: &'a ArrayRef,
        layout: &mut ColumnLayout,
    ) -> Result<Self, Fault> {
        let unexpected = |what: String| Fault::new(0, what);
        if let DataType::Dictionary(..) = array.data_type() {
            let (keys, entries) = Keys::bind(array)
                .ok_or_else(|| unexpected(format!("{} is not a dictionary", array.data_type())))?;
            layout.encode_entries(element, entries, &keys, array)?;
            return Ok(Self::Dictionary { keys, array });
        }
        Ok(match element.bind(array).map_err(unexpected)? {
            BoundElement::Null => Self::Null,
            BoundElement::Fixed(words, width, _) => Self::Fixed { words, width, array },
            BoundElement::Bytes(values) => Self::Bytes { values, array },
            element => Self::Encoded { element, array },
        })
    }
}

impl ColumnLayout {
    /// Reads which of the rows from `first` on have a value.
    fn read_valid(&mut self, column: &BoundColumn<'_>, first: usize, rows: usize) {
        match column {
            BoundColumn::Null => {}
            BoundColumn::Fixed { array, .. }
            | BoundColumn::Bytes { array, .. }
            | BoundColumn::Encoded { array, .. } => {
                self.valid = Valid::read(array.nulls(), first, rows);
            }
            BoundColumn::Dictionary { keys, array } => {
                self.valid = Valid::read(array.nulls(), first, rows);
                for row in 0..rows {
                    if self.valid.is_valid(row) && self.encoded.missing[keys.key(first + row)] {
                        self.valid.clear(row);
                    }
                }
            }
        }
    }

    /// Adds the bytes of the column's values to the lengths of rows, which start with the widths of all
    /// fixed columns. Returns for how many rows: fewer if encoded values fill `budget` bytes before.
    fn add_lengths(
        &mut self,
        column: &BoundColumn<'_>,
        first: usize,
        lengths: &mut [u32],
        budget: usize,
    ) -> Result<usize, Fault> {
        let valid = &self.valid;
        match column {
            BoundColumn::Null => {}
            BoundColumn::Fixed { width, .. } => {
                valid.each_null(lengths.len(), |row| lengths[row] = lengths[row].saturating_sub(*width));
            }
            BoundColumn::Bytes { values, .. } => values.lengths(first, valid, lengths)?,
            BoundColumn::Encoded { element, .. } => {
                return self.encode_values(element, first, lengths, budget);
            }
            BoundColumn::Dictionary { keys, .. } => {
                for (row, length) in lengths.iter_mut().enumerate() {
                    if valid.is_valid(row) {
                        *length = longer(*length, self.encoded.value(keys.key(first + row)).len());
                    }
                }
            }
        }
        Ok(lengths.len())
    }

    /// Encodes values whose lengths are not known before, and adds these. Returns for how many rows: fewer if
    /// the values fill `budget` bytes before.
    fn encode_values(
        &mut self,
        element: &BoundElement<'_>,
        first: usize,
        lengths: &mut [u32],
        budget: usize,
    ) -> Result<usize, Fault> {
        let valid = &self.valid;
        self.encoded.clear();
        if let BoundElement::Numeric { values, scale, display } = element
            && values.short_numerics(first, valid, lengths.len(), (*scale, *display), &mut self.numerics)
        {
            for (row, (length, numeric)) in lengths.iter_mut().zip(&self.numerics).enumerate() {
                let bytes = if valid.is_valid(row) { numeric.length() } else { 0 };
                *length = length.saturating_add(bytes);
            }
            return Ok(lengths.len());
        }
        self.numerics.clear();
        for (row, length) in lengths.iter_mut().enumerate() {
            let start = self.encoded.bytes.len();
            if start > budget {
                return Ok(row);
            }
            if valid.is_valid(row) {
                element
                    .write(first + row, &mut self.encoded.bytes)
                    .map_err(|fault| Fault { row, ..fault })?;
            }
            *length = longer(*length, self.encoded.bytes.len() - start);
            self.encoded.push(false);
        }
        Ok(lengths.len())
    }

    /// Encodes the entries of a dictionary once, for all rows that refer to them. The batches of one
    /// dictionary page share the same entries.
    fn encode_entries(
        &mut self,
        element: &Element,
        entries: &ArrayRef,
        keys: &Keys<'_>,
        array: &ArrayRef,
    ) -> Result<(), Fault> {
        if self.entries_of.as_ref().is_some_and(|old| std::sync::Arc::ptr_eq(old, entries)) {
            return Ok(());
        }
        self.entries_of = None;
        self.encoded.clear();
        let bound = element.bind(entries).map_err(|what| Fault::new(0, what))?;
        let (mut refused, mut all_fit) = (None, true);
        for entry in 0..entries.len() {
            let start = self.encoded.bytes.len();
            let missing = entries.is_null(entry)
                || match bound.write(entry, &mut self.encoded.bytes) {
                    Ok(written) => !written,
                    Err(fault) => {
                        // An entry is a fault only if a row refers to it.
                        all_fit = false;
                        self.encoded.bytes.truncate(start);
                        let row =
                            (0..array.len()).find(|row| array.is_valid(*row) && keys.key(*row) == entry);
                        refused = refused.or(row.map(|row| Fault { row, ..fault }));
                        true
                    }
                };
            self.encoded.push(missing);
        }
        match refused {
            Some(fault) => Err(fault),
            None => {
                // A later batch may refer to the entry that does not fit.
                self.entries_of = all_fit.then(|| std::sync::Arc::clone(entries));
                Ok(())
            }
        }
    }
}

/// Adds bytes to the length of a row. The sum saturates at 32 bits, which is still too long.
fn longer(length: u32, bytes: usize) -> u32 {
    length.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// Returns the bytes of a column's value in a row of the block being laid out.
fn value_bytes(column: &BoundColumn<'_>, layout: &ColumnLayout, first: usize, row: usize) -> usize {
    if !layout.valid.is_valid(row) {
        return 0;
    }
    match column {
        BoundColumn::Null => 0,
        BoundColumn::Fixed { width, .. } => *width as usize,
        BoundColumn::Bytes { values, .. } => values.value(first + row).len(),
        BoundColumn::Encoded { .. } => match layout.numerics.get(row) {
            Some(numeric) => numeric.length() as usize,
            None => layout.encoded.value(row).len(),
        },
        BoundColumn::Dictionary { keys, .. } => layout.encoded.value(keys.key(first + row)).len(),
    }
}

/// The error for a row that exceeds PostgreSQL's limit, at the column with its longest value.
#[cold]
fn too_long(
    bound: &[BoundColumn<'_>],
    layouts: &[ColumnLayout],
    (first, row): (usize, usize),
    length: u32,
) -> (usize, Fault) {
    let widths = bound.iter().zip(layouts).map(|(column, layout)| value_bytes(column, layout, first, row));
    let (column, width) = widths.enumerate().max_by_key(|(_, width)| *width).unwrap_or_default();
    let what = format!(
        "the row takes at least {length} bytes; PostgreSQL's limit is 1 GiB. Its longest value, in this column, \
         takes {width} bytes"
    );
    (column, Fault::new(row, what))
}

impl CopyEncoder {
    /// Fills `positions` with the lengths of up to `rows` rows, starting at `first`. Returns how many rows
    /// were laid out (fewer if their encoded values already fill a buffer), and their bytes.
    pub(crate) fn lay_out(
        &mut self,
        bound: &[BoundColumn<'_>],
        first: usize,
        rows: usize,
    ) -> Result<(usize, usize), (usize, Fault)> {
        let Self { layouts, positions, columns, .. } = self;
        let budget = self.buffer.room();
        // The field count, and a length for each column.
        let mut constant = 2 + 4 * columns.len();
        for (column, layout) in bound.iter().zip(layouts.iter_mut()) {
            layout.read_valid(column, first, rows);
            if let BoundColumn::Fixed { width, .. } = column {
                constant += *width as usize;
            }
        }
        let lengths = &mut *positions;
        lengths.fill(u32::try_from(constant).unwrap_or(u32::MAX));
        let mut rows = rows;
        for (index, (column, layout)) in bound.iter().zip(layouts.iter_mut()).enumerate() {
            rows = layout
                .add_lengths(column, first, &mut lengths[..rows], budget)
                .map_err(|fault| (index, fault))?;
        }
        let mut bytes = 0;
        for (row, length) in lengths[..rows].iter().enumerate() {
            // The length of a field has 32 bits, the length of a protocol message 31.
            if *length >= 1 << 30 {
                return Err(too_long(bound, layouts, (first, row), *length));
            }
            bytes += *length as usize;
        }
        Ok((rows, bytes))
    }

    /// Returns how many of the rows that were laid out go into the buffer now: all of them, or as many as
    /// fit, or one row that is larger than the buffer.
    pub(crate) fn fitting(&self, rows: usize, bytes: usize) -> (usize, usize) {
        let room = self.buffer.room().saturating_sub(self.buffer.filled);
        if bytes <= room {
            return (rows, bytes);
        }
        let (mut fitting, mut sum) = (0, 0);
        for length in &self.positions[..rows] {
            let next = sum + *length as usize;
            if next > room && fitting > 0 {
                break;
            }
            fitting += 1;
            sum = next;
        }
        (fitting, sum)
    }
}
