//! The tables that decoded page indexes share: pages, bounds and numbers of all of them, one after the
//! other. An index costs two small entries, no allocation of its own.

use crate::buffer::FooterBytes;
use crate::error::{Fault, FaultKind};
use crate::huge;
use crate::page_index::PageLocation;
use crate::thrift::{BINARY, Cursor, FALSE, I32, I64, LIST, STOP, STRUCT, Step, TRUE};

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    /// The part of a table from `start` to its end; a fault at `at` if that needs more than 32 bits.
    fn since<T>(table: &[T], start: usize, at: usize) -> Step<Self> {
        let span = || {
            // The end, too, must be told by 32 bits, and a start counted from 1.
            u32::try_from(table.len() + 1).ok()?;
            Some(Self { start: start as u32, len: (table.len() - start) as u32 })
        };
        let kind = FaultKind::Range { value: i64::MAX, expected: "page indexes of fewer than 2^32 values" };
        span().ok_or(Fault::new(at, kind))
    }

    fn of<T>(self, table: &[T]) -> &[T] {
        table.get(self.start as usize..self.start as usize + self.len as usize).unwrap_or_default()
    }
}

/// The part of an `OffsetIndex` in the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetEntry {
    pages: Span,
    pub sizes: Option<Span>,
}

/// An entry in so few words that a table of them, most of whose cost is touching its memory, is small;
/// all of them 0 where there is no index, as in memory that was never touched.
pub(crate) type Words<const N: usize> = [u32; N];

/// A part of a table in two words, its start counted from 1: two zeros are none.
fn words(span: Option<Span>) -> [u32; 2] {
    span.map_or([0; 2], |span| [span.start + 1, span.len])
}

fn span([start, len]: [u32; 2]) -> Option<Span> {
    Some(Span { start: start.checked_sub(1)?, len })
}

impl OffsetEntry {
    pub fn pack(&self) -> Words<4> {
        let ([a, b], [c, d]) = (words(Some(self.pages)), words(self.sizes));
        [a, b, c, d]
    }

    pub fn unpack([a, b, c, d]: Words<4>) -> Option<Self> {
        Some(Self { pages: span([a, b])?, sizes: span([c, d]) })
    }
}

impl ColumnEntry {
    pub fn pack(&self) -> Words<12> {
        let [pages_at, pages] = words(Some(self.null_pages));
        let first = |span: Option<Span>| words(span)[0];
        let [repetition, repetitions] = words(self.repetition_level_histograms);
        let [definition, definitions] = words(self.definition_level_histograms);
        [
            pages_at,
            pages,
            self.bytes,
            self.min_values.start,
            self.max_values.start,
            self.boundary_order.cast_unsigned(),
            first(self.null_counts),
            first(self.nan_counts),
            repetition,
            repetitions,
            definition,
            definitions,
        ]
    }

    /// Bounds and counts are as many as pages, which decoding has seen to.
    pub fn unpack(words: Words<12>) -> Option<Self> {
        let [at, len, bytes, min, max, order, nulls, nans, repetition, repetitions, definition, definitions] =
            words;
        Some(Self {
            bytes,
            null_pages: span([at, len])?,
            min_values: Span { start: min, len },
            max_values: Span { start: max, len },
            boundary_order: order.cast_signed(),
            null_counts: span([nulls, len]),
            nan_counts: span([nans, len]),
            repetition_level_histograms: span([repetition, repetitions]),
            definition_level_histograms: span([definition, definitions]),
        })
    }
}

/// The part of a `ColumnIndex` in the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnEntry {
    /// Which of the kept bytes the index stands in.
    bytes: u32,
    /// A byte a page, in the kept bytes.
    pub null_pages: Span,
    pub min_values: Span,
    pub max_values: Span,
    pub boundary_order: i32,
    pub null_counts: Option<Span>,
    pub nan_counts: Option<Span>,
    pub repetition_level_histograms: Option<Span>,
    pub definition_level_histograms: Option<Span>,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    bytes: Vec<FooterBytes>,
    pages: Vec<PageLocation>,
    /// Bounds, by their places in the kept bytes.
    bounds: Vec<Span>,
    numbers: Vec<i64>,
}

impl Tables {
    /// Makes room for indexes of `chunks` chunks of one page.
    pub fn reserve(&mut self, chunks: usize) {
        self.pages.reserve(chunks);
        self.bounds.reserve(2 * chunks);
        self.numbers.reserve(2 * chunks);
        huge::advise(self.pages.spare_capacity_mut());
        huge::advise(self.bounds.spare_capacity_mut());
        huge::advise(self.numbers.spare_capacity_mut());
    }

    /// Keeps the bytes that column indexes were decoded from since the last call.
    pub fn keep(&mut self, bytes: FooterBytes) {
        self.bytes.push(bytes);
    }

    pub fn pages(&self, entry: &OffsetEntry) -> &[PageLocation] {
        entry.pages.of(&self.pages)
    }

    pub fn numbers(&self, span: Option<Span>) -> Option<&[i64]> {
        span.map(|span| span.of(&self.numbers))
    }

    fn bytes_of(&self, entry: &ColumnEntry) -> &[u8] {
        self.bytes.get(entry.bytes as usize).map(FooterBytes::as_slice).unwrap_or_default()
    }

    pub fn null_pages(&self, entry: &ColumnEntry) -> &[u8] {
        entry.null_pages.of(self.bytes_of(entry))
    }

