//! Page indexes: where the pages of a column chunk stand and what their values lie between.
//!
//! They stand in the file before the footer, in structs of their own, one of either kind for a column
//! chunk. Only those of the decoded chunks are read: neighbours in one read, nothing in between.
//!
//! Source: [page index](https://github.com/apache/parquet-format/blob/master/PageIndex.md).

use std::ops::Range;

use crate::buffer::FooterBytes;
use crate::chunk::ColumnChunk;
use crate::enums::BoundaryOrder;
use crate::error::{Error, Fault, FaultKind};
use crate::footer::Footer;
use crate::format::{COLUMN_INDEX, OFFSET_INDEX, StructDef};
use crate::source::RangeReader;
use crate::statistics::integers;
use crate::thrift::{BINARY, Cursor, FALSE, I32, I64, LIST, STOP, STRUCT, Step, TRUE};
use crate::trace;

/// Neighbouring indexes are read together up to this many bytes at a time.
const READ_LEN: u64 = 8 << 20;

/// Where a data page stands (`PageLocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLocation {
    /// Where the page's header starts in the file.
    pub offset: i64,
    /// Bytes of the page, its header among them.
    pub compressed_page_size: i32,
    /// The row group's row that the page starts with.
    pub first_row_index: i64,
}

/// Where the data pages of a column chunk stand (`OffsetIndex`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetIndex {
    /// The pages, in the order of their rows.
    pub page_locations: Vec<PageLocation>,
    /// For byte arrays, the bytes of each page's values without lengths.
    pub unencoded_byte_array_data_bytes: Option<Vec<i64>>,
}

/// What the values of a column chunk's data pages lie between (`ColumnIndex`). Bounds are slices of
/// the bytes it was decoded from, which it keeps.
#[derive(Debug, Clone)]
pub struct ColumnIndex {
    bytes: FooterBytes,
    null_pages: Vec<bool>,
    min_values: Vec<Range<u32>>,
    max_values: Vec<Range<u32>>,
    boundary_order: BoundaryOrder,
    null_counts: Option<Vec<i64>>,
    nan_counts: Option<Vec<i64>>,
    repetition_level_histograms: Option<Vec<i64>>,
    definition_level_histograms: Option<Vec<i64>>,
}

/// The page indexes of all decoded column chunks of a footer.
#[derive(Debug, Clone, Default)]
pub struct PageIndexes {
    columns: usize,
    offset: Vec<Option<OffsetIndex>>,
    column: Vec<Option<ColumnIndex>>,
}

impl PageIndexes {
    /// The offset index of a chunk, by the positions of its row group and column among the decoded ones.
    pub fn offset_index(&self, row_group: usize, column: usize) -> Option<&OffsetIndex> {
        (column < self.columns).then(|| self.offset.get(row_group * self.columns + column))??.as_ref()
    }

    /// The column index of a chunk, by the positions of its row group and column among the decoded ones.
    pub fn column_index(&self, row_group: usize, column: usize) -> Option<&ColumnIndex> {
        (column < self.columns).then(|| self.column.get(row_group * self.columns + column))??.as_ref()
    }
}

impl OffsetIndex {
    /// Decodes an offset index.
    ///
    /// # Errors
    ///
    /// The bytes are no `OffsetIndex`.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        offset_index(&mut Cursor::new(bytes, 0)).map_err(|fault| explain(bytes, &OFFSET_INDEX, fault))
    }
}

