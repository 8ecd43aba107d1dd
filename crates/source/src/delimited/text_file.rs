//! One file of delimited text: its header, its marks, its place in messages.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::boundaries::{Grid, Mark, Misquoted, Unscanned};
use super::cursor::Cursor;
use super::dialect::Dialect;
use super::header::{Header, header};
use super::place::{line_of, shown};
use super::splitter::{Cell, Malformed, Splitter};
use crate::error::{Error, Kind, Result};
use crate::hive::{Folder, FolderName, folder_names, values_of_links};
use crate::parquet_files::opened_file::unreadable;
use crate::parquet_files::reader::Readable;
use crate::parquet_files::stamp::Stamp;

/// An opened file.
pub(super) struct TextFile {
    pub path: PathBuf,
    /// Its name in messages.
    pub name: String,
    stamp: Stamp,
    /// What a load records to see whether the file is the same later.
    pub recorded: Option<String>,
    pub length: u64,
    pub splitter: Splitter,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Where the first record after the header starts.
    pub start: u64,
    longest_record: usize,
    pub rows: u64,
    pub marks: Vec<Mark>,
    pub folder_names: Vec<FolderName>,
    /// The columns that its folders name.
    pub folders: Vec<Folder>,
    /// The place of each column of the common schema in the file's records.
    pub places: Vec<usize>,
    /// What tells its content from others.
    pub fingerprint: String,
}

