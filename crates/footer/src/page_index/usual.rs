//! Decodes page indexes in the form that writers usually produce: fields in ascending order, one-byte lengths
//! of bounds, no unknown fields.
//!
//! Values go straight into the tables ([`crate::page_index::tables`]). For any other form, the tables are
//! restored and the general decoder takes over, which also reports faults.

use crate::page_index::entries::{ColumnEntry, OffsetEntry, Span};
use crate::page_index::indexes::PageLocation;
use crate::page_index::tables::Tables;
use crate::thrift::cursor::{BINARY, Cursor, FALSE, I64, STRUCT, TRUE};

/// The header of a field with a delta of one, as a list; the next two are for an i32 and an i64.
const NEXT_LIST: u8 = 0x19;
const NEXT_I32: u8 = 0x15;
const NEXT_I64: u8 = 0x16;

/// Reads a byte, which must be this one.
#[inline(always)]
fn expect(cursor: &mut Cursor<'_>, byte: u8) -> Option<()> {
    (cursor.byte().ok()? == byte).then_some(())
}

/// The length of a list with elements of this type.
#[inline(always)]
fn list_of(cursor: &mut Cursor<'_>, wire: u8) -> Option<usize> {
    cursor.list_of(wire, "").ok()
}

impl Tables {
    /// The column index at `start`, if it has the usual form.
    #[inline]
    pub fn usual_column_index(&mut self, bytes: &[u8], start: usize) -> Option<ColumnEntry> {
        let (bounds, numbers) = (self.bounds.len(), self.numbers.len());
        let entry = self.column_index_by_order(&mut Cursor::new(bytes, start));
        if entry.is_none() {
            self.bounds.truncate(bounds);
            self.numbers.truncate(numbers);
        }
        entry
    }

    #[inline(always)]
    fn column_index_by_order(&mut self, cursor: &mut Cursor<'_>) -> Option<ColumnEntry> {
        expect(cursor, NEXT_LIST)?;
        let (wire, pages) = cursor.list().ok()?;
        if !matches!(wire, TRUE | FALSE) {
            return None;
        }
        // Bytes decoded at once are less than 4 GiB.
        let null_pages = Span { start: cursor.at as u32, len: pages as u32 };
        cursor.at += pages;
        let first_bound = self.bounds.len();
        for _ in 0..2 {
            expect(cursor, NEXT_LIST)?;
            if list_of(cursor, BINARY)? != pages {
                return None;
            }
            for _ in 0..pages {
                let len = cursor.byte().ok().filter(|&len| len < 0x80)?;
                self.bounds.push(Span { start: cursor.at as u32, len: len.into() });
                cursor.at += usize::from(len);
            }
        }
        expect(cursor, NEXT_I32)?;
        let boundary_order = i32::try_from(cursor.integer().ok()?).ok()?;
        let first_number = self.numbers.len();
        let mut entry = ColumnEntry {
            bytes: self.next_bytes(),
            null_pages,
            bounds: first_bound as u32,
            numbers: first_number as u32,
            null_counts: false,
            nan_counts: false,
            repetitions: None,
            definitions: None,
            boundary_order,
        };
        let mut field = 4;
        loop {
            let header = cursor.byte().ok()?;
            if header == 0 {
                break;
            }
            field += header >> 4;
            // A field number follows a delta of 0.
            if header & 0x0f != NEXT_LIST & 0x0f || header < 0x10 {
                return None;
            }
            let count = list_of(cursor, I64)?;
            for _ in 0..count {
                self.numbers.push(cursor.integer().ok()?);
            }
            match field {
                5 if count == pages => entry.null_counts = true,
                6 => entry.repetitions = Some(count as u32),
                7 => entry.definitions = Some(count as u32),
                8 if count == pages => entry.nan_counts = true,
                _ => return None,
            }
        }
        let fits = |table: usize| u32::try_from(table + 1).is_ok();
        (fits(self.bounds.len()) && fits(self.numbers.len())).then_some(entry)
    }

    /// The offset index at `start`, if it has the usual form.
    #[inline]
    pub fn usual_offset_index(&mut self, bytes: &[u8], start: usize) -> Option<OffsetEntry> {
        let (pages, numbers) = (self.pages.len(), self.numbers.len());
        let entry = self.offset_index_by_order(&mut Cursor::new(bytes, start));
        if entry.is_none() {
            self.pages.truncate(pages);
            self.numbers.truncate(numbers);
        }
        entry
    }

