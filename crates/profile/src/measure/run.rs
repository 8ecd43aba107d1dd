//! One measured run of anything, and interleaved runs of several sides.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::trace::seconds;

/// One measured run: of a whole process, or of a call within this one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Wall-clock time.
    #[serde(with = "seconds")]
    pub wall: Duration,
    /// CPU time in user space.
    #[serde(with = "seconds", default)]
    pub user: Duration,
    /// CPU time in the kernel.
    #[serde(with = "seconds", default)]
    pub system: Duration,
    /// Peak resident memory in bytes, if known.
    pub peak_memory: Option<u64>,
    /// Rows processed, if counted.
    pub rows: Option<u64>,
    /// Bytes processed, if counted.
    pub bytes: Option<u64>,
    /// Bytes that the run stored in its target, as the target reports them: a table including its indexes.
    pub stored: Option<u64>,
    /// A checksum over the work, as any text; sides that did the same work have the same one.
    pub checksum: Option<String>,
}

impl Run {
    /// CPU time, user plus system.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// How often to run each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Warm-up runs before the counted ones.
    pub warmup: u32,
    /// Counted runs.
    pub runs: u32,
}

/// Identifies one run of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNumber {
    /// Counted from 0, separately for warm-up and counted runs.
    pub number: u32,
    /// Whether it is a warm-up run.
    pub warmup: bool,
}

/// One of several sides run interleaved.
pub struct Side<'a, E> {
    name: String,
    run: Box<dyn FnMut(RunNumber) -> std::result::Result<Run, E> + 'a>,
}

impl<'a, E> Side<'a, E> {
    /// A side with a name and a closure that runs it once.
    pub fn new(name: &str, run: impl FnMut(RunNumber) -> std::result::Result<Run, E> + 'a) -> Self {
        Self { name: name.to_owned(), run: Box::new(run) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<E> std::fmt::Debug for Side<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Side").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs the sides interleaved, A B A B, so that disturbances affect all of them. Returns the counted runs of
/// each side, in the order of the sides.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use sawmill_profile::{Error, Run, RunPlan, Side, run_interleaved};
/// let mut order = std::cell::RefCell::new(String::new());
/// let side = |name: &'static str| {
///     let order = &order;
///     Side::new(name, move |_| {
///         order.borrow_mut().push_str(name);
///         Ok::<_, Error>(Run::default())
///     })
/// };
/// let plan = RunPlan { warmup: 1, runs: 2 };
/// let runs = run_interleaved(&mut [side("A"), side("B")], plan, &AtomicBool::new(false)).unwrap();
/// assert_eq!(runs[0].len(), 2);
/// # let runs = ();
/// assert_eq!(order.get_mut(), "ABABAB");
/// ```
///
/// # Errors
/// A side fails; the sides did not do the same work, judged by the row counts and checksums that both report;
/// or `cancel` was set, which is checked before each run.
pub fn run_interleaved<E: From<Error>>(
    sides: &mut [Side<'_, E>],
    plan: RunPlan,
    cancel: &AtomicBool,
) -> std::result::Result<Vec<Vec<Run>>, E> {
    let mut runs: Vec<Vec<Run>> = sides.iter().map(|_| Vec::new()).collect();
    let mut work: Vec<(String, Run)> = Vec::new();
    let rounds = (0..plan.warmup).map(|number| RunNumber { number, warmup: true });
    for round in rounds.chain((0..plan.runs).map(|number| RunNumber { number, warmup: false })) {
        for (side, done) in sides.iter_mut().zip(&mut runs) {
            if cancel.load(Relaxed) {
                return Err(Error::failed("stopped before all runs were done", side.name(), "").into());
            }
            let run = (side.run)(round)?;
            same_work(&mut work, side.name(), &run)?;
            if !round.warmup {
                done.push(run);
            }
        }
    }
    Ok(runs)
}

/// Compares a run with the first one that reported the same figure.
pub(crate) fn same_work(seen: &mut Vec<(String, Run)>, name: &str, run: &Run) -> Result<()> {
    for (other, theirs) in seen.iter() {
        if let (Some(ours), Some(theirs)) = (run.rows, theirs.rows)
            && ours != theirs
        {
            return Err(not_the_same(other, name, &format!("{theirs} rows and {ours} rows")));
        }
        if let (Some(ours), Some(theirs)) = (&run.checksum, &theirs.checksum)
            && ours != theirs
        {
            return Err(not_the_same(other, name, &format!("checksums {theirs} and {ours}")));
        }
    }
    if !seen.iter().any(|(other, _)| other == name) {
        seen.push((name.to_owned(), run.clone()));
    }
    Ok(())
}

fn not_the_same(first: &str, second: &str, figures: &str) -> Error {
    let place =
        if first == second { format!("two runs of {first}") } else { format!("{first} and {second}") };
    let advice = "give both sides the same input and options; otherwise their times cannot be compared";
    Error::failed(format!("the runs did not do the same work: {figures}"), place, advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, rows: Option<u64>, checksum: Option<&str>) -> Side<'static, Error> {
        let run = Run { rows, checksum: checksum.map(str::to_owned), ..Run::default() };
        Side::new(name, move |_| Ok(run.clone()))
    }

    const PLAN: RunPlan = RunPlan { warmup: 0, runs: 3 };

    #[test]
    fn sides_that_did_different_work_are_an_error() {
        let go = AtomicBool::new(false);
        let error =
            run_interleaved(&mut [side("ours", Some(10), None), side("psql", Some(9), None)], PLAN, &go)
                .unwrap_err();
        assert_eq!(error.what(), "the runs did not do the same work: 10 rows and 9 rows");
        assert_eq!(error.place(), "ours and psql");
        let sums = &mut [side("a", None, Some("x")), side("b", None, Some("y"))];
        assert!(run_interleaved(sums, PLAN, &go).is_err());
        let silent = &mut [side("a", Some(1), Some("x")), side("b", None, None)];
        assert_eq!(run_interleaved(silent, PLAN, &go).unwrap()[1].len(), 3);
    }

    #[test]
    fn a_set_flag_stops_the_runs() {
        let stop = AtomicBool::new(true);
        assert!(run_interleaved(&mut [side("a", None, None)], PLAN, &stop).is_err());
    }
}
