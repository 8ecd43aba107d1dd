//! Draws folded stacks as a flame graph: an SVG that works alone in a browser (click to zoom, click the
//! bottom to zoom out) and inside the HTML report.
//!
//! Each box is a function; its width is its share of the samples, and its callees are stacked on it. All
//! boxes of a crate have the same colour.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::reports::chart::svg::escape;
use crate::watch::folded_stacks::FoldedStacks;

/// Width of the picture; the height depends on the deepest stack.
const WIDTH: f64 = 1200.0;
const ROW: f64 = 18.0;
const MARGIN: f64 = 8.0;
const HEAD: f64 = 42.0;
/// Boxes narrower than this fraction of a pixel would be invisible.
const NARROWEST: f64 = 0.3;
/// Width of a letter of the 12 px font, rounded up.
const LETTER: f64 = 7.3;
/// Deeper frames are omitted.
const MAX_DEPTH: usize = 200;

/// With fewer samples, shares are random, and the picture says so.
const ENOUGH: u64 = 20;

/// A function at one place in the call tree.
#[derive(Debug, Default)]
struct Frame<'a> {
    samples: u64,
    callees: BTreeMap<&'a str, Frame<'a>>,
}

impl FoldedStacks {
    /// The stacks as a flame graph in SVG.
    ///
    /// ```
    /// let stacks = sawmill_profile::FoldedStacks::parse("main;a 3\nmain;b 1\n").unwrap();
    /// assert!(stacks.to_svg("a run").contains("<svg"));
    /// ```
    pub fn to_svg(&self, title: &str) -> String {
        let mut root = Frame::default();
        for (frames, samples) in self.iter() {
            let mut at = &mut root;
            at.samples += samples;
            for name in frames.iter().take(MAX_DEPTH) {
                at = at.callees.entry(name).or_default();
                at.samples += samples;
            }
        }
        let mut picture = Picture { boxes: String::new(), total: root.samples.max(1), depth: 0 };
        picture.draw("all", &root, 0, 0);
        let height = HEAD + MARGIN + ROW * (picture.depth + 1) as f64;
        let samples = crate::format_grouped(root.samples);
        let short = match self.too_short() {
            true => format!("<text class=\"short\" x=\"{MARGIN}\" y=\"36\">{}</text>", escape(TOO_SHORT)),
            false => String::new(),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"100%\" role=\"img\" aria-label=\"flame graph\">\n{STYLE}\
             <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\
             <text class=\"title\" x=\"{MARGIN}\" y=\"20\">{} ({samples} samples)</text>{short}\
             <g class=\"boxes\" transform=\"translate(0 {})\">\n{}</g>\n{SCRIPT}</svg>\n",
            escape(title),
            height - MARGIN,
            picture.boxes,
        )
    }

    /// Whether there are too few samples for a picture.
    pub fn too_short(&self) -> bool {
        self.samples() < ENOUGH
    }
}

struct Picture {
    boxes: String,
    total: u64,
    depth: usize,
}

impl Picture {
    fn draw(&mut self, name: &str, frame: &Frame<'_>, before: u64, depth: usize) {
        let scale = (WIDTH - 2.0 * MARGIN) / self.total as f64;
        let (x, width) = (MARGIN + before as f64 * scale, frame.samples as f64 * scale);
        if width < NARROWEST {
            return;
        }
        self.depth = self.depth.max(depth);
        let y = -ROW * (depth + 1) as f64;
        let share = 100.0 * frame.samples as f64 / self.total as f64;
        let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.boxes,
            "<g class=\"frame\" data-x=\"{before}\" data-n=\"{}\"><title>{} - {} samples, {share:.2} %\
             </title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" fill=\"{}\"/>\
             <text x=\"{:.2}\" y=\"{}\">{}</text></g>",
            frame.samples,
            escape(name),
            frame.samples,
            ROW - 1.0,
            colour(name, depth),
            x + 3.0,
            y + 13.0,
            escape(&shortened(name, letters)),
        );
        let mut at = before;
        for (name, callee) in &frame.callees {
            self.draw(name, callee, at, depth + 1);
            at += callee.samples;
        }
    }
}

/// A name that fits into `letters` letters: its end distinguishes functions.
fn shortened(name: &str, letters: usize) -> String {
    let count = name.chars().count();
    if count <= letters {
        return name.to_owned();
    }
    if letters < 4 {
        return String::new();
    }
    std::iter::once('…').chain(name.chars().skip(count - letters + 1)).collect()
}

/// A colour per crate, light enough for black text in both themes.
fn colour(name: &str, depth: usize) -> String {
    match depth {
        0 => return "#b8bcc4".to_owned(),
        1 => return "#9fb4d8".to_owned(),
        _ => {}
    }
    let path = name.trim_start_matches(['<', '&', '*', '(', '[']);
    let krate = path.split("::").next().unwrap_or_default();
    // FNV-1a: the same colour in every report.
    let hash = krate
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    let warm = ["#f2b179", "#f2cf79", "#e8a08c", "#d9c27e", "#c9d184", "#a9cf94", "#e9a9b8", "#d9b38c"];
    let place = (hash >> 32) as usize % warm.len();
    warm.get(place).copied().unwrap_or("#f2b179").to_owned()
}

/// The note in a picture of too few samples.
const TOO_SHORT: &str =
    "The run is too short for a flame graph: the sampler takes 199 samples per second of CPU time.";

const STYLE: &str = concat!("<style>", include_str!("flamegraph/style.css"), "</style>");

/// Zooms into a frame: boxes keep their samples in attributes and are redrawn from them.
const SCRIPT: &str = concat!("<script><![CDATA[", include_str!("flamegraph/zoom.js"), "]]></script>");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_shares_of_the_samples_and_names_are_escaped() {
        let svg = FoldedStacks::parse("main;<A as B>::c 3\nmain;d 1\n").unwrap().to_svg("a & b");
        assert!(svg.contains("a &amp; b (4 samples)"));
        assert!(svg.contains("&lt;A as B&gt;::c - 3 samples, 75.00 %"));
        assert!(svg.contains("width=\"888.00\""), "three quarters of 1184: {svg}");
    }

    #[test]
    fn a_name_that_does_not_fit_keeps_its_end() {
        assert_eq!(shortened("sawmill::zipf::next", 10), "…ipf::next");
        assert_eq!(shortened("sawmill::zipf::next", 3), "");
        assert_eq!(shortened("next", 4), "next");
    }

    #[test]
    fn a_picture_of_too_few_samples_says_that_the_run_was_too_short() {
        for stacks in [FoldedStacks::default(), FoldedStacks::parse("main;a 19\n").unwrap()] {
            let svg = stacks.to_svg("short");
            assert!(svg.contains("too short for a flame graph") && svg.ends_with("</svg>\n"), "{svg}");
        }
        let svg = FoldedStacks::parse("main;a 20\n").unwrap().to_svg("long");
        assert!(!svg.contains("too short"), "{svg}");
    }
}
