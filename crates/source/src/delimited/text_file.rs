//! One file of delimited text: its header, its marks, its place in messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sawmill_footer::RangeReader;
use sawmill_profile::{Control, Error, Kind, Result};
use sawmill_store::{Fault, Location, ObjectUrl, open_input};

use super::content::{Coding, Compression, Content, encoding_named, is_utf16, is_utf32};
use super::files::Place;
use super::records::boundaries::{Grid, Mark, Misquoted, Unscanned};
use super::records::cursor::Cursor;
use super::records::dialect::{Dialect, Ragged, RecordForm, hint};
use super::records::header::{Header, ends_lines_by_returns, header};
use super::records::leading::Split;
use super::records::place::{line_of, shown};
use super::records::proposal::{ProposedOption, START, proposed, taken};
use super::records::splitter::{Cell, Form, MAX_FIELDS, Malformed, Splitter, extent};
use crate::hive::{Folder, FolderName, folder_names, values_of_links};
use crate::parquet_files::opened_file::{OpenObject, changed_file, unreadable};
use crate::parquet_files::reader::Readable;
use crate::parquet_files::stamp::Stamp;

/// How to open files.
pub(super) struct Opening<'a> {
    pub dialect: &'a Dialect,
    pub with_folders: bool,
    /// Whether records that cannot be read are left out.
    pub lenient: bool,
    pub objects: OpenObject<'a>,
    pub control: &'a Control<'a>,
}

/// Where the bytes of a file are.
struct Stored {
    path: PathBuf,
    content: Content,
    recorded: Option<String>,
    /// The number of its bytes.
    stored: u64,
}

impl Stored {
    fn file(path: &Path, how: &Opening<'_>) -> Result<Self> {
        let failed = |error: std::io::Error| unreadable(&error).at(path.display().to_string());
        let canonical = path.canonicalize().map_err(failed)?;
        let metadata = canonical.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let error = Error::new(Kind::Source, "expected a file").at(path.display().to_string());
            return Err(error.advise("give the name of a file; - reads standard input, such as a pipe"));
        }
        let stamp = Stamp::new(&metadata);
        let opened = open_input(&canonical).map_err(failed)?;
        let start = Compression::of_file(metadata.len(), |at, buffer| opened.read_exact_at(at, buffer));
        let coding = coding(start.map_err(failed)?, how.dialect);
        let coding = coding.map_err(|error| error.at(path.display().to_string()))?;
        let content = match coding.is_plain() {
            true => Content::File { path: canonical.clone(), stamp },
            false => coding.of_file(&sawmill_store::path_name(&canonical), &canonical, stamp, how.control)?,
        };
        let recorded = stamp.recorded(SystemTime::now());
        Ok(Self { path: canonical, content, recorded, stored: metadata.len() })
    }

    fn object(url: &ObjectUrl, how: &Opening<'_>) -> Result<Self> {
        let object = Arc::new((how.objects)(url)?.with_fault(Fault::default()));
        let stored = object.object().size();
        let start = Compression::of_file(stored, |at, buffer| object.read_exact_at(at, buffer));
        let start = start.map_err(|error| match object.fault() {
            Some(fault) => fault.clone().into(),
            None => unreadable(&error).at(url.to_string()),
        })?;
        let recorded = object.object().stamp();
        let coding = coding(start, how.dialect).map_err(|error| error.at(url.to_string()))?;
        let content = coding.of_object(&url.to_string(), object, how.control)?;
        Ok(Self { path: url.to_string().into(), content, recorded, stored })
    }
}

fn coding((compression, beginning): (Compression, Vec<u8>), dialect: &Dialect) -> Result<Coding<'_>> {
    let named = dialect.encoding.as_deref().map_or(Ok(None), encoding_named)?;
    if let (None, Compression::None, Some(utf32)) = (&dialect.encoding, compression, is_utf32(&beginning)) {
        return Err(utf32.error());
    }
    // In a compressed file, the byte order mark shows when it is decompressed.
    let marked = is_utf16(&beginning).filter(|_| dialect.encoding.is_none());
    let long_delimiter = dialect.long_delimiter.as_deref().map(|long| (dialect, long));
    Ok(Coding { compression, encoding: named.or(marked), long_delimiter })
}

