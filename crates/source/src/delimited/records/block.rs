//! Finds delimiters, newlines and quotes in blocks of 64 bytes, each as the bits of a word, and what quotes
//! enclose.

use wide::u8x16;

/// Bytes of a block: the bits of a word.
const BYTES: usize = 64;

/// The characters that divide text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Characters {
    pub delimiter: u8,
    pub newline: u8,
    pub quote: Option<u8>,
}

/// A block of a text. The n-th bit of each word is the byte `base + n`.
pub(super) struct Block<'t> {
    text: &'t [u8],
    characters: Characters,
    pub base: usize,
    delimiters: u64,
    newlines: u64,
    quotes: u64,
    /// The bytes of the block that count: those from the position on.
    from: u64,
}

/// The delimiters and newlines of a block that are outside of quotes, and the fault of its quotes.
#[derive(Default)]
pub(super) struct Stops {
    pub delimiters: u64,
    pub newlines: u64,
    /// Whether the block has quotes, or is within quotes.
    pub has_quotes: bool,
    /// Quotes that mean one quote together with the next byte.
    pub doubled: u64,
    /// Quotes that open no field, because they are not at its start.
    pub misplaced: u64,
    /// Closing quotes that no delimiter or newline follows.
    pub unended: u64,
    /// Whether a quoted field continues in the next block.
    pub is_open: bool,
}

impl<'t> Block<'t> {
    /// The block at a place of a text.
    pub(super) fn at(text: &'t [u8], place: usize, characters: Characters) -> Self {
        let (delimiters, newlines, quotes) = (0, 0, 0);
        let mut block = Self { text, characters, base: place, delimiters, newlines, quotes, from: u64::MAX };
        block.look();
        block
    }

    /// Moves forward to a place of the text.
    #[inline(always)]
    pub(super) fn move_to(&mut self, place: usize) {
        let ahead = place.saturating_sub(self.base);
        if ahead < BYTES {
            self.from = u64::MAX << ahead;
        } else {
            (self.base, self.from) = (place, u64::MAX);
            self.look();
        }
    }

    /// Moves to the next block; `None` at the end of the text.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<()> {
        self.base += BYTES;
        if self.base >= self.text.len() {
            return None;
        }
        self.from = u64::MAX;
        self.look();
        Some(())
    }

    #[inline(always)]
    fn look(&mut self) {
        match self.text.get(self.base..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => self.find(bytes),
            None => self.look_at_the_last(),
        }
    }

    /// The last bytes of the text, filled up to a block.
    #[cold]
    fn look_at_the_last(&mut self) {
        let rest = self.text.get(self.base..).unwrap_or_default();
        let mut bytes = [0; BYTES];
        if let Some(start) = bytes.get_mut(..rest.len()) {
            start.copy_from_slice(rest);
        }
        self.find(&bytes);
        let within = below(1 << rest.len().min(BYTES - 1));
        self.delimiters &= within;
        self.newlines &= within;
        self.quotes &= within;
    }

    #[inline(always)]
    fn find(&mut self, bytes: &[u8; BYTES]) {
        let Characters { delimiter, newline, quote } = self.characters;
        let (lanes, _) = bytes.as_chunks::<16>();
        let places = |of: u8| {
            let of = u8x16::splat(of);
            let bits = |lane: &[u8; 16]| u64::from(u8x16::from(*lane).simd_eq(of).to_bitmask());
            lanes.iter().rev().fold(0, |word, lane| word << 16 | bits(lane))
        };
        self.delimiters = places(delimiter);
        self.newlines = places(newline);
        self.quotes = quote.map_or(0, places);
    }

    /// Returns the delimiters and newlines from the position on. `is_open`: the position is within a quoted field.
    #[inline(always)]
    pub(super) fn stops(&self, is_open: bool) -> Stops {
        let (delimiters, newlines) = (self.delimiters & self.from, self.newlines & self.from);
        let quotes = self.quotes & self.from;
        if quotes == 0 && !is_open {
            return Stops { delimiters, newlines, ..Stops::default() };
        }
        let open = if is_open { u64::MAX } else { 0 };
        let inside = enclosed(quotes) ^ open;
        let (opening, closing) = (quotes & inside, quotes & !inside);
        let divided = self.delimiters | self.newlines;
        let begins = (divided | closing) << 1 | u64::from(self.divides_before());
        let ends = (divided | quotes) >> 1 | u64::from(self.divides_after()) << (BYTES - 1);
        Stops {
            delimiters: delimiters & !inside,
            newlines: newlines & !inside,
            has_quotes: true,
            doubled: closing & (quotes >> 1 | u64::from(self.has_quote_after()) << (BYTES - 1)),
            misplaced: opening & !begins,
            unended: closing & !ends,
            is_open: inside >> (BYTES - 1) != 0,
        }
    }

    /// Whether a quote at the start of the block may open a field, or continues one.
    fn divides_before(&self) -> bool {
        let before = self.base.checked_sub(1).and_then(|at| self.text.get(at)).copied();
        before.is_none_or(|byte| self.divides(byte))
    }

    /// Whether a quote at the end of the block may close a field, or means one with the next byte.
    fn divides_after(&self) -> bool {
        self.text.get(self.base + BYTES).is_some_and(|byte| self.divides(*byte))
    }

    fn has_quote_after(&self) -> bool {
        self.characters.quote.is_some_and(|quote| self.text.get(self.base + BYTES) == Some(&quote))
    }

    fn divides(&self, byte: u8) -> bool {
        let Characters { delimiter, newline, quote } = self.characters;
        byte == delimiter || byte == newline || Some(byte) == quote
    }
}

/// The bits below the lowest set one; all bits if no bit is set.
#[inline(always)]
pub(super) fn below(bits: u64) -> u64 {
    bits.wrapping_sub(1) & !bits
}

/// Fills the gaps between pairs of set bits: from the first, third, fifth and so on up to the bit before the next one.
#[inline(always)]
fn enclosed(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(bits, |bits, by| bits ^ bits << by)
}
