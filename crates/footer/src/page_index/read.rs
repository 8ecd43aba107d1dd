//! Reads page indexes: from their locations in the footer to decoded tables.
//!
//! ```text
//! chunks ─locations (by shapes)─▶ byte ranges ─neighbours together─▶ reads ─▶ tables
//! ```
//!
//! Page indexes precede the footer in the file, up to one of each kind per column chunk. Sawmill reads the indexes of
//! wanted chunks only: neighbours in one read, with gaps of up to 16 KiB between them. Indexes of encrypted chunks are
//! encrypted and treated as absent.
//!
//! A footer may claim any number of indexes at the same bytes. All that are read at once are at most as long
//! together as their file and as [`Options::max_page_indexes`](crate::Options::max_page_indexes), and bytes are
//! kept without long gaps: memory is a multiple of that, not of the number of chunks.

use std::ops::Range;
use std::sync::Arc;

use crate::chunk::column_chunk::ColumnChunk;
use crate::chunk::rows::ENCRYPTED;
use crate::error::{Error, Fault, Result};
use crate::footer::Footer;
use crate::memory::{allocate, pages};
use crate::open::source::RangeReader;
use crate::options::PageIndexPolicy;
use crate::page_index::indexes::{ColumnIndex, OffsetIndex, PageIndexes, explain};
use crate::page_index::locations::{self, Location};
use crate::page_index::runs::{READ_ALONG, WantedIndex, first_run, merge, total};
use crate::page_index::tables::Tables;
use crate::schema::columns;
use crate::thrift::format::{COLUMN_INDEX, OFFSET_INDEX, StructDef};

/// How many indexes to locate, read and decode at a time: few enough for their locations to stay in the
/// processor's caches, enough for reads of a megabyte.
const BATCH: usize = 1 << 16;

/// Page indexes being read and decoded.
struct Decoding<'d, R: ?Sized> {
    footer: &'d Footer,
    reader: &'d R,
    found: PageIndexes,
    tables: Tables,
    of_columns: Vec<WantedIndex>,
    of_offsets: Vec<WantedIndex>,
    /// The bytes of offset indexes, which are not kept, and of column indexes far apart.
    scratch: Vec<u8>,
    /// The length of the indexes that were read.
    read: u64,
}

impl<'d, R: RangeReader + ?Sized> Decoding<'d, R> {
    /// Allocates room for the indexes of all decoded chunks if `all` are wanted.
    fn new(footer: &'d Footer, reader: &'d R, all: bool) -> Result<Self> {
        let columns = footer.num_columns();
        let count = columns * footer.num_row_groups();
        let room = allocate::zeroed(count).zip(allocate::zeroed(count));
        let too_little = || allocate::too_little("the places of page indexes", count.saturating_mul(48));
        let (offset, column) = room.ok_or_else(|| footer.name_error(too_little()))?;
        let mut found = PageIndexes { columns, offset, column, ..PageIndexes::default() };
        pages::advise(&mut found.offset);
        pages::advise(&mut found.column);
        let mut tables = Tables::default();
        let (mut of_columns, mut of_offsets, scratch) = (Vec::new(), Vec::new(), Vec::new());
        if all {
            tables.reserve(count);
            // As in the tables: room that cannot be reserved is needed later or not at all.
            for list in [&mut of_columns, &mut of_offsets] {
                let _ = Vec::<WantedIndex>::try_reserve_exact(list, count.min(BATCH));
            }
        }
        Ok(Self { footer, reader, found, tables, of_columns, of_offsets, scratch, read: 0 })
    }

    /// Adds the indexes of the chunk in a row.
    #[inline(always)]
    fn add(&mut self, row: usize, location: Location) -> Result<()> {
        // There are fewer rows than footer bytes, whose number has 32 bits.
        let wanted = |(start, len)| WantedIndex { start, len, row: row as u32 };
        self.of_columns.extend(location.column_index.map(wanted));
        self.of_offsets.extend(location.offset_index.map(wanted));
        if self.of_columns.len().max(self.of_offsets.len()) >= BATCH { self.decode() } else { Ok(()) }
    }

