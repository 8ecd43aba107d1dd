//! The correlations of normal scores with which generated ranks are correlated as in the sample.

use crate::draw::copula::{By, Copula, Member, Scores, bin, factors, shares_below};
use crate::infer::by_column::by_column;
use crate::infer::copula::axis::{Axis, Of};
use crate::infer::copula::forest::counts;
use crate::infer::copula::scores::{correlation, mean_score, mean_square};
use crate::random::rng::{Sequence, Stream};
use crate::random::ziggurat::normal;

/// How often correlations are corrected by what they generate.
const ROUNDS: usize = 8;

/// The rows that are generated for it, and the most of them times the members.
const ROWS: usize = 16_384;
const MAX_CELLS: usize = 1 << 19;

/// The greatest correlation, which leaves something of each score.
const MAX: f64 = 0.999;

/// The most of a score that others determine: correlations with few digits stay possible.
const KNOWN: f64 = 0.985;

/// A copula with the axes of its members.
pub(crate) struct Fitted {
    axes: Vec<Axis>,
    /// The axis of each member, and the place of the member by whose table it is drawn.
    order: Vec<(usize, Option<usize>)>,
    tables: Vec<Option<Vec<Vec<u32>>>>,
    with: Vec<Vec<f64>>,
}

/// A member as it is written.
pub(crate) struct Written<'a> {
    pub axis: &'a Axis,
    pub with: &'a [f64],
    pub by: Option<(Of, &'a [Vec<u32>])>,
}

impl Fitted {
    pub(super) fn new(axes: Vec<Axis>, order: Vec<(usize, Option<usize>)>) -> Self {
        let codes = by_column(order.len(), |i| {
            let axis = &axes[order[i].0];
            let code = |rank: &f64| if rank.is_nan() { u16::MAX } else { bin(&axis.bins, *rank) as u16 };
            axis.ranks.iter().map(code).collect::<Vec<u16>>()
        });
        let bins = |place: usize| axes[order[place].0].bins.len() - 1;
        let tables = by_column(order.len(), |i| {
            let place = order[i].1?;
            Some(counts((&codes[place], &codes[i]), [bins(place), bins(i)]))
        });
        let with = (0..order.len()).map(|i| vec![0.0; i]).collect();
        let mut fitted = Fitted { axes, order, tables, with };
        fitted.fit();
        fitted
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = Written<'_>> {
        self.order.iter().zip(&self.tables).zip(&self.with).map(|(((axis, place), table), with)| Written {
            axis: &self.axes[*axis],
            with,
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
        let factors = factors(correlations, KNOWN).0;
        let member = |(i, factors)| Member {
            // Their scores are given.
            scores: Scores::Rows(1),
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
        let rows = axis.low.iter().zip(&axis.high);
        match self.by(member) {
            None => rows
                .map(|(low, high)| if low.is_nan() { f64::NAN } else { mean_score(*low, *high) })
                .collect(),
            Some(by) => {
                let others = &self.axis(by.member).ranks;
                let score = |((low, high), other): ((&f64, &f64), &f64)| match low.is_nan() || other.is_nan()
                {
                    true => f64::NAN,
                    false => mean_score(by.share(*other, *low), by.share(*other, *high)),
                };
                rows.zip(others).map(score).collect()
            }
        }
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
        let rows = ROWS.min(MAX_CELLS / n.max(1));
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
    }

    /// Lets sorted members have the scores of the rows.
    fn follow_rows(&self, correlations: &mut [Vec<f64>]) {
        if !matches!(self.axis(0).of, Of::Rows(_)) {
            return;
        }
        for (i, with) in correlations.iter_mut().enumerate().skip(1) {
            if self.axis(i).is_sorted {
                with.fill(0.0);
                with[0] = 1.0;
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
        if factors(&rounded, 1.0).1 <= 0.01 || lower < 0.5 {
            return rounded;
        }
        lower -= 0.01;
    }
}

/// The correlations that scores can have.
fn possible(correlations: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let factors = factors(correlations, KNOWN).0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let with = |i: usize, j: usize| {
        let found = product(&factors[i], &factors[j]);
        if found > 1.0 - 1e-9 { 1.0 } else { found }
    };
    (0..factors.len()).map(|i| (0..i).map(|j| with(i, j)).collect()).collect()
}
