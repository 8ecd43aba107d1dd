//! Decodes the list of row groups: in lockstep if their starts can be guessed, otherwise one after the other.

use std::ops::Range;

use crate::chunk::rows::{Chunk, Packed};
use crate::decode::scan::{RowGroupFields, RowGroupWalk};
use crate::decode::usual;
use crate::error::{Fault, FaultKind};
use crate::matching::boundary::Opening;
use crate::matching::engine::{Engine, Lane, SKIPPED};
use crate::matching::kernel::{Method, PREFETCH};
use crate::memory::allocate;
use crate::memory::pages::{self, prefetch_range, prefetch_rows};
use crate::thrift::cursor::{Cursor, STRUCT, Step};

/// The most row groups walked in lockstep. Two hide much of the latency, four a little more.
const LANES: usize = 4;

/// The size of the smallest column chunk: an encrypted one without metadata.
const MIN_CHUNK_SIZE: usize = 5;

/// The number of chunks below which walking them is faster than learning their shapes, if neighbours are alike.
const WORTH_SHAPES: usize = 400;

/// The number of row groups and of chunks below which it is, if neighbours differ: with 1,800 columns of nine types in
/// one row group the walk takes half the time, with 100 row groups of 13 columns nine tenths.
const WORTH_GROUPS: usize = 16;
const WORTH_CHUNKS: usize = 6_000;

/// How many of the first chunks to compare with their neighbours.
const COMPARED: usize = 8;

/// How many bytes before its expected start to search first for a row group.
const NEAR: usize = 128;

/// How many bytes of rows to prefetch after the current row groups. Narrow row groups write rows at scattered
/// addresses, which the processor does not predict. Saves a twelfth of the time for 50 columns x 4,000 row groups.
const NEAR_ROWS: usize = 8 * 1024;

/// Which row groups and columns to decode, and how.
pub(crate) struct Wanted<'a> {
    /// The number of columns in the schema.
    pub columns: usize,
    /// The wanted columns in ascending order; `None` for all.
    pub selected: Option<&'a [u32]>,
    /// The wanted row groups.
    pub groups: Range<usize>,
    /// Whether to stop after the last wanted row group.
    pub stop_early: bool,
    pub method: Method,
    /// Whether shapes of few chunks are worth learning because similar footers follow.
    pub carries: bool,
}

/// The decoded row groups.
pub(crate) struct Groups {
    /// Each with its index in the file and the offset of its first chunk.
    pub fields: Vec<GroupFields>,
    /// A row for every decoded chunk, row group by row group.
    pub rows: Vec<Packed>,
    /// What the walk learned, including the chunks' traits. Boxed because it is moved often.
    pub engine: Box<Engine>,
    /// Chunks too wide for a row, with their rows, in ascending order.
    pub wide: Vec<(u32, Chunk)>,
    pub in_file: usize,
    /// Whether the walk reached the end of the list.
    pub finished: bool,
}

/// A decoded row group.
#[derive(Debug, Clone)]
pub(crate) struct GroupFields {
    pub index: u32,
    /// Where the first column chunk starts.
    pub first_chunk: u32,
    pub fields: RowGroupFields,
}

/// Decodes the list of row groups at the cursor, reusing the engine of a previous footer if given.
pub(crate) fn decode(
    cursor: &mut Cursor<'_>,
    wanted: &Wanted<'_>,
    engine: Option<Box<Engine>>,
) -> Step<Groups> {
    let start = cursor.at;
    let in_file = cursor.list_of(STRUCT, "a list of row groups (struct)")?;
    if in_file.saturating_mul(wanted.columns) > cursor.left() / MIN_CHUNK_SIZE {
        let count = in_file as u64;
        return Err(Fault::new(start, FaultKind::Count { count, left: cursor.left() as u64 }));
    }
    let width = wanted.selected.map_or(wanted.columns, <[u32]>::len);
    let groups = wanted.groups.start.min(in_file)..wanted.groups.end.min(in_file);
    let slots = |selected: &[u32]| -> Step<_> {
        let mut slots = allocate::with_room_at(start, wanted.columns)?;
        slots.resize(wanted.columns, SKIPPED);
        for (slot, &column) in selected.iter().enumerate() {
            slots[column as usize] = slot as u32;
        }
        Ok(slots)
    };
    let slots = wanted.selected.map(slots).transpose()?;
    let chunks = in_file.saturating_mul(wanted.columns);
    let worth = wanted.carries
        || in_file >= WORTH_GROUPS && chunks >= WORTH_CHUNKS
        || chunks >= WORTH_SHAPES && neighbours_are_alike(cursor, wanted.columns);
    let mut engine = match engine {
        Some(engine) => engine,
        None => Box::new(Engine::new(start, wanted.columns, wanted.method, worth)?),
    };
    engine.tally.listed += in_file.saturating_mul(wanted.columns) as u64;
    let mut walk = ListWalk {
        bytes: cursor.bytes,
        columns: wanted.columns,
        slots: slots.as_deref(),
        width,
        in_file,
        engine,
        opening: None,
        size: 0,
    };
    let bytes = (groups.len() as u64).saturating_mul((width * size_of::<Packed>()) as u64);
    let table = allocate::zeroed(groups.len() * width);
    let mut rows: Vec<Packed> = table.ok_or(Fault::new(start, FaultKind::Memory { bytes }))?;
    pages::advise(&mut rows);
    let mut fields = Vec::new();
    walk.run(cursor, 0..groups.start, 0, &mut [], None)?;
    walk.run(cursor, groups.clone(), 0, &mut rows, Some(&mut fields))?;
    let finished = !wanted.stop_early || groups.end == in_file;
    if finished {
        walk.run(cursor, groups.end..in_file, 0, &mut [], None)?;
    }
    let mut engine = walk.engine;
    let mut wide = std::mem::take(&mut engine.wide);
    wide.sort_unstable_by_key(|(row, _)| *row);
    Ok(Groups { fields, rows, engine, wide, in_file, finished })
}

