//! Finds the page indexes of all decoded chunks through the footer: a second walk over chunks with known
//! offsets, which matches four at once so that none waits for another.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::rows::{Chunk, STATISTICS_NONE, STATISTICS_UNKNOWN};
use crate::decode::scan;
use crate::decode::usual::{self, UsualIndexes};
use crate::error::Error;
use crate::footer::Footer;
use crate::matching::engine::Learning;
use crate::matching::kernel::{Choose, Kernel, Method, Task, Values};
use crate::matching::shape::{
    COLUMN_INDEX_LENGTH, COLUMN_INDEX_OFFSET, Lanes, OFFSET_INDEX_LENGTH, OFFSET_INDEX_OFFSET, Shape,
};
use crate::memory::word_hasher::WordHasher;
use crate::thrift::cursor::Cursor;

/// Chunks matched at once.
const LANES: usize = 4;

/// The most shapes learned.
const MAX_SHAPES: usize = 96;

/// No shape.
const NONE: usize = usize::MAX;

/// The number of chunks that did not match from which shapes are tried only if most chunks match.
const ENOUGH: u64 = 256;

/// The number of chunks below which the walk from their statistics on is faster than learning their shapes, by a tenth
/// to a fifth. Above it, shapes save a fifth where chunks are alike.
const WORTH_SHAPES: usize = 20_000;

/// Where a chunk's page indexes are in the file: offset and length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Location {
    pub offset_index: Option<(u64, u32)>,
    pub column_index: Option<(u64, u32)>,
}

/// Calls `found` with the locations of all wanted chunks, each with its row, by row group and then by column.
///
/// # Errors
///
/// A value is malformed or negative; or `found` returns an error.
pub(crate) fn each(
    footer: &Footer,
    wanted: impl Fn(usize, usize) -> bool,
    found: impl FnMut(usize, Location) -> Result<(), Error>,
) -> Result<(), Error> {
    let few = footer.num_columns().saturating_mul(footer.num_row_groups()) < WORTH_SHAPES;
    let walk = LocateIndexes {
        footer,
        wanted,
        found,
        shapes: Vec::new(),
        kinds: HashMap::default(),
        last_kind: 0,
        missed: 0,
        differ: few && footer.method() == Method::Fastest,
        method: footer.method(),
    };
    footer.method().choose(walk)
}

struct LocateIndexes<'a, W, F> {
    footer: &'a Footer,
    wanted: W,
    found: F,
    shapes: Vec<Shape>,
    /// The shape of each kind of chunk ([`UsualIndexes::kind`]) that has one.
    kinds: HashMap<u64, usize, BuildHasherDefault<WordHasher>>,
    /// The kind of the last chunk that did not match.
    last_kind: u64,
    /// How many chunks did not match.
    missed: u64,
    /// Whether chunks are too few, or too different from their neighbours, for shapes to be of use.
    differ: bool,
    method: Method,
}

impl<W: Fn(usize, usize) -> bool, F: FnMut(usize, Location) -> Result<(), Error>> Choose
    for LocateIndexes<'_, W, F>
{
    type Output = Result<(), Error>;

    fn with<K: Kernel>(self, kernel: K) -> Self::Output {
        kernel.enter(self)
    }
}

impl<W: Fn(usize, usize) -> bool, F: FnMut(usize, Location) -> Result<(), Error>> Task
    for LocateIndexes<'_, W, F>
{
    type Output = Result<(), Error>;

    #[inline(always)]
    fn run<K: Kernel>(mut self, kernel: K) -> Self::Output {
        let footer = self.footer;
        let bytes = footer.bytes.as_slice();
        let columns = footer.num_columns();
        let mut batch = [(0, 0); LANES];
        let (mut expected, mut seen) = (NONE, 0);
        for group in 0..footer.num_row_groups() {
            let mut column = 0;
            while column < columns {
                let mut count = 0;
                while count < LANES && column < columns {
                    if (self.wanted)(group, column) {
                        let row = group * columns + column;
                        batch[count] = (row, footer.decoded.rows.place(row));
                        count += 1;
                    }
                    column += 1;
                }
                let mut values = [Values::default(); LANES];
                let mut ends = [0; LANES];
                // The lanes of the shape that this batch was matched against. A chunk of another shape
                // changes what to expect of later chunks, but must not change how the rest of this batch is
                // read.
                let mut lanes_of_match = 0;
                seen += count as u64;
                if self.missed > ENOUGH && self.missed > seen / 2 && self.method == Method::Fastest {
                    self.differ = true;
                }
                if !self.differ
                    && let Some(shape) = self.shapes.get(expected)
                {
                    lanes_of_match = shape.lanes;
                    // Nothing starts at the end of the bytes, so lanes without a chunk match nothing.
                    let starts =
                        std::array::from_fn(|lane| if lane < count { batch[lane].1 } else { bytes.len() });
                    ends = kernel.step::<true, LANES>(bytes, starts, shape, &mut values);
                }
                for lane in 0..count {
                    let (row, at) = batch[lane];
                    let matched = if ends[lane] != 0 {
                        location(first_four(&values[lane]), lanes_of_match)
                    } else {
                        None
                    };
                    let location = match matched {
                        Some(location) => location,
                        None => self.other(kernel, row, at, &mut expected)?,
                    };
                    (self.found)(row, location)?;
                }
            }
        }
        Ok(())
    }
}

