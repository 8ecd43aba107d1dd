//! Checks a footer for consistency: with itself, with its file and with its page indexes.
//!
//! Decoding rejects what cannot be read. This module finds what can be read but is wrong: sizes past the end
//! of the file, overlapping chunks, counts that do not add up, bounds whose length does not fit the type, a
//! lower bound above the upper one. It reports every finding, not only the first.

pub(crate) mod bounds;
mod fields;
pub(crate) mod order;
mod row_groups;
pub(crate) mod structure;

use std::ops::Range;
use std::{fmt, io};

use sawmill_footer::{
    ChunkDetails, ColumnChunk, ColumnIndex, Footer, OffsetIndex, RangeReader, RowGroup, SizeStatistics,
};

use crate::check::fields::Negative;
use crate::check::structure::has_unknown_levels;
use crate::chunks::sizes::{body_of, has_values, stated_range, states_no_bytes};
use crate::error::Error;
use crate::text::escape::escaped;

/// The magic bytes at the start of a file.
const MAGIC: &[u8; 4] = b"PAR1";

/// The most bytes of a finding's text.
const MAX_WHAT: usize = 2000;

/// An inconsistency in the footer or its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    /// The expected and the found value.
    pub what: String,
    /// The Thrift path of the value, or of the struct that contains it.
    pub path: String,
    /// The byte of the footer at which that struct starts.
    pub offset: Option<u64>,
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.path.is_empty() {
            write!(f, " - {}", self.path)?;
        }
        self.offset.map_or(Ok(()), |offset| write!(f, ", byte {offset} of the footer"))
    }
}

/// Calls `found` for every inconsistency in the decoded part of the footer and, if the file's length is
/// known, between footer and file.
///
/// Costs a walk over all values of the footer, a microsecond a chunk, and a sort of their places.
pub fn check(footer: &Footer, mut found: impl FnMut(Inconsistency)) {
    Check::new(footer, &mut found).footer();
}

/// Checks that a footer does not contradict itself, as far as [`check`] does.
///
/// # Errors
///
/// The first inconsistency, with the file's name.
pub fn consistent(footer: &Footer) -> Result<(), Error> {
    let mut first = None;
    check(footer, |found| {
        first.get_or_insert(found);
    });
    let Some(Inconsistency { what, path, offset }) = first else { return Ok(()) };
    let file = footer.file_name().map(str::to_owned);
    let offset = offset.map(|offset| format!("byte {offset} of the footer"));
    let place: Vec<String> =
        [file, Some(path), offset].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    Err(Error::new(escaped(&what), escaped(&place.join(", ")), ""))
}

/// Like [`check`], but also reads the file's first bytes and the page indexes of the decoded column chunks and
/// checks those.
///
/// Costs what [`check`] does, and the reads of all page indexes.
///
/// # Errors
///
/// The file cannot be read.
pub fn check_file<R: RangeReader + ?Sized>(
    footer: &Footer,
    reader: &R,
    mut found: impl FnMut(Inconsistency),
) -> Result<(), Error> {
    let mut check = Check::new(footer, &mut found);
    check.footer();
    let mut magic = [0; 4];
    let unread = |error: io::Error| {
        let what = format!("reading the file's first bytes failed: {error}");
        Error::new(what, escaped(footer.file_name().unwrap_or_default()), "")
    };
    reader.read_exact_at(0, &mut magic).map_err(unread)?;
    if &magic != MAGIC {
        let what = format!("expected the magic `PAR1` at the file's start, found `{}`", magic.escape_ascii());
        check.tell(what, String::new(), None);
    }
    let len = reader.len().map_err(unread)?;
    let mut claimed: u64 = 0;
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        let ranges = [chunk.offset_index_range(), chunk.column_index_range()];
        let lengths = ranges.iter().filter_map(|range| range.as_ref().ok()?.as_ref());
        claimed = lengths.map(|range| range.end - range.start).fold(claimed, u64::saturating_add);
        if claimed > len {
            let what = format!(
                "expected page indexes within the file's {len} bytes, found {claimed} bytes of them up to \
                 here: some overlap, the rest is not checked"
            );
            check.chunk(&chunk, what, "");
            break;
        }
        check.indexes(&chunk, reader);
    }
    Ok(())
}

