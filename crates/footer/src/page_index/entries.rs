//! What is kept of every page index: which parts of the shared tables ([`crate::page_index::tables`]) are
//! its own, in as few words as will do, as most of the cost of a table of them is touching its memory.

use crate::error::{Fault, FaultKind};
use crate::thrift::cursor::Step;

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    /// The part of a table from `start` to its end; a fault at `at` if that needs more than 32 bits.
    pub fn since<T>(table: &[T], start: usize, at: usize) -> Step<Self> {
        let span = || {
            // The end, too, must be told by 32 bits, and a start counted from 1.
            u32::try_from(table.len() + 1).ok()?;
            Some(Self { start: start as u32, len: (table.len() - start) as u32 })
        };
        let kind = FaultKind::Range { value: i64::MAX, expected: "page indexes of fewer than 2^32 values" };
        span().ok_or(Fault::new(at, kind))
    }

    pub fn of<T>(self, table: &[T]) -> &[T] {
        table.get(self.start as usize..self.start as usize + self.len as usize).unwrap_or_default()
    }
}

/// The part of an `OffsetIndex` in the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetEntry {
    pub pages: Span,
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
    #[inline]
    pub fn pack(&self) -> Words<4> {
        let ([a, b], [c, d]) = (words(Some(self.pages)), words(self.sizes));
        [a, b, c, d]
    }

    pub fn unpack([a, b, c, d]: Words<4>) -> Option<Self> {
        Some(Self { pages: span([a, b])?, sizes: span([c, d]) })
    }
}

/// Flags of a column entry's third word, whose other bits say which of the kept bytes the index is in.
const NULL_COUNTS: u32 = 1 << 31;
const NAN_COUNTS: u32 = 1 << 30;
pub(crate) const FLAGS: u32 = NULL_COUNTS | NAN_COUNTS;

impl ColumnEntry {
    /// Bounds and numbers stand in the tables as [`ColumnEntry`] has it.
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

    /// The numbers from the `before`-th of the index on.
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

/// The part of a `ColumnIndex` in the tables: upper bounds right behind lower ones, counts of nulls,
/// histograms of repetition and of definition levels and counts of NaNs one behind the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnEntry {
    /// Which of the kept bytes the index stands in.
    pub bytes: u32,
    /// A byte a page, in the kept bytes.
    pub null_pages: Span,
    /// Where the lower bounds start.
    pub bounds: u32,
    /// Where the numbers start.
    pub numbers: u32,
    /// Whether there are counts of nulls, one a page.
    pub null_counts: bool,
    /// Whether there are counts of NaNs, one a page.
    pub nan_counts: bool,
    /// The length of the histograms of repetition levels.
    pub repetitions: Option<u32>,
    /// The length of the histograms of definition levels.
    pub definitions: Option<u32>,
    pub boundary_order: i32,
}
