//! The `values` of strings.
//!
//! Strings may be private, so only strings of small sets of categories are copied ([`Verbatim::Categories`]).
//! Others are made up: UUIDs, addresses, numbered ids and names by their form, strings of few distinct values
//! with the same letters replaced, and all others as words, as patterns of the [`Shapes`] that occur, or as letters
//! with the lengths of the sample. Strings that are frequent among many others stay so.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::draw::text::distinct::DistinctStrings;
use crate::draw::text::pattern::Pattern;
use crate::infer::notation::{list, quoted, table};
use crate::infer::sample::numbered::MAX_NUMBERED;
use crate::infer::sample::text_sample::{TIMES_EACH, TextSample};
use crate::infer::values::lengths::lengths;
use crate::infer::values::made_up::{MAX_COPIED, Verbatim, made_up};
use crate::infer::values::numbers::period;
use crate::infer::values::shapes::Shapes;

/// The most distinct strings to copy as categories.
const MAX_CATEGORIES: usize = 256;

/// How often categories occur on average.
const TIMES_EACH_CATEGORY: u64 = 20;

/// A category that was sampled less often is not copied.
const RARE: u64 = 5;

/// The most distinct values to list if they hardly repeat.
const MAX_FEW: usize = 1000;

/// With this many made-up names, two are nearly always equal.
const MANY_NAMES: u64 = 100;

/// The most places by which patterns are longer than the strings of the sample.
const MAX_LONGER: usize = 20;

/// A string is frequent among many others if it is at least one of this many.
const FREQUENT: u64 = 100;

impl TextSample {
    /// The `values` of the column. Only outside of lists, in a table of this many rows, they may be strings of patterns
    /// that do not repeat. `is_whole` says that the sample has all rows.
    pub(crate) fn values(&self, verbatim: Verbatim, rows: Option<u64>, is_whole: bool) -> String {
        if self.n == 0 {
            return "{ words = { min = 1, max = 3 } }".to_owned();
        }
        if let Some(cycle) = self.cycle(verbatim).filter(|_| is_whole) {
            return cycle;
        }
        if self.is_listed() {
            return self.listed(verbatim);
        }
        let frequent = self.frequent(verbatim);
        let mixed = (!frequent.is_empty()).then(|| self.without(&frequent).patterns(verbatim)).flatten();
        if let Some(mut patterns) = mixed {
            let literal = |(_, shown, n): &(&String, String, u64)| (regex_syntax::escape(shown), *n);
            patterns.extend(frequent.iter().map(literal));
            return weighted_patterns(&patterns);
        }
        if !self.not_uuid {
            return "\"uuid\"".to_owned();
        }
        if !self.not_email {
            return "\"email\"".to_owned();
        }
        if let Some(template) = self.template(verbatim) {
            return format!("{{ unique = {} }}", quoted(&template.joined()));
        }
        let unique = rows.and_then(|rows| self.unique(verbatim, rows));
        if !self.not_names && (unique.is_none() || self.n < MANY_NAMES) {
            return "\"person_name\"".to_owned();
        }
        let length = lengths(&self.lengths);
        if let Some(unique) = unique {
            return unique;
        }
        if self.has_words() {
            return format!("{{ text = {{ length = {length} }} }}");
        }
        if let Some(patterns) = self.shapes(verbatim) {
            return weighted_patterns(&patterns);
        }
        format!("{{ text = {{ length = {length}, letters = {} }} }}", quoted(&self.alphabet()))
    }

    /// The strings that come again and again in this order.
    fn cycle(&self, verbatim: Verbatim) -> Option<String> {
        let (codes, _) = self.codes().filter(|_| self.is_listed())?;
        let codes = codes.get(..period(codes)?)?;
        let names = self.names(verbatim)?;
        Some(format!("{{ cycle = {} }}", list(codes.iter().filter_map(|code| names.get(usize::from(*code))))))
    }

