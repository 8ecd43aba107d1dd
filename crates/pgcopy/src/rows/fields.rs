//! Writes the fields of one column into the rows of a block.
//!
//! `positions` contains the place of the next field of each row; each function advances it. Fields are
//! written from left to right, the first fields of all rows before their second ones. The bytes after a field
//! must stay unchanged: they belong to the next row. Loops do not branch on values: for a NULL they store the
//! bytes that were already there in place of a value. The slack at the end of a buffer always has room for
//! it.
//!
//! Each loop is a separate function: if all were inlined into one, their variables would no longer fit into
//! registers.

use super::valid::Valid;
use crate::arrays::inline_view::BEYOND;
use crate::values::short_numeric::ShortNumeric;

/// The length field of a NULL.
const NULL: u32 = (-1i32).cast_unsigned();

/// Writes the number of fields, with which each row begins.
#[inline(never)]
pub(crate) fn write_field_counts(out: &mut [u8], positions: &mut [u32], fields: u16) {
    for position in positions {
        put(out, *position, fields.to_be_bytes());
        *position += 2;
    }
}

/// Writes a column of NULLs.
#[inline(never)]
pub(crate) fn write_nulls(out: &mut [u8], positions: &mut [u32]) {
    for position in positions {
        put(out, *position, NULL.to_be_bytes());
        *position += 4;
    }
}

/// Writes `N` adjacent columns without NULLs, whose values are the low `W` bytes of a word. The position of a
/// row is read and advanced once for all of them.
#[inline(never)]
pub(crate) fn write_words<const W: usize, const N: usize>(
    out: &mut [u8],
    positions: &mut [u32],
    words: [&[u64]; N],
) {
    let words = words.map(|words| &words[..positions.len()]);
    for (row, position) in positions.iter_mut().enumerate() {
        let at = *position as usize;
        let fields = &mut out[at..at + N * (4 + W)];
        for (field, words) in fields.chunks_exact_mut(4 + W).zip(words) {
            field[..4].copy_from_slice(&(W as u32).to_be_bytes());
            field[4..].copy_from_slice(&words[row].to_be_bytes()[8 - W..]);
        }
        *position += (N * (4 + W)) as u32;
    }
}

/// Writes a column of such values, with NULLs.
#[inline(never)]
pub(crate) fn write_nullable_words<const W: usize>(
    out: &mut [u8],
    positions: &mut [u32],
    words: &[u64],
    valid: &Valid,
) {
    for ((positions, words), bits) in positions.chunks_mut(64).zip(words.chunks(64)).zip(valid.bits()) {
        let mut bits = *bits;
        for (position, word) in positions.iter_mut().zip(words) {
            let at = *position as usize;
            let field = &mut out[at..at + 4 + W];
            let mut there = [0; 8];
            there[8 - W..].copy_from_slice(&field[4..]);
            let is_valid = bits & 1 == 1;
            bits >>= 1;
            let (length, value, step) = match is_valid {
                true => (W as u32, *word, 4 + W as u32),
                false => (NULL, u64::from_be_bytes(there), 4),
            };
            field[..4].copy_from_slice(&length.to_be_bytes());
            field[4..].copy_from_slice(&value.to_be_bytes()[8 - W..]);
            *position += step;
        }
    }
}

/// Writes values of any length; `value` returns the value of a row that is not NULL.
#[inline(always)]
pub(crate) fn write_values<'a>(
    out: &mut [u8],
    positions: &mut [u32],
    valid: &Valid,
    value: impl Fn(usize) -> &'a [u8],
) {
    let no_nulls = valid.nulls() == 0;
    for (row, position) in positions.iter_mut().enumerate() {
        if no_nulls || valid.is_valid(row) {
            *position = put_value(out, *position, value(row));
        } else {
            put(out, *position, NULL.to_be_bytes());
            *position += 4;
        }
    }
}

/// Writes short numerics.
#[inline(never)]
pub(crate) fn write_numerics(
    out: &mut [u8],
    positions: &mut [u32],
    valid: &Valid,
    numerics: &[ShortNumeric],
) {
    for (row, (position, numeric)) in positions.iter_mut().zip(numerics).enumerate() {
        let at = *position as usize;
        if valid.is_valid(row) {
            *position += numeric.write(&mut out[at..at + ShortNumeric::MAX_BYTES]);
        } else {
            put(out, *position, NULL.to_be_bytes());
            *position += 4;
        }
    }
}

/// Writes the values of views
/// (<https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>): a 32-bit length,
/// and up to 12 bytes in the view itself, padded with zeros. Except for the byte order of its length, this
/// view is a field already. `value` returns the longer value of a row.
#[inline(always)]
pub(crate) fn write_views<'a>(
    out: &mut [u8],
    positions: &mut [u32],
    valid: &Valid,
    views: &[u128],
    value: impl Fn(usize) -> &'a [u8],
) {
    let rows = positions.iter_mut().zip(views).enumerate();
    for (row, (position, view)) in rows {
        let is_valid = valid.is_valid(row);
        let length = if is_valid { *view as u32 } else { 0 };
        let Some(beyond) = BEYOND.get(length as usize) else {
            *position = put_value(out, *position, value(row));
            continue;
        };
        let at = *position as usize;
        let field = &mut out[at..at + 16];
        let mut there = [0; 16];
        there.copy_from_slice(field);
        let prefix = if is_valid { length } else { NULL };
        let new = (*view & !u128::from(u32::MAX) & !beyond) | u128::from(prefix.swap_bytes());
        field.copy_from_slice(&(new | u128::from_le_bytes(there) & beyond).to_le_bytes());
        *position += 4 + length;
    }
}

#[inline(always)]
pub(crate) fn put<const N: usize>(out: &mut [u8], at: u32, bytes: [u8; N]) {
    let at = at as usize;
    out[at..at + N].copy_from_slice(&bytes);
}

/// Writes length and bytes of a value; returns the place of the next field.
#[inline(always)]
pub(crate) fn put_value(out: &mut [u8], at: u32, value: &[u8]) -> u32 {
    let length = value.len() as u32;
    let (prefix, rest) = out[at as usize..][..4 + value.len()].split_at_mut(4);
    prefix.copy_from_slice(&length.to_be_bytes());
    copy(rest, value);
    at + 4 + length
}

/// Copies short values without a call, as two pieces that may overlap.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    macro_rules! pieces {
        ($n:literal) => {
            if let (Some(first), Some(last)) = (from.first_chunk::<$n>(), from.last_chunk::<$n>()) {
                to[..$n].copy_from_slice(first);
                let end = to.len();
                to[end - $n..].copy_from_slice(last);
                return;
            }
        };
    }
    match from.len() {
        0 => {}
        1..=3 => {
            // Both ends and the middle.
            let (middle, end) = (from.len() / 2, from.len() - 1);
            (to[0], to[middle], to[end]) = (from[0], from[middle], from[end]);
        }
        4..=7 => pieces!(4),
        8..=16 => pieces!(8),
        17..=32 => pieces!(16),
        33..=64 => pieces!(32),
        _ => to.copy_from_slice(from),
    }
}
