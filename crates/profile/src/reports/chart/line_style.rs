//! Distinguishes lines without colours: by marks if they have few points, by dashes if they have many.

use std::fmt::Write as _;

use crate::reports::chart::svg::{Drawing, escape};

/// Colours, and patterns of dashes.
pub(crate) const COLOURS: usize = 8;

/// A mark around a place: a circle, a square, a triangle, a diamond, and each hollow.
pub(crate) fn mark(drawing: &mut Drawing, number: usize, at: (f64, f64), title: &str) {
    drawing.raw(&mark_element(number, at, title));
}

fn mark_element(number: usize, (x, y): (f64, f64), title: &str) -> String {
    let colour = number % COLOURS;
    let class = if colour < 4 { format!("f{colour} l{colour}") } else { format!("hollow l{colour}") };
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
    let corners = |corners: &[(f64, f64)]| {
        let places: Vec<String> =
            corners.iter().map(|(right, down)| format!("{:.1},{:.1}", x + right, y + down)).collect();
        format!("<polygon class=\"{class}\" points=\"{}\">{title}</polygon>", places.join(" "))
    };
    match colour % 4 {
        0 => format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{title}</circle>"),
        1 => corners(&[(-3.7, -3.7), (3.7, -3.7), (3.7, 3.7), (-3.7, 3.7)]),
        2 => corners(&[(0.0, -4.6), (4.6, 3.6), (-4.6, 3.6)]),
        _ => corners(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)]),
    }
}

/// How a line looks in its legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A line with marks.
    Marked,
    /// A line with a pattern of dashes.
    Dashed,
    /// A filled area.
    Filled,
}

/// The legend: colour number, look and name of each series.
pub(crate) fn legend<'a>(entries: impl IntoIterator<Item = (usize, Key, &'a str)>) -> String {
    let mut items = String::new();
    for (number, key, name) in entries {
        let colour = number % COLOURS;
        let line = format!("<line class=\"l{colour} p{colour}\" x1=\"0\" y1=\"6\" x2=\"30\" y2=\"6\"/>");
        let look = match key {
            Key::Filled => {
                format!("<rect class=\"f{colour} solid\" x=\"9\" y=\"0\" width=\"12\" height=\"12\"/>")
            }
            Key::Dashed => line,
            Key::Marked => {
                let line = line.replace(&format!(" p{colour}"), "");
                line + &mark_element(number, (15.0, 6.0), "")
            }
        };
        // Writing to a String cannot fail.
        let _ = write!(
            items,
            "<li><svg class=\"key\" viewBox=\"0 0 30 12\" aria-hidden=\"true\">{look}</svg>{}</li>",
            escape(name)
        );
    }
    if items.is_empty() { items } else { format!("<ul class=\"legend\">{items}</ul>\n") }
}
