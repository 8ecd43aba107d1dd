//! Reads a file's records one after the other, through a buffer that holds at least one whole record.

use memchr::memchr;
use sawmill_profile::{Error, Kind, Result};

use super::dialect::Ragged;
use super::leading::Split;
use super::splitter::{Cell, Form, Malformed, Step};
use crate::delimited::text_file::TextFile;
use crate::parquet_files::reader::Readable;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;

/// Most fields that are split, or values that are read, at once.
pub(crate) const MAX_CELLS: usize = 1 << 18;

/// The next record, and whether it can be read. Places count in the buffer.
pub(crate) enum Checked {
    Good {
        start: usize,
        end: usize,
    },
    Bad {
        start: usize,
        end: usize,
        why: String,
    },
    /// More has to be read, before which the fields that were split have to be used.
    Full,
    End,
}

/// A position in a file.
pub(crate) struct Cursor<'a> {
    file: &'a TextFile,
    bytes: Readable,
    buffer: Vec<u8>,
    /// The place of the buffer in the file.
    base: u64,
    /// The next record, in the buffer.
    at: usize,
    /// The next of the records that are left out.
    left_out: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn open(file: &'a TextFile) -> Result<Self> {
        Ok(Self { file, bytes: file.reopen()?, buffer: Vec::new(), base: 0, at: 0, left_out: 0 })
    }

    /// Moves to a place of the file.
    pub(crate) fn seek(&mut self, offset: u64) {
        match offset.checked_sub(self.base).filter(|at| *at <= self.buffer.len() as u64) {
            Some(at) => self.at = at as usize,
            None => {
                self.buffer.clear();
                (self.base, self.at) = (offset, 0);
            }
        }
        self.left_out = self.file.left_out.partition_point(|start| *start < offset);
    }

    /// Returns the place of the next record in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    pub(crate) fn file(&self) -> &'a TextFile {
        self.file
    }

    /// Returns the bytes that cells are ranges of, and their place in the file.
    pub(crate) fn buffer(&self) -> (&[u8], u64) {
        (&self.buffer, self.base)
    }

    fn is_end(&self) -> bool {
        self.base + self.buffer.len() as u64 >= self.file.length
    }

    /// Drops the bytes before the next record, and reads more. Without more, the record is too long.
    fn fill(&mut self) -> Result<()> {
        let start = self.offset();
        let held = self.buffer.len() - self.at;
        self.buffer.copy_within(self.at.., 0);
        (self.base, self.at) = (start, 0);
        if held > self.file.longest_record() {
            self.buffer.truncate(held);
            return Err(self.file.too_long(start));
        }
        let next = start + held as u64;
        // A long record is read in growing steps, so that its start is not split too often.
        let more = (held.max(BLOCK) as u64).min(self.file.length.saturating_sub(next)) as usize;
        // The earlier content is overwritten.
        self.buffer.resize(held + more, 0);
        let read = self.bytes.read_exact_at(next, &mut self.buffer[held..]);
        read.map_err(|error| self.file.failed_read(&error))
    }

    /// Returns the next bytes, at most `most`.
    pub(crate) fn peek(&mut self, most: usize) -> Result<&[u8]> {
        if self.buffer.len() < self.at + most && !self.is_end() {
            self.fill()?;
        }
        Ok(&self.buffer[self.at..self.buffer.len().min(self.at + most)])
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.buffer.len());
    }

    /// Moves behind the next newline.
    pub(crate) fn skip_line(&mut self) -> Result<()> {
        loop {
            if let Some(newline) = memchr(self.file.splitter.newline, &self.buffer[self.at..]) {
                self.at += newline + 1;
                return Ok(());
            }
            self.at = self.buffer.len();
            if self.is_end() {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Splits up to `most` records into `cells`, fewer if they have many fields or where the buffer ends.
    /// Returns their number, 0 only at the end of the file.
    pub(crate) fn records(&mut self, most: usize, split: Split, cells: &mut Vec<Cell>) -> Result<usize> {
        cells.clear();
        let columns = split.columns();
        let most = most.min((MAX_CELLS / columns.max(1)).max(1));
        let mut rows = 0;
        loop {
            let is_end = self.is_end();
            let mut ordinary = self.file.splitter.ordinary(&self.buffer, self.at);
            while rows < most && self.at < self.buffer.len() {
                let before = cells.len();
                let is_left_out = self.file.left_out.get(self.left_out) == Some(&self.offset());
                if !is_left_out && let Some(next) = ordinary.record(self.at, split, cells) {
                    rows += 1;
                    self.at = next;
                    continue;
                }
                match self.file.splitter.step(&self.buffer, self.at, is_end, cells) {
                    Step::Record(next) if is_left_out => {
                        self.left_out += 1;
                        cells.truncate(before);
                        self.at = next;
                    }
                    Step::Record(next)
                        if self.file.splitter.lenient && !self.file.fit(before, columns, cells) =>
                    {
                        cells.truncate(before);
                        self.at = next;
                    }
                    Step::Record(_) if !self.file.fit(before, columns, cells) => {
                        return Err(self.ragged(cells.len() - before, columns));
                    }
                    Step::Record(next) => {
                        split.shorten(before, cells);
                        rows += 1;
                        self.at = next;
                    }
                    Step::Skipped(next) => self.at = next,
                    Step::Incomplete => break,
                    Step::Malformed(Malformed::AfterQuote { at, .. }) if self.file.splitter.lenient => {
                        let Some(next) = self.next_line(at, is_end) else { break };
                        self.left_out += usize::from(is_left_out);
                        self.at = next;
                    }
                    Step::Malformed(malformed) => return Err(self.file.malformed(self.base, malformed)),
                }
            }
            if rows > 0 || is_end {
                return Ok(rows);
            }
            self.fill()?;
        }
    }

    /// Returns where the line after a place of the buffer starts; `None` if more has to be read.
    fn next_line(&self, at: usize, is_end: bool) -> Option<usize> {
        let rest = self.buffer.get(at..)?;
        match memchr(self.file.splitter.newline, rest) {
            Some(newline) => Some(at + newline + 1),
            None => is_end.then_some(self.buffer.len()),
        }
    }

    /// Splits the next record before `end`, and says whether it can be read. Its fields are added to `cells` if
    /// it can; those that were added before stay valid unless more has to be read.
    pub(crate) fn checked(&mut self, columns: usize, end: u64, cells: &mut Vec<Cell>) -> Result<Checked> {
        loop {
            let is_end = self.is_end();
            if self.offset() >= end || (is_end && self.at >= self.buffer.len()) {
                return Ok(Checked::End);
            }
            let (before, start) = (cells.len(), self.at);
            let mut ordinary = self.file.splitter.ordinary(&self.buffer, start);
            if let Some(next) = ordinary.record(start, Split::all(columns), cells) {
                self.at = next;
                return Ok(Checked::Good { start, end: next });
            }
            match self.file.splitter.step(&self.buffer, start, is_end, cells) {
                Step::Record(next) => {
                    self.at = next;
                    if self.file.fit(before, columns, cells) {
                        return Ok(Checked::Good { start, end: next });
                    }
                    let fields = cells.len() - before;
                    cells.truncate(before);
                    let why = other_fields(fields, columns);
                    return Ok(Checked::Bad { start, end: next, why });
                }
                Step::Skipped(next) => self.at = next,
                Step::Malformed(Malformed::AfterQuote { at, .. })
                    if let Some(next) = self.next_line(at, is_end) =>
                {
                    self.at = next;
                    let why = "after a closing quote comes neither a delimiter nor the end of the record";
                    return Ok(Checked::Bad { start, end: next, why: why.to_owned() });
                }
                Step::Malformed(
                    malformed @ (Malformed::Unclosed { .. }
                    | Malformed::TooMany { .. }
                    | Malformed::Newline { .. }),
                ) => {
                    return Err(self.file.malformed(self.base, malformed));
                }
                Step::Incomplete | Step::Malformed(_) if before > 0 => return Ok(Checked::Full),
                Step::Incomplete | Step::Malformed(_) => self.fill()?,
            }
        }
    }

    /// Returns the texts of the next record, however many fields it has.
    pub(crate) fn any_record(&mut self) -> Result<Option<Vec<String>>> {
        let mut cells = Vec::new();
        loop {
            let is_end = self.is_end();
            if is_end && self.at == self.buffer.len() {
                return Ok(None);
            }
            match self.file.splitter.step(&self.buffer, self.at, is_end, &mut cells) {
                Step::Record(next) => {
                    let texts = cells.iter().map(|cell| self.text(cell)).collect::<Result<_>>();
                    self.at = next;
                    return texts.map(Some);
                }
                Step::Skipped(next) => self.at = next,
                Step::Incomplete => self.fill()?,
                Step::Malformed(malformed) => return Err(self.file.malformed(self.base, malformed)),
            }
        }
    }

    /// Returns the text of a field.
    pub(crate) fn text(&self, cell: &Cell) -> Result<String> {
        let bytes = &self.buffer[cell.start as usize..cell.end as usize];
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let offset = self.base + u64::from(cell.start) + error.valid_up_to() as u64;
            not_utf8(self.file, offset)
        })?;
        Ok(match cell.form {
            Form::Escaped => self.file.splitter.unescaped(text),
            Form::Plain | Form::Quoted | Form::Missing => text.to_owned(),
        })
    }

    fn ragged(&self, fields: usize, columns: usize) -> Error {
        // Records with fewer fields may be allowed already, or others have more.
        let fill = fields < columns && self.file.ragged == Ragged::Refused && !self.file.has_longer_records();
        let allow = if fill { "--ragged fill" } else { "--ragged fill-and-cut" };
        let advice = format!(
            "correct the record, check --delimiter, --quote and --skip-lines, allow such records with {allow}, \
             or leave them out with --rejects FILE.csv"
        );
        Error::new(Kind::Source, other_fields(fields, columns))
            .at(self.file.place(self.offset()))
            .advise(self.file.or_proposed(&advice))
    }
}

/// The fault of a record with another number of fields.
fn other_fields(fields: usize, columns: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "the record has {fields} field{}, and the file has {columns} column{}",
        plural(fields),
        plural(columns)
    )
}

/// The error for bytes that are not UTF-8.
pub(crate) fn not_utf8(file: &TextFile, offset: u64) -> Error {
    Error::new(Kind::Source, "the text is not UTF-8")
        .at(file.place(offset))
        .advise(file.or_proposed("name its encoding, for example --text-encoding windows-1252"))
}
