//! Limits: `insert.p99 < 20ms`, `errors <= 0.1%`, `failed-p99 < 1s`, `rate > 900`.

use std::time::Duration;

use sawmill_profile::{format_duration, format_grouped, parse_duration};

use crate::result::file::{DriveResult, LimitResult, OperationResult};
use crate::result::histogram::Durations;
use crate::work::outcome::UNSTARTED;

/// A limit on a figure of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    text: String,
    operation: Option<String>,
    figure: Figure,
    compare: Compare,
    value: f64,
}

/// How the measured value must relate to the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// The limited figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// A quantile in microseconds.
    Quantile(Of, f64),
    Mean(Of),
    Max(Of),
    /// Share of the operations that failed.
    Errors,
    /// Share of the operations that started late.
    Late,
    /// Operations a second that ended well.
    Rate,
}

/// The operations that a time covers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    /// The latency of successful operations.
    Latency,
    /// The time until failure, of operations that were sent.
    Failures,
}

impl Figure {
    /// The figure of a name, or what the name is.
    fn new(name: &str) -> Result<Self, &'static str> {
        const UNKNOWN: &str = "an unknown figure";
        let (of, name) = match name.strip_prefix("failed-") {
            Some(name) => (Of::Failures, name),
            None => (Of::Latency, name),
        };
        Ok(match name {
            "mean" => Self::Mean(of),
            "max" => Self::Max(of),
            "errors" if of == Of::Latency => Self::Errors,
            "late" if of == Of::Latency => Self::Late,
            "rate" if of == Of::Latency => Self::Rate,
            percent => {
                let digits = percent.strip_prefix('p').filter(|digits| !digits.starts_with('.'));
                let plain = digits.filter(|digits| digits.chars().all(|c| c.is_ascii_digit() || c == '.'));
                let percent = plain.and_then(|digits| digits.parse::<f64>().ok()).ok_or(UNKNOWN)?;
                // Rounded, so that p99.9 is 0.999 and not a little more.
                let share = (percent * 1e6).round() / 1e8;
                // No operation is below p0; p100 is the maximum.
                match share > 0.0 && share <= 1.0 {
                    true => Self::Quantile(of, share),
                    false => return Err("a percentile that is not above 0 and at most 100"),
                }
            }
        })
    }

    /// The value of a limit on it, or what the text is not.
    fn limit(self, value: &str) -> Result<f64, &'static str> {
        match self {
            Self::Quantile(..) | Self::Mean(_) | Self::Max(_) => {
                Ok(parse_duration(value).map_err(|_| "no time")?.as_secs_f64() * 1e6)
            }
            Self::Errors | Self::Late => {
                let percent = value.strip_suffix('%');
                let number = percent.unwrap_or(value).trim().parse::<f64>().ok();
                let share = number.map(|number| if percent.is_some() { number / 100.0 } else { number });
                share.filter(|share| (0.0..=1.0).contains(share)).ok_or("no share of 0 to 100 %")
            }
            Self::Rate => crate::arrivals::shape::rate(value).map_err(|_| "no rate"),
        }
    }
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |what: &str| {
            format!(
                "{what} in {text:?}: write [OPERATION.]FIGURE, then <, <=, > or >=, then a value, such as \
                 `insert.p99 < 20ms`, `errors <= 0.1%` or `rate > 900`; figures are percentiles such as p50, p99.9 and \
                 p100, mean, max (of what ended well), failed-p50 to failed-max (of what failed), errors, late and rate"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(|| refused("no < or >"))?;
        let (left, right) = text.split_at(at);
        let (sign, value) = right.split_at(right.find(|c| !"<>=".contains(c)).unwrap_or(right.len()));
        let compare = match sign {
            "<" => Compare::Below,
            "<=" => Compare::AtMost,
            ">" => Compare::Above,
            ">=" => Compare::AtLeast,
            _ => return Err(refused(&format!("{sign:?}"))),
        };
        let value = value.trim();
        let (operation, figure) = match left.trim().rsplit_once('.') {
            // The percentile in `p99.9` contains a point itself.
            Some((name, digits)) if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) => {
                match name.rsplit_once('.') {
                    Some((operation, percent)) => (Some(operation), format!("{percent}.{digits}")),
                    None => (None, format!("{name}.{digits}")),
                }
            }
            Some((operation, figure)) => (Some(operation), figure.to_owned()),
            None => (None, left.trim().to_owned()),
        };
        let figure = Figure::new(&figure).map_err(refused)?;
        let value = figure.limit(value).map_err(refused)?;
        let operation = operation.map(|name| name.trim().to_owned());
        Ok(Self { text: text.trim().to_owned(), operation, figure, compare, value })
    }
}

