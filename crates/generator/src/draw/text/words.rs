//! Words of a small dictionary, with realistic frequencies.

use std::sync::LazyLock;

use crate::draw::text::PADDING;
use crate::random::instruction_sets::widest;
use crate::random::rng::{Sequence, Stream, scale64};
use crate::random::weights::Weights;
use crate::shred::value_buffer::ByteStrings;

/// The bytes that copying a word writes: the longest word, its space and the length.
const WORD: usize = 16;

/// A word and the space after it, padded for copies of a fixed size. The last byte is the length of both.
#[derive(Debug)]
struct Word([u8; WORD]);

impl Word {
    #[inline(always)]
    fn length(&self) -> usize {
        usize::from(self.0[WORD - 1])
    }
}

/// The most words drawn at once.
const DRAWN: usize = 4096;

/// How many words of a text are drawn side by side.
const SIDE_BY_SIDE: usize = 8;

/// Marks the last word of a text.
const LAST: u32 = 1 << 31;

/// The dictionary.
#[derive(Debug)]
pub(crate) struct Words {
    /// From the most to the least frequent.
    words: Vec<Word>,
    /// The length of the longest one and its space.
    longest: usize,
    table: Weights,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let words: Vec<Word> = (include_str!("../../../datasets/words.txt").lines())
        .map(|line| {
            let mut bytes = [b' '; WORD];
            bytes[..line.len()].copy_from_slice(line.as_bytes());
            bytes[WORD - 1] = line.len() as u8 + 1;
            Word(bytes)
        })
        .collect();
    // Zipf's law of word frequencies, exponent 1.
    let weights: Vec<f64> = (1..=words.len()).map(|k| 1.0 / k as f64).collect();
    // Positive weights are always a valid distribution.
    let table = Weights::new(&weights).unwrap_or_else(|_| unreachable!("the word list is not empty"));
    let longest = words.iter().map(|word| word.length()).max().unwrap_or(0);
    Words { words, longest, table }
});

impl Words {
    /// The dictionary: look it up once, not for each value.
    pub(crate) fn get() -> &'static Self {
        &WORDS
    }

    #[inline(always)]
    fn draw(&self, random: &mut Sequence) -> &Word {
        &self.words[self.table.pick(random.next() as u32) as usize]
    }

    /// Appends `n` texts of `least` to `most` words, one for each draw of the stream.
    pub(crate) fn texts(&self, stream: Stream, n: usize, (least, most): (u32, u32), out: &mut ByteStrings) {
        let mut words = Vec::new();
        // Texts without words have no last one.
        let together = if least == 0 { 0 } else { DRAWN / most.max(1) as usize };
        let mut first = 0;
        while first < n && together > 0 {
            let texts = together.min(n - first);
            let from = out.ends.len();
            draw_words((least, most), stream.skip(first as u64), texts, &mut words, &mut out.ends);
            let ends = &mut out.ends[from..];
            self.table.replace(&mut words);
            ends.iter().for_each(|end| words[*end as usize - 1] |= LAST);
            let at = out.data.len();
            out.data.resize(at + words.len() * self.longest + PADDING, 0);
            let end = copy_words(&self.words, &words, at, &mut out.data, ends);
            out.data.truncate(end);
            first += texts;
        }
        for i in first..n {
            let at = out.data.len();
            out.data.resize(at + self.longest(most) as usize + PADDING, 0);
            let length = self.some(stream.draw(i as u64), (least, most), &mut out.data[at..]);
            out.data.truncate(at + length);
            out.push_end();
        }
    }

    /// Writes from `least` to `most` words and returns their length. `out` has room for
    /// [`longest`](Self::longest) and the padding.
    fn some(&self, draw: u64, bounds: (u32, u32), out: &mut [u8]) -> usize {
        let mut random = Sequence::new(draw);
        let mut at = 0;
        for _ in 0..count(bounds, random.next()) {
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
        out[..WORD].copy_from_slice(&word.0);
        word.length()
    }

    /// The average length in bytes of a word drawn by [`some`](Self::some).
    pub(crate) fn mean(&self) -> f64 {
        self.words
            .iter()
            .zip(self.table.probabilities())
            .map(|(word, p)| (word.length() - 1) as f64 * p)
            .sum()
    }

    /// The most bytes of `most` words and the spaces between and after them.
    pub(crate) fn longest(&self, most: u32) -> u64 {
        u64::from(most) * self.longest as u64
    }
}

/// The number of words of a text.
#[inline(always)]
fn count((least, most): (u32, u32), draw: u64) -> u64 {
    u64::from(least) + scale64(draw, u64::from(most - least) + 1)
}

widest! {
/// Draws the words of `n` texts, 32 bits each, and appends the number of words up to the end of each text to `ends`.
/// No branch depends on the number of words of a text, unless it has many.
fn draw_words(bounds: (u32, u32), stream: Stream, n: usize, words: &mut Vec<u32>, ends: &mut Vec<u32>) {
    words.clear();
    words.resize(n * bounds.1 as usize + SIDE_BY_SIDE, 0);
    let many = bounds.1 as usize > SIDE_BY_SIDE;
    let mut at = 0;
    for i in 0..n {
        let text = Stream::from_draw(stream.draw(i as u64));
        let n = count(bounds, text.draw(0)) as usize;
        let eight = |from: usize| -> [u32; SIDE_BY_SIDE] {
            std::array::from_fn(|j| text.draw((from + j) as u64 + 1) as u32)
        };
        words[at..at + SIDE_BY_SIDE].copy_from_slice(&eight(0));
        if many {
            for from in (SIDE_BY_SIDE..n).step_by(SIDE_BY_SIDE) {
                words[at + from..at + from + SIDE_BY_SIDE].copy_from_slice(&eight(from));
            }
        }
        at += n;
        ends.push(at as u32);
    }
    words.truncate(at);
}
}

widest! {
/// Writes words to `out` from `at` on, without the spaces after marked ones, and where each text ends to `ends`.
/// Returns the end of the last one.
fn copy_words(list: &[Word], words: &[u32], at: usize, out: &mut [u8], ends: &mut [u32]) -> usize {
    let (mut at, mut text) = (at, 0);
    for marked in words {
        let word = &list[(marked & !LAST) as usize];
        out[at..at + WORD].copy_from_slice(&word.0);
        let last = usize::from(marked & LAST != 0);
        at += word.length() - last;
        // Until its last word, a text ends here.
        ends[text] = at as u32;
        text += last;
    }
    at
}
}

// A word is copied with its padding.
const _: () = assert!(PADDING >= WORD);

#[cfg(test)]
mod tests {
    use super::*;

    fn text(room: usize, make: impl FnOnce(&mut [u8]) -> usize) -> String {
        let mut out = vec![0; room + PADDING];
        let length = make(&mut out);
        String::from_utf8(out[..length].to_vec()).unwrap()
    }

    #[test]
    fn texts_drawn_together_are_those_drawn_alone() {
        let words = Words::get();
        let stream = Stream::new(1, 2, 3);
        for bounds in [(0, 3), (1, 1), (3, 8), (1, 40), (900, 1000)] {
            let mut together = ByteStrings::default();
            words.texts(stream, 1500, bounds, &mut together);
            let alone = (0..1500).map(|i| {
                text(words.longest(bounds.1) as usize, |out| words.some(stream.draw(i), bounds, out))
            });
            let together = together.iter().map(|text| String::from_utf8(text.to_vec()).unwrap());
            assert!(together.eq(alone), "{bounds:?}");
        }
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
