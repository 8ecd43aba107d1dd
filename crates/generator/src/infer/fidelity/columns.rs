//! How like the distribution of a column is in two samples.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use arrow_schema::DataType;
use serde::Serialize;

use crate::infer::fidelity::missed;
use crate::infer::sample::inferred_field::{Inferred, InferredKind};
use crate::infer::sample::leaf_sample::{LeafSample, real_runs, whole_runs};
use crate::infer::sample::numbered::steps;
use crate::spec::dataset::ListStyle;

/// A column is kept if its distance and its share of nulls differ by at most this.
pub(super) const DISTANCE: f64 = 0.02;

/// Columns with at most this many distinct values are compared value by value.
const FEW: usize = 1000;

/// How many rows of each number there must be on average: with fewer, the total variation of two samples of one
/// distribution is large by chance.
const ROWS_OF_EACH: u64 = 500;

/// A string that is one of a hundred counts as frequent if it was sampled as often.
const FREQUENT_TEXT: u64 = 20;

/// A column in the source and in generated data.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ColumnFidelity {
    /// Its path.
    pub column: String,
    /// `total variation` of the values, of the `frequencies` of values that were made up, or
    /// `Kolmogorov-Smirnov` of the values, or of the `lengths` of strings, bytes and lists. Of many different strings, the
    /// greatest of the distances of their `lengths`, of their `characters` by class, and of the shares of `frequent
    /// strings` (total variation). The distance of structs is that of their `nulls`, and 1 for columns of `other types`.
    /// A column with `no values` in the source and in the generated data is not kept.
    pub measure: &'static str,
    /// The distance by this measure, from 0 to 1.
    pub distance: f64,
    /// The shares of nulls.
    pub nulls: [f64; 2],
    /// The numbers of distinct values in the samples; strings are counted up to 100,000. Not of lists, and of bytes
    /// that are long or of more than 10,000 different values.
    pub distinct: Option<[u64; 2]>,
    /// The shares of the most frequent value, of the same columns.
    pub top: Option<[f64; 2]>,
    /// The average lengths of strings, bytes or lists.
    pub mean_length: Option<[f64; 2]>,
    /// How many values are equal to another one before them, if both samples have some and count them all.
    pub repeated: Option<[u64; 2]>,
    /// Whether distance and nulls are near enough.
    pub is_kept: bool,
}

/// The values of one column in one sample.
struct Profile<'a> {
    /// How often each value occurs, by the text of the value.
    values: Values<'a>,
    lengths: Option<&'a BTreeMap<u32, u64>>,
}

enum Values<'a> {
    Numbers {
        runs: Vec<(f64, u64)>,
        others: BTreeMap<&'static str, u64>,
    },
    /// Texts, and the number of those that were not counted one by one.
    Texts(&'a HashMap<String, u64>, u64),
    /// Bytes that are few, by their hexadecimal digits, and the number of others.
    Bytes(HashMap<String, u64>, u64),
    None,
}

/// Adds the leaves and lists of two fields, structs that may be null, and fields of one of the two only. Returns how many
/// the generated data lack.
pub(super) fn compare_fields(
    a: &Inferred,
    b: &Inferred,
    path: &str,
    out: &mut Vec<ColumnFidelity>,
    not_compared: &mut Vec<String>,
) -> usize {
    let nulls = [a.nulls_share(), b.nulls_share()];
    if a.slots + b.slots == 0 {
        not_compared.push(format!("{path}: no values"));
        out.push(ColumnFidelity { is_kept: false, ..ColumnFidelity::new(path, ("no values", 0.0), nulls) });
        return 0;
    }
    match (&a.kind, &b.kind) {
        (InferredKind::Struct(_), InferredKind::Struct(_)) => {
            let distance = ("nulls", (nulls[0] - nulls[1]).abs());
            out.extend((nulls != [0.0, 0.0]).then(|| ColumnFidelity::new(path, distance, nulls)));
        }
        (
            InferredKind::List { style, lengths, .. },
            InferredKind::List { style: other, lengths: others, .. },
        ) if (*style == ListStyle::Map) == (*other == ListStyle::Map) => {
            out.push(lists(a, b, path, (lengths, others)));
        }
        (
            InferredKind::Leaf { kind, values: ours, .. },
            InferredKind::Leaf { kind: other, values: theirs, .. },
        ) if measured_in(kind) == measured_in(other) => {
            out.push(leaves(a, b, path, (&profile(ours), &profile(theirs))));
        }
        _ => {
            out.push(ColumnFidelity::new(path, ("other types", 1.0), nulls));
            return 0;
        }
    }
    let named = |fields: &[Inferred], name: &str| fields.iter().position(|field| field.name == name);
    let mut missing = 0;
    for field in a.children() {
        let path = format!("{path}.{}", field.name);
        match named(b.children(), &field.name) {
            Some(other) => missing += compare_fields(field, &b.children()[other], &path, out, not_compared),
            None => {
                not_compared.push(missed(&path));
                missing += 1;
            }
        }
    }
    let more = b.children().iter().filter(|field| named(a.children(), &field.name).is_none());
    not_compared.extend(more.map(|field| format!("{path}.{}: not in the source", field.name)));
    missing
}