struct Check<'a, 'f> {
    footer: &'a Footer,
    found: &'f mut dyn FnMut(Inconsistency),
    negative: Negative,
    /// The part of the file that can hold data and indexes.
    body: Range<u64>,
}

impl<'a, 'f> Check<'a, 'f> {
    fn new(footer: &'a Footer, found: &'f mut dyn FnMut(Inconsistency)) -> Self {
        Self { footer, found, negative: Negative::default(), body: body_of(footer) }
    }

    /// Whether the footer has a negative number in this field of a chunk: the decoder knows 0 in its stead.
    fn is_negative(&self, chunk: &ColumnChunk<'_>, field: &'static str) -> bool {
        self.negative.contains(&(chunk.footer_offset(), field))
    }

    fn tell(&mut self, mut what: String, path: String, offset: Option<u64>) {
        // A hostile name would be written for each of its columns.
        if what.len() > MAX_WHAT {
            what.truncate(what.floor_char_boundary(MAX_WHAT));
            what.push('…');
        }
        (self.found)(Inconsistency { what, path, offset });
    }

    fn chunk(&mut self, chunk: &ColumnChunk<'_>, what: String, below: &str) {
        let path = format!("row_groups[{}].columns[{}]{below}", chunk.row_group().index(), chunk.leaf());
        self.tell(what, path, Some(chunk.footer_offset() as u64));
    }

    fn group(&mut self, group: &RowGroup<'_>, what: String, below: &str) {
        let path = format!("row_groups[{}]{below}", group.index());
        self.tell(what, path, Some(group.footer_offset() as u64));
    }

    /// Checks the page indexes of a chunk.
    fn indexes<R: RangeReader + ?Sized>(&mut self, chunk: &ColumnChunk<'_>, reader: &R) {
        let offsets = chunk.read_offset_index(reader);
        let bounds = chunk.read_column_index(reader);
        for error in [offsets.as_ref().err(), bounds.as_ref().err()].into_iter().flatten() {
            self.chunk(chunk, error.what(), "");
        }
        let (offsets, bounds) = (offsets.ok().flatten(), bounds.ok().flatten());
        self.fields_of_indexes(chunk, (offsets.is_some(), bounds.is_some()), reader);
        self.page_indexes(chunk, offsets.as_ref(), bounds.as_ref());
    }

    fn footer(&mut self) {
        let footer = self.footer;
        if let Err(error) = footer.complete() {
            self.tell(error.what(), error.path().to_string(), error.offset());
        }
        if !matches!(footer.version(), 1 | 2) {
            let what = format!("expected version 1 or 2, found {}", footer.version());
            self.tell(what, "version".to_string(), None);
        }
        let leaves = footer.schema().num_leaves();
        self.schema();
        self.fields();
        if let Some(orders) = footer.column_orders().filter(|orders| orders.len() != leaves) {
            let what =
                format!("expected {leaves} column orders, one for each column, found {}", orders.len());
            self.tell(what, "column_orders".to_string(), None);
        }
        if footer.num_row_groups() == footer.num_row_groups_in_file() {
            let rows = footer.row_groups().map(|group| i128::from(group.num_rows())).sum::<i128>();
            if rows != i128::from(footer.num_rows()) {
                let what = format!("expected the row groups' {rows} rows, found {}", footer.num_rows());
                self.tell(what, "num_rows".to_string(), None);
            }
        }
        // Every range of the file that the footer names: data, bloom filters, indexes.
        let mut ranges: Vec<(Range<u64>, usize, usize, &str)> = Vec::new();
        for group in footer.row_groups() {
            self.row_group(&group);
            for chunk in group.columns() {
                for (range, name) in self.column_chunk(&chunk) {
                    ranges.push((range, group.position(), chunk.position(), name));
                }
            }
        }
        self.overlaps(ranges);
    }

