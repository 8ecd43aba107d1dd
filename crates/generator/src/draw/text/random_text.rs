//! Text of a drawn length: words, or letters of an alphabet.

use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::text::words;
use crate::error::Error;
use crate::random::rng::{Sequence, scale64};
use crate::spec_file::toml_reader::SpecNode;

/// The most letters of an alphabet.
const MOST_LETTERS: usize = 4096;

/// The most characters of a text.
const LONGEST: u32 = 1 << 20;

/// Text whose length in characters is drawn first.
#[derive(Debug)]
pub(crate) struct RandomText {
    lengths: Lengths,
    /// The alphabet; words if it is empty.
    letters: Vec<char>,
}

impl RandomText {
    /// Reads `{ length = ..., letters = "a-z" }`.
    pub(crate) fn read(node: SpecNode<'_>, path: &str) -> Result<Self, Error> {
        let table = node.table(path, "text", &["length", "letters"])?;
        let length = table.need("length", path, "text")?;
        let lengths = Lengths::read_up_to(LONGEST, length, None, Nulls::Never, path)?;
        let letters = match table.get("letters") {
            None => Vec::new(),
            Some(node) => node.string().and_then(alphabet).ok_or_else(|| {
                let what = format!("`letters = {}`", node.described());
                node.error(path, what, "write characters and ranges, like \"A-Za-z0-9 \"; - comes last")
            })?,
        };
        Ok(RandomText { lengths, letters })
    }

    /// Appends the text of `draw`.
    pub(crate) fn render(&self, draw: u64, out: &mut Vec<u8>) {
        let mut random = Sequence::new(draw);
        let length = self.lengths.lengths[self.lengths.table.pick_fine(random.next()) as usize];
        let length = length.unwrap_or(0) as usize;
        if self.letters.is_empty() {
            words::of_length(&mut random, length, out);
            return;
        }
        let mut utf8 = [0; 4];
        for _ in 0..length {
            let letter = self.letters[scale64(random.next(), self.letters.len() as u64) as usize];
            out.extend_from_slice(letter.encode_utf8(&mut utf8).as_bytes());
        }
    }

    /// The most bytes of a text.
    pub(crate) fn longest(&self) -> u64 {
        let widest = self.letters.iter().map(|letter| letter.len_utf8()).max().unwrap_or(1);
        u64::from(self.lengths.longest) * widest as u64
    }

    /// The average number of characters.
    pub(crate) fn mean_length(&self) -> f64 {
        self.lengths.mean()
    }
}

/// The characters of `"A-Za-z_"`; `None` without any, for a range that falls and for too many.
fn alphabet(text: &str) -> Option<Vec<char>> {
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
        if first > last || u32::from(last) - u32::from(first) >= MOST_LETTERS as u32 {
            return None;
        }
        letters.extend(first..=last);
    }
    letters.sort_unstable();
    letters.dedup();
    (1..=MOST_LETTERS).contains(&letters.len()).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alphabet_has_characters_and_ranges() {
        assert_eq!(alphabet("a-cX"), Some(vec!['X', 'a', 'b', 'c']));
        assert_eq!(alphabet(" _-"), Some(vec![' ', '-', '_']));
        assert_eq!(alphabet("é"), Some(vec!['é']));
        for bad in ["", "z-a", "\u{20}-\u{10FFFF}"] {
            assert_eq!(alphabet(bad), None, "{bad}");
        }
    }

    #[test]
    fn words_fill_the_length_exactly() {
        for length in 0..100 {
            let mut out = Vec::new();
            words::of_length(&mut Sequence::new(length), length as usize, &mut out);
            assert_eq!(out.len(), length as usize);
            assert!(!out.starts_with(b" ") && !out.ends_with(b" "), "{:?}", String::from_utf8_lossy(&out));
        }
    }
}
