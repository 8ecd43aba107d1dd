//! Finds row numbers in the chunks that `tpchgen` computes, and appends their rows.

use std::fmt;
use std::ops::Range;

use crate::shred::block::LeafBuffer;
use crate::shred::row_maker::{RowCursor, RowMaker};

/// About how many orders, parts or other keys a chunk has: reaching one takes microseconds, its rows a
/// millisecond.
const CHUNK: i64 = 2048;

/// Where the chunks of a table begin.
#[derive(Debug)]
pub(crate) enum Starts {
    /// Each chunk but the last has this many rows.
    Every(u64),
    /// The first row of each chunk.
    Listed(Vec<u64>),
}

/// A division of `keys` into chunks of the same number, of which the last also has the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub chunks: i32,
    pub keys_a_chunk: u64,
}

impl Division {
    pub(crate) fn of(keys: i64) -> Self {
        let chunks = (keys / CHUNK).clamp(1, i64::from(i32::MAX));
        Division { chunks: chunks as i32, keys_a_chunk: (keys / chunks).max(1) as u64 }
    }
}

/// A table: its chunks, and how a row is appended.
pub(crate) struct Table<I: Iterator> {
    pub scale: f64,
    pub rows: u64,
    pub chunks: i32,
    pub starts: Starts,
    /// The rows of chunk `part` of `parts`, from 1 up.
    pub open: fn(scale: f64, part: i32, parts: i32) -> I,
    pub append: fn(row: &I::Item, leaves: &mut [LeafBuffer]),
}

impl<I: Iterator> fmt::Debug for Table<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("scale", &self.scale).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<I: Iterator> Table<I> {
    /// The chunk of a row, from 0 up, and its first row.
    fn chunk_of(&self, row: u64) -> (i32, u64) {
        match &self.starts {
            Starts::Every(rows) => {
                let chunk = (row / rows).min(self.chunks as u64 - 1);
                (chunk as i32, chunk * rows)
            }
            Starts::Listed(starts) => {
                let chunk = starts.partition_point(|start| *start <= row).saturating_sub(1);
                (chunk as i32, starts.get(chunk).copied().unwrap_or(0))
            }
        }
    }
}

impl<I: Iterator + 'static> RowMaker for Table<I> {
    fn cursor(&self) -> Box<dyn RowCursor + '_> {
        Box::new(Cursor { table: self, open: None })
    }
}

/// Goes through a table from chunk to chunk.
struct Cursor<'a, I: Iterator> {
    table: &'a Table<I>,
    open: Option<OpenChunk<I>>,
}

struct OpenChunk<I> {
    chunk: i32,
    /// The number of the row that `rows` yields next.
    next: u64,
    rows: I,
}

impl<I: Iterator> fmt::Debug for Cursor<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("next", &self.open.as_ref().map(|open| open.next)).finish()
    }
}

impl<I: Iterator> Cursor<'_, I> {
    /// The open chunk, whose next row is `row`.
    fn at(&mut self, row: u64) -> OpenChunk<I> {
        if let Some(open) = self.open.take().filter(|open| open.next == row) {
            return open;
        }
        let (chunk, mut next) = self.table.chunk_of(row);
        let mut rows = (self.table.open)(self.table.scale, chunk + 1, self.table.chunks);
        while next < row && rows.next().is_some() {
            next += 1;
        }
        OpenChunk { chunk, next, rows }
    }
}

impl<I: Iterator> RowCursor for Cursor<'_, I> {
    /// Rows after the last one of the table are those from its beginning: samples may ask for more than it has.
    fn append(&mut self, rows: Range<u64>, leaves: &mut [LeafBuffer]) {
        let table = self.table;
        let mut at = rows.start;
        while at < rows.end {
            let row = at % table.rows;
            let mut open = self.at(row);
            let end = rows.end.min(at + (table.rows - row));
            while at < end {
                match open.rows.next() {
                    Some(row) => (table.append)(&row, leaves),
                    None => {
                        // The last chunk ends with the table, which `end` does not pass.
                        open.chunk += 1;
                        open.rows = (table.open)(table.scale, open.chunk + 1, table.chunks);
                        continue;
                    }
                }
                open.next += 1;
                at += 1;
            }
            self.open = Some(open);
        }
    }
}
