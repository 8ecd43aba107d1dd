//! Searches the highest rate that holds the limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use sawmill_profile::median_interval;
use sawmill_source::{Error, Kind, Result};

use crate::arrivals::process::Arrivals;
use crate::arrivals::shape::Shape;
use crate::plan::limit::Limit;
use crate::plan::types::{Pace, Plan};
use crate::result::file::{DriveResult, FindMax, Trial};
use crate::run::capacity::capacity;
use crate::run::engine::{Driving, check_chaos, prove, run_on, tables_of, tear_down};
use crate::work::rows::SharedTable;
use crate::work::target::Target;

/// The search ends when the bounds are this close: a share of the rate.
const CLOSE: f64 = 0.05;
/// The share of the intended rate that the server has to achieve.
const ACHIEVED: f64 = 0.95;
/// How many times to run a trial that the driver keeps spoiling.
const SPOILT: u32 = 3;
/// Below a rate that did not hold, the search continues only if the next trial has at least this many operations.
const FEWEST: f64 = 5.0;
/// The most trials of one search.
const TRIALS: usize = 24;

/// Searches the highest rate `repeats` times, starting at the plan's rate. Doubles the rate until a limit does not
/// hold, or halves it until all do, then halves the distance. Each trial lasts as long as the plan says. The server
/// also has to achieve the rate. A trial that the driver spoilt says nothing and is repeated. If the driver spoils
/// it again and again, the search ends with an invalid result: the server may take more. The result has the figures
/// of a trial at the reported rate.
///
/// # Errors
/// No limits, a closed loop, a trace, a part of a run; as [`run`](crate::run).
pub fn find_max(
    plan: &mut Plan,
    limits: &[Limit],
    repeats: usize,
    driving: Driving<'_>,
) -> Result<DriveResult> {
    let first = first_rate(plan, limits, driving.server.is_some())?;
    let target = driving.address.target(plan, driving.cancel)?;
    let tables = tables_of(plan)?;
    let capacity = capacity(plan, driving.cancel)?;
    target.set_up(plan, &tables, driving.cancel)?;
    // All trials use the same tables, which are looked at and dropped after the last one.
    let proof = std::mem::replace(&mut plan.proof, false);
    let drop_after = std::mem::replace(&mut plan.drop_after, false);
    let cancel = driving.cancel;
    let names = limits.iter().map(Limit::to_string).collect();
    let mut search = Search {
        target: target.as_ref(),
        tables: &tables,
        limits,
        capacity,
        driving,
        found: FindMax { limits: names, ..FindMax::default() },
        held: Vec::new(),
        first: None,
        bound_by: BTreeMap::new(),
        spoilt: None,
    };
    for _ in 0..repeats {
        search.once(plan, first)?;
    }
    let Search { mut found, held, first, bound_by, spoilt, .. } = search;
    summarise(&mut found);
    let reported = held.into_iter().find(|(rate, _)| *rate == found.rate).map(|(_, result)| result);
    found.bound_by =
        bound_by.into_iter().max_by_key(|(_, count)| *count).map_or("", |(what, _)| what).to_owned();
    let mut result = reported.or(first).ok_or_else(|| refused("no trial was made", "raise --repeats"))?;
    if proof && target.keeps_rows() {
        prove(&mut result, plan, target.as_ref(), &tables, cancel);
    }
    if drop_after {
        tear_down(target.as_ref(), &tables, &result, cancel)?;
    }
    if let Some(reason) = spoilt {
        result.valid = false;
        result.invalid_because.push(format!("the search was ended by the driver, not by a limit: {reason}"));
    }
    result.limits = limits.iter().map(|limit| limit.judge(&result)).collect();
    result.find_max = Some(found);
    Ok(result)
}

fn refused(what: &str, advice: &str) -> Error {
    Error::new(Kind::Config, what).at("--find-max").advise(advice)
}

