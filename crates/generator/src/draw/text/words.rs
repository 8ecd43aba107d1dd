//! Words of a small dictionary, with realistic frequencies.

use std::sync::LazyLock;

use crate::draw::text::PADDING;
use crate::random::rng::{Sequence, scale64};
use crate::random::weights::Weights;

/// The bytes that copying a word writes: the longest word.
const WORD: usize = 8;

/// A word, padded for copies of a fixed size.
#[derive(Clone, Copy, Debug)]
struct Word {
    bytes: [u8; WORD],
    length: u8,
}

/// The dictionary.
#[derive(Debug)]
pub(crate) struct Words {
    /// From the most to the least frequent.
    words: Vec<Word>,
    table: Weights,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let words: Vec<Word> = (include_str!("../../../datasets/words.txt").lines())
        .map(|line| {
            let mut bytes = [0; WORD];
            bytes[..line.len()].copy_from_slice(line.as_bytes());
            Word { bytes, length: line.len() as u8 }
        })
        .collect();
    // Zipf's law of word frequencies, exponent 1.
    let weights: Vec<f64> = (1..=words.len()).map(|k| 1.0 / k as f64).collect();
    // Positive weights are always a valid distribution.
    let table = Weights::new(&weights).unwrap_or_else(|_| unreachable!("the word list is not empty"));
    Words { words, table }
});

impl Words {
    /// The dictionary: look it up once, not for each value.
    pub(crate) fn get() -> &'static Self {
        &WORDS
    }

    #[inline(always)]
    fn draw(&self, random: &mut Sequence) -> Word {
        self.words[self.table.pick(random.next() as u32) as usize]
    }

    /// Writes from `least` to `most` words and returns their length. `out` has room for
    /// [`longest`](Self::longest) and the padding.
    #[inline(always)]
    pub(crate) fn some(&self, draw: u64, (least, most): (u32, u32), out: &mut [u8]) -> usize {
        let mut random = Sequence::new(draw);
        let n = u64::from(least) + scale64(random.next(), u64::from(most - least) + 1);
        let mut at = 0;
        for _ in 0..n {
            at += self.write(&mut random, &mut out[at..]);
        }
        // Without the space after the last word.
        at.saturating_sub(1)
    }

    /// Writes words of `length` characters in total; the last one is cut. `out` has room for `length` and the
    /// padding.
    #[inline(always)]
    pub(crate) fn of_length(&self, random: &mut Sequence, length: usize, out: &mut [u8]) -> usize {
        let mut at = 0;
        while at < length {
            at += self.write(random, &mut out[at..]);
        }
        // A space cannot be the last character.
        if at == length && length > 0 {
            out[length - 1] = b'.';
        }
        length
    }

    /// Writes a word and the space after it, and returns the length of both.
    #[inline(always)]
    fn write(&self, random: &mut Sequence, out: &mut [u8]) -> usize {
        let word = self.draw(random);
        out[..WORD].copy_from_slice(&word.bytes);
        out[usize::from(word.length)] = b' ';
        usize::from(word.length) + 1
    }

    /// The average length in bytes of a word drawn by [`some`](Self::some).
    pub(crate) fn mean(&self) -> f64 {
        self.words.iter().zip(self.table.probabilities()).map(|(word, p)| f64::from(word.length) * p).sum()
    }

    /// The most bytes of `most` words and the spaces between and after them.
    pub(crate) fn longest(&self, most: u32) -> u64 {
        let word = self.words.iter().map(|word| word.length).max().unwrap_or(0);
        u64::from(most) * (u64::from(word) + 1)
    }
}

// A word may be followed by its space.
const _: () = assert!(PADDING > WORD);

#[cfg(test)]
mod tests {
    use super::*;

    fn text(room: usize, make: impl FnOnce(&mut [u8]) -> usize) -> String {
        let mut out = vec![0; room + PADDING];
        let length = make(&mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_number_of_words_is_within_the_bounds() {
        let words = Words::get();
        for draw in 0..200 {
            let n = text(words.longest(5) as usize, |out| words.some(draw, (2, 5), out)).split(' ').count();
            assert!((2..=5).contains(&n));
        }
        assert_eq!(text(0, |out| words.some(1, (0, 0), out)), "");
    }

    #[test]
    fn words_fill_the_length_exactly() {
        for length in 0..100 {
            let random = &mut Sequence::new(length as u64);
            let text = text(length, |out| Words::get().of_length(random, length, out));
            assert_eq!(text.len(), length);
            assert!(!text.starts_with(' ') && !text.ends_with(' '), "{text:?}");
        }
    }
}
