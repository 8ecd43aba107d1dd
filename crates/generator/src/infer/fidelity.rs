//! How like a source generated data is: the distance of each column's distribution, and the relations between
//! columns.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::infer::correlation;
use crate::infer::dependence;
use crate::infer::inferred_field::{Inferred, InferredKind};
use crate::infer::inferred_spec::InferredSpec;
use crate::infer::leaf_sample::{LeafSample, real_runs, whole_runs};
use crate::infer::relations::{self, Column};

/// Columns of at most so many distinct values are compared value by value.
const FEW: usize = 1000;

/// How many rows of each number there must be on average: with fewer, the total variation of two samples of one
/// distribution is large by chance.
const ROWS_OF_EACH: u64 = 500;

/// The comparison of two samples.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// The columns of both, the least alike first.
    pub columns: Vec<ColumnFidelity>,
    /// The relations found in the source.
    pub relations: Vec<RelationFidelity>,
    /// Columns of one of the two only, and columns that are left out.
    pub not_compared: Vec<String>,
}

/// A column in the source and in generated data.
#[derive(Clone, Debug, Serialize)]
pub struct ColumnFidelity {
    /// Its path.
    pub column: String,
    /// `total variation` of the values, of the `frequencies` of values that were made up, or
    /// `Kolmogorov-Smirnov` of the values, or of the `lengths` of strings, bytes and lists.
    pub measure: &'static str,
    /// The distance by this measure, from 0 to 1.
    pub distance: f64,
    /// The shares of nulls.
    pub nulls: [f64; 2],
    /// The numbers of distinct values in the samples; strings are counted up to 100,000.
    pub distinct: [u64; 2],
    /// The shares of the most frequent value.
    pub top: [f64; 2],
    /// The average lengths of strings, bytes or lists.
    pub mean_length: Option<[f64; 2]>,
}

/// A relation between columns, and the share of rows that have it.
#[derive(Clone, Debug, Serialize)]
pub struct RelationFidelity {
    /// The relation.
    pub relation: String,
    /// The share of rows of the source that have it; of dependent weights, how far they are from those of all rows on average (total
    /// variation); the rank correlation (Spearman).
    pub source: f64,
    /// The same of generated data.
    pub generated: f64,
}

/// The values of one column in one sample.
struct Profile {
    /// How often each value occurs, by the text of the value.
    values: Values,
    lengths: Option<BTreeMap<u32, u64>>,
}

