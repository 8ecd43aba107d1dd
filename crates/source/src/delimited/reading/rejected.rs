//! Records that cannot be read: found before any other work, and left out afterwards.
//!
//! All records are read once, on all cores, before a plan is made. So row numbers count only good
//! records and are the same in every run, and a load that leaves records out resumes and verifies like any other.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use sawmill_profile::{Control, Error, Kind, Result};
use serde::Serialize;

use super::reader::Batch;
use crate::delimited::files::DelimitedFiles;
use crate::delimited::records::cursor::{Checked, Cursor};
use crate::delimited::records::leading::Split;
use crate::delimited::records::splitter::Cell;
use crate::delimited::text_file::TextFile;

/// Records that are read at once.
const ROWS: usize = 1024;

/// A record that is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedRecord {
    /// The name of its file.
    pub file: String,
    /// Its line, if it is known, and its place in the text.
    pub line: Option<u64>,
    /// See `line`.
    pub byte_offset: u64,
    /// The fault, with the column and the value.
    pub reason: String,
    /// Its text, with what ended its line. Bytes that are not UTF-8 are replaced.
    pub record: String,
    /// Its bytes from the file, or from its text if the file is compressed or in another encoding.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Its number in the file, where all records count, from 0.
    #[serde(skip)]
    pub number: u64,
}

/// The place and the number of a record, and its fault.
struct Found {
    start: u64,
    end: u64,
    number: u64,
    why: String,
}

/// The place of a record in a buffer, and its number.
type Numbered = (usize, usize, u64);

/// Looks at all records; returns those that cannot be read, by file and place.
///
/// # Errors
/// More than `most` of them; a quote that never closes.
pub(crate) fn leave_out(
    source: &mut DelimitedFiles,
    most: u64,
    control: &Control<'_>,
) -> Result<Vec<RejectedRecord>> {
    let shared: &DelimitedFiles = source;
    let files = shared.opened();
    // From each mark to the next.
    let pieces = files.iter().enumerate().flat_map(|(number, file)| {
        let ends = file.marks.iter().skip(1).map(|mark| mark.offset).chain([file.length]);
        file.marks.iter().zip(ends).map(move |(mark, end)| (number, mark.offset..end, mark.rows))
    });
    let pieces: Vec<(usize, Range<u64>, u64)> = pieces.collect();
    let found: Mutex<Vec<(usize, Found)>> = Mutex::default();
    control.on_all_cores("records", &pieces, Vec::new, |cells, (number, place, first), control| {
        control.check()?;
        let Some(file) = files.get(*number) else { return Ok(()) };
        let of_piece = check(shared, file, place, *first, cells)?;
        control.phase().add_bytes(place.end - place.start);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(of_piece.into_iter().map(|found| (*number, found)));
        match found.len() as u64 > most {
            true => Err(Error::new(Kind::Value, format!("more than {most} records cannot be read"))
                .at(found
                    .last()
                    .map(|(_, last)| format!("{}: {}", file.place(last.start), last.why))
                    .unwrap_or_default())
                .advise("check the types and the dialect, or allow more with --max-rejects")),
            false => Ok(()),
        }
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(number, found)| (*number, found.start));
    let records =
        found.iter().filter_map(|(number, found)| files.get(*number).map(|file| shown(file, found)));
    let records = records.collect::<Result<Vec<_>>>()?;
    let places: Vec<(usize, u64)> = found.iter().map(|(number, found)| (*number, found.start)).collect();
    source.leave_out_records(&places);
    Ok(records)
}

fn shown(file: &TextFile, found: &Found) -> Result<RejectedRecord> {
    let mut bytes = vec![0; (found.end - found.start) as usize];
    file.reopen()?.read_exact_at(found.start, &mut bytes).map_err(|error| file.failed_read(&error))?;
    Ok(RejectedRecord {
        file: file.name.clone(),
        line: file.line_at(found.start),
        byte_offset: found.start,
        reason: found.why.clone(),
        record: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
        number: found.number,
    })
}

/// Looks at the records of a range of bytes, whose first one has this number.
fn check(
    source: &DelimitedFiles,
    file: &TextFile,
    place: &Range<u64>,
    first: u64,
    cells: &mut Vec<Cell>,
) -> Result<Vec<Found>> {
    let mut cursor = Cursor::open(file)?;
    cursor.seek(place.start);
    let mut numbers = first..;
    let columns = file.fields();
    let all = Checks { source, file };
    let (mut found, mut records) = (Vec::new(), Vec::new());
    loop {
        cells.clear();
        records.clear();
        let at_end = loop {
            let mut number = || numbers.next().unwrap_or_default();
            match cursor.checked(columns, place.end, cells)? {
                Checked::Good { start, end } => records.push((start, end, number())),
                Checked::Bad { start, end, why } => {
                    let (_, base) = cursor.buffer();
                    let (start, end) = (base + start as u64, base + end as u64);
                    found.push(Found { start, end, number: number(), why });
                }
                Checked::Full => break false,
                Checked::End => break true,
            }
            if records.len() >= ROWS || cells.len() >= ROWS * 64 {
                break false;
            }
        };
        let (bytes, base) = cursor.buffer();
        all.read(bytes, base, cells, &records, &mut found);
        if at_end {
            return Ok(found);
        }
    }
}

/// Finds the records that cannot be read.
struct Checks<'a> {
    source: &'a DelimitedFiles,
    file: &'a TextFile,
}

impl Checks<'_> {
    /// Reads records. If that fails, reads each half, and so on down to single records.
    fn read(&self, bytes: &[u8], base: u64, cells: &[Cell], records: &[Numbered], found: &mut Vec<Found>) {
        if records.is_empty() {
            return;
        }
        let mut copied = cells.to_vec();
        let Self { source, file, .. } = *self;
        let offset = |at: u64| base + at;
        let (cells_of_batch, split) = (&mut copied, Split::all(file.fields()));
        let batch =
            Batch { source, file, cells: cells_of_batch, split, bytes, offset: &offset, rows: records.len() };
        let Err(error) = batch.build(&source.chosen, &source.schema) else { return };
        if let [(start, end, number)] = *records {
            let why = format!("{}: {}", error.what(), error.place());
            found.push(Found { start: base + start as u64, end: base + end as u64, number, why });
            return;
        }
        let half = records.len() / 2;
        let (first, second) = records.split_at(half);
        let (first_cells, second_cells) = cells.split_at(half * file.fields());
        self.read(bytes, base, first_cells, first, found);
        self.read(bytes, base, second_cells, second, found);
    }
}
