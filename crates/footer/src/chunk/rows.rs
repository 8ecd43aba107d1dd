//! Stores 32 bytes for every column chunk.
//!
//! The walk produces a [`Chunk`]; [`pack`] turns it into four words: the data page's offset; the two sizes;
//! the number of values and the signed distance from dictionary to data page; and a locator. The locator holds the
//! offset of the chunk's struct in the footer, the location of the statistics within it, and the index of its
//! [`Traits`] (type, codec, encodings), which many chunks share. Sizes, counts and distances have 32 bits
//! each; a chunk that needs more is stored whole in a side table.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

#[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
use crate::decode::file_metadata::has_dictionary;
use crate::memory::word_hasher::WordHasher;
use crate::schema::enums::EncodingSet;
#[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
use crate::schema::enums::{Codec, PhysicalType};

/// The numbers of a column chunk, as the walk found them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Where the `ColumnChunk` struct starts in the footer.
    pub at: u32,
    pub traits: Traits,
    pub data_page_offset: i64,
    /// Meaningful only if the traits' flags include [`HAS_DICTIONARY`].
    pub dictionary_page_offset: i64,
    pub compressed: i64,
    pub uncompressed: i64,
    pub num_values: i64,
    /// The location of the chunk's `Statistics`, encoded by [`statistics_place`].
    pub statistics: u16,
}

/// Unknown whether the chunk has statistics or where they are.
pub(crate) const STATISTICS_UNKNOWN: u16 = 0;
/// The chunk has no statistics.
pub(crate) const STATISTICS_NONE: u16 = 0x7fff;

/// Encodes the location of statistics `distance` bytes after the start of their chunk.
#[inline(always)]
pub(crate) fn statistics_place(distance: usize) -> u16 {
    if distance < usize::from(STATISTICS_NONE) { distance as u16 } else { STATISTICS_UNKNOWN }
}

/// Properties that many column chunks share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Traits {
    pub physical_type: i32,
    pub codec: i32,
    pub encodings: EncodingSet,
    pub flags: u16,
}

impl Traits {
    /// A number below [`RECENT`].
    #[inline]
    fn hash(self) -> usize {
        let Self { physical_type, codec, encodings, flags } = self;
        let word = u64::from(encodings.bits()) << 16 ^ u64::from(flags) << 8;
        let word = word ^ (physical_type as u64) ^ (codec as u64) << 4;
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize
    }

    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    fn is_readable(&self) -> bool {
        self.flags & (NO_METADATA | ENCRYPTED) == 0
            && PhysicalType::from_number(self.physical_type).is_known()
            && Codec::from_number(self.codec).is_known()
            && self.encodings.all_known()
    }
}

/// The chunk states where its dictionary page starts.
pub(crate) const HAS_DICTIONARY: u16 = 1 << 0;
/// The chunk has no `meta_data`: it is encrypted with its own key.
pub(crate) const NO_METADATA: u16 = 1 << 1;
/// The chunk is encrypted.
pub(crate) const ENCRYPTED: u16 = 1 << 2;

/// A chunk in four words:
///
/// 0. data page offset
/// 1. compressed size (low half), uncompressed size (high half)
/// 2. number of values (low), data page offset minus dictionary page offset (high)
/// 3. offset in the footer (low), index of the traits (16 bits), a flag (1 bit), location of the statistics
///    (15 bits)
///
/// Arrays of words can be allocated as zeroed pages, which cost nothing until they are written.
pub(crate) type Packed = [u64; 4];

/// Flag of the last word: the chunk is in the side table.
const WIDE: u64 = 1 << 48;

/// The locator of a chunk at `at` with the given traits index and location of statistics.
#[inline(always)]
pub(crate) fn locator(at: usize, traits: u16, statistics: u16) -> u64 {
    at as u64 | u64::from(traits) << 32 | u64::from(statistics) << 49
}

/// The low half of a word for a distance, which is negative for an impossible dictionary; `None` if it is too wide.
#[inline(always)]
pub(crate) fn narrow_distance(distance: i64) -> Option<u64> {
    i32::try_from(distance).ok().map(|distance| u64::from(distance as u32))
}

