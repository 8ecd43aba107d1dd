//! What the pictures share: axes with round numbers, a drawing area, and text escaping.
//!
//! Colours are classes (`s0` to `s7` for series, `axis`, `grid`), which the page's style sheet defines for
//! light and dark themes.

use std::fmt::Write as _;

/// Escapes text for XML, HTML and attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML 1.0 allows no other control characters.
            char if char.is_control() && !matches!(char, '\n' | '\t' | '\r') => safe.push('\u{FFFD}'),
            char => safe.push(char),
        }
    }
    safe
}

/// A linear axis from values to positions in the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The positions of the lowest and the highest value.
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Axis {
    /// An axis over values, with a margin; it starts at zero if the values are close to it. Ignores values
    /// that are not finite.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self { low: 0.0, high: 1.0, from, to };
        }
        let low = if low >= 0.0 && low < 0.6 * high { 0.0 } else { low };
        let room = match high - low {
            room if room > 0.0 => 0.06 * room,
            _ => 0.1 * high.abs().max(1e-9),
        };
        let below = if low == 0.0 { 0.0 } else { room };
        Self { low: low - below, high: high + room, from, to }
    }

    /// The position of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let place = (value - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE);
        self.from + place.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values for labels: 1, 2 or 5 times a power of ten apart.
    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        let span = self.high - self.low;
        if span <= 0.0 || !span.is_finite() {
            return vec![self.low];
        }
        let rough = span / about.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        let first = (self.low / step).ceil();
        (0..=2 * about.max(1))
            .map(|n| (first + n as f64) * step)
            .take_while(|value| *value <= self.high + step * 1e-9)
            .collect()
    }
}

/// A picture under construction.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    body: String,
}

impl Drawing {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Adds elements unchanged.
    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(crate) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"1.5\">\
             <title>{}</title></rect>",
            at.0,
            at.1,
            size.0.max(0.5),
            size.1.max(0.5),
            escape(title)
        );
    }

    pub(crate) fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, title: &str) {
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\"><title>{}</title></circle>",
            at.0,
            at.1,
            escape(title)
        );
    }

    /// Text; `anchor` is start, middle or end.
    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// A line through points.
    pub(crate) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.is_empty() {
            return;
        }
        let _ = writeln!(self.body, "<polyline class=\"{class}\" points=\"{}\"/>", places(points));
    }

    /// A filled area.
    pub(crate) fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        let _ = writeln!(self.body, "<polygon class=\"{class}\" points=\"{}\"/>", places(points));
    }

    /// Grid lines and labels of a vertical axis, between two horizontal positions.
    pub(crate) fn upward_axis(&mut self, axis: &Axis, across: (f64, f64), show: impl Fn(f64) -> String) {
        for value in axis.ticks(4) {
            let y = axis.at(value);
            self.line("grid", (across.0, y), (across.1, y));
            self.text("tick", (across.0 - 6.0, y + 3.5), "end", &show(value));
        }
    }

    /// Grid lines and labels of a horizontal axis, between two vertical positions.
    pub(crate) fn across_axis(&mut self, axis: &Axis, upward: (f64, f64), show: impl Fn(f64) -> String) {
        for value in axis.ticks(7) {
            let x = axis.at(value);
            self.line("grid", (x, upward.0), (x, upward.1));
            self.text("tick", (x, upward.1 + 15.0), "middle", &show(value));
        }
    }

    /// The finished picture.
    pub(crate) fn finish(self, label: &str) -> String {
        format!(
            "<svg class=\"chart\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.width,
            self.height,
            escape(label),
            self.body
        )
    }
}

fn places(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 12);
    for (x, y) in points {
        let _ = write!(text, "{x:.1},{y:.1} ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis = Axis::over([0.0, 93.0], 0.0, 100.0);
        assert_eq!(axis.ticks(4), [0.0, 50.0]);
        assert_eq!(axis.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let narrow = Axis::over([1.000, 1.001], 0.0, 100.0);
        assert!(narrow.low > 0.99 && narrow.ticks(4).len() >= 2);
    }

    #[test]
    fn one_value_or_none_still_has_an_axis() {
        assert!(Axis::over([5.0], 0.0, 100.0).at(5.0).is_finite());
        assert!(Axis::over([], 0.0, 100.0).at(5.0).is_finite());
        assert!(Axis::over([f64::NAN, 0.0], 0.0, 100.0).at(0.0).is_finite());
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape("<a b=\"c\">&'\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{FFFD}");
    }
}
