//! Where records start: chunks are scanned in parallel for both possibilities, inside and outside of quotes,
//! which are resolved in order.
//!
//! Chunks begin after a newline. There, only two states are possible: a record starts, or a quoted field
//! continues. The wrong assumption usually ends soon, because the text after its closing quote does not fit.

use std::collections::BTreeMap;
use std::io;

use memchr::{memchr, memchr_iter, memchr2, memrchr};
use sawmill_footer::RangeReader;

use super::block::{Block, Stops};
use super::splitter::{After, Splitter};

/// Bytes of a chunk. The fingerprints of files depend on it.
pub(crate) const CHUNK: u64 = 1 << 20;

/// The first record that starts in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its place in the file.
    pub offset: u64,
    /// How many records and newlines are before it.
    pub rows: u64,
    pub lines: u64,
}

/// A chunk's records, if it begins in one of both states. Places count from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// The first record that starts here, and the newlines before it in the chunk.
    pub first: Option<(u64, u64)>,
    pub records: u64,
    pub exit: Exit,
}

/// How a walk through a chunk ends. A quote that was opened before the chunk has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    AtRecord,
    InQuotes { opened: Option<u64> },
    Wrong { opened: Option<u64>, at: u64 },
}

/// The result of scanning a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    pub at_record: Walk,
    pub in_quotes: Walk,
    /// Newlines in it.
    pub lines: u64,
    /// Where it ends.
    pub end: u64,
    /// The hash of its bytes on the grid of chunks.
    pub hash: u64,
}

/// Why a chunk cannot be scanned.
pub(crate) enum Unscanned {
    Io(io::Error),
    /// A line without an end within the longest record.
    LongLine {
        start: u64,
    },
}

impl From<io::Error> for Unscanned {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The grid of chunks of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Where the first record after the header starts.
    pub start: u64,
    pub end: u64,
    pub chunk: u64,
    pub longest_record: u64,
}

impl Grid {
    pub(crate) fn chunks(&self) -> u64 {
        (self.end - self.start).div_ceil(self.chunk)
    }

    /// Scans the n-th chunk.
    pub(crate) fn scan(
        &self,
        file: &dyn RangeReader,
        number: u64,
        splitter: &Splitter,
        buffer: &mut Vec<u8>,
    ) -> Result<Scan, Unscanned> {
        let on_grid = self.start + number * self.chunk;
        let grid_end = self.end.min(on_grid + self.chunk);
        let from = if number == 0 { on_grid } else { on_grid - 1 };
        // Its earlier content is overwritten: most chunks have the same length.
        buffer.resize((grid_end - from) as usize, 0);
        file.read_exact_at(from, buffer)?;
        let hash = xxhash_rust::xxh3::xxh3_64(&buffer[(on_grid - from) as usize..]);
        let start = match number {
            0 => Some(0),
            _ => memchr(splitter.newline, buffer)
                .map(|newline| newline + 1)
                .filter(|start| *start < buffer.len()),
        };
        let nothing = |exit| Walk { first: None, records: 0, exit };
        let Some(start) = start else {
            let in_quotes = nothing(Exit::InQuotes { opened: None });
            return Ok(Scan { at_record: nothing(Exit::AtRecord), in_quotes, lines: 0, end: grid_end, hash });
        };
        let mut read = grid_end;
        while buffer.last() != Some(&splitter.newline) && read < self.end {
            let before = buffer.len();
            let next = self.end.min(read + (64 << 10));
            append(file, read, next, buffer)?;
            read = next;
            if let Some(newline) = memchr(splitter.newline, &buffer[before..]) {
                buffer.truncate(before + newline + 1);
            } else if read - on_grid > self.longest_record + self.chunk {
                let line = memrchr(splitter.newline, &buffer[..before]).map_or(0, |newline| newline + 1);
                return Err(Unscanned::LongLine { start: from + line as u64 });
            }
        }
        let text = &buffer[start..];
        let base = from + start as u64;
        let walk =
            |state| Walker { splitter, text, base, is_end: base + text.len() as u64 == self.end }.walk(state);
        Ok(Scan {
            at_record: walk(State::AtRecord(0)),
            in_quotes: walk(State::InQuotes { from: 0, opened: None }),
            lines: memchr_iter(splitter.newline, text).count() as u64,
            end: base + text.len() as u64,
            hash,
        })
    }
}