impl Limit {
    /// The limit `p99 < TIME` of all operations.
    pub fn p99(time: Duration) -> Self {
        let shown = format_duration(time);
        // Read from a saved result, the text is the same limit.
        let text = match parse_duration(&shown).is_ok_and(|read| read == time) {
            true => format!("p99 < {shown}"),
            false => format!("p99 < {}us", time.as_secs_f64() * 1e6),
        };
        let (figure, value) = (Figure::Quantile(Of::Latency, 0.99), time.as_secs_f64() * 1e6);
        Self { text, operation: None, figure, compare: Compare::Below, value }
    }

    /// The operation that it is about.
    pub fn operation(&self) -> Option<&str> {
        self.operation.as_deref()
    }

    /// Compares the measured value with the limit. Without any operation, the limit does not hold.
    pub(crate) fn judge(&self, result: &DriveResult) -> LimitResult {
        self.judge_in(&result.total, &result.operations)
    }

    /// The same of the total and of each operation.
    pub(crate) fn judge_in(&self, total: &OperationResult, operations: &[OperationResult]) -> LimitResult {
        let operation = match &self.operation {
            None => Some(total),
            Some(name) => operations.iter().find(|operation| operation.name == *name),
        };
        let (value, measured) =
            operation.and_then(|it| self.measure(it)).unwrap_or((f64::NAN, "nothing".to_owned()));
        // A percentile is the end of a bucket of the histogram: a limit within the bucket is equal to it.
        let limit = match self.figure {
            Figure::Quantile(..) | Figure::Max(_) => Durations::default().end_of_bucket(self.value),
            _ => self.value,
        };
        let held = match self.compare {
            Compare::Below => value < limit,
            Compare::AtMost => value <= limit,
            Compare::Above => value > limit,
            Compare::AtLeast => value >= limit,
        };
        LimitResult { limit: self.text.clone(), measured, held }
    }

