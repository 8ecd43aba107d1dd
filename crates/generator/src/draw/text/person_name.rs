//! Names of people, "First Last", drawn from two word lists.
//!
//! A name is stored as a code: the rank of the first name in the upper 16 bits, the rank of the last name in the
//! lower 16 bits. The lists are sorted, and a space sorts before every letter, so codes sort like names: the
//! smallest code of a page is its smallest name.
//!
//! A column chunk with many more values than names uses a dictionary of all names. It is known in advance and
//! the same for every chunk: an index is then the code without its gaps.

use std::sync::LazyLock;

use crate::encode::thrift::varint;
use crate::random::instruction_sets::widest;
use crate::random::rng::{Stream, scale32};

/// A word, padded to a fixed size for fast copies.
#[derive(Clone, Copy, Debug)]
struct Word {
    bytes: [u8; WORD],
    len: u8,
}

/// The longest word, with the space after a first name.
const WORD: usize = 16;

#[derive(Debug)]
struct Lists {
    first: Vec<Word>,
    last: Vec<Word>,
    /// The lengths of the words; any byte is a valid index.
    first_lengths: [u32; 256],
    last_lengths: [u32; 256],
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let words = |text: &str, end: &str| {
        text.lines()
            .map(|line| {
                let mut bytes = [0; WORD];
                let len = line.len() + end.len();
                bytes[..line.len()].copy_from_slice(line.as_bytes());
                bytes[line.len()..len].copy_from_slice(end.as_bytes());
                Word { bytes, len: len as u8 }
            })
            .collect::<Vec<_>>()
    };
    let lengths =
        |words: &[Word]| std::array::from_fn(|i| words.get(i).map_or(0, |word| u32::from(word.len)));
    let first = words(include_str!("../../../datasets/first_names.txt"), " ");
    let last = words(include_str!("../../../datasets/last_names.txt"), "");
    Lists { first_lengths: lengths(&first), last_lengths: lengths(&last), first, last }
});

/// Fills `codes` with names. First names, like last names, all have the same probability.
pub(crate) fn draw(stream: Stream, codes: &mut [u32]) {
    fill(stream, LISTS.first.len() as u32, LISTS.last.len() as u32, codes);
}

widest! {
fn fill(stream: Stream, first: u32, last: u32, codes: &mut [u32]) {
    for (i, code) in codes.iter_mut().enumerate() {
        let draw = stream.draw(i as u64);
        *code = scale32(draw as u32, first).0 << 16 | scale32((draw >> 32) as u32, last).0;
    }
}
}

/// All names, sorted, in the format of a dictionary page.
static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let (first, last) = (LISTS.first.len() as u32, LISTS.last.len() as u32);
    let codes: Vec<u32> = (0..first).flat_map(|f| (0..last).map(move |l| f << 16 | l)).collect();
    let mut out = Vec::new();
    render_plain(&codes, &mut out);
    out
});

/// The number of names.
pub(crate) fn count() -> usize {
    LISTS.first.len() * LISTS.last.len()
}

/// All names, each after its length.
pub(crate) fn dictionary() -> &'static [u8] {
    &DICTIONARY
}

/// Whether a column chunk with `values` values is smaller with the dictionary of all names: an index and a
/// share of the dictionary then take less than a name, with a margin for estimates. It is also faster.
pub(crate) fn dictionary_pays_off(values: f64) -> bool {
    values >= 1.25 * count() as f64
}

/// Bits of an index into the dictionary of all names.
pub(crate) const INDEX_BITS: usize = 16;

/// Appends the width of an index, then the indices of `codes` as one bit-packed run. Returns the total length
/// of the names.
pub(crate) fn encode_indices(codes: &[u32], out: &mut Vec<u8>) -> usize {
    out.push(INDEX_BITS as u8);
    if codes.is_empty() {
        return 0;
    }
    let groups = codes.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let at = out.len();
    out.resize(at + groups * INDEX_BITS, 0);
    pack(&LISTS, codes, &mut out[at..])
}

widest! {
/// Writes the indices of `codes`, two bytes each. Returns the total length of the names.
fn pack(lists: &Lists, codes: &[u32], out: &mut [u8]) -> usize {
    let last_words = lists.last.len() as u32;
    let mut bytes = 0;
    for (code, out) in codes.iter().zip(out.chunks_exact_mut(2)) {
        let (first, last) = (code >> 16, code & 0xFFFF);
        out.copy_from_slice(&((first * last_words + last) as u16).to_le_bytes());
        let length = lists.first_lengths[usize::from(first as u8)] + lists.last_lengths[usize::from(last as u8)];
        bytes += u64::from(length);
    }
    bytes as usize
}
}

/// Appends the name of `code`.
pub(crate) fn render(code: u32, out: &mut Vec<u8>) {
    let lists = &*LISTS;
    let (first, last) = (&lists.first[(code >> 16) as usize], &lists.last[(code & 0xFFFF) as usize]);
    out.extend_from_slice(&first.bytes[..first.len.into()]);
    out.extend_from_slice(&last.bytes[..last.len.into()]);
}

/// The names as they begin an e-mail address: `first.last`, in small letters.
#[derive(Debug)]
pub(crate) struct Addresses {
    first: Vec<Word>,
    last: Vec<Word>,
}

