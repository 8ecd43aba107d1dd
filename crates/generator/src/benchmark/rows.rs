//! Finds row numbers in chunks of keys, and appends their rows.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::thread;

use crate::benchmark::Benchmark;
use crate::shred::block::LeafBuffer;
use crate::shred::row_maker::{RowCursor, RowMaker};

/// About how many orders, parts or other keys a chunk has: reaching a chunk takes microseconds, making its rows a
/// millisecond.
const CHUNK: i64 = 2048;

/// Where the chunks of a table begin.
pub(crate) enum Starts {
    /// Each chunk but the last has this many rows.
    Every(u64),
    /// The first row of each chunk.
    Listed(Vec<u64>),
}

/// Divides `keys` into chunks of equal size; the last one also has the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    keys: u64,
    pub chunks: i32,
    keys_a_chunk: u64,
}

impl Division {
    pub(crate) fn new(keys: i64) -> Self {
        let chunks = (keys / CHUNK).clamp(1, i64::from(i32::MAX));
        let keys = keys.max(1);
        Division { keys: keys as u64, chunks: chunks as i32, keys_a_chunk: (keys / chunks) as u64 }
    }

    fn chunk(self, index: i32) -> Chunk {
        Chunk { index, division: self }
    }
}

/// A chunk of a division, counted from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    index: i32,
    pub division: Division,
}

impl Chunk {
    /// Its number for `tpchgen`, which counts from 1.
    pub(crate) fn part(self) -> i32 {
        self.index + 1
    }

    pub(crate) fn next(self) -> Self {
        Chunk { index: self.index + 1, ..self }
    }

    /// Its keys, counted from 0.
    pub(crate) fn keys(self) -> Range<u64> {
        let Division { keys, chunks, keys_a_chunk } = self.division;
        let start = self.index as u64 * keys_a_chunk;
        start..if self.index + 1 < chunks { start + keys_a_chunk } else { keys }
    }
}

/// The rows of a chunk, in order.
pub(crate) trait ChunkRows: Send {
    /// Appends up to `most` of the next rows, fewer only at the chunk's end; returns how many.
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize;

    fn skip(&mut self, rows: u64);
}

/// A table: its chunks, and what makes their rows.
pub(crate) struct Table<F> {
    benchmark: Benchmark,
    rows: u64,
    division: Division,
    starts: Starts,
    /// The rows of a chunk.
    open: F,
}

/// The number of rows of a table, and what makes them.
pub(crate) type Maker = (u64, Box<dyn RowMaker>);

impl<R: ChunkRows + 'static, F: Fn(Chunk) -> R + Send + Sync + 'static> Table<F> {
    /// A table with `rows_a_key` rows for each of `keys` keys.
    pub(crate) fn even(benchmark: Benchmark, keys: i64, rows_a_key: u64, open: F) -> Maker {
        let division = Division::new(keys);
        let rows = division.keys * rows_a_key;
        let starts = Starts::Every(division.keys_a_chunk * rows_a_key);
        (rows, Box::new(Table { benchmark, rows, division, starts, open }))
    }

    /// A table whose keys have varying numbers of rows. `count` counts the rows of consecutive chunks, on all cores.
    pub(crate) fn counted(
        benchmark: Benchmark,
        keys: i64,
        count: impl Fn(Chunk, &mut [u64]) + Sync,
        open: F,
    ) -> Maker {
        let division = Division::new(keys);
        let mut counts = vec![0u64; division.chunks as usize];
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = counts.len().div_ceil(cores.min(counts.len().div_ceil(64)));
        thread::scope(|scope| {
            for (place, counts) in counts.chunks_mut(share).enumerate() {
                let count = &count;
                scope.spawn(move || count(division.chunk((place * share) as i32), counts));
            }
        });
        let mut rows = 0;
        let starts = counts.iter().map(|count| {
            let start = rows;
            rows += count;
            start
        });
        let starts = Starts::Listed(starts.collect());
        (rows, Box::new(Table { benchmark, rows, division, starts, open }))
    }
}

impl<F> Table<F> {
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

impl<R: ChunkRows + 'static, F: Fn(Chunk) -> R + Send + Sync> RowMaker for Table<F> {
    fn benchmark(&self) -> Benchmark {
        self.benchmark
    }

    fn cursor(&self) -> Box<dyn RowCursor + '_> {
        Box::new(Cursor { table: self, open: None })
    }
}

/// Goes through a table from chunk to chunk.
struct Cursor<'a, F, R> {
    table: &'a Table<F>,
    open: Option<OpenChunk<R>>,
}

struct OpenChunk<R> {
    chunk: i32,
    /// The number of the row that `rows` makes next.
    next: u64,
    rows: R,
}

impl<R: ChunkRows, F: Fn(Chunk) -> R> Cursor<'_, F, R> {
    /// The rows of a chunk.
    fn chunk(&self, index: i32) -> R {
        (self.table.open)(self.table.division.chunk(index))
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

impl<R: ChunkRows, F: Fn(Chunk) -> R + Sync> RowCursor for Cursor<'_, F, R> {
    /// After its last row the table starts again: samples may ask for more rows than it has.
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