    /// Checks one chunk and returns the ranges of the file that it occupies.
    fn column_chunk(&mut self, chunk: &ColumnChunk<'_>) -> Vec<(Range<u64>, &'static str)> {
        let mut ranges = Vec::new();
        // An encrypted column can be read with its key.
        if let Err(error) = chunk.readable()
            && !chunk.is_encrypted()
        {
            self.chunk(chunk, error.what(), ".meta_data");
        }
        let details = match chunk.details() {
            Ok(details) => details,
            Err(error) => {
                self.chunk(chunk, error.what(), "");
                return ranges;
            }
        };
        // The data may be in another file, about which nothing is known here.
        let here = details.file_path.is_none_or(str::is_empty);
        self.file_path(chunk, &details);
        if chunk.has_metadata() {
            if !chunk.encodings().all_known() {
                let what = format!("expected encodings of the format, found {}", chunk.encodings());
                self.chunk(chunk, what, ".meta_data.encodings");
            }
            self.counts(chunk, &details);
            self.no_bytes(chunk);
            if let Some(offset) = chunk.dictionary_page_offset()
                // arrow-cpp leaves a data offset of 0 for a chunk with a dictionary but no data page.
                && (offset <= 0 || (i64::from(!has_values(chunk))..=offset).contains(&chunk.data_page_offset()))
            {
                let data = chunk.data_page_offset();
                let what = format!(
                    "expected a dictionary page before the data page at {data}, found one at {offset}"
                );
                self.chunk(chunk, what, ".meta_data.dictionary_page_offset");
            }
            let stated = stated_range(chunk);
            // The decoder ends a chunk elsewhere if its size cannot be true.
            let bytes = stated.start..stated.end.max(chunk.byte_range().end);
            let data = chunk.data_page_offset();
            if has_dictionary(chunk) && data as u64 > bytes.end && chunk.compressed_size() > 0 {
                let what = format!("expected a data page within bytes {bytes:?}, found one at {data}");
                self.chunk(chunk, what, ".meta_data.data_page_offset");
            }
            if let Some(offset) = details.index_page_offset.filter(|offset| *offset < 0) {
                let what = format!("expected an index page within the file, found one at {offset}");
                self.chunk(chunk, what, ".meta_data.index_page_offset");
            }
            if here && chunk.compressed_size() > 0 {
                ranges.push((bytes, "data"));
            }
        }
        let places = [
            ("offset_index", details.offset_index_offset, details.offset_index_length),
            ("column_index", details.column_index_offset, details.column_index_length),
            ("bloom_filter", details.bloom_filter_offset, details.bloom_filter_length),
        ];
        for (name, offset, length) in places {
            let Some(offset) = offset else { continue };
            match (u64::try_from(offset), length.map(u64::try_from)) {
                (Ok(offset), Some(Ok(length))) => ranges.push((offset..offset.saturating_add(length), name)),
                // Old writers gave Bloom filters only an offset. An index is useless without a length.
                (Ok(offset), None) if name == "bloom_filter" => {
                    ranges.push((offset..offset.saturating_add(1), name));
                }
                _ => {
                    let length = length.map_or("none".to_string(), |length| length.to_string());
                    let what =
                        format!("expected an offset and a length of the {name}, found {offset} and {length}");
                    self.chunk(chunk, what, "");
                }
            }
        }
        let body = self.body.clone();
        ranges.retain(|(range, name)| {
            let inside = range.start >= body.start && range.end <= body.end;
            if !inside {
                let what =
                    format!("expected {name} within bytes {body:?} of the file, found it at {range:?}");
                self.chunk(chunk, what, "");
            }
            inside
        });
        ranges
    }

    /// A chunk's data is in this file, unless the file is nothing but metadata of others, and a path names one.
    fn file_path(&mut self, chunk: &ColumnChunk<'_>, details: &ChunkDetails<'_>) {
        let Some(path) = details.file_path else { return };
        let what = match path {
            "" => "expected a path to a file, found an empty one".to_owned(),
            _ if self.body.is_empty() || self.footer.file_len().is_none() => return,
            other => format!("expected data in this file, found it in `{other}`"),
        };
        self.chunk(chunk, what, ".file_path");
    }

