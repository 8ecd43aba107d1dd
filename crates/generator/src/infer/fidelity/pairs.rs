//! Each pair of columns in the source and in generated data.

use serde::Serialize;

use crate::infer::by_column::by_column;
use crate::infer::fidelity::labels::{Labels, means, together};
use crate::infer::fidelity::measures::{DISTANCE, Measure, correlation, cramer, nulls, ratio, same};
use crate::infer::fidelity::rows::{Leaf, Measured};

/// Two columns in the source and in generated data.
#[derive(Clone, Debug, Serialize)]
pub struct PairFidelity {
    /// Their paths.
    pub columns: [String; 2],
    /// Whether all measures are kept.
    pub is_kept: bool,
    /// The measures that were compared.
    pub measures: Vec<MeasureFidelity>,
}

/// A measure of a pair of columns, or of the order of a column's rows.
#[derive(Clone, Debug, Serialize)]
pub struct MeasureFidelity {
    /// `rank correlation`, `correlation ratio of … by …`, `Cramér's V`, `correlation of nulls`, `… by the nulls of …` or
    /// `same value`; where both samples have the same values, `means of … by …` (how ranks correlate with the means that the
    /// source has) and `same combinations` (1 less their total variation). Of an order, `rank correlation` with or `same
    /// value` as a row before, and `steps that do not fall` or `rise`.
    pub measure: String,
    /// Its value in the source.
    pub source: f64,
    /// Its value in generated data.
    pub generated: f64,
    /// Whether the two are near enough.
    pub is_kept: bool,
}

impl PairFidelity {
    /// The measure that is farthest from the source; one that is lost, if there is one.
    pub fn farthest(&self) -> Option<&MeasureFidelity> {
        let rank = |measure: &MeasureFidelity| (!measure.is_kept, measure.apart());
        let higher = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        self.measures.iter().max_by(|a, b| higher(&rank(a), &rank(b)))
    }

    /// The same of a pair that is not kept.
    pub fn worst(&self) -> Option<&MeasureFidelity> {
        self.farthest().filter(|_| !self.is_kept)
    }
}

impl MeasureFidelity {
    pub(super) fn new(measure: String, source: Measure, generated: Option<Measure>) -> Self {
        // What cannot be measured in enough generated rows is not there.
        let found = generated.unwrap_or_default();
        let apart = (source.value - found.value).abs();
        let squares = (source.value.powi(2) - found.value.powi(2)).abs();
        let of_both = |a: f64, b: f64| (a * a + b * b).sqrt();
        let is_kept = apart <= DISTANCE.max(of_both(source.chance, found.chance))
            || squares < of_both(source.square, found.square);
        MeasureFidelity { measure, source: source.value, generated: found.value, is_kept }
    }

    pub(super) fn apart(&self) -> f64 {
        (self.source - self.generated).abs()
    }
}

/// A column of one sample.
pub(super) struct Side<'a> {
    pub leaf: &'a Leaf<'a>,
    pub measured: Measured,
}

/// A column of both samples.
pub(super) struct Column<'a> {
    pub sides: [Side<'a>; 2],
    /// The values that both have, and whether rows are null.
    labels: Option<Labels>,
    nulls: Option<Labels>,
}

/// The columns of two samples.
pub(super) struct Both<'a> {
    pub(super) columns: Vec<Column<'a>>,
    pub(super) rows: [&'a [u64]; 2],
    /// How many rows the source has in all.
    pub(super) source_rows: u64,
}

/// The measure of a pair. A `ratio` and a measure `by nulls` describe the first column by the second, or the second by the
/// first.
#[derive(Clone, Copy)]
enum What {
    Correlation,
    Ratio(usize),
    Cramer,
    Nulls,
    ByNulls(usize),
    Same,
}

impl<'a> Both<'a> {
    pub(super) fn new(columns: &'a [[&'a Leaf<'a>; 2]], rows: [&'a [u64]; 2], source_rows: u64) -> Self {
        let side = |leaf: &'a Leaf<'a>| Side { leaf, measured: Measured::new(leaf) };
        let column = |pair: &[&'a Leaf<'a>; 2]| {
            let sides = pair.map(side);
            let has_nulls = sides.iter().any(|side| side.measured.nulls.is_some());
            let is_few = sides[0].measured.codes.n > 0;
            Column {
                labels: if is_few { Labels::new(pair) } else { None },
                nulls: has_nulls.then(|| Labels::of_nulls(pair)),
                sides,
            }
        };
        Both { columns: by_column(columns.len(), |i| column(&columns[i])), rows, source_rows }
    }

    /// The columns whose values are not compared with other columns.
    pub(super) fn not_compared(&self) -> impl Iterator<Item = String> {
        let without =
            self.columns.iter().map(|column| &column.sides[0]).filter(|source| !source.measured.has_values());
        without.map(|source| {
            let has_values = source.leaf.cells.there.contains(&true);
            let reason = if has_values { "too many different values" } else { "no values" };
            format!("{} with other columns: {reason}", source.leaf.path)
        })
    }

    /// All pairs that can be compared, the worst first, and the number of those whose rows are too few.
    pub(super) fn pairs(&self) -> (Vec<PairFidelity>, usize) {
        let n = self.columns.len();
        let found = by_column(n, |i| {
            let with = |j: usize| self.pair(&self.columns[i], &self.columns[j]);
            (i + 1..n).map(with).collect::<Vec<_>>()
        });
        let all = found.into_iter().flatten().flatten();
        let (mut pairs, vague): (Vec<PairFidelity>, Vec<_>) = all.partition(|pair| !pair.measures.is_empty());
        let apart = |pair: &PairFidelity| pair.worst().map_or(0.0, MeasureFidelity::apart);
        pairs.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
        (pairs, vague.len())
    }

    /// A pair without measures has too few rows; `None` if values cannot be compared.
    fn pair(&self, x: &Column<'_>, y: &Column<'_>) -> Option<PairFidelity> {
        let (a, b) = (&x.sides, &y.sides);
        let names = [a, b].map(|side| side[0].leaf.path.clone());
        let mut measures = Vec::new();
        let mut compared = false;
        for what in wanted(a, b) {
            let both = [measured(what, [&a[0], &b[0]]), measured(what, [&a[1], &b[1]])];
            let Some(measure) = self.answered(what.named(&names), both) else { continue };
            let most = measure.source.abs().max(measure.generated.abs());
            match what {
                What::Same if most == 0.0 => continue,
                // Columns of too many values may still be copies, or null together.
                What::Same | What::Nulls | What::ByNulls(_) => compared |= most > DISTANCE,
                _ => compared = true,
            }
            measures.push(measure);
        }
        let has_values = a[0].measured.has_values() && b[0].measured.has_values();
        if compared {
            measures.extend(labelled(x, y).into_iter().filter_map(|(name, both)| self.answered(name, both)));
        } else {
            measures.clear();
        }
        let is_kept = measures.iter().all(|measure| measure.is_kept);
        (compared || has_values).then_some(PairFidelity { columns: names, is_kept, measures })
    }

    /// `None` if there are too few rows.
    fn answered(&self, name: String, [source, generated]: [Option<Measure>; 2]) -> Option<MeasureFidelity> {
        let source = source.filter(|source| !source.is_vague() && self.rows[1].len() > 100)?;
        (!source.is_unanswered(generated)).then(|| MeasureFidelity::new(name, source, generated))
    }
}