/// What the values of a type are counted in, without which the same numbers are other values.
fn measured_in(kind: &DataType) -> DataType {
    match kind {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) if *scale != 0 => {
            DataType::Decimal256(0, *scale)
        }
        DataType::Timestamp(unit, _) => DataType::Timestamp(*unit, None),
        DataType::FixedSizeBinary(_) => DataType::Binary,
        kind if kind.is_numeric() => DataType::Float64,
        kind => kind.clone(),
    }
}

impl ColumnFidelity {
    fn new(column: &str, (measure, distance): (&'static str, f64), nulls: [f64; 2]) -> Self {
        ColumnFidelity {
            column: column.to_owned(),
            measure,
            distance,
            nulls,
            is_kept: distance <= DISTANCE && (nulls[0] - nulls[1]).abs() <= DISTANCE,
            ..Self::default()
        }
    }
}

fn lists(
    a: &Inferred,
    b: &Inferred,
    path: &str,
    (ours, theirs): (&BTreeMap<u32, u64>, &BTreeMap<u32, u64>),
) -> ColumnFidelity {
    let [ours, theirs] =
        [ours, theirs].map(|lengths| Profile { values: Values::None, lengths: Some(lengths) });
    leaves(a, b, path, (&ours, &theirs))
}

fn profile(sample: &LeafSample) -> Profile<'_> {
    let numbers = |runs, others| Profile { values: Values::Numbers { runs, others }, lengths: None };
    match sample {
        LeafSample::Boolean { trues, falses } => {
            numbers(vec![(0.0, *falses), (1.0, *trues)], BTreeMap::new())
        }
        LeafSample::Whole(_) | LeafSample::Wide(_) => {
            let runs = whole_runs(sample).into_iter().map(|(v, n)| (v as f64, n)).collect();
            numbers(runs, BTreeMap::new())
        }
        LeafSample::Real(values) => {
            let (runs, others) = real_runs(values);
            numbers(runs, others.into_iter().collect())
        }
        LeafSample::Text(texts) => {
            let values = Values::Texts(&texts.texts, texts.uncounted);
            Profile { values, lengths: Some(&texts.lengths) }
        }
        LeafSample::Bytes(sample) => {
            let counted: u64 = sample.values.values().sum();
            let values = sample.values.iter().map(|(bytes, n)| (format!("{bytes:02x?}"), *n)).collect();
            let values = Values::Bytes(values, sample.n - counted);
            Profile { values, lengths: Some(&sample.lengths) }
        }
    }
}