    pub fn bound(&self, entry: &ColumnEntry, bounds: Span, page: usize) -> Option<&[u8]> {
        Some(bounds.of(&self.bounds).get(page)?.of(self.bytes_of(entry)))
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<PageLocation>()
            + self.bounds.capacity() * size_of::<Span>()
            + self.numbers.capacity() * size_of::<i64>()
            + self.bytes.iter().map(FooterBytes::len).sum::<usize>()
    }

    /// Decodes the offset index at `start`.
    pub fn offset_index(&mut self, bytes: &[u8], start: usize) -> Step<OffsetEntry> {
        let cursor = &mut Cursor::new(bytes, start);
        let (mut pages, mut sizes, mut last) = (None, None, 0);
        loop {
            let field = cursor.field(&mut last)?;
            match (field.id, field.wire) {
                (_, STOP) => break,
                (1, LIST) => {
                    let at = cursor.at;
                    let count = cursor.list_of(STRUCT, "a list of page locations (struct)")?;
                    let first = self.pages.len();
                    for _ in 0..count {
                        self.pages.push(page_location(cursor)?);
                    }
                    pages = Some(Span::since(&self.pages, first, at)?);
                }
                (2, LIST) => sizes = Some(self.integers(cursor)?),
                (_, wire) => cursor.skip(wire)?,
            }
        }
        Ok(OffsetEntry { pages: pages.ok_or(missing(start, "page_locations"))?, sizes })
    }

    /// Decodes the column index at `start` of the bytes that are to be kept next.
    pub fn column_index(&mut self, bytes: &[u8], start: usize) -> Step<ColumnEntry> {
        let cursor = &mut Cursor::new(bytes, start);
        let (mut null_pages, mut min_values, mut max_values, mut boundary_order) = (None, None, None, None);
        let (mut null_counts, mut nan_counts) = (None, None);
        let (mut repetition, mut definition) = (None, None);
        let mut last = 0;
        loop {
            let field = cursor.field(&mut last)?;
            match (field.id, field.wire) {
                (_, STOP) => break,
                (1, LIST) => null_pages = Some(bools(cursor)?),
                (2, LIST) => min_values = Some(self.bounds(cursor)?),
                (3, LIST) => max_values = Some(self.bounds(cursor)?),
                (4, I32) => boundary_order = Some(cursor.i32()?),
                (5, LIST) => null_counts = Some(self.integers(cursor)?),
                (6, LIST) => repetition = Some(self.integers(cursor)?),
                (7, LIST) => definition = Some(self.integers(cursor)?),
                (8, LIST) => nan_counts = Some(self.integers(cursor)?),
                (_, wire) => cursor.skip(wire)?,
            }
        }
        let entry = ColumnEntry {
            bytes: self.bytes.len() as u32,
            null_pages: null_pages.ok_or(missing(start, "null_pages"))?,
            min_values: min_values.ok_or(missing(start, "min_values"))?,
            max_values: max_values.ok_or(missing(start, "max_values"))?,
            boundary_order: boundary_order.ok_or(missing(start, "boundary_order"))?,
            null_counts,
            nan_counts,
            repetition_level_histograms: repetition,
            definition_level_histograms: definition,
        };
        let pages = entry.null_pages.len;
        let lengths = [
            ("entries in min_values, as in null_pages", Some(entry.min_values)),
            ("entries in max_values, as in null_pages", Some(entry.max_values)),
            ("entries in null_counts, as in null_pages", entry.null_counts),
            ("entries in nan_counts, as in null_pages", entry.nan_counts),
        ];
        for (what, found) in lengths {
            if let Some(found) = found
                && found.len != pages
            {
                let kind = FaultKind::Mismatch { what, expected: pages.into(), found: found.len.into() };
                return Err(Fault::new(start, kind));
            }
        }
        Ok(entry)
    }

    fn bounds(&mut self, cursor: &mut Cursor<'_>) -> Step<Span> {
        let at = cursor.at;
        let count = cursor.list_of(BINARY, "a list of bounds (binary)")?;
        let first = self.bounds.len();
        for _ in 0..count {
            let len = cursor.binary()?.len();
            // What is decoded in one go has less than 4 GiB.
            self.bounds.push(Span { start: (cursor.at - len) as u32, len: len as u32 });
        }
        Span::since(&self.bounds, first, at)
    }

    fn integers(&mut self, cursor: &mut Cursor<'_>) -> Step<Span> {
        let at = cursor.at;
        let count = cursor.list_of(I64, "a list of i64")?;
        let first = self.numbers.len();
        for _ in 0..count {
            self.numbers.push(cursor.integer()?);
        }
        Span::since(&self.numbers, first, at)
    }
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

/// A list of bools, for which writers use either of the two element types.
fn bools(cursor: &mut Cursor<'_>) -> Step<Span> {
    let start = cursor.at;
    let (wire, count) = cursor.list()?;
    if !matches!(wire, TRUE | FALSE) && count > 0 {
        return Err(Fault::new(start, FaultKind::Wire { found: wire, expected: "a list of bools" }));
    }
    cursor.take(count)?;
    Ok(Span { start: (cursor.at - count) as u32, len: count as u32 })
}

fn missing(at: usize, field: &'static str) -> Fault {
    Fault::new(at, FaultKind::Missing { field })
}
