//! Limits: `insert.p99 < 20ms`, `errors < 0.1%`, `rate > 900`.

use std::time::Duration;

use sawmill_profile::{format_duration, parse_duration};

use crate::result::file::{DriveResult, LimitResult, OperationResult};

/// A limit on a figure of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    text: String,
    operation: Option<String>,
    figure: Figure,
    below: bool,
    value: f64,
}

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// A quantile of the latency, in microseconds.
    Latency(f64),
    Mean,
    Max,
    /// Share of the operations that failed.
    Errors,
    /// Share of the operations that started late.
    Late,
    /// Operations a second that ended well.
    Rate,
}

impl std::str::FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |what: &str| {
            format!(
                "{what} in {text:?}: write [OPERATION.]FIGURE < VALUE, such as `insert.p99 < 20ms`, `errors < 0.1%` or \
                 `rate > 900`; figures are p50 to p99.999, mean, max, errors, late and rate"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(|| refused("no < or >"))?;
        let (left, right) = text.split_at(at);
        let below = right.starts_with('<');
        let value = right.trim_start_matches(['<', '>', '=']).trim();
        let (operation, figure) = match left.trim().rsplit_once('.') {
            // `p99.9` has a point of its own.
            Some((name, digits)) if digits.chars().all(|c| c.is_ascii_digit()) => match name.rsplit_once('.')
            {
                Some((operation, percent)) => (Some(operation), format!("{percent}.{digits}")),
                None => (None, format!("{name}.{digits}")),
            },
            Some((operation, figure)) => (Some(operation), figure.to_owned()),
            None => (None, left.trim().to_owned()),
        };
        let figure = match figure.as_str() {
            "mean" => Figure::Mean,
            "max" => Figure::Max,
            "errors" => Figure::Errors,
            "late" => Figure::Late,
            "rate" => Figure::Rate,
            percent => {
                let percent = percent.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                // Rounded, so that p99.9 is 0.999 and not a little more.
                Figure::Latency((percent.ok_or_else(|| refused("an unknown figure"))? * 1e6).round() / 1e8)
            }
        };
        let value = match figure {
            Figure::Latency(_) | Figure::Mean | Figure::Max => {
                parse_duration(value).map_err(|_| refused("no time"))?.as_secs_f64() * 1e6
            }
            Figure::Errors | Figure::Late => {
                let percent = value.strip_suffix('%');
                let number =
                    percent.unwrap_or(value).trim().parse::<f64>().map_err(|_| refused("no share"))?;
                if percent.is_some() { number / 100.0 } else { number }
            }
            Figure::Rate => crate::arrivals::shape::rate(value).map_err(|_| refused("no rate"))?,
        };
        let operation = operation.map(|name| name.trim().to_owned());
        Ok(Self { text: text.trim().to_owned(), operation, figure, below, value })
    }
}

impl Limit {
    /// The limit `p99 < TIME` of all operations.
    pub fn p99(time: Duration) -> Self {
        let text = format!("p99 < {}", format_duration(time));
        let (figure, value) = (Figure::Latency(0.99), time.as_secs_f64() * 1e6);
        Self { text, operation: None, figure, below: true, value }
    }

    /// The operation that it is about.
    pub fn operation(&self) -> Option<&str> {
        self.operation.as_deref()
    }

    /// What was measured, and whether the limit holds. Without any operation it does not.
    pub(crate) fn judge(&self, result: &DriveResult) -> LimitResult {
        let named = |name: &str| result.operations.iter().find(|operation| operation.name == name);
        let operation = match &self.operation {
            None => Some(&result.total),
            Some(name) => named(name),
        };
        let (value, measured) = operation.map_or((f64::NAN, "nothing".to_owned()), |it| self.measure(it));
        let held = if self.below { value < self.value } else { value > self.value };
        LimitResult { limit: self.text.clone(), measured, held }
    }

    fn measure(&self, operation: &OperationResult) -> (f64, String) {
        if operation.intended == 0 {
            return (f64::NAN, "nothing".to_owned());
        }
        let time = |micros: f64| (micros, format_duration(Duration::from_secs_f64(micros / 1e6)));
        let share = |part: u64| {
            let share = part as f64 / operation.intended as f64;
            (share, format!("{:.3}%", share * 100.0))
        };
        let latency = &operation.latency;
        match self.figure {
            Figure::Latency(quantile) => time(latency.histogram.quantile(quantile) as f64),
            Figure::Mean => time(latency.percentiles.mean_us),
            Figure::Max => time(latency.percentiles.max_us as f64),
            Figure::Errors => share(operation.failed()),
            Figure::Late => share(operation.late),
            Figure::Rate => (operation.rate, format!("{:.1}/s", operation.rate)),
        }
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
            (Some("insert"), Figure::Latency(0.999), 20_000.0)
        );
        let limit: Limit = "errors<0.1%".parse().unwrap();
        assert!(
            limit.operation().is_none()
                && limit.figure == Figure::Errors
                && (limit.value - 0.001).abs() < 1e-12
        );
        assert!(!"rate > 900".parse::<Limit>().unwrap().below);
        assert_eq!("p99.9 < 1s".parse::<Limit>().unwrap().figure, Figure::Latency(0.999));
        for wrong in ["p99", "p99 < fast", "speed < 3", "p101 < 1s", "errors < many", ""] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_what_was_never_done_does_not_hold() {
        let result = DriveResult::default();
        assert!(!Limit::p99(Duration::from_secs(1)).judge(&result).held);
    }
}
