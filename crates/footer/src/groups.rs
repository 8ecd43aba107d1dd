//! The list of row groups: in lockstep where starts can be guessed, one after the other where not.

use std::ops::Range;

use crate::boundary::Opening;
use crate::engine::{Engine, Lane, SKIPPED};
use crate::error::{Fault, FaultKind};
use crate::huge;
use crate::kernel::Kernel;
use crate::rows::{Packed, Rows};
use crate::scan::{RowGroupFields, RowGroupWalk};
use crate::thrift::{Cursor, STRUCT, Step};

/// Row groups walked in lockstep. Two hide much of the latency, four a little more.
const LANES: usize = 4;

/// The smallest column chunk: an encrypted one without metadata.
const SMALLEST_CHUNK: usize = 5;

/// What is wanted of the row groups.
pub(crate) struct Wanted<'a> {
    /// The number of columns in the schema.
    pub columns: usize,
    /// The wanted columns in ascending order; none for all.
    pub selected: Option<&'a [u32]>,
    /// The wanted row groups.
    pub groups: Range<usize>,
    /// Whether to stop behind the last wanted row group.
    pub stop_early: bool,
    /// Whether to match chunks against shapes.
    pub matching: bool,
}

/// The decoded row groups.
pub(crate) struct Groups {
    /// With the index in the file and the place of the first chunk.
    pub fields: Vec<GroupFields>,
    pub rows: Rows,
    pub in_file: usize,
    /// Whether the walk went through to the end of the list.
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

/// Decodes the list of row groups at the cursor.
pub(crate) fn decode<K: Kernel>(kernel: K, cursor: &mut Cursor<'_>, wanted: &Wanted<'_>) -> Step<Groups> {
    let start = cursor.at;
    let in_file = cursor.list_of(STRUCT, "a list of row groups (struct)")?;
    if in_file.saturating_mul(wanted.columns) > cursor.left() / SMALLEST_CHUNK {
        let count = in_file as u64;
        return Err(Fault::new(start, FaultKind::Count { count, left: cursor.left() as u64 }));
    }
    let width = wanted.selected.map_or(wanted.columns, <[u32]>::len);
    let groups = wanted.groups.start.min(in_file)..wanted.groups.end.min(in_file);
    let slots = wanted.selected.map(|selected| {
        let mut slots = vec![SKIPPED; wanted.columns];
        for (slot, &column) in selected.iter().enumerate() {
            slots[column as usize] = slot as u32;
        }
        slots
    });
    let mut walk = Walk {
        kernel,
        bytes: cursor.bytes,
        columns: wanted.columns,
        slots: slots.as_deref(),
        width,
        engine: Engine::new(wanted.columns, wanted.matching),
        opening: None,
        size: 0,
    };
    let mut packed: Vec<Packed> = vec![[0; 4]; groups.len() * width];
    huge::advise(&mut packed);
    let mut fields = Vec::new();
    let mut index = 0;
    while index < in_file {
        if wanted.stop_early && index >= groups.end {
            break;
        }
        let inside = groups.contains(&index);
        // Row groups that are treated alike.
        let alike = if inside {
            groups.end - index
        } else if index < groups.start {
            groups.start - index
        } else {
            in_file - index
        };
        let first_row = if inside { (index - groups.start) * width } else { 0 };
        let rows = if inside { &mut packed[first_row..] } else { &mut [][..] };
        let mut done: [Option<(u32, RowGroupFields)>; LANES] = Default::default();
        let count = match walk.guess(cursor.at, alike) {
            Some(starts) => walk.lockstep(cursor, starts, first_row, rows, &mut done),
            None => 0,
        };
        let count = if count == 0 {
            done[0] = Some(walk.single(cursor, first_row, rows)?);
            1
        } else {
            count
        };
        for (lane, done) in done.into_iter().take(count).enumerate() {
            if let Some((first_chunk, group)) = done
                && inside
            {
                fields.push(GroupFields { index: (index + lane) as u32, first_chunk, fields: group });
            }
        }
        index += count;
    }
    let Engine { traits, mut wide, .. } = walk.engine;
    wide.sort_unstable_by_key(|(row, _)| *row);
    Ok(Groups { fields, rows: Rows { packed, traits, wide }, in_file, finished: index == in_file })
}

struct Walk<'a, K> {
    kernel: K,
    bytes: &'a [u8],
    columns: usize,
    slots: Option<&'a [u32]>,
    /// Decoded columns in a row group.
    width: usize,
    engine: Engine,
    /// How row groups open, once one was walked.
    opening: Option<Opening>,
    /// The bytes of the row group before.
    size: usize,
}

