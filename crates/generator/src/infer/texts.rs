//! The `values` of strings.
//!
//! Strings may be private, so only those of small sets of categories are copied ([`Verbatim::Categories`]).
//! Others are made up: UUIDs, addresses, numbered ids and names by their form, strings of few distinct values
//! with the same letters replaced, and all others as words or letters with the lengths of the sample.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::infer::lengths::lengths;
use crate::infer::notation::quoted;
use crate::random::rng::{Sequence, scale64};

/// The most distinct values to keep; further ones are only counted.
const MOST_DISTINCT: usize = 100_000;

/// The most distinct strings to copy as categories.
const MOST_CATEGORIES: usize = 256;

/// How often categories occur on average.
const TIMES_EACH_CATEGORY: u64 = 20;

/// A category that was sampled less often is not copied.
const RARE: u64 = 5;

/// The most distinct values to list.
const MOST_LISTED: usize = 10_000;

/// Values are listed if each was sampled as often on average.
const TIMES_EACH: u64 = 4;

/// The most characters outside of letters and digits in an alphabet.
const MOST_OTHERS: usize = 64;

/// Which strings a spec may copy from the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbatim {
    /// None.
    Never,
    /// Those of small sets of categories: at most 256 distinct strings in the column, which occur 20 times
    /// each on average, and at least 5 times those that are copied.
    #[default]
    Categories,
    /// All of columns with at most 10,000 distinct strings.
    Always,
}

/// The strings of a sample.
#[derive(Debug, Default)]
pub(crate) struct TextSample {
    pub n: u64,
    pub texts: HashMap<String, u64>,
    /// The number of values after `MOST_DISTINCT` distinct ones.
    uncounted: u64,
    /// How often each length in characters occurs.
    pub lengths: BTreeMap<u32, u64>,
    classes: [bool; 3],
    others: BTreeSet<char>,
    /// The number of values with a space.
    spaced: u64,
    /// The shape of all values: their classes of characters.
    shape: Option<String>,
    shapes_differ: bool,
    not_uuid: bool,
    not_email: bool,
    not_names: bool,
    not_words: bool,
    codes: Codes,
}

/// The strings as numbers of the distinct ones, as long as these are few.
#[derive(Debug, Default)]
struct Codes {
    numbers: HashMap<String, u32>,
    of_values: Vec<u32>,
    too_many: bool,
}

impl Codes {
    fn add(&mut self, text: &str) {
        if self.too_many {
            return;
        }
        let next = self.numbers.len() as u32;
        let number = match self.numbers.get(text) {
            Some(number) => *number,
            None => *self.numbers.entry(text.to_owned()).or_insert(next),
        };
        self.of_values.push(number);
        if self.numbers.len() > MOST_CATEGORIES {
            *self = Codes { too_many: true, ..Codes::default() };
        }
    }
}

