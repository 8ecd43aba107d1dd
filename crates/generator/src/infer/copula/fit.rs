//! The correlations of normal scores with which generated ranks are correlated as in the sample.

use crate::draw::copula::{By, Copula, MAX_BEFORE, Member, Scores, factors, shares_below};
use crate::infer::by_column::by_column;
use crate::infer::copula::axis::{Axis, Of, lags};
use crate::infer::copula::forest::counts;
use crate::infer::copula::scores::{correlation, correlation_before, mean_score, mean_square, positive};
use crate::random::rng::{Sequence, Stream};
use crate::random::ziggurat::normal;

/// How often correlations are corrected by what they generate.
const ROUNDS: usize = 8;

/// The rows that are generated for it, and the most of them times the members.
const MIN_ROWS: usize = 2048;
const ROWS: usize = 16_384;
const MAX_CELLS: usize = 1 << 19;

/// The greatest correlation, which leaves something of each score.
const MAX: f64 = 0.999;

/// Rows that are less like the one before are independent of it.
const MIN_BEFORE: f64 = 0.05;

/// Of two rows that a row may follow, the nearer one counts, unless the other is more alike by this much.
const NEARER: f64 = 0.05;

/// The fewest independent values of a series among many rows.
const MIN_TURNS: f64 = 1000.0;

/// The least variance that scores have in any direction: correlations with few digits stay possible.
const LEAST: f64 = 0.003;

/// A copula with the axes of its members.
pub(crate) struct Fitted {
    axes: Vec<Axis>,
    /// The axis of each member, and the place of the member by whose table it is drawn.
    order: Vec<(usize, Option<usize>)>,
    tables: Vec<Option<Vec<Vec<u32>>>>,
    with: Vec<Vec<f64>>,
    /// For each member, the correlation of its independent scores that are some rows apart, and this distance.
    before: Vec<(f64, u64)>,
}

/// A member as it is written.
pub(crate) struct Written<'a> {
    pub axis: &'a Axis,
    pub with: &'a [f64],
    pub before: f64,
    pub lag: u64,
    pub by: Option<(Of, &'a [Vec<u32>])>,
}

impl Fitted {
    pub(super) fn new(axes: Vec<Axis>, order: Vec<(usize, Option<usize>)>) -> Self {
        let codes = by_column(order.len(), |i| axes[order[i].0].codes());
        let bins = |place: usize| axes[order[place].0].bins.len() - 1;
        let tables = by_column(order.len(), |i| {
            let place = order[i].1?;
            Some(counts((&codes[place], &codes[i]), [bins(place), bins(i)]))
        });
        let with = (0..order.len()).map(|i| vec![0.0; i]).collect();
        let before = vec![(0.0, 1); order.len()];
        let mut fitted = Fitted { axes, order, tables, with, before };
        fitted.fit();
        fitted
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = Written<'_>> {
        let members = self.order.iter().zip(&self.tables).zip(self.with.iter().zip(&self.before));
        members.map(|(((axis, place), table), (with, before))| Written {
            axis: &self.axes[*axis],
            with,
            before: before.0,
            lag: before.1,
            by: place.zip(table.as_deref()).map(|(place, table)| (self.axes[self.order[place].0].of, table)),
        })
    }

    fn axis(&self, member: usize) -> &Axis {
        &self.axes[self.order[member].0]
    }

    fn by(&self, member: usize) -> Option<By> {
        let (place, table) = (self.order[member].1?, self.tables[member].as_ref()?);
        let (of, own) = (self.axis(place).bins.clone(), self.axis(member).bins.clone());
        let line =
            |line: &Vec<u32>| shares_below(&line.iter().map(|n| f64::from(*n)).collect::<Vec<_>>(), &own);
        let below = table.iter().map(line).collect();
        Some(By { member: place, of, own, below })
    }

    fn copula(&self, correlations: &[Vec<f64>]) -> Copula {
        let factors = factors(correlations).0;
        let member = |(i, factors)| Member {
            // Their scores are given.
            scores: Scores::Rows(1),
            before: 0.0,
            lag: 1,
            factors,
            by: self.by(i),
            there: None,
        };
        let members = factors.into_iter().enumerate().map(member).collect();
        Copula { members, ..Copula::default() }
    }