    /// Patterns whose strings do not repeat in `rows` rows, if no value does. They match more strings than the ones that
    /// were sampled if these are too few.
    fn unique(&self, verbatim: Verbatim, rows: u64) -> Option<String> {
        let has_enough_words = self.has_words() && !self.words_would_repeat();
        if has_enough_words || self.texts.len() < 2 || self.texts.values().any(|n| *n > 1) {
            return None;
        }
        let has_enough = |patterns: &Vec<(String, u64)>| {
            let strings = |text: &str| Pattern::parse(text).ok().and_then(|pattern| pattern.strings());
            patterns.iter().all(|(text, n)| strings(text).is_some_and(|strings| strings >= *n))
        };
        let all_shapes = self.all_shapes();
        let shapes = |longer: Option<usize>| all_shapes.as_ref()?.patterns(most_copied(verbatim), longer);
        let has_shapes = shapes(None).is_some_and(|patterns| has_enough(&patterns));
        let letters = |longer: usize| self.letters_by_length(longer).filter(has_enough);
        let suffice = |patterns: &Vec<(String, u64)>| {
            let parsed =
                patterns.iter().map(|(text, n)| Some((text.clone(), Pattern::parse(text).ok()?, *n)));
            let strings = parsed.collect::<Option<_>>().and_then(|all| DistinctStrings::new(all, 0).ok());
            strings.is_some_and(|strings| strings.too_few_for(rows).is_none())
        };
        let longer = std::iter::once(None).chain((0..=MAX_LONGER).map(Some)).filter(|_| has_shapes);
        let mut all = longer.filter_map(shapes).chain((0..=MAX_LONGER).filter_map(letters));
        let patterns = all.find(suffice)?;
        let counts = table(patterns.iter().map(|(p, n)| (quoted(p), n)));
        Some(format!("{{ pattern = {{ unique = {counts} }} }}"))
    }

    /// Whether words of these lengths are so few that some texts would be equal: a letter tells about a bit.
    fn words_would_repeat(&self) -> bool {
        let repeats =
            |(length, n): (&u32, &u64)| (*n as f64).powi(2) / 2f64.powi((*length).min(1000) as i32 + 1);
        self.lengths.iter().map(repeats).sum::<f64>() > 0.5
    }

    /// Whether the distinct values are few enough to list.
    fn is_listed(&self) -> bool {
        let distinct = self.texts.len() as u64;
        let counted = self.uncounted == 0 && distinct <= MAX_NUMBERED as u64;
        counted && (self.n >= TIMES_EACH * distinct || distinct == 1 || self.repeats_few())
    }

    /// Whether some of a few strings without a known form repeat, unlike strings of a pattern.
    fn repeats_few(&self) -> bool {
        let has_form = !self.not_uuid || !self.not_email || !self.not_names || self.has_words();
        self.texts.len() <= MAX_FEW && self.n * 10 >= self.texts.len() as u64 * 11 && !has_form
    }

    /// Whether all values that a spec draws pass a test, because it lists them.
    pub(crate) fn lists_only(&self, verbatim: Verbatim, test: impl Fn(&str) -> bool) -> bool {
        self.is_listed() && self.shown(verbatim).iter().all(|(_, shown, _)| test(shown))
    }

    /// Whether most values are several words.
    fn has_words(&self) -> bool {
        !self.not_words && self.spaced * 2 > self.n
    }

    /// The strings that are frequent among many others, each as it is or made up, with its count.
    fn frequent(&self, verbatim: Verbatim) -> Vec<(&String, String, u64)> {
        let frequent = self.by_count(|n| n * FREQUENT >= self.n && n >= TIMES_EACH_CATEGORY);
        let mut taken = BTreeSet::new();
        let shown = frequent.into_iter().enumerate().map(|(i, (text, n))| match verbatim {
            Verbatim::Never => (text, made_up(text, i as u64, &mut taken, None), n),
            _ => (text, text.clone(), n),
        });
        shown.collect()
    }

    /// The distinct values whose counts are `wanted`, with these, the most frequent first.
    fn by_count(&self, wanted: impl Fn(u64) -> bool) -> Vec<(&String, u64)> {
        let all = self.texts.iter().map(|(text, n)| (text, *n));
        let mut by_count: Vec<(&String, u64)> = all.filter(|(_, n)| wanted(*n)).collect();
        by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        by_count
    }

