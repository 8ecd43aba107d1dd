//! Lines of files, for messages.

use memchr::memchr_iter;
use sawmill_footer::RangeReader;

use super::boundaries::Mark;

/// Bytes that are read at once.
const BLOCK: u64 = 1 << 20;

/// Returns the number of the line that contains the byte at `offset`, from 1; `None` if the file cannot be
/// read. Counts from the nearest mark.
pub(crate) fn line_of(file: &dyn RangeReader, marks: &[Mark], newline: u8, offset: u64) -> Option<u64> {
    let near =
        marks.partition_point(|mark| mark.offset <= offset).checked_sub(1).and_then(|at| marks.get(at));
    let (mut at, mut lines) = near.map_or((0, 0), |mark| (mark.offset, mark.lines));
    let mut block = Vec::new();
    while at < offset {
        block.resize(BLOCK.min(offset - at) as usize, 0);
        file.read_exact_at(at, &mut block).ok()?;
        lines += memchr_iter(newline, &block).count() as u64;
        at += block.len() as u64;
    }
    Some(lines + 1)
}

/// Returns a value as a message shows it: escaped, and its start if it is long.
pub(crate) fn shown(value: &[u8]) -> String {
    const MAX: usize = 60;
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * MAX)]);
    let mut start: String = text.chars().take(MAX).collect();
    if start.len() < value.len() && start.chars().count() == MAX {
        start.push('…');
    }
    format!("{start:?}")
}
