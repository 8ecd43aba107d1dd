//! Second step of a block: the columns write their fields into the rows.

use super::fields::{
    write_field_counts, write_nullable_words, write_nulls, write_numerics, write_values, write_words,
};
use super::layout::{BoundColumn, ColumnLayout};
use super::observer::{EncodedRows, RowObserver};
use super::valid::Valid;
use crate::arrays::fault::Fault;
use crate::rows::buffers::SLACK;
use crate::rows::encoder::CopyEncoder;
use crate::values::element;
use crate::values::fixed_width::BLOCK;

/// Columns that are written in one pass over the rows.
pub(crate) const MAX_TOGETHER: usize = 4;

impl CopyEncoder {
    /// Writes the first `rows` rows that were laid out, `bytes` bytes.
    pub(crate) fn write_rows(
        &mut self,
        bound: &[BoundColumn<'_>],
        first: usize,
        rows: usize,
        bytes: usize,
        observer: &mut dyn RowObserver,
    ) -> Result<(), (usize, Fault)> {
        self.buffer.reserve(bytes);
        let base = self.buffer.filled;
        let Self { layouts, positions, starts, words, buffer, .. } = self;
        let out = &mut buffer.bytes[base..base + bytes + SLACK];
        let positions = &mut positions[..rows];
        let mut at = 0;
        for (position, start) in positions.iter_mut().zip(starts.iter_mut()) {
            *start = at;
            at += std::mem::replace(position, at);
        }
        write_field_counts(out, positions, bound.len() as u16);

        let mut index = 0;
        while index < bound.len() {
            let run = run_of_words(&bound[index..], &layouts[index..], rows);
            if run > 0 {
                write_run(&bound[index..index + run], first, out, positions, words)
                    .map_err(|(column, fault)| (index + column, fault))?;
                index += run;
                continue;
            }
            let (column, layout) = (&bound[index], &layouts[index]);
            let valid = &layout.valid;
            match column {
                BoundColumn::Null => write_nulls(out, positions),
                BoundColumn::Fixed { words: values, width, array } => {
                    let words = values
                        .of_rows(first, valid, &mut words[0][..rows])
                        .map_err(|fault| (index, element::refused(fault, array.data_type())))?;
                    match width {
                        1 => write_nullable_words::<1>(out, positions, words, valid),
                        2 => write_nullable_words::<2>(out, positions, words, valid),
                        4 => write_nullable_words::<4>(out, positions, words, valid),
                        _ => write_nullable_words::<8>(out, positions, words, valid),
                    }
                }
                BoundColumn::Bytes { values, .. } => values.write(first, valid, out, positions),
                BoundColumn::Encoded { .. } if !layout.numerics.is_empty() => {
                    write_numerics(out, positions, valid, &layout.numerics);
                }
                BoundColumn::Encoded { .. } => {
                    write_values(out, positions, valid, |row| layout.encoded.value(row));
                }
                BoundColumn::Dictionary { keys, .. } => {
                    write_values(out, positions, valid, |row| layout.encoded.value(keys.key(first + row)));
                }
            }
            index += 1;
        }

        // Each column has advanced the positions to the next field, and the last one to the end of the row.
        // No column rejects a value after this point, so the observer never receives rejected rows.
        observer.rows(&EncodedRows { bytes: out, starts: &starts[..rows], ends: positions, bound, layouts });
        self.buffer_rows += rows as u64;
        self.buffer.filled += bytes;
        Ok(())
    }
}

/// Returns how many of the next columns can be written together: fixed-width columns of the same width
/// without NULLs. Zero if the first one is not among these.
fn run_of_words(bound: &[BoundColumn<'_>], layouts: &[ColumnLayout], rows: usize) -> usize {
    let Some(BoundColumn::Fixed { width: first, .. }) = bound.first() else { return 0 };
    let alike = |(column, layout): &(&BoundColumn<'_>, &ColumnLayout)| {
        matches!(column, BoundColumn::Fixed { width, .. } if width == first)
            && layout.valid.nulls_among(rows) == 0
    };
    match bound.iter().zip(layouts).take(MAX_TOGETHER).take_while(alike).count() {
        3 => 2,
        columns => columns,
    }
}

/// Writes one, two or four such columns. The error names the column.
fn write_run(
    run: &[BoundColumn<'_>],
    first: usize,
    out: &mut [u8],
    positions: &mut [u32],
    words: &mut [[u64; BLOCK]; MAX_TOGETHER],
) -> Result<(), (usize, Fault)> {
    let mut of_columns: [&[u64]; MAX_TOGETHER] = [&[]; MAX_TOGETHER];
    let mut bytes = 8;
    for (place, ((column, of_column), room)) in run.iter().zip(&mut of_columns).zip(words).enumerate() {
        let BoundColumn::Fixed { words, width, array } = column else { continue };
        bytes = *width;
        *of_column = words
            .of_rows(first, &Valid::all(), &mut room[..positions.len()])
            .map_err(|fault| (place, element::refused(fault, array.data_type())))?;
    }
    macro_rules! write {
        ($width:literal) => {
            match of_columns {
                [a, b, c, d] if run.len() == 4 => write_words::<$width, 4>(out, positions, [a, b, c, d]),
                [a, b, ..] if run.len() == 2 => write_words::<$width, 2>(out, positions, [a, b]),
                [a, ..] => write_words::<$width, 1>(out, positions, [a]),
            }
        };
    }
    match bytes {
        1 => write!(1),
        2 => write!(2),
        4 => write!(4),
        _ => write!(8),
    }
    Ok(())
}
