//! Decodes column chunks by row group: matches them against shapes where possible, otherwise walks them.
//!
//! For every column the engine remembers the shapes of its chunks in previous row groups. It can walk several
//! row groups in lockstep, one column of each after the other: their loads and comparisons do not wait for
//! one another, as neighbours within one row group must.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::chunk::rows::{self, Chunk, Packed, TraitTable};
use crate::decode::scan;
use crate::decode::tails::{MAX_FORMS, Tails};
use crate::decode::usual::{self, Usual};
use crate::matching::avx2::Avx2;
use crate::matching::kernel::{Method, Task, Values};
use crate::matching::resolve::{Missed, Unseen, resolve, unseen};
use crate::matching::shape::Shape;
use crate::memory::allocate;
use crate::memory::word_hasher::WordHasher;
use crate::thrift::cursor::{Cursor, STRUCT, Step};

/// The most bytes of shapes kept, some 1,500 of them: more would not stay in the processor's caches.
const MAX_BYTES: usize = 4 << 20;

/// The number of walked chunks that tells whether shapes are of use.
const ENOUGH: u64 = 8000;

/// How many columns in a row may differ from their neighbours before neighbours are compared no longer.
const INHERITS_AT_FIRST: u32 = 8;

/// How many chunks must have been decoded for each shape learned, and how many in the whole list are enough
/// for one more. Learning takes as long as walking some twenty chunks.
const CHUNKS_PER_SHAPE: u64 = 32;
const LISTED_PER_SHAPE: u64 = 64;

/// No known shape.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// The last two shapes of a column's chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub last: u16,
    pub other: u16,
    /// Half of the kind of the chunk that was last walked for want of a shape.
    kind: u32,
}

impl Seen {
    const NOTHING: Self = Self { last: UNKNOWN, other: UNKNOWN, kind: 0 };
}

/// What the engine has learned so far.
#[derive(Debug, Default)]
pub(crate) struct Engine {
    pub shapes: Vec<Shape>,
    pub seen: Vec<Seen>,
    /// For every shape, the shape last found in a chunk that was expected to have it.
    pub instead: Vec<u16>,
    pub traits: TraitTable,
    /// Forms of the tails of chunks that no shape matches.
    tails: Tails,
    /// Chunks too wide for a row, with their rows.
    pub wide: Vec<(u32, Chunk)>,
    /// Half of the kind of the chunk last walked for want of a shape.
    last_kind: u32,
    /// What matches chunks against shapes, if shapes are tried at all.
    kernel: Option<Avx2>,
    method: Method,
    /// The shape of each kind of chunk ([`Usual::kind`]) that has one.
    kinds: HashMap<u64, u16, BuildHasherDefault<WordHasher>>,
    /// The size of all shapes.
    shape_bytes: usize,
    pub tally: Tally,
}

/// Counts of what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub chunks: u64,
    /// Chunks that no shape matched.
    pub walked: u64,
    /// Shapes learned, successfully or not.
    learned: u64,
    /// Chunks in the lists of row groups.
    pub listed: u64,
}

/// Where a row group's chunks are read from and stored.
pub(crate) struct Lane<'a> {
    /// Where the first chunk starts; afterwards, where the last one ends.
    pub at: usize,
    /// The row of the row group's first decoded column.
    pub first_row: usize,
    /// A slot for every decoded column; empty if none is wanted.
    pub rows: &'a mut [Packed],
}

/// A column that is not decoded.
pub(crate) const SKIPPED: u32 = u32::MAX;

impl Engine {
    /// An engine for row groups of `columns` chunks, whose list is at byte `at`. It walks them all if shapes are not
    /// `worth` it.
    pub fn new(at: usize, columns: usize, method: Method, worth: bool) -> Step<Self> {
        // A method chosen by name runs on footers of any size.
        let kernel = method.kernel().filter(|_| worth || method == Method::Avx2);
        let noted = if kernel.is_some() { columns } else { 0 };
        let mut seen = allocate::with_room_at(at, noted)?;
        seen.resize(noted, Seen::NOTHING);
        Ok(Self { seen, kernel, method, ..Self::default() })
    }

    /// Prepares for another footer of `columns` columns, probably as many as before; `None` if memory is
    /// short.
    pub fn start_anew(&mut self, columns: usize) -> Option<()> {
        if self.seen.len() != columns {
            self.seen.clear();
            self.seen.try_reserve(columns).ok()?;
            self.seen.resize(columns, Seen::NOTHING);
        }
        self.wide.clear();
        Some(())
    }

    /// Whether its shapes are few and have matched.
    pub fn is_of_use(&self) -> bool {
        self.kernel.is_some() && self.shape_bytes < MAX_BYTES
    }

