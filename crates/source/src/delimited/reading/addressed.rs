//! Records in another order: scanned with their places, and read from sorted copies.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;
use sawmill_profile::{Control, Error, Kind, Result};

use super::gather::Gatherer;
use super::reader::{Batch, DelimitedReader};
use crate::delimited::files::{DelimitedFiles, Place};
use crate::delimited::records::splitter::{Cell, Step};
use crate::ordered::{Addressed, Fetcher, RowAddress, Scanned, Wanted};
use crate::units::{Source, Unit, UnitKey, UnitReader};

/// Bytes of a part that one thread scans.
const PART_BYTES: u64 = 4 << 20;

/// Records that are split at once while a part is scanned.
const SCANNED: usize = 4096;

/// Most fields that are split at once.
const MAX_CELLS: usize = 1 << 18;

/// The bytes after each gathered record. A record that ends with its own carriage return keeps it.
pub(crate) const NEWLINE: &[u8; 2] = b"\r\n";

impl Addressed for DelimitedFiles {
    fn source(&self) -> &dyn Source {
        self
    }

    /// Parts begin at marks, so that no record before them has to be skipped.
    fn parts(&self) -> Vec<Unit> {
        let mut parts = Vec::new();
        for (number, file) in (0u32..).zip(self.opened()) {
            let mut start: Option<(u64, u64)> = None;
            let end = (file.rows, file.length);
            let marks = file.marks.iter().map(|mark| (mark.rows, mark.offset)).chain([end]);
            for (rows, offset) in marks {
                let (first_row, from) = *start.get_or_insert((rows, offset));
                if (offset - from >= PART_BYTES || offset == file.length) && rows > first_row {
                    let key = UnitKey { file: number, row_group: 0, first_row };
                    parts.push(Unit { key, rows: rows - first_row, bytes: offset - from });
                    start = Some((rows, offset));
                }
            }
        }
        parts
    }

    fn scan(
        &self,
        part: &Unit,
        columns: &[usize],
        control: &Control<'_>,
        each: &mut dyn FnMut(&Scanned<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = DelimitedReader::new(self, columns, SCANNED);
        reader.start(part)?;
        let mut addresses = Vec::new();
        while let Some(batch) = reader.next(Some(&mut addresses))? {
            control.check()?;
            each(&Scanned { batch: &batch, addresses: &addresses, bytes: reader.buffer() })?;
        }
        Ok(())
    }

    fn fetcher<'a>(
        &'a self,
        columns: &[usize],
        batch_rows: usize,
        copies: &'a [File],
    ) -> Box<dyn Fetcher + 'a> {
        let (places, schema) = self.columns_at(columns);
        Box::new(RecordFetcher {
            source: self,
            places,
            schema,
            batch_rows: batch_rows.max(1),
            gatherer: Gatherer::new(copies, &self.gathered),
            addresses: Vec::new(),
            next: 0,
            cells: Vec::new(),
            lines: Lines::default(),
        })
    }

    fn place(&self, address: RowAddress) -> Option<String> {
        Some(self.file(address.file).ok()?.place(address.at))
    }

    fn record_bytes(&self) -> Option<u64> {
        Some(self.opened().iter().map(|file| file.length.saturating_sub(file.start)).sum())
    }

    fn way(&self) -> String {
        self.gathered.to_string()
    }
}

impl DelimitedFiles {
    /// Where the values of these columns come from, and their schema.
    pub(super) fn columns_at(&self, columns: &[usize]) -> (Vec<Place>, SchemaRef) {
        let places = columns.iter().filter_map(|column| self.chosen.get(*column).copied()).collect();
        let fields = columns.iter().filter_map(|column| self.schema.fields().get(*column).cloned());
        (places, Arc::new(Schema::new(fields.collect::<Vec<Arc<Field>>>())))
    }
}

/// Reads records from their copies: gathers their bytes, and splits and parses them like others.
struct RecordFetcher<'a> {
    source: &'a DelimitedFiles,
    places: Vec<Place>,
    schema: SchemaRef,
    batch_rows: usize,
    gatherer: Gatherer<'a>,
    addresses: Vec<RowAddress>,
    /// The first record that was not handed out yet.
    next: usize,
    cells: Vec<Cell>,
    /// Records of one of several files.
    lines: Lines,
}