    /// The other strings.
    fn without(&self, frequent: &[(&String, String, u64)]) -> TextSample {
        let mut rest = TextSample { uncounted: self.uncounted, ..TextSample::default() };
        rest.codes.too_many = true;
        for (text, n) in &self.texts {
            if frequent.iter().all(|(known, ..)| *known != text) {
                rest.add(text);
                rest.n += n - 1;
                rest.texts.insert(text.clone(), *n);
                *rest.lengths.entry(text.chars().count() as u32).or_default() += n - 1;
                rest.spaced += (n - 1) * u64::from(text.contains(' '));
            }
        }
        rest.n += self.uncounted;
        rest
    }

    /// Regular expressions for the strings, with their weights; `None` if they are words.
    fn patterns(&self, verbatim: Verbatim) -> Option<Vec<(String, u64)>> {
        let hex = |n: u32| format!("[0-9a-f]{{{n}}}");
        if self.n == 0 {
            return Some(Vec::new());
        }
        if !self.not_uuid {
            return Some(vec![([8, 4, 4, 4, 12].map(hex).join("-"), self.n)]);
        }
        if !self.not_email {
            return Some(vec![("[a-z]{4,10}@[a-z]{3,8}\\.example\\.(com|net|org)".to_owned(), self.n)]);
        }
        if let Some(template) = self.template(verbatim) {
            return Some(vec![(template.pattern(), self.n)]);
        }
        if self.has_words() {
            return None;
        }
        self.shapes(verbatim).or_else(|| self.letters_by_length(0))
    }

    /// The patterns of the shapes of the strings, if these are few.
    fn shapes(&self, verbatim: Verbatim) -> Option<Vec<(String, u64)>> {
        self.all_shapes()?.patterns(most_copied(verbatim), None)
    }

    /// The least and the greatest character of each place, if all strings have one shape: the digits of a date are not
    /// just any digits.
    fn places(&self, verbatim: Verbatim) -> Option<Vec<(char, char)>> {
        self.all_shapes()?.places(most_copied(verbatim))
    }

    fn all_shapes(&self) -> Option<Shapes> {
        let mut shapes = Shapes::default();
        self.texts.iter().try_for_each(|(text, n)| shapes.add(text, *n))?;
        Some(shapes)
    }

    /// Letters of the alphabet by the length, which is `longer` than in the sample.
    fn letters_by_length(&self, longer: usize) -> Option<Vec<(String, u64)>> {
        const MAX_LENGTHS: usize = 200;
        let escaped = |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
        let ranges: String = self.ranges().into_iter().collect();
        let alphabet = self.others.iter().fold(ranges, |all, c| all + &escaped(*c));
        let pattern = |(length, n): (&u32, &u64)| match *length as usize + longer {
            0 => (String::new(), *n),
            length => (format!("[{alphabet}]{{{length}}}"), *n),
        };
        (self.lengths.len() <= MAX_LENGTHS && !alphabet.is_empty())
            .then(|| self.lengths.iter().map(pattern).collect())
    }

    /// The ranges of letters and digits that occur; hexadecimal digits have no others.
    fn ranges(&self) -> Vec<String> {
        let ranges = ["A-Z", "a-z", "0-9"].into_iter().zip(["A-F", "a-f", "0-9"]).zip(self.classes);
        let is_hex = self.classes[2] && self.texts.keys().all(|text| is_hex(text));
        let shown = |(all, hex): (&str, &str)| if is_hex { hex.to_owned() } else { all.to_owned() };
        ranges.filter(|(_, there)| *there).map(|(pair, _)| shown(pair)).collect()
    }

    /// These distinct ones in the order of their numbers as keys of a table, as [`values`](Self::values) writes them.
    pub(crate) fn names(&self, verbatim: Verbatim) -> Option<Vec<String>> {
        let mut names = vec![String::new(); self.codes()?.1];
        for (text, shown, _) in self.shown(verbatim) {
            let number = self.codes.numbers.get(text)?;
            *names.get_mut(usize::from(*number))? = quoted(&shown);
        }
        Some(names)
    }

