//! Text and bytes, which stay in their pages: an array contains a view of each
//! (<https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>).
//!
//! A value is stored as a 32-bit length and its bytes
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/#PLAIN>). For up to 12 bytes, its view
//! is the same, padded with zeros. For a longer value, the view has the length, the first four bytes, and the
//! position.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use bytes::{Buf, Bytes};

use super::NotRead;
use super::paged_column::Stored;
use crate::parquet_files::flat_columns::inline_view::{BEYOND, INLINE};

/// Values of any length.
pub(super) struct Views {
    /// Whether they must be UTF-8.
    text: bool,
    /// The dictionary page, if any. The views of its entries refer to it as the first page of an array.
    dictionary: Option<Buffer>,
    /// The pages that the views of the array refer to.
    pages: Vec<Buffer>,
    /// Whether the rest of the page is all ASCII.
    ascii: bool,
}

impl Views {
    pub(super) fn new(text: bool) -> Self {
        Self { text, dictionary: None, pages: Vec::new(), ascii: false }
    }

    /// Returns the array of views created since [`start_array`](Stored::start_array).
    pub(super) fn array(&mut self, views: Buffer, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
        let views = ScalarBuffer::new(views, 0, rows);
        let pages = std::mem::take(&mut self.pages);
        // SAFETY: `view` created each view for one of the pages, in which it found the whole value; all
        // others are views of values without bytes. Text is UTF-8: each value was checked alone, or as a
        // part of a page that is ASCII. `views` and `nulls` have an entry for each row, since `PagedColumn`
        // creates both. Checking each value again would take 11 to 14 ns: 0.128 instead of 0.072 s to decode
        // a million rows of orders, which have four such columns.
        unsafe {
            match self.text {
                true => Arc::new(StringViewArray::new_unchecked(views, pages, nulls)),
                false => Arc::new(BinaryViewArray::new_unchecked(views, pages, nulls)),
            }
        }
    }

    /// Returns the view of the value at the start of `bytes`, which is `at` bytes after the start of the page
    /// with this number, and the bytes that length and value take.
    #[inline(always)]
    fn view(&self, bytes: &[u8], page: usize, at: usize) -> Result<(u128, usize), NotRead> {
        let head = match bytes.first_chunk::<16>() {
            Some(head) => *head,
            None => {
                let mut head = [0; 16];
                head[..bytes.len()].copy_from_slice(bytes);
                head
            }
        };
        let view = u128::from_le_bytes(head);
        let length = view as u32 as usize;
        if bytes.len() < 4 + length {
            return Err(NotRead);
        }
        if self.text && !self.ascii && std::str::from_utf8(&bytes[4..4 + length]).is_err() {
            return Err(NotRead);
        }
        Ok(match BEYOND.get(length) {
            Some(beyond) => (view & !beyond, 4 + length),
            None => {
                let place = u128::from(page as u32) << 64 | u128::from((at + 4) as u32) << 96;
                (view & u128::from(u64::MAX) | place, 4 + length)
            }
        })
    }

    /// Appends views of `count` values at the start of a page with this number. Returns the bytes that they
    /// take, and whether any view refers to the page.
    fn views(
        &self,
        bytes: &[u8],
        count: usize,
        page: usize,
        to: &mut Vec<u128>,
    ) -> Result<(usize, bool), NotRead> {
        // Each value has at least a length, and offsets have 32 bits.
        if count > bytes.len() / 4 || u32::try_from(bytes.len()).is_err() {
            return Err(NotRead);
        }
        to.reserve(count);
        let (mut at, mut longest) = (0, 0);
        for _ in 0..count {
            let (view, length) = self.view(&bytes[at..], page, at)?;
            to.push(view);
            at += length;
            longest = longest.max(length);
        }
        Ok((at, longest > 4 + INLINE))
    }
}

impl Stored for Views {
    type Value = u128;

    fn start_array(&mut self) {
        self.pages.clear();
        self.pages.extend(self.dictionary.clone());
    }

    fn start_page(&mut self, values: &Bytes) {
        self.ascii = self.text && values.is_ascii();
    }

    fn entries(&mut self, page: Bytes, count: usize) -> Result<Vec<u128>, NotRead> {
        // Earlier views refer to another page as the first.
        if !self.pages.is_empty() {
            return Err(NotRead);
        }
        self.start_page(&page);
        let mut entries = Vec::new();
        self.views(&page, count, 0, &mut entries)?;
        self.dictionary = Some(Buffer::from(page));
        self.start_array();
        Ok(entries)
    }

    fn values(&mut self, bytes: &mut Bytes, count: usize, to: &mut Vec<u128>) -> Result<(), NotRead> {
        let (length, referred) = self.views(bytes, count, self.pages.len(), to)?;
        if referred {
            self.pages.push(Buffer::from(bytes.slice(..length)));
        }
        bytes.advance(length);
        Ok(())
    }
}
