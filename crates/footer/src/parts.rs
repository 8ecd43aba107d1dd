//! Row groups shared out among threads: each takes one part after the other, from a start that is guessed.
//!
//! ```text
//! list ─ part 0, known to start here ─▶│             │             │
//!            part 1, from a guess ──▶ ...┼────────────▶│             │ taken from where part 0 has come to
//!                        part 2, from a guess ──▶ ... ──┼────────────▶│ and so on
//! ```
//!
//! Parts are several for each thread, so that a thread whose core is busy with something else takes fewer of
//! them. A guess is near the start of some row group, but which one it is remains to be seen: in the end the
//! parts are taken over one after the other, each from the row group on that starts where those before it
//! end. So a part that starts a little early or late is of use all the same, and one that was not at a row
//! group at all is not used.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::groups::{GroupFields, LANES, Walk};
use crate::kernel::Kernel;
use crate::row::Row;
use crate::rows::Chunk;
use crate::thrift::{Cursor, Step};

/// Fewer chunks than this are walked sooner than another thread is started: 20,000 took 0.53 ms on one thread
/// and 0.62 to 0.74 on two, whose second has a sleeping core to wake.
const WORTH_THREADS: usize = 30_000;

/// Fewer chunks than this are not worth a part of their own: to find its start and to take it over costs
/// what some dozens of them cost.
const WORTH_PART: usize = 10_000;

/// How long a thread that has nothing left to walk stays awake for those that have.
const SOON: Duration = Duration::from_micros(200);

/// Where a part starts.
#[derive(Debug, Clone, Copy)]
enum Start {
    Known(usize),
    /// Near this place, at most so many bytes away: the thread that walks the part looks for it. Of row groups of
    /// 12 MB the look takes up to a millisecond, which all threads would wait for.
    Near(usize, usize),
}

/// A part that waits for a thread.
struct Waiting<'r, T> {
    start: Start,
    indices: Range<usize>,
    /// The row of its first row group's first chunk, if it starts where it should.
    first_row: usize,
    rows: &'r mut [MaybeUninit<T>],
}

/// A part that was walked.
struct Part {
    /// The row groups that it took for its own, of which it may have walked fewer.
    indices: Range<usize>,
    fields: Vec<GroupFields>,
    /// Where the last of them ends.
    end: usize,
    /// Chunks too wide for a row.
    wide: Vec<(u32, Chunk)>,
    /// For every place among the traits of the thread that walked it the one here; empty if they are the same.
    places: Vec<u16>,
}

