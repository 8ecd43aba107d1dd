//! The tables that decoded page indexes share: the pages, bounds and numbers of all of them in sequence. An
//! index costs two small entries and no allocation.

use crate::error::{Fault, FaultKind};
use crate::memory::pages;
use crate::open::buffer::FooterBytes;
use crate::page_index::entries::{ColumnEntry, FLAGS, OffsetEntry, Span};
use crate::page_index::indexes::PageLocation;
use crate::thrift::cursor::{BINARY, Cursor, FALSE, I32, I64, LIST, STRUCT, Step, TRUE, each_field};

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    bytes: Vec<FooterBytes>,
    pub pages: Vec<PageLocation>,
    /// Bounds, as ranges of the kept bytes.
    pub bounds: Vec<Span>,
    pub numbers: Vec<i64>,
}

impl Tables {
    /// Reserves room for the indexes of `chunks` one-page chunks if memory allows.
    pub fn reserve(&mut self, chunks: usize) {
        // Reservation is optional: tables still grow on demand.
        let _ = self.pages.try_reserve(chunks);
        let _ = self.bounds.try_reserve(2 * chunks);
        let _ = self.numbers.try_reserve(chunks);
        pages::advise(self.pages.spare_capacity_mut());
        pages::advise(self.bounds.spare_capacity_mut());
        pages::advise(self.numbers.spare_capacity_mut());
    }

    /// Keeps the bytes that column indexes were decoded from since the last call.
    pub fn keep(&mut self, bytes: FooterBytes) {
        self.bytes.push(bytes);
    }

    /// The index that the next kept bytes will have.
    pub fn next_bytes(&self) -> u32 {
        // At most one per chunk, and a 32-bit footer has room for fewer than 2^30 chunks.
        self.bytes.len() as u32 & !FLAGS
    }

    pub fn pages(&self, entry: &OffsetEntry) -> &[PageLocation] {
        entry.pages.slice(&self.pages)
    }

    pub fn numbers(&self, span: Option<Span>) -> Option<&[i64]> {
        span.map(|span| span.slice(&self.numbers))
    }

    fn bytes_of(&self, entry: &ColumnEntry) -> &[u8] {
        self.bytes.get(entry.bytes as usize).map(FooterBytes::as_slice).unwrap_or_default()
    }

    pub fn null_pages(&self, entry: &ColumnEntry) -> &[u8] {
        entry.null_pages.slice(self.bytes_of(entry))
    }

    pub fn bound(&self, entry: &ColumnEntry, bounds: Span, page: usize) -> Option<&[u8]> {
        Some(bounds.slice(&self.bounds).get(page)?.slice(self.bytes_of(entry)))
    }

