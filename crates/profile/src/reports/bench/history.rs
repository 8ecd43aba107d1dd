//! The history of each case over several files: time, and beside it CPU time, memory and, where counters
//! exist, instructions per cycle.

use std::fmt::Write as _;

use crate::measure::results::{Case, ResultFile, SideResult};
use crate::reports::bench::time_tick;
use crate::reports::chart::axis::Scale;
use crate::reports::chart::frame::Room;
use crate::reports::chart::letters;
use crate::reports::chart::lines::{Across, Line, Lines, Point, Upward};
use crate::reports::chart::plot::TICK;
use crate::reports::chart::svg::escape;
use crate::reports::distinct::distinct;
use crate::reports::page::Section;
use crate::trace::phase::PhaseReport;
use crate::trace::system::hardware::Hardware;

/// A figure of a side with its spread.
type Figure = fn(&SideResult) -> Option<Point>;

/// A chart: its subject, how values are written, and their source.
type Part = (&'static str, fn(f64) -> String, Figure);

/// The histories of more cases than these fold.
const MAX_OPEN: usize = 3;

/// Memory is drawn in MiB, so that the axis has round numbers.
const MIB: f64 = 1_048_576.0;

/// The room that a label has under a chart of half a page's width.
const ROOM: f64 = 360.0;

pub(super) fn section(files: &[ResultFile]) -> Section {
    let titles = distinct(files.iter().flat_map(|file| &file.cases).map(Case::title));
    let (labels, list) = labels(files);
    let mut content = list;
    for (number, title) in titles.iter().enumerate() {
        let charts = charts(files, title, &labels);
        let title = escape(title);
        // Writing to a String cannot fail.
        let _ = if titles.len() > MAX_OPEN {
            let open = if number == 0 { " open" } else { "" };
            write!(content, "<details{open}><summary>{title}</summary>\n{charts}</details>\n")
        } else {
            write!(content, "<h3>{title}</h3>\n{charts}")
        };
    }
    if let Some(reason) = reason(files) {
        let reason = escape(&reason);
        let _ =
            writeln!(content, "<p class=\"note\">Instructions per cycle: not available here ({reason})</p>");
    }
    let note = "Each point is a result file, in the given order. Time, CPU time and memory are medians; bands or \
                whiskers reach from the least run to the greatest.";
    Section::new("History", note, content)
}

/// The files' labels; numbers and a list of them if they are too long to stand under a chart.
fn labels(files: &[ResultFile]) -> (Vec<(f64, String)>, String) {
    let widths = files.iter().map(|file| letters::width(&file.label, TICK) + 8.0);
    // Points are spread evenly, and each label has the room of one.
    let fits = widths.fold(0.0, f64::max) * files.len() as f64 <= ROOM;
    let numbered = |place: usize| (place + 1) as f64;
    if fits {
        let labels = files.iter().enumerate().map(|(place, file)| (numbered(place), file.label.clone()));
        return (labels.collect(), String::new());
    }
    let item = |file: &ResultFile| {
        let commit = file.commit.as_ref().map(|commit| format!(": {}", commit.title)).unwrap_or_default();
        format!("<li>{}{}</li>", escape(&file.label), escape(&commit))
    };
    let list = format!("<ol class=\"events\">{}</ol>\n", files.iter().map(item).collect::<String>());
    ((0..files.len()).map(|place| (numbered(place), (place + 1).to_string())).collect(), list)
}

fn charts(files: &[ResultFile], title: &str, labels: &[(f64, String)]) -> String {
    let parts: [Part; 4] = [
        ("time", time_tick, |side| point(side.wall.as_ref()?)),
        ("CPU time", time_tick, |side| point(side.cpu.as_ref()?)),
        (
            "peak memory",
            |value| format!("{value} MiB"),
            |side| Some(in_mib(point(side.peak_memory.as_ref()?)?)),
        ),
        (
            "instructions per cycle",
            |value| format!("{value:.2}"),
            |side| Some(Point { y: instructions_per_cycle(&side.phases)?, ..Point::default() }),
        ),
    ];
    let mut text = String::from("<div class=\"row\">\n");
    for (name, show, figure) in parts {
        let chart = chart(files, title, labels, (name, show, figure));
        if !chart.is_empty() {
            let _ = writeln!(text, "<div>{chart}</div>");
        }
    }
    text + "</div>\n"
}

fn chart(files: &[ResultFile], title: &str, labels: &[(f64, String)], (name, show, figure): Part) -> String {
    let mut lines: Vec<Line> = Vec::new();
    for (place, file) in files.iter().enumerate() {
        let case = file.cases.iter().find(|case: &&Case| case.title() == title);
        for side in case.into_iter().flat_map(|case| &case.sides) {
            let line = lines.iter().position(|line| line.name == side.name).unwrap_or_else(|| {
                // A file without the case leaves a gap.
                let gap = |(x, _): &(f64, String)| Point { x: *x, y: f64::NAN, band: None };
                let points = labels.iter().map(gap).collect();
                lines.push(Line { name: side.name.clone(), points, ..Line::default() });
                lines.len() - 1
            });
            let point = lines.get_mut(line).and_then(|line| line.points.get_mut(place));
            if let (Some(point), Some(found)) = (point, figure(side)) {
                *point = Point { x: point.x, ..found };
            }
        }
    }
    let across = Across::labelled("", Scale::Linear, labels.to_vec(), |place| format!("file {place}"));
    let title = format!("{title}: {name} over the files");
    let chart = Lines::new(&title, 150.0, across, Upward::linear(name, show), lines);
    Lines { room: Room::Half, ..chart }.html()
}

fn point(statistics: &crate::measure::compare::statistics::Statistics) -> Option<Point> {
    Some(Point { x: 0.0, y: statistics.median, band: Some((statistics.min, statistics.max)) })
}

fn in_mib(point: Point) -> Point {
    Point { y: point.y / MIB, band: point.band.map(|(low, high)| (low / MIB, high / MIB)), ..point }
}

/// Instructions per cycle over the outermost phases, if all of them were counted.
pub(super) fn instructions_per_cycle(phases: &[PhaseReport]) -> Option<f64> {
    let (mut instructions, mut cycles) = (0u64, 0u64);
    for phase in phases.iter().filter(|phase| phase.depth == 0) {
        let Hardware::Counted(counts) = &phase.hardware else { return None };
        instructions += counts.instructions?;
        cycles += counts.cycles?;
    }
    (cycles > 0).then(|| instructions as f64 / cycles as f64)
}

/// Why the hardware did not count, if a phase says so.
fn reason(files: &[ResultFile]) -> Option<String> {
    let sides = files.iter().flat_map(|file| &file.cases).flat_map(|case| &case.sides);
    sides.flat_map(|side| &side.phases).find_map(|phase| match &phase.hardware {
        Hardware::NotAvailable { reason } => Some(reason.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::system::hardware::HardwareCounts;

    #[test]
    fn instructions_per_cycle_need_all_phases_counted() {
        let counted = |depth, instructions, cycles| PhaseReport {
            depth,
            hardware: Hardware::Counted(HardwareCounts {
                instructions: Some(instructions),
                cycles: Some(cycles),
                ..HardwareCounts::default()
            }),
            ..PhaseReport::default()
        };
        let phases = [counted(0, 300, 100), counted(0, 100, 100), counted(1, 9, 1)];
        assert_eq!(instructions_per_cycle(&phases), Some(2.0));
        assert_eq!(instructions_per_cycle(&[counted(0, 3, 1), PhaseReport::default()]), None);
        assert_eq!(instructions_per_cycle(&[]), None);
    }
}