/// The distance in the high half of a word.
#[inline(always)]
fn distance_of(counts: u64) -> i64 {
    i64::from((counts >> 32) as i32)
}

/// Packs a chunk; `None` if it is too wide.
#[inline]
pub(crate) fn pack(chunk: &Chunk, traits: Option<u16>) -> Option<Packed> {
    let distance = if chunk.traits.flags & HAS_DICTIONARY != 0 {
        chunk.data_page_offset.wrapping_sub(chunk.dictionary_page_offset)
    } else {
        0
    };
    let narrow = |value: i64| u32::try_from(value).ok().map(u64::from);
    Some([
        chunk.data_page_offset as u64,
        narrow(chunk.compressed)? | narrow(chunk.uncompressed)? << 32,
        narrow(chunk.num_values)? | narrow_distance(distance)? << 32,
        locator(chunk.at as usize, traits?, chunk.statistics),
    ])
}

/// The row of a chunk that is stored in the side table.
pub(crate) fn wide(chunk: &Chunk) -> Packed {
    [0, 0, 0, locator(chunk.at as usize, 0, STATISTICS_UNKNOWN) | WIDE]
}

/// The distinct traits.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraitTable {
    list: Vec<Traits>,
    /// Indices of all traits in the list.
    places: HashMap<Traits, u16, BuildHasherDefault<WordHasher>>,
    /// Which of them were last asked for, by a hash: most chunks have some of few.
    recent: [u16; RECENT],
}

/// How many traits to reserve room for at first: to grow twice took a twentieth of the time of a small footer.
const USUAL_TRAITS: usize = 16;

/// How many recent traits to remember.
const RECENT: usize = 32;

impl TraitTable {
    /// The index of `traits`; `None` if the table is full.
    #[inline]
    pub fn place(&mut self, traits: Traits) -> Option<u16> {
        let recent = traits.hash();
        let place = self.recent[recent];
        if self.list.get(usize::from(place)) == Some(&traits) {
            return Some(place);
        }
        let place = self.find(traits)?;
        self.recent[recent] = place;
        Some(place)
    }

    #[inline(never)]
    fn find(&mut self, traits: Traits) -> Option<u16> {
        if self.list.is_empty() {
            self.list.reserve(USUAL_TRAITS);
        }
        let next = u16::try_from(self.list.len());
        match self.places.entry(traits) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => {
                let next = next.ok()?;
                self.list.push(traits);
                Some(*new.insert(next))
            }
        }
    }

    pub fn get(&self, place: u16) -> Option<&Traits> {
        self.list.get(usize::from(place))
    }

    /// All traits in index order.
    pub fn list(&self) -> &[Traits] {
        &self.list
    }
}

/// The rows of all decoded column chunks, row group by row group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub packed: Vec<Packed>,
    /// Shared with other footers that have the same traits.
    pub traits: Arc<TraitTable>,
    /// Chunks that do not fit into a packed row, with their rows, in ascending order.
    pub wide: Vec<(u32, Chunk)>,
}

impl Rows {
    /// The chunk in row `row`; all zeros if the row does not exist.
    #[inline]
    pub fn get(&self, row: usize) -> Chunk {
        let Some(&[data, sizes, counts, locator]) = self.packed.get(row) else {
            return Chunk::default();
        };
        if locator & WIDE != 0 {
            let place = self.wide.binary_search_by_key(&row, |(row, _)| *row as usize);
            return place
                .ok()
                .and_then(|place| self.wide.get(place))
                .map(|(_, chunk)| *chunk)
                .unwrap_or_default();
        }
        let traits = self.traits.get((locator >> 32) as u16).copied().unwrap_or_default();
        Chunk {
            at: locator as u32,
            traits,
            data_page_offset: data as i64,
            dictionary_page_offset: if traits.flags & HAS_DICTIONARY != 0 {
                (data as i64).wrapping_sub(distance_of(counts))
            } else {
                0
            },
            compressed: i64::from(sizes as u32),
            uncompressed: (sizes >> 32) as i64,
            num_values: i64::from(counts as u32),
            statistics: (locator >> 49) as u16,
        }
    }