/// Records of one file, one after the other.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The start of each record in `bytes`, and in the file.
    starts: Vec<(u64, u64)>,
}

impl Fetcher for RecordFetcher<'_> {
    fn fetch(&mut self, Wanted { addresses, copies }: &Wanted) -> Result<()> {
        self.addresses.clear();
        self.addresses.extend_from_slice(addresses);
        self.next = 0;
        self.gatherer.gather(copies)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let from = self.next;
        let columns = self.source.columns().max(1);
        let most = self.batch_rows.min((MAX_CELLS / columns).max(1));
        let to = self.addresses.len().min(from + most);
        let Some(first) = self.addresses.get(from) else { return Ok(None) };
        self.next = to;
        let mut files: Vec<u32> = self.addresses[from..to].iter().map(|address| address.file).collect();
        let first = first.file;
        if files.iter().all(|file| *file == first) {
            return self.records_of(first, from..to).map(Some);
        }
        let of_rows = files.clone();
        files.sort_unstable();
        files.dedup();
        let batches =
            files.iter().map(|file| self.records_of(*file, from..to)).collect::<Result<Vec<_>>>()?;
        let mut seen = vec![0; files.len()];
        let places: Vec<(usize, usize)> = of_rows
            .iter()
            .map(|file| {
                let number = files.binary_search(file).unwrap_or_default();
                seen[number] += 1;
                (number, seen[number] - 1)
            })
            .collect();
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        let mixed = interleave_record_batch(&batches, &places);
        mixed.map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()))
    }
}

impl RecordFetcher<'_> {
    /// Parses the records that are in a file.
    fn records_of(&mut self, file: u32, range: Range<usize>) -> Result<RecordBatch> {
        let Lines { bytes: copied, starts } = &mut self.lines;
        starts.clear();
        let rows = self.addresses.get(range.clone()).unwrap_or_default();
        let bytes = if rows.iter().all(|row| row.file == file) {
            // They follow one another already.
            let mut at = 0;
            starts.extend(rows.iter().map(|row| (next_start(&mut at, row.len), row.at)));
            self.gatherer.lines(range)
        } else {
            copied.clear();
            for (row, address) in range.zip(rows).filter(|(_, address)| address.file == file) {
                starts.push((copied.len() as u64, address.at));
                copied.extend_from_slice(self.gatherer.lines(row..row + 1));
            }
            copied.as_slice()
        };
        let text = self.source.file(file)?;
        let (mut at, rows) = (0, starts.len());
        let split = text.split_for(&self.places);
        let mut ordinary = text.splitter.ordinary(bytes, at);
        self.cells.clear();
        for row in 0..rows {
            let before = self.cells.len();
            let end = starts.get(row + 1).map_or(bytes.len(), |(start, _)| *start as usize);
            if ordinary.record(at, split, &mut self.cells) == Some(end) {
                at = end;
                continue;
            }
            self.cells.truncate(before);
            match text.splitter.step(bytes, at, false, &mut self.cells) {
                // In files whose lines end with carriage returns, the newline after one is left over.
                Step::Record(next)
                    if (next == end || (text.splitter.newline == b'\r' && next + 1 == end))
                        && text.fit(before, text.fields(), &mut self.cells) =>
                {
                    split.shorten(before, &mut self.cells);
                    at = end;
                }
                _ => return Err(text.changed()),
            }
        }
        let starts = &*starts;
        let offset = |at: u64| {
            let row = starts.partition_point(|(start, _)| *start <= at).saturating_sub(1);
            starts.get(row).map_or(0, |(start, offset)| offset + (at - start))
        };
        let cells = &mut self.cells;
        let batch = Batch { source: self.source, file: text, cells, split, bytes, offset: &offset, rows };
        batch.build(&self.places, &self.schema)
    }
}

/// Returns where a gathered line starts, and moves behind it.
fn next_start(at: &mut u64, len: u32) -> u64 {
    let start = *at;
    *at += u64::from(len) + NEWLINE.len() as u64;
    start
}
