//! Text of a drawn length: words, or letters of an alphabet.

use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::text::PADDING;
use crate::draw::text::words::Words;
use crate::error::Result;
use crate::random::rng::{Sequence, scale64};
use crate::spec_file::toml_reader::SpecNode;

/// The most letters of an alphabet.
const MAX_LETTERS: usize = 4096;

/// The most characters of a text.
const MAX_LENGTH: u32 = 1 << 20;

/// Text whose length in characters is drawn first.
#[derive(Debug)]
pub(crate) struct RandomText {
    lengths: Lengths,
    alphabet: Alphabet,
    /// The bytes that each of many texts may take: eight times the average, but not more than the longest. No text is
    /// longer than 4 MiB, so texts with 128 MiB in total exceed it with a probability below 10^-12.
    pub(crate) allowance: u64,
}

/// What texts are made of.
#[derive(Debug)]
enum Alphabet {
    Words,
    /// ASCII letters.
    Bytes(Vec<u8>),
    Letters(Vec<char>),
}

impl RandomText {
    /// Reads `{ length = ..., letters = "a-z" }`.
    pub(crate) fn read(node: SpecNode<'_>) -> Result<Self> {
        let table = node.table("text", &["length", "letters"])?;
        let length = table.need("length", "text")?;
        let lengths = Lengths::read_up_to(MAX_LENGTH, length, None, Nulls::Never)?;
        let advice = "write characters and ranges, like \"A-Za-z0-9 \"; - comes last";
        let letters =
            table.read("letters", advice, |node| node.string().and_then(letters).map(Alphabet::new))?;
        let mut text = RandomText { lengths, alphabet: letters.unwrap_or(Alphabet::Words), allowance: 0 };
        let share = (8.0 * text.mean_length() / f64::from(text.lengths.longest)).min(1.0);
        text.allowance = (share * text.longest() as f64).ceil() as u64;
        Ok(text)
    }

    /// Writes the text of `draw` and returns its length in bytes. `out` has room for
    /// [`longest`](Self::longest) and the padding.
    #[inline(always)]
    pub(crate) fn write(&self, words: &Words, draw: u64, out: &mut [u8]) -> usize {
        let mut random = Sequence::new(draw);
        let length = self.lengths.lengths[self.lengths.table.pick_fine(random.next()) as usize];
        let length = length.unwrap_or(0) as usize;
        match &self.alphabet {
            Alphabet::Words => words.of_length(&mut random, length, out),
            Alphabet::Bytes(letters) => {
                spell_padded(letters, &mut random, length, out);
                length
            }
            Alphabet::Letters(letters) => {
                let mut at = 0;
                for _ in 0..length {
                    let letter = letters[scale64(random.next(), letters.len() as u64) as usize];
                    at += letter.encode_utf8(&mut out[at..]).len();
                }
                at
            }
        }
    }

    /// The most bytes of a text.
    pub(crate) fn longest(&self) -> u64 {
        let widest = match &self.alphabet {
            Alphabet::Words | Alphabet::Bytes(_) => 1,
            Alphabet::Letters(letters) => letters.iter().map(|letter| letter.len_utf8()).max().unwrap_or(1),
        };
        u64::from(self.lengths.longest) * widest as u64
    }

    /// The average number of characters.
    pub(crate) fn mean_length(&self) -> f64 {
        self.lengths.mean()
    }
}

impl Alphabet {
    fn new(letters: Vec<char>) -> Self {
        match letters.iter().all(char::is_ascii) {
            true => Alphabet::Bytes(letters.into_iter().map(|letter| letter as u8).collect()),
            false => Alphabet::Letters(letters),
        }
    }
}

/// Fills `out` with letters of equal probability, [`LETTERS`] from each draw.
#[inline(always)]
pub(crate) fn spell(letters: &[u8], random: &mut Sequence, out: &mut [u8]) {
    out.chunks_mut(LETTERS).for_each(|piece| spell_piece(letters, random.next(), piece));
}

/// Writes `length` letters like [`spell`], without a branch that depends on how many letters the last draw has to
/// give: faster where the length is random. `out` has room for the letters and the padding.
#[inline(always)]
pub(crate) fn spell_padded(letters: &[u8], random: &mut Sequence, length: usize, out: &mut [u8]) {
    // What follows overwrites the letters behind the last one.
    for at in (0..length).step_by(LETTERS) {
        spell_piece(letters, random.next(), &mut out[at..at + LETTERS]);
    }
}

/// Writes the letters of one draw. It is a fraction; times the number of letters, its whole part is a letter and the
/// rest the next fraction. The last letter of a draw still has 15 bits more than it needs.
#[inline(always)]
fn spell_piece(letters: &[u8], mut fraction: u64, piece: &mut [u8]) {
    for out in piece {
        let product = u128::from(fraction) * letters.len() as u128;
        *out = letters[(product >> 64) as usize];
        fraction = product as u64;
    }
}

/// The letters from one draw.
const LETTERS: usize = 7;

// The last draw may give more letters than needed.
const _: () = assert!(PADDING >= LETTERS);

/// The characters of `"A-Za-z_"`; `None` without any, for a range that falls and for too many.
fn letters(text: &str) -> Option<Vec<char>> {
    let given: Vec<char> = text.chars().collect();
    let mut letters = Vec::new();
    let mut at = 0;
    while at < given.len() {
        let (first, last) = match given.get(at + 1..at + 3) {
            Some(['-', last]) => {
                at += 3;
                (given[at - 3], *last)
            }
            _ => {
                at += 1;
                (given[at - 1], given[at - 1])
            }
        };
        if first > last || u32::from(last) - u32::from(first) >= MAX_LETTERS as u32 {
            return None;
        }
        letters.extend(first..=last);
    }
    letters.sort_unstable();
    letters.dedup();
    (1..=MAX_LETTERS).contains(&letters.len()).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alphabet_has_characters_and_ranges() {
        assert_eq!(letters("a-cX"), Some(vec!['X', 'a', 'b', 'c']));
        assert_eq!(letters(" _-"), Some(vec![' ', '-', '_']));
        assert_eq!(letters("é"), Some(vec!['é']));
        for bad in ["", "z-a", "\u{20}-\u{10FFFF}"] {
            assert_eq!(letters(bad), None, "{bad}");
        }
    }

    #[test]
    fn letters_have_equal_probability_at_each_place() {
        let mut counts = [[0u32; 26]; LETTERS];
        for draw in 0..200_000 {
            let mut out = [0; LETTERS];
            spell(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", &mut Sequence::new(draw), &mut out);
            for (counts, letter) in counts.iter_mut().zip(out) {
                counts[usize::from(letter - b'A')] += 1;
            }
        }
        let expected = 200_000.0 / 26.0;
        for counts in counts {
            let chi_square: f64 = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
            // 25 degrees of freedom: one of ten thousand fair samples exceeds this.
            assert!(chi_square < 60.1, "{chi_square}");
        }
    }
}
