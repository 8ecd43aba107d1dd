//! The order of each column's rows, in the source and in generated data.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;

use crate::infer::by_column::by_column;
use crate::infer::fidelity::measures::{DISTANCE, Measure, correlation, same};
use crate::infer::fidelity::pairs::{Both, MeasureFidelity, Side};

/// How many rows apart values are compared.
const LAGS: [u64; 4] = [1, 2, 10, 100];

/// The fewest rows that follow others.
const MIN_STEPS: usize = 100;

/// A column with at most this share of steps the wrong way is sorted.
const MAX_WRONG: f64 = 0.001;

/// How many rows a value of another column has on average, if the rows of each are a series.
const ROWS_EACH: usize = 20;

/// The order of a column's rows.
#[derive(Clone, Debug, Serialize)]
pub struct OrderFidelity {
    /// Its path.
    pub column: String,
    /// How much a row is like one before.
    #[serde(flatten)]
    pub measure: MeasureFidelity,
}

/// The places of a row before another one, and of that.
type Step = [usize; 2];

/// Why the order of the rows within a category was not compared.
enum NoSeries {
    /// The values are too few, or have too few rows.
    Values,
    /// Some rows between are missing.
    Part,
}

impl Both<'_> {
    /// The correlations of each column with its earlier rows, the least well kept first, without columns that have none.
    /// Then the columns that are not compared.
    pub(super) fn order(&self) -> (Vec<OrderFidelity>, Vec<String>) {
        // Sorted columns start again after the rows of the source.
        let periods = [u64::MAX, self.source_rows.max(1)];
        let lags = LAGS.map(|lag| [0, 1].map(|side| steps(self.rows[side], lag, periods[side])));
        let series = by_column(self.columns.len(), |i| self.series(i));
        let not_compared = self.unordered(&lags, &series);
        let found = by_column(self.columns.len(), |i| {
            let mut out = self.sorted(i, &lags[0]);
            let of_lags = LAGS.iter().zip(&lags).map(|(lag, steps)| {
                let before =
                    if *lag == 1 { "the row before".to_owned() } else { format!("the row {lag} before") };
                let always = *lag == 1 && self.columns[i].sides[0].measured.ranks.is_some();
                self.like_before(i, steps, &before, if always { -1.0 } else { DISTANCE })
            });
            out.extend(of_lags.flatten());
            let own = out.iter().map(|order| order.measure.source.abs()).fold(0.0, f64::max);
            let least = own + DISTANCE;
            let others = series.iter().enumerate().filter(|(by, _)| *by != i);
            let within = others.filter_map(|(by, steps)| {
                let before = format!("the row before of the same {}", self.columns[by].sides[0].leaf.path);
                // Generated rows alone do not make a series: some of many columns seem to be one by chance.
                let order = self.like_before(i, steps.as_ref().ok()?, &before, least);
                order.filter(|order| order.measure.source.abs() > least)
            });
            out.extend(within.max_by(|a, b| a.measure.source.total_cmp(&b.measure.source)));
            out
        });
        let mut found: Vec<OrderFidelity> = found.into_iter().flatten().collect();
        found.sort_by(|a, b| b.measure.apart().total_cmp(&a.measure.apart()));
        (found, not_compared)
    }

    /// The orders that no column is compared by.
    fn unordered(&self, lags: &[[Vec<Step>; 2]], series: &[Result<[Vec<Step>; 2], NoSeries>]) -> Vec<String> {
        let is_few = |[source, generated]: &[Vec<Step>; 2]| {
            let source = Measure::linear(0.0, source.len());
            generated.len() < MIN_STEPS || source.is_none_or(|source| source.is_vague())
        };
        let lags = LAGS.iter().zip(lags).filter(|(_, steps)| is_few(steps));
        let few = lags.map(|(lag, _)| format!("the order of rows {lag} apart: too few of them"));
        let is_part = series.iter().any(|of| matches!(of, Err(NoSeries::Part)));
        let part = "the order of the rows of each category: only some rows are compared".to_owned();
        few.chain((is_part && series.len() > 1).then_some(part)).collect()
    }

    fn named(&self, column: usize, measure: MeasureFidelity) -> OrderFidelity {
        OrderFidelity { column: self.columns[column].sides[0].leaf.path.clone(), measure }
    }

    /// How much rows are like the ones `before`, if that is more than `least` in one sample.
    fn like_before(
        &self,
        i: usize,
        steps: &[Vec<Step>; 2],
        before: &str,
        least: f64,
    ) -> Option<OrderFidelity> {
        let sides = &self.columns[i].sides;
        let by_rank = sides[0].measured.ranks.is_some();
        let of = |side: usize| like(&sides[side], by_rank, &steps[side]);
        let source = of(0).filter(|measure| !measure.is_vague())?;
        let generated = of(1);
        let most = generated.map_or(0.0, |of| of.value.abs()).max(source.value.abs());
        if steps[1].len() < MIN_STEPS || source.is_unanswered(generated) || most <= least {
            return None;
        }
        let name = if by_rank { "rank correlation with" } else { "same value as" };
        Some(self.named(i, MeasureFidelity::new(format!("{name} {before}"), source, generated)))
    }

    /// Whether values that never fall, or never rise, in the source do so in generated rows.
    fn sorted(&self, i: usize, steps: &[Vec<Step>; 2]) -> Vec<OrderFidelity> {
        let [source, generated] = [0, 1].map(|side| right_steps(&self.columns[i].sides[side], &steps[side]));
        let (Some(source), Some(generated)) = (source, generated) else { return Vec::new() };
        let names = ["steps that do not fall", "steps that do not rise"];
        let found = names.iter().zip(source.into_iter().zip(generated));
        // Constant values do neither.
        let sorted = found.filter(|(_, (own, _))| *own == 1.0 && source != [1.0; 2]);
        let measure = |(name, (source, generated)): (&&str, (f64, f64))| MeasureFidelity {
            measure: (*name).to_owned(),
            source,
            generated,
            is_kept: generated >= 1.0 - MAX_WRONG,
        };
        sorted.map(|found| self.named(i, measure(found))).collect()
    }

    /// The steps from each row to the next one with the same value of column `by`.
    fn series(&self, by: usize) -> Result<[Vec<Step>; 2], NoSeries> {
        let is_whole = |rows: &&[u64]| rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let sides = &self.columns[by].sides;
        let values = sides[0].leaf.by_frequency().len();
        if values < 2 || values * ROWS_EACH > self.rows[0].len() {
            return Err(NoSeries::Values);
        }
        if !self.rows.iter().all(is_whole) {
            return Err(NoSeries::Part);
        }
        Ok(sides.each_ref().map(|side| {
            let mut last: HashMap<u64, usize> = HashMap::new();
            let cells = side.leaf.cells;
            let there = cells.words.iter().zip(&cells.there).enumerate().filter(|(_, (_, there))| **there);
            there.filter_map(|(row, (word, _))| Some([last.insert(*word, row)?, row])).collect()
        }))
    }
}