/// The rate at which the search starts.
fn first_rate(plan: &Plan, limits: &[Limit], starts_server: bool) -> Result<f64> {
    if limits.is_empty() {
        return Err(refused("no limits", "give --p99 50ms or --limit 'insert.p99 < 20ms'"));
    }
    if plan.part.1 > 1 {
        return Err(refused(
            "a search in a part of a run",
            "search in one process: the others would not follow",
        ));
    }
    check_chaos(plan, starts_server)?;
    match &plan.pace {
        Pace::Open { shape: Shape::Constant(rate), arrivals } if !matches!(arrivals, Arrivals::Trace(_)) => {
            Ok(*rate)
        }
        _ => Err(refused("this needs an open loop of a constant rate", "give --rate, from where to search")),
    }
}

/// The median of the rates that were found, and its interval.
pub(crate) fn summarise(found: &mut FindMax) {
    let mut sorted = found.found.clone();
    sorted.sort_by(f64::total_cmp);
    let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) else { return };
    found.rate = sorted.get((sorted.len() - 1) / 2).copied().unwrap_or(0.0);
    (found.low, found.high, found.confidence) = match median_interval(&sorted) {
        Some(interval) => (interval.low, interval.high, 0.95),
        // All are on one side of the median in two of 2^n experiments.
        None => (*least, *greatest, 1.0 - 0.5f64.powi(sorted.len() as i32 - 1)),
    };
}

/// The highest rate that held, and the lowest one that did not.
#[derive(Default)]
struct Bracket {
    low: f64,
    high: Option<f64>,
}

impl Bracket {
    /// The rate to try after a trial of `length` seconds at `rate`; `None` at the end of the search.
    fn after(&mut self, rate: f64, held: bool, length: f64) -> Option<f64> {
        if held {
            self.low = rate;
        } else {
            self.high = Some(rate);
        }
        match self.high {
            None => Some(self.low * 2.0),
            Some(high) if high - self.low <= CLOSE * high || high * length < 2.0 * FEWEST => None,
            Some(high) => Some(f64::midpoint(self.low, high)),
        }
    }
}

/// Repeated searches on one set of tables.
struct Search<'a, 'd> {
    target: &'a dyn Target,
    tables: &'a Arc<Vec<Arc<SharedTable>>>,
    limits: &'a [Limit],
    capacity: Option<f64>,
    driving: Driving<'d>,
    found: FindMax,
    /// The highest rate of each search that held the limits, and its run.
    held: Vec<(f64, DriveResult)>,
    /// The first run, for a search in which no rate holds.
    first: Option<DriveResult>,
    /// The causes that bound the searches, with the number of searches each.
    bound_by: BTreeMap<&'static str, usize>,
    /// Why the driver ended a search.
    spoilt: Option<String>,
}

impl Search<'_, '_> {
    /// One search, from the rate `first` on.
    fn once(&mut self, plan: &mut Plan, first: f64) -> Result<()> {
        let (mut bracket, mut rate) = (Bracket::default(), first);
        let (mut best, mut bound) = (None, None);
        let length = plan.counted_length().as_secs_f64();
        for _ in 0..TRIALS {
            if let Pace::Open { shape, .. } = &mut plan.pace {
                *shape = Shape::Constant(rate);
            }
            let (result, held) = self.valid_trial(plan, rate)?;
            let next = bracket.after(rate, held, length);
            if held {
                best = Some(result);
            } else {
                let spoilt = result.invalid_because.first().cloned();
                bound = bound_by(&result);
                self.first.get_or_insert(result);
                if let Some(reason) = spoilt {
                    self.spoilt = Some(reason);
                    return Ok(());
                }
            }
            let Some(next) = next else { break };
            rate = next;
        }
        self.found.found.push(bracket.low);
        self.held.extend(best.map(|result| (bracket.low, result)));
        if let Some(what) = bound {
            *self.bound_by.entry(what).or_default() += 1;
        }
        Ok(())
    }

    /// Runs a trial, and returns whether it held. Repeats it while the driver spoils it.
    fn valid_trial(&mut self, plan: &Plan, rate: f64) -> Result<(DriveResult, bool)> {
        let mut spoilt = 0;
        loop {
            let result = self.trial(plan)?;
            let held = self.held(&result);
            self.found.trials.push(Trial {
                rate,
                achieved: result.total.rate,
                p99_us: result.total.latency.percentiles.p99_us,
                held,
                valid: result.valid,
            });
            spoilt += u32::from(!result.valid);
            if result.valid || spoilt == SPOILT {
                return Ok((result, held));
            }
        }
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
        if self.driving.cancel.load(Relaxed) { Err(Error::cancelled()) } else { Ok(result) }
    }