fn leaves(
    a: &Inferred,
    b: &Inferred,
    path: &str,
    (ours, theirs): (&Profile<'_>, &Profile<'_>),
) -> ColumnFidelity {
    let mean = |profile: &Profile<'_>| {
        let lengths = profile.lengths;
        let sum = lengths.map_or(0.0, |l| l.iter().map(|(length, n)| f64::from(*length) * *n as f64).sum());
        // The sum of nothing is -0.
        (sum + 0.0) / lengths.map_or(0, |l| l.values().sum::<u64>()).max(1) as f64
    };
    let counted = [ours, theirs].map(|profile| (counts(profile), profile.uncounted()));
    let is_counted = [ours, theirs].iter().all(|profile| match profile.values {
        Values::Bytes(_, others) => others == 0,
        Values::None => false,
        _ => true,
    });
    let top = |(counts, uncounted): &(Vec<u64>, u64)| {
        let n = counts.iter().sum::<u64>() + uncounted;
        counts.iter().max().map_or(0.0, |most| *most as f64 / n as f64)
    };
    let repeated = |(counts, _): &(Vec<u64>, u64)| counts.iter().sum::<u64>() - counts.len() as u64;
    let all_counted = counted.iter().all(|(counts, uncounted)| !counts.is_empty() && *uncounted == 0);
    ColumnFidelity {
        repeated: all_counted.then(|| counted.each_ref().map(repeated)),
        distinct: is_counted.then(|| counted.each_ref().map(|(counts, _)| counts.len() as u64)),
        top: is_counted.then(|| counted.each_ref().map(top)),
        mean_length: ours.lengths.is_some().then(|| [mean(ours), mean(theirs)]),
        ..ColumnFidelity::new(path, distance(ours, theirs), [a.nulls_share(), b.nulls_share()])
    }
}

impl Profile<'_> {
    /// The number of values that were not counted one by one.
    fn uncounted(&self) -> u64 {
        match self.values {
            Values::Texts(_, uncounted) | Values::Bytes(_, uncounted) => uncounted,
            Values::Numbers { .. } | Values::None => 0,
        }
    }
}

/// How often each value occurs.
fn counts(profile: &Profile<'_>) -> Vec<u64> {
    match &profile.values {
        Values::Numbers { runs, others } => {
            runs.iter().map(|run| run.1).chain(others.values().copied()).filter(|n| *n > 0).collect()
        }
        Values::Texts(texts, _) => texts.values().copied().collect(),
        Values::Bytes(bytes, _) => bytes.values().copied().collect(),
        Values::None => Vec::new(),
    }
}

fn distance(a: &Profile<'_>, b: &Profile<'_>) -> (&'static str, f64) {
    match (&a.values, &b.values) {
        (Values::Numbers { runs, others }, Values::Numbers { runs: theirs, others: their_others }) => {
            let count = |runs: &[(f64, u64)]| runs.iter().map(|(_, n)| n).sum::<u64>();
            let most = (count(runs).min(count(theirs)) / ROWS_OF_EACH).min(FEW as u64);
            let few = runs.len().max(theirs.len()) as u64 <= most;
            let key = |runs: &[(f64, u64)], others: &BTreeMap<&'static str, u64>| {
                let numbers = runs.iter().map(|(v, n)| ((v.to_bits(), ""), *n));
                numbers.chain(others.iter().map(|(name, n)| ((0, *name), *n))).collect()
            };
            match few {
                true => ("total variation", total_variation(&key(runs, others), &key(theirs, their_others))),
                false => ("Kolmogorov-Smirnov", steps(runs, theirs)),
            }
        }
        (Values::Texts(ours, _), Values::Texts(theirs, _)) if ours.len().max(theirs.len()) <= FEW => {
            let common = ours.keys().any(|text| theirs.contains_key(text));
            match common {
                true => ("total variation", total_variation(ours, theirs)),
                false => ("frequencies", total_variation(&ranked(ours), &ranked(theirs))),
            }
        }
        (Values::Texts(ours, more), Values::Texts(theirs, even_more)) => {
            let distances = [
                ("lengths", by_length(a, b)),
                ("frequent strings", frequent((ours, *more), (theirs, *even_more))),
                ("characters", total_variation(&characters(ours, *more), &characters(theirs, *even_more))),
            ];
            distances.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("lengths", 0.0))
        }
        (Values::Bytes(ours, more), Values::Bytes(theirs, even_more))
            if *more == 0 && ours.len() <= FEW && !ours.is_empty() =>
        {
            let mut theirs = theirs.clone();
            theirs.insert("others".to_owned(), *even_more);
            match ours.keys().any(|bytes| theirs.contains_key(bytes)) || *even_more > 0 {
                true => ("total variation", total_variation(ours, &theirs)),
                false => ("frequencies", total_variation(&ranked(ours), &ranked(&theirs))),
            }
        }
        _ => ("lengths", by_length(a, b)),
    }
}