    /// The listed values by their hashes, each as [`values`](Self::values) writes it, with its count.
    pub(crate) fn named(&self, verbatim: Verbatim) -> Option<Vec<(u64, String, u64)>> {
        let named = |(text, shown, n): (&String, String, u64)| (xxh3_64(text.as_bytes()), quoted(&shown), n);
        self.is_listed().then(|| self.shown(verbatim).into_iter().map(named).collect())
    }

    /// The distinct values, each as it is or made up, with its count.
    fn shown(&self, verbatim: Verbatim) -> Vec<(&String, String, u64)> {
        let by_count = self.by_count(|_| true);
        let distinct = by_count.len() as u64;
        let categories = distinct <= MAX_CATEGORIES as u64 && (self.n >= TIMES_EACH_CATEGORY * distinct);
        let copied = |n: u64| match verbatim {
            Verbatim::Never => false,
            Verbatim::Always => true,
            Verbatim::Categories => categories && n >= RARE,
        };
        let mut taken: BTreeSet<String> =
            by_count.iter().filter(|(_, n)| copied(*n)).map(|(text, _)| (*text).clone()).collect();
        let places = self.places(verbatim);
        let shown = by_count.into_iter().enumerate().map(|(i, (text, n))| match copied(n) {
            true => (text, text.clone(), n),
            false => (text, made_up(text, i as u64, &mut taken, places.as_deref()), n),
        });
        shown.collect()
    }

    /// The distinct values with their weights.
    fn listed(&self, verbatim: Verbatim) -> String {
        let weights = self.shown(verbatim);
        if let [(_, only, _)] = &weights[..] {
            return format!("{{ constant = {} }}", quoted(only));
        }
        format!("{{ weights = {} }}", table(weights.iter().map(|(_, v, n)| (quoted(v), n))))
    }

    /// The ranges of characters that occur.
    fn alphabet(&self) -> String {
        let mut alphabet: String = self.ranges().concat();
        alphabet.extend(self.others.iter().filter(|c| **c != '-'));
        if self.others.contains(&'-') {
            alphabet.push('-');
        }
        if alphabet.is_empty() { "a-z".to_owned() } else { alphabet }
    }
}

/// The most letters and digits that all strings of a shape have in common and that are copied.
fn most_copied(verbatim: Verbatim) -> usize {
    if verbatim == Verbatim::Never { 0 } else { MAX_COPIED }
}

/// `pattern` with these regular expressions.
fn weighted_patterns(patterns: &[(String, u64)]) -> String {
    if let [(only, _)] = patterns {
        return format!("{{ pattern = {} }}", quoted(only));
    }
    format!("{{ pattern = {{ weights = {} }} }}", table(patterns.iter().map(|(p, n)| (quoted(p), n))))
}

