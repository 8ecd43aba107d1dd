//! What decoding stores for a column chunk: a packed row, or only its location.

use std::mem::MaybeUninit;

use crate::chunk::details;
use crate::chunk::rows::{self, Chunk, Packed, statistics_place};
use crate::decode::scan;
use crate::matching::engine::Engine;
use crate::matching::kernel::{Kernel, Values};
use crate::matching::shape::Shape;
use crate::memory::spare;
use crate::thrift::cursor::{Cursor, STRUCT, Step};

/// The location of a chunk in eight bytes: the offset of its struct in the footer (32 bits), the struct's
/// length (16 bits, 0 if longer) and the location of its statistics ([`statistics_place`]).
pub(crate) type Locator = u64;

/// The locator of a chunk between two offsets in the footer.
#[inline(always)]
pub(crate) fn locator(at: usize, end: usize, statistics: u16) -> Locator {
    let len = u16::try_from(end - at).unwrap_or(0);
    at as u64 | u64::from(len) << 32 | u64::from(statistics) << 48
}

/// A stored row; the walk is generic over both kinds.
pub(crate) trait Row: Copy + Send {
    /// Whether the row stores the chunk's values.
    const VALUES: bool;

    /// The row of a chunk that matched a shape; `None` if only a walk can decide.
    fn matched<K: Kernel>(kernel: K, values: &Values, at: usize, end: usize, shape: &Shape) -> Option<Self>;

    /// Walks the chunk at the cursor and returns its row.
    fn walked(engine: &mut Engine, cursor: &mut Cursor<'_>, row: usize) -> Step<Self>;

    /// The row of a walked chunk that ends before `end`.
    fn of_chunk(engine: &mut Engine, chunk: &Chunk, end: usize, row: usize) -> Self;

    /// Updates the row's trait indices.
    fn relocate(&mut self, places: &[u16]);

    /// Allocates rows for this many row groups; `None` if memory is short.
    fn table(row_groups: usize, width: usize) -> Option<Vec<MaybeUninit<Self>>> {
        spare::new_table(row_groups * width)
    }
}

impl Row for Packed {
    const VALUES: bool = true;

    #[inline(always)]
    fn matched<K: Kernel>(kernel: K, values: &Values, at: usize, _: usize, shape: &Shape) -> Option<Self> {
        kernel.pack(values, at, shape)
    }

    fn walked(engine: &mut Engine, cursor: &mut Cursor<'_>, row: usize) -> Step<Self> {
        let chunk = scan::column_chunk(cursor)?;
        Ok(engine.pack(&chunk, row))
    }

    #[inline(always)]
    fn of_chunk(engine: &mut Engine, chunk: &Chunk, _: usize, row: usize) -> Self {
        engine.pack(chunk, row)
    }

    fn relocate(&mut self, places: &[u16]) {
        rows::relocate(self, places);
    }

    fn table(row_groups: usize, width: usize) -> Option<Vec<MaybeUninit<Self>>> {
        spare::table(row_groups * width, width)
    }
}

/// A chunk that is only located need only be well-formed Thrift.
impl Row for Locator {
    const VALUES: bool = false;

    #[inline(always)]
    fn matched<K: Kernel>(_: K, values: &Values, at: usize, end: usize, _: &Shape) -> Option<Self> {
        Some(locator(at, end, values.statistics_place(at)))
    }

    fn walked(_: &mut Engine, cursor: &mut Cursor<'_>, _: usize) -> Step<Self> {
        let start = *cursor;
        cursor.skip(STRUCT)?;
        let statistics = match details::statistics_at(&mut start.clone()) {
            Ok(Some(at)) => statistics_place(at - start.at),
            Ok(None) => rows::STATISTICS_NONE,
            Err(_) => rows::STATISTICS_UNKNOWN,
        };
        Ok(locator(start.at, cursor.at, statistics))
    }

    #[inline(always)]
    fn of_chunk(_: &mut Engine, chunk: &Chunk, end: usize, _: usize) -> Self {
        locator(chunk.at as usize, end, chunk.statistics)
    }

    fn relocate(&mut self, _: &[u16]) {}
}