impl<W, F> LocateIndexes<'_, W, F> {
    /// The location of a chunk that does not match the expected shape; expects its shape from now on.
    #[inline(never)]
    fn other<K: Kernel>(
        &mut self,
        kernel: K,
        row: usize,
        at: usize,
        expected: &mut usize,
    ) -> Result<Location, Error> {
        let bytes = self.footer.bytes.as_slice();
        let columns = self.footer.num_columns().max(1);
        self.missed += 1;
        if self.differ
            && let Some((values, stated)) = self.after_statistics(row)
            && let Some(location) = location(values, stated)
        {
            return Ok(location);
        }
        let quick = match self.method {
            Method::Scalar => None,
            _ => usual::page_indexes(bytes, at),
        };
        if let Some(UsualIndexes { values: [a, b, c, d], stated, kind }) = quick
            && let Some(location) = location([a, b, c, d], stated)
        {
            let again = std::mem::replace(&mut self.last_kind, kind) == kind;
            *expected = match self.kinds.get(&kind) {
                _ if self.differ => NONE,
                Some(&place) => place,
                None if (again || self.method.learning() == Learning::Always)
                    && self.shapes.len() < MAX_SHAPES =>
                {
                    if let Some(chunk) = self.footer.column_chunk(row / columns, row % columns) {
                        self.learn(kernel, &chunk.chunk(), location);
                    }
                    let place = self.shapes.len().saturating_sub(1);
                    self.kinds.insert(kind, place);
                    place
                }
                None => NONE,
            };
            return Ok(location);
        }
        // Every row belongs to a decoded chunk.
        match self.footer.column_chunk(row / columns, row % columns) {
            Some(chunk) => walked(&chunk),
            None => Ok(Location::default()),
        }
    }

    /// The walk over a chunk from the statistics on, whose place its row tells.
    #[inline(always)]
    fn after_statistics(&self, row: usize) -> Option<([i64; 4], u8)> {
        let (at, place) = self.footer.decoded.rows.statistics(row);
        let known = place != STATISTICS_UNKNOWN && place != STATISTICS_NONE;
        known.then(|| usual::page_indexes_after(self.footer.bytes.as_slice(), at, place.into()))?
    }

    /// Learns the shape of a chunk, if it has one.
    fn learn<K: Kernel>(&mut self, kernel: K, chunk: &Chunk, known: Location) {
        let bytes = self.footer.bytes.as_slice();
        let mut cursor = Cursor::new(bytes, chunk.at as usize);
        if scan::column_chunk(&mut cursor).is_err() {
            return;
        }
        let Some(shape) = Shape::learn(bytes, chunk, cursor.at, 0, Lanes::Locations) else { return };
        let mut values = [Values::default()];
        let [end] = kernel.step::<true, 1>(bytes, [chunk.at as usize], &shape, &mut values);
        // A shape that does not reproduce its own chunk is useless or wrong.
        if end == cursor.at && location(first_four(&values[0]), shape.lanes) == Some(known) {
            self.shapes.push(shape);
        }
    }
}

#[inline(always)]
fn first_four(values: &Values) -> [i64; 4] {
    let [a, b, c, d, ..] = values.lanes;
    [a, b, c, d]
}

/// The location found by a match with a shape of these lanes; `None` if only a walk can judge a value.
#[inline(always)]
fn location(values: [i64; 4], lanes: u8) -> Option<Location> {
    let index = |offset: u8, length: u8| -> Option<Option<(u64, u32)>> {
        let both = 1 << offset | 1 << length;
        if lanes & both != both {
            return Some(None);
        }
        let offset = u64::try_from(values[usize::from(offset)]).ok()?;
        let length = i32::try_from(values[usize::from(length)]).ok()?;
        Some(Some((offset, u32::try_from(length).ok()?)))
    };
    Some(Location {
        offset_index: index(OFFSET_INDEX_OFFSET, OFFSET_INDEX_LENGTH)?,
        column_index: index(COLUMN_INDEX_OFFSET, COLUMN_INDEX_LENGTH)?,
    })
}

fn walked(chunk: &ColumnChunk<'_>) -> Result<Location, Error> {
    let found = chunk.locations()?;
    let place = |range: Option<std::ops::Range<u64>>| {
        range.map(|range| (range.start, (range.end - range.start) as u32))
    };
    Ok(Location {
        offset_index: place(chunk.index_range(
            "offset_index",
            found.offset_index_offset,
            found.offset_index_length,
        )?),
        column_index: place(chunk.index_range(
            "column_index",
            found.column_index_offset,
            found.column_index_length,
        )?),
    })
}
