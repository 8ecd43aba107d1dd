//! The text that comments of TPC-H are cut from: 300 MiB of sentences. A block is made when a comment
//! needs it.
//!
//! (TPC-H 4.2.2.13 and 4.2.2.14.) All sentences are drawn from one sequence of random numbers, a number for each
//! word and phrase. Where each block begins in that sequence is listed in `text_blocks.bin`; all else is computed
//! from the grammar. So threads make different blocks at the same time, and blocks that no comment needs are not
//! made. At a small scale, whose comments need little of each block, only marks in the text are kept.

use std::sync::{LazyLock, OnceLock};

use tpchgen::distribution::{Distribution, Distributions};

use crate::benchmark::stream::{Stream, draw_below};
use crate::shred::block::LeafBuffer;
use crate::shred::value_buffer::ValueBuffer;

/// Bytes of the whole text.
const TEXT: usize = 300 << 20;
/// Bytes of a block, which takes less than half a millisecond to make.
const BLOCK: usize = 256 << 10;
const BLOCKS: usize = TEXT / BLOCK;
/// Bytes of the next block that a block repeats, so that every comment in it is whole: the longest have 198 bytes.
const OVERLAP: usize = 256;
/// Room for a sentence: the longest has 148 bytes.
const SENTENCE: usize = 256;
/// The bytes from mark to mark; no sentence is as long.
const STEP: usize = 256;
/// Below this scale, comments are made from marks.
const MIN_SCALE: f64 = 0.02;
/// Bytes that are copied for a word of any length; the longest has 14 and a blank.
const WORD: usize = 16;

/// For each block, the sentence that covers its first byte: four bytes are the random number before it, two the number
/// of its bytes before the block.
static STARTS: &[u8; 6 * BLOCKS] = include_bytes!("text_blocks.bin");

/// A word and what follows it.
#[derive(Clone, Copy, Default)]
struct Word {
    bytes: [u8; WORD],
    length: u8,
}

/// Words with weights.
struct Words {
    words: Vec<Word>,
    /// The index of the word for each number that can be drawn.
    by_weight: Vec<u8>,
}

impl Words {
    /// The words of a distribution, each followed by `end`.
    fn new(distribution: &Distribution, end: &str) -> Self {
        let mut words = Words { words: Vec::new(), by_weight: Vec::new() };
        for (i, text) in distribution.get_values().iter().enumerate() {
            let mut word = Word::default();
            for (to, from) in word.bytes.iter_mut().zip(text.bytes().chain(end.bytes())) {
                *to = from;
                word.length += 1;
            }
            words.words.push(word);
            words.by_weight.resize(distribution.get_weight(i) as usize, i as u8);
        }
        words
    }

    #[inline]
    fn draw(&self, seed: &mut u64) -> usize {
        usize::from(self.by_weight[draw_below(seed, self.by_weight.len() as u64) as usize])
    }

    /// Writes a word at `at`; returns its end.
    #[inline]
    fn write(&self, seed: &mut u64, text: &mut [u8], at: usize) -> usize {
        let word = &self.words[self.draw(seed)];
        text[at..at + WORD].copy_from_slice(&word.bytes);
        at + usize::from(word.length)
    }
}

/// Phrases with weights, each a list of lists of words.
struct Phrases {
    phrases: Words,
    words: Vec<Vec<&'static Words>>,
}

impl Phrases {
    fn new(distribution: &Distribution) -> Self {
        let phrase = |letters: &&str| {
            let mut words: Vec<&'static Words> = Vec::new();
            for letter in letters.chars() {
                let Some(found) = LETTERS.find(letter).map(|place| &VOCABULARY[place]) else { continue };
                // "J, J N": the comma stands where the blank behind the adjective would.
                match words.last_mut().filter(|_| letter == ',') {
                    Some(last) => *last = found,
                    None => words.push(found),
                }
            }
            words
        };
        let words = distribution.get_values().iter().map(phrase).collect();
        Phrases { phrases: Words::new(distribution, ""), words }
    }

    #[inline]
    fn write(&self, seed: &mut u64, text: &mut [u8], at: usize) -> usize {
        self.words[self.phrases.draw(seed)].iter().fold(at, |at, words| words.write(seed, text, at))
    }
}

/// The letters of [`VOCABULARY`]: nouns, adjectives, listed ones, adverbs, verbs, auxiliaries, prepositions,
/// terminators.
const LETTERS: &str = "NJ,DVXPT";