impl TextFile {
    /// Opens a file and reads its header.
    pub(super) fn open(path: &Path, dialect: &Dialect, with_folders: bool) -> Result<Self> {
        dialect.check(dialect.delimiter_of(path)).map_err(|error| error.at(path.display().to_string()))?;
        let failed = |error: std::io::Error| unreadable(&error).at(path.display().to_string());
        let canonical = path.canonicalize().map_err(failed)?;
        let metadata = canonical.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(Error::new(Kind::Source, "expected a file").at(path.display().to_string()));
        }
        let folder_names = if with_folders { folder_names(path)? } else { Vec::new() };
        let stamp = Stamp::of(&metadata);
        let mut file = Self {
            name: canonical.display().to_string(),
            stamp,
            recorded: stamp.recorded(SystemTime::now()),
            length: metadata.len(),
            splitter: Splitter::new(dialect, dialect.delimiter_of(path)),
            columns: Vec::new(),
            start: 0,
            longest_record: dialect.longest_record,
            rows: 0,
            marks: Vec::new(),
            fingerprint: values_of_links(&folder_names, &canonical),
            folder_names,
            folders: Vec::new(),
            places: Vec::new(),
            path: canonical,
        };
        let Header { columns, start } = header(&file, dialect)?;
        file.splitter.blank_is_record = columns.len() == 1;
        (file.columns, file.start) = (columns, start);
        Ok(file)
    }

    /// Returns the chunks whose boundaries have to be found.
    pub(super) fn grid(&self, chunk: u64) -> Grid {
        Grid { start: self.start, end: self.length, chunk, longest_record: self.longest_record as u64 }
    }

    pub(super) fn longest_record(&self) -> usize {
        self.longest_record
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// A file that has changed since it was opened first.
    pub(super) fn reopen(&self) -> Result<Readable> {
        Ok(Arc::new(self.reopen_file()?))
    }

    /// The same as a file.
    pub(super) fn reopen_file(&self) -> Result<File> {
        let failed = |error: std::io::Error| unreadable(&error).at(&self.name);
        let file = File::open(&self.path).map_err(failed)?;
        if Stamp::of(&file.metadata().map_err(failed)?) != self.stamp {
            return Err(self.changed());
        }
        Ok(file)
    }

    pub(super) fn changed(&self) -> Error {
        Error::new(Kind::Changed, "the file changed while it was loaded").at(&self.name).advise(
            "bring back the file as it was and run the same command again to go on, or forget the load and start \
             afresh",
        )
    }

    /// Returns the error of a failed read, which may be the end of a file that was cut off.
    pub(super) fn failed_read(&self, error: &std::io::Error) -> Error {
        match self.reopen() {
            Err(changed) => changed,
            Ok(_) => unreadable(error).at(&self.name),
        }
    }

    /// Returns `FILE, line 7, byte offset 1234`.
    pub(super) fn place(&self, offset: u64) -> String {
        self.place_by(&self.marks, offset)
    }

    /// Moves a cursor to a record, by the nearest mark before it.
    pub(super) fn move_to(&self, cursor: &mut Cursor<'_>, row: u64, cells: &mut Vec<Cell>) -> Result<()> {
        let near = self.marks.partition_point(|mark| mark.rows <= row).checked_sub(1);
        let Some(mark) = near.and_then(|at| self.marks.get(at)) else { return Ok(()) };
        cursor.seek(mark.offset);
        let mut left = row - mark.rows;
        while left > 0 {
            let skipped = cursor.records(left.min(4096) as usize, self.columns.len(), cells)?;
            if skipped == 0 {
                return Err(self.changed());
            }
            left -= skipped as u64;
        }
        Ok(())
    }

    fn place_by(&self, marks: &[Mark], offset: u64) -> String {
        let file = File::open(&self.path).ok();
        let line = file.and_then(|file| line_of(&file, marks, offset));
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{line}, byte offset {offset}", self.name)
    }

    fn line(&self, marks: &[Mark], offset: u64) -> String {
        let file = File::open(&self.path).ok();
        match file.and_then(|file| line_of(&file, marks, offset)) {
            Some(line) => format!("in line {line}"),
            None => format!("at byte offset {offset}"),
        }
    }

    /// Returns the error for quotes that do not fit, which the split of a record at `base` found.
    pub(super) fn malformed(&self, base: u64, malformed: Malformed) -> Error {
        match malformed {
            Malformed::AfterQuote { opened, at } => {
                self.wrong_quotes(&self.marks, base + opened as u64, base + at as u64)
            }
            Malformed::Unclosed { opened } => self.unclosed(&self.marks, base + opened as u64, self.length),
        }
    }

    /// Returns the error for quotes that do not fit, which the search for boundaries found.
    pub(super) fn misquoted(&self, marks: &[Mark], misquoted: Misquoted) -> Error {
        match misquoted {
            Misquoted::AfterQuote { opened, at } => self.wrong_quotes(marks, opened, at),
            Misquoted::Open { opened, end } => self.unclosed(marks, opened, end),
        }
    }

    fn wrong_quotes(&self, marks: &[Mark], opened: u64, at: u64) -> Error {
        let closed = self.line(marks, at);
        let follows = self.reopen().ok().and_then(|file| {
            let mut bytes = vec![0; self.length.saturating_sub(at).min(12) as usize];
            file.read_exact_at(at, &mut bytes).ok().map(|()| shown(&bytes))
        });
        let what = format!(
            "the quoted field that starts here ends {closed} (byte offset {at}) before {}, which is neither a delimiter \
             nor the end of the record",
            follows.unwrap_or_default()
        );
        Error::new(Kind::Source, what).at(self.place_by(marks, opened)).advise(QUOTES)
    }

    fn unclosed(&self, marks: &[Mark], opened: u64, end: u64) -> Error {
        let what = match end == self.length {
            true => "the quoted field that starts here does not end before the end of the file".to_owned(),
            false => format!(
                "the quoted field that starts here does not end within the {} bytes of the longest record",
                self.longest_record
            ),
        };
        Error::new(Kind::Source, what).at(self.place_by(marks, opened)).advise(QUOTES)
    }

    /// Returns the error for a chunk that cannot be scanned.
    pub(super) fn unscanned(&self, unscanned: Unscanned) -> Error {
        match unscanned {
            Unscanned::Io(error) => self.failed_read(&error),
            Unscanned::LongLine { start } => self.too_long(start),
        }
    }

    pub(super) fn too_long(&self, start: u64) -> Error {
        let what = format!("the record has more than {} bytes", self.longest_record);
        Error::new(Kind::Source, what)
            .at(self.place(start))
            .advise("allow longer records with --max-record, or check the delimiters and quotes")
    }
}

const QUOTES: &str = "double the quotes within the field, name the --escape character, or read quotes as text with --quote none";
