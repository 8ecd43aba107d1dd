//! The entry of a page index: its parts of the shared tables ([`crate::page_index::tables`]). It has as few words as
//! possible, because touching memory costs most.

use crate::error::{Fault, FaultKind};
use crate::thrift::cursor::Step;

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    /// The part of a table from `start` to its end; a fault at `at` if that does not fit in 32 bits.
    pub fn since<T>(table: &[T], start: usize, at: usize) -> Step<Self> {
        let span = || {
            // The end must also fit in 32 bits, and so must a start counted from 1.
            u32::try_from(table.len() + 1).ok()?;
            Some(Self { start: start as u32, len: (table.len() - start) as u32 })
        };
        let kind = FaultKind::Range { value: i64::MAX, expected: "page indexes of fewer than 2^32 values" };
        span().ok_or(Fault::new(at, kind))
    }

    pub fn slice<T>(self, table: &[T]) -> &[T] {
        table.get(self.start as usize..self.start as usize + self.len as usize).unwrap_or_default()
    }
}

/// The part of an `OffsetIndex` in the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetEntry {
    pub pages: Span,
    pub sizes: Option<Span>,
}

/// An entry in few words, which keeps a table of them small: most of its cost is touching memory. All
/// zeros, as in untouched memory, mark a chunk without an index.
pub(crate) type Words<const N: usize> = [u32; N];

/// A part of a table in two words, with its start counted from 1: two zeros mean `None`.
fn words(span: Option<Span>) -> [u32; 2] {
    span.map_or([0; 2], |span| [span.start + 1, span.len])
}

fn span([start, len]: [u32; 2]) -> Option<Span> {
    Some(Span { start: start.checked_sub(1)?, len })
}

impl OffsetEntry {
    #[inline]
    pub fn pack(&self) -> Words<4> {
        let ([a, b], [c, d]) = (words(Some(self.pages)), words(self.sizes));
        [a, b, c, d]
    }

    pub fn unpack([a, b, c, d]: Words<4>) -> Option<Self> {
        Some(Self { pages: span([a, b])?, sizes: span([c, d]) })
    }
}

/// Flags in the third word of a column entry, whose other bits identify the buffer that contains the index.
const NULL_COUNTS: u32 = 1 << 31;
const NAN_COUNTS: u32 = 1 << 30;
pub(crate) const FLAGS: u32 = NULL_COUNTS | NAN_COUNTS;

impl ColumnEntry {
    /// Bounds and numbers are laid out in the tables as described at [`ColumnEntry`].
    #[inline]
    pub fn pack(&self) -> Words<8> {
        let length = |len: Option<u32>| len.map_or(0, |len| len + 1);
        [
            self.null_pages.start + 1,
            self.null_pages.len,
            self.bytes
                | if self.null_counts { NULL_COUNTS } else { 0 }
                | if self.nan_counts { NAN_COUNTS } else { 0 },
            self.bounds,
            self.numbers,
            length(self.repetitions),
            length(self.definitions),
            self.boundary_order.cast_unsigned(),
        ]
    }

    pub fn unpack(words: Words<8>) -> Option<Self> {
        let [at, len, bytes, bounds, numbers, repetitions, definitions, order] = words;
        Some(Self {
            bytes: bytes & !FLAGS,
            null_pages: span([at, len])?,
            bounds,
            numbers,
            null_counts: bytes & NULL_COUNTS != 0,
            nan_counts: bytes & NAN_COUNTS != 0,
            repetitions: repetitions.checked_sub(1),
            definitions: definitions.checked_sub(1),
            boundary_order: order.cast_signed(),
        })
    }

    pub fn min_values(&self) -> Span {
        Span { start: self.bounds, len: self.null_pages.len }
    }

    pub fn max_values(&self) -> Span {
        Span { start: self.bounds + self.null_pages.len, len: self.null_pages.len }
    }

    /// The index's numbers, starting with number `before`.
    fn numbers(&self, before: u32, len: u32) -> Span {
        Span { start: self.numbers + before, len }
    }

    pub fn null_counts(&self) -> Option<Span> {
        self.null_counts.then(|| self.numbers(0, self.null_pages.len))
    }

    pub fn repetition_level_histograms(&self) -> Option<Span> {
        Some(self.numbers(self.num_null_counts(), self.repetitions?))
    }

    pub fn definition_level_histograms(&self) -> Option<Span> {
        Some(self.numbers(self.num_null_counts() + self.repetitions.unwrap_or(0), self.definitions?))
    }

    pub fn nan_counts(&self) -> Option<Span> {
        let before = self.num_null_counts() + self.repetitions.unwrap_or(0) + self.definitions.unwrap_or(0);
        self.nan_counts.then(|| self.numbers(before, self.null_pages.len))
    }

    fn num_null_counts(&self) -> u32 {
        if self.null_counts { self.null_pages.len } else { 0 }
    }
}

/// The part of a `ColumnIndex` in the tables: lower bounds followed by upper bounds; then null counts,
/// repetition level histograms, definition level histograms and NaN counts, in this order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnEntry {
    /// The buffer that contains the index.
    pub bytes: u32,
    /// One byte per page, in that buffer.
    pub null_pages: Span,
    /// Where the lower bounds start.
    pub bounds: u32,
    /// Where the numbers start.
    pub numbers: u32,
    /// Whether there are null counts, one per page.
    pub null_counts: bool,
    /// Whether there are NaN counts, one per page.
    pub nan_counts: bool,
    /// The total length of the repetition level histograms.
    pub repetitions: Option<u32>,
    /// The total length of the definition level histograms.
    pub definitions: Option<u32>,
    pub boundary_order: i32,
}
