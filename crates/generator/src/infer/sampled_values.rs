//! Derives the `values` of a leaf from a sample of its values.
//!
//! The rules, in this order: one value is a constant; few values are weights; growing values are a sequence
//! or a walk; unique strings are recognised by their form (UUIDs, numbered ids, addresses, words, patterns);
//! skewed values use the Zipf exponent that fits their frequencies; other numbers use the normal, lognormal
//! or uniform distribution with the nearest kurtosis.

use std::collections::HashMap;
use std::fmt::Write;

use crate::random::elementary::{exp, ln};

/// The most distinct values to keep; further ones are only counted.
const MOST_DISTINCT: usize = 100_000;

/// The most distinct values to write as weights.
const FEW: usize = 50;

/// The most distinct skewed strings to list.
const MOST_LISTED: usize = 1000;

/// A value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Boolean(bool),
    /// Whole numbers, unscaled decimals, and dates and times in their unit.
    Whole(i128),
    Real(f64),
    Text(String),
    /// Bytes, of which only the length is sampled.
    Bytes(usize),
}

/// Writes a whole number of a leaf in the notation of specs.
pub(crate) type Literal = dyn Fn(i128) -> String;

/// The values of one leaf in a sample.
#[derive(Debug, Default)]
pub(crate) struct SampledValues {
    n: usize,
    wholes: HashMap<i128, usize>,
    texts: HashMap<String, usize>,
    /// The number of values after `MOST_DISTINCT` distinct ones.
    uncounted: usize,
    trues: usize,
    /// The sums of powers, the minimum and the maximum of numbers.
    moments: Moments,
    logs: Moments,
    lengths: Option<(usize, usize)>,
    last: Option<i128>,
    first: Option<i128>,
    drops: usize,
    largest_drop: i128,
    same_step: Option<Option<i128>>,
}

#[derive(Debug)]
struct Moments {
    n: f64,
    sums: [f64; 4],
    low: f64,
    high: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Moments { n: 0.0, sums: [0.0; 4], low: f64::INFINITY, high: f64::NEG_INFINITY }
    }
}

impl Moments {
    fn add(&mut self, v: f64) {
        self.n += 1.0;
        let mut power = 1.0;
        for sum in &mut self.sums {
            power *= v;
            *sum += power;
        }
        self.low = self.low.min(v);
        self.high = self.high.max(v);
    }

    fn mean(&self) -> f64 {
        self.sums[0] / self.n
    }

