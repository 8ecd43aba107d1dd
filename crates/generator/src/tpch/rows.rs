//! Finds row numbers in chunks of keys, and appends their rows.

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

/// A division of `keys` into chunks of the same number; the last one also has the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub chunks: i32,
    pub keys_a_chunk: u64,
}

impl Division {
    pub(crate) fn new(keys: i64) -> Self {
        let chunks = (keys / CHUNK).clamp(1, i64::from(i32::MAX));
        Division { chunks: chunks as i32, keys_a_chunk: (keys / chunks).max(1) as u64 }
    }
}

/// The rows of a chunk, in order.
pub(crate) trait ChunkRows {
    /// Appends up to `most` of the next rows, fewer only at the chunk's end; returns how many.
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize;

    /// Passes over rows.
    fn skip(&mut self, rows: u64);
}

/// A table: its chunks, and what makes their rows.
pub(crate) struct Table<R> {
    pub scale: f64,
    pub rows: u64,
    pub division: Division,
    pub starts: Starts,
    /// The rows of a chunk.
    pub open: fn(scale: f64, chunk: Chunk) -> R,
}

/// A chunk of a division, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub index: i32,
    pub division: Division,
}

impl Chunk {
    /// Its number for `tpchgen`, which counts from 1.
    pub(crate) fn part(self) -> i32 {
        self.index + 1
    }

    /// Its first key, counted from 0.
    pub(crate) fn first_key(self) -> u64 {
        self.index as u64 * self.division.keys_a_chunk
    }
}

impl<R> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("scale", &self.scale).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<R> Table<R> {
    /// The chunk of a row, from 0 up, and its first row.
    fn chunk_of(&self, row: u64) -> (i32, u64) {
        match &self.starts {
            Starts::Every(rows) => {
                let chunk = (row / rows).min(self.division.chunks as u64 - 1);
                (chunk as i32, chunk * rows)
            }
            Starts::Listed(starts) => {
                let chunk = starts.partition_point(|start| *start <= row).saturating_sub(1);
                (chunk as i32, starts.get(chunk).copied().unwrap_or(0))
            }
        }
    }
}

impl<R: ChunkRows + 'static> RowMaker for Table<R> {
    fn cursor(&self) -> Box<dyn RowCursor + '_> {
        Box::new(Cursor { table: self, open: None })
    }
}

/// Goes through a table from chunk to chunk.
struct Cursor<'a, R> {
    table: &'a Table<R>,
    open: Option<OpenChunk<R>>,
}

struct OpenChunk<R> {
    chunk: i32,
    /// The number of the row that `rows` makes next.
    next: u64,
    rows: R,
}

impl<R> fmt::Debug for Cursor<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("next", &self.open.as_ref().map(|open| open.next)).finish()
    }
}

impl<R: ChunkRows> Cursor<'_, R> {
    /// The rows of a chunk.
    fn chunk(&self, index: i32) -> R {
        (self.table.open)(self.table.scale, Chunk { index, division: self.table.division })
    }

    /// The open chunk, whose next row is `row`.
    fn at(&mut self, row: u64) -> OpenChunk<R> {
        if let Some(open) = self.open.take().filter(|open| open.next == row) {
            return open;
        }
        let (chunk, first) = self.table.chunk_of(row);
        let mut rows = self.chunk(chunk);
        rows.skip(row - first);
        OpenChunk { chunk, next: row, rows }
    }
}

impl<R: ChunkRows> RowCursor for Cursor<'_, R> {
    /// Rows after the last one of the table are those from its beginning: samples may ask for more than it has.
    fn append(&mut self, rows: Range<u64>, leaves: &mut [LeafBuffer]) {
        let table = self.table;
        let mut at = rows.start;
        while at < rows.end {
            let row = at % table.rows;
            let mut open = self.at(row);
            let end = rows.end.min(at + (table.rows - row));
            while at < end {
                let made = open.rows.append((end - at) as usize, leaves) as u64;
                if made == 0 {
                    // The last chunk ends with the table, which `end` does not pass.
                    open.chunk += 1;
                    open.rows = self.chunk(open.chunk);
                }
                open.next += made;
                at += made;
            }
            self.open = Some(open);
        }
    }
}
