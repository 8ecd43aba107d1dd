//! Decodes column chunks by row group: matches them against shapes where possible, otherwise walks them.
//!
//! For every column the engine remembers the shapes of its chunks in previous row groups. It can walk several
//! row groups in lockstep, one column of each after the other: their loads and comparisons do not wait for
//! one another, as those of neighbours within one row group must.

use std::mem::MaybeUninit;

use crate::chunk::row::Row;
use crate::chunk::rows::{self, Chunk, Packed, TraitTable};
use crate::matching::kernel::{Kernel, Task, Values};
use crate::matching::resolve::{Missed, resolve};
use crate::matching::shape::{Lanes, Shape};
use crate::memory::allocate;
use crate::thrift::cursor::{Cursor, STRUCT, Step};

/// The most shapes learned: searching more would cost as much as a scalar walk.
const MAX_SHAPES: usize = 96;

/// No known shape.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// The last two shapes of a column's chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub last: u16,
    pub other: u16,
}

/// What the engine has learned so far.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub shapes: Vec<Shape>,
    pub seen: Vec<Seen>,
    /// For every shape, the shape last found in a chunk that was expected to have it.
    pub instead: Vec<u16>,
    pub traits: TraitTable,
    /// Chunks too wide for a row, with their rows.
    pub wide: Vec<(u32, Chunk)>,
    /// Whether to try shapes at all.
    matching: bool,
    pub tally: Tally,
}

/// Counts of what happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    chunks: u64,
    /// Chunks that no shape matched.
    pub walked: u64,
}

/// Where a row group's chunks are read from and stored.
pub(crate) struct Lane<'a, T> {
    /// Where the first chunk starts; afterwards, where the last one ends.
    pub at: usize,
    /// The row of the row group's first decoded column.
    pub first_row: usize,
    /// A slot for every decoded column; empty if none is wanted.
    pub rows: &'a mut [MaybeUninit<T>],
}

/// A column that is not decoded.
pub(crate) const SKIPPED: u32 = u32::MAX;

impl Engine {
    /// An engine for row groups of `columns` chunks, whose list is at byte `at`. Unless `matching`, it walks
    /// every chunk.
    pub fn new(at: usize, columns: usize, matching: bool) -> Step<Self> {
        let noted = if matching { columns } else { 0 };
        let mut seen = allocate::with_room_at(at, noted)?;
        seen.resize(noted, Seen { last: UNKNOWN, other: UNKNOWN });
        Ok(Self {
            shapes: Vec::new(),
            instead: Vec::new(),
            seen,
            traits: TraitTable::default(),
            wide: Vec::new(),
            matching,
            tally: Tally::default(),
        })
    }

    /// Prepares for another footer of `columns` columns, probably as many as before; `None` if memory is
    /// short.
    pub fn start_anew(&mut self, columns: usize) -> Option<()> {
        if self.seen.len() != columns {
            self.seen.clear();
            self.seen.try_reserve(columns).ok()?;
            self.seen.resize(columns, Seen { last: UNKNOWN, other: UNKNOWN });
        }
        self.wide.clear();
        Some(())
    }

    /// Whether its shapes are few and have matched.
    pub fn is_of_use(&self) -> bool {
        self.matching && self.shapes.len() < MAX_SHAPES
    }