    #[inline(always)]
    fn offset_index_by_order(&mut self, cursor: &mut Cursor<'_>) -> Option<OffsetEntry> {
        expect(cursor, NEXT_LIST)?;
        let count = list_of(cursor, STRUCT)?;
        let first = self.pages.len();
        for _ in 0..count {
            expect(cursor, NEXT_I64)?;
            let offset = cursor.size().ok()?;
            expect(cursor, NEXT_I32)?;
            let compressed_page_size = i32::try_from(cursor.size().ok()?).ok()?;
            expect(cursor, NEXT_I64)?;
            let first_row_index = cursor.size().ok()?;
            expect(cursor, 0)?;
            self.pages.push(PageLocation { offset, compressed_page_size, first_row_index });
        }
        let pages = Span::since(&self.pages, first, 0).ok()?;
        let sizes = match cursor.byte().ok()? {
            0 => return Some(OffsetEntry { pages, sizes: None }),
            NEXT_LIST => {
                let first = self.numbers.len();
                for _ in 0..list_of(cursor, I64)? {
                    self.numbers.push(cursor.integer().ok()?);
                }
                Span::since(&self.numbers, first, 0).ok()?
            }
            _ => return None,
        };
        expect(cursor, 0)?;
        Some(OffsetEntry { pages, sizes: Some(sizes) })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::page_index::indexes::{ColumnIndex, OffsetIndex};
    use crate::page_index::tables::Tables;
    use crate::thrift_writer::ThriftWriter;

    /// A column index of `pages` pages, with the optional fields whose bits are set.
    fn column_index(pages: u64, fields: u8) -> Vec<u8> {
        let mut writer = ThriftWriter::new();
        writer.list(1, 1, pages);
        let nulls: Vec<u8> = (0..pages).map(|page| 1 + u8::from(page % 3 == 0)).collect();
        writer.raw(&nulls);
        for field in [2, 3] {
            writer.list(field, 8, pages);
            (0..pages).for_each(|page| writer.bytes_value(&[7; 9][..(page % 9) as usize]));
        }
        writer.i32(4, 1);
        for (bit, field) in [(1, 5), (2, 6), (4, 7), (8, 8)] {
            if fields & bit != 0 {
                let count = if matches!(field, 5 | 8) { pages } else { 2 * pages };
                writer.list(field, 6, count);
                (0..count).for_each(|number| writer.integer((number * number * 97) as i64));
            }
        }
        writer.stop();
        writer.into_bytes()
    }

    fn offset_index(pages: u64, sizes: bool) -> Vec<u8> {
        let mut writer = ThriftWriter::new();
        writer.list(1, 12, pages);
        for page in 0..pages as i64 {
            writer.begin_element();
            writer.i64(1, 4 + page * 70_000);
            writer.i32(2, 70_000);
            writer.i64(3, page * 20_000);
            writer.stop();
        }
        if sizes {
            writer.list(2, 6, pages);
            (0..pages).for_each(|page| writer.integer(page as i64 * 1000));
        }
        writer.stop();
        writer.into_bytes()
    }

    /// Runs both decoders, which must agree if the one for usual indexes returns a result.
    fn agree(bytes: &[u8]) -> (bool, bool) {
        let (mut usual, mut any) = (Tables::default(), Tables::default());
        let column = usual.usual_column_index(bytes, 0);
        if let Some(entry) = column {
            let expected = any.any_column_index(bytes, 0).expect("the usual decoder accepted it");
            usual.keep(bytes.into());
            any.keep(bytes.into());
            let [found, expected] = [(usual, entry), (any, expected)]
                .map(|(tables, entry)| ColumnIndex { tables: Arc::new(tables), entry });
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        } else {
            assert_eq!((usual.bounds.len(), usual.numbers.len()), (0, 0));
        }
        let (mut usual, mut any) = (Tables::default(), Tables::default());
        let offset = usual.usual_offset_index(bytes, 0);
        if let Some(entry) = offset {
            let expected = any.any_offset_index(bytes, 0).expect("the usual decoder accepted it");
            let [found, expected] = [(usual, entry), (any, expected)]
                .map(|(tables, entry)| OffsetIndex { tables: Arc::new(tables), entry });
            assert_eq!(found, expected);
        } else {
            assert_eq!((usual.pages.len(), usual.numbers.len()), (0, 0));
        }
        (column.is_some(), offset.is_some())
    }

    proptest! {
        #[test]
        fn indexes_from_writers_are_usual_and_both_decoders_agree(
            pages in 0u64..40, fields in 0u8..16, sizes: bool,
        ) {
            prop_assert!(agree(&column_index(pages, fields)).0);
            prop_assert!(agree(&offset_index(pages, sizes)).1);
        }

        #[test]
        fn both_decoders_agree_on_changed_indexes(
            pages in 0u64..20, fields in 0u8..16, place: prop::sample::Index, byte: u8, cut: prop::sample::Index,
        ) {
            for mut bytes in [column_index(pages, fields), offset_index(pages, fields % 2 == 0)] {
                let at = place.index(bytes.len());
                bytes[at] = byte;
                agree(&bytes);
                bytes.truncate(cut.index(bytes.len()));
                agree(&bytes);
            }
        }

        #[test]
        fn both_decoders_agree_on_arbitrary_bytes(bytes: Vec<u8>) {
            agree(&bytes);
        }
    }
}
