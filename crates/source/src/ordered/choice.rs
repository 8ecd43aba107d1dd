//! Whether an index keeps copies of the rows: a sample says how scattered the rows of a window are.
//!
//! Copies are written and read one after the other, some 100 ns for a row of 70 bytes. Without them each row
//! that has no neighbours is a separate read: 1 µs where the file is in memory, and 60 µs on a disk that has
//! to be asked (`docs/csv.md`, scattered reads). Rows that are nearly in order have
//! neighbours, and wide ones take longer to copy than to find.

use super::addressed::{Addressed, Scattered};
use super::entry::ENTRY_BYTES;
use super::keys::{Book, Keying};
use super::rows::{WINDOW_BYTES, WINDOW_ROWS};
use super::workspace::{Keeps, Workspace};
use crate::control::Control;
use crate::error::Result;
use crate::units::Unit;

/// The sample: this many pieces of this many rows.
const PIECES: usize = 16;
const PIECE_ROWS: u64 = 512;

/// The share of rows without neighbours from which on copies are quicker.
const SCATTERED: f64 = 0.25;
/// The same if each such row takes the decoding of a block.
const SCATTERED_BLOCKS: f64 = 0.01;

/// Rows that are wider on average are not copied.
const WIDE: u64 = 4096;

/// The share of the free disk that copies may take.
const OF_DISK: f64 = 0.8;

/// Returns whether to keep copies of the rows.
pub(super) fn keeps_copies(
    addressed: &dyn Addressed,
    keying: &Keying,
    wanted: Keeps,
    workspace: &Workspace,
    control: &Control<'_>,
) -> Result<bool> {
    let Some(bytes) = addressed.record_bytes() else { return Ok(false) };
    let most = match addressed.scattered() {
        Scattered::RowGroups => return Ok(false),
        Scattered::Reads => SCATTERED,
        Scattered::Blocks => SCATTERED_BLOCKS,
    };
    match wanted {
        Keeps::Places => return Ok(false),
        Keeps::Copies => return Ok(true),
        Keeps::Either => {}
    }
    let rows = addressed.source().rows();
    if rows == 0 || (bytes / rows > WIDE && addressed.scattered() == Scattered::Reads) {
        return Ok(false);
    }
    let needed = disk_bytes(rows, Some(bytes));
    if workspace.free_bytes().is_some_and(|free| needed as f64 > free as f64 * OF_DISK) {
        return Ok(false);
    }
    let window = WINDOW_ROWS.min(WINDOW_BYTES / (bytes / rows).max(1));
    Ok(scattered(addressed, keying, window as f64 / rows as f64, control)? > most)
}

/// The bytes on disk while an index is built: with copies if the bytes of the rows are given.
pub(super) fn disk_bytes(rows: u64, copied: Option<u64>) -> u64 {
    let of_copies = copied.map_or(0, |bytes| bytes + rows * super::entry::COPY_BYTES as u64);
    rows * 2 * ENTRY_BYTES as u64 + of_copies
}

/// Estimates the share of rows that are not read together with the row before them in the file. A window has
/// this share of all rows.
fn scattered(addressed: &dyn Addressed, keying: &Keying, window: f64, control: &Control<'_>) -> Result<f64> {
    let parts = addressed.parts();
    let step = (parts.len() / PIECES).max(1);
    let book = Book::default();
    let (mut pages, mut numbers) = (book.pages(), Vec::new());
    // Each row with its piece; rows of a piece follow one another.
    let mut sample: Vec<(u32, (bool, i64), usize)> = Vec::new();
    for (piece, part) in parts.iter().step_by(step).enumerate() {
        let first = Unit { rows: part.rows.min(PIECE_ROWS), ..*part };
        addressed.scan(&first, &keying.columns, control, &mut |scanned| {
            keying.partitions(scanned.batch, &mut pages, &mut numbers)?;
            let times = keying.times(scanned.batch);
            for (row, partition) in numbers.iter().enumerate() {
                let time = times.as_ref().map_or(Some(0), |times| times.get(row).copied().flatten());
                sample.push((*partition, (time.is_none(), time.unwrap_or_default()), piece));
            }
            Ok(())
        })?;
    }
    drop(pages);
    // The numbers of partitions follow their discovery: any order will do.
    let mut order: Vec<usize> = (0..sample.len()).collect();
    order.sort_by_key(|row| sample.get(*row).map(|(partition, time, _)| (*partition, *time)));
    let mut ranks = vec![0_usize; sample.len()];
    for (rank, row) in order.iter().enumerate() {
        if let Some(of_row) = ranks.get_mut(*row) {
            *of_row = rank;
        }
    }
    let near = window * sample.len() as f64;
    let (mut pairs, mut far) = (0_u64, 0_u64);
    for (rows, ranks) in sample.windows(2).zip(ranks.windows(2)) {
        let ([before, row], [rank_before, rank]) = (rows, ranks) else { continue };
        if before.2 == row.2 {
            pairs += 1;
            let apart = before.0 != row.0 || rank.abs_diff(*rank_before) as f64 > near.max(1.0);
            far += u64::from(apart);
        }
    }
    Ok(far as f64 / pairs.max(1) as f64)
}