static VOCABULARY: LazyLock<[Words; LETTERS.len()]> = LazyLock::new(|| {
    let known = Distributions::static_default();
    [
        Words::new(known.nouns(), " "),
        Words::new(known.adjectives(), " "),
        Words::new(known.adjectives(), ", "),
        Words::new(known.adverbs(), " "),
        Words::new(known.verbs(), " "),
        Words::new(known.auxiliaries(), " "),
        Words::new(known.prepositions(), " "),
        Words::new(known.terminators(), " "),
    ]
});

struct Grammar {
    sentences: Words,
    /// The letters of each sentence: noun phrase, verb phrase, preposition, terminator.
    letters: Vec<Vec<u8>>,
    nouns: Phrases,
    verbs: Phrases,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let known = Distributions::static_default();
    let letters = |sentence: &&str| sentence.bytes().filter(|letter| *letter != b' ').collect();
    Grammar {
        sentences: Words::new(known.grammar(), ""),
        letters: known.grammar().get_values().iter().map(letters).collect(),
        nouns: Phrases::new(known.noun_phrase()),
        verbs: Phrases::new(known.verb_phrase()),
    }
});

impl Grammar {
    /// Writes a sentence at `at`; returns its end.
    #[inline]
    fn sentence(&self, seed: &mut u64, text: &mut [u8], mut at: usize) -> usize {
        let [.., prepositions, terminators] = &*VOCABULARY;
        for letter in &self.letters[self.sentences.draw(seed)] {
            at = match letter {
                b'N' => self.nouns.write(seed, text, at),
                b'V' => self.verbs.write(seed, text, at),
                b'P' => {
                    at = prepositions.write(seed, text, at);
                    text[at..at + 4].copy_from_slice(b"the ");
                    self.nouns.write(seed, text, at + 4)
                }
                // A terminator takes the place of the blank behind the last word.
                _ => terminators.write(seed, text, at.saturating_sub(1)),
            };
        }
        at
    }

    /// Writes whole sentences, at least `wanted` bytes.
    fn sentences(&self, mut seed: u64, wanted: usize, text: &mut Vec<u8>) {
        text.resize(wanted + SENTENCE + WORD, 0);
        let mut at = 0;
        while at < wanted {
            at = self.sentence(&mut seed, text, at);
        }
    }
}

/// The random number before a block's first sentence, and how many bytes of it are before the block.
fn start(index: usize) -> (u64, usize) {
    let [a, b, c, d, e, f] = STARTS.as_chunks().0[index];
    (u32::from_le_bytes([a, b, c, d]).into(), u16::from_le_bytes([e, f]).into())
}

/// A part of the text, and the beginning of the next.
struct Block {
    /// Whole sentences.
    text: Vec<u8>,
    /// Where the block begins in them.
    start: usize,
}

impl Block {
    /// A block, made by the first thread that asks for it.
    #[inline]
    fn get(index: usize) -> &'static Block {
        static BLOCKS_MADE: [OnceLock<Block>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
        BLOCKS_MADE[index].get_or_init(|| {
            let ((seed, start), mut text) = (start(index), Vec::new());
            GRAMMAR.sentences(seed, start + BLOCK + OVERLAP, &mut text);
            Block { text, start }
        })
    }
}

/// Where a comment is in the text, and its length.
type Span = (u32, u32);

/// The bytes of a comment.
#[inline]
fn bytes((start, length): Span) -> &'static [u8] {
    let block = Block::get(start as usize / BLOCK);
    let start = block.start + start as usize % BLOCK;
    &block.text[start..start + length as usize]
}

/// Sentences of a block: the place of each, and the random number before it.
fn marks(index: usize) -> &'static [(u32, u32)] {
    static MARKS: [OnceLock<Vec<(u32, u32)>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
    MARKS[index].get_or_init(|| {
        let (mut seed, start) = start(index);
        let (mut at, mut marks, mut text) = (0, Vec::new(), [0; SENTENCE + WORD]);
        while at < start + BLOCK {
            if at / STEP >= marks.len() {
                marks.push((at as u32, seed as u32));
            }
            at += GRAMMAR.sentence(&mut seed, &mut text, 0);
        }
        marks
    })
}

