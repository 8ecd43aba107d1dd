//! Definition and repetition levels of one block: the rows and values they describe, and raising them.
//!
//! Levels are bytes. A level is raised by one where the field is present. The loops count in pieces so short
//! that a byte can hold the count.

use std::ops::Range;

use crate::random::instruction_sets::widest;

/// The row of each entry of a leaf, and whether the entry is a value: it is if its level is `there`, or if
/// the leaf has no definition levels.
fn rows_of_entries(repetition: &[u8], definition: &[u8], there: u8) -> impl Iterator<Item = (usize, bool)> {
    let mut rows = 0;
    repetition.iter().enumerate().map(move |(i, level)| {
        rows += usize::from(*level == 0);
        (rows - 1, definition.get(i).is_none_or(|level| *level == there))
    })
}

/// The values of a leaf that belong to `rows`.
pub(crate) fn values_of_rows(
    rows: Range<usize>,
    repetition: &[u8],
    definition: &[u8],
    there: u8,
) -> Range<usize> {
    let before = |row: usize| {
        let entries = rows_of_entries(repetition, definition, there);
        entries.take_while(|(of, _)| *of < row).filter(|(_, there)| *there).count()
    };
    before(rows.start)..before(rows.end)
}

/// The row that value `value` of a leaf belongs to.
pub(crate) fn row_of_value(value: usize, repetition: &[u8], definition: &[u8], there: u8) -> usize {
    let mut values = rows_of_entries(repetition, definition, there).filter(|(_, there)| *there);
    values.nth(value).map_or(0, |(row, _)| row)
}

/// The entries that one byte can count.
const PIECE: usize = 255;

widest! {
/// Copies the levels and counts the live entries.
pub(crate) fn count_live(before: &[u8], live: u8, after: &mut [u8]) -> usize {
    after.copy_from_slice(before);
    let of_piece = |piece: &[u8]| usize::from(piece.iter().map(|level| u8::from(*level == live)).sum::<u8>());
    before.chunks(PIECE).map(of_piece).sum()
}
}

/// Raises the live entries whose word says so, and counts them.
#[inline(always)]
fn raise(before: &[u8], live: u8, words: &[u32], after: &mut [u8], is_there: impl Fn(u32) -> u8) -> usize {
    let mut there = 0;
    for ((before, words), after) in before.chunks(PIECE).zip(words.chunks(PIECE)).zip(after.chunks_mut(PIECE))
    {
        let mut raised = 0u8;
        for ((before, word), after) in before.iter().zip(words).zip(after) {
            let raise = u8::from(*before == live) & is_there(*word);
            *after = before + raise;
            raised += raise;
        }
        there += usize::from(raised);
    }
    there
}

widest! {
/// Raises the live entries whose draw is not null, and counts them.
pub(crate) fn raise_by_draw(before: &[u8], live: u8, draws: &[u32], threshold: u32, after: &mut [u8]) -> usize {
    raise(before, live, draws, after, |draw| u8::from(draw >> 1 >= threshold))
}
}

widest! {
/// Raises the live entries whose combination of fields has `bit`, and counts them.
pub(crate) fn raise_by_mask(before: &[u8], live: u8, masks: &[u32], bit: u32, after: &mut [u8]) -> usize {
    raise(before, live, masks, after, |mask| (mask >> bit) as u8 & 1)
}
}
