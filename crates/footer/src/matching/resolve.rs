//! Resolves chunks that do not match the expected shape: looks for another shape that begins like the chunk;
//! if there is none, walks the chunk and learns its shape.
//!
//! Each shape is matched from the chunk's start. Resuming where another shape stopped took a tenth longer, because each
//! new shape had to be compared with all others.

use crate::matching::avx2::Avx2;
use crate::matching::engine::{Engine, Lane, UNKNOWN};
use crate::matching::kernel::{Task, Values};
use crate::thrift::cursor::{Cursor, Step};

/// Chunks of one column in several row groups; some did not match the expected shape.
pub(crate) struct Missed<'a, 'b, const LANES: usize> {
    pub engine: &'a mut Engine,
    pub bytes: &'a [u8],
    pub at: [usize; LANES],
    pub column: usize,
    pub expected: u16,
    /// The column's index in a row group's rows, if it is wanted.
    pub slot: Option<usize>,
    pub lanes: &'a mut [Lane<'b>; LANES],
    /// Where the chunks end; 0 for those that did not match.
    pub ends: &'a mut [usize; LANES],
}

/// Resolves the chunks and returns the shape to expect next.
#[cold]
#[inline(never)]
pub(crate) fn resolve<const LANES: usize>(kernel: Avx2, missed: Missed<'_, '_, LANES>) -> Step<u16> {
    kernel.enter(missed)
}

/// Chunks of one column in several row groups, without an expected shape.
pub(crate) struct Unseen<'a, 'b, const LANES: usize> {
    pub engine: &'a mut Engine,
    pub bytes: &'a [u8],
    pub column: usize,
    /// The column's index in a row group's rows, if it is wanted.
    pub slot: Option<usize>,
    pub lanes: &'a mut [Lane<'b>; LANES],
    /// Where the chunks start; afterwards, where they end.
    pub at: &'a mut [usize; LANES],
}

/// Walks the chunks and returns the shape to expect next.
#[inline(never)]
pub(crate) fn unseen<const LANES: usize>(kernel: Avx2, unseen: Unseen<'_, '_, LANES>) -> Step<u16> {
    kernel.enter(unseen)
}

impl<const LANES: usize> Task for Unseen<'_, '_, LANES> {
    type Output = Step<u16>;

    #[inline(always)]
    fn run(self, kernel: Avx2) -> Step<u16> {
        let Self { engine, bytes, column, slot, lanes, at } = self;
        let mut found = UNKNOWN;
        engine.tally.walked += LANES as u64;
        for lane in 0..LANES {
            let mut cursor = Cursor::new(bytes, at[lane]);
            let walked = engine.walk_one(&mut cursor, slot, &mut lanes[lane])?;
            at[lane] = cursor.at;
            let Some((chunk, kind)) = walked else { continue };
            if engine.comes_again(column, kind) && found == UNKNOWN {
                found = engine.shape_of(kernel, bytes, (&chunk, cursor.at), kind, |_| false);
            }
        }
        engine.seen[column].last = found;
        Ok(found)
    }
}

impl<const LANES: usize> Task for Missed<'_, '_, LANES> {
    type Output = Step<u16>;

    #[inline(always)]
    fn run(mut self, kernel: Avx2) -> Step<u16> {
        let missed = self.ends.iter().filter(|&&end| end == 0).count();
        let mut found = UNKNOWN;
        for lane in 0..LANES {
            if self.ends[lane] != 0 {
                continue;
            }
            found = self.one(kernel, lane, found)?;
            // The other chunks usually have the same shape.
            if LANES > 2 && self.ends.iter().filter(|&&end| end == 0).count() > 1 {
                self.together(kernel, found);
            }
        }
        let seen = &mut self.engine.seen[self.column];
        // Change the expected shape only when most chunks differ from it: a single odd chunk proves nothing.
        if missed * 2 > LANES {
            (seen.last, seen.other) = (found, self.expected);
            return Ok(found);
        }
        seen.other = found;
        Ok(self.expected)
    }
}