/// An opened file.
pub(super) struct TextFile {
    pub path: PathBuf,
    /// Its name in messages.
    pub name: String,
    content: Content,
    /// The version of the file that a load records, to notice later changes.
    pub recorded: Option<String>,
    pub length: u64,
    /// The number of bytes in the stored file.
    pub stored: u64,
    pub splitter: Splitter,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Where the first record after the header starts.
    pub start: u64,
    longest_record: usize,
    dialect: Dialect,
    pub ragged: Ragged,
    pub rows: u64,
    pub marks: Vec<Mark>,
    /// Where the records start that are left out, in ascending order.
    pub left_out: Vec<u64>,
    pub folder_names: Vec<FolderName>,
    /// The columns that its folders name.
    pub folders: Vec<Folder>,
    /// The place of each column of the common schema in the file's records, if it has the column.
    pub places: Vec<Option<usize>>,
    /// Identifies its content.
    pub fingerprint: String,
}

impl TextFile {
    /// Opens a file or an object and reads its header.
    pub(super) fn open(place: &Location, how: &Opening<'_>) -> Result<Self> {
        let dialect = how.dialect;
        let named = match place {
            Location::Path(path) => path.as_path(),
            Location::Object(url) => Path::new(url.key()),
        };
        let delimiter = dialect.delimiter_of(named);
        dialect.check(delimiter).map_err(|error| error.at(place.to_string()))?;
        let folder_names = if how.with_folders { folder_names(named)? } else { Vec::new() };
        let Stored { path, content, recorded, stored } = match place {
            Location::Path(path) => Stored::file(path, how)?,
            Location::Object(url) => Stored::object(url, how)?,
        };
        let mut file = Self {
            name: sawmill_store::path_name(&path),
            recorded,
            length: content.decoded_length().unwrap_or(stored),
            content,
            stored,
            splitter: Splitter::new(dialect, delimiter),
            columns: Vec::new(),
            start: 0,
            longest_record: dialect.longest_record,
            dialect: dialect.clone(),
            ragged: dialect.ragged,
            rows: 0,
            marks: Vec::new(),
            left_out: Vec::new(),
            fingerprint: values_of_links(&folder_names, &path),
            folder_names,
            folders: Vec::new(),
            places: Vec::new(),
            path,
        };
        if dialect.records == RecordForm::Delimited {
            if let Some(taken) = file.take_delimiter(delimiter) {
                return Self::open(place, &Opening { dialect: &taken, ..*how });
            }
            if ends_lines_by_returns(&file)? {
                file.splitter.end_lines_by_returns();
            }
        }
        let Header { columns, start } = header(&file, &file.dialect)?;
        file.splitter.blank_is_record = columns.len() == 1;
        file.splitter.lenient = how.lenient;
        (file.columns, file.start) = (columns, start);
        Ok(file)
    }

    /// The number of lines before the header.
    pub(super) fn skipped(&self) -> u64 {
        self.dialect.skip_lines
    }

    /// The number of fields of a record.
    pub(super) fn fields(&self) -> usize {
        self.columns.len().max(1)
    }

    /// The split of records that these values are read from.
    pub(super) fn split_for(&self, wanted: &[Place]) -> Split {
        let place = |wanted: &Place| match wanted {
            Place::Column(common) => self.places.get(*common).copied().flatten(),
            Place::Folder(_) => None,
        };
        Split::first(wanted.iter().filter_map(place).max().map_or(0, |last| last + 1), self.fields())
    }

    /// Whether a record that begins with the n-th cell has a field for each column, once it is filled or cut
    /// as the dialect says.
    pub(super) fn fit(&self, before: usize, columns: usize, cells: &mut Vec<Cell>) -> bool {
        let fields = cells.len() - before;
        if fields == columns {
            return true;
        }
        let fits = match self.ragged {
            Ragged::Refused => false,
            Ragged::Filled => fields < columns,
            Ragged::FilledAndCut => true,
        };
        if fits {
            let end = cells.last().map_or(0, |cell| cell.end);
            cells.resize(before + columns, Cell { start: end, end, form: Form::Missing });
        }
        fits
    }