impl<K: Kernel> Walk<'_, K> {
    /// As [`Walk::run`] for all decoded row groups, sharing them out among threads if that may pay.
    pub fn shared<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: Range<usize>,
        rows: &mut [MaybeUninit<T>],
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
                let starts = self.guess_parts(cursor.at, &indices, threads);
                done = self.parts(cursor, &indices, &starts, rows, fields, threads)?;
            }
        }
        let row = done * self.width;
        let rest = rows.get_mut(row..).unwrap_or_default();
        self.run(cursor, indices.start + done..indices.end, row, rest, Some(fields))
    }

    /// Walks parts of the row groups on several threads and says how many row groups are so.
    fn parts<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        starts: &[(Start, Range<usize>)],
        rows: &mut [MaybeUninit<T>],
        fields: &mut Vec<GroupFields>,
        threads: usize,
    ) -> Step<usize> {
        let width = self.width;
        let mut rest = &mut *rows;
        let mut waiting = Vec::with_capacity(starts.len());
        for (start, part) in starts {
            let len = (part.len() * width).min(rest.len());
            let (own, others) = std::mem::take(&mut rest).split_at_mut(len);
            rest = others;
            let first_row = (part.start - indices.start) * width;
            waiting.push(Waiting { start: *start, indices: part.clone(), first_row, rows: own });
        }
        let waiting = Mutex::new(waiting.into_iter());
        let walked_elsewhere = Mutex::new(Vec::new());
        let mut walked = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .filter_map(|thread| {
                    let mut walk = self.clone();
                    walk.engine.wide.clear();
                    let (waiting, elsewhere) = (&waiting, &walked_elsewhere);
                    let run = move || {
                        let parts = walk.take_turns(waiting, thread % 2 == 1);
                        elsewhere.lock().unwrap_or_else(PoisonError::into_inner).push((parts, walk.engine));
                    };
                    // A thread that cannot be started walks nothing.
                    std::thread::Builder::new().spawn_scoped(scope, run).ok()
                })
                .collect();
            let own = self.take_turns(&waiting, false);
            // Threads end at about the same time: to sleep until then, and until the other one is gone, costs 50
            // to 80 us, 3 % of the time of 10,000 columns.
            let ready =
                |others: &[ScopedJoinHandle<'_, ()>]| others.iter().all(ScopedJoinHandle::is_finished);
            let asked = Instant::now();
            while !ready(&others) && asked.elapsed() < SOON {
                std::hint::spin_loop();
            }
            own
        });
        // A thread that panicked has walked nothing.
        let others = walked_elsewhere.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (parts, engine) in others {
            // Without room for its traits a thread's parts are of no use.
            if let Some(places) = self.engine.adopt(&engine) {
                walked.extend(parts.into_iter().map(|part| Part { places: places.clone(), ..part }));
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

    /// Walks one waiting part after the other, in turns with other threads, the first one or the last one first.
    fn take_turns<T: Row>(
        &mut self,
        waiting: &Mutex<std::vec::IntoIter<Waiting<'_, T>>>,
        last: bool,
    ) -> Vec<Part> {
        let before = std::mem::take(&mut self.engine.wide);
        let mut parts = Vec::new();
        loop {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let next = if last { waiting.next_back() } else { waiting.next() };
            drop(waiting);
            let Some(next) = next else { break };
            parts.push(self.part(next));
        }
        self.engine.wide = before;
        parts
    }

    /// Walks a part from its start, as far as there are row groups.
    fn part<T: Row>(&mut self, waiting: Waiting<'_, T>) -> Part {
        let Waiting { start, indices, first_row, rows } = waiting;
        let found = match start {
            Start::Known(start) => Some(start),
            Start::Near(place, reach) => {
                self.opening.as_ref().and_then(|opening| opening.find(self.bytes, place, reach, 0))
            }
        };
        let Some(start) = found else {
            return Part { indices, fields: Vec::new(), end: 0, wide: Vec::new(), places: Vec::new() };
        };
        let mut cursor = Cursor::new(self.bytes, start);
        let (mut fields, mut end) = (Vec::with_capacity(indices.len()), start);
        let mut next = indices.start;
        while next < indices.end {
            let few = next..indices.end.min(next + LANES);
            let row = (next - indices.start) * self.width;
            let rows = rows.get_mut(row..).unwrap_or_default();
            let known = fields.len();
            let wide = self.engine.wide.len();
            if self.run(&mut cursor, few.clone(), first_row + row, rows, Some(&mut fields)).is_err() {
                // The end of the list, perhaps; whoever comes there will see.
                fields.truncate(known);
                self.engine.wide.truncate(wide);
                break;
            }
            (next, end) = (few.end, cursor.at);
        }
        Part { indices, fields, end, wide: std::mem::take(&mut self.engine.wide), places: Vec::new() }
    }

    /// Takes over the row groups of a part from the one on that starts where those before it end; false if
    /// the part is not of use.
    fn take<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        part: Part,
        rows: &mut [MaybeUninit<T>],
        fields: &mut Vec<GroupFields>,
        done: &mut usize,
    ) -> Step<bool> {
        let Part { indices: guessed, fields: mut found, end, mut wide, places } = part;
        let width = self.width;
        let starts_at =
            |cursor: &Cursor<'_>| found.binary_search_by_key(&cursor.at, |group| group.fields.at as usize);
        // Row groups before the part's first are walked here: the part's own rows are where theirs go.
        let mut between: Vec<MaybeUninit<T>> = Vec::new();
        let most = guessed.len() / 4 + 1;
        let before = *done;
        while starts_at(cursor).is_err() {
            let ahead = found.first().is_some_and(|first| cursor.at < first.fields.at as usize);
            if !ahead || *done - before >= most || *done >= indices.len() {
                break;
            }
            between.resize(between.len() + width, MaybeUninit::uninit());
            let row = between.len() - width;
            let index = indices.start + *done;
            self.run(cursor, index..index + 1, *done * width, &mut between[row..], Some(fields))?;
            *done += 1;
        }
        let mut useful = false;
        if let Ok(first) = starts_at(cursor) {
            // No further than its own rows go: behind them are those of the next part.
            let count = (found.len() - first).min((guessed.end - indices.start).saturating_sub(*done));
            let from = (guessed.start - indices.start + first) * width;
            let to = *done * width;
            let own = from..from + count * width;
            wide.retain(|(row, _)| own.contains(&(*row as usize)));
            wide.iter_mut().for_each(|(row, _)| *row = (*row as usize - from + to) as u32);
            self.engine.wide.append(&mut wide);
            // Behind the last row group that is taken the part may have walked others.
            let next = found.get(first + count).map(|next| next.fields.at as usize);
            if !places.is_empty() {
                for row in rows.get_mut(own.clone()).into_iter().flatten() {
                    // SAFETY: rows of row groups that the part has walked to their end, and so written.
                    unsafe { row.assume_init_mut() }.relocate(&places);
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

    /// Where parts of the row groups may start, of which the first starts at `start`.
    fn guess_parts(
        &self,
        start: usize,
        indices: &Range<usize>,
        threads: usize,
    ) -> Vec<(Start, Range<usize>)> {
        // Of many row groups the mean size is known better than from the first; of few, what follows
        // them in the footer may be as long as one of them.
        let size = match indices.len() {
            len if len > 64 => (self.bytes.len() - start) / len,
            _ => self.size,
        };
        let mut parts = Vec::new();
        let mut first = 0;
        for len in part_lens(indices.len(), threads, self.columns) {
            let at = match first {
                0 => Start::Known(start),
                first => Start::Near(start + first * size, size / 2),
            };
            parts.push((at, indices.start + first..indices.start + first + len));
            first += len;
        }
        parts
    }
}

/// The numbers of row groups of the parts of `row_groups` ones of `columns` columns: as many as are worth a
/// part and fill all lanes; what is left is shared out evenly, so that the threads end at the same time.
fn part_lens(row_groups: usize, threads: usize, columns: usize) -> Vec<usize> {
    let worth = WORTH_PART.div_ceil(columns.max(1)).next_multiple_of(LANES);
    // Not so many that none would be left to be shared out.
    let large = (row_groups / worth).saturating_sub(threads - 1);
    let left = row_groups - large * worth;
    let last = (0..threads).map(|part| left * (part + 1) / threads - left * part / threads);
    let before = std::iter::repeat_n(worth, large.div_ceil(2));
    before.chain(last).chain(std::iter::repeat_n(worth, large / 2)).filter(|&len| len > 0).collect()
}