impl ColumnIndex {
    /// Decodes a column index.
    ///
    /// # Errors
    ///
    /// The bytes are no `ColumnIndex`, or its lists are of different lengths.
    pub fn decode(bytes: impl Into<FooterBytes>) -> Result<Self, Error> {
        let bytes = bytes.into();
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::new("expected a column index of less than 4 GiB"));
        }
        column_index(&bytes).map_err(|fault| explain(bytes.as_slice(), &COLUMN_INDEX, fault))
    }

    /// The number of data pages.
    pub fn num_pages(&self) -> usize {
        self.null_pages.len()
    }

    /// Whether a page holds nothing but nulls; its bounds then mean nothing.
    pub fn is_null_page(&self, page: usize) -> Option<bool> {
        self.null_pages.get(page).copied()
    }

    /// A page's lower bound as the file has it (empty for pages of nulls).
    pub fn min_value(&self, page: usize) -> Option<&[u8]> {
        self.slice(self.min_values.get(page)?)
    }

    /// A page's upper bound as the file has it (empty for pages of nulls).
    pub fn max_value(&self, page: usize) -> Option<&[u8]> {
        self.slice(self.max_values.get(page)?)
    }

    fn slice(&self, range: &Range<u32>) -> Option<&[u8]> {
        self.bytes.as_slice().get(range.start as usize..range.end as usize)
    }

    /// How the bounds of pages follow one another.
    pub fn boundary_order(&self) -> BoundaryOrder {
        self.boundary_order
    }

    /// The number of nulls in each page.
    pub fn null_counts(&self) -> Option<&[i64]> {
        self.null_counts.as_deref()
    }

    /// The number of NaNs in each page.
    pub fn nan_counts(&self) -> Option<&[i64]> {
        self.nan_counts.as_deref()
    }

    /// How often each repetition level occurs, page after page.
    pub fn repetition_level_histograms(&self) -> Option<&[i64]> {
        self.repetition_level_histograms.as_deref()
    }

    /// How often each definition level occurs, page after page.
    pub fn definition_level_histograms(&self) -> Option<&[i64]> {
        self.definition_level_histograms.as_deref()
    }
}

impl Footer {
    /// Reads the page indexes of all decoded column chunks from the file they stand in.
    ///
    /// # Errors
    ///
    /// Bytes cannot be read, or an index is malformed; the error names the column chunk.
    pub fn read_page_indexes<R: RangeReader + ?Sized>(&self, reader: &R) -> Result<PageIndexes, Error> {
        let columns = self.num_columns();
        let count = columns * self.num_row_groups();
        let mut found = PageIndexes { columns, offset: vec![None; count], column: vec![None; count] };
        let mut wanted = Vec::new();
        let chunks = || self.row_groups().flat_map(|group| group.columns());
        for (row, chunk) in chunks().enumerate() {
            let locations = chunk.locations()?;
            let column_range = (locations.column_index_offset, locations.column_index_length);
            let offset_range = (locations.offset_index_offset, locations.offset_index_length);
            if let Some(range) = chunk.index_range("column_index", column_range.0, column_range.1)? {
                wanted.push((range, row, true));
            }
            if let Some(range) = chunk.index_range("offset_index", offset_range.0, offset_range.1)? {
                wanted.push((range, row, false));
            }
        }
        wanted.sort_unstable_by_key(|(range, _, _)| range.start);
        let mut rest = wanted.as_slice();
        while let Some(run) = first_run(rest) {
            let bytes = self.read_run(reader, run)?;
            let start = run[0].0.start;
            for (range, row, is_column_index) in run {
                let part = bytes.slice((range.start - start) as usize..(range.end - start) as usize);
                let part = part.unwrap_or_else(|| FooterBytes::from(&[][..]));
                let decoded = if *is_column_index {
                    ColumnIndex::decode(part).map(|index| found.column[*row] = Some(index))
                } else {
                    OffsetIndex::decode(part.as_slice()).map(|index| found.offset[*row] = Some(index))
                };
                decoded.map_err(|error| self.in_chunk(error, *row, range))?;
            }
            rest = &rest[run.len()..];
        }
        Ok(found)
    }