enum Values {
    Numbers { runs: Vec<(f64, u64)>, others: BTreeMap<&'static str, u64> },
    Texts(HashMap<String, u64>),
    None,
}

impl InferredSpec {
    /// Compares this sample of a source with a sample of generated data.
    pub fn compare(&self, generated: &InferredSpec) -> Fidelity {
        let mut columns = Vec::new();
        let mut not_compared: Vec<String> =
            self.left_out().into_iter().map(|out| format!("{}: {}", out.column, out.reason)).collect();
        let theirs: Vec<&Inferred> = generated.kept().collect();
        for field in self.kept() {
            match theirs.iter().find(|other| other.name == field.name) {
                Some(other) => compare_fields(field, other, &field.name, &mut columns),
                None => not_compared.push(format!("{}: not in the generated data", field.name)),
            }
        }
        columns.sort_by(|a: &ColumnFidelity, b| b.distance.total_cmp(&a.distance));
        let ours: Vec<&Inferred> =
            self.kept().filter(|field| theirs.iter().any(|other| other.name == field.name)).collect();
        Fidelity { columns, relations: compare_relations(&ours, &theirs), not_compared }
    }
}

fn compare_fields(a: &Inferred, b: &Inferred, path: &str, out: &mut Vec<ColumnFidelity>) {
    let inside = |name: &str| format!("{path}.{name}");
    match (&a.kind, &b.kind) {
        (InferredKind::Struct(ours), InferredKind::Struct(theirs)) => {
            for field in ours {
                if let Some(other) = theirs.iter().find(|other| other.name == field.name) {
                    compare_fields(field, other, &inside(&field.name), out);
                }
            }
        }
        (
            InferredKind::List { element, lengths, .. },
            InferredKind::List { element: other, lengths: others, .. },
        ) => {
            out.push(lists(a, b, path, (lengths, others)));
            compare_fields(element, other, &inside("element"), out);
        }
        (InferredKind::Map { entries, lengths }, InferredKind::Map { entries: theirs, lengths: others }) => {
            out.push(lists(a, b, path, (lengths, others)));
            for ((field, other), name) in entries.iter().zip(theirs).zip(["key", "value"]) {
                compare_fields(field, other, &inside(name), out);
            }
        }
        (InferredKind::Leaf { values: ours, .. }, InferredKind::Leaf { values: theirs, .. }) => {
            out.push(leaves(a, b, path, (&profile(ours), &profile(theirs))));
        }
        _ => out.push(ColumnFidelity {
            column: path.to_owned(),
            measure: "other types",
            distance: 1.0,
            nulls: [a.nulls_share(), b.nulls_share()],
            distinct: [0, 0],
            top: [0.0, 0.0],
            mean_length: None,
        }),
    }
}

fn lists(
    a: &Inferred,
    b: &Inferred,
    path: &str,
    (ours, theirs): (&BTreeMap<u32, u64>, &BTreeMap<u32, u64>),
) -> ColumnFidelity {
    let of = |lengths: &BTreeMap<u32, u64>| Profile { values: Values::None, lengths: Some(lengths.clone()) };
    leaves(a, b, path, (&of(ours), &of(theirs)))
}

fn profile(sample: &LeafSample) -> Profile {
    let numbers = |runs, others| Values::Numbers { runs, others };
    match sample {
        LeafSample::Boolean { trues, falses } => {
            Profile { values: numbers(vec![(0.0, *falses), (1.0, *trues)], BTreeMap::new()), lengths: None }
        }
        LeafSample::Whole(_) | LeafSample::Wide(_) => {
            let runs = whole_runs(sample).into_iter().map(|(v, n)| (v as f64, n)).collect();
            Profile { values: numbers(runs, BTreeMap::new()), lengths: None }
        }
        LeafSample::Real(values) => {
            let (runs, others) = real_runs(values);
            Profile { values: numbers(runs, others.into_iter().collect()), lengths: None }
        }
        LeafSample::Text(texts) => {
            Profile { values: Values::Texts(texts.texts.clone()), lengths: Some(texts.lengths.clone()) }
        }
        LeafSample::Bytes(lengths) => Profile { values: Values::None, lengths: Some(lengths.clone()) },
    }
}

fn leaves(a: &Inferred, b: &Inferred, path: &str, (ours, theirs): (&Profile, &Profile)) -> ColumnFidelity {
    let both = |of: &dyn Fn(&Profile) -> f64| [of(ours), of(theirs)];
    let mean = |profile: &Profile| {
        let lengths = profile.lengths.as_ref();
        let sum = lengths.map_or(0.0, |l| l.iter().map(|(length, n)| f64::from(*length) * *n as f64).sum());
        sum / lengths.map_or(0, |l| l.values().sum::<u64>()).max(1) as f64
    };
    let (measure, distance) = distance(ours, theirs);
    let distinct = both(&|profile| counts(profile).len() as f64).map(|n| n as u64);
    let top = both(&|profile| {
        let counts = counts(profile);
        let n: u64 = counts.iter().sum();
        counts.iter().max().map_or(0.0, |most| *most as f64 / n as f64)
    });
    ColumnFidelity {
        column: path.to_owned(),
        measure,
        distance,
        nulls: [a.nulls_share(), b.nulls_share()],
        distinct,
        top,
        mean_length: ours.lengths.is_some().then(|| both(&mean)),
    }
}

/// How often each value occurs.
fn counts(profile: &Profile) -> Vec<u64> {
    match &profile.values {
        Values::Numbers { runs, others } => {
            runs.iter().map(|run| run.1).chain(others.values().copied()).filter(|n| *n > 0).collect()
        }
        Values::Texts(texts) => texts.values().copied().collect(),
        Values::None => Vec::new(),
    }
}

fn distance(a: &Profile, b: &Profile) -> (&'static str, f64) {
    match (&a.values, &b.values) {
        (Values::Numbers { runs, others }, Values::Numbers { runs: theirs, others: their_others }) => {
            let count = |runs: &[(f64, u64)]| runs.iter().map(|(_, n)| n).sum::<u64>();
            let most = (count(runs).min(count(theirs)) / ROWS_OF_EACH).min(FEW as u64);
            let few = runs.len().max(theirs.len()) as u64 <= most;
            let key = |runs: &[(f64, u64)], others: &BTreeMap<&'static str, u64>| {
                let numbers = runs.iter().map(|(v, n)| (v.to_bits().to_string(), *n));
                numbers.chain(others.iter().map(|(name, n)| ((*name).to_owned(), *n))).collect()
            };
            match few {
                true => {
                    let (ours, theirs): (HashMap<_, _>, HashMap<_, _>) =
                        (key(runs, others), key(theirs, their_others));
                    ("total variation", total_variation(&ours, &theirs))
                }
                false => ("Kolmogorov-Smirnov", steps(runs, theirs)),
            }
        }
        (Values::Texts(ours), Values::Texts(theirs)) if ours.len().max(theirs.len()) <= FEW => {
            let common = ours.keys().any(|text| theirs.contains_key(text));
            match common {
                true => ("total variation", total_variation(ours, theirs)),
                false => ("frequencies", total_variation(&ranked(ours), &ranked(theirs))),
            }
        }
        _ => {
            let steps_of = |profile: &Profile| -> Vec<(f64, u64)> {
                profile.lengths.iter().flatten().map(|(length, n)| (f64::from(*length), *n)).collect()
            };
            ("lengths", steps(&steps_of(a), &steps_of(b)))
        }
    }
}

