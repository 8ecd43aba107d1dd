//! Sources whose rows can be found again one by one, by an address that takes 16 bytes.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use sawmill_profile::{Control, Error, Kind, Result};

use crate::units::{Source, Unit, UnitKey, UnitReader};

/// Where a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowAddress {
    /// Position of the file in [`Source::files`].
    pub file: u32,
    /// A place in the file. Rows compare by it in the order of the file.
    pub at: u64,
    /// How many bytes the row has there; for sources that do not know it an estimate.
    pub len: u32,
}

/// Consecutive rows that a scan has read.
pub struct Scanned<'a> {
    /// The wanted columns.
    pub batch: &'a RecordBatch,
    /// Where each row is.
    pub addresses: &'a [RowAddress],
    /// Bytes of the file that contain the rows, and the place of the first of them; `None` where rows are not
    /// ranges of bytes.
    pub bytes: Option<(&'a [u8], u64)>,
}

impl<'a> Scanned<'a> {
    /// The bytes of a row, if rows are ranges of bytes.
    pub fn record(&self, row: usize) -> Option<&'a [u8]> {
        let ((bytes, base), address) = (self.bytes?, self.addresses.get(row)?);
        let start = usize::try_from(address.at.checked_sub(base)?).ok()?;
        bytes.get(start..start.checked_add(address.len as usize)?)
    }
}

/// Rows to fetch.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Where they are in the source.
    pub addresses: Vec<RowAddress>,
    /// Where their copies are, as positions among the files of copies; empty if rows are not ranges of bytes.
    pub copies: Vec<RowAddress>,
}

/// A source whose rows can be found again by their addresses.
pub trait Addressed: Sync {
    /// The source itself.
    fn source(&self) -> &dyn Source;

    /// Returns the parts of its rows that one thread scans at a time, in the order of the rows.
    fn parts(&self) -> Vec<Unit>;

    /// Reads these columns of a part, given by their positions in the schema, and passes them to `each` with
    /// the address of each row.
    ///
    /// # Errors
    /// Values that do not have the type of their column; files that cannot be read; what `each` returns.
    fn scan(
        &self,
        part: &Unit,
        columns: &[usize],
        control: &Control<'_>,
        each: &mut dyn FnMut(&Scanned<'_>) -> Result<()>,
    ) -> Result<()>;

    /// Returns what reads rows, from `copies` of their bytes if they are ranges of bytes, else by their addresses.
    /// Each thread uses its own. `columns` are positions in the schema.
    fn fetcher<'a>(
        &'a self,
        columns: &[usize],
        batch_rows: usize,
        copies: &'a [File],
    ) -> Box<dyn Fetcher + 'a>;

    /// Returns where a row is, for messages; `None` if that is not known.
    fn place(&self, _address: RowAddress) -> Option<String> {
        None
    }

    /// The bytes of all rows, if rows are ranges of bytes. The index then keeps copies of them.
    fn record_bytes(&self) -> Option<u64> {
        None
    }

    /// Says how rows are fetched, once some were.
    fn way(&self) -> String {
        "row groups".to_owned()
    }
}

/// Reads rows by their addresses.
pub trait Fetcher: Send {
    /// Fetches these rows. The batches of those before have been taken.
    ///
    /// # Errors
    /// Files that cannot be read, or that have changed.
    fn fetch(&mut self, wanted: &Wanted) -> Result<()>;

    /// Returns the next batch of the fetched rows, in the order of their addresses; `None` at their end.
    ///
    /// # Errors
    /// Values that do not have the type of their column.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>>;
}

/// Bits of an address that count rows within a row group.
const ROW_BITS: u32 = 40;

/// The address of the first row of a unit; `None` if there are too many row groups or rows.
pub(super) fn address_of(key: UnitKey) -> Option<u64> {
    let fits = key.first_row >> ROW_BITS == 0 && key.row_group >> (64 - ROW_BITS) == 0;
    fits.then_some((u64::from(key.row_group) << ROW_BITS) + key.first_row)
}

/// Rows of a part.
const PART_ROWS: u64 = 256 * 1024;

/// Addresses the rows of any source by row group and row.
pub struct ByRow<'a> {
    source: &'a dyn Source,
}

impl<'a> ByRow<'a> {
    /// Returns the rows of `source`, by their numbers in its row groups.
    pub fn new(source: &'a dyn Source) -> Self {
        Self { source }
    }
}

