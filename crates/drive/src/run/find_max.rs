//! Searches the highest rate that holds the limits.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_source::{Error, Kind, Result};

use crate::arrivals::process::Arrivals;
use crate::arrivals::shape::Shape;
use crate::plan::limit::Limit;
use crate::plan::types::{Pace, Plan};
use crate::result::file::{DriveResult, FindMax, Trial};
use crate::run::capacity::capacity;
use crate::run::engine::{Driving, proofs, run_on, tables_of};
use crate::work::rows::SharedTable;
use crate::work::target::Target;

/// The search ends when the bounds are this close: a share of the rate.
const CLOSE: f64 = 0.05;
/// The share of the intended rate that has to be achieved.
const ACHIEVED: f64 = 0.95;
/// The most trials of one search.
const TRIALS: usize = 24;

/// Searches the highest rate `repeats` times, from the plan's rate on: doubled until a limit does not hold, or
/// halved until all do, then halving the distance. Each trial lasts as long as the plan says. The rate
/// has to be achieved, too. A trial that the driver itself spoilt ends the search like one that misses a limit,
/// but the result is then invalid: the server may take more.
///
/// # Errors
/// No limits, a closed loop, a trace; as [`run`](crate::run).
pub fn find_max(
    plan: &mut Plan,
    limits: &[Limit],
    repeats: usize,
    driving: Driving<'_>,
) -> Result<DriveResult> {
    let refused = |what: &str, advice: &str| Error::new(Kind::Config, what).at("--find-max").advise(advice);
    if limits.is_empty() {
        return Err(refused("no limits", "give --p99 50ms or --limit 'insert.p99 < 20ms'"));
    }
    let first = match &plan.pace {
        Pace::Open { shape: Shape::Constant(rate), arrivals } if !matches!(arrivals, Arrivals::Trace(_)) => {
            *rate
        }
        _ => {
            return Err(refused(
                "this needs an open loop of a constant rate",
                "give --rate, from where to search",
            ));
        }
    };
    let target = driving.address.target(plan)?;
    let tables = tables_of(plan)?;
    let capacity = capacity(plan, driving.cancel)?;
    target.set_up(plan, &tables, driving.cancel)?;
    let proof = std::mem::replace(&mut plan.proof, false);
    let cancel = driving.cancel;
    let names = limits.iter().map(Limit::to_string).collect();
    let mut search = Search {
        target: target.as_ref(),
        tables: &tables,
        limits,
        capacity,
        driving,
        found: FindMax { limits: names, ..FindMax::default() },
        last: None,
        spoilt: None,
    };
    for _ in 0..repeats.max(1) {
        search.once(plan, first)?;
    }
    let Search { mut found, last, spoilt, .. } = search;
    let mut sorted = found.found.clone();
    sorted.sort_by(f64::total_cmp);
    found.rate = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    (found.low, found.high) = (sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(0.0));
    let mut result = last.ok_or_else(|| refused("no trial was made", "raise --repeats"))?;
    if proof && target.keeps_rows() {
        result.proof = proofs(target.as_ref(), &tables, cancel);
    }
    if let Some(reason) = spoilt {
        result.valid = false;
        result.invalid_because.push(format!("the search was ended by the driver, not by a limit: {reason}"));
    }
    result.limits = limits.iter().map(|limit| limit.judge(&result)).collect();
    result.find_max = Some(found);
    Ok(result)
}

/// Repeated searches on one set of tables.
struct Search<'a, 'd> {
    target: &'a dyn Target,
    tables: &'a Arc<Vec<Arc<SharedTable>>>,
    limits: &'a [Limit],
    capacity: f64,
    driving: Driving<'d>,
    found: FindMax,
    /// The last run that held the limits, or the first if none did.
    last: Option<DriveResult>,
    /// Why the lowest rate that did not hold was the driver's fault, of the last search in which it was.
    spoilt: Option<String>,
}

impl Search<'_, '_> {
    /// One search, from the rate `first` on.
    fn once(&mut self, plan: &mut Plan, first: f64) -> Result<()> {
        let (mut low, mut high, mut rate) = (0.0, f64::INFINITY, first);
        let mut spoilt = None;
        for _ in 0..TRIALS {
            if let Pace::Open { shape, .. } = &mut plan.pace {
                *shape = Shape::Constant(rate);
            }
            let result = self.trial(plan)?;
            let held = self.held(&result);
            self.found.trials.push(Trial {
                rate,
                achieved: result.total.rate,
                p99_us: result.total.latency.percentiles.p99_us,
                held,
                valid: result.valid,
            });
            if held {
                (low, self.last) = (rate, Some(result));
            } else {
                high = rate;
                spoilt = result.invalid_because.first().cloned();
                self.last.get_or_insert(result);
            }
            if high - low <= CLOSE * high || high < 0.01 {
                break;
            }
            rate = if high.is_infinite() { low * 2.0 } else { f64::midpoint(low, high) };
        }
        self.found.found.push(low);
        self.spoilt = spoilt.or(self.spoilt.take());
        Ok(())
    }

    fn trial(&mut self, plan: &Plan) -> Result<DriveResult> {
        let driving = Driving {
            address: self.driving.address,
            server: self.driving.server.as_deref_mut(),
            cancel: self.driving.cancel,
            observer: &mut *self.driving.observer,
            command: self.driving.command.clone(),
        };
        let result = run_on(plan, self.target, self.tables, self.capacity, driving)?;
        match self.driving.cancel.load(Relaxed) {
            true => Err(Error::cancelled()),
            false => Ok(result),
        }
    }

    /// Whether the server kept the limits, and the driver the rate.
    fn held(&self, result: &DriveResult) -> bool {
        let intended = result.total.intended as f64 / result.run.duration.max(1e-9);
        result.valid
            && result.total.rate >= ACHIEVED * intended
            && self.limits.iter().all(|limit| limit.judge(result).held)
    }
}
