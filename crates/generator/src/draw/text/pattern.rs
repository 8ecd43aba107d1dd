//! Strings that match a regular expression.
//!
//! A pattern is compiled to parts once: texts, letters of a class, and groups. All choices have equal
//! probability: letters of a class, alternatives, and numbers of repetitions.

mod numbered;

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::draw::text::PADDING;
use crate::draw::text::random_text::{spell, spell_padded};
use crate::random::rng::{Sequence, scale64};
use crate::random::weights::Weights;

/// The most repetitions drawn for `*` and `+`, and beyond the `n` of `{n,}`.
const MAX_REPEATS: u32 = 8;

/// The longest pattern, in bytes.
const MAX_PATTERN_LENGTH: usize = 4096;

/// The longest string that a pattern may match, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// A regular expression to draw from.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    longest: u64,
}

#[derive(Clone, Debug)]
enum Part {
    Text(Text),
    /// ASCII letters.
    Bytes(Box<[u8]>, Repeats),
    /// Ranges of letters; each with the number of letters before it.
    Letters(Box<[(u32, char)]>, u32, Repeats),
    Group(Box<[Part]>, Repeats),
    OneOf(Box<[Box<[Part]>]>, Repeats),
    /// One of several patterns by their weights.
    Weighted(Box<[Pattern]>, Weights),
}

/// A text, padded for copies of a fixed size.
#[derive(Clone, Debug)]
struct Text {
    pieces: Box<[[u8; PADDING]]>,
    length: usize,
}

impl Text {
    fn new(text: &[u8]) -> Self {
        let piece = |text: &[u8]| std::array::from_fn(|i| text.get(i).copied().unwrap_or_default());
        Text { pieces: text.chunks(PADDING).map(piece).collect(), length: text.len() }
    }
}

/// How often a part is repeated: from the first to the second number of times.
type Repeats = (u32, u32);

impl Pattern {
    /// Compiles a pattern. The error describes the problem.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_LENGTH {
            return Err(format!("a pattern of {} bytes, more than {MAX_PATTERN_LENGTH}", text.len()));
        }
        let mut parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(true).build();
        let parsed = match parser.parse(text) {
            Ok(parsed) => Ok(parsed),
            // Text outside of ASCII needs Unicode classes.
            Err(_) => regex_syntax::Parser::new().parse(text).map_err(|e| e.to_string()),
        };
        let parts = parsed.and_then(|parsed| {
            let mut parts = Vec::new();
            compile(&parsed, (1, 1), &mut parts).map(|()| parts)
        });
        let parts = parts.map_err(|reason| {
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("{text:?} is not a valid pattern: {reason}")
        })?;
        let longest = longest(&parts);
        if longest > MAX_LENGTH {
            return Err(format!("{text:?} matches strings of {longest} bytes, more than {MAX_LENGTH}"));
        }
        Ok(Pattern { parts, longest })
    }

    /// One of `patterns`, by the weights of the table.
    pub(crate) fn weighted(patterns: Vec<Pattern>, table: Weights) -> Self {
        let longest = patterns.iter().map(Pattern::longest).max().unwrap_or(0);
        Pattern { parts: vec![Part::Weighted(patterns.into(), table)], longest }
    }

    /// The most bytes of a string.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Writes the string for a random `draw` and returns its length. `out` has room for
    /// [`longest`](Self::longest) and the padding.
    pub(crate) fn write(&self, draw: u64, out: &mut [u8]) -> usize {
        write(&self.parts, &mut Sequence::new(draw), out)
    }
}

/// Appends the parts of `pattern`, repeated together.
fn compile(pattern: &Hir, repeats: Repeats, out: &mut Vec<Part>) -> Result<(), String> {
    let group = |patterns: &[Hir]| -> Result<Box<[Part]>, String> {
        let mut parts = Vec::new();
        patterns.iter().try_for_each(|pattern| compile(pattern, (1, 1), &mut parts))?;
        Ok(parts.into())
    };
    match pattern.kind() {
        HirKind::Empty => {}
        HirKind::Look(_) => return Err("anchors and word boundaries are not supported".to_owned()),
        HirKind::Literal(text) if repeats == (1, 1) => out.push(Part::Text(Text::new(&text.0))),
        HirKind::Literal(text) => out.push(Part::Group([Part::Text(Text::new(&text.0))].into(), repeats)),
        HirKind::Class(class) => out.push(letters(class, repeats)?),
        HirKind::Capture(capture) => compile(&capture.sub, repeats, out)?,
        HirKind::Repetition(repeated) => {
            let more = if repeated.min <= 1 { MAX_REPEATS } else { repeated.min.saturating_add(MAX_REPEATS) };
            let own = (repeated.min, repeated.max.unwrap_or(more));
            match repeats {
                (1, 1) => compile(&repeated.sub, own, out)?,
                repeats => {
                    let mut parts = Vec::new();
                    compile(&repeated.sub, own, &mut parts)?;
                    out.push(Part::Group(parts.into(), repeats));
                }
            }
        }
        HirKind::Concat(patterns) if repeats == (1, 1) => {
            patterns.iter().try_for_each(|pattern| compile(pattern, repeats, out))?;
        }
        HirKind::Concat(patterns) => out.push(Part::Group(group(patterns)?, repeats)),
        HirKind::Alternation(patterns) => {
            let choices = patterns.iter().map(|pattern| group(std::slice::from_ref(pattern)));
            out.push(Part::OneOf(choices.collect::<Result<_, _>>()?, repeats));
        }
    }
    Ok(())
}

