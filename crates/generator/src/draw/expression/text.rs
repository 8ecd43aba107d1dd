//! Strings of formulas: `concat(lower(first), '.', lower(last), '@example.com')`.
//!
//! A string is written piece by piece to the end of the column's buffer; functions change its end in place.

use std::io::Write;

use super::condition::Condition;
use super::evaluate::evaluate;
use super::number_text::NumberForm;
use super::operand_values::Row;
use super::{Operand, Term};
use crate::draw::misfit::{Misfit, nearest_whole};
use crate::draw::text::localized::slug;
use crate::random::rng::Sequence;
use crate::types::number::Number;

/// A string that a formula computes.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Literal(Vec<u8>),
    /// A string operand.
    Field(usize),
    Joined(Vec<Text>),
    Changed(Change, Box<Text>),
    /// At most that many characters (the second number), from the first one on, counted from 1.
    Part(Box<Text>, Box<Term>, Box<Term>),
    /// With each occurrence of a string replaced by another.
    Replaced(Box<Text>, Vec<u8>, Vec<u8>),
    /// The word with that number, counted from 1.
    Word(Box<Text>, Box<Term>),
    Number(Box<Term>, NumberForm),
    If(Box<Condition>, Box<Text>, Box<Text>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    Lower,
    Upper,
    Trim,
    /// As an e-mail address begins: [`slug`].
    Slug,
}

/// Upper and lower case have at most three times the bytes.
const MAX_GROWTH: u64 = 3;

/// The most characters of a part that shorten what a text can be.
const MAX_COUNTED: i128 = 1 << 20;

/// A byte of any script becomes at most that many letters of ASCII, but for a few signs.
const MAX_LETTERS: u64 = 8;

impl Text {
    /// The bytes of the longest value.
    pub(super) fn longest(&self, operands: &[Operand]) -> u64 {
        match self {
            Text::Literal(bytes) => bytes.len() as u64,
            Text::Field(i) => operands.get(*i).map_or(0, |operand| operand.longest),
            Text::Joined(parts) => {
                parts.iter().map(|part| part.longest(operands)).fold(0, u64::saturating_add)
            }
            Text::Changed(Change::Trim, of) | Text::Word(of, _) => of.longest(operands),
            // A character has up to four bytes.
            Text::Part(of, _, count) => match **count {
                Term::Number(Number::Whole(n @ 0..=MAX_COUNTED)) => of.longest(operands).min(4 * n as u64),
                _ => of.longest(operands),
            },
            Text::Changed(Change::Slug, of) => of.longest(operands).saturating_mul(MAX_LETTERS),
            Text::Changed(_, of) => of.longest(operands).saturating_mul(MAX_GROWTH),
            Text::Replaced(of, from, to) => {
                let growth = (to.len() as u64).div_ceil(from.len().max(1) as u64).max(1);
                of.longest(operands).saturating_mul(growth)
            }
            Text::Number(_, form) => form.longest(),
            Text::If(_, yes, no) => yes.longest(operands).max(no.longest(operands)),
        }
    }

    /// Its bytes, if they need not be computed.
    pub(super) fn plain<'a>(&'a self, row: Row<'a>) -> Option<&'a [u8]> {
        match self {
            Text::Literal(bytes) => Some(bytes),
            Text::Field(i) => Some(row.text(*i)),
            _ => None,
        }
    }

    /// Appends the string for the operands `row` to `out`.
    pub(super) fn write(&self, row: Row<'_>, random: &mut Sequence, out: &mut Vec<u8>) -> Result<(), Misfit> {
        let start = out.len();
        match self {
            Text::Literal(bytes) => out.extend_from_slice(bytes),
            Text::Field(i) => out.extend_from_slice(row.text(*i)),
            Text::Joined(parts) => {
                for part in parts {
                    part.write(row, random, out)?;
                }
            }
            Text::Changed(change, of) => {
                of.write(row, random, out)?;
                changed(*change, start, out);
            }
            Text::Part(of, from, count) => {
                of.write(row, random, out)?;
                let from = place(evaluate(from, row, random)?);
                let count = place(evaluate(count, row, random)?);
                cut(from.saturating_sub(1), count, start, out);
            }
            Text::Replaced(of, from, to) => {
                of.write(row, random, out)?;
                replace(from, to, start, out);
            }
            Text::Word(of, nth) => {
                of.write(row, random, out)?;
                word(place(evaluate(nth, row, random)?), start, out);
            }
            Text::Number(number, form) => form.write(evaluate(number, row, random)?, out),
            Text::If(condition, yes, no) => {
                let chosen = if condition.holds(row, random)? { yes } else { no };
                chosen.write(row, random, out)?;
            }
        }
        Ok(())
    }

