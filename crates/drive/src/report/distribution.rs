//! The percentile curve: how long the slowest tenth, hundredth, thousandth takes.

use sawmill_profile::{Across, Line, Lines, Scale, Section, Upward};

use crate::result::file::DriveResult;
use crate::result::histogram::Durations;
use crate::watch::screen::micros;

/// Points of a factor of ten.
const STEPS: u32 = 16;

pub(super) fn section(result: &DriveResult) -> Section {
    let mut lines = Vec::new();
    for operation in &result.operations {
        lines.push(curve(&operation.name, &operation.latency.histogram));
        let service = format!("{}, service time", operation.name);
        lines.push(curve(&service, &operation.service.histogram));
    }
    let note = "Latency counts from the intended start, service time from the actual one: between them lies the time \
                that operations waited for a free connection. A curve ends where fewer than one value is left.";
    Section::new("Percentiles", note, chart("Percentile curve of the latency", lines))
}

/// The curves of several histograms.
pub(super) fn chart(title: &str, lines: Vec<Line>) -> String {
    let most = lines.iter().flat_map(|line| line.points.last()).map(|point| point.x).fold(10.0, f64::max);
    let names = ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %", "99.99999 %"];
    let labels = names.iter().enumerate().map(|(power, name)| (10f64.powi(power as i32), (*name).to_owned()));
    let labels = labels.take_while(|(x, _)| *x <= most * 1.0001).collect();
    let show = |x: f64| format!("{} %", 100.0 * (1.0 - 1.0 / x.max(1.0)));
    let across = Across::labelled("share that took no longer", Scale::Logarithmic, labels, show);
    Lines::new(title, 230.0, across, Upward::logarithmic("time", micros), lines).html()
}

/// The values at shares that approach 1 by equal factors.
pub(super) fn curve(name: &str, histogram: &Durations) -> Line {
    let count = histogram.count() as f64;
    let inverse = |step: u32| 10f64.powf(f64::from(step) / f64::from(STEPS));
    let steps = (0..8 * STEPS).map(inverse).take_while(|inverse| *inverse <= count);
    let points = steps.map(|inverse| (inverse, histogram.quantile(1.0 - 1.0 / inverse).max(1) as f64));
    Line::new(name, points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_ends_where_no_value_is_left() {
        let mut histogram = Durations::default();
        histogram.record_micros(1_000, 99);
        histogram.record_micros(100_000, 1);
        let line = curve("insert", &histogram);
        let last = line.points.last().unwrap();
        assert!((last.x - 100.0).abs() < 1e-6, "{last:?}");
        assert!(line.points.iter().filter(|point| point.x < 90.0).all(|point| point.y < 1_001.0));
        assert!(curve("none", &Durations::default()).points.is_empty());
    }
}