    /// Walks the chunks of as many row groups as there are lanes. `slots` maps every column to its position
    /// among the decoded ones; `None` if all are decoded.
    pub fn chunks<const LANES: usize>(
        &mut self,
        bytes: &[u8],
        columns: usize,
        slots: Option<&[u32]>,
        lanes: &mut [Lane<'_>; LANES],
    ) -> Step<()> {
        self.tally.chunks += (columns * LANES) as u64;
        let Some(kernel) = self.kernel else { return self.walk(bytes, columns, slots, lanes) };
        let outcome = if lanes[0].rows.is_empty() {
            kernel.enter(MatchChunks::<'_, '_, LANES, false> { engine: self, bytes, columns, slots, lanes })
        } else {
            kernel.enter(MatchChunks::<'_, '_, LANES, true> { engine: self, bytes, columns, slots, lanes })
        };
        // If chunks differ so much that most are walked, trying shapes first only costs time.
        if self.tally.walked > ENOUGH && self.tally.walked > self.tally.chunks / 4 * 3 {
            self.kernel = None;
        }
        outcome
    }

    fn walk<const LANES: usize>(
        &mut self,
        bytes: &[u8],
        columns: usize,
        slots: Option<&[u32]>,
        lanes: &mut [Lane<'_>; LANES],
    ) -> Step<()> {
        self.tally.walked += (columns * LANES) as u64;
        for column in 0..columns {
            let slot = slots.map_or(column, |slots| slots[column] as usize);
            let slot = (slot < lanes[0].rows.len()).then_some(slot);
            // What follows the numbers is alike in the chunks of one column.
            let own = if LANES > 1 && columns <= MAX_FORMS { column as u64 } else { 0 };
            for lane in lanes.iter_mut() {
                let row = match self.method {
                    Method::Scalar => None,
                    _ => usual::row(bytes, lane.at, own, &mut self.tails, &mut self.traits),
                };
                if let Some((row, end)) = row {
                    lane.at = end;
                    if let Some(slot) = slot {
                        lane.rows[slot] = row;
                    }
                } else {
                    let mut cursor = Cursor::new(bytes, lane.at);
                    self.scan_one(&mut cursor, slot, lane)?;
                    lane.at = cursor.at;
                }
            }
        }
        Ok(())
    }

    /// Walks the chunk at the cursor byte by byte, and stores its row, if `slot` says that it is wanted.
    #[inline(never)]
    fn scan_one(&mut self, cursor: &mut Cursor<'_>, slot: Option<usize>, lane: &mut Lane<'_>) -> Step<()> {
        match slot {
            Some(slot) => {
                let chunk = scan::column_chunk(cursor)?;
                lane.rows[slot] = self.pack(&chunk, lane.first_row + slot);
            }
            // An unwanted chunk need only be well-formed Thrift.
            None => cursor.skip(STRUCT)?,
        }
        Ok(())
    }

    /// Walks the chunk at the cursor and stores its row, if `slot` says that it is wanted. Returns its values
    /// and its kind, if it is usual.
    #[inline(always)]
    pub fn walk_one(
        &mut self,
        cursor: &mut Cursor<'_>,
        slot: Option<usize>,
        lane: &mut Lane<'_>,
    ) -> Step<Option<(Chunk, u64)>> {
        if self.method != Method::Scalar
            && let Some(Usual { chunk, end, kind }) = usual::column_chunk(cursor.bytes, cursor.at)
        {
            cursor.at = end;
            if let Some(slot) = slot {
                let row = self.pack(&chunk, lane.first_row + slot);
                lane.rows[slot] = row;
            }
            return Ok(Some((chunk, kind)));
        }
        self.scan_one(cursor, slot, lane)?;
        Ok(None)
    }

    /// Whether a chunk of a kind is worth a shape: one that was met only once may never come again. Records
    /// that it was met in this column.
    #[inline(always)]
    pub fn comes_again(&mut self, column: usize, kind: u64) -> bool {
        let half = (kind >> 32) as u32;
        let again = half == self.last_kind || half == self.seen[column].kind;
        (self.last_kind, self.seen[column].kind) = (half, half);
        again || self.method == Method::Avx2
    }

    /// Packs a walked chunk into its row.
    pub fn pack(&mut self, chunk: &Chunk, row: usize) -> Packed {
        rows::pack(chunk, self.traits.place(chunk.traits)).unwrap_or_else(|| {
            // There are fewer rows than footer bytes, whose number has 32 bits.
            self.wide.push((row as u32, *chunk));
            rows::wide(chunk)
        })
    }
}

/// The walk over the chunks of some row groups, for any kernel.
struct MatchChunks<'a, 'b, const LANES: usize, const ROWS: bool> {
    engine: &'a mut Engine,
    bytes: &'a [u8],
    columns: usize,
    slots: Option<&'a [u32]>,
    lanes: &'a mut [Lane<'b>; LANES],
}

impl<const LANES: usize, const ROWS: bool> Task for MatchChunks<'_, '_, LANES, ROWS> {
    type Output = Step<()>;