    /// The normal scores of what the tables leave.
    fn scores(&self, member: usize) -> Vec<f64> {
        let axis = self.axis(member);
        let Some(by) = self.by(member) else { return axis.scores() };
        let score = |((low, high), other): ((&f64, &f64), &f64)| match low.is_nan() || other.is_nan() {
            true => f64::NAN,
            false => mean_score(by.share(*other, *low), by.share(*other, *high)),
        };
        axis.low.iter().zip(&axis.high).zip(&self.axis(by.member).ranks).map(score).collect()
    }

    fn fit(&mut self) {
        let n = self.order.len();
        let scores = by_column(n, |i| self.scores(i));
        // How much of the scores is known where values are few.
        let known: Vec<f64> = scores.iter().map(|scores| mean_square(scores).clamp(0.05, 1.0)).collect();
        let middles =
            by_column(n, |i| (0..scores[i].len()).map(|row| self.axis(i).middle(row)).collect::<Vec<f64>>());
        // Whether a field is null says nothing where it is not: such pairs have no correlation of their own.
        let varies = |(found, n): (f64, usize)| (n > 1 && found != 0.0).then_some(found);
        let wanted = by_column(n, |i| {
            (0..i).map(|j| varies(correlation(&middles[i], &middles[j]))).collect::<Vec<_>>()
        });
        let mut found = by_column(n, |i| {
            let of = |j: usize| correlation(&scores[i], &scores[j]).0 / (known[i] * known[j]).sqrt();
            (0..i).map(|j| of(j).clamp(-MAX, MAX)).collect::<Vec<f64>>()
        });
        // Correlations of few rows are rough.
        let rows = (8 * self.axis(0).low.len()).clamp(MIN_ROWS, ROWS).min(MAX_CELLS / n.max(1));
        let independent = by_column(n, |i| {
            let stream = Stream::new(3, i as u64, 0);
            (0..rows).map(|row| normal(&mut Sequence::new(stream.draw(row as u64)))).collect::<Vec<f64>>()
        });
        let mut best = (f64::INFINITY, Vec::new());
        for _ in 0..ROUNDS {
            through_others(&mut found, &wanted);
            self.follow_rows(&mut found);
            // Only what scores can have is corrected further.
            found = possible(&found);
            self.follow_rows(&mut found);
            let ranks = self.copula(&found).of_scores(&independent, false);
            let made = by_column(n, |i| {
                let axis = self.axis(i);
                ranks[i].iter().map(|rank| axis.middle_of(*rank)).collect::<Vec<f64>>()
            });
            let off = by_column(n, |i| {
                let of =
                    |j: usize| wanted[i][j].map_or(0.0, |wanted| wanted - correlation(&made[i], &made[j]).0);
                (0..i).map(of).collect::<Vec<f64>>()
            });
            let sum = off.iter().flatten().map(|off| off.abs()).sum::<f64>();
            if sum < best.0 {
                best = (sum, found.clone());
            }
            for i in 0..n {
                for j in 0..i {
                    let more = off[i][j] / (known[i] * known[j]).max(0.4);
                    found[i][j] = (found[i][j] + 0.8 * more).clamp(-MAX, MAX);
                }
            }
        }
        self.with = rounded(&best.1);
        self.before = self.like_before(&scores, &known);
    }

