//! Row groups shared out among threads: each walks a part of them from a start that is guessed.
//!
//! ```text
//! list ─ part 0, known to start here ──────▶│             │
//!            part 1, from a guess ──▶ ... ───┼────────────▶│ taken from where part 0 has come to
//! ```
//!
//! A guess is near the start of some row group, but which one it is remains to be seen: parts are taken one
//! after the other, each from the row group on that starts where those before it end. So a part that starts
//! a little early or late is of use all the same, and one that was not at a row group at all is not used.

use std::ops::Range;

use crate::engine::Engine;
use crate::groups::{GroupFields, LANES, Walk};
use crate::kernel::Kernel;
use crate::row::Row;
use crate::thrift::{Cursor, Step};

/// Fewer chunks than this are walked sooner than another thread is started.
const WORTH_THREADS: usize = 20_000;

/// What a thread has found.
struct Part {
    /// The row groups that it took for its own, of which it may have walked fewer.
    indices: Range<usize>,
    fields: Vec<GroupFields>,
    /// Where the last of them ends.
    end: usize,
    engine: Box<Engine>,
}

impl<K: Kernel> Walk<'_, K> {
    /// As [`Walk::run`] for all decoded row groups, sharing them out among threads if that may pay.
    pub fn shared<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: Range<usize>,
        rows: &mut [T],
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
            if let Some(starts) = self.guess_parts(cursor.at, &indices, threads) {
                done = self.parts(cursor, &indices, &starts, rows, fields)?;
            }
        }
        let row = done * self.width;
        let rest = rows.get_mut(row..).unwrap_or_default();
        self.run(cursor, indices.start + done..indices.end, row, rest, Some(fields))
    }

    /// Walks parts of the row groups on a thread each and says how many row groups are so.
    fn parts<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        starts: &[(usize, Range<usize>)],
        rows: &mut [T],
        fields: &mut Vec<GroupFields>,
    ) -> Step<usize> {
        let width = self.width;
        let mut rest = &mut *rows;
        let results = std::thread::scope(|scope| {
            let (mut running, mut own_part) = (Vec::new(), None);
            for (start, part) in starts {
                let len = (part.len() * width).min(rest.len());
                let (own, others) = std::mem::take(&mut rest).split_at_mut(len);
                rest = others;
                let mut walk = self.clone();
                walk.engine.wide.clear();
                let (start, part) = (*start, part.clone());
                let first_row = (part.start - indices.start) * width;
                let run = move || walk.part(start, part, first_row, own);
                // The first part is for this thread, which would only wait.
                match own_part {
                    None => own_part = Some(run),
                    Some(_) => running.push(std::thread::Builder::new().spawn_scoped(scope, run)),
                }
            }
            let first = own_part.map(|run| run());
            // A thread that could not be started or that panicked has walked nothing.
            let others = running.into_iter().map(|thread| thread.ok()?.join().ok());
            std::iter::once(first).chain(others).collect::<Vec<_>>()
        });
        let mut done = 0;
        for part in results {
            let Some(part) = part else { break };
            if !self.take(cursor, indices, part, rows, fields, &mut done)? {
                break;
            }
        }
        Ok(done)
    }

    /// Walks a part from `start`, as far as there are row groups.
    fn part<T: Row>(mut self, start: usize, indices: Range<usize>, first_row: usize, rows: &mut [T]) -> Part {
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
        Part { indices, fields, end, engine: self.engine }
    }

    /// Takes over the row groups of a part from the one on that starts where those before it end; false if
    /// the part is not of use.
    fn take<T: Row>(
        &mut self,
        cursor: &mut Cursor<'_>,
        indices: &Range<usize>,
        part: Part,
        rows: &mut [T],
        fields: &mut Vec<GroupFields>,
        done: &mut usize,
    ) -> Step<bool> {
        let Part { indices: guessed, fields: mut found, end, mut engine } = part;
        let width = self.width;
        let starts_at =
            |cursor: &Cursor<'_>| found.binary_search_by_key(&cursor.at, |group| group.fields.at as usize);
        // Row groups before the part's first are walked here: the part's own rows are where theirs go.
        let mut between: Vec<T> = Vec::new();
        let most = guessed.len() / 4 + 1;
        let before = *done;
        while starts_at(cursor).is_err() {
            let ahead = found.first().is_some_and(|first| cursor.at < first.fields.at as usize);
            if !ahead || *done - before >= most || *done >= indices.len() {
                break;
            }
            between.resize(between.len() + width, T::EMPTY);
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
            engine.wide.retain(|(row, _)| own.contains(&(*row as usize)));
            engine.wide.iter_mut().for_each(|(row, _)| *row = (*row as usize - from + to) as u32);
            // Behind the last row group that is taken the part may have walked others.
            let next = found.get(first + count).map(|next| next.fields.at as usize);
            if self.engine.adopt(*engine, rows.get_mut(own.clone()).unwrap_or_default()) {
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
    ) -> Option<Vec<(usize, Range<usize>)>> {
        let opening = self.opening.as_ref()?;
        // Of many row groups the mean size is known better than from the first; of few, what follows
        // them in the footer may be as long as one of them.
        let size = match indices.len() {
            len if len > 64 => (self.bytes.len() - start) / len,
            _ => self.size,
        };
        let mut parts: Vec<(usize, Range<usize>)> = Vec::new();
        for part in 0..threads {
            let first = indices.len() * part / threads;
            let last = indices.len() * (part + 1) / threads;
            let at = match first {
                0 => start,
                first => opening.find(self.bytes, start + first * size, size / 2, start + 1)?,
            };
            if first < last {
                parts.push((at, indices.start + first..indices.start + last));
            }
        }
        Some(parts)
    }
}