fn letters(class: &Class, repeats: Repeats) -> Result<Part, String> {
    // Surrogates are not letters: a range around them is two.
    let ranges: Vec<(char, char)> = match class {
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
        Class::Unicode(class) => (class.iter())
            .flat_map(|range| match (range.start(), range.end()) {
                (start @ ..='\u{D7FF}', end @ '\u{E000}'..) => vec![(start, '\u{D7FF}'), ('\u{E000}', end)],
                range => vec![range],
            })
            .collect(),
    };
    if ranges.iter().all(|(_, end)| end.is_ascii()) && !ranges.is_empty() {
        let letters = ranges.iter().flat_map(|(start, end)| *start as u8..=*end as u8);
        return Ok(Part::Bytes(letters.collect(), repeats));
    }
    let (mut count, mut counted) = (0, Vec::new());
    for (start, end) in ranges {
        counted.push((count, start));
        count += end as u32 - start as u32 + 1;
    }
    match count {
        0 => Err("it matches nothing".to_owned()),
        count => Ok(Part::Letters(counted.into(), count, repeats)),
    }
}

fn longest(parts: &[Part]) -> u64 {
    let times = |bytes: u64, repeats: &Repeats| bytes.saturating_mul(repeats.1.into());
    let sizes = parts.iter().map(|part| match part {
        Part::Text(text) => text.length as u64,
        Part::Bytes(_, repeats) => times(1, repeats),
        Part::Letters(_, _, repeats) => times(4, repeats),
        Part::Group(parts, repeats) => times(longest(parts), repeats),
        Part::OneOf(choices, repeats) => {
            times(choices.iter().map(|parts| longest(parts)).max().unwrap_or(0), repeats)
        }
        Part::Weighted(patterns, _) => patterns.iter().map(Pattern::longest).max().unwrap_or(0),
    });
    sizes.fold(0, u64::saturating_add)
}

/// What chooses the letters, alternatives and repetitions of a string.
trait Choices {
    /// 64 uniform bits.
    fn draw(&mut self) -> u64;

    fn below(&mut self, n: u64) -> u64;

    /// Writes `length` of the letters. `out` has room for them and the padding.
    fn spell(&mut self, letters: &[u8], length: usize, is_fixed: bool, out: &mut [u8]);
}

impl Choices for Sequence {
    #[inline(always)]
    fn draw(&mut self) -> u64 {
        self.next()
    }

    #[inline(always)]
    fn below(&mut self, n: u64) -> u64 {
        scale64(self.next(), n)
    }

    #[inline(always)]
    fn spell(&mut self, letters: &[u8], length: usize, is_fixed: bool, out: &mut [u8]) {
        match is_fixed {
            true => spell(letters, self, &mut out[..length]),
            false => spell_padded(letters, self, length, out),
        }
    }
}

#[inline(always)]
fn times((least, most): Repeats, choices: &mut impl Choices) -> u32 {
    if least == most { least } else { least + choices.below(u64::from(most - least) + 1) as u32 }
}

/// The letter at `place` among ranges, each with the number of letters before it.
fn letter_at(ranges: &[(u32, char)], place: u32) -> char {
    let range = ranges.partition_point(|(before, _)| *before <= place).saturating_sub(1);
    let (before, first) = ranges[range];
    char::from_u32(first as u32 + place - before).unwrap_or(first)
}

