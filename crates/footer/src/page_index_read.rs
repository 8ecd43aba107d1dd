//! Reading page indexes: from the footer's places of them to decoded tables.
//!
//! ```text
//! chunks ─locations (by shapes)─▶ byte ranges ─neighbours together─▶ reads ─▶ tables
//! ```
//!
//! They stand in the file before the footer, one of either kind for a column chunk. Only those of the
//! wanted chunks are read: neighbours in one read, nothing in between.

use std::ops::Range;
use std::sync::Arc;

use crate::buffer::FooterBytes;
use crate::chunk::ColumnChunk;
use crate::columns;
use crate::error::Error;
use crate::footer::Footer;
use crate::format::{COLUMN_INDEX, OFFSET_INDEX};
use crate::huge;
use crate::locations::{self, Location};
use crate::options::PageIndexPolicy;
use crate::page_index::{ColumnIndex, OffsetIndex, PageIndexes, explain};
use crate::page_index_tables::Tables;
use crate::source::RangeReader;

/// Neighbouring indexes are read together up to this many bytes at a time.
const READ_LEN: u64 = 8 << 20;

/// An index to be read: where it starts, its length, the row of its chunk.
#[derive(Clone, Copy)]
struct Wanted {
    start: u64,
    len: u32,
    row: u32,
}

impl Wanted {
    fn range(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.len.into())
    }
}

impl Footer {
    /// Reads the page indexes of all decoded column chunks from the file they stand in.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, or an index is malformed; the error names the column chunk.
    pub fn read_page_indexes<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<PageIndexes, Error> {
        self.read_wanted(reader, true, |_, _| true)
    }

