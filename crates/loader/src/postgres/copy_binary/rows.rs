//! Second step of a block: the columns write their fields into the rows.

use super::fault::Fault;
use super::fixed_width::BLOCK;
use super::layout::BoundColumn;
use super::{CopyEncoder, element};

/// The length of a NULL.
const NULL: [u8; 4] = (-1i32).to_be_bytes();

impl CopyEncoder {
    /// Writes the first `rows` rows that were laid out, `bytes` bytes.
    pub(super) fn write_rows(
        &mut self,
        bound: &[BoundColumn<'_>],
        first: usize,
        rows: usize,
        bytes: usize,
    ) -> Result<(), (usize, Fault)> {
        self.buffer.reserve(bytes);
        let base = self.buffer.filled;
        let Self { layouts, positions, starts, words, template, buffer, tally, .. } = self;
        let out = &mut buffer.bytes[base..base + bytes];
        let positions = &mut positions[..rows];
        let fields = (bound.len() as u16).to_be_bytes();
        let mut at = 0;
        for (position, start) in positions.iter_mut().zip(starts.iter_mut()) {
            *start = at;
            let length = std::mem::replace(position, at + 2);
            put(out, at, fields);
            at += length;
        }

        let mut column = 0;
        while column < bound.len() {
            let run = bound[column..]
                .iter()
                .zip(&layouts[column..])
                .take_while(|(bound, layout)| {
                    matches!(bound, BoundColumn::Fixed { .. }) && layout.valid.nulls_among(rows) == 0
                })
                .count();
            if run > 0 {
                write_run(&bound[column..column + run], first, out, positions, words, template)
                    .map_err(|(offset, fault)| (column + offset, fault))?;
                for non_null in &mut tally.non_null[column..column + run] {
                    *non_null += rows as u64;
                }
                column += run;
                continue;
            }
            let layout = &layouts[column];
            let valid = &layout.valid;
            match &bound[column] {
                BoundColumn::Null => {
                    for position in positions.iter_mut() {
                        put(out, *position, NULL);
                        *position += 4;
                    }
                }
                BoundColumn::Fixed { words: values, width, array } => {
                    let words = &mut words[..rows];
                    values
                        .fill(first, valid, words)
                        .map_err(|fault| (column, element::refused(fault, array.data_type())))?;
                    macro_rules! write {
                        ($t:ty) => {
                            for (row, (position, word)) in positions.iter_mut().zip(words).enumerate() {
                                if valid.is_valid(row) {
                                    put(out, *position, width.to_be_bytes());
                                    put(out, *position + 4, (*word as $t).to_be_bytes());
                                    *position += 4 + *width;
                                } else {
                                    put(out, *position, NULL);
                                    *position += 4;
                                }
                            }
                        };
                    }
                    match width {
                        1 => write!(u8),
                        2 => write!(u16),
                        4 => write!(u32),
                        _ => write!(u64),
                    }
                }
                BoundColumn::Bytes { values, .. } => {
                    for (row, position) in positions.iter_mut().enumerate() {
                        let value = valid.is_valid(row).then(|| values.value(first + row));
                        *position = put_value(out, *position, value);
                    }
                }
                BoundColumn::Encoded { .. } => {
                    for (row, position) in positions.iter_mut().enumerate() {
                        let value = valid.is_valid(row).then(|| layout.encoded.value(row));
                        *position = put_value(out, *position, value);
                    }
                }
                BoundColumn::Dictionary { keys, .. } => {
                    for (row, position) in positions.iter_mut().enumerate() {
                        let value = valid.is_valid(row).then(|| layout.encoded.value(keys.key(first + row)));
                        *position = put_value(out, *position, value);
                    }
                }
            }
            tally.non_null[column] += match &bound[column] {
                BoundColumn::Null => 0,
                _ => (rows - valid.nulls_among(rows)) as u64,
            };
            column += 1;
        }

        // Each column has moved each position to where the next field goes: now to the row's end.
        for (start, end) in starts.iter().zip(positions.iter()) {
            tally.content_sum.add(&out[*start as usize..*end as usize]);
        }
        tally.rows += rows as u64;
        self.buffer_rows += rows as u64;
        self.buffer.filled += bytes;
        Ok(())
    }
}

/// Neighbouring fixed-width columns without NULLs: their lengths come from a template that is
/// copied into each row, then each column stores its values at its place.
fn write_run(
    run: &[BoundColumn<'_>],
    first: usize,
    out: &mut [u8],
    positions: &mut [u32],
    words: &mut [u64; BLOCK],
    template: &mut Vec<u8>,
) -> Result<(), (usize, Fault)> {
    let words = &mut words[..positions.len()];
    template.clear();
    for column in run {
        if let BoundColumn::Fixed { width, .. } = column {
            template.extend_from_slice(&width.to_be_bytes());
            template.resize(template.len() + *width as usize, 0);
        }
    }
    for position in positions.iter() {
        out[*position as usize..][..template.len()].copy_from_slice(template);
    }
    let mut offset = 4;
    for (i, column) in run.iter().enumerate() {
        let BoundColumn::Fixed { words: values, width, array } = column else { continue };
        values
            .fill(first, &super::valid::Valid::all(), words)
            .map_err(|fault| (i, element::refused(fault, array.data_type())))?;
        macro_rules! write {
            ($t:ty) => {
                for (position, word) in positions.iter().zip(words.iter()) {
                    put(out, *position + offset, (*word as $t).to_be_bytes());
                }
            };
        }
        match width {
            1 => write!(u8),
            2 => write!(u16),
            4 => write!(u32),
            _ => write!(u64),
        }
        offset += width + 4;
    }
    for position in positions.iter_mut() {
        *position += template.len() as u32;
    }
    Ok(())
}

#[inline(always)]
fn put<const N: usize>(out: &mut [u8], at: u32, bytes: [u8; N]) {
    out[at as usize..at as usize + N].copy_from_slice(&bytes);
}

/// Writes length and bytes of a value; returns where the next field goes.
#[inline(always)]
fn put_value(out: &mut [u8], at: u32, value: Option<&[u8]>) -> u32 {
    match value {
        None => {
            put(out, at, NULL);
            at + 4
        }
        Some(value) => {
            let length = value.len() as u32;
            put(out, at, length.to_be_bytes());
            out[at as usize + 4..][..value.len()].copy_from_slice(value);
            at + 4 + length
        }
    }
}