    pub fn heap_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<PageLocation>()
            + self.bounds.capacity() * size_of::<Span>()
            + self.numbers.capacity() * size_of::<i64>()
            + self.bytes.iter().map(FooterBytes::len).sum::<usize>()
    }

    /// Decodes the offset index at `start`.
    #[inline]
    pub fn offset_index(&mut self, bytes: &[u8], start: usize) -> Step<OffsetEntry> {
        self.usual_offset_index(bytes, start).map_or_else(|| self.any_offset_index(bytes, start), Ok)
    }

    #[inline(never)]
    pub fn any_offset_index(&mut self, bytes: &[u8], start: usize) -> Step<OffsetEntry> {
        let cursor = &mut Cursor::new(bytes, start);
        let (mut pages, mut sizes) = (None, None);
        each_field!(cursor, {
            (1, LIST) => {
                let at = cursor.at;
                let count = cursor.list_of(STRUCT, "a list of page locations (struct)")?;
                let first = self.pages.len();
                for _ in 0..count {
                    self.pages.push(page_location(cursor)?);
                }
                pages = Some(Span::since(&self.pages, first, at)?);
            },
            (2, LIST) => sizes = Some(self.integers(cursor)?),
        });
        Ok(OffsetEntry { pages: pages.ok_or(Fault::missing(start, "page_locations"))?, sizes })
    }

    /// Decodes the column index at `start` of the bytes that will be kept next.
    #[inline]
    pub fn column_index(&mut self, bytes: &[u8], start: usize) -> Step<ColumnEntry> {
        self.usual_column_index(bytes, start).map_or_else(|| self.any_column_index(bytes, start), Ok)
    }

    #[inline(never)]
    pub fn any_column_index(&mut self, bytes: &[u8], start: usize) -> Step<ColumnEntry> {
        let cursor = &mut Cursor::new(bytes, start);
        let (mut null_pages, mut min_values, mut max_values, mut boundary_order) = (None, None, None, None);
        let (mut null_counts, mut nan_counts) = (None, None);
        let (mut repetition, mut definition) = (None, None);
        each_field!(cursor, {
            (1, LIST) => null_pages = Some(bools(cursor)?),
            (2, LIST) => min_values = Some(self.bounds(cursor)?),
            (3, LIST) => max_values = Some(self.bounds(cursor)?),
            (4, I32) => boundary_order = Some(cursor.i32()?),
            (5, LIST) => null_counts = Some(self.integers(cursor)?),
            (6, LIST) => repetition = Some(self.integers(cursor)?),
            (7, LIST) => definition = Some(self.integers(cursor)?),
            (8, LIST) => nan_counts = Some(self.integers(cursor)?),
        });
        let null_pages = null_pages.ok_or(Fault::missing(start, "null_pages"))?;
        let min_values = min_values.ok_or(Fault::missing(start, "min_values"))?;
        let max_values = max_values.ok_or(Fault::missing(start, "max_values"))?;
        let boundary_order = boundary_order.ok_or(Fault::missing(start, "boundary_order"))?;
        let pages = null_pages.len;
        let lengths = [
            ("entries in min_values, as in null_pages", Some(min_values)),
            ("entries in max_values, as in null_pages", Some(max_values)),
            ("entries in null_counts, as in null_pages", null_counts),
            ("entries in nan_counts, as in null_pages", nan_counts),
        ];
        for (what, found) in lengths {
            if let Some(found) = found
                && found.len != pages
            {
                let kind = FaultKind::Mismatch { what, expected: pages.into(), found: found.len.into() };
                return Err(Fault::new(start, kind));
            }
        }
        Ok(ColumnEntry {
            bytes: self.next_bytes(),
            null_pages,
            bounds: in_a_row(&mut self.bounds, &[Some(min_values), Some(max_values)], start)?,
            numbers: in_a_row(&mut self.numbers, &[null_counts, repetition, definition, nan_counts], start)?,
            null_counts: null_counts.is_some(),
            nan_counts: nan_counts.is_some(),
            repetitions: repetition.map(|found| found.len),
            definitions: definition.map(|found| found.len),
            boundary_order,
        })
    }

    fn bounds(&mut self, cursor: &mut Cursor<'_>) -> Step<Span> {
        let at = cursor.at;
        let count = cursor.list_of(BINARY, "a list of bounds (binary)")?;
        let first = self.bounds.len();
        for _ in 0..count {
            let len = cursor.binary()?.len();
            // Bytes decoded at once are less than 4 GiB.
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

/// Where the adjacent parts of a table start. If they are not adjacent, which is rare, copies them to the
/// table's end.
fn in_a_row<T: Copy>(table: &mut Vec<T>, parts: &[Option<Span>], at: usize) -> Step<u32> {
    let parts = || parts.iter().flatten().filter(|part| part.len > 0);
    let mut row = parts().map(|part| (part.start, part.start + part.len));
    let Some((first, mut end)) = row.next() else { return Ok(0) };
    let together = row.all(|(start, next)| {
        let here = start == end;
        end = next;
        here
    });
    if together {
        return Ok(first);
    }
    let first = table.len();
    for part in parts() {
        table.extend_from_within(part.start as usize..(part.start + part.len) as usize);
    }
    Span::since(table, first, at).map(|span| span.start)
}

fn page_location(cursor: &mut Cursor<'_>) -> Step<PageLocation> {
    let start = cursor.at;
    let (mut offset, mut size, mut first_row) = (None, None, None);
    each_field!(cursor, {
        (1, I64) => offset = Some(cursor.size()?),
        (2, I32) => {
            let at = cursor.at;
            let value = cursor.i32()?;
            let expected = "a non-negative size";
            if value < 0 {
                return Err(Fault::new(at, FaultKind::Range { value: value.into(), expected }));
            }
            size = Some(value);
        },
        (3, I64) => first_row = Some(cursor.size()?),
    });
    Ok(PageLocation {
        offset: offset.ok_or(Fault::missing(start, "offset"))?,
        compressed_page_size: size.ok_or(Fault::missing(start, "compressed_page_size"))?,
        first_row_index: first_row.ok_or(Fault::missing(start, "first_row_index"))?,
    })
}

/// A list of bools, for which writers use one of two element types.
fn bools(cursor: &mut Cursor<'_>) -> Step<Span> {
    let start = cursor.at;
    let (wire, count) = cursor.list()?;
    if !matches!(wire, TRUE | FALSE) && count > 0 {
        return Err(Fault::new(start, FaultKind::Wire { found: wire, expected: "a list of bools" }));
    }
    cursor.take(count)?;
    Ok(Span { start: (cursor.at - count) as u32, len: count as u32 })
}