    /// Reads and decodes the indexes added so far.
    #[inline(never)]
    fn decode(&mut self) -> Result<()> {
        if self.of_columns.is_empty() && self.of_offsets.is_empty() {
            return Ok(());
        }
        let all = self.of_columns.iter().chain(&self.of_offsets);
        self.read = all.map(|wanted| u64::from(wanted.len)).fold(self.read, u64::saturating_add);
        let len = self.footer.len_of(self.reader)?;
        let mut all = self.of_columns.iter().chain(&self.of_offsets);
        self.footer.may_read(self.read, len).map_err(|error| {
            let past_the_end = all.find(|wanted| wanted.range().end > len);
            past_the_end.map_or(error, |wanted| self.footer.past_the_end(*wanted, len))
        })?;
        let (mut of_columns, mut of_offsets) =
            (std::mem::take(&mut self.of_columns), std::mem::take(&mut self.of_offsets));
        for list in [&mut of_columns, &mut of_offsets] {
            // Writers usually store them in chunk order.
            if !list.is_sorted_by_key(|wanted| wanted.start) {
                list.sort_unstable_by_key(|wanted| wanted.start);
            }
        }
        let mut rest = of_columns.as_slice();
        while let Some(run) = first_run(rest) {
            self.column_indexes(run, len)?;
            rest = &rest[run.len()..];
        }
        let mut rest = of_offsets.as_slice();
        while let Some(run) = first_run(rest) {
            self.offset_indexes(run, len)?;
            rest = &rest[run.len()..];
        }
        of_columns.clear();
        of_offsets.clear();
        (self.of_columns, self.of_offsets) = (of_columns, of_offsets);
        Ok(())
    }

    /// Reads and decodes neighbouring column indexes of a file of this length, and keeps their bytes.
    fn column_indexes(&mut self, run: &[WantedIndex], file_len: u64) -> Result<()> {
        let mut bytes = Vec::new();
        let len: usize = run.iter().map(|wanted| wanted.len as usize).sum();
        let start = run[0].start;
        let mostly_gaps = len < (run[run.len() - 1].range().end - start) as usize / 2;
        if mostly_gaps {
            self.scratch.clear();
            self.footer.read_run(self.reader, file_len, run, &mut self.scratch)?;
            bytes.try_reserve_exact(len).map_err(|_| allocate::too_little("page indexes", len))?;
            for wanted in run {
                let at = (wanted.start - start) as usize;
                // The run that was read reaches from the start of its first index to the end of its last.
                bytes.extend_from_slice(&self.scratch[at..at + wanted.len as usize]);
            }
        } else {
            self.footer.read_run(self.reader, file_len, run, &mut bytes)?;
        }
        let mut packed = 0;
        for wanted in run {
            let at = if mostly_gaps { packed } else { (wanted.start - start) as usize };
            packed += wanted.len as usize;
            let own = bytes.get(..at + wanted.len as usize).unwrap_or_default();
            let entry = self.tables.column_index(own, at);
            let entry = entry.map_err(|fault| self.fault(own, at, &COLUMN_INDEX, fault, *wanted))?;
            self.found.column[wanted.row as usize] = entry.pack();
        }
        self.tables.keep(bytes.into());
        Ok(())
    }

    /// Reads and decodes neighbouring offset indexes of a file of this length.
    fn offset_indexes(&mut self, run: &[WantedIndex], file_len: u64) -> Result<()> {
        self.scratch.clear();
        self.footer.read_run(self.reader, file_len, run, &mut self.scratch)?;
        for wanted in run {
            let at = (wanted.start - run[0].start) as usize;
            let own = self.scratch.get(..at + wanted.len as usize).unwrap_or_default();
            let entry = self.tables.offset_index(own, at);
            let entry = entry.map_err(|fault| self.fault(own, at, &OFFSET_INDEX, fault, *wanted))?;
            self.found.offset[wanted.row as usize] = entry.pack();
        }
        Ok(())
    }

    #[cold]
    fn fault(
        &self,
        own: &[u8],
        at: usize,
        def: &'static StructDef,
        mut fault: Fault,
        wanted: WantedIndex,
    ) -> Error {
        fault.at = fault.at.saturating_sub(at);
        self.footer.in_chunk(explain(own.get(at..).unwrap_or_default(), def, fault), wanted)
    }
}

