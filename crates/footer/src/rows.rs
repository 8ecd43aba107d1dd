//! What is kept of every column chunk: 24 bytes of numbers and an 8-byte locator.
//!
//! The walk hands over a [`Chunk`]; [`Rows`] packs it. Sizes, counts and the distance from dictionary
//! to data page take 32 bits each; a chunk in which one of them needs more goes to a side table
//! whole. What chunks have in common (type, codec, encodings: their [`Traits`]) is kept once. The
//! locator says where the chunk's struct stands in the footer, so that everything else can be decoded
//! when somebody asks for it.

use std::collections::HashMap;

use crate::enums::EncodingSet;

/// The numbers of a column chunk, as the walk found them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where the `ColumnChunk` struct starts in the footer.
    pub at: u32,
    pub traits: Traits,
    pub data_page_offset: i64,
    /// Meaningful only with [`HAS_DICTIONARY`] among the traits' flags.
    pub dictionary_page_offset: i64,
    pub compressed: i64,
    pub uncompressed: i64,
    pub num_values: i64,
}

/// What many column chunks have in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Traits {
    pub physical_type: i32,
    pub codec: i32,
    pub encodings: EncodingSet,
    pub flags: u16,
}

/// The chunk says where its dictionary page starts.
pub(crate) const HAS_DICTIONARY: u16 = 1 << 0;
/// The chunk has no `meta_data`: it is encrypted with a key of its own.
pub(crate) const NO_METADATA: u16 = 1 << 1;
/// The chunk is encrypted.
pub(crate) const ENCRYPTED: u16 = 1 << 2;

/// The row is in the side table; `sizes[0]` of it is the place there.
const WIDE: u16 = 1 << 0;

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Row {
    data_page_offset: i64,
    compressed: u32,
    uncompressed: u32,
    num_values: u32,
    /// Data page offset minus dictionary page offset.
    dictionary_distance: u32,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Locator {
    pub at: u32,
    traits: u16,
    flags: u16,
}

/// The packed rows of all decoded column chunks, row group by row group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    locators: Vec<Locator>,
    traits: Vec<Traits>,
    places: HashMap<Traits, u16>,
    wide: Vec<Chunk>,
}

impl Rows {
    pub fn reserve(&mut self, count: usize) {
        self.rows.reserve(count);
        self.locators.reserve(count);
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Appends a chunk; `alike` is the place of one that probably has the same traits.
    pub fn push(&mut self, chunk: Chunk, alike: Option<usize>) {
        let distance = if chunk.traits.flags & HAS_DICTIONARY != 0 {
            chunk.data_page_offset.wrapping_sub(chunk.dictionary_page_offset)
        } else {
            0
        };
        let narrow = [chunk.compressed, chunk.uncompressed, chunk.num_values, distance].map(u32::try_from);
        let packed = match (narrow, self.traits_place(chunk.traits, alike)) {
            ([Ok(compressed), Ok(uncompressed), Ok(num_values), Ok(dictionary_distance)], Some(traits)) => {
                let data_page_offset = chunk.data_page_offset;
                let row = Row { data_page_offset, compressed, uncompressed, num_values, dictionary_distance };
                (row, Locator { at: chunk.at, traits, flags: 0 })
            }
            _ => {
                let place = self.wide.len() as i64;
                self.wide.push(chunk);
                let row = Row { data_page_offset: place, ..Row::default() };
                (row, Locator { at: chunk.at, traits: 0, flags: WIDE })
            }
        };
        self.rows.push(packed.0);
        self.locators.push(packed.1);
    }

    fn traits_place(&mut self, traits: Traits, alike: Option<usize>) -> Option<u16> {
        if let Some(place) = alike.and_then(|row| self.locators.get(row)).map(|locator| locator.traits)
            && self.traits.get(usize::from(place)) == Some(&traits)
        {
            return Some(place);
        }
        if let Some(&place) = self.places.get(&traits) {
            return Some(place);
        }
        let place = u16::try_from(self.traits.len()).ok()?;
        self.traits.push(traits);
        self.places.insert(traits, place);
        Some(place)
    }

    /// Drops all rows from `count` on.
    pub fn truncate(&mut self, count: usize) {
        self.rows.truncate(count);
        self.locators.truncate(count);
    }

    /// Gives back room that no row took.
    pub fn shrink(&mut self) {
        // Shrinking moves everything: only where it gives back much.
        if self.rows.capacity() > self.rows.len() + self.rows.len() / 8 {
            self.rows.shrink_to_fit();
            self.locators.shrink_to_fit();
        }
    }

    /// The chunk in row `row`; all zeros where there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Chunk {
        let (Some(packed), Some(locator)) = (self.rows.get(row), self.locators.get(row)) else {
            return Chunk::default();
        };
        if locator.flags & WIDE != 0 {
            return self.wide.get(packed.data_page_offset as usize).copied().unwrap_or_default();
        }
        Chunk {
            at: locator.at,
            traits: self.traits.get(usize::from(locator.traits)).copied().unwrap_or_default(),
            data_page_offset: packed.data_page_offset,
            dictionary_page_offset: packed.data_page_offset.wrapping_sub(packed.dictionary_distance.into()),
            compressed: packed.compressed.into(),
            uncompressed: packed.uncompressed.into(),
            num_values: packed.num_values.into(),
        }
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
            + self.locators.capacity() * size_of::<Locator>()
            + self.traits.capacity() * size_of::<Traits>()
            + self.places.capacity() * (size_of::<Traits>() + size_of::<u64>())
            + self.wide.capacity() * size_of::<Chunk>()
    }
}