/// Writes a string that matches `parts` and returns its length.
fn write(parts: &[Part], choices: &mut impl Choices, out: &mut [u8]) -> usize {
    let mut at = 0;
    for part in parts {
        match part {
            Part::Text(text) => {
                for (i, piece) in text.pieces.iter().enumerate() {
                    out[at + i * PADDING..at + (i + 1) * PADDING].copy_from_slice(piece);
                }
                at += text.length;
            }
            Part::Bytes(letters, repeats) => {
                let length = times(*repeats, choices) as usize;
                choices.spell(letters, length, repeats.0 == repeats.1, &mut out[at..]);
                at += length;
            }
            Part::Letters(ranges, count, repeats) => {
                for _ in 0..times(*repeats, choices) {
                    let letter = letter_at(ranges, choices.below((*count).into()) as u32);
                    at += letter.encode_utf8(&mut out[at..]).len();
                }
            }
            Part::Group(parts, repeats) => {
                for _ in 0..times(*repeats, choices) {
                    at += write(parts, choices, &mut out[at..]);
                }
            }
            Part::OneOf(alternatives, repeats) => {
                for _ in 0..times(*repeats, choices) {
                    let chosen = choices.below(alternatives.len() as u64) as usize;
                    at += write(&alternatives[chosen], choices, &mut out[at..]);
                }
            }
            Part::Weighted(patterns, table) => {
                let pattern = patterns.get(table.pick_fine(choices.draw()) as usize);
                at += pattern.map_or(0, |pattern| write(&pattern.parts, choices, &mut out[at..]));
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Different strings of a pattern, and the most bytes of one.
    fn drawn(pattern: &str, draws: u64) -> BTreeSet<String> {
        let pattern = Pattern::parse(pattern).unwrap();
        (0..draws)
            .map(|draw| {
                let mut out = vec![0; pattern.longest() as usize + PADDING];
                let length = pattern.write(draw << 32, &mut out);
                String::from_utf8(out[..length].to_vec()).unwrap()
            })
            .collect()
    }

    #[test]
    fn strings_match_their_pattern() {
        let is = |strings: &BTreeSet<String>, whole: &[&str]| {
            assert_eq!(strings.iter().map(String::as_str).collect::<Vec<_>>(), whole);
        };
        is(&drawn("a|bc|d{2}", 100), &["a", "bc", "dd"]);
        is(&drawn("(x|y)(1|2)?", 200), &["x", "x1", "x2", "y", "y1", "y2"]);
        is(&drawn("(ab){1,2}", 100), &["ab", "abab"]);
        is(&drawn("", 3), &[""]);
        is(&drawn("[é-ê]", 100), &["é", "ê"]);
        is(&drawn("[0-2]", 100), &["0", "1", "2"]);
        for text in drawn("[A-Z]{3}-[0-9]{4}", 1_000) {
            let (letters, digits) = text.split_once('-').unwrap();
            assert!(letters.len() == 3 && letters.bytes().all(|byte| byte.is_ascii_uppercase()), "{text}");
            assert!(digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
        }
        let lengths: BTreeSet<usize> = drawn("x*", 1_000).iter().map(String::len).collect();
        assert_eq!(lengths, (0..=8).collect());
        let lengths: BTreeSet<usize> = drawn("(?:xy){3,}", 1_000).iter().map(String::len).collect();
        assert_eq!(lengths, (3..=11).map(|n| 2 * n).collect());
        // Any character but a line feed.
        assert!(drawn(".", 10_000).iter().all(|text| text.chars().count() == 1 && text != "\n"));
    }

    #[test]
    fn patterns_are_chosen_by_their_weights() {
        let patterns = ["N/A", "X[0-9]{3}", "never"].map(|text| Pattern::parse(text).unwrap());
        let pattern = Pattern::weighted(patterns.into(), Weights::new(&[3.0, 1.0, 0.0]).unwrap());
        let mut none = 0;
        for draw in 0..10_000u64 {
            let mut out = vec![0; pattern.longest() as usize + PADDING];
            let length = pattern.write(draw << 32, &mut out);
            match &out[..length] {
                b"N/A" => none += 1,
                other => assert!(length == 4 && other[0] == b'X', "{other:?}"),
            }
        }
        assert!((7300..7700).contains(&none), "{none}");
    }

    #[test]
    fn letters_have_equal_probability() {
        let pattern = Pattern::parse("[a-z0-9é]").unwrap();
        let mut counts = std::collections::BTreeMap::new();
        let draws = 370_000u64;
        for draw in 0..draws {
            let mut out = [0; 4 + PADDING];
            let length = pattern.write(draw, &mut out);
            *counts.entry(out[..length].to_vec()).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 37);
        let chi_square: f64 = counts.values().map(|n| (f64::from(*n) - 10_000.0).powi(2) / 10_000.0).sum();
        // 36 degrees of freedom: one of ten thousand fair samples exceeds this.
        assert!(chi_square < 76.4, "{chi_square}");
    }

    #[test]
    fn a_pattern_that_cannot_be_drawn_is_refused_with_the_reason() {
        for (pattern, reason) in [
            ("^a", "anchors and word boundaries are not supported"),
            (r"a\b", "anchors and word boundaries are not supported"),
            ("[a&&b]", "it matches nothing"),
            ("[z-a]", "invalid character class range"),
            ("((a{1000}){1000}){1000}", "matches strings of 1000000000 bytes, more than 1048576"),
        ] {
            let error = Pattern::parse(pattern).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