    /// Returns the chunks whose boundaries have to be found.
    pub(super) fn grid(&self, chunk: u64) -> Grid {
        Grid { start: self.start, end: self.length, chunk, longest_record: self.longest_record as u64 }
    }

    /// Takes the delimiter that the first line names for spreadsheets; this line is then not a record. Otherwise takes
    /// the one that all records of the start fit, if neither an option nor the file's name gives one. Returns the
    /// dialect if the file has to be opened again for it.
    fn take_delimiter(&mut self, delimiter: u8) -> Option<Dialect> {
        if self.dialect.long_delimiter.is_some() {
            return None;
        }
        let (start, is_all) = self.start_of_text()?;
        let special = [self.dialect.quote, self.dialect.comment];
        let hinted = hint(&start)
            .filter(|(hinted, _)| self.dialect.skip_lines == 0 && !special.contains(&Some(*hinted)));
        if let Some((hinted, _)) = hinted {
            let given = self.dialect.delimiter.unwrap_or(hinted);
            self.dialect = Dialect { skip_lines: 1, delimiter: Some(given), ..self.dialect.clone() };
            self.splitter = Splitter::new(&self.dialect, given);
            return None;
        }
        if self.dialect.delimiter.is_some() || delimiter != b',' {
            return None;
        }
        let dialect = taken((&start, is_all), &self.dialect, delimiter)?;
        if dialect.long_delimiter.is_some() {
            return Some(dialect);
        }
        self.splitter = Splitter::new(&dialect, dialect.delimiter.unwrap_or(delimiter));
        self.dialect = dialect;
        None
    }

    /// The start of the text, and whether it is all of it; `None` if it cannot be read.
    fn start_of_text(&self) -> Option<(Vec<u8>, bool)> {
        let mut start = vec![0; self.length.min(START as u64) as usize];
        self.content.reopen().ok().flatten()?.read_exact_at(0, &mut start).ok()?;
        let is_all = start.len() as u64 == self.length;
        Some((start, is_all))
    }

    /// Returns the options that the start of the text fits, and why.
    pub(super) fn proposed(&self) -> Vec<ProposedOption> {
        if self.dialect.records != RecordForm::Delimited {
            return Vec::new();
        }
        let Some((mut start, is_all)) = self.start_of_text() else { return Vec::new() };
        // A blank line stays in its place: it is not a record, but counts as a line.
        if let Some((_, line)) = hint(&start).filter(|_| self.dialect.skip_lines > 0) {
            start.drain(line);
        }
        proposed(&start, is_all, &self.dialect, self.splitter.delimiter)
    }

    /// Returns advice with the options, other than those given, that the start of the text fits. Where records that
    /// cannot be read are left out, there may be many errors, whose advice is not shown.
    pub(super) fn or_proposed(&self, advice: &str) -> String {
        if self.splitter.lenient {
            return advice.to_owned();
        }
        let other = self.proposed().into_iter().filter(|proposed| !proposed.in_effect);
        let other: Vec<String> = other.map(|of| format!("{} ({})", of.option, of.because)).collect();
        // The advice names --ragged already; alone it would make a damaged record look like a dialect.
        match other.iter().all(|option| option.starts_with("--ragged")) {
            true => advice.to_owned(),
            false => format!("{advice}; the start of the file fits {}", other.join(", ")),
        }
    }

    /// Whether the start of the text has records with more fields than there are columns.
    pub(super) fn has_longer_records(&self) -> bool {
        !self.splitter.lenient && self.proposed().iter().any(|of| of.option == "--ragged fill-and-cut")
    }

    pub(super) fn longest_record(&self) -> usize {
        self.longest_record
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// A file that has changed since it was opened first.
    pub(super) fn reopen(&self) -> Result<Readable> {
        let opened = self.content.reopen().map_err(|error| unreadable(&error).at(&self.name))?;
        opened.ok_or_else(|| self.changed())
    }

    pub(super) fn changed(&self) -> Error {
        changed_file(&self.name)
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
            let skipped = cursor.records(left.min(4096) as usize, Split::first(0, self.fields()), cells)?;
            if skipped == 0 {
                return Err(self.changed());
            }
            left -= skipped as u64;
        }
        Ok(())
    }