    /// The number of characters of the string for `row`.
    pub(super) fn length(&self, row: Row<'_>, random: &mut Sequence) -> Result<Number, Misfit> {
        let mut text = Vec::new();
        let text = match self.plain(row) {
            Some(plain) => plain,
            None => {
                self.write(row, random, &mut text)?;
                &text
            }
        };
        Ok(Number::Whole(text.iter().filter(|byte| is_first(**byte)).count() as i128))
    }
}

/// A number of characters or words; 0 for less.
fn place(number: Number) -> usize {
    let whole = match number {
        Number::Whole(n) => n,
        Number::Real(v) => nearest_whole(v.floor()).unwrap_or(0),
    };
    usize::try_from(whole.max(0)).unwrap_or(usize::MAX)
}

/// Whether a byte is the first one of its character.
fn is_first(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn changed(change: Change, start: usize, out: &mut Vec<u8>) {
    let Some(text) = out.get_mut(start..) else { return };
    match change {
        Change::Lower if text.is_ascii() => text.make_ascii_lowercase(),
        Change::Upper if text.is_ascii() => text.make_ascii_uppercase(),
        Change::Trim => {
            let trimmed = text.trim_ascii();
            let (skipped, kept) = (text.len() - text.trim_ascii_start().len(), trimmed.len());
            out.truncate(start + skipped + kept);
            out.drain(start..start + skipped);
        }
        Change::Slug => {
            let text = String::from_utf8_lossy(text).into_owned();
            out.truncate(start);
            slug(&text, out);
        }
        change => {
            let text = String::from_utf8_lossy(text);
            let other = if change == Change::Lower { text.to_lowercase() } else { text.to_uppercase() };
            out.truncate(start);
            out.extend_from_slice(other.as_bytes());
        }
    }
}

/// Keeps `count` characters of `out[start..]`, after `skip` others.
fn cut(skip: usize, count: usize, start: usize, out: &mut Vec<u8>) {
    let text = out.get(start..).unwrap_or_default();
    let at = |nth: usize, text: &[u8]| {
        if text.is_ascii() {
            return nth.min(text.len());
        }
        let firsts = text.iter().enumerate().filter(|(_, byte)| is_first(**byte));
        firsts.map(|(i, _)| i).nth(nth).unwrap_or(text.len())
    };
    let from = at(skip, text);
    let length = at(count, text.get(from..).unwrap_or_default());
    out.truncate(start + from + length);
    out.drain(start..start + from);
}

/// Replaces each `from` in `out[start..]` by `to`, from left to right.
fn replace(from: &[u8], to: &[u8], start: usize, out: &mut Vec<u8>) {
    let text = out.get_mut(start..).unwrap_or_default();
    if let ([from], [to]) = (from, to) {
        return text.iter_mut().filter(|byte| **byte == *from).for_each(|byte| *byte = *to);
    }
    if from.is_empty() || !text.windows(from.len()).any(|part| part == from) {
        return;
    }
    let text = text.to_vec();
    out.truncate(start);
    let mut rest = text.as_slice();
    while let Some((first, others)) = rest.split_first() {
        match rest.strip_prefix(from) {
            Some(after) => {
                out.extend_from_slice(to);
                rest = after;
            }
            None => {
                out.push(*first);
                rest = others;
            }
        }
    }
}

/// Keeps the word with number `nth` of `out[start..]`; an empty string if there are fewer.
fn word(nth: usize, start: usize, out: &mut Vec<u8>) {
    let text = out.get(start..).unwrap_or_default();
    let mut words = text.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let word = nth.checked_sub(1).and_then(|before| words.nth(before));
    let found = word.map_or(0..0, |word| {
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        at..at + word.len()
    });
    out.truncate(start + found.end);
    out.drain(start..start + found.start);
}

/// Appends `text`; writing to memory does not fail.
pub(super) fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