    fn read_run<R: RangeReader + ?Sized>(&self, reader: &R, run: &[Wanted]) -> Result<FooterBytes, Error> {
        let (start, end) = (run[0].0.start, run[run.len() - 1].0.end);
        // The file's length bounds what is allocated.
        let len =
            reader.len().map_err(|error| self.name_error(Error::io("reading the page indexes", &error)))?;
        if end > len {
            let what = format!("expected page indexes within the file's {len} bytes, found some up to {end}");
            return Err(self.in_chunk(Error::new(what), run[run.len() - 1].1, &run[run.len() - 1].0));
        }
        let mut bytes = vec![0; (end - start) as usize];
        match reader.read_exact_at(start, &mut bytes) {
            Ok(()) => Ok(bytes.into()),
            Err(error) => Err(self.in_chunk(Error::io("reading a page index", &error), run[0].1, &run[0].0)),
        }
    }

    fn in_chunk(&self, error: Error, row: usize, range: &Range<u64>) -> Error {
        let columns = self.num_columns().max(1);
        let chunk = self.column_chunk(row / columns, row % columns);
        let chunk =
            chunk.map(|chunk| format!("row_groups[{}].columns[{}]", chunk.row_group().index(), chunk.leaf()));
        let inner = error.path().to_string();
        let place = format!("{}, page index at byte {} of the file", chunk.unwrap_or_default(), range.start);
        let path = if inner.is_empty() { place } else { format!("{place}, {inner}") };
        self.name_error(error.at_path(path))
    }
}

type Wanted = (Range<u64>, usize, bool);

/// The first indexes that stand one right behind the other, up to [`READ_LEN`] bytes.
fn first_run(wanted: &[Wanted]) -> Option<&[Wanted]> {
    let start = wanted.first()?.0.start;
    let mut count = 1;
    while let Some((range, _, _)) = wanted.get(count) {
        if range.start != wanted[count - 1].0.end || range.end - start > READ_LEN {
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
        let Some(range) = self.offset_index_range()? else { return Ok(None) };
        let footer = self.group.footer;
        let row = self.group.position * footer.num_columns() + self.position;
        let bytes = footer.read_run(reader, &[(range.clone(), row, false)])?;
        OffsetIndex::decode(bytes.as_slice()).map(Some).map_err(|error| footer.in_chunk(error, row, &range))
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
        let Some(range) = self.column_index_range()? else { return Ok(None) };
        let footer = self.group.footer;
        let row = self.group.position * footer.num_columns() + self.position;
        let bytes = footer.read_run(reader, &[(range.clone(), row, true)])?;
        ColumnIndex::decode(bytes).map(Some).map_err(|error| footer.in_chunk(error, row, &range))
    }
}

fn explain(bytes: &[u8], def: &'static StructDef, fault: Fault) -> Error {
    Error::new(fault.kind.to_string())
        .at_path(trace::path_of(bytes, 0, def, fault.at))
        .with_advice("the page index is damaged: read the file without it, or write it again")
}

fn offset_index(cursor: &mut Cursor<'_>) -> Step<OffsetIndex> {
    let (mut page_locations, mut last) = (None, 0);
    let mut unencoded_byte_array_data_bytes = None;
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, LIST) => {
                let count = cursor.list_of(STRUCT, "a list of page locations (struct)")?;
                // A location takes at least seven bytes.
                let mut pages = Vec::with_capacity(count.min(cursor.left() / 7));
                for _ in 0..count {
                    pages.push(page_location(cursor)?);
                }
                page_locations = Some(pages);
            }
            (2, LIST) => unencoded_byte_array_data_bytes = Some(integers(cursor)?),
            (_, wire) => cursor.skip(wire)?,
        }
    }
    let page_locations = page_locations.ok_or(missing(0, "page_locations"))?;
    Ok(OffsetIndex { page_locations, unencoded_byte_array_data_bytes })
}