fn append(file: &dyn RangeReader, from: u64, to: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let before = buffer.len();
    buffer.resize(before + (to - from) as usize, 0);
    file.read_exact_at(from, &mut buffer[before..])
}

#[derive(Clone, Copy)]
enum State {
    AtRecord(usize),
    InRecord(usize),
    InQuotes { from: usize, opened: Option<usize> },
}

struct Walker<'a> {
    splitter: &'a Splitter,
    text: &'a [u8],
    base: u64,
    is_end: bool,
}

impl Walker<'_> {
    fn walk(&self, mut state: State) -> Walk {
        let Self { splitter, text, .. } = *self;
        let (mut first, mut records) = (None, 0);
        let exit = loop {
            state = match state {
                State::AtRecord(at) if at >= text.len() => break Exit::AtRecord,
                State::AtRecord(at) => {
                    let skipped = splitter.skipped(text, at, true);
                    if skipped.is_none_or(|(_, blank)| blank && splitter.blank_is_record) {
                        first.get_or_insert(at);
                        records += 1;
                    }
                    match skipped {
                        Some((end, _)) => State::AtRecord(end),
                        None => {
                            let (next, more) = self.ordinary(at);
                            records += more;
                            next
                        }
                    }
                }
                State::InRecord(from) => self.in_record(from),
                State::InQuotes { from, opened } => {
                    let closing = splitter.quote.and_then(|quote| splitter.closing(text, from, quote));
                    let opened = opened.map(|at| self.base + at as u64);
                    let Some((close, _)) = closing else { break Exit::InQuotes { opened } };
                    match splitter.after(text, close, self.is_end) {
                        After::Field(delimiter) => State::InRecord(delimiter),
                        After::Record(next) => State::AtRecord(next),
                        After::Unknown => break Exit::InQuotes { opened },
                        // The rest of the line belongs to a record that is left out.
                        After::Wrong(at) if splitter.lenient => match memchr(splitter.newline, &text[at..]) {
                            Some(newline) => State::AtRecord(at + newline + 1),
                            None => State::AtRecord(text.len()),
                        },
                        After::Wrong(at) => break Exit::Wrong { opened, at: self.base + at as u64 },
                    }
                }
            }
        };
        let first = first
            .map(|at| (self.base + at as u64, memchr_iter(splitter.newline, &text[..at]).count() as u64));
        Walk { first, records, exit }
    }

    /// Goes from the start of a record through as many as are ordinary, and returns how many more have started.
    fn ordinary(&self, record: usize) -> (State, u64) {
        let Self { splitter, text, .. } = *self;
        let (mut record, mut more, mut is_open) = (record, 0, false);
        let first = |record| match Some(text[record]) == splitter.quote {
            true => State::InQuotes { from: record + 1, opened: Some(record) },
            false => State::InRecord(record),
        };
        if splitter.escape.is_some() {
            return (first(record), more);
        }
        let mut block = Block::at(text, record, splitter.characters());
        loop {
            let Stops { mut newlines, misplaced, unended, is_open: stays_open, .. } = block.stops(is_open);
            if !splitter.quotes_fit(text, block.base, misplaced, unended) {
                return (first(record), more);
            }
            while newlines != 0 {
                let next = block.base + newlines.trailing_zeros() as usize + 1;
                newlines &= newlines - 1;
                if !text.get(next).is_some_and(|byte| splitter.is_ordinary_start(*byte)) {
                    return (State::AtRecord(next), more);
                }
                (record, more) = (next, more + 1);
            }
            is_open = stays_open;
            if block.next().is_none() {
                return (first(record), more);
            }
        }
    }

    /// A quote opens a field only at its start; elsewhere it is a character like others.
    fn in_record(&self, from: usize) -> State {
        let (text, splitter) = (self.text, self.splitter);
        let found = match splitter.quote {
            Some(quote) => memchr2(quote, splitter.newline, &text[from..]),
            None => memchr(splitter.newline, &text[from..]),
        };
        match found.map(|found| from + found) {
            None => State::AtRecord(text.len()),
            Some(at) if text[at] == splitter.newline => State::AtRecord(at + 1),
            Some(at) if at > 0 && text[at - 1] == splitter.delimiter => {
                State::InQuotes { from: at + 1, opened: Some(at) }
            }
            Some(at) => State::InRecord(at + 1),
        }
    }
}