    /// A chunk with values has bytes. A negative size was named already.
    fn no_bytes(&mut self, chunk: &ColumnChunk<'_>) {
        let (values, rows) = (chunk.num_values(), chunk.row_group().num_rows());
        for name in states_no_bytes(chunk) {
            if !self.is_negative(chunk, name) {
                let what =
                    format!("expected a `{name}` of the bytes of {} values, found 0", values.max(rows));
                self.chunk(chunk, what, &format!(".meta_data.{name}"));
            }
        }
    }

    fn counts(&mut self, chunk: &ColumnChunk<'_>, details: &ChunkDetails<'_>) {
        let rows = chunk.row_group().num_rows();
        let element = chunk.element();
        let is_known = !self.is_negative(chunk, "num_values");
        // A column outside of lists has a value for each row.
        let values = if is_known || element.max_rep() > 0 { chunk.num_values() } else { rows };
        if element.max_rep() == 0 && values != rows && !has_unknown_levels(element) {
            let what = format!("expected the row group's {rows} values, found {values}");
            self.chunk(chunk, what, ".meta_data.num_values");
        }
        if let Some(path) = &details.path_in_schema
            && *path != element.path_names()
        {
            let what = format!("expected the path `{}`, found `{}`", element.path(), path.join("."));
            self.chunk(chunk, what, ".meta_data.path_in_schema");
        }
        if let Some(expected) = element.physical_type().filter(|expected| *expected != chunk.physical_type())
        {
            let what = format!("expected the schema's {expected}, found {}", chunk.physical_type());
            self.chunk(chunk, what, ".meta_data.type");
        }
        if let Some(statistics) = &details.statistics {
            self.bounds_of_chunk(chunk, statistics);
        }
        let nulls = details.statistics.and_then(|statistics| statistics.null_count);
        let is_counted = is_known || element.max_rep() == 0;
        let most = if is_counted { values } else { i64::MAX };
        if let Some(nulls) = nulls.filter(|nulls| !(0..=most).contains(nulls)) {
            let what = format!("expected 0 to {most} nulls, found {nulls}");
            self.chunk(chunk, what, ".meta_data.statistics.null_count");
        }
        if let Some(sizes) = &details.size_statistics {
            self.histograms(chunk, sizes, is_counted.then_some(values));
        }
    }

    /// Compares the histograms of levels with the levels of the column, and with its values if their number is known.
    fn histograms(&mut self, chunk: &ColumnChunk<'_>, sizes: &SizeStatistics, values: Option<i64>) {
        let element = chunk.element();
        let histograms = [
            ("repetition_level_histogram", &sizes.repetition_level_histogram, element.max_rep()),
            ("definition_level_histogram", &sizes.definition_level_histogram, element.max_def()),
        ];
        for (name, histogram, max) in histograms {
            let Some(histogram) = histogram.as_ref().filter(|histogram| !histogram.is_empty()) else {
                continue;
            };
            let place = format!(".meta_data.size_statistics.{name}");
            if let Some(count) = histogram.iter().find(|count| **count < 0) {
                self.chunk(chunk, format!("expected counts of levels of at least 0, found {count}"), &place);
                continue;
            }
            let (levels, len) = (u64::from(max) + 1, histogram.len());
            let sum: i128 = histogram.iter().map(|&count| i128::from(count)).sum();
            if (len as u64 != levels && !has_unknown_levels(element))
                || values.is_some_and(|values| sum != i128::from(values))
            {
                let values = values.map_or("all".to_owned(), |values| values.to_string());
                let what = format!("expected {values} values on {levels} levels, found {sum} on {len}");
                self.chunk(chunk, what, &place);
            }
        }
    }