/// Whether most of the first chunks of the row group at the cursor are of their neighbours' kind.
fn neighbours_are_alike(cursor: &Cursor<'_>, columns: usize) -> bool {
    let mut cursor = *cursor;
    if !matches!(RowGroupWalk::new(&cursor).until_columns(&mut cursor, columns), Ok(true)) {
        return false;
    }
    let (mut last, mut alike) = (None, 0);
    for _ in 0..COMPARED.min(columns) {
        let Some(found) = usual::column_chunk(cursor.bytes, cursor.at) else { return false };
        alike += usize::from(last == Some(found.kind));
        (last, cursor.at) = (Some(found.kind), found.end);
    }
    alike >= COMPARED / 2
}

/// The walk over the list.
struct ListWalk<'a> {
    bytes: &'a [u8],
    columns: usize,
    slots: Option<&'a [u32]>,
    /// Decoded columns per row group.
    width: usize,
    /// Row groups in the file.
    in_file: usize,
    engine: Box<Engine>,
    /// How row groups begin, known after the first one.
    opening: Option<Opening>,
    /// The size of the previous row group in bytes.
    size: usize,
}

impl ListWalk<'_> {
    /// Walks the row groups with these indices, all decoded or all skipped. `rows` starts with the rows of
    /// the first decoded one, which is row `first_row` overall.
    fn run(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: Range<usize>,
        first_row: usize,
        rows: &mut [Packed],
        mut fields: Option<&mut Vec<GroupFields>>,
    ) -> Step<()> {
        let mut index = indices.start;
        let mut row = 0;
        while index < indices.end {
            let rows = rows.get_mut(row..).unwrap_or_default();
            let left = indices.end - index;
            let before = index;
            if left > 1 {
                let mut done: [Option<(u32, RowGroupFields)>; LANES] = Default::default();
                let place = (cursor.at, self.in_file - index, first_row + row);
                let count = match left {
                    LANES.. => self.lockstep::<LANES>(cursor, place, rows, &mut done),
                    3 => self.lockstep::<3>(cursor, place, rows, &mut done),
                    _ => self.lockstep::<2>(cursor, place, rows, &mut done),
                };
                for (first_chunk, group) in done.into_iter().take(count).flatten() {
                    if let Some(fields) = &mut fields {
                        fields.push(GroupFields { index: index as u32, first_chunk, fields: group });
                    }
                    index += 1;
                }
            }
            if index == before {
                self.single(cursor, index, first_row + row, rows, fields.as_deref_mut())?;
                index += 1;
            }
            row += (index - before) * self.width;
        }
        Ok(())
    }

    /// Walks the row group at the cursor.
    fn single(
        &mut self,
        cursor: &mut Cursor<'_>,
        index: usize,
        first_row: usize,
        rows: &mut [Packed],
        fields: Option<&mut Vec<GroupFields>>,
    ) -> Step<()> {
        let start = cursor.at;
        let mut group = RowGroupWalk::new(cursor);
        let mut first_chunk = start;
        if group.until_columns(cursor, self.columns)? {
            first_chunk = cursor.at;
            let rows = rows.get_mut(..self.width).unwrap_or_default();
            let mut lanes = [Lane { at: cursor.at, first_row, rows }];
            self.engine.chunks(self.bytes, self.columns, self.slots, &mut lanes)?;
            cursor.at = lanes[0].at;
        }
        group.finish(cursor)?;
        self.size = cursor.at - start;
        // Useless if no row group follows.
        if self.opening.is_none() && self.in_file > 1 {
            self.opening = Opening::new(self.bytes, start, first_chunk, self.columns);
        }
        if let Some(fields) = fields {
            let (index, first_chunk) = (index as u32, first_chunk as u32);
            fields.push(GroupFields { index, first_chunk, fields: group.fields });
        }
        Ok(())
    }

    /// Guesses where the next row groups start; the first starts at `start`, and `left` are left in the file.
    fn guess<const N: usize>(&mut self, start: usize, left: usize) -> Option<[usize; N]> {
        if self.opening.is_none() {
            self.look(start, left);
        }
        let opening = self.opening.as_ref()?;
        let mut starts = [start; N];
        for lane in 1..N {
            let before = starts[lane - 1];
            starts[lane] =
                opening.find(self.bytes, before + self.size, (self.size / 8).max(512), before + 1)?;
        }
        Some(starts)
    }

    /// Prefetches the probable starts of the row groups after `last`, the last of those being walked, which
    /// have `size` bytes each. Skips the first of them, which the walk prefetches itself. Otherwise the
    /// search for each start and the first chunks of each row group stall: a tenth of the time for row groups
    /// of 50 columns that are not in the processor's caches.
    fn bring_near(&self, last: usize, size: usize) {
        for lane in 2..=LANES {
            let start = last + lane * size;
            prefetch_range(self.bytes, start.saturating_sub(NEAR)..start + PREFETCH);
        }
    }

    /// Records how the first row group, at `start`, begins and estimates its size as the mean of those left:
    /// in most footers little else follows them.
    fn look(&mut self, start: usize, left: usize) {
        let mut cursor = Cursor::new(self.bytes, start);
        if matches!(RowGroupWalk::new(&cursor).until_columns(&mut cursor, self.columns), Ok(true)) {
            self.opening = Opening::new(self.bytes, start, cursor.at, self.columns);
            self.size = (self.bytes.len() - start) / left.max(1);
        }
    }

    /// Walks the next row groups in lockstep, from `start`. Returns how many it walked, possibly 0, and leaves the
    /// cursor after the last of them.
    fn lockstep<const N: usize>(
        &mut self,
        cursor: &mut Cursor<'_>,
        (start, left, first_row): (usize, usize, usize),
        rows: &mut [Packed],
        done: &mut [Option<(u32, RowGroupFields)>; LANES],
    ) -> usize {
        let Some(starts) = self.guess::<N>(start, left) else { return 0 };
        if N > 1 {
            self.bring_near(starts[N - 1], (starts[N - 1] - start) / (N - 1));
        }
        let wide = self.engine.wide.len();
        let mut walks: [RowGroupWalk; N] = std::array::from_fn(|_| RowGroupWalk::default());
        let mut chunks = [0; N];
        for lane in 0..N {
            let mut at = Cursor::new(self.bytes, starts[lane]);
            walks[lane] = RowGroupWalk::new(&at);
            if !matches!(walks[lane].until_columns(&mut at, self.columns), Ok(true)) {
                return 0;
            }
            chunks[lane] = at.at;
        }
        let width = if rows.is_empty() { 0 } else { self.width };
        if let Some(next) =
            rows.get(N * width..(N * width + NEAR_ROWS / size_of::<Packed>()).min(2 * N * width))
        {
            prefetch_rows(next);
        }
        let mut parts = rows.chunks_mut(width.max(1));
        let mut lanes: [Lane<'_>; N] = std::array::from_fn(|lane| Lane {
            at: chunks[lane],
            first_row: first_row + lane * self.width,
            rows: parts.next().unwrap_or_default(),
        });
        let walked = self.engine.chunks(self.bytes, self.columns, self.slots, &mut lanes);
        let ends = lanes.map(|lane| lane.at);
        let mut count = 0;
        // A wrong guess may cause the fault: walking the row group alone decides.
        if walked.is_ok() {
            for (lane, mut walk) in walks.into_iter().enumerate() {
                if starts[lane] != cursor.at {
                    break;
                }
                let mut at = Cursor::new(self.bytes, ends[lane]);
                if walk.finish(&mut at).is_err() {
                    break;
                }
                done[lane] = Some((chunks[lane] as u32, walk.fields));
                self.size = at.at - starts[lane];
                cursor.at = at.at;
                count += 1;
            }
        }
        if count < N {
            let valid = first_row + count * self.width;
            let mut place = 0;
            self.engine.wide.retain(|(row, _)| {
                place += 1;
                place <= wide || (*row as usize) < valid
            });
        }
        count
    }
}