    fn deviation(&self) -> f64 {
        (self.sums[1] / self.n - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// Skewness and kurtosis: 0 and 3 for a normal distribution, 0 and 1.8 for a uniform one.
    fn shape(&self) -> (f64, f64) {
        let (m, d) = (self.mean(), self.deviation());
        if d == 0.0 {
            return (0.0, 0.0);
        }
        let [_, s2, s3, s4] = self.sums.map(|s| s / self.n);
        let third = s3 - 3.0 * m * s2 + 2.0 * m.powi(3);
        let fourth = s4 - 4.0 * m * s3 + 6.0 * m * m * s2 - 3.0 * m.powi(4);
        (third / d.powi(3), fourth / d.powi(4))
    }
}

impl SampledValues {
    pub(crate) fn add(&mut self, value: Value) {
        self.n += 1;
        match value {
            Value::Boolean(b) => self.trues += usize::from(b),
            Value::Whole(whole) => self.add_whole(whole),
            Value::Real(v) if v.is_finite() => {
                self.moments.add(v);
                if v > 0.0 {
                    self.logs.add(ln(v));
                }
            }
            Value::Real(_) => {}
            Value::Text(text) => {
                self.add_length(text.chars().count());
                if self.texts.len() < MOST_DISTINCT || self.texts.contains_key(&text) {
                    *self.texts.entry(text).or_default() += 1;
                } else {
                    self.uncounted += 1;
                }
            }
            Value::Bytes(length) => self.add_length(length),
        }
    }

    fn add_length(&mut self, length: usize) {
        let (low, high) = self.lengths.unwrap_or((length, length));
        self.lengths = Some((low.min(length), high.max(length)));
    }

    fn add_whole(&mut self, whole: i128) {
        self.moments.add(whole as f64);
        if whole > 0 {
            self.logs.add(ln(whole as f64));
        }
        if let Some(last) = self.last {
            let step = whole.saturating_sub(last);
            if step < 0 {
                self.drops += 1;
                self.largest_drop = self.largest_drop.max(-step);
            }
            self.same_step = match self.same_step {
                None => Some(Some(step)),
                Some(Some(same)) if same == step => Some(Some(same)),
                Some(_) => Some(None),
            };
        }
        self.first.get_or_insert(whole);
        self.last = Some(whole);
        if self.wholes.len() < MOST_DISTINCT || self.wholes.contains_key(&whole) {
            *self.wholes.entry(whole).or_default() += 1;
        } else {
            self.uncounted += 1;
        }
    }

    /// The `values` of a boolean.
    pub(crate) fn boolean(&self) -> String {
        match (self.trues, self.n - self.trues) {
            (0, 0) => "{ weights = { true = 1, false = 1 } }".to_owned(),
            (trues, falses) => format!("{{ weights = {{ true = {trues}, false = {falses} }} }}"),
        }
    }

    /// The `values` of whole numbers, written by `literal`. Without a sample, it returns `alone`. `temporal`
    /// means that they are dates or times, `ranks` that they can be Zipf ranks.
    pub(crate) fn whole(&self, literal: &Literal, alone: &str, temporal: bool, ranks: bool) -> String {
        let (Some(low), Some(high)) = (self.wholes.keys().min(), self.wholes.keys().max()) else {
            return alone.to_owned();
        };
        let distinct = self.wholes.len();
        if distinct == 1 {
            return format!("{{ constant = {} }}", literal(*low));
        }
        if let (Some(Some(step)), Some(first), true) = (self.same_step, self.first, self.n > 2) {
            let step = if temporal { step.to_string() } else { literal(step) };
            return format!("{{ sequence = {{ start = {}, step = {step} }} }}", literal(first));
        }
        if distinct <= FEW && self.n >= 2 * distinct {
            let mut values: Vec<_> = self.wholes.iter().collect();
            values.sort();
            let weights: Vec<String> = values
                .iter()
                .map(|(v, n)| format!("{} = {n}", quoted(literal(**v).trim_matches('"'))))
                .collect();
            return format!("{{ weights = {{ {} }} }}", weights.join(", "));
        }
        // Mostly growing, like the timestamps of arriving events.
        if self.drops * 5 < self.n && distinct * 2 > self.n && self.n > 10 {
            let (first, last) = (self.first.unwrap_or(*low), self.last.unwrap_or(*high));
            let step = ((last - first) as f64 / (self.n - 1) as f64).max(1.0).round() as i128;
            let step = if temporal { step.to_string() } else { literal(step) };
            let late = match self.drops {
                0 => String::new(),
                drops => {
                    let by = self.largest_drop;
                    let by = if temporal { by.to_string() } else { literal(by) };
                    format!(", late = {{ share = {}, by = {by} }}", rounded(drops as f64 / self.n as f64))
                }
            };
            let start = literal(first);
            return format!("{{ walk = {{ start = {start}, step = {step}, jitter = 1{late} }} }}");
        }
        if let (true, Some(s)) = (ranks && *low >= 0, self.skew()) {
            return format!("{{ zipf = {{ n = {}, s = {s} }} }}", distinct + self.uncounted);
        }
        format!("{{ uniform = {{ min = {}, max = {} }} }}", literal(*low), literal(*high))
    }

    /// The `values` of real numbers.
    pub(crate) fn real(&self) -> String {
        let m = &self.moments;
        if m.n == 0.0 {
            return "{ uniform = { min = 0, max = 1 } }".to_owned();
        }
        let (low, high) = (number(m.low), number(m.high));
        if m.low == m.high {
            return format!("{{ constant = {low} }}");
        }
        let (skewness, kurtosis) = m.shape();
        if m.low > 0.0 && skewness > 1.0 && self.logs.shape().0.abs() < skewness.abs() {
            let (median, sigma) = (number(exp(self.logs.mean())), rounded(self.logs.deviation()));
            return format!(
                "{{ lognormal = {{ median = {median}, sigma = {sigma}, min = {low}, max = {high} }} }}"
            );
        }
        // Skewed with zeros, which have no logarithm.
        if m.low >= 0.0 && skewness > 1.0 {
            return format!(
                "{{ exponential = {{ mean = {}, min = {low}, max = {high} }} }}",
                number(m.mean())
            );
        }
        if (kurtosis - 1.8).abs() < (kurtosis - 3.0).abs() {
            return format!("{{ uniform = {{ min = {low}, max = {high} }} }}");
        }
        let (mean, deviation) = (number(m.mean()), number(m.deviation()));
        format!("{{ normal = {{ mean = {mean}, stddev = {deviation}, min = {low}, max = {high} }} }}")
    }

    /// The `values` of bytes of any length.
    pub(crate) fn bytes(&self) -> String {
        let (low, high) = self.lengths.unwrap_or((0, 16));
        format!("{{ bytes = {{ min = {low}, max = {high} }} }}")
    }

    /// The `values` of strings.
    pub(crate) fn text(&self) -> String {
        let Some((low, high)) = self.lengths else {
            return "{ words = { min = 1, max = 3 } }".to_owned();
        };
        let distinct = self.texts.len();
        let mut by_count: Vec<(&String, &usize)> = self.texts.iter().collect();
        by_count.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        if distinct == 1 {
            return format!("{{ constant = {} }}", quoted(by_count[0].0));
        }
        if distinct <= FEW && self.n >= 2 * distinct {
            let weights: Vec<String> = by_count.iter().map(|(v, n)| format!("{} = {n}", quoted(v))).collect();
            return format!("{{ weights = {{ {} }} }}", weights.join(", "));
        }
        if distinct + self.uncounted < self.n * 9 / 10 {
            let s = self.skew().unwrap_or_else(|| "0".to_owned());
            let values: Vec<String> = by_count.iter().take(MOST_LISTED).map(|(v, _)| quoted(v)).collect();
            return format!("{{ choice = {{ values = [{}], s = {s} }} }}", values.join(", "));
        }
        let all = |test: &dyn Fn(&str) -> bool| self.texts.keys().all(|text| test(text));
        let is_uuid = |text: &str| {
            let hex = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            hex && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        };
        if all(&is_uuid) {
            return "\"uuid\"".to_owned();
        }
        if all(&|text| {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        }) {
            return "\"email\"".to_owned();
        }
        if let Some(template) = self.template(low == high) {
            return template;
        }
        let words = |text: &str| text.split(' ').count();
        if all(&|text| text.chars().all(|c| c.is_alphabetic() || " .,'-!?".contains(c)) && words(text) > 1) {
            let counts: Vec<usize> = self.texts.keys().map(|text| words(text)).collect();
            let (least, most) = (counts.iter().min().unwrap_or(&1), counts.iter().max().unwrap_or(&8));
            return match (least, most) {
                (2, 2) => "\"person_name\"".to_owned(),
                (least, most) => format!("{{ words = {{ min = {least}, max = {most} }} }}"),
            };
        }
        let any = |test: fn(char) -> bool| self.texts.keys().any(|text| text.chars().any(test));
        let mut class = String::new();
        for (there, range) in [
            (any(|c| c.is_ascii_uppercase()), "A-Z"),
            (any(|c| c.is_ascii_lowercase() || !c.is_ascii()), "a-z"),
            (any(|c| c.is_ascii_digit()), "0-9"),
            (any(|c| c == ' '), " "),
            (any(|c| c == '_'), "_"),
            (any(|c| c == '-'), "-"),
        ] {
            if there {
                class.push_str(range);
            }
        }
        let class = if class.is_empty() { "a-z" } else { &class };
        format!("{{ pattern = {} }}", quoted(&format!("[{class}]{{{low},{high}}}")))
    }

    /// `{ unique = "prefix{id:0WIDTH}suffix" }` if all strings are a number between the same two texts.
    fn template(&self, same_length: bool) -> Option<String> {
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
        let id = if same_length { format!("{{id:0{width}}}") } else { "{id}".to_owned() };
        Some(format!("{{ unique = {} }}", quoted(&format!("{prefix}{id}{suffix}"))))
    }

    /// The Zipf exponent of the frequencies; `None` if they are nearly equal. It is the slope of
    /// log(frequency) over log(rank), without ranks of few occurrences.
    fn skew(&self) -> Option<String> {
        let mut counts: Vec<usize> = self.wholes.values().chain(self.texts.values()).copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let points: Vec<(f64, f64)> = (1..)
            .zip(&counts)
            .take_while(|(_, n)| **n >= 5)
            .map(|(rank, n)| (ln(f64::from(rank)), ln(*n as f64)))
            .collect();
        if points.len() < 5 {
            return None;
        }
        let n = points.len() as f64;
        let (x, y) =
            (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
        let under: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
        let s = -over / under;
        (s > 0.3).then(|| rounded(s))
    }
}

/// A share or exponent with four digits.
pub(crate) fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A number in TOML notation, always with a point or an exponent.
fn number(value: f64) -> String {
    let text = format!("{value:?}");
    // TOML requires digits on both sides of the point; Rust writes large numbers without a point.
    if text.contains('e') && !text.contains('.') { text.replacen('e', ".0e", 1) } else { text }
}

/// A string with TOML quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: impl IntoIterator<Item = String>) -> String {
        let mut sampled = SampledValues::default();
        values.into_iter().for_each(|v| sampled.add(Value::Text(v)));
        sampled.text()
    }

    #[test]
    fn strings_are_recognised_by_their_form() {
        assert_eq!(texts((0..100).map(|i| format!("k-{:05}", i * 7))), "{ unique = \"k-{id:05}\" }");
        assert_eq!(texts((0..100).map(|i| format!("u{i}@a.org"))), "\"email\"");
        assert_eq!(
            texts((0..100).map(|i| ["x", "y\"z"][i % 2].to_owned())),
            "{ weights = { \"x\" = 50, \"y\\\"z\" = 50 } }"
        );
        assert_eq!(texts((0..3).map(|_| "a".to_owned())), "{ constant = \"a\" }");
        let letters = (0..100u8).map(|i| [b'a' + i % 26, b'Z' - i / 26].map(char::from).iter().collect());
        assert_eq!(texts(letters), "{ pattern = \"[A-Za-z]{2,2}\" }");
    }

    #[test]
    fn numbers_are_recognised_by_their_distribution() {
        let wholes = |values: &mut dyn Iterator<Item = i128>| {
            let mut sampled = SampledValues::default();
            values.for_each(|v| sampled.add(Value::Whole(v)));
            sampled.whole(&|n| n.to_string(), "", false, true)
        };
        assert_eq!(wholes(&mut (0..100).map(|i| 5 + 3 * i)), "{ sequence = { start = 5, step = 3 } }");
        assert_eq!(wholes(&mut (0..100).map(|i| i % 2)), "{ weights = { \"0\" = 50, \"1\" = 50 } }");
        assert!(wholes(&mut (0..1000).map(|i| i * i)).starts_with("{ walk = { start = 0"));
        assert!(wholes(&mut (0..1000).map(|i| (i * 7919) % 1009)).starts_with("{ uniform"));
        let zipf =
            wholes(&mut (1..=200).flat_map(|k| std::iter::repeat_n((k * 7919) % 1009, (2000 / k) as usize)));
        assert!(zipf.starts_with("{ zipf = { n = 200, s = 1"), "{zipf}");
    }
}