impl Footer {
    /// Reads the page indexes of all decoded column chunks from the file, except of encrypted chunks.
    ///
    /// Costs a read for each run of neighbours, and some 50 to 150 ns an index. Allocates 48 bytes a chunk,
    /// the indexes' values, and the bytes of the bounds.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, or an index is malformed; the error names the column chunk. Or the indexes are
    /// longer together than their file or than [`Options::max_page_indexes`](crate::Options::max_page_indexes).
    pub fn read_page_indexes<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<PageIndexes> {
        self.read_wanted(reader, true, |_, _| true)
    }

    /// Reads the page indexes of the decoded column chunks that `policy` selects.
    ///
    /// Costs what [`Footer::read_page_indexes`] does, of the selected chunks alone.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read_page_indexes`]; or the policy names a column that the schema does not have.
    pub fn read_page_indexes_of<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        policy: &PageIndexPolicy,
    ) -> Result<PageIndexes> {
        if matches!(policy, PageIndexPolicy::All) {
            return self.read_page_indexes(reader);
        }
        let (positions, row_groups) = self.selected(policy)?;
        self.read_wanted(reader, false, |group, column| {
            row_groups.contains(&group) && positions.get(column) == Some(&true)
        })
    }

    /// The ranges of the file that hold the page indexes which `policy` selects, with gaps of up to 16 KiB
    /// between them: for callers with their own I/O, who pass the bytes on as
    /// [`FetchedRanges`](crate::FetchedRanges). Costs a walk over the selected chunks; no I/O.
    ///
    /// # Errors
    ///
    /// A location is malformed; or the policy names a column that the schema does not have; or the indexes are
    /// longer together than [`Options::max_page_indexes`](crate::Options::max_page_indexes).
    pub fn page_index_ranges(&self, policy: &PageIndexPolicy) -> Result<Vec<Range<u64>>> {
        let (positions, row_groups) = self.selected(policy)?;
        let wanted = |position: usize, column: usize| {
            let group = self.row_group(position).map_or(position, |group| group.index());
            row_groups.contains(&group) && positions.get(column) == Some(&true)
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let rows = &self.decoded.rows;
        locations::each(self, wanted, |row, location| {
            if rows.get(row).traits.flags & ENCRYPTED == 0 {
                let range = |(start, len): (u64, u32)| start..start.saturating_add(len.into());
                ranges
                    .extend([location.offset_index, location.column_index].into_iter().flatten().map(range));
            }
            Ok(())
        })?;
        self.may_read(total(&ranges), self.file_len().unwrap_or(u64::MAX))?;
        ranges.sort_unstable_by_key(|range| range.start);
        merge(&mut ranges, READ_ALONG, self.max_page_indexes());
        Ok(ranges)
    }

    /// Whether indexes of this length together may be read from a file of this length.
    pub(crate) fn may_read(&self, bytes: u64, file_len: u64) -> Result<()> {
        let allowed = self.max_page_indexes();
        if bytes > file_len {
            let what = format!(
                "expected page indexes within the file's {file_len} bytes, found {bytes} bytes of them: some \
                 overlap"
            );
            let advice = "the footer is damaged: read the file without page indexes, or write it again";
            return Err(self.name_error(Error::new(what).with_advice(advice)));
        }
        if bytes > allowed {
            let what = format!("expected at most {allowed} bytes of page indexes, found {bytes}");
            let advice = "read those of fewer columns, or allow more with Options::max_page_indexes";
            return Err(self.name_error(Error::new(what).with_advice(advice)));
        }
        Ok(())
    }

    fn len_of<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<u64> {
        reader.len().map_err(|error| self.name_error(Error::io("reading the page indexes", &error)))
    }

    /// The decoded columns, by their positions, and the row groups that a policy selects.
    fn selected(&self, policy: &PageIndexPolicy) -> Result<(Vec<bool>, Range<usize>)> {
        let all = self.num_columns();
        Ok(match policy {
            PageIndexPolicy::None => (vec![false; all], 0..0),
            PageIndexPolicy::All => (vec![true; all], 0..usize::MAX),
            PageIndexPolicy::Chunks(selectors, row_groups) => {
                let leaves =
                    columns::leaves(selectors, self.schema()).map_err(|error| self.name_error(error))?;
                let is_selected =
                    |at| self.leaf_of(at).is_some_and(|leaf| leaves.binary_search(&(leaf as u32)).is_ok());
                ((0..all).map(is_selected).collect(), row_groups.clone())
            }
        })
    }

    fn read_wanted<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        all: bool,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<PageIndexes> {
        let mut decoding = Decoding::new(self, reader, all)?;
        let wanted = |position: usize, column| {
            all || wanted(self.row_group(position).map_or(position, |group| group.index()), column)
        };
        let rows = &self.decoded.rows;
        let some_encrypted = rows.some_encrypted();
        locations::each(self, wanted, |row, location| {
            match some_encrypted && rows.get(row).traits.flags & ENCRYPTED != 0 {
                true => Ok(()),
                false => decoding.add(row, location),
            }
        })?;
        decoding.decode()?;
        let Decoding { mut found, tables, .. } = decoding;
        found.tables = Arc::new(tables);
        Ok(found)
    }

    /// Reads a run of indexes from a file of this length into `bytes`, which is empty.
    fn read_run<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        file_len: u64,
        run: &[WantedIndex],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let (first, last) = (run[0], run[run.len() - 1]);
        let (start, end) = (first.start, last.range().end);
        // The file's length bounds the allocation.
        if end > file_len {
            return Err(self.past_the_end(last, file_len));
        }
        let len = (end - start) as usize;
        let room = bytes.try_reserve_exact(len);
        room.map_err(|_| self.in_chunk(allocate::too_little("page indexes", len), first))?;
        bytes.resize(len, 0);
        reader
            .read_exact_at(start, bytes)
            .map_err(|error| self.in_chunk(Error::io("reading a page index", &error), first))
    }

    fn one_index<R: RangeReader + ?Sized>(&self, reader: &R, wanted: WantedIndex) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file_len = self.len_of(reader)?;
        // An index past the file's end is that, rather than too long.
        if wanted.range().end <= file_len {
            self.may_read(wanted.len.into(), file_len).map_err(|error| self.in_chunk(error, wanted))?;
        }
        self.read_run(reader, file_len, &[wanted], &mut bytes)?;
        Ok(bytes)
    }

    #[cold]
    fn past_the_end(&self, wanted: WantedIndex, file_len: u64) -> Error {
        let end = wanted.range().end;
        let what =
            format!("expected page indexes within the file's {file_len} bytes, found some up to {end}");
        self.in_chunk(Error::new(what), wanted)
    }

    fn in_chunk(&self, error: Error, wanted: WantedIndex) -> Error {
        let columns = self.num_columns().max(1);
        let row = wanted.row as usize;
        let chunk = self.column_chunk(row / columns, row % columns);
        let chunk =
            chunk.map(|chunk| format!("row_groups[{}].columns[{}]", chunk.row_group().index(), chunk.leaf()));
        let inner = error.path().to_string();
        let place = format!("{}, page index at byte {} of the file", chunk.unwrap_or_default(), wanted.start);
        let path = if inner.is_empty() { place } else { format!("{place}, {inner}") };
        self.name_error(error.at_path(path))
    }
}