/// Puts the scans of a file's chunks together, in whatever order they arrive.
#[derive(Default)]
pub(crate) struct Resolver {
    waiting: BTreeMap<u64, Scan>,
    next: u64,
    /// The place of the quote whose field is open where the next chunk begins.
    open: Option<u64>,
    pub marks: Vec<Mark>,
    pub rows: u64,
    /// Newlines before the next chunk, those before the first record included.
    lines: u64,
    hash: xxhash_rust::xxh3::Xxh3,
    /// The first misplaced quote. What follows it is not resolved.
    misquoted: Option<Misquoted>,
}

/// Quotes that do not fit together, found between chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misquoted {
    AfterQuote {
        opened: u64,
        at: u64,
    },
    /// The field is still open at `end`.
    Open {
        opened: u64,
        end: u64,
    },
}

impl Resolver {
    /// Makes one for a file whose first record comes after this many lines.
    pub(crate) fn after(lines: u64) -> Self {
        Self { lines, ..Self::default() }
    }

    /// Takes the scan of the n-th chunk. From the first misplaced quote on, every scan returns that quote, so
    /// that the error of a file does not depend on which thread reports it.
    pub(crate) fn add(&mut self, number: u64, scan: Scan, grid: &Grid) -> Result<(), Misquoted> {
        self.waiting.insert(number, scan);
        while self.misquoted.is_none()
            && let Some(scan) = self.waiting.remove(&self.next)
        {
            self.next += 1;
            self.misquoted = self.resolve(&scan, grid).err();
        }
        self.misquoted.map_or(Ok(()), Err)
    }

    fn resolve(&mut self, scan: &Scan, grid: &Grid) -> Result<(), Misquoted> {
        let walk = if self.open.is_some() { scan.in_quotes } else { scan.at_record };
        if let Some((offset, lines)) = walk.first {
            self.marks.push(Mark { offset, rows: self.rows, lines: self.lines + lines });
        }
        self.rows += walk.records;
        self.lines += scan.lines;
        self.hash.update(&scan.hash.to_le_bytes());
        // A field that was open when the chunk began was opened at the place on record.
        let place = |opened: Option<u64>, open: Option<u64>| opened.or(open).unwrap_or(grid.start);
        match walk.exit {
            Exit::AtRecord => self.open = None,
            Exit::Wrong { opened, at } => {
                return Err(Misquoted::AfterQuote { opened: place(opened, self.open), at });
            }
            Exit::InQuotes { opened } => {
                let opened = place(opened, self.open);
                self.open = Some(opened);
                // A chunk in the middle of a line ends before the chunk that contains the line.
                if scan.end == grid.end || scan.end.saturating_sub(opened) > grid.longest_record {
                    return Err(Misquoted::Open { opened, end: scan.end });
                }
            }
        }
        Ok(())
    }

    /// Returns a hash of all bytes from the first record on, which tells two contents apart.
    pub(crate) fn digest(&self) -> u128 {
        self.hash.digest128()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delimited::records::dialect::Dialect;

    /// How walks through a text end that begin at a record and within quotes, 64 bytes at a time or, with an
    /// escape that the text does not have, one quote after the other.
    fn walks(text: &[u8], lenient: bool, escape: Option<u8>) -> [Walk; 2] {
        let mut splitter = Splitter::new(&Dialect { escape, ..Dialect::default() }, b',');
        splitter.lenient = lenient;
        let walk = |state| Walker { splitter: &splitter, text, base: 7, is_end: true }.walk(state);
        [walk(State::AtRecord(0)), walk(State::InQuotes { from: 0, opened: None })]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]
        #[test]
        fn blocks_are_walked_as_quotes_are(
            text in r#"((([a-z]{0,30}|"([a-z\n,]|""){0,50}"),){0,3}[a-z]{0,9}\r?\n){0,9}[ab,"\r\n]{0,90}"#,
            lenient: bool,
        ) {
            prop_assert_eq!(walks(text.as_bytes(), lenient, None), walks(text.as_bytes(), lenient, Some(1)));
        }

        #[test]
        fn blocks_of_any_quotes_are_walked_as_quotes_are(text in r#"[ab,"\r\n]{0,200}"#, lenient: bool) {
            prop_assert_eq!(walks(text.as_bytes(), lenient, None), walks(text.as_bytes(), lenient, Some(1)));
        }
    }
}
