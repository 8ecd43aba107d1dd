//! The table of all sides of all cases; in narrow windows each line is a card.

use std::fmt::Write as _;

use crate::measure::compare::comparison::Verdict;
use crate::measure::compare::order::MIN;
use crate::measure::compare::statistics::Statistics;
use crate::measure::results::{Case, ResultFile, SideComparison, SideResult};
use crate::measure::run::Run;
use crate::reports::bench::time;
use crate::reports::chart::svg::escape;
use crate::reports::page::Section;
use crate::text::byte_sizes::{format_byte_rate, format_bytes, format_decimal_bytes};
use crate::text::counts::{format_grouped, format_rate};

/// A named cell; names are shown where the table's head is not.
type Cell = (&'static str, String);

/// A side of a case, or one that a saved result has, which has no cells.
pub(in crate::reports) struct Line<'a> {
    /// The case, in its first line.
    pub title: String,
    pub side: String,
    pub cells: Vec<Cell>,
    pub found: Option<&'a SideComparison>,
}

pub(in crate::reports) fn lines(file: &ResultFile) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for case in &file.cases {
        for (place, side) in case.sides.iter().enumerate() {
            let title = if place == 0 { case.title() } else { String::new() };
            let found = case.comparisons.iter().find(|found| place > 0 && found.with == side.name);
            lines.push(Line { title, side: side.name.clone(), cells: cells(side, file.size()), found });
        }
        let sides: Vec<&str> = case.sides.iter().skip(1).map(|side| side.name.as_str()).collect();
        for found in case.comparisons.iter().filter(|found| !sides.contains(&found.with.as_str())) {
            let side = format!("(saved) {}", found.with);
            lines.push(Line { title: String::new(), side, cells: Vec::new(), found: Some(found) });
        }
    }
    lines
}

pub(super) fn section(file: &ResultFile) -> Section {
    let (size, _) = file.size();
    let heads = ["runs", "min", "median", "95 % interval", "sd", "rows", size, "rate", "cpu", "memory"];
    let mut text = String::from(
        "<div class=\"scroll\"><table class=\"cards\">\n<thead><tr><th class=\"l\">case</th>\
         <th class=\"l\">side</th>",
    );
    for head in heads {
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, "<th>{head}</th>");
    }
    text.push_str("<th class=\"l\">ours takes</th></tr></thead>\n<tbody>\n");
    lines(file).iter().for_each(|line| text.push_str(&line.html(heads)));
    text.push_str("</tbody></table></div>\n");
    Section::new("Summary", &note(&file.cases), text)
}

fn note(cases: &[Case]) -> String {
    match cases.iter().flat_map(|case| &case.sides).any(|side| side.runs.len() < MIN) {
        true => "Fewer than six runs have no interval of their median.".to_owned(),
        false => String::new(),
    }
}

fn cells(side: &SideResult, (size, size_of): (&'static str, fn(&Run) -> Option<u64>)) -> Vec<Cell> {
    let figure = |of: &Option<Statistics>, show: &dyn Fn(&Statistics) -> String| {
        of.as_ref().map(show).unwrap_or_default()
    };
    let rate = side.rows_per_second().map(|rate| format_rate(rate, "rows"));
    let rate = rate.or_else(|| side.bytes_per_second().map(format_byte_rate));
    let interval = |wall: &Statistics| {
        wall.interval.map(|i| format!("{} to {}", time(i.low), time(i.high))).unwrap_or_default()
    };
    let outliers = figure(&side.wall, &|wall| match wall.outliers.len() {
        0 => String::new(),
        count => format!(" ({count} out)"),
    });
    // All runs of a side do the same work.
    let work = side.runs.first();
    vec![
        ("runs", format!("{}{outliers}", side.runs.len())),
        ("min", figure(&side.wall, &|wall| time(wall.min))),
        ("median", figure(&side.wall, &|wall| time(wall.median))),
        ("95 % interval", figure(&side.wall, &interval)),
        ("sd", figure(&side.wall, &|wall| format!("{:.1} %", 100.0 * wall.relative_deviation()))),
        ("rows", work.and_then(|run| run.rows).map(format_grouped).unwrap_or_default()),
        (size, work.and_then(size_of).map(format_decimal_bytes).unwrap_or_default()),
        ("rate", rate.unwrap_or_default()),
        ("cpu", figure(&side.cpu, &|cpu| time(cpu.median))),
        ("memory", figure(&side.peak_memory, &|memory| format_bytes(memory.median as u64))),
    ]
}

impl Line<'_> {
    /// The text of a cell.
    pub fn cell(&self, name: &str) -> &str {
        self.cells.iter().find(|(have, _)| *have == name).map_or("", |(_, text)| text)
    }

    fn html(&self, heads: [&str; 10]) -> String {
        let (title, side) = (escape(&self.title), escape(&self.side));
        let mut text =
            format!("<tr><td class=\"l\"><b>{title}</b></td><td class=\"l\" data-name=\"side\">{side}</td>");
        if title.is_empty() {
            text = text.replace("<b></b>", "");
        }
        for name in heads {
            let _ = write!(text, "<td data-name=\"{name}\">{}</td>", escape(self.cell(name)));
        }
        let verdict = verdict(self.found);
        let name = if verdict.is_empty() { "" } else { " data-name=\"ours takes\"" };
        let _ = writeln!(text, "<td class=\"l\"{name}>{verdict}</td></tr>");
        text
    }
}

/// A verdict as a coloured word, with its interval as a tooltip.
fn verdict(found: Option<&SideComparison>) -> String {
    let Some(found) = found else { return String::new() };
    let class = match found.comparison.verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifferenceSeen => "same",
    };
    let text = format!("{:.3} x, {}", found.comparison.ratio, found.comparison.verdict);
    format!(
        "<span class=\"verdict {class}\" title=\"{}\">{text}</span>",
        escape(&found.comparison.to_string())
    )
}