/// The measures of values that both samples have.
fn labelled(a: &Column<'_>, b: &Column<'_>) -> Vec<(String, [Option<Measure>; 2])> {
    let mut out = Vec::new();
    let name = |of: &Column<'_>| of.sides[0].leaf.path.clone();
    let is_category = |of: &Column<'_>| of.sides[0].measured.ranks.is_none();
    for (of, by) in [(a, b), (b, a)] {
        let nulls = (by.nulls.as_ref(), format!("the nulls of {}", name(by)));
        // The combinations of two categories are the same either way.
        let is_other_way = std::ptr::eq(of, b) && is_category(a) && is_category(b);
        let values = (by.labels.as_ref().filter(|_| !is_other_way), name(by));
        for (labels, by) in [values, nulls] {
            let Some(labels) = labels else { continue };
            match (is_category(of), &of.labels) {
                (false, _) => out.push((format!("means of {} by {by}", name(of)), means(&of.sides, labels))),
                (true, Some(own)) => {
                    out.push((format!("same combinations of {} and {by}", name(of)), together(own, labels)));
                }
                _ => {}
            }
        }
    }
    out
}

/// The measures to take, by the columns' kinds in the source.
fn wanted(a: &[Side<'_>; 2], b: &[Side<'_>; 2]) -> Vec<What> {
    let mut out = Vec::new();
    let kind = |side: &[Side<'_>; 2]| (side[0].measured.ranks.is_some(), side[0].measured.has_values());
    match (kind(a), kind(b)) {
        ((true, _), (true, _)) => out.extend([What::Correlation, What::Ratio(0), What::Ratio(1)]),
        ((true, _), (false, true)) => out.push(What::Ratio(0)),
        ((false, true), (true, _)) => out.push(What::Ratio(1)),
        ((false, true), (false, true)) => out.push(What::Cramer),
        _ => {}
    }
    let has_nulls = [a, b].map(|side| side.iter().any(|of| of.measured.nulls.is_some()));
    if has_nulls == [true, true] {
        out.push(What::Nulls);
    }
    for (by, of) in [(0, kind(b)), (1, kind(a))] {
        if has_nulls[by] && of.1 {
            out.push(What::ByNulls(1 - by));
        }
    }
    if a[0].leaf.has_words_of(b[0].leaf) {
        out.push(What::Same);
    }
    out
}

fn measured(what: What, pair: [&Side<'_>; 2]) -> Option<Measure> {
    let [a, b] = pair;
    let there = pair.map(|side| &side.leaf.cells.there[..]);
    match what {
        What::Correlation => correlation(a.measured.ranks.as_deref()?, b.measured.ranks.as_deref()?, there),
        What::Ratio(of) => {
            ratio(pair[of].measured.ranks.as_deref()?, there[of], &pair[1 - of].measured.codes)
        }
        What::Cramer => cramer(&a.measured.codes, &b.measured.codes),
        What::Nulls => nulls(there[0], there[1]),
        What::ByNulls(of) => {
            let nulls = pair[1 - of].measured.nulls.as_ref()?;
            match &pair[of].measured.ranks {
                Some(ranks) => ratio(ranks, there[of], nulls),
                None => cramer(&pair[of].measured.codes, nulls),
            }
        }
        What::Same => same([&a.leaf.cells.words, &b.leaf.cells.words], there),
    }
}

impl What {
    fn named(self, names: &[String; 2]) -> String {
        match self {
            What::Correlation => "rank correlation".to_owned(),
            What::Ratio(of) => format!("correlation ratio of {} by {}", names[of], names[1 - of]),
            What::Cramer => "Cramér's V".to_owned(),
            What::Nulls => "correlation of nulls".to_owned(),
            What::ByNulls(of) => format!("{} by the nulls of {}", names[of], names[1 - of]),
            What::Same => "same value".to_owned(),
        }
    }
}