/// The places of rows that are `lag` rows apart, in the same `period`.
fn steps(rows: &[u64], lag: u64, period: u64) -> Vec<Step> {
    let mut later = 0;
    let step = |(place, row): (usize, &u64)| {
        let wanted = row.checked_add(lag)?;
        later += rows[later..].partition_point(|row| *row < wanted);
        (rows.get(later) == Some(&wanted) && row / period == wanted / period).then_some([place, later])
    };
    rows.iter().enumerate().filter_map(step).collect()
}

fn like(side: &Side<'_>, by_rank: bool, steps: &[Step]) -> Option<Measure> {
    let cells = side.leaf.cells;
    let at = |end: usize| steps.iter().map(|step| cells.there[step[end]]).collect::<Vec<bool>>();
    let there = [at(0), at(1)];
    let there = [&there[0][..], &there[1][..]];
    match &side.measured.ranks {
        Some(ranks) if by_rank => {
            let of = |end: usize| steps.iter().map(|step| ranks[step[end]]).collect::<Vec<f64>>();
            correlation(&of(0), &of(1), there)
        }
        _ if by_rank => None,
        _ => {
            let of = |end: usize| steps.iter().map(|step| cells.words[step[end]]).collect::<Vec<u64>>();
            same([&of(0), &of(1)], there)
        }
    }
}

/// The shares of steps that do not fall, and that do not rise; `None` if they are few, or values have no order.
fn right_steps(side: &Side<'_>, steps: &[Step]) -> Option<[f64; 2]> {
    let cells = side.leaf.cells;
    let known = steps.iter().filter(|step| step.iter().all(|row| cells.there[*row]));
    let of = |[before, row]: &Step| match side.measured.ranks {
        Some(_) => Some(cells.numbers[*before].total_cmp(&cells.numbers[*row])),
        None => *cells.rises.get(*row)?,
    };
    let orders: Vec<Ordering> = known.filter_map(of).collect();
    let share =
        |wrong: Ordering| orders.iter().filter(|order| **order != wrong).count() as f64 / orders.len() as f64;
    (orders.len() >= MIN_STEPS).then(|| [share(Ordering::Greater), share(Ordering::Less)])
}