fn by_length(a: &Profile<'_>, b: &Profile<'_>) -> f64 {
    let steps_of = |profile: &Profile<'_>| -> Vec<(f64, u64)> {
        profile.lengths.into_iter().flatten().map(|(length, n)| (f64::from(*length), *n)).collect()
    };
    steps(&steps_of(a), &steps_of(b))
}

/// The total variation of strings that are at least one of a hundred, and of all others together. Strings that were
/// made up are compared by their rank. Each side has some more that were not counted one by one.
fn frequent(
    (ours, more): (&HashMap<String, u64>, u64),
    (theirs, even_more): (&HashMap<String, u64>, u64),
) -> f64 {
    let all = |texts: &HashMap<String, u64>| texts.values().sum::<u64>();
    let totals = [all(ours) + more, all(theirs) + even_more];
    let is_frequent = |texts: &HashMap<String, u64>, text: &String, total: u64| {
        texts.get(text).is_some_and(|n| *n >= FREQUENT_TEXT && n * 100 >= total)
    };
    let either = |text: &String| is_frequent(ours, text, totals[0]) || is_frequent(theirs, text, totals[1]);
    let of = |texts: &HashMap<String, u64>, total: u64| {
        let kept: HashMap<String, u64> =
            texts.iter().filter(|(text, _)| either(text)).map(|(text, n)| (text.clone(), *n)).collect();
        let others = total - all(&kept);
        (kept, others)
    };
    let ((ours, our_others), (theirs, their_others)) = (of(ours, totals[0]), of(theirs, totals[1]));
    let is_made_up = !ours.keys().any(|text| theirs.contains_key(text));
    let with = |kept: HashMap<String, u64>, others: u64| {
        let mut kept = if is_made_up { ranked(&kept) } else { kept };
        kept.insert("\0".to_owned(), others);
        kept
    };
    total_variation(&with(ours, our_others), &with(theirs, their_others))
}

/// The count of characters of each class. Texts beyond the counted ones are taken to be like them.
fn characters(texts: &HashMap<String, u64>, uncounted: u64) -> HashMap<&'static str, u64> {
    let mut counts: HashMap<&'static str, u64> = HashMap::new();
    for (text, n) in texts {
        for c in text.chars() {
            let class = match c {
                '0'..='9' => "digit",
                'a'..='f' => "a-f",
                'A'..='F' => "A-F",
                'g'..='z' => "g-z",
                'G'..='Z' => "G-Z",
                c if c.is_alphabetic() => "other letter",
                c if c.is_whitespace() => "space",
                _ => "other",
            };
            *counts.entry(class).or_default() += n * texts.len() as u64 + uncounted;
        }
    }
    counts
}

/// The counts by rank.
fn ranked(counts: &HashMap<String, u64>) -> HashMap<String, u64> {
    let mut counts: Vec<u64> = counts.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.into_iter().enumerate().map(|(rank, n)| (rank.to_string(), n)).collect()
}

fn total_variation<K: Eq + Hash>(a: &HashMap<K, u64>, b: &HashMap<K, u64>) -> f64 {
    if a.is_empty() != b.is_empty() {
        return 1.0;
    }
    let total = |counts: &HashMap<K, u64>| counts.values().sum::<u64>().max(1) as f64;
    let share =
        |counts: &HashMap<K, u64>, key: &K, total: f64| counts.get(key).map_or(0.0, |n| *n as f64 / total);
    let (of_a, of_b) = (total(a), total(b));
    let only_b = b.keys().filter(|key| !a.contains_key(*key));
    let sum: f64 = a.keys().chain(only_b).map(|key| (share(a, key, of_a) - share(b, key, of_b)).abs()).sum();
    sum / 2.0
}