impl<const LANES: usize> Missed<'_, '_, LANES> {
    /// Matches all unresolved chunks against one shape.
    #[inline(always)]
    fn together(&mut self, kernel: Avx2, place: u16) {
        let Some(shape) = self.engine.shapes.get(usize::from(place)) else { return };
        let Some(left) = self.ends.iter().position(|&end| end == 0) else { return };
        // Finished lanes follow an unfinished one.
        let starts = std::array::from_fn(|lane| self.at[if self.ends[lane] == 0 { lane } else { left }]);
        let mut values = [Values::default(); LANES];
        let ends = match self.slot.is_some() {
            true => kernel.step::<true, LANES>(self.bytes, starts, shape, &mut values),
            false => kernel.step::<false, LANES>(self.bytes, starts, shape, &mut values),
        };
        for lane in 0..LANES {
            if self.ends[lane] != 0 || ends[lane] == 0 {
                continue;
            }
            match self.slot {
                None => self.ends[lane] = ends[lane],
                Some(slot) => {
                    if let Some(row) = values[lane].pack(starts[lane], shape) {
                        self.lanes[lane].rows[slot] = row;
                        self.ends[lane] = ends[lane];
                    }
                }
            }
        }
    }

    /// Resolves one chunk and returns the index of its shape; tries `likely` first.
    #[inline(always)]
    fn one(&mut self, kernel: Avx2, lane: usize, likely: u16) -> Step<u16> {
        let Self { engine, bytes, expected, .. } = self;
        let (expected, opening) = (*expected, bytes.get(self.at[lane]..).and_then(|rest| rest.first_chunk()));
        let instead = engine.instead.get(usize::from(expected)).copied().unwrap_or(UNKNOWN);
        let probable = [likely, engine.seen[self.column].other, instead];
        for (tried, &place) in probable.iter().enumerate() {
            if !probable[..tried].contains(&place) && self.matches(kernel, lane, place, opening) {
                return Ok(place);
            }
        }
        self.walked(kernel, lane, probable)
    }

    /// Matches one chunk against a shape other than the expected one, and stores its row.
    #[inline(always)]
    fn matches(&mut self, kernel: Avx2, lane: usize, place: u16, opening: Option<&[u8; 16]>) -> bool {
        let Self { engine, bytes, expected, slot, .. } = self;
        let (at, bytes) = (self.at[lane], *bytes);
        let Some(shape) = engine.shapes.get(usize::from(place)).filter(|_| place != *expected) else {
            return false;
        };
        if opening.is_some_and(|&opening| !shape.may_open(opening)) {
            return false;
        }
        let mut values = [Values::default()];
        let [end] = match slot.is_some() {
            true => kernel.step::<true, 1>(bytes, [at], shape, &mut values),
            false => kernel.step::<false, 1>(bytes, [at], shape, &mut values),
        };
        if end == 0 {
            return false;
        }
        if let Some(slot) = *slot {
            match values[0].pack(at, shape) {
                Some(row) => self.lanes[lane].rows[slot] = row,
                None => return false,
            }
        }
        if let Some(instead) = engine.instead.get_mut(usize::from(*expected)) {
            *instead = place;
        }
        self.ends[lane] = end;
        true
    }

    /// Walks a chunk that does not match the `probable` shapes, and returns the shape of its kind.
    #[inline(always)]
    fn walked(&mut self, kernel: Avx2, lane: usize, probable: [u16; 3]) -> Step<u16> {
        let Self { engine, bytes, slot, expected, .. } = self;
        let mut cursor = Cursor::new(bytes, self.at[lane]);
        engine.tally.walked += 1;
        let walked = engine.walk_one(&mut cursor, *slot, &mut self.lanes[lane])?;
        self.ends[lane] = cursor.at;
        let Some((chunk, kind)) = walked else { return Ok(UNKNOWN) };
        let tried = |place| place == *expected || probable.contains(&place);
        Ok(engine.shape_of(kernel, bytes, (&chunk, cursor.at), kind, tried))
    }
}
