//! Draws phases as bars over time, and below each how the threads of its stages spent their time.

use std::fmt::Write as _;

use super::box_plot::clipped;
use super::time;
use crate::reports::svg::{Axis, Drawing, escape};
use crate::trace::bottleneck::{StageTime, stages};
use crate::trace::phase::PhaseReport;
use crate::trace::system::hardware::Hardware;
use crate::trace::wait::WaitKind;

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 230.0;
const ROW: f64 = 26.0;

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
        text.push_str("<h3>How the threads spent their time</h3>\n<p class=\"legend\">");
        for (name, colour) in PARTS {
            // Writing to a String cannot fail.
            let _ = write!(text, "<span><i class=\"b{colour}\"></i>{name}</span>");
        }
        text.push_str("</p>\n");
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

fn waterfall(phases: &[PhaseReport]) -> String {
    let end = phases.iter().map(|phase| (phase.started + phase.wall).as_secs_f64()).fold(0.0, f64::max);
    let begin = phases.iter().map(|phase| phase.started.as_secs_f64()).fold(f64::INFINITY, f64::min);
    let axis = Axis { low: begin, high: end.max(begin + 1e-9), from: LEFT, to: WIDTH - 110.0 };
    let height = ROW * phases.len() as f64 + 28.0;
    let mut drawing = Drawing::new(WIDTH, height);
    drawing.across_axis(&axis, (4.0, height - 22.0), time);
    for (row, phase) in phases.iter().enumerate() {
        let y = ROW * row as f64 + 4.0;
        let name = clipped(&phase.name, 30usize.saturating_sub(2 * phase.depth as usize));
        drawing.text("", (6.0 + 14.0 * f64::from(phase.depth), y + 14.0), "start", &name);
        let (from, to) =
            (axis.at(phase.started.as_secs_f64()), axis.at((phase.started + phase.wall).as_secs_f64()));
        let wall = phase.wall.as_secs_f64();
        let used = phase.cpu.as_secs_f64() / wall.max(1e-9);
        let title = format!("{}: {} from {}", phase.name, time(wall), time(phase.started.as_secs_f64()));
        drawing.rect(
            &format!("f{} solid", (phase.depth % 7) as usize),
            (from, y),
            (to - from, ROW - 8.0),
            &title,
        );
        let label = format!("{}, {used:.1} cpu", time(wall));
        drawing.text("tick", (to + 6.0, y + 13.0), "start", &label);
    }
    drawing.finish("phases over time")
}

fn thread_time(phases: &[&PhaseReport]) -> String {
    let rows: Vec<(&PhaseReport, StageTime)> = phases
        .iter()
        .flat_map(|phase| stages(&phase.threads).into_iter().map(|stage| (*phase, stage)))
        .collect();
    let height = ROW * rows.len() as f64 + 6.0;
    let mut drawing = Drawing::new(WIDTH, height);
    for (row, (phase, stage)) in rows.iter().enumerate() {
        let y = ROW * row as f64 + 4.0;
        let name = format!("{}: {}", phase.name, stage.stage);
        drawing.text("", (6.0, y + 14.0), "start", &clipped(&name, 32));
        let waited = |kind| stage.waits.get(&kind).copied().unwrap_or(0.0);
        let mut times = vec![stage.cpu];
        times.extend(WaitKind::ALL.map(waited));
        times.extend([stage.without_processor(), stage.unseen()]);
        let total = times.iter().sum::<f64>().max(stage.wall).max(1e-9);
        let mut x = LEFT;
        for ((part, colour), spent) in PARTS.iter().zip(times).filter(|(_, spent)| *spent > 0.0) {
            let width = spent / total * (WIDTH - LEFT - 110.0);
            let title = format!("{name}: {part} {} ({:.0} %)", time(spent), 100.0 * spent / total);
            drawing.rect(&format!("f{colour} solid"), (x, y), (width, ROW - 8.0), &title);
            x += width;
        }
        drawing.text("tick", (WIDTH - 104.0, y + 13.0), "start", &format!("{} in total", time(stage.wall)));
    }
    drawing.finish("how the threads spent their time")
}
