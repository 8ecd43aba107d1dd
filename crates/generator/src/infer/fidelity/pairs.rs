//! Each pair of columns, and the order of each column's rows, in the source and in generated data.

use serde::Serialize;

use crate::infer::by_column::by_column;
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
    /// `same value`; of an order, `rank correlation with the row before` or `same value as the row before`.
    pub measure: String,
    /// Its value in the source.
    pub source: f64,
    /// Its value in generated data.
    pub generated: f64,
    /// Whether the two are near enough.
    pub is_kept: bool,
}

/// The order of a column's rows.
#[derive(Clone, Debug, Serialize)]
pub struct OrderFidelity {
    /// Its path.
    pub column: String,
    /// How much a row is like the one before.
    #[serde(flatten)]
    pub measure: MeasureFidelity,
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
    fn new(measure: String, source: Measure, generated: Option<Measure>) -> Self {
        // What cannot be measured in enough generated rows is not there.
        let found = generated.unwrap_or_default();
        let apart = (source.value - found.value).abs();
        let squares = (source.value.powi(2) - found.value.powi(2)).abs();
        let of_both = |a: f64, b: f64| (a * a + b * b).sqrt();
        let is_kept = apart <= DISTANCE.max(of_both(source.chance, found.chance))
            || squares < of_both(source.square, found.square);
        MeasureFidelity { measure, source: source.value, generated: found.value, is_kept }
    }

    fn apart(&self) -> f64 {
        (self.source - self.generated).abs()
    }
}

/// A column of one sample.
struct Side<'a> {
    leaf: &'a Leaf<'a>,
    measured: Measured,
}

/// The columns of two samples.
pub(super) struct Both<'a> {
    columns: Vec<[Side<'a>; 2]>,
    rows: [&'a [u64]; 2],
}

/// What is measured of a pair: a `ratio` and what is `by nulls` of the first column by the second, or of the second by
/// the first.
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
    pub(super) fn new(columns: &'a [[&'a Leaf<'a>; 2]], rows: [&'a [u64]; 2]) -> Self {
        let side = |leaf: &'a Leaf<'a>| Side { leaf, measured: Measured::new(leaf) };
        Both { columns: by_column(columns.len(), |i| columns[i].map(side)), rows }
    }

    /// The columns whose values are not compared with other columns.
    pub(super) fn not_compared(&self) -> impl Iterator<Item = String> {
        let without = self.columns.iter().filter(|[source, _]| !source.measured.has_values());
        without.map(|[source, _]| {
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
    fn pair(&self, a: &[Side<'_>; 2], b: &[Side<'_>; 2]) -> Option<PairFidelity> {
        let names = [a, b].map(|side| side[0].leaf.path.clone());
        let mut measures = Vec::new();
        let mut compared = false;
        for what in wanted(a, b) {
            let source = measured(what, [&a[0], &b[0]]).filter(|measure| !measure.is_vague());
            let generated = measured(what, [&a[1], &b[1]]);
            let Some(source) = source.filter(|_| self.rows[1].len() > 100) else { continue };
            if source.is_unanswered(generated) {
                continue;
            }
            let found = generated.unwrap_or_default().value;
            let most = source.value.abs().max(found.abs());
            match what {
                What::Same if most == 0.0 => continue,
                // Columns of too many values may still be copies, or null together.
                What::Same | What::Nulls | What::ByNulls(_) => compared |= most > DISTANCE,
                _ => compared = true,
            }
            measures.push(MeasureFidelity::new(what.named(&names), source, generated));
        }
        let has_values = a[0].measured.has_values() && b[0].measured.has_values();
        if !compared {
            measures.clear();
        }
        let is_kept = measures.iter().all(|measure| measure.is_kept);
        (compared || has_values).then_some(PairFidelity { columns: names, is_kept, measures })
    }

    /// How much each row is like the row before.
    pub(super) fn order(&self) -> Vec<OrderFidelity> {
        let followed = self.rows.map(|rows| {
            let next = |i: &usize| rows[*i].checked_add(1) == rows.get(i + 1).copied();
            (0..rows.len()).filter(next).collect::<Vec<usize>>()
        });
        let found = by_column(self.columns.len(), |i| {
            let [source, generated] = &self.columns[i];
            let source_is = source.measured.ranks.is_some();
            let of = |side: &Side<'_>, followed: &[usize]| like_before(side, source_is, followed);
            let measure = of(source, &followed[0]).filter(|measure| !measure.is_vague())?;
            let found = of(generated, &followed[1]);
            if followed[1].len() < 100 || measure.is_unanswered(found) {
                return None;
            }
            let name = if source_is {
                "rank correlation with the row before"
            } else {
                "same value as the row before"
            };
            let measure = MeasureFidelity::new(name.to_owned(), measure, found);
            Some(OrderFidelity { column: source.leaf.path.clone(), measure })
        });
        let mut found: Vec<OrderFidelity> = found.into_iter().flatten().collect();
        found.sort_by(|a, b| b.measure.apart().total_cmp(&a.measure.apart()));
        found
    }
}

fn like_before(side: &Side<'_>, by_rank: bool, followed: &[usize]) -> Option<Measure> {
    let cells = side.leaf.cells;
    let at = |offset: usize| followed.iter().map(|i| cells.there[i + offset]).collect::<Vec<bool>>();
    let there = [at(0), at(1)];
    let there = [&there[0][..], &there[1][..]];
    match &side.measured.ranks {
        Some(ranks) if by_rank => {
            let of = |offset: usize| followed.iter().map(|i| ranks[i + offset]).collect::<Vec<f64>>();
            correlation(&of(0), &of(1), there)
        }
        _ if by_rank => None,
        _ => {
            let of = |offset: usize| followed.iter().map(|i| cells.words[i + offset]).collect::<Vec<u64>>();
            same([&of(0), &of(1)], there)
        }
    }
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