    fn overlaps(&mut self, mut ranges: Vec<(Range<u64>, usize, usize, &str)>) {
        ranges.sort_unstable_by_key(|(range, _, _, _)| (range.start, range.end));
        let mut furthest: Option<&(Range<u64>, usize, usize, &str)> = None;
        for entry in &ranges {
            let (range, group, column, name) = entry;
            if let Some((before, other_group, other_column, other_name)) = furthest
                && range.start < before.end
                && let Some(chunk) = self.footer.column_chunk(*group, *column)
                && let Some(other) = self.footer.column_chunk(*other_group, *other_column)
            {
                let what = format!(
                    "expected {name} apart from all else, found it at {range:?}, in {other_name} of \
                     row_groups[{}].columns[{}] at {before:?}",
                    other.row_group().index(),
                    other.leaf(),
                );
                self.chunk(&chunk, what, "");
            }
            if furthest.is_none_or(|(before, ..)| range.end > before.end) {
                furthest = Some(entry);
            }
        }
    }

    fn page_indexes(
        &mut self,
        chunk: &ColumnChunk<'_>,
        offsets: Option<&OffsetIndex>,
        bounds: Option<&ColumnIndex>,
    ) {
        if let Some(offsets) = offsets {
            self.page_locations(chunk, offsets);
            self.page_rows(chunk, offsets);
        }
        if let (Some(offsets), Some(bounds)) = (offsets, bounds)
            && offsets.page_locations().len() != bounds.num_pages()
        {
            let (expected, found) = (offsets.page_locations().len(), bounds.num_pages());
            let what = format!("expected the offset index's {expected} pages, found {found}");
            self.chunk(chunk, what, ", column index");
        }
        if let Some(bounds) = bounds {
            self.bounds_of_pages(chunk, bounds);
        }
        let nulls = bounds.and_then(ColumnIndex::null_counts);
        if let (Some(nulls), Ok(Some(count))) = (nulls, chunk.null_count()) {
            let sum: i128 = nulls.iter().map(|&nulls| i128::from(nulls)).sum();
            if sum != i128::from(count) {
                let what = format!("expected the statistics' {count} nulls, found {sum} in all pages");
                self.chunk(chunk, what, ", column index");
            }
        }
    }

    /// Pages follow one another within the chunk's bytes, and so do their first rows.
    fn page_locations(&mut self, chunk: &ColumnChunk<'_>, offsets: &OffsetIndex) {
        let data = chunk.byte_range();
        let (mut end, mut row) = (data.start, -1);
        for (page, location) in offsets.page_locations().iter().enumerate() {
            // Both are non-negative: decoding rejects negative values.
            let start = location.offset as u64;
            if start < end || start.saturating_add(location.compressed_page_size as u64) > data.end {
                let what =
                    format!("expected page {page} within bytes {:?}, found it at {start}", end..data.end);
                self.chunk(chunk, what, ", offset index");
            }
            if location.first_row_index <= row || (page == 0 && location.first_row_index != 0) {
                let found = location.first_row_index;
                let what = format!("expected page {page} to start with a row after {row}, found row {found}");
                self.chunk(chunk, what, ", offset index");
            }
            end = start.saturating_add(location.compressed_page_size as u64);
            row = location.first_row_index;
        }
    }

    /// The last page starts within the row group, and the first one where the chunk's data starts.
    fn page_rows(&mut self, chunk: &ColumnChunk<'_>, offsets: &OffsetIndex) {
        let row = offsets.page_locations().last().map_or(-1, |page| page.first_row_index);
        if row >= chunk.row_group().num_rows() && row > 0 {
            let rows = chunk.row_group().num_rows();
            let what = format!("expected pages of {rows} rows, found one of row {row}");
            self.chunk(chunk, what, ", offset index");
        }
        let first = offsets.page_locations().first().map(|page| page.offset);
        if let Some(first) = first.filter(|&first| first != chunk.data_page_offset()) {
            let data = chunk.data_page_offset();
            let what = format!("expected the first data page at {data}, found it at {first}");
            self.chunk(chunk, what, ", offset index");
        }
    }
}

/// Whether the chunk's dictionary page can be where the footer says.
fn has_dictionary(chunk: &ColumnChunk<'_>) -> bool {
    let data = chunk.data_page_offset();
    chunk.dictionary_page_offset().is_some_and(|offset| offset > 0 && (offset < data || data == 0))
}