/// `A`, `a` or `9` for letters and digits, and the character itself for others.
fn class(c: char) -> char {
    match c {
        'A'..='Z' => 'A',
        'a'..='z' => 'a',
        '0'..='9' => '9',
        c => c,
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
        match self.texts.len() < MOST_DISTINCT {
            true => {
                self.texts.insert(text.to_owned(), 1);
            }
            false => self.uncounted += 1,
        }
        let mut length = 0;
        for c in text.chars() {
            length += 1;
            match class(c) {
                'A' => self.classes[0] = true,
                'a' => self.classes[1] = true,
                '9' => self.classes[2] = true,
                other if self.others.len() < MOST_OTHERS => {
                    self.others.insert(other);
                }
                _ => {}
            }
        }
        *self.lengths.entry(length).or_default() += 1;
        self.spaced += u64::from(text.contains(' '));
        if !self.shapes_differ {
            let shape: String = text.chars().map(class).collect();
            match &self.shape {
                None => self.shape = Some(shape),
                Some(known) => self.shapes_differ = *known != shape,
            }
        }
        self.not_uuid |= !is_uuid(text);
        self.not_email |= !is_email(text);
        self.not_names |= !is_name(text);
        self.not_words |= !text.chars().all(|c| c.is_alphabetic() || " .,;:'\"!?()-".contains(c));
    }

    /// The `values` of the column.
    pub(crate) fn values(&self, verbatim: Verbatim) -> String {
        if self.n == 0 {
            return "{ words = { min = 1, max = 3 } }".to_owned();
        }
        let distinct = self.texts.len() as u64;
        let counted = self.uncounted == 0 && distinct <= MOST_LISTED as u64;
        if counted && (self.n >= TIMES_EACH * distinct || distinct == 1) {
            return self.listed(verbatim);
        }
        if !self.not_uuid {
            return "\"uuid\"".to_owned();
        }
        if !self.not_email {
            return "\"email\"".to_owned();
        }
        if let Some(template) = self.template() {
            return template;
        }
        if !self.not_names {
            return "\"person_name\"".to_owned();
        }
        if let (Some(shape), false) = (&self.shape, self.shapes_differ) {
            return format!("{{ pattern = {} }}", quoted(&pattern(shape)));
        }
        let length = lengths(&self.lengths);
        if !self.not_words && self.spaced * 2 > self.n {
            return format!("{{ text = {{ length = {length} }} }}");
        }
        format!("{{ text = {{ length = {length}, letters = {} }} }}", quoted(&self.alphabet()))
    }

    /// The values as numbers of a few distinct ones, and these as keys of a table, as [`values`](Self::values)
    /// writes them; `None` if they are too many.
    pub(crate) fn categories(&self, verbatim: Verbatim) -> Option<(Vec<u32>, Vec<String>)> {
        let distinct = self.codes.numbers.len() as u64;
        if self.codes.too_many || self.n < TIMES_EACH * distinct {
            return None;
        }
        let mut keys = vec![String::new(); self.codes.numbers.len()];
        for (text, shown, _) in self.shown(verbatim) {
            let number = self.codes.numbers.get(text)?;
            *keys.get_mut(*number as usize)? = quoted(&shown);
        }
        Some((self.codes.of_values.clone(), keys))
    }

    /// The distinct values, each as it is or made up, with its count.
    fn shown(&self, verbatim: Verbatim) -> Vec<(&String, String, u64)> {
        let mut by_count: Vec<(&String, u64)> = self.texts.iter().map(|(text, n)| (text, *n)).collect();
        by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let distinct = by_count.len() as u64;
        let categories = distinct <= MOST_CATEGORIES as u64 && (self.n >= TIMES_EACH_CATEGORY * distinct);
        let copied = |n: u64| match verbatim {
            Verbatim::Never => false,
            Verbatim::Always => true,
            Verbatim::Categories => categories && n >= RARE,
        };
        let mut taken: BTreeSet<String> =
            by_count.iter().filter(|(_, n)| copied(*n)).map(|(text, _)| (*text).clone()).collect();
        let mut weights = Vec::new();
        for (i, (text, n)) in by_count.iter().enumerate() {
            let shown = match copied(*n) {
                true => (*text).clone(),
                false => made_up(text, i as u64, &mut taken),
            };
            weights.push((*text, shown, *n));
        }
        weights
    }

    /// The distinct values with their weights.
    fn listed(&self, verbatim: Verbatim) -> String {
        let weights = self.shown(verbatim);
        if let [(_, only, _)] = &weights[..] {
            return format!("{{ constant = {} }}", quoted(only));
        }
        let weights: Vec<String> = weights.iter().map(|(_, v, n)| format!("{} = {n}", quoted(v))).collect();
        format!("{{ weights = {{ {} }} }}", weights.join(", "))
    }

    /// The ranges of characters that occur.
    fn alphabet(&self) -> String {
        let classes = ["A-Z", "a-z", "0-9"].into_iter().zip(self.classes);
        let mut alphabet: String = classes.filter(|(_, there)| *there).map(|(range, _)| range).collect();
        alphabet.extend(self.others.iter().filter(|c| **c != '-'));
        if self.others.contains(&'-') {
            alphabet.push('-');
        }
        if alphabet.is_empty() { "a-z".to_owned() } else { alphabet }
    }

    /// `{ unique = "prefix{id:0WIDTH}suffix" }` if all strings are a number between the same two texts.
    fn template(&self) -> Option<String> {
        if self.texts.values().any(|n| *n > 1) {
            return None;
        }
        let mut texts = self.texts.keys();
        let first = texts.next()?.as_str();
        let (mut prefix, mut suffix) = (first, first);
        for text in self.texts.keys() {
            let same = prefix.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            prefix = prefix.get(..same)?;
            let same = suffix.bytes().rev().zip(text.bytes().rev()).take_while(|(a, b)| a == b).count();
            suffix = suffix.get(suffix.len() - same..)?;
        }
        // Digits next to the number belong to it.
        let prefix = prefix.trim_end_matches(|c: char| c.is_ascii_digit());
        let suffix = suffix.trim_start_matches(|c: char| c.is_ascii_digit());
        let middle =
            |text: &str| text.get(prefix.len()..text.len().checked_sub(suffix.len())?).map(str::to_owned);
        let digits = |text: &String| {
            middle(text)
                .is_some_and(|m| !m.is_empty() && m.len() <= 20 && m.bytes().all(|b| b.is_ascii_digit()))
        };
        if !self.texts.keys().all(digits) || format!("{prefix}{suffix}").contains(['{', '}']) {
            return None;
        }
        let width = middle(first)?.len();
        let id = if self.lengths.len() == 1 { format!("{{id:0{width}}}") } else { "{id}".to_owned() };
        Some(format!("{{ unique = {} }}", quoted(&format!("{prefix}{id}{suffix}"))))
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

/// A regular expression for strings of one shape.
fn pattern(shape: &str) -> String {
    let mut out = String::new();
    let shape: Vec<char> = shape.chars().collect();
    for run in shape.chunk_by(|a, b| a == b) {
        match run[0] {
            'A' => out.push_str("[A-Z]"),
            'a' => out.push_str("[a-z]"),
            '9' => out.push_str("[0-9]"),
            c => out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4]))),
        }
        if run.len() > 1 {
            out.push_str(&format!("{{{}}}", run.len()));
        }
    }
    out
}