    /// Walks the chunks of as many row groups as there are lanes. `slots` maps every column to its position
    /// among the decoded ones; `None` if all are decoded.
    pub fn chunks<K: Kernel, T: Row, const LANES: usize>(
        &mut self,
        kernel: K,
        bytes: &[u8],
        columns: usize,
        slots: Option<&[u32]>,
        lanes: &mut [Lane<'_, T>; LANES],
    ) -> Step<()> {
        self.tally.chunks += (columns * LANES) as u64;
        if !self.matching {
            return self.walk(bytes, columns, slots, lanes);
        }
        let outcome = if lanes[0].rows.is_empty() {
            kernel.enter(MatchChunks::<'_, '_, T, LANES, false> {
                engine: self,
                bytes,
                columns,
                slots,
                lanes,
            })
        } else {
            kernel.enter(MatchChunks::<'_, '_, T, LANES, true> { engine: self, bytes, columns, slots, lanes })
        };
        // If chunks differ so much that most are walked, trying shapes first only costs time.
        if self.tally.walked > 1000 && self.tally.walked > self.tally.chunks / 2 {
            self.matching = false;
        }
        outcome
    }

    fn walk<T: Row>(
        &mut self,
        bytes: &[u8],
        columns: usize,
        slots: Option<&[u32]>,
        lanes: &mut [Lane<'_, T>],
    ) -> Step<()> {
        for lane in lanes {
            let mut cursor = Cursor::new(bytes, lane.at);
            for column in 0..columns {
                let slot = slots.map_or(column, |slots| slots[column] as usize);
                if slot < lane.rows.len() {
                    let (row, _) = T::walked(self, &mut cursor, lane.first_row + slot)?;
                    lane.rows[slot].write(row);
                } else {
                    cursor.skip(STRUCT)?;
                }
            }
            lane.at = cursor.at;
            self.tally.walked += columns as u64;
        }
        Ok(())
    }

    /// Adopts the traits that another engine, started as a copy of this one, has found. Returns this
    /// engine's index for each of `other`'s, or an empty list if they are the same. `None`: the table is full.
    pub fn adopt(&mut self, other: &Self) -> Option<Vec<u16>> {
        let mut places: Vec<u16> =
            other.traits.list().iter().map(|&traits| self.traits.place(traits)).collect::<Option<_>>()?;
        // Usually the other engine found nothing new, or the same.
        if places.iter().enumerate().all(|(place, &here)| place == usize::from(here)) {
            places.clear();
        }
        Some(places)
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
struct MatchChunks<'a, 'b, T, const LANES: usize, const ROWS: bool> {
    engine: &'a mut Engine,
    bytes: &'a [u8],
    columns: usize,
    slots: Option<&'a [u32]>,
    lanes: &'a mut [Lane<'b, T>; LANES],
}

impl<T: Row, const LANES: usize, const ROWS: bool> Task for MatchChunks<'_, '_, T, LANES, ROWS> {
    type Output = Step<()>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Step<()> {
        let Self { engine, bytes, columns, slots, lanes } = self;
        let mut at: [usize; LANES] = std::array::from_fn(|lane| lanes[lane].at);
        let mut expected = UNKNOWN;
        for column in 0..columns {
            let seen = engine.seen[column].last;
            if seen != UNKNOWN {
                expected = seen;
            }
            let slot = match slots {
                Some(slots) => slots[column] as usize,
                None => column,
            };
            let wanted = ROWS && slot != SKIPPED as usize;
            let mut ends = [0; LANES];
            let mut values = [Values::default(); LANES];
            if let Some(shape) = engine.shapes.get(usize::from(expected)) {
                ends = if wanted && T::VALUES {
                    kernel.step::<true, LANES>(bytes, at, shape, &mut values)
                } else {
                    kernel.step::<false, LANES>(bytes, at, shape, &mut values)
                };
                if wanted {
                    for lane in 0..LANES {
                        if ends[lane] != 0 {
                            match T::matched(kernel, &values[lane], at[lane], ends[lane], shape) {
                                Some(row) => _ = lanes[lane].rows[slot].write(row),
                                None => ends[lane] = 0,
                            }
                        }
                    }
                }
            }
            if ends.contains(&0) {
                let slot = wanted.then_some(slot);
                let (engine, values, ends) = (&mut *engine, &values, &mut ends);
                let missed = Missed { engine, bytes, at, column, expected, slot, lanes, values, ends };
                expected = resolve(kernel, missed)?;
            } else if seen == UNKNOWN {
                engine.seen[column].last = expected;
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
    /// Learns the shape of a chunk that ends before `end`, if it has one, and returns its index.
    #[inline(always)]
    pub fn learn<K: Kernel>(&mut self, kernel: K, bytes: &[u8], chunk: &Chunk, end: usize) -> Option<u16> {
        if self.shapes.len() >= MAX_SHAPES {
            return None;
        }
        let traits = self.traits.place(chunk.traits)?;
        let mut shape = Shape::learn(bytes, chunk, end, traits, Lanes::Row)?;
        // A shape that does not reproduce its own chunk is useless or wrong.
        let at = chunk.at as usize;
        let mut values = [Values::default()];
        let [matched] = kernel.step::<true, 1>(bytes, [at], &shape, &mut values);
        let same = kernel.pack(&values[0], at, &shape) == rows::pack(chunk, Some(traits));
        (matched == end && same).then(|| {
            shape.number_prefixes(&self.shapes);
            self.shapes.push(shape);
            self.instead.push(UNKNOWN);
            self.shapes.len() as u16 - 1
        })
    }
}