    /// Where the chunk in row `row` starts in the footer, and the location of its statistics
    /// ([`statistics_place`]).
    #[inline]
    pub fn statistics(&self, row: usize) -> (usize, u16) {
        // For a chunk in the side table this returns "unknown", which is equally correct.
        self.packed
            .get(row)
            .map_or((0, STATISTICS_UNKNOWN), |row| (row[3] as u32 as usize, (row[3] >> 49) as u16))
    }

    /// Whether some chunk may be encrypted.
    pub fn some_encrypted(&self) -> bool {
        let mut all = self.traits.list.iter().chain(self.wide.iter().map(|(_, chunk)| &chunk.traits));
        all.any(|traits| traits.flags & ENCRYPTED != 0)
    }

    /// Whether all chunks are unencrypted, of types, codecs and encodings of the format, and of the type that
    /// is expected of their column: row groups have a chunk for each of these.
    ///
    /// Costs a nanosecond a chunk.
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub fn are_readable(&self, types: &[i32]) -> bool {
        // Types of the format are 0 to 7.
        let type_of = |traits: &Traits| if traits.is_readable() { traits.physical_type } else { -1 };
        let readable: Vec<i32> = self.traits.list.iter().map(type_of).collect();
        if types.is_empty() || self.wide.iter().any(|(_, chunk)| !chunk.traits.is_readable()) {
            return false;
        }
        let mut rows = 0..self.packed.len();
        self.packed.chunks(types.len()).all(|group| {
            let all = group.iter().zip(types).zip(rows.by_ref());
            all.into_iter().all(|((row, &expected), at)| match row[3] & WIDE {
                0 => readable.get(usize::from((row[3] >> 32) as u16)) == Some(&expected),
                _ => self.get(at).traits.physical_type == expected,
            })
        })
    }

    /// Whether the dictionary pages of all chunks that state one can be where they say. If so, other readers find
    /// the pages of each chunk, too.
    ///
    /// Costs a nanosecond a chunk.
    #[cfg(any(feature = "parquet-59", feature = "parquet-60"))]
    pub fn have_possible_dictionaries(&self) -> bool {
        let states_one: Vec<bool> =
            self.traits.list.iter().map(|traits| traits.flags & HAS_DICTIONARY != 0).collect();
        let packed = self.packed.iter().all(|[data, _, counts, locator]| {
            locator & WIDE != 0
                || (1..*data as i64).contains(&distance_of(*counts))
                || states_one.get(usize::from((locator >> 32) as u16)) != Some(&true)
        });
        let possible = |chunk: &Chunk| chunk.traits.flags & HAS_DICTIONARY == 0 || has_dictionary(chunk);
        packed && self.wide.iter().all(|(_, chunk)| possible(chunk))
    }

    /// Keeps only the rows of the row groups whose entry in `keep` is true; each row group has `width` rows.
    pub fn retain_groups(&mut self, width: usize, keep: &[bool]) {
        let mut kept = 0;
        let mut wide = Vec::new();
        let mut old_wide = std::mem::take(&mut self.wide).into_iter().peekable();
        for (group, &keep) in keep.iter().enumerate() {
            let rows = group * width..(group + 1) * width;
            while let Some((row, chunk)) = old_wide.next_if(|(row, _)| (*row as usize) < rows.end) {
                if keep {
                    wide.push((row - (rows.start - kept) as u32, chunk));
                }
            }
            if keep {
                self.packed.copy_within(rows, kept);
                kept += width;
            }
        }
        self.packed.truncate(kept);
        self.wide = wide;
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.packed.capacity() * size_of::<Packed>()
            + self.traits.list.capacity() * size_of::<Traits>()
            + self.traits.places.capacity() * (size_of::<Traits>() + size_of::<u64>())
            + self.wide.capacity() * size_of::<(u32, Chunk)>()
    }
}