    /// Returns the line and place of a record, counted from 0; `None` if it cannot be read.
    pub(super) fn place_of_record(&self, row: u64) -> Option<String> {
        let (mut cursor, mut cells) = (Cursor::open(self).ok()?, Vec::new());
        self.move_to(&mut cursor, row, &mut cells).ok()?;
        cursor.records(1, Split::all(self.fields()), &mut cells).ok().filter(|rows| *rows == 1)?;
        let (_, base) = cursor.buffer();
        Some(self.place(base + u64::from(extent(&cells).0)))
    }

    fn place_by(&self, marks: &[Mark], offset: u64) -> String {
        let line = self.line_by(marks, offset).map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{line}, byte offset {offset}", self.name)
    }

    /// Returns the number of the line of a place, from 1; `None` if the file cannot be read.
    pub(super) fn line_at(&self, offset: u64) -> Option<u64> {
        self.line_by(&self.marks, offset)
    }

    fn line_by(&self, marks: &[Mark], offset: u64) -> Option<u64> {
        let file = self.content.reopen().ok().flatten()?;
        line_of(&*file, marks, self.splitter.newline, offset)
    }

    /// Returns the error for quotes that do not fit or too many fields, which the split of a record at `base` found.
    pub(super) fn malformed(&self, base: u64, malformed: Malformed) -> Error {
        let place = |at: usize| base + at as u64;
        let misquoted = match malformed {
            Malformed::AfterQuote { opened, at } => {
                Misquoted::AfterQuote { opened: place(opened), at: place(at) }
            }
            Malformed::Unclosed { opened } => Misquoted::Open { opened: place(opened), end: self.length },
            Malformed::TooMany { start } => {
                return Error::new(Kind::Source, format!("the record has more than {MAX_FIELDS} fields"))
                    .at(self.place(place(start)))
                    .advise("check the delimiters and quotes");
            }
            Malformed::Newline { at } => return self.line_feed(&self.marks, place(at)),
        };
        self.misquoted(&self.marks, misquoted)
    }

    fn line_feed(&self, marks: &[Mark], at: u64) -> Error {
        let what = "a line feed is here, and the lines before end with carriage returns alone";
        Error::new(Kind::Source, what).at(self.place_by(marks, at)).advise(CONVERT)
    }

    /// Returns the error for quotes that do not fit, which the search for boundaries found.
    pub(super) fn misquoted(&self, marks: &[Mark], misquoted: Misquoted) -> Error {
        let start = "the quoted field that starts here";
        let (opened, what) = match misquoted {
            Misquoted::AfterQuote { opened, at } => {
                let closed = match self.line_by(marks, at) {
                    Some(line) => format!("in line {line}"),
                    None => format!("at byte offset {at}"),
                };
                let follows = self.reopen().ok().and_then(|file| {
                    let mut bytes = vec![0; self.length.saturating_sub(at).min(12) as usize];
                    file.read_exact_at(at, &mut bytes).ok().map(|()| bytes)
                });
                let follows = follows.unwrap_or_default();
                if follows.first() == Some(&b'\n') {
                    return self.line_feed(marks, at);
                }
                let what = format!(
                    "{start} ends {closed} (byte offset {at}) before {}, which is neither a delimiter nor the end of \
                     the record",
                    shown(&follows)
                );
                (opened, what)
            }
            Misquoted::Open { opened, end } if end == self.length => {
                (opened, format!("{start} does not end before the end of the file"))
            }
            Misquoted::Open { opened, .. } => {
                let most = self.longest_record;
                (opened, format!("{start} does not end within the {most} bytes of the longest record"))
            }
        };
        let mut advice = QUOTES.to_owned();
        // Where a quote never closes, no later record begins.
        if let Misquoted::AfterQuote { .. } = misquoted {
            advice += ", or leave such records out with --rejects FILE.csv";
        }
        Error::new(Kind::Source, what).at(self.place_by(marks, opened)).advise(self.or_proposed(&advice))
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

/// What to do with a text whose lines end in two ways.
pub(super) const CONVERT: &str = "make all lines end in one way: tr '\\r' '\\n'";

const QUOTES: &str = "double the quotes within the field, name the --escape character, or read quotes as text with --quote none";