    /// Reads the page indexes that `policy` wants of the decoded column chunks.
    ///
    /// # Errors
    ///
    /// As [`Footer::read_page_indexes`]; and the policy names a column that the schema does not have.
    pub fn read_page_indexes_of<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        policy: &PageIndexPolicy,
    ) -> Result<PageIndexes, Error> {
        match policy {
            PageIndexPolicy::None => self.read_wanted(reader, false, |_, _| false),
            PageIndexPolicy::All => self.read_page_indexes(reader),
            PageIndexPolicy::Chunks(selectors, row_groups) => {
                let leaves =
                    columns::leaves(selectors, self.schema()).map_err(|error| self.name_error(error))?;
                let positions: Vec<bool> = (0..self.num_columns())
                    .map(|at| {
                        self.leaf_of(at).is_some_and(|leaf| leaves.binary_search(&(leaf as u32)).is_ok())
                    })
                    .collect();
                self.read_wanted(reader, false, |group, column| {
                    row_groups.contains(&group) && positions.get(column) == Some(&true)
                })
            }
        }
    }

    fn read_wanted<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        all: bool,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<PageIndexes, Error> {
        let columns = self.num_columns();
        let count = columns * self.num_row_groups();
        let (offset, column) = (vec![[0; 4]; count], vec![[0; 8]; count]);
        let mut found = PageIndexes { columns, offset, column, ..PageIndexes::default() };
        huge::advise(&mut found.offset);
        huge::advise(&mut found.column);
        let mut tables = Tables::default();
        // All tables are made before any is touched: so they share huge pages.
        let room = if all { count } else { 0 };
        tables.reserve(room);
        let mut of_columns: Vec<Wanted> = Vec::with_capacity(room);
        let mut of_offsets: Vec<Wanted> = Vec::with_capacity(room);
        huge::advise(of_columns.spare_capacity_mut());
        huge::advise(of_offsets.spare_capacity_mut());
        let wanted = |position: usize, column| {
            all || wanted(self.row_group(position).map_or(position, |group| group.index()), column)
        };
        locations::each(self, wanted, |row, Location { offset_index, column_index }| {
            let add = |list: &mut Vec<Wanted>, index: Option<(u64, u32)>| {
                // Rows are fewer than the footer's bytes, whose number has 32 bits.
                list.extend(index.map(|(start, len)| Wanted { start, len, row: row as u32 }));
            };
            add(&mut of_columns, column_index);
            add(&mut of_offsets, offset_index);
        })?;
        for list in [&mut of_columns, &mut of_offsets] {
            // Writers put them in the order of their chunks.
            if !list.is_sorted_by_key(|wanted| wanted.start) {
                list.sort_unstable_by_key(|wanted| wanted.start);
            }
        }
        self.decode_runs(reader, &of_columns, |bytes, part| {
            for wanted in part {
                let at = (wanted.start - part[0].start) as usize;
                let own = bytes.as_slice().get(..at + wanted.len as usize).unwrap_or_default();
                let decoded = tables.column_index(own, at);
                let entry = decoded.map_err(|mut fault| {
                    fault.at = fault.at.saturating_sub(at);
                    self.in_chunk(explain(own.get(at..).unwrap_or_default(), &COLUMN_INDEX, fault), *wanted)
                })?;
                found.column[wanted.row as usize] = entry.pack();
            }
            tables.keep(bytes);
            Ok(())
        })?;
        self.decode_runs(reader, &of_offsets, |bytes, part| {
            for wanted in part {
                let at = (wanted.start - part[0].start) as usize;
                let own = bytes.as_slice().get(..at + wanted.len as usize).unwrap_or_default();
                let decoded = tables.offset_index(own, at);
                let entry = decoded.map_err(|mut fault| {
                    fault.at = fault.at.saturating_sub(at);
                    self.in_chunk(explain(own.get(at..).unwrap_or_default(), &OFFSET_INDEX, fault), *wanted)
                })?;
                found.offset[wanted.row as usize] = entry.pack();
            }
            Ok(())
        })?;
        found.tables = Arc::new(tables);
        Ok(found)
    }

    /// Reads runs of indexes that stand one right behind the other and hands them over.
    fn decode_runs<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
        wanted: &[Wanted],
        mut take: impl FnMut(FooterBytes, &[Wanted]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut rest = wanted;
        while let Some(run) = first_run(rest) {
            take(self.read_run(reader, run)?, run)?;
            rest = &rest[run.len()..];
        }
        Ok(())
    }

    fn read_run<R: RangeReader + ?Sized>(&self, reader: &R, run: &[Wanted]) -> Result<FooterBytes, Error> {
        let (first, last) = (run[0], run[run.len() - 1]);
        let (start, end) = (first.start, last.range().end);
        // The file's length bounds what is allocated.
        let len =
            reader.len().map_err(|error| self.name_error(Error::io("reading the page indexes", &error)))?;
        if end > len {
            let what = format!("expected page indexes within the file's {len} bytes, found some up to {end}");
            return Err(self.in_chunk(Error::new(what), last));
        }
        let mut bytes = vec![0; (end - start) as usize];
        huge::advise(&mut bytes);
        match reader.read_exact_at(start, &mut bytes) {
            Ok(()) => Ok(bytes.into()),
            Err(error) => Err(self.in_chunk(Error::io("reading a page index", &error), first)),
        }
    }

    fn in_chunk(&self, error: Error, wanted: Wanted) -> Error {
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

/// The first indexes that stand one right behind the other, up to [`READ_LEN`] bytes.
fn first_run(wanted: &[Wanted]) -> Option<&[Wanted]> {
    let start = wanted.first()?.start;
    let mut count = 1;
    while let Some(next) = wanted.get(count) {
        if next.start != wanted[count - 1].range().end || next.range().end - start > READ_LEN {
            break;
        }
        count += 1;
    }
    Some(&wanted[..count])
}

impl ColumnChunk<'_> {
    /// Reads the chunk's offset index; none where there is none.
    ///
    /// # Errors
    ///
    /// As [`Footer::read_page_indexes`].
    pub fn read_offset_index<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
    ) -> Result<Option<OffsetIndex>, Error> {
        let Some(wanted) = self.wanted(self.offset_index_range()?) else { return Ok(None) };
        let footer = self.group.footer;
        let bytes = footer.read_run(reader, &[wanted])?;
        OffsetIndex::decode(bytes.as_slice()).map(Some).map_err(|error| footer.in_chunk(error, wanted))
    }

    /// Reads the chunk's column index; none where there is none.
    ///
    /// # Errors
    ///
    /// As [`Footer::read_page_indexes`].
    pub fn read_column_index<R: RangeReader + ?Sized>(
        &self,
        reader: &R,
    ) -> Result<Option<ColumnIndex>, Error> {
        let Some(wanted) = self.wanted(self.column_index_range()?) else { return Ok(None) };
        let footer = self.group.footer;
        let bytes = footer.read_run(reader, &[wanted])?;
        ColumnIndex::decode(bytes).map(Some).map_err(|error| footer.in_chunk(error, wanted))
    }

    fn wanted(&self, range: Option<Range<u64>>) -> Option<Wanted> {
        let range = range?;
        let row = self.group.position * self.group.footer.num_columns() + self.position;
        // Lengths of indexes have 32 bits.
        Some(Wanted { start: range.start, len: (range.end - range.start) as u32, row: row as u32 })
    }
}