impl Addressed for ByRow<'_> {
    fn source(&self) -> &dyn Source {
        self.source
    }

    fn parts(&self) -> Vec<Unit> {
        let mut parts = self.source.plan(PART_ROWS).concat();
        parts.sort_unstable_by_key(|unit| unit.key);
        parts
    }

    fn scan(
        &self,
        part: &Unit,
        columns: &[usize],
        control: &Control<'_>,
        each: &mut dyn FnMut(&Scanned<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut reader = self.source.reader_of(columns, 8192);
        reader.start(part)?;
        let Some(mut at) = address_of(part.key) else {
            return Err(Error::new(Kind::Source, "the file has too many rows or row groups to be sorted"));
        };
        let file = part.key.file;
        let len = u32::try_from(part.bytes / part.rows.max(1)).unwrap_or(u32::MAX);
        let mut addresses = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            control.check()?;
            let rows = batch.num_rows() as u64;
            addresses.clear();
            addresses.extend((at..at + rows).map(|at| RowAddress { file, at, len }));
            at += rows;
            each(&Scanned { batch: &batch, addresses: &addresses, bytes: None })?;
        }
        Ok(())
    }

    fn place(&self, address: RowAddress) -> Option<String> {
        let first_row = address.at & ((1 << ROW_BITS) - 1);
        // 24 bits are left.
        let key = UnitKey { file: address.file, row_group: (address.at >> ROW_BITS) as u32, first_row };
        let place = self.source.place_of_row(key, first_row)?;
        place.name.or_else(|| {
            let file = self.source.files().get(key.file as usize)?;
            Some(format!("{}, row group {}, row {}", file.name, key.row_group, place.row))
        })
    }

    fn way(&self) -> String {
        // Text has no row groups.
        let first = UnitKey { file: 0, row_group: 0, first_row: 0 };
        let is_text = self.source.place_of_row(first, 0).is_some_and(|place| place.name.is_some());
        if is_text { "ranges of records" } else { "row groups" }.to_owned()
    }

    fn fetcher<'a>(&'a self, columns: &[usize], batch_rows: usize, _: &'a [File]) -> Box<dyn Fetcher + 'a> {
        let reader = self.source.reader_of(columns, 8192);
        Box::new(RowFetcher { reader, batch_rows: batch_rows.max(1), ready: VecDeque::new() })
    }
}

/// Reads the stretches of row groups that contain wanted rows, and takes the rows out of them.
struct RowFetcher<'a> {
    reader: Box<dyn UnitReader + 'a>,
    batch_rows: usize,
    ready: VecDeque<RecordBatch>,
}

/// Rows between two wanted ones that are decoded rather than skipped.
const NEAR: u64 = 2048;

impl Fetcher for RowFetcher<'_> {
    fn fetch(&mut self, Wanted { addresses, .. }: &Wanted) -> Result<()> {
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        order.sort_unstable_by_key(|place| addresses.get(*place).copied().unwrap_or_default());
        let sorted: Vec<RowAddress> = order.iter().filter_map(|at| addresses.get(*at).copied()).collect();
        let mut found = Vec::new();
        for stretch in sorted
            .chunk_by(|a, b| a.file == b.file && b.at - a.at <= NEAR && a.at >> ROW_BITS == b.at >> ROW_BITS)
        {
            self.read_stretch(stretch, &mut found)?;
        }
        let Some(first) = found.first() else { return Ok(()) };
        let failed = |error: arrow_schema::ArrowError| Error::new(Kind::Source, error.to_string());
        let all = concat_batches(&first.schema(), &found).map_err(failed)?;
        if all.num_rows() != addresses.len() {
            return Err(Error::new(Kind::Changed, "the source has fewer rows than when it was indexed"));
        }
        let mut places = vec![0_u64; addresses.len()];
        for (sorted, place) in (0..).zip(&order) {
            if let Some(at) = places.get_mut(*place) {
                *at = sorted;
            }
        }
        let places = Arc::new(UInt64Array::from(places));
        let mut from = 0;
        while from < places.len() {
            let rows = self.batch_rows.min(places.len() - from);
            let taken = take_record_batch(&all, &places.slice(from, rows)).map_err(failed)?;
            self.ready.push_back(taken);
            from += rows;
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.ready.pop_front())
    }
}

impl RowFetcher<'_> {
    /// Appends the rows of a stretch, which are sorted, of one row group and near one another.
    fn read_stretch(&mut self, stretch: &[RowAddress], found: &mut Vec<RecordBatch>) -> Result<()> {
        let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else { return Ok(()) };
        let row = |address: &RowAddress| address.at & ((1 << ROW_BITS) - 1);
        // 24 bits are left.
        let row_group = (first.at >> ROW_BITS) as u32;
        let key = UnitKey { file: first.file, row_group, first_row: row(first) };
        let rows = row(last) - row(first) + 1;
        self.reader.start(&Unit { key, rows, bytes: rows * u64::from(first.len) })?;
        let mut wanted = stretch.iter().map(row).peekable();
        let mut at = key.first_row;
        while let Some(batch) = self.reader.next_batch()? {
            let end = at + batch.num_rows() as u64;
            let mut here = Vec::new();
            while let Some(row) = wanted.next_if(|row| *row < end) {
                here.push(row - at);
            }
            at = end;
            if here.len() == batch.num_rows() {
                found.push(batch);
            } else if !here.is_empty() {
                let taken = take_record_batch(&batch, &UInt64Array::from(here));
                found.push(taken.map_err(|error| Error::new(Kind::Source, error.to_string()))?);
            }
        }
        Ok(())
    }
}
