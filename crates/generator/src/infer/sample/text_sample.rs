//! The sampled strings of one leaf: how often each occurs, and what forms all of them have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::infer::sample::numbered::MAX_NUMBERED;

/// The most distinct values to keep; further ones are only counted.
const MAX_DISTINCT: usize = 100_000;

/// The most characters outside of letters and digits in an alphabet.
const MAX_OTHERS: usize = 64;

/// Values are listed if each was sampled as often on average.
pub(crate) const TIMES_EACH: u64 = 4;

#[derive(Debug, Default)]
pub(crate) struct TextSample {
    pub n: u64,
    pub texts: HashMap<String, u64>,
    /// The number of values after `MAX_DISTINCT` distinct ones.
    pub uncounted: u64,
    /// How often each length in characters occurs.
    pub lengths: BTreeMap<u32, u64>,
    /// Whether there are capitals, small letters and digits.
    pub classes: [bool; 3],
    /// The other characters.
    pub others: BTreeSet<char>,
    /// The number of values with a space.
    pub spaced: u64,
    pub not_uuid: bool,
    pub not_email: bool,
    pub not_names: bool,
    pub not_words: bool,
    pub codes: Codes,
}

/// The strings as numbers of the distinct ones, as long as these are few.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    pub numbers: HashMap<String, u16>,
    of_values: Vec<u16>,
    pub too_many: bool,
}

impl Codes {
    fn add(&mut self, text: &str) {
        if self.too_many {
            return;
        }
        let next = self.numbers.len() as u16;
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => *self.numbers.entry(text.to_owned()).or_insert(next),
        };
        self.of_values.push(number);
        if self.numbers.len() > MAX_NUMBERED {
            *self = Codes { too_many: true, ..Codes::default() };
        }
    }
}

impl TextSample {
    pub(crate) fn add(&mut self, text: &str) {
        self.n += 1;
        self.codes.add(text);
        if let Some(n) = self.texts.get_mut(text) {
            *n += 1;
            *self.lengths.entry(text.chars().count() as u32).or_default() += 1;
            self.spaced += u64::from(text.contains(' '));
            return;
        }
        if self.texts.len() < MAX_DISTINCT {
            self.texts.insert(text.to_owned(), 1);
        } else {
            self.uncounted += 1;
        }
        let mut length = 0;
        for c in text.chars() {
            length += 1;
            match class(c) {
                'A' => self.classes[0] = true,
                'a' => self.classes[1] = true,
                '9' => self.classes[2] = true,
                other if self.others.len() < MAX_OTHERS => {
                    self.others.insert(other);
                }
                _ => {}
            }
        }
        *self.lengths.entry(length).or_default() += 1;
        self.spaced += u64::from(text.contains(' '));
        self.not_uuid |= !is_uuid(text);
        self.not_email |= !is_email(text);
        self.not_names |= !is_name(text);
        self.not_words |= !text.chars().all(|c| c.is_alphabetic() || " .,;:'\"!?()-".contains(c));
    }

    /// The number of distinct strings; `None` if they were too many to count.
    pub(crate) fn distinct(&self) -> Option<usize> {
        (self.uncounted == 0).then_some(self.texts.len())
    }

    /// The values as numbers of a few distinct ones, and how many these are; `None` if they are too many.
    pub(crate) fn codes(&self) -> Option<(&[u16], usize)> {
        let distinct = self.codes.numbers.len();
        (!self.codes.too_many && self.n >= TIMES_EACH * distinct as u64)
            .then_some((&self.codes.of_values[..], distinct))
    }
}

/// `A`, `a` or `9` for letters and digits, and the character itself for others.
pub(crate) fn class(c: char) -> char {
    match c {
        'A'..='Z' => 'A',
        'a'..='z' => 'a',
        '0'..='9' => '9',
        c => c,
    }
}

fn is_uuid(text: &str) -> bool {
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    hex && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

fn is_email(text: &str) -> bool {
    text.split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !text.contains(' '))
}

/// Two words that start with capitals.
fn is_name(text: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(char::is_uppercase) && word.chars().all(|c| c.is_alphabetic() || "'-.".contains(c))
    };
    text.split_once(' ').is_some_and(|(first, last)| is_word(first) && is_word(last))
}
