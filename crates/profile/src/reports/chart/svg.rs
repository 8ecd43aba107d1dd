//! A drawing area for SVG, and the escaping of text.

use std::fmt::Write as _;

use crate::reports::chart::letters;

/// Escapes text for XML, HTML and attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // XML 1.0 does not allow other control characters.
            char if char.is_control() && !matches!(char, '\n' | '\t' | '\r') => safe.push('\u{FFFD}'),
            char => safe.push(char),
        }
    }
    safe
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
             {}</rect>",
            at.0,
            at.1,
            size.0.max(0.5),
            size.1.max(0.5),
            titled(title)
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

    /// Text centred at a place, moved so that it stays within the picture.
    pub(crate) fn label(&mut self, class: &str, at: (f64, f64), size: f64, text: &str) {
        let half = letters::width(text, size) / 2.0;
        let x = at.0.min(self.width - half).max(half);
        self.text(class, (x, at.1), "middle", text);
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

    /// The finished picture: a class, its name, and its description in words.
    pub(crate) fn finish(self, class: &str, title: &str, figures: &str) -> String {
        let title = escape(title);
        let description = match figures.is_empty() {
            true => String::new(),
            false => format!("<desc>{}</desc>", escape(figures)),
        };
        format!(
            "<svg class=\"chart {class}\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{title}\">\
             <title>{title}</title>{description}\n{}</svg>\n",
            self.width, self.height, self.body
        )
    }
}

/// What a pointer shows over an element.
fn titled(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) }
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
    fn text_is_escaped() {
        assert_eq!(escape("<a b=\"c\">&'\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{FFFD}");
    }
}