static ADDRESSES: LazyLock<Addresses> = LazyLock::new(|| {
    let small = |words: &[Word]| {
        let byte = |byte: u8| if byte == b' ' { b'.' } else { byte.to_ascii_lowercase() };
        words.iter().map(|word| Word { bytes: word.bytes.map(byte), len: word.len }).collect()
    };
    Addresses { first: small(&LISTS.first), last: small(&LISTS.last) }
});

impl Addresses {
    /// The most bytes of a name with its padding.
    pub(crate) const MAX_LENGTH: usize = 2 * WORD;

    /// The names: look them up once, not for each value.
    pub(crate) fn get() -> &'static Self {
        &ADDRESSES
    }

    /// Writes the name of `code` and returns its length. `out` has room for [`MAX_LENGTH`](Self::MAX_LENGTH).
    #[inline(always)]
    pub(crate) fn write(&self, code: u32, out: &mut [u8]) -> usize {
        let (first, last) = (&self.first[(code >> 16) as usize], &self.last[(code & 0xFFFF) as usize]);
        let (first_len, last_len) = (usize::from(first.len), usize::from(last.len));
        out[..WORD].copy_from_slice(&first.bytes);
        out[first_len..first_len + WORD].copy_from_slice(&last.bytes);
        first_len + last_len
    }
}

/// Appends the names of `codes` PLAIN-encoded, each after its length. Returns the total length of the names.
pub(crate) fn render_plain(codes: &[u32], out: &mut Vec<u8>) -> usize {
    let lists = &*LISTS;
    let before = out.len();
    out.resize(before + codes.len() * (4 + 2 * WORD), 0);
    let at = before + write(&lists.first, &lists.last, codes, &mut out[before..]);
    out.truncate(at);
    at - before - 4 * codes.len()
}

widest! {
/// Writes the names of `codes`, each after its length, and returns the number of bytes written. `out` must
/// have room for the longest names.
fn write(first: &[Word], last: &[Word], codes: &[u32], out: &mut [u8]) -> usize {
    let mut at = 0;
    for &code in codes {
        let (first, last) = (&first[(code >> 16) as usize], &last[(code & 0xFFFF) as usize]);
        let (first_len, last_len) = (usize::from(first.len), usize::from(last.len));
        // Both words are copied at full width; the next record overwrites the padding.
        let record = &mut out[at..at + 4 + 2 * WORD];
        record[..4].copy_from_slice(&((first_len + last_len) as u32).to_le_bytes());
        record[4..4 + WORD].copy_from_slice(&first.bytes);
        record[4 + first_len..4 + first_len + WORD].copy_from_slice(&last.bytes);
        at += 4 + first_len + last_len;
    }
    at
}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_lists_are_sorted_and_their_words_fit() {
        for text in [
            include_str!("../../../datasets/first_names.txt"),
            include_str!("../../../datasets/last_names.txt"),
        ] {
            let words: Vec<&str> = text.lines().collect();
            assert!(words.is_sorted() && words.len() > 190 && words.len() <= 256);
            assert!(words.iter().all(|w| w.len() < WORD && w.bytes().all(|b| b.is_ascii_alphabetic())));
        }
    }

    #[test]
    fn an_index_points_to_its_name_in_the_dictionary() {
        assert!((1 << (INDEX_BITS - 1)..=1 << INDEX_BITS).contains(&count()));
        let mut names = Vec::new();
        let mut rest = dictionary();
        while let Some((length, behind)) = rest.split_first_chunk() {
            let (name, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            names.push(name);
            rest = behind;
        }
        assert_eq!(names.len(), count());
        assert!(names.is_sorted());
        let mut codes = vec![0; 1003];
        draw(Stream::new(1, 2, 3), &mut codes);
        let mut page = Vec::new();
        let bytes = encode_indices(&codes, &mut page);
        // The width, then (126 groups of 8) << 1 | 1 as a varint.
        assert_eq!(page[..3], [16, 0xFD, 0x01]);
        let indices = page[3..].chunks(2).map(|i| usize::from(u16::from_le_bytes([i[0], i[1]])));
        let mut rendered = Vec::new();
        for (code, index) in codes.iter().zip(indices) {
            let mut name = Vec::new();
            render(*code, &mut name);
            assert_eq!(name, names[index]);
            rendered.extend(name);
        }
        assert_eq!(bytes, rendered.len());
        assert_eq!(page.len(), 3 + 126 * 16);
    }

    #[test]
    fn codes_sort_like_names_and_render_the_same_alone_and_together() {
        let mut codes = vec![0; 1000];
        draw(Stream::new(1, 2, 3), &mut codes);
        codes.sort_unstable();
        let names: Vec<Vec<u8>> = codes
            .iter()
            .map(|&code| {
                let mut name = Vec::new();
                render(code, &mut name);
                name
            })
            .collect();
        assert!(names.is_sorted());
        let mut plain = Vec::new();
        let bytes = render_plain(&codes, &mut plain);
        assert_eq!(bytes, names.iter().map(Vec::len).sum::<usize>());
        let each: Vec<u8> =
            names.iter().flat_map(|n| (n.len() as u32).to_le_bytes().into_iter().chain(n.clone())).collect();
        assert_eq!(plain, each);
    }
}