    /// Whether the server kept the limits, and the driver the rate.
    fn held(&self, result: &DriveResult) -> bool {
        let intended = result.total.intended as f64 / result.run.duration.max(1e-9);
        result.valid
            && result.aborted.is_none()
            && result.total.rate >= ACHIEVED * intended
            && self.limits.iter().all(|limit| limit.judge(result).held)
    }
}

/// The cause of most late operations.
fn bound_by(result: &DriveResult) -> Option<&'static str> {
    let driver = &result.driver;
    let late =
        [("server", driver.late_by_server), ("pool", driver.late_by_pool), ("driver", driver.late_by_driver)];
    late.into_iter().filter(|(_, late)| *late > 0).max_by_key(|(_, late)| *late).map(|(what, _)| what)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use sawmill_generator::Dataset;

    use super::*;
    use crate::work::target::Address;

    #[test]
    fn the_reported_rate_was_tried_and_has_the_interval_that_its_searches_allow() {
        let of = |found: &[f64]| {
            let mut all = FindMax { found: found.to_vec(), ..FindMax::default() };
            summarise(&mut all);
            (all.rate, all.low, all.high, all.confidence)
        };
        let once = FindMax { found: vec![100.0], ..FindMax::default() };
        assert_eq!(once.evidence(|rate| rate.to_string()), "1 search", "it has no interval");
        assert_eq!(of(&[300.0, 100.0, 200.0]), (200.0, 100.0, 300.0, 0.75));
        assert_eq!(of(&[400.0, 100.0]), (100.0, 100.0, 400.0, 0.5));
        let seven: Vec<f64> = (1..=7).map(f64::from).collect();
        assert_eq!(of(&seven), (4.0, 1.0, 7.0, 0.95));
        let nine: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(of(&nine), (5.0, 2.0, 8.0, 0.95));
    }

    #[test]
    fn a_search_doubles_the_rate_until_it_does_not_hold_and_then_halves_the_distance() {
        let rates = |first: f64, holds: f64| {
            let mut bracket = Bracket::default();
            let mut rates = vec![first];
            while let Some(next) = rates.last().and_then(|rate| bracket.after(*rate, *rate <= holds, 1.0)) {
                rates.push(next);
            }
            rates
        };
        assert_eq!(rates(20.0, 100.0), [20.0, 40.0, 80.0, 160.0, 120.0, 100.0, 110.0, 105.0]);
        assert_eq!(rates(800.0, 100.0), [800.0, 400.0, 200.0, 100.0, 150.0, 125.0, 112.5, 106.25, 103.125]);
        assert_eq!(rates(20.0, 0.0), [20.0, 10.0, 5.0], "a trial at 2.5 a second has too few operations");
    }

    /// Why a search is refused before it begins.
    fn refusal(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = Plan::of_dataset(Dataset::built_in("events").unwrap().unwrap());
        change(&mut plan);
        let (cancel, mut observer) = (AtomicBool::new(false), ());
        let driving = Driving {
            address: &Address::Null,
            server: None,
            cancel: &cancel,
            observer: &mut observer,
            command: String::new(),
        };
        let limits = [Limit::p99(Duration::from_secs(1))];
        find_max(&mut plan, &limits, 1, driving).map(drop).unwrap_err().what()
    }

    #[test]
    fn a_part_of_a_run_does_not_search() {
        assert_eq!(refusal(|plan| plan.part = (1, 2)), "a search in a part of a run");
    }

    #[test]
    fn chaos_that_cannot_happen_is_refused() {
        let chaos = |text: &str| {
            let chaos = Some(text.parse().unwrap());
            refusal(|plan| (plan.chaos, plan.length) = (chaos, Some(Duration::from_secs(10))))
        };
        let what = chaos("kill server every 1s");
        assert!(what.ends_with("this command did not start the server"), "{what}");
        let what = chaos("docker restart db every 10s");
        assert!(what.ends_with("the run ends before the first time"), "{what}");
    }
}