/// Appends the bytes of a comment, without its block.
fn append_made((first, length): Span, text: &mut Vec<u8>, out: &mut Vec<u8>) {
    let index = first as usize / BLOCK;
    let (place, length) = (start(index).1 + first as usize % BLOCK, length as usize);
    // The mark of this step may be behind the place; the one before is not.
    let (marks, step) = (marks(index), place / STEP);
    let is_behind = marks.get(step).is_none_or(|(at, _)| *at as usize > place);
    let (at, seed) = marks[step - usize::from(is_behind)];
    let skipped = place - at as usize;
    GRAMMAR.sentences(seed.into(), skipped + length, text);
    out.extend_from_slice(&text[skipped..][..length]);
}

/// The comments of a table: pieces of the text, drawn from a stream.
#[derive(Clone, Debug)]
pub(crate) struct Comments {
    stream: Stream,
    shortest: u64,
    longest: u64,
    /// Whether they are so few that blocks do not pay.
    few: bool,
    spans: Vec<Span>,
}

impl Comments {
    /// The comments of a table at `scale` whose keys have up to `rows_a_key` rows each, from key `key` on, counted from 0.
    pub(crate) fn new(scale: f64, seed: u64, average: i32, rows_a_key: usize, key: u64) -> Self {
        let length = |factor: f64| (f64::from(average) * factor) as u64;
        let stream = Stream::new(seed, 2 * rows_a_key, key);
        let few = scale < MIN_SCALE;
        Comments { stream, shortest: length(0.4), longest: length(1.6), few, spans: Vec::new() }
    }

    /// Draws the next comment.
    #[inline]
    pub(crate) fn draw(&mut self) {
        let start = self.stream.below_wide(TEXT as u64 - self.longest + 1);
        let length = self.shortest + self.stream.below(self.longest - self.shortest + 1);
        self.spans.push((start as u32, length as u32));
    }

    /// Ends the rows of a key.
    #[inline]
    pub(crate) fn next_key(&mut self) {
        self.stream.next_row();
    }

    /// Appends the comments that were drawn since the last call. Each is a cache miss; one after the other the
    /// processor waits for many at the same time.
    pub(crate) fn append(&mut self, leaf: &mut LeafBuffer) {
        if let ValueBuffer::Bytes(strings) = &mut leaf.values {
            strings.data.reserve(self.spans.len() * self.longest as usize);
            let mut text = Vec::new();
            for span in &self.spans {
                match self.few {
                    true => append_made(*span, &mut text, &mut strings.data),
                    false => strings.data.extend_from_slice(bytes(*span)),
                }
                strings.push_end();
            }
        }
        self.forget();
    }

    /// Drops the comments that were drawn since the last call.
    pub(crate) fn forget(&mut self) {
        self.spans.clear();
    }
}

#[cfg(test)]
mod tests {
    use tpchgen::text::TextPool;

    use super::*;

    /// Makes the list of blocks: the whole sequence of sentences, one after the other.
    fn starts() -> Vec<u8> {
        let mut seed = 933_588_178;
        let mut text = vec![0; SENTENCE + WORD];
        let mut starts = Vec::new();
        let (mut at, mut block) = (0, 0);
        while block < TEXT {
            let before = seed as u32;
            let end = at + GRAMMAR.sentence(&mut seed, &mut text, 0);
            if end > block {
                starts.extend_from_slice(&before.to_le_bytes());
                starts.extend_from_slice(&((block - at) as u16).to_le_bytes());
                block += BLOCK;
            }
            at = end;
        }
        starts
    }

    #[test]
    fn the_list_of_blocks_is_what_the_grammar_gives() {
        assert!(starts() == STARTS, "text_blocks.bin is not what the grammar gives");
    }

    #[test]
    fn the_text_is_that_of_tpchgen_byte_for_byte() {
        let theirs = TextPool::get_or_init_default();
        assert_eq!(theirs.size() as usize, TEXT);
        for index in 0..BLOCKS {
            let block = Block::get(index);
            let start = index * BLOCK;
            let end = TEXT.min(start + BLOCK + OVERLAP);
            let ours = &block.text[block.start..][..end - start];
            assert!(ours == theirs.text(start as i32, end as i32).as_bytes(), "block {index} differs");
            let mut made = Vec::new();
            for (place, length) in
                [(0, 1), (index * 211 % BLOCK, 198), (BLOCK - 1, 198.min(end - start - BLOCK + 1))]
            {
                let span = ((start + place) as u32, length as u32);
                made.clear();
                append_made(span, &mut Vec::new(), &mut made);
                assert!(made == bytes(span), "the comment at {place} of block {index} differs");
            }
        }
    }
}
