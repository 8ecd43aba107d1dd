//! Draws phases as bars over time, and below each how the threads of its stages spent their time.

use crate::reports::bench::{time, time_tick};
use crate::reports::chart::axis::Axis;
use crate::reports::chart::frame::{Frame, Room, pictures};
use crate::reports::chart::letters;
use crate::reports::chart::line_style::{Key, legend};
use crate::reports::chart::plot::{self, FOOT, HEAD, TEXT, TICK};
use crate::reports::chart::svg::{Drawing, escape};
use crate::trace::bottleneck::{StageTime, stages};
use crate::trace::phase::PhaseReport;
use crate::trace::system::hardware::Hardware;
use crate::trace::wait::WaitKind;

/// The height of a bar with its surroundings, and of a line of text above it.
const BAR: f64 = 20.0;
const LINE: f64 = 16.0;

/// The ways a stage can spend its time, with a colour for each.
const PARTS: [(&str, usize); 8] = [
    ("on a processor", 2),
    ("waited: channel full", 6),
    ("waited: channel empty", 5),
    ("waited: network", 0),
    ("waited: disk", 1),
    ("waited: lock", 4),
    ("ready, no processor", 7),
    ("unknown", 3),
];

pub(super) fn draw(phases: &[PhaseReport]) -> String {
    if phases.is_empty() {
        return String::new();
    }
    let mut text = waterfall(phases);
    let with_threads: Vec<&PhaseReport> = phases.iter().filter(|phase| !phase.threads.is_empty()).collect();
    if !with_threads.is_empty() {
        text.push_str("<h3>How the threads spent their time</h3>\n");
        text.push_str(&thread_time(&with_threads));
    }
    text.push_str(&hardware(phases));
    text
}

/// The hardware counts of each phase; one line if they are all the same.
fn hardware(phases: &[PhaseReport]) -> String {
    let measured = phases.iter().filter(|phase| phase.hardware != Hardware::NotMeasured);
    let lines: Vec<(&str, String)> =
        measured.map(|phase| (phase.name.as_str(), phase.hardware.to_string())).collect();
    let Some((_, first)) = lines.first() else { return String::new() };
    if lines.iter().all(|(_, line)| line == first) {
        return format!("<p class=\"note\">Hardware counters: {}</p>\n", escape(first));
    }
    let line = |(name, line): &(&str, String)| {
        format!("<p class=\"note\">Hardware counters of {}: {}</p>\n", escape(name), escape(line))
    };
    lines.iter().map(line).collect()
}

/// A bar with the text above it: its name, and its figures at the right end or below the name.
struct Bar {
    indent: f64,
    name: String,
    figures: String,
    /// From, to, colour and what a pointer shows, in the unit of the axis.
    parts: Vec<(f64, f64, usize, String)>,
}

impl Bar {
    /// The lines of text above the bar in a picture of this width. The figures follow the last one if
    /// there is room.
    fn lines(&self, width: f64) -> (Vec<String>, bool) {
        let mut lines = letters::wrapped(&self.name, TEXT, width - self.indent - 8.0);
        let last = lines.last().map_or(0.0, |line| letters::width(line, TEXT));
        let beside = self.indent + last + 16.0 + letters::width(&self.figures, TICK) < width;
        if !beside {
            lines.push(String::new());
        }
        (lines, beside)
    }
}

