//! Which sampled strings may be copied, and strings that are made up in the place of others.

use std::collections::BTreeSet;

use crate::infer::sample::text_sample::{TextSample, class};
use crate::random::rng::{Sequence, scale64};

/// The most letters and digits of the constant part of a numbered id that are copied.
pub(super) const MAX_COPIED: usize = 8;

/// Which strings a spec may copy from the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbatim {
    /// None.
    Never,
    /// Strings of small sets of categories: at most 256 distinct ones in the column, which occur 20 times
    /// each on average, and at least 5 times each copied one.
    #[default]
    Categories,
    /// All of columns with at most 10,000 distinct strings.
    Always,
}

/// A number between two texts.
pub(super) struct Template {
    prefix: String,
    /// The digits of the number, if all have as many.
    width: Option<usize>,
    suffix: String,
}

impl Template {
    /// As `unique` takes it.
    pub(super) fn joined(&self) -> String {
        let id = self.width.map_or_else(|| "{id}".to_owned(), |width| format!("{{id:0{width}}}"));
        format!("{}{id}{}", self.prefix, self.suffix)
    }

    /// As a regular expression.
    pub(super) fn pattern(&self) -> String {
        let [prefix, suffix] = [&self.prefix, &self.suffix].map(|text| regex_syntax::escape(text));
        let digits = self.width.map_or_else(|| "{1,9}".to_owned(), |width| format!("{{{width}}}"));
        format!("{prefix}[0-9]{digits}{suffix}")
    }
}

/// A string of the same shape with other letters and digits, which is not in `taken`; each within the bounds of its
/// place, if these are known.
pub(crate) fn made_up(
    text: &str,
    i: u64,
    taken: &mut BTreeSet<String>,
    places: Option<&[(char, char)]>,
) -> String {
    let mut random = Sequence::new(i);
    for attempt in 0.. {
        let mut between = |low: char, high: char| {
            let span = u64::from(high as u32 - low as u32) + 1;
            char::from_u32(low as u32 + scale64(random.next(), span) as u32).unwrap_or(low)
        };
        // Places of few characters run out of strings.
        let places = places.filter(|_| attempt < 20);
        let made_up = |(place, c): (usize, char)| match (class(c), places.and_then(|all| all.get(place))) {
            ('A' | 'a' | '9', Some((low, high))) if low <= high => between(*low, *high),
            ('A', _) => between('A', 'Z'),
            ('a', _) => between('a', 'z'),
            ('9', _) => between('0', '9'),
            (c, _) if c.is_alphanumeric() => between('a', 'z'),
            (c, _) => c,
        };
        let mut made: String = text.chars().enumerate().map(made_up).collect();
        // Short strings run out of others.
        if attempt >= 40 {
            made.push_str(&i.to_string());
        }
        if taken.insert(made.clone()) {
            return made;
        }
    }
    String::new()
}

impl TextSample {
    /// The template if all strings are a number between the same two texts. A long constant part is made up.
    pub(super) fn template(&self, verbatim: Verbatim) -> Option<Template> {
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
        let width = (self.lengths.len() == 1).then_some(width);
        let is_long = [prefix, suffix].concat().chars().filter(|c| c.is_alphanumeric()).count() > MAX_COPIED;
        let shown = match verbatim {
            Verbatim::Always => false,
            Verbatim::Categories => is_long,
            Verbatim::Never => true,
        };
        let of = |text: &str, i: u64| match shown {
            true => made_up(text, i, &mut BTreeSet::new(), None),
            false => text.to_owned(),
        };
        Some(Template { prefix: of(prefix, 0), width, suffix: of(suffix, 1) })
    }
}
