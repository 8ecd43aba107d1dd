//! Shares row groups among threads: each takes one part after the other and guesses where it starts.
//!
//! ```text
//! list ─ part 0, known to start here ─▶│             │             │
//!            part 1, from a guess ──▶ ...┼────────────▶│             │ taken from where part 0 ended
//!                        part 2, from a guess ──▶ ... ──┼────────────▶│ and so on
//! ```
//!
//! Each thread has several parts, so that a thread whose core is busy takes fewer. Every other thread starts
//! with the last part: two threads that write to neighbouring parts would both clear the huge page between
//! them. A guess finds the start of some row group, but which one is still unknown. At the end the parts are
//! merged in order, each from the row group that starts where the previous part ends. So a part that starts a
//! little early or late is still useful; a part that never met a row group start is discarded.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::chunk::rows::{self, Chunk, Packed};
use crate::decode::groups::{GroupFields, LANES, ListWalk, MAX_LANES, lanes_for};
use crate::matching::kernel::Kernel;
use crate::memory::allocate;
use crate::thrift::cursor::{Cursor, Step};

/// The number of chunks below which a second thread does not pay: 20,000 took 0.53 ms on one thread and 0.62
/// to 0.74 ms on two, because a sleeping core had to wake.
const WORTH_THREADS: usize = 30_000;

/// The number of chunks below which a part does not pay: finding its start and merging it cost as much as
/// some dozens of chunks.
const WORTH_PART: usize = 10_000;

/// Up to this many row groups, the mean size distinguishes one from the next.
const FEW: usize = 64;

/// How long an idle thread stays awake for those still walking.
const SOON: Duration = Duration::from_micros(200);

/// A part that no thread has taken yet.
struct WaitingPart<'r> {
    indices: Range<usize>,
    /// The row of its first row group's first chunk, if it starts where expected.
    first_row: usize,
    rows: &'r mut [Packed],
}

/// State shared among threads.
struct SharedWork<'r> {
    waiting: std::vec::IntoIter<WaitingPart<'r>>,
    /// Row groups and their known or guessed starts.
    starts: BTreeMap<usize, usize>,
    /// Whether row groups are so few that a start found is that of the row group searched for.
    few: bool,
    /// The estimated size of a row group in bytes, used where the starts do not determine it.
    size: usize,
}

impl SharedWork<'_> {
    fn found(&mut self, index: usize, start: usize) {
        if self.few {
            self.starts.insert(index, start);
        }
    }

    /// Where a row group between known starts begins, or near which offset. Searching for the start of a 12
    /// MB row group takes up to a millisecond; a better guess shortens it.
    fn start_of(&self, index: usize) -> Start {
        let before = self.starts.range(..=index).next_back();
        match (before, self.starts.range(index..).next()) {
            (Some((&known, &at)), _) if known == index => Start::At(at),
            (Some((first, from)), Some((last, to))) if to > from => {
                Start::Near(from + (index - first) * ((to - from) / (last - first)))
            }
            (Some((first, from)), _) => Start::Near(from + (index - first) * self.size),
            (None, _) => Start::Near(0),
        }
    }
}

/// Where a part starts.
enum Start {
    At(usize),
    Near(usize),
}

/// A part after its walk.
struct WalkedPart {
    /// The row groups assigned to it; it may have walked fewer.
    indices: Range<usize>,
    fields: Vec<GroupFields>,
    /// Where the last of them ends.
    end: usize,
    /// Chunks too wide for a row, with their rows.
    wide: Vec<(u32, Chunk)>,
    /// Maps the trait indices of the thread that walked it to this engine's; empty if they are the same.
    places: Vec<u16>,
}