/// A string of the same shape with other letters and digits, which is not in `taken`.
fn made_up(text: &str, i: u64, taken: &mut BTreeSet<String>) -> String {
    let mut random = Sequence::new(i);
    for attempt in 0.. {
        let mut of = |first: u8, n: u64| char::from(first + scale64(random.next(), n) as u8);
        let mut made: String = text
            .chars()
            .map(|c| match class(c) {
                'A' => of(b'A', 26),
                'a' => of(b'a', 26),
                '9' => of(b'0', 10),
                c if c.is_alphabetic() => of(b'a', 26),
                c => c,
            })
            .collect();
        // Short strings run out of others.
        if attempt >= 20 {
            made.push_str(&i.to_string());
        }
        if taken.insert(made.clone()) {
            return made;
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: impl IntoIterator<Item = String>, verbatim: Verbatim) -> String {
        let mut sample = TextSample::default();
        values.into_iter().for_each(|v| sample.add(&v));
        sample.values(verbatim)
    }

    #[test]
    fn strings_are_recognised_by_their_form() {
        let texts = |values: &mut dyn Iterator<Item = String>| texts(values, Verbatim::Categories);
        assert_eq!(texts(&mut (0..100).map(|i| format!("k-{:05}", i * 7))), "{ unique = \"k-{id:05}\" }");
        assert_eq!(texts(&mut (0..100).map(|i| format!("u{i}@a.org"))), "\"email\"");
        assert_eq!(
            texts(&mut (0..100).map(|i| ["x", "y\"z"][i % 2].to_owned())),
            "{ weights = { \"x\" = 50, \"y\\\"z\" = 50 } }"
        );
        assert_eq!(texts(&mut (0..30).map(|_| "a".to_owned())), "{ constant = \"a\" }");
        let plates =
            (0..100u8).map(|i| [b'A' + i % 26, b'-', b'0' + i / 26].map(char::from).iter().collect());
        assert_eq!(texts(&mut plates.into_iter()), "{ pattern = \"[A-Z]\\\\-[0-9]\" }");
    }

    #[test]
    fn comments_keep_their_lengths_and_none_of_their_words() {
        let comment =
            |i: u32| format!("{} secret{}", "abc ".repeat(i as usize % 7), "x".repeat(i as usize % 50));
        let values = texts((0..1000).map(comment), Verbatim::Categories);
        assert!(values.starts_with("{ text = { length = { weights = {"), "{values}");
        assert!(!values.contains("secret"));
    }

    #[test]
    fn rare_and_private_strings_are_not_copied() {
        let values =
            || (0..1000).map(|i| if i == 7 { "Rare".into() } else { ["Red", "Blue"][i % 2].to_owned() });
        let usual = texts(values(), Verbatim::Categories);
        assert!(usual.contains("\"Red\" = 500") && !usual.contains("Rare"), "{usual}");
        let never = texts(values(), Verbatim::Never);
        assert!(never.contains("= 500") && !never.contains("Red"), "{never}");
        assert!(texts(values(), Verbatim::Always).contains("\"Rare\" = 1"));
        // Names of 300 people, even if each occurs often.
        let people = texts(
            (0..30_000).map(|i| format!("Person {}", (b'A' + (i % 26) as u8) as char).repeat(1 + i % 20)),
            Verbatim::Categories,
        );
        assert!(!people.contains("Person"), "{people}");
    }
}
