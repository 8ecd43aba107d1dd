//! Short texts in cells: copied in one or two registers after a look whether JSON escapes anything of them.
//!
//! Longer ones, and those with something to escape, are marked and written when it is their row's turn.

use std::ops::Range;

use arrow_array::GenericByteViewArray;
use arrow_array::types::StringViewType;
use arrow_buffer::ArrowNativeType;

use crate::encode::json;
use crate::encode::json_cells::{Cell, LENGTH, NOT_HERE};

/// Text of a cell: what is left beside comma, quotation marks and length.
const SHORT_TEXT: usize = LENGTH - 3;

/// The view itself holds texts of up to twelve bytes.
pub(crate) fn short_views<'c>(
    views: &GenericByteViewArray<StringViewType>,
    rows: Range<usize>,
    cells: impl Iterator<Item = &'c mut Cell>,
) {
    for ((view, row), cell) in views.views()[rows.clone()].iter().zip(rows).zip(cells) {
        cell[0] = b',';
        let length = *view as u32;
        if length > 12 {
            cell[LENGTH] = short_text(views.value(row).as_bytes(), cell);
            continue;
        }
        let bytes = view >> 32;
        // What is behind the text is made to blanks, which need no escape.
        let blank = u128::MAX.checked_shl(8 * length).unwrap_or(0) & BLANKS;
        let masked = bytes | blank;
        if json::any_escaped(masked as u64) | json::any_escaped((masked >> 64) as u64) {
            cell[LENGTH] = NOT_HERE;
            continue;
        }
        cell[1] = b'"';
        cell[2..18].copy_from_slice(&bytes.to_le_bytes());
        cell[2 + length as usize] = b'"';
        cell[LENGTH] = 3 + length as u8;
    }
}

const BLANKS: u128 = 0x2020_2020_2020_2020_2020_2020_2020_2020;

pub(crate) fn short_texts<'c, O: ArrowNativeType>(
    offsets: &[O],
    data: &[u8],
    rows: Range<usize>,
    cells: impl Iterator<Item = &'c mut Cell>,
) {
    for (ends, cell) in offsets[rows.start..=rows.end].windows(2).zip(cells) {
        cell[0] = b',';
        cell[LENGTH] = short_text(&data[ends[0].as_usize()..ends[1].as_usize()], cell);
    }
}

/// A text that fits and needs no escape.
#[inline]
fn short_text(text: &[u8], cell: &mut Cell) -> u8 {
    if text.len() > SHORT_TEXT || json::first_escaped(text).is_some() {
        return NOT_HERE;
    }
    cell[1] = b'"';
    cell[2..2 + text.len()].copy_from_slice(text);
    cell[2 + text.len()] = b'"';
    3 + text.len() as u8
}