    /// For each member, the correlation of its independent scores that are some rows apart, and this distance, so that
    /// its scores correlate as in the sample.
    fn like_before(&self, scores: &[Vec<f64>], known: &[f64]) -> Vec<(f64, u64)> {
        let factors = factors(&self.with).0;
        // Slow series are alike by chance.
        let rows = match self.axes.first().map(|axis| axis.of) {
            Some(Of::Rows(rows)) => rows as f64,
            _ => 1.0,
        };
        let root = (1.0 - 2.0 * MIN_TURNS / rows).max(0.5);
        let most = (2.0 * root / (1.0 + root * root)).min(MAX_BEFORE);
        let lags = lags(&self.axes);
        let mut kept: Vec<Vec<f64>> = vec![Vec::new(); lags.len()];
        let mut out: Vec<(f64, u64)> = Vec::new();
        for (i, factors) in factors.iter().enumerate() {
            let own = factors.last().map_or(0.0, |own| own * own);
            let is_rows = self.axis(i).period > 0 || matches!(self.axis(i).of, Of::Rows(_));
            let of_lag = |(pairs, kept): (&[[usize; 2]], &[f64])| {
                let (found, n) = correlation_before(&scores[i], pairs);
                let of_others: f64 =
                    factors.iter().zip(kept).map(|(factor, before)| factor * factor * before).sum();
                let before = (found / known[i] - of_others) / own.max(1e-9);
                let tells = n > 0 && found > MIN_BEFORE + 4.0 / (n as f64).sqrt();
                match own > 0.0 && tells && before > MIN_BEFORE {
                    _ if is_rows => (found / known[i]).clamp(0.0, 1.0),
                    true => (before.min(most) * 10_000.0).floor() / 10_000.0,
                    false => 0.0,
                }
            };
            let found: Vec<f64> =
                lags.iter().zip(&kept).map(|((_, pairs), kept)| of_lag((pairs, kept))).collect();
            let is_better = |best: usize, at: usize| found[at] > found[best] + NEARER;
            let best = (0..found.len()).fold(0, |best, at| if is_better(best, at) { at } else { best });
            for (at, kept) in kept.iter_mut().enumerate() {
                kept.push(if is_rows || at == best { found[at] } else { 0.0 });
            }
            out.push((found[best], lags[best].0));
        }
        out
    }

    /// Lets sorted members have the scores of the rows, and those with a cycle their own.
    fn follow_rows(&self, correlations: &mut [Vec<f64>]) {
        let has_rows = matches!(self.axis(0).of, Of::Rows(_));
        for (i, with) in correlations.iter_mut().enumerate().skip(1) {
            if self.axis(i).period > 0 {
                with.fill(0.0);
            } else if let Some(direction) = self.axis(i).sorted.filter(|_| has_rows) {
                with.fill(0.0);
                with[0] = direction;
            }
        }
    }
}

/// Gives pairs without a correlation of their own the one that they have through another member.
fn through_others(correlations: &mut [Vec<f64>], wanted: &[Vec<Option<f64>>]) {
    let of = |all: &[Vec<f64>], i: usize, j: usize| all[i.max(j)][i.min(j)];
    for i in 0..correlations.len() {
        for j in (0..i).filter(|j| wanted[i][*j].is_none()) {
            let others = (0..correlations.len()).filter(|k| *k != i && *k != j);
            let products = others.map(|k| of(correlations, i, k) * of(correlations, j, k));
            correlations[i][j] = products.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
        }
    }
}

/// The correlations with as many digits as are written, low enough that they stay possible.
fn rounded(correlations: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut lower = 1.0;
    loop {
        let of = |v: &f64| if v.abs() == 1.0 { *v } else { (v * lower * 10_000.0).round() / 10_000.0 };
        let rounded: Vec<Vec<f64>> = correlations.iter().map(|with| with.iter().map(of).collect()).collect();
        if factors(&rounded).1 <= 0.01 || lower < 0.5 {
            return rounded;
        }
        lower -= 0.01;
    }
}

/// The correlations that scores can have: of the ones given, without the directions in which scores would not vary.
/// Copies of the rows, also in falling order, stay copies.
fn possible(correlations: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let is_copy = |with: &Vec<f64>| with.first().is_some_and(|first| first.abs() == 1.0);
    let own: Vec<usize> = (0..correlations.len()).filter(|i| !is_copy(&correlations[*i])).collect();
    let at = |i: usize, j: usize| if i == j { 1.0 } else { correlations[i.max(j)][i.min(j)] };
    let matrix: Vec<Vec<f64>> = own.iter().map(|i| own.iter().map(|j| at(*i, *j)).collect()).collect();
    let matrix = positive(matrix, LEAST);
    let mut out = correlations.to_vec();
    for (line, i) in matrix.iter().zip(&own) {
        for (value, j) in line.iter().zip(own.iter().take_while(|j| *j < i)) {
            out[*i][*j] = *value;
        }
    }
    // Other scores correlate with copies as with the rows.
    for (j, with) in correlations.iter().enumerate().filter(|(_, with)| is_copy(with)) {
        for i in own.iter().filter(|i| **i > j) {
            out[*i][j] = with[0] * out[*i][0];
        }
    }
    out
}