/// Whether all letters and digits are hexadecimal digits.
fn is_hex(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit() || !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: impl IntoIterator<Item = String>, verbatim: Verbatim) -> String {
        let mut sample = TextSample::default();
        values.into_iter().for_each(|v| sample.add(&v));
        let n = sample.n;
        sample.values(verbatim, Some(n), false)
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
        assert_eq!(
            texts(&mut plates.into_iter()),
            "{ pattern = { unique = { \"[A-Z]\\\\-[0-3]\" = 100 } } }"
        );
    }

    #[test]
    fn strings_that_never_repeat_do_not_in_more_rows_either() {
        let mut sample = TextSample::default();
        // A letter from A to T and an even number from 10.
        let plates =
            || (0..900u32).map(|i| format!("P{}{}", char::from(b'A' + (i / 45) as u8), 10 + 2 * (i % 45)));
        plates().for_each(|plate| sample.add(&plate));
        for (rows, pattern) in [
            (1620, "P[A-T][1-9][0-8]"),
            (2600, "P[A-Z][0-9]{2}"),
            (2601, "P[A-Z][0-9]{3}"),
            (1_000_000, "P[A-Z][0-9]{5}"),
        ] {
            let values = sample.values(Verbatim::Categories, Some(rows), true);
            assert_eq!(values, format!("{{ pattern = {{ unique = {{ \"{pattern}\" = 900 }} }} }}"));
        }
        // Two shapes; all strings of the longer one have the same end.
        let mut sample = TextSample::default();
        plates().for_each(|plate| (sample.add(&plate), sample.add(&format!("{plate}-x"))).0);
        let values = sample.values(Verbatim::Categories, Some(10_000), true);
        assert!(
            values.contains("\"P[A-Z][0-9]{3}\" = 900") && values.contains("\"P[A-Z][0-9]{3}\\\\-x\" = 900"),
            "{values}"
        );
        // One that has no letters and digits.
        let mut sample = TextSample::default();
        plates().chain(["-".to_owned()]).for_each(|plate| sample.add(&plate));
        let values = sample.values(Verbatim::Categories, Some(9010), true);
        assert!(
            values.contains("\"P[A-Z][0-9]{3}\" = 900") && values.contains("\"\\\\-[0-9]\" = 1"),
            "{values}"
        );
    }

    #[test]
    fn a_frequent_string_among_many_others_stays_frequent() {
        let value =
            |i: u32| if i.is_multiple_of(2) { "N/A".to_owned() } else { format!("X{}", i * 7919 % 99_991) };
        let usual = texts((0..5000).map(value), Verbatim::Categories);
        assert!(usual.contains("\"N/A\" = 2500") && usual.contains("\"X["), "{usual}");
        let never = texts((0..5000).map(value), Verbatim::Never);
        assert!(never.contains("= 2500") && !never.contains("N/A") && !never.contains('X'), "{never}");
    }

    #[test]
    fn hexadecimal_digits_and_dates_stay_such() {
        let hex = texts(
            (0..5000u64).map(|i| format!("{:016x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15))),
            Verbatim::Never,
        );
        assert!(hex.contains("a-f") && !hex.contains("a-z"), "{hex}");
        let date = |i: u32| format!("20{:02}-{:02}-{:02}", i % 25, i % 12 + 1, i % 28 + 1);
        let dates = texts((0..9000).map(date).collect::<BTreeSet<_>>(), Verbatim::Categories);
        assert_eq!(
            dates,
            "{ pattern = { unique = { \"20[0-2][0-9]\\\\-[0-1][0-9]\\\\-[0-2][0-9]\" = 2100 } } }"
        );
    }

    #[test]
    fn made_up_dates_have_digits_that_dates_have() {
        let date = |i: u32| format!("20{:02}-{:02}-{:02}", i % 24, i % 12 + 1, i % 28 + 1);
        let dates = texts((0..9000).map(date), Verbatim::Categories);
        let made: Vec<&str> = dates.split('"').skip(1).step_by(2).collect();
        assert!(made.len() == 168 && made.iter().all(|date| date.starts_with("20")), "{dates}");
        let never = texts((0..9000).map(date), Verbatim::Never);
        let mut made = never.split('"').skip(1).step_by(2);
        assert!(made.all(|date| date.as_bytes()[5] <= b'1' && date.as_bytes()[8] <= b'2'), "{never}");
    }

    #[test]
    fn long_constant_parts_of_ids_are_not_copied() {
        let accounts = || (0..2000).map(|i| format!("AnnaSchmidt-AT611904300234573201-{i:05}"));
        for verbatim in [Verbatim::Categories, Verbatim::Never] {
            let found = texts(accounts(), verbatim);
            assert!(found.starts_with("{ unique = ") && found.contains("-{id:05}"), "{found}");
            assert!(!found.contains("Anna") && !found.contains("6119"), "{found}");
        }
        assert!(!texts((0..2000).map(|i| format!("ORD-{i:05}")), Verbatim::Never).contains("ORD"));
        assert!(
            texts((0..2000).map(|i| format!("ORD-{i:05}")), Verbatim::Categories).contains("ORD-{id:05}")
        );
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