impl<K: Kernel> ListWalk<'_, K> {
    /// Like [`ListWalk::run`] for all decoded row groups, but shares them among threads if that may pay.
    pub fn shared(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: Range<usize>,
        rows: &mut [Packed],
        fields: &mut Vec<GroupFields>,
        threads: usize,
    ) -> Step<()> {
        let mut done = 0;
        if threads > 1
            && indices.len() > threads
            && indices.len().saturating_mul(self.columns) >= WORTH_THREADS
        {
            if self.opening.is_none() {
                self.look(cursor.at, self.in_file - indices.start);
            }
            if self.opening.is_some() {
                done = self.parts(cursor, &indices, rows, fields, threads)?;
            }
        }
        let row = done * self.width;
        let rest = rows.get_mut(row..).unwrap_or_default();
        self.run(cursor, indices.start + done..indices.end, row, rest, Some(fields))
    }

    /// Walks parts of the row groups on several threads and returns how many row groups are done.
    fn parts(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        rows: &mut [Packed],
        fields: &mut Vec<GroupFields>,
        threads: usize,
    ) -> Step<usize> {
        let width = self.width;
        let mut rest = &mut *rows;
        let mut waiting = Vec::new();
        let mut first = indices.start;
        for len in part_lens(indices.len(), threads, self.columns) {
            // Without room for its rows a part would skip them as unwanted.
            let Some((own, others)) = std::mem::take(&mut rest).split_at_mut_checked(len * width) else {
                break;
            };
            rest = others;
            let first_row = (first - indices.start) * width;
            waiting.push(WaitingPart { indices: first..first + len, first_row, rows: own });
            first += len;
        }
        // Of many row groups the mean size is a better estimate than the first one's size; of few, the
        // trailing fields may be as long as one row group and spoil the mean.
        let few = indices.len() <= FEW;
        let size = if few { self.size } else { (self.bytes.len() - cursor.at) / indices.len() };
        let starts = BTreeMap::from([(indices.start, cursor.at)]);
        let shared = Mutex::new(SharedWork { waiting: waiting.into_iter(), starts, few, size });
        let walked_elsewhere = Mutex::new(Vec::new());
        let mut walked = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .filter_map(|thread| {
                    let mut walk = self.clone();
                    walk.engine.wide.clear();
                    let (shared, elsewhere) = (&shared, &walked_elsewhere);
                    let run = move || {
                        let parts = walk.take_turns(shared, thread % 2 == 1);
                        elsewhere.lock().unwrap_or_else(PoisonError::into_inner).push((parts, walk.engine));
                    };
                    // A thread that cannot be started walks nothing.
                    std::thread::Builder::new().spawn_scoped(scope, run).ok()
                })
                .collect();
            let own = self.take_turns(&shared, false);
            // Threads end at about the same time: sleeping until then costs 50 to 80 us, 3 % of the time of
            // 10,000 columns.
            let ready =
                |others: &[ScopedJoinHandle<'_, ()>]| others.iter().all(ScopedJoinHandle::is_finished);
            let asked = Instant::now();
            while !ready(&others) && asked.elapsed() < SOON {
                std::hint::spin_loop();
            }
            own
        });
        let others = walked_elsewhere.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (parts, engine) in others {
            // Without room for its traits a thread's parts cannot be used.
            if let Some(places) = self.engine.adopt(&engine) {
                walked.extend(parts.into_iter().map(|part| WalkedPart { places: places.clone(), ..part }));
            }
        }
        walked.sort_unstable_by_key(|part| part.indices.start);
        let mut done = 0;
        for part in walked {
            if !self.take(cursor, indices, part, rows, fields, &mut done)? {
                break;
            }
        }
        Ok(done)
    }

    /// Takes waiting parts one by one, sharing them with other threads, from the front or from the back.
    fn take_turns(&mut self, shared: &Mutex<SharedWork<'_>>, last: bool) -> Vec<WalkedPart> {
        let before = std::mem::take(&mut self.engine.wide);
        let mut parts = Vec::new();
        let shared = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut at_hand = shared();
            let next = if last { at_hand.waiting.next_back() } else { at_hand.waiting.next() };
            let Some(next) = next else { break };
            let (start, reach) = (at_hand.start_of(next.indices.start), at_hand.size / 2);
            drop(at_hand);
            let found = match start {
                Start::At(start) => Some(start),
                Start::Near(place) => {
                    self.opening.as_ref().and_then(|opening| opening.find(self.bytes, place, reach, 0))
                }
            };
            let Some(start) = found else { continue };
            shared().found(next.indices.start, start);
            let part = self.part(next, start);
            if part.fields.len() == part.indices.len() {
                shared().found(part.indices.end, part.end);
            }
            parts.push(part);
        }
        self.engine.wide = before;
        parts
    }

    /// Walks a part from its start while row groups follow.
    fn part(&mut self, waiting: WaitingPart<'_>, start: usize) -> WalkedPart {
        let WaitingPart { indices, first_row, rows } = waiting;
        let mut cursor = Cursor::new(self.bytes, start);
        let (room, mut end) = (allocate::with_room(indices.len()), start);
        // Without memory for its row groups the part walks none; the merge then walks them one after the
        // other.
        let mut next = if room.is_some() { indices.start } else { indices.end };
        let mut fields = room.unwrap_or_default();
        while next < indices.end {
            let few = next..next + lanes_for(indices.end - next);
            let row = (next - indices.start) * self.width;
            let rows = rows.get_mut(row..).unwrap_or_default();
            let known = fields.len();
            let wide = self.engine.wide.len();
            if self.run(&mut cursor, few.clone(), first_row + row, rows, Some(&mut fields)).is_err() {
                // Perhaps the end of the list; the walk that reaches it decides.
                fields.truncate(known);
                self.engine.wide.truncate(wide);
                break;
            }
            (next, end) = (few.end, cursor.at);
        }
        WalkedPart { indices, fields, end, wide: std::mem::take(&mut self.engine.wide), places: Vec::new() }
    }

    /// Takes over a part's row groups from the one that starts where the previous part ends; false if the
    /// part cannot be used.
    fn take(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        part: WalkedPart,
        rows: &mut [Packed],
        fields: &mut Vec<GroupFields>,
        done: &mut usize,
    ) -> Step<bool> {
        let WalkedPart { indices: guessed, fields: mut found, end, mut wide, places } = part;
        let width = self.width;
        let starts_at =
            |cursor: &Cursor<'_>| found.binary_search_by_key(&cursor.at, |group| group.fields.at as usize);
        // Row groups before the part's first are walked here, into a buffer: the part's own rows occupy their
        // place.
        let mut between: Vec<Packed> = Vec::new();
        let most = guessed.len() / 4 + 1;
        let before = *done;
        while starts_at(cursor).is_err() {
            let ahead = found.first().is_some_and(|first| cursor.at < first.fields.at as usize);
            if !ahead || *done - before >= most || *done >= indices.len() {
                break;
            }
            between.resize(between.len() + width, Packed::default());
            let row = between.len() - width;
            let index = indices.start + *done;
            self.run(cursor, index..index + 1, *done * width, &mut between[row..], Some(fields))?;
            *done += 1;
        }
        let mut useful = false;
        if let Ok(first) = starts_at(cursor) {
            // Take only as many as fit the part's own rows: the next part's rows follow.
            let count = (found.len() - first).min((guessed.end - indices.start).saturating_sub(*done));
            let from = (guessed.start - indices.start + first) * width;
            let to = *done * width;
            let own = from..from + count * width;
            wide.retain(|(row, _)| own.contains(&(*row as usize)));
            wide.iter_mut().for_each(|(row, _)| *row = (*row as usize - from + to) as u32);
            self.engine.wide.append(&mut wide);
            // The part may have walked more row groups after the last one taken.
            let next = found.get(first + count).map(|next| next.fields.at as usize);
            if !places.is_empty() {
                for row in rows.get_mut(own.clone()).into_iter().flatten() {
                    rows::relocate(row, &places);
                }
            }
            if from != to && own.end <= rows.len() && to + own.len() <= rows.len() {
                rows.copy_within(own, to);
            }
            for (place, mut group) in found.drain(first..first + count).enumerate() {
                group.index = (indices.start + *done + place) as u32;
                fields.push(group);
            }
            cursor.at = next.unwrap_or(end);
            *done += count;
            useful = true;
        }
        let to = before * width;
        if let Some(place) = rows.get_mut(to..to + between.len()) {
            place.copy_from_slice(&between);
        }
        Ok(useful)
    }
}

/// Splits `row_groups` row groups of `columns` columns into parts: each large enough to pay, equally many per
/// thread, and about equal in size, so that the threads end together. Two parts of three row groups are
/// better than one of four and one of two, which leaves half of the lanes empty.
fn part_lens(row_groups: usize, threads: usize, columns: usize) -> Vec<usize> {
    let all_full = |lanes| row_groups.is_multiple_of(threads * lanes);
    let lanes = if all_full(MAX_LANES) && !all_full(LANES) { MAX_LANES } else { LANES };
    let worth = WORTH_PART.div_ceil(columns.max(1)).next_multiple_of(lanes);
    let parts = row_groups.div_ceil(worth).next_multiple_of(threads);
    let len = |part| row_groups * (part + 1) / parts - row_groups * part / parts;
    (0..parts).map(len).filter(|&len| len > 0).collect()
}