/// The counts by rank.
fn ranked(counts: &HashMap<String, u64>) -> HashMap<String, u64> {
    let mut counts: Vec<u64> = counts.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.into_iter().enumerate().map(|(rank, n)| (rank.to_string(), n)).collect()
}

fn total_variation(a: &HashMap<String, u64>, b: &HashMap<String, u64>) -> f64 {
    let total = |counts: &HashMap<String, u64>| counts.values().sum::<u64>().max(1) as f64;
    let share = |counts: &HashMap<String, u64>, key: &String, total: f64| {
        counts.get(key).map_or(0.0, |n| *n as f64 / total)
    };
    let (of_a, of_b) = (total(a), total(b));
    let only_b = b.keys().filter(|key| !a.contains_key(*key));
    let sum: f64 = a.keys().chain(only_b).map(|key| (share(a, key, of_a) - share(b, key, of_b)).abs()).sum();
    sum / 2.0
}

/// The Kolmogorov-Smirnov distance of counted values.
fn steps(a: &[(f64, u64)], b: &[(f64, u64)]) -> f64 {
    let total = |runs: &[(f64, u64)]| runs.iter().map(|run| run.1).sum::<u64>() as f64;
    let (of_a, of_b) = (total(a), total(b));
    if of_a == 0.0 || of_b == 0.0 {
        return if of_a == of_b { 0.0 } else { 1.0 };
    }
    let (mut i, mut j, mut below_a, mut below_b, mut most) = (0, 0, 0, 0, 0.0f64);
    while i < a.len() || j < b.len() {
        let value =
            a.get(i).map_or(f64::INFINITY, |run| run.0).min(b.get(j).map_or(f64::INFINITY, |run| run.0));
        if let Some(run) = a.get(i).filter(|run| run.0 <= value) {
            below_a += run.1;
            i += 1;
        }
        if let Some(run) = b.get(j).filter(|run| run.0 <= value) {
            below_b += run.1;
            j += 1;
        }
        most = most.max((below_a as f64 / of_a - below_b as f64 / of_b).abs());
    }
    most
}

fn compare_relations(ours: &[&Inferred], theirs: &[&Inferred]) -> Vec<RelationFidelity> {
    let of = |fields: &[&Inferred]| -> Vec<usize> {
        ours.iter().filter_map(|field| fields.iter().position(|other| other.name == field.name)).collect()
    };
    let same: Vec<&Inferred> = of(theirs).into_iter().map(|i| theirs[i]).collect();
    let (a, b): (Vec<Column<'_>>, Vec<Column<'_>>) =
        (ours.iter().map(|f| f.column()).collect(), same.iter().map(|f| f.column()).collect());
    let mut out = Vec::new();
    if let Some(together) = relations::together(&a) {
        let names: Vec<&str> = together.fields.iter().map(|i| a[*i].name).collect();
        let share = |columns: &[Column<'_>]| {
            let rows = columns[together.fields[0]].there.len();
            let null =
                |row: usize| together.fields.iter().all(|i| columns[*i].there.get(row) == Some(&false));
            (0..rows).filter(|row| null(*row)).count() as f64 / rows.max(1) as f64
        };
        out.push(RelationFidelity {
            relation: format!("{} null together", names.join(", ")),
            source: share(&a),
            generated: share(&b),
        });
    }
    for found in dependence::dependences(&a) {
        let [source, generated] = [&a, &b].map(|columns| dependence::strength(columns, found));
        let (of, by) = (a[found.of].name, a[found.by].name);
        out.extend(source.zip(generated).map(|(source, generated)| RelationFidelity {
            relation: format!("weights of {of} depend on {by}"),
            source,
            generated,
        }));
    }
    for found in correlation::correlations(&a, &|_| true) {
        let (of, by) = (a[found.of].name, a[found.by].name);
        out.extend(found.in_sample(&b).map(|generated| RelationFidelity {
            relation: format!("rank correlation of {of} and {by}"),
            source: found.rank_correlation,
            generated,
        }));
    }
    for sum in relations::sums(&a) {
        out.extend(relations::holds(&a, &b, &sum).map(|(relation, source, generated)| RelationFidelity {
            relation,
            source,
            generated,
        }));
    }
    out
}