fn page_location(cursor: &mut Cursor<'_>) -> Step<PageLocation> {
    let start = cursor.at;
    let (mut offset, mut size, mut first_row, mut last) = (None, None, None, 0);
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, I64) => offset = Some(cursor.size()?),
            (2, I32) => {
                let at = cursor.at;
                let value = cursor.i32()?;
                let expected = "a size that is not negative";
                if value < 0 {
                    return Err(Fault::new(at, FaultKind::Range { value: value.into(), expected }));
                }
                size = Some(value);
            }
            (3, I64) => first_row = Some(cursor.size()?),
            (_, wire) => cursor.skip(wire)?,
        }
    }
    Ok(PageLocation {
        offset: offset.ok_or(missing(start, "offset"))?,
        compressed_page_size: size.ok_or(missing(start, "compressed_page_size"))?,
        first_row_index: first_row.ok_or(missing(start, "first_row_index"))?,
    })
}

fn column_index(bytes: &FooterBytes) -> Step<ColumnIndex> {
    let cursor = &mut Cursor::new(bytes.as_slice(), 0);
    let (mut null_pages, mut min_values, mut max_values, mut boundary_order) = (None, None, None, None);
    let (mut null_counts, mut nan_counts) = (None, None);
    let (mut repetition, mut definition) = (None, None);
    let mut last = 0;
    loop {
        let field = cursor.field(&mut last)?;
        match (field.id, field.wire) {
            (_, STOP) => break,
            (1, LIST) => null_pages = Some(bools(cursor)?),
            (2, LIST) => min_values = Some(ranges(cursor)?),
            (3, LIST) => max_values = Some(ranges(cursor)?),
            (4, I32) => boundary_order = Some(BoundaryOrder::from_number(cursor.i32()?)),
            (5, LIST) => null_counts = Some(integers(cursor)?),
            (6, LIST) => repetition = Some(integers(cursor)?),
            (7, LIST) => definition = Some(integers(cursor)?),
            (8, LIST) => nan_counts = Some(integers(cursor)?),
            (_, wire) => cursor.skip(wire)?,
        }
    }
    let index = ColumnIndex {
        bytes: bytes.clone(),
        null_pages: null_pages.ok_or(missing(0, "null_pages"))?,
        min_values: min_values.ok_or(missing(0, "min_values"))?,
        max_values: max_values.ok_or(missing(0, "max_values"))?,
        boundary_order: boundary_order.ok_or(missing(0, "boundary_order"))?,
        null_counts,
        nan_counts,
        repetition_level_histograms: repetition,
        definition_level_histograms: definition,
    };
    let pages = index.null_pages.len();
    let lengths = [
        ("entries in min_values, as in null_pages", index.min_values.len()),
        ("entries in max_values, as in null_pages", index.max_values.len()),
        ("entries in null_counts, as in null_pages", index.null_counts.as_ref().map_or(pages, Vec::len)),
        ("entries in nan_counts, as in null_pages", index.nan_counts.as_ref().map_or(pages, Vec::len)),
    ];
    for (what, found) in lengths {
        if found != pages {
            let kind = FaultKind::Mismatch { what, expected: pages as u64, found: found as u64 };
            return Err(Fault::new(0, kind));
        }
    }
    Ok(index)
}

/// A list of bools, for which writers use either of the two element types; a byte of 1 is true.
fn bools(cursor: &mut Cursor<'_>) -> Step<Vec<bool>> {
    let start = cursor.at;
    let (wire, count) = cursor.list()?;
    if !matches!(wire, TRUE | FALSE) && count > 0 {
        return Err(Fault::new(start, FaultKind::Wire { found: wire, expected: "a list of bools" }));
    }
    Ok(cursor.take(count)?.iter().map(|&byte| byte == 1).collect())
}

fn ranges(cursor: &mut Cursor<'_>) -> Step<Vec<Range<u32>>> {
    let count = cursor.list_of(BINARY, "a list of bounds (binary)")?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let len = cursor.binary()?.len();
        // The index has less than 4 GiB.
        ranges.push((cursor.at - len) as u32..cursor.at as u32);
    }
    Ok(ranges)
}

fn missing(at: usize, field: &'static str) -> Fault {
    Fault::new(at, FaultKind::Missing { field })
}