    /// The figure as a number, and as text; `None` if it is of nothing.
    fn measure(&self, operation: &OperationResult) -> Option<(f64, String)> {
        if operation.intended == 0 {
            return None;
        }
        let share = |part: u64| {
            let share = part as f64 / operation.intended as f64;
            (share, format!("{:.3}%", share * 100.0))
        };
        // Latency needs an operation that succeeded, and one that never started has taken longer than any. If none
        // failed, failures took no time.
        let time = |which, share: f64, figure: fn(&Durations, f64) -> f64| {
            let (times, unstarted) = match which {
                Of::Latency if operation.latency.histogram.count() == 0 => return None,
                Of::Latency => (&operation.latency.histogram, operation.errors.get(UNSTARTED)),
                Of::Failures => (&operation.failures.histogram, None),
            };
            let unstarted = *unstarted.unwrap_or(&0);
            let share = share * (1.0 + unstarted as f64 / times.count().max(1) as f64);
            if share > 1.0 + 1e-9 {
                let [unstarted, all] = [unstarted, operation.intended].map(format_grouped);
                return Some((f64::INFINITY, format!("{unstarted} of {all} never started")));
            }
            let micros = figure(times, share);
            Some((micros, format_duration(Duration::from_secs_f64(micros / 1e6))))
        };
        Some(match self.figure {
            Figure::Quantile(which, quantile) => {
                time(which, quantile, |times, share| times.quantile(share) as f64)?
            }
            Figure::Mean(which) => time(which, 1.0, |times, _| times.mean())?,
            Figure::Max(which) => time(which, 1.0, |times, _| times.max() as f64)?,
            Figure::Errors => share(operation.failed()),
            Figure::Late => share(operation.late),
            Figure::Rate => (operation.rate, format!("{:.1}/s", operation.rate)),
        })
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_of_all_operations_or_of_one() {
        let limit: Limit = "insert.p99.9 < 20ms".parse().unwrap();
        assert_eq!(
            (limit.operation(), limit.figure, limit.value),
            (Some("insert"), Figure::Quantile(Of::Latency, 0.999), 20_000.0)
        );
        let limit: Limit = "errors<0.1%".parse().unwrap();
        assert!(
            limit.operation().is_none()
                && limit.figure == Figure::Errors
                && (limit.value - 0.001).abs() < 1e-12
        );
        let figure = |text: &str| text.parse::<Limit>().unwrap().figure;
        assert_eq!(figure("p99.9 < 1s"), Figure::Quantile(Of::Latency, 0.999));
        assert_eq!(figure("insert.failed-p99.9 < 1s"), Figure::Quantile(Of::Failures, 0.999));
        assert_eq!(figure("p100 < 1s"), Figure::Quantile(Of::Latency, 1.0));
        assert_eq!(figure("p0.5 < 1s"), Figure::Quantile(Of::Latency, 0.005));
        for senseless in
            ["p0 < 1s", "insert.p0.0 < 1s", "failed-p0 < 1s", "p0.0000001 < 1s", "p100.1 < 1s", "p101 < 1s"]
        {
            let what = senseless.parse::<Limit>().unwrap_err();
            assert!(what.starts_with("a percentile that is not above 0 and at most 100 in"), "{what}");
        }
        let wrong = ["p99", "p99 < fast", "speed < 3", "errors < many", "", "failed-rate > 3"];
        for wrong in wrong
            .into_iter()
            .chain(["p99 >=< 1s", "p99 => 1s", "p99 << 1s", "p99 == 1s", "p99 = 1s"])
            .chain([
                "errors < NaN",
                "errors < inf",
                "errors < -1%",
                "errors < 5",
                "late > 101%",
                "p5e1 < 1s",
                "p+5 < 1s",
                "p < 1s",
                "p99. < 1s",
                "rate > NaN",
                "max < -1s",
            ])
        {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_figure_that_is_the_limit_holds_where_the_limit_says_or_equal() {
        let total = OperationResult {
            intended: 1000,
            rate: 900.0,
            errors: [("lost".to_owned(), 10)].into(),
            ..OperationResult::default()
        };
        let held = |text: &str| text.parse::<Limit>().unwrap().judge_in(&total, &[]).held;
        assert!(held("rate >= 900") && !held("rate > 900") && held("rate > 899"));
        assert!(held("errors <= 1%") && !held("errors < 1%") && held("errors < 1.1%"));
    }

    #[test]
    fn a_limit_within_the_bucket_of_a_percentile_is_equal_to_it() {
        let mut latency = Durations::default();
        latency.record_micros(5_000, 10);
        assert!(latency.max() > 5_000, "the end of its bucket");
        let total =
            OperationResult { intended: 10, ok: 10, latency: latency.into(), ..OperationResult::default() };
        let held = |text: &str| text.parse::<Limit>().unwrap().judge_in(&total, &[]).held;
        assert!(held("p99 <= 5ms") && held("max >= 5ms") && held("max <= 5002us") && held("p100 <= 5002us"));
        assert!(!held("p99 < 5ms") && !held("max > 5ms") && !held("p50 <= 4995us") && held("max < 6ms"));
        assert!(held("max < 2h") && !held("max >= 1h"));
    }

    #[test]
    fn latency_is_of_what_ended_well_and_failures_have_limits_of_their_own() {
        let mut failures = Durations::default();
        failures.record_micros(790, 99);
        let mut total =
            OperationResult { intended: 100, failures: failures.into(), ..OperationResult::default() };
        let held =
            |text: &str, total: &OperationResult| text.parse::<Limit>().unwrap().judge_in(total, &[]).held;
        assert!(!held("p50 < 1s", &total), "nothing ended well");
        let mut latency = Durations::default();
        latency.record_micros(50_000, 1);
        total.latency = latency.into();
        assert!(!held("p50 < 40ms", &total) && held("p50 < 60ms", &total));
        assert!(held("failed-p99 < 1ms", &total) && !held("failed-max < 100us", &total));
    }

    #[test]
    fn an_operation_that_never_started_took_longer_than_any_limit() {
        let mut latency = Durations::default();
        latency.record_micros(1_000, 90);
        let errors = [("unstarted".to_owned(), 10)].into();
        let total = OperationResult {
            intended: 100,
            ok: 90,
            latency: latency.into(),
            errors,
            ..OperationResult::default()
        };
        let judged = |text: &str| text.parse::<Limit>().unwrap().judge_in(&total, &[]);
        assert!(judged("p50 < 5ms").held && judged("p90 < 5ms").held && judged("failed-max < 1s").held);
        assert!(["p91 < 1h", "mean < 1h", "max < 1h"].iter().all(|text| !judged(text).held));
        assert_eq!(judged("p99 < 1h").measured, "10 of 100 never started");
    }

    #[test]
    fn the_text_of_a_limit_is_the_same_limit() {
        for micros in [50_000, 1_234_567, 3, 90_000_001] {
            let limit = Limit::p99(Duration::from_micros(micros));
            assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
        }
    }

    #[test]
    fn a_limit_of_what_was_never_done_does_not_hold() {
        let result = DriveResult::default();
        assert!(!Limit::p99(Duration::from_secs(1)).judge(&result).held);
    }
}