impl<K: Kernel> Walk<'_, K> {
    /// Walks the row group at the cursor.
    fn single(
        &mut self,
        cursor: &mut Cursor<'_>,
        first_row: usize,
        rows: &mut [Packed],
    ) -> Step<(u32, RowGroupFields)> {
        let start = cursor.at;
        let mut group = RowGroupWalk::new(cursor);
        let mut first_chunk = start;
        if group.until_columns(cursor, self.columns)? {
            first_chunk = cursor.at;
            let rows = rows.get_mut(..self.width).unwrap_or_default();
            let mut lanes = [Lane { at: cursor.at, first_row, rows }];
            self.engine.chunks(self.kernel, self.bytes, self.columns, self.slots, &mut lanes)?;
            cursor.at = lanes[0].at;
        }
        let group = group.finish(cursor)?;
        self.size = cursor.at - start;
        if self.opening.is_none() {
            self.opening = Opening::new(self.bytes, start, first_chunk);
        }
        Ok((first_chunk as u32, group))
    }

    /// Where the next row groups may start, of which the first starts at `start` and `alike` are to
    /// come.
    fn guess(&self, start: usize, alike: usize) -> Option<[usize; LANES]> {
        let opening = self.opening.as_ref().filter(|_| alike >= LANES)?;
        let mut starts = [start; LANES];
        for lane in 1..LANES {
            let before = starts[lane - 1];
            starts[lane] =
                opening.find(self.bytes, before + self.size, (self.size / 8).max(512), before + 1)?;
        }
        Some(starts)
    }

    /// Walks the row groups at `starts` in lockstep and says how many of them are so, which may be
    /// none; the cursor is then behind the last of them.
    fn lockstep(
        &mut self,
        cursor: &mut Cursor<'_>,
        starts: [usize; LANES],
        first_row: usize,
        rows: &mut [Packed],
        done: &mut [Option<(u32, RowGroupFields)>; LANES],
    ) -> usize {
        let wide = self.engine.wide.len();
        let mut walks: [RowGroupWalk; LANES] = Default::default();
        let mut chunks = [0; LANES];
        for lane in 0..LANES {
            let mut at = Cursor::new(self.bytes, starts[lane]);
            walks[lane] = RowGroupWalk::new(&at);
            if !matches!(walks[lane].until_columns(&mut at, self.columns), Ok(true)) {
                return 0;
            }
            chunks[lane] = at.at;
        }
        let width = if rows.is_empty() { 0 } else { self.width };
        let mut parts = rows.chunks_mut(width.max(1));
        let mut lanes: [Lane<'_>; LANES] = std::array::from_fn(|lane| Lane {
            at: chunks[lane],
            first_row: first_row + lane * self.width,
            rows: parts.next().unwrap_or_default(),
        });
        let walked = self.engine.chunks(self.kernel, self.bytes, self.columns, self.slots, &mut lanes);
        let ends = lanes.map(|lane| lane.at);
        let mut count = 0;
        // A fault may come of a wrong guess: the row group is then walked alone, which tells.
        if walked.is_ok() {
            for (lane, walk) in walks.into_iter().enumerate() {
                if starts[lane] != cursor.at {
                    break;
                }
                let mut at = Cursor::new(self.bytes, ends[lane]);
                let Ok(fields) = walk.finish(&mut at) else { break };
                done[lane] = Some((chunks[lane] as u32, fields));
                self.size = at.at - starts[lane];
                cursor.at = at.at;
                count += 1;
            }
        }
        if count < LANES {
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
