//! The axes of a picture: grid lines, labels that do not overlap, and a mark where an axis does not start at
//! zero.

use crate::reports::chart::axis::{Axis, Scale};
use crate::reports::chart::letters;
use crate::reports::chart::svg::Drawing;

/// The size of an axis' labels in pixels, as the style sheet has it.
pub(crate) const TICK: f64 = 11.0;
/// The size of other text.
pub(crate) const TEXT: f64 = 12.5;
/// The room above an area for the name of its upward axis, and below it for labels.
pub(crate) const HEAD: f64 = 20.0;
pub(crate) const FOOT: f64 = 20.0;

/// A labelled place on an axis.
pub(crate) type Tick = (f64, String);

/// The round values of an axis with their text.
pub(crate) fn ticks(axis: &Axis, about: usize, show: impl Fn(f64) -> String) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = axis.ticks(about).into_iter().map(|value| (value, show(value))).collect();
    // Values that look the same would be a lie about one of them.
    ticks.dedup_by(|after, before| after.1 == before.1);
    ticks
}

/// The room that the labels of an upward axis take to its left.
pub(crate) fn room_for(ticks: &[Tick]) -> f64 {
    ticks.iter().map(|(_, text)| letters::width(text, TICK)).fold(14.0, f64::max) + 8.0
}

/// The text of an axis behind its name.
pub(crate) fn named(name: &str, axis: &Axis) -> String {
    match axis.scale {
        Scale::Logarithmic => format!("{name} (logarithmic)"),
        Scale::Linear if axis.starts_at_zero() => name.to_owned(),
        Scale::Linear => format!("{name} (axis does not start at 0)"),
    }
}

/// Grid lines and labels of a vertical axis between two horizontal positions, its name above.
pub(crate) fn upward(drawing: &mut Drawing, axis: &Axis, across: (f64, f64), ticks: &[Tick], name: &str) {
    for (value, text) in ticks {
        let y = axis.at(*value);
        drawing.line("grid", (across.0, y), (across.1, y));
        drawing.text("tick", (across.0 - 6.0, y + 3.5), "end", text);
    }
    if axis.scale == Scale::Linear && !axis.starts_at_zero() {
        let (x, y) = (across.0, axis.from);
        let teeth = [(0.0, 0.0), (-4.0, -3.0), (4.0, -6.0), (-4.0, -9.0), (0.0, -12.0)];
        drawing.path("break", &teeth.map(|(right, up)| (x + right, y + up)));
    }
    if !name.is_empty() {
        drawing.text("tick", (1.0, axis.to - 8.0), "start", &named(name, axis));
    }
}

/// Grid lines and labels of a horizontal axis between two vertical positions. Labels that would touch the one
/// before are left out.
pub(crate) fn across(drawing: &mut Drawing, axis: &Axis, upward: (f64, f64), ticks: &[Tick]) {
    let mut taken = f64::NEG_INFINITY;
    for (value, text) in ticks {
        let x = axis.at(*value);
        drawing.line("grid", (x, upward.0), (x, upward.1));
        let half = letters::width(text, TICK) / 2.0;
        let centre = x.min(drawing.width - half).max(half);
        if centre - half < taken + 6.0 {
            continue;
        }
        taken = centre + half;
        drawing.label("tick", (x, upward.1 + 14.0), TICK, text);
    }
}