fn bars(frame: Frame, all: &[Bar], axis: Option<(f64, f64)>) -> Drawing {
    let lines: Vec<(Vec<String>, bool)> = all.iter().map(|bar| bar.lines(frame.width)).collect();
    let height: f64 = lines.iter().map(|(lines, _)| LINE * lines.len() as f64 + BAR).sum();
    let head = if axis.is_some() { HEAD } else { 0.0 };
    let (low, high) = axis.unwrap_or((0.0, 1.0));
    let x = Axis::between(low, high, 2.0, frame.width - 2.0);
    let foot = if axis.is_some() { FOOT } else { 4.0 };
    let mut drawing = Drawing::new(frame.width, head + height + foot);
    if axis.is_some() {
        let ticks = plot::ticks(&x, (frame.width / 90.0) as usize, time_tick);
        drawing.text("tick", (1.0, HEAD - 8.0), "start", &plot::named("time since the start", &x));
        plot::across(&mut drawing, &x, (HEAD, HEAD + height), &ticks);
    }
    let mut y = head;
    for (bar, (lines, beside)) in all.iter().zip(&lines) {
        for line in lines {
            y += LINE;
            drawing.text("", (2.0 + bar.indent, y - 4.0), "start", line);
        }
        let (at, anchor) = if *beside { (frame.width - 2.0, "end") } else { (2.0 + bar.indent, "start") };
        drawing.text("tick", (at, y - 4.0), anchor, &bar.figures);
        for (from, to, colour, title) in &bar.parts {
            let (from, to) = (x.at(*from), x.at(*to));
            drawing.rect(&format!("f{colour} solid"), (from, y), (to - from, BAR - 7.0), title);
        }
        y += BAR;
    }
    drawing
}

fn told(all: &[Bar]) -> String {
    all.iter().map(|bar| format!("{}: {}", bar.name, bar.figures)).collect::<Vec<_>>().join(". ")
}

fn waterfall(phases: &[PhaseReport]) -> String {
    let end = phases.iter().map(|phase| (phase.started + phase.wall).as_secs_f64()).fold(0.0, f64::max);
    let bar = |phase: &PhaseReport| {
        let (started, wall) = (phase.started.as_secs_f64(), phase.wall.as_secs_f64());
        let used = phase.cpu.as_secs_f64() / wall.max(1e-9);
        let title = format!("{}: {} from {}", phase.name, time(wall), time(started));
        Bar {
            indent: 14.0 * f64::from(phase.depth),
            name: phase.name.clone(),
            figures: format!("{}, {used:.1} processors", time(wall)),
            parts: vec![(started, started + wall, (phase.depth % 7) as usize, title)],
        }
    };
    let all: Vec<Bar> = phases.iter().map(bar).collect();
    let axis = Some((0.0, end.max(1e-9)));
    pictures(Room::Whole, "Phases over time", &told(&all), |frame| bars(frame, &all, axis))
}

fn thread_time(phases: &[&PhaseReport]) -> String {
    let rows: Vec<(&PhaseReport, StageTime)> = phases
        .iter()
        .flat_map(|phase| stages(&phase.threads).into_iter().map(|stage| (*phase, stage)))
        .collect();
    let mut there = [false; PARTS.len()];
    let mut all = Vec::with_capacity(rows.len());
    for (phase, stage) in &rows {
        let name = format!("{}: {}", phase.name, stage.stage);
        let waited = |kind| stage.waits.get(&kind).copied().unwrap_or(0.0);
        let mut times = vec![stage.cpu];
        times.extend(WaitKind::ALL.map(waited));
        times.extend([stage.without_processor(), stage.unseen()]);
        let total = times.iter().sum::<f64>().max(stage.wall).max(1e-9);
        let mut before = 0.0;
        let mut parts = Vec::new();
        for (((part, colour), spent), there) in PARTS.iter().zip(times).zip(&mut there) {
            // Less than a thousandth cannot be seen, neither here nor in the legend.
            if spent < total / 1000.0 {
                continue;
            }
            *there = true;
            let title = format!("{name}: {part} {} ({:.0} %)", time(spent), 100.0 * spent / total);
            parts.push((before, before + spent / total, *colour, title));
            before += spent / total;
        }
        all.push(Bar { indent: 0.0, name, figures: format!("{} in total", time(stage.wall)), parts });
    }
    let entries = PARTS.iter().zip(there).filter(|(_, there)| *there);
    legend(entries.map(|((name, colour), _)| (*colour, Key::Filled, *name)))
        + &pictures(Room::Whole, "How the threads spent their time", &told(&all), |frame| {
            bars(frame, &all, None)
        })
}