impl ColumnChunk<'_> {
    /// Reads the chunk's offset index; `None` if it has none or is encrypted.
    ///
    /// Costs a read and a walk over the index.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read_page_indexes`].
    pub fn read_offset_index<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<Option<OffsetIndex>> {
        let Some(wanted) = self.wanted(self.offset_index_range()?) else { return Ok(None) };
        let footer = self.group.footer;
        let bytes = footer.one_index(reader, wanted)?;
        OffsetIndex::decode(bytes.as_slice()).map(Some).map_err(|error| footer.in_chunk(error, wanted))
    }

    /// Reads the chunk's column index; `None` if it has none or is encrypted.
    ///
    /// Costs a read and a walk over the index.
    ///
    /// # Errors
    ///
    /// As for [`Footer::read_page_indexes`].
    pub fn read_column_index<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<Option<ColumnIndex>> {
        let Some(wanted) = self.wanted(self.column_index_range()?) else { return Ok(None) };
        let footer = self.group.footer;
        let bytes = footer.one_index(reader, wanted)?;
        ColumnIndex::decode(bytes).map(Some).map_err(|error| footer.in_chunk(error, wanted))
    }

    fn wanted(&self, range: Option<Range<u64>>) -> Option<WantedIndex> {
        let range = range.filter(|_| !self.is_encrypted())?;
        let row = self.group.position * self.group.footer.num_columns() + self.position;
        // The lengths of indexes have 32 bits.
        Some(WantedIndex { start: range.start, len: (range.end - range.start) as u32, row: row as u32 })
    }
}