    #[inline(always)]
    fn run(self, kernel: Avx2) -> Step<()> {
        let Self { engine, bytes, columns, slots, lanes } = self;
        let mut at: [usize; LANES] = std::array::from_fn(|lane| lanes[lane].at);
        // Expect of a new column what its neighbour had, as long as that helps.
        let (mut expected, mut inherits) = (UNKNOWN, INHERITS_AT_FIRST);
        for column in 0..columns {
            let seen = engine.seen[column].last;
            if seen != UNKNOWN {
                expected = seen;
            } else if inherits == 0 {
                expected = UNKNOWN;
            }
            let slot = slots.map_or(column, |slots| slots[column] as usize);
            let wanted = ROWS && slot != SKIPPED as usize;
            if expected == UNKNOWN {
                let slot = wanted.then_some(slot);
                expected =
                    unseen(kernel, Unseen { engine: &mut *engine, bytes, column, slot, lanes, at: &mut at })?;
                continue;
            }
            let mut ends = [0; LANES];
            let mut values = [Values::default(); LANES];
            if let Some(shape) = engine.shapes.get(usize::from(expected)) {
                ends = if wanted {
                    kernel.step::<true, LANES>(bytes, at, shape, &mut values)
                } else {
                    kernel.step::<false, LANES>(bytes, at, shape, &mut values)
                };
                if wanted {
                    for lane in 0..LANES {
                        if ends[lane] != 0 {
                            match values[lane].pack(at[lane], shape) {
                                Some(row) => lanes[lane].rows[slot] = row,
                                None => ends[lane] = 0,
                            }
                        }
                    }
                }
            }
            if ends.contains(&0) {
                let slot = wanted.then_some(slot);
                let (engine, ends) = (&mut *engine, &mut ends);
                let missed = Missed { engine, bytes, at, column, expected, slot, lanes, ends };
                if seen == UNKNOWN && expected != UNKNOWN {
                    inherits -= 1;
                }
                expected = resolve(kernel, missed)?;
            } else if seen == UNKNOWN {
                engine.seen[column].last = expected;
                inherits = INHERITS_AT_FIRST;
            }
            at = ends;
        }
        for (lane, at) in lanes.iter_mut().zip(at) {
            lane.at = at;
        }
        Ok(())
    }
}

impl Engine {
    /// The shape of a walked chunk that ends before `end`: the known shape of its kind, unless that was
    /// `tried` in vain, otherwise a new one.
    #[inline(always)]
    pub fn shape_of(
        &mut self,
        kernel: Avx2,
        bytes: &[u8],
        (chunk, end): (&Chunk, usize),
        kind: u64,
        tried: impl Fn(u16) -> bool,
    ) -> u16 {
        if !self.shapes.is_empty()
            && let Some(&place) = self.kinds.get(&kind)
            && !tried(place)
        {
            return place;
        }
        let Some(place) = self.learn(kernel, bytes, chunk, end) else { return UNKNOWN };
        self.kinds.insert(kind, place);
        place
    }

    /// Learns the shape of a chunk that ends before `end`, if it has one and chunks enough were decoded, and
    /// returns its index.
    #[inline(always)]
    fn learn(&mut self, kernel: Avx2, bytes: &[u8], chunk: &Chunk, end: usize) -> Option<u16> {
        let allowed = self.tally.chunks / CHUNKS_PER_SHAPE + self.tally.listed / LISTED_PER_SHAPE;
        let enough = self.tally.learned < allowed;
        if self.shape_bytes >= MAX_BYTES || !(enough || self.method == Method::Avx2) {
            return None;
        }
        self.tally.learned += 1;
        let traits = self.traits.place(chunk.traits)?;
        let shape = Shape::learn(bytes, chunk, end, traits)?;
        // A shape that does not reproduce its own chunk is useless or wrong.
        let at = chunk.at as usize;
        let mut values = [Values::default()];
        let [matched] = kernel.step::<true, 1>(bytes, [at], &shape, &mut values);
        let same = values[0].pack(at, &shape) == rows::pack(chunk, Some(traits));
        (matched == end && same).then(|| {
            self.shape_bytes += shape.heap_bytes() + size_of::<Shape>();
            self.shapes.push(shape);
            self.instead.push(UNKNOWN);
            self.shapes.len() as u16 - 1
        })
    }
}
