//! Conditions that end a run early: `errors > 5%`, `p99 > 1s after 30s`.

use std::str::FromStr;
use std::time::Duration;

use sawmill_profile::{format_duration, parse_duration};

use crate::plan::limit::Limit;
use crate::result::file::OperationResult;

/// A condition that ends a run. Each second, it is checked against the counts so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    condition: Limit,
    /// How long the counted part has to last before it is judged.
    after: Duration,
}

impl FromStr for Abort {
    type Err = String;

    /// `errors > 5%`, `insert.p99 > 1s after 30s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (condition, after) = match text.rsplit_once(" after ") {
            None => (text, Duration::ZERO),
            Some((condition, after)) => {
                let refused = |_| format!("no time after `after` in {text:?}: write `errors > 5% after 30s`");
                (condition, parse_duration(after.trim()).map_err(refused)?)
            }
        };
        Ok(Self { condition: condition.parse()?, after })
    }
}

impl Abort {
    /// The condition.
    pub fn condition(&self) -> &Limit {
        &self.condition
    }

    /// Why the run ends after `counted` counted seconds; `None` if it continues.
    pub(crate) fn because(
        &self,
        counted: f64,
        total: &OperationResult,
        operations: &[OperationResult],
    ) -> Option<String> {
        let judged = self.condition.judge_in(total, operations);
        let is_true = judged.held && counted >= self.after.as_secs_f64();
        is_true.then(|| {
            let time = format_duration(Duration::from_secs_f64(counted));
            format!("{} after {time} ({})", judged.limit, judged.measured)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_ends_a_run_when_it_is_true_and_its_time_has_come() {
        let abort: Abort = "errors > 5% after 2s".parse().unwrap();
        let of = |errors: u64| OperationResult {
            intended: 100,
            errors: [("lost".to_owned(), errors)].into(),
            ..OperationResult::default()
        };
        assert_eq!(abort.because(1.0, &of(50), &[]), None);
        assert_eq!(abort.because(3.0, &of(5), &[]), None);
        assert_eq!(abort.because(3.0, &of(6), &[]).unwrap(), "errors > 5% after 3.00 s (6.000%)");
        assert_eq!(abort.because(3.0, &OperationResult::default(), &[]), None, "nothing was done");
        for wrong in ["errors", "errors > 5% after soon", "after 3s"] {
            assert!(wrong.parse::<Abort>().is_err(), "{wrong}");
        }
    }
}
