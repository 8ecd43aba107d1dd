//! Draws results as one self-contained HTML page: pictures are inline SVG, colours follow the reader's light
//! or dark theme, and the only script is that of the flame graphs.
//!
//! The page of one file shows its cases; that of several files shows their history and the cases of the last
//! one.

mod box_plot;
mod details;
mod heat_map;
mod over_time;
mod trend;
mod waterfall;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::error::{Error, Result};
use crate::measure::compare::statistics::Statistics;
use crate::measure::results::{Case, ResultFile};
use crate::reports::svg::escape;
use crate::reports::whole_file::write_whole;
use crate::text::byte_sizes::format_bytes;
use crate::text::counts::format_rate;
use crate::text::durations::format_duration;
use crate::trace::seconds;

const STYLE: &str = include_str!("html/style.css");

/// Draws the page for one result, or for a series of results in the given order.
///
/// # Errors
/// There are no results.
pub fn html_report(files: &[ResultFile]) -> Result<String> {
    let Some(last) = files.last() else {
        return Err(Error::new("there are no results to draw", "", "pass at least one result file"));
    };
    let mut body = String::new();
    body.push_str(&head_of(last));
    body.push_str(&summary(last));
    if files.len() > 1 {
        body.push_str(&history(files));
    }
    for name in names(last) {
        let cases: Vec<&Case> = last.cases.iter().filter(|case| case.name == name).collect();
        body.push_str(&section(
            &format!("{name}: time of each run"),
            "The box covers the middle half of the runs, its line is the median, the whiskers reach the \
             last run within Tukey's fences, rings are outliers. The bar below a box is the 95 % interval \
             of the median.",
            &box_plot::draw(&cases),
        ));
        body.push_str(&sweep(&name, &cases));
    }
    for case in &last.cases {
        body.push_str(&details::draw(case));
    }
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(&format!("{} - sawmill bench", last.label))
    ))
}

/// Writes the page to a file.
///
/// # Errors
/// There are no results, or the file cannot be written.
pub fn write_html_report(path: &Path, files: &[ResultFile]) -> Result<()> {
    write_whole(path, html_report(files)?.as_bytes())
}

/// A section of the page with its heading and a note on how to read it.
fn section(title: &str, note: &str, content: &str) -> String {
    let note =
        if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>", escape(note)) };
    format!("<section>\n<h2>{}</h2>\n{note}\n{content}</section>\n", escape(title))
}

/// A value in seconds, formatted for reading.
fn time(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format_duration(seconds::from_number(value)) }
}

/// The names of the cases in order of first appearance.
fn names(file: &ResultFile) -> Vec<String> {
    let mut seen = BTreeSet::new();
    file.cases.iter().map(|case| case.name.clone()).filter(|name| seen.insert(name.clone())).collect()
}

fn head_of(file: &ResultFile) -> String {
    let commit = file.commit.as_ref().map(|commit| {
        let hash: String = commit.hash.chars().take(12).collect();
        let changed = if commit.changed { " (with changes)" } else { "" };
        format!("{hash}{changed} {}", commit.title)
    });
    let versions: Vec<String> =
        file.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let disks: Vec<String> = file
        .filesystems
        .iter()
        .map(|disk| format!("{} on {} ({})", disk.path, disk.kind, disk.device))
        .collect();
    let rows = [
        ("started", file.started.clone()),
        ("command", file.command.clone()),
        ("machine", file.machine.to_string()),
        ("files", disks.join(", ")),
        ("commit", commit.unwrap_or_default()),
        ("versions", versions.join(", ")),
    ];
    let mut text = format!("<h1>{}</h1>\n<dl>\n", escape(&file.label));
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", escape(value));
    }
    text + "</dl>\n"
}

fn summary(file: &ResultFile) -> String {
    let (size, size_of) = file.size();
    let mut text = format!(
        "<div class=\"scroll\"><table>\n<thead><tr><th class=\"l\">case</th><th class=\"l\">side</th><th>runs</th>\
         <th>min</th><th>median</th><th>95 % interval</th><th>sd</th><th>rows</th><th>{size}</th><th>rate</th><th>cpu</th>\
         <th>memory</th><th class=\"l\">ours takes</th></tr></thead>\n<tbody>\n",
    );
    for case in &file.cases {
        for (place, side) in case.sides.iter().enumerate() {
            let figure = |of: &Option<Statistics>, show: &dyn Fn(&Statistics) -> String| {
                of.as_ref().map(show).unwrap_or_default()
            };
            let rate = side.rows_per_second().map(|rate| format_rate(rate, "rows"));
            let rate = rate.or_else(|| side.bytes_per_second().map(crate::format_byte_rate));
            let interval = |wall: &Statistics| {
                wall.interval.map(|i| format!("{} to {}", time(i.low), time(i.high))).unwrap_or_default()
            };
            let outliers = figure(&side.wall, &|wall| match wall.outliers.len() {
                0 => String::new(),
                count => format!(" ({count} out)"),
            });
            // All runs of a side do the same work.
            let work = side.runs.first();
            let cells = [
                format!("{}{outliers}", side.runs.len()),
                figure(&side.wall, &|wall| time(wall.min)),
                figure(&side.wall, &|wall| time(wall.median)),
                figure(&side.wall, &interval),
                figure(&side.wall, &|wall| format!("{:.1} %", 100.0 * wall.relative_deviation())),
                work.and_then(|run| run.rows).map(crate::format_grouped).unwrap_or_default(),
                work.and_then(size_of).map(crate::format_decimal_bytes).unwrap_or_default(),
                rate.unwrap_or_default(),
                figure(&side.cpu, &|cpu| time(cpu.median)),
                figure(&side.peak_memory, &|memory| format_bytes(memory.median as u64)),
            ];
            let found = case.comparisons.iter().find(|found| place > 0 && found.with == side.name);
            let title = if place == 0 { case.title() } else { String::new() };
            let _ = write!(
                text,
                "<tr><td class=\"l\">{}</td><td class=\"l\">{}</td>",
                escape(&title),
                escape(&side.name)
            );
            for cell in cells {
                let _ = write!(text, "<td>{}</td>", escape(&cell));
            }
            let _ = writeln!(text, "<td class=\"l\">{}</td></tr>", verdict(found));
        }
        let sides: Vec<&str> = case.sides.iter().map(|side| side.name.as_str()).collect();
        for found in case.comparisons.iter().filter(|found| !sides.contains(&found.with.as_str())) {
            let _ = writeln!(
                text,
                "<tr><td></td><td class=\"l\">saved: {}</td><td colspan=\"10\"></td>\
                 <td class=\"l\">{}</td></tr>",
                escape(&found.with),
                verdict(Some(found))
            );
        }
    }
    text.push_str("</tbody></table></div>\n");
    section("Summary", "", &text)
}

/// A verdict as a coloured word, with its interval as a tooltip.
fn verdict(found: Option<&crate::measure::results::SideComparison>) -> String {
    use crate::measure::compare::comparison::Verdict;
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

/// Named lines of points, in order of the sides' first appearance: ours first.
type Series = Vec<(String, Vec<Option<Statistics>>)>;

/// Adds a point of a side to its line.
fn enter(series: &mut Series, side: &str, place: usize, points: usize, wall: Option<&Statistics>) {
    let line = series.iter().position(|(name, _)| name == side).unwrap_or_else(|| {
        series.push((side.to_owned(), vec![None; points]));
        series.len() - 1
    });
    if let Some(point) = series.get_mut(line).and_then(|(_, line)| line.get_mut(place)) {
        *point = wall.cloned();
    }
}

/// The history of each case over several files.
fn history(files: &[ResultFile]) -> String {
    let mut titles: Vec<String> = Vec::new();
    for case in files.iter().flat_map(|file| &file.cases) {
        if !titles.contains(&case.title()) {
            titles.push(case.title());
        }
    }
    let labels: Vec<String> = files.iter().map(|file| file.label.clone()).collect();
    let size = if titles.len() > 2 { trend::HALF } else { trend::WHOLE };
    let mut pictures = String::from(if titles.len() > 2 { "<div class=\"pairs\">\n" } else { "<div>\n" });
    for title in titles {
        let mut series: Series = Vec::new();
        for (place, file) in files.iter().enumerate() {
            let case = file.cases.iter().find(|case| case.title() == title);
            for side in case.into_iter().flat_map(|case| &case.sides) {
                enter(&mut series, &side.name, place, files.len(), side.wall.as_ref());
            }
        }
        let picture = trend::draw(&labels, &series, &title, size);
        let _ = write!(pictures, "<div><h3>{}</h3>\n{picture}</div>\n", escape(&title));
    }
    pictures.push_str("</div>\n");
    let note = "Each point is a result file: the line is the median, the band reaches from the fastest run \
                to the slowest.";
    section("History", note, &pictures)
}

/// Pictures of the swept parameters: a trend for one, a heat map for each pair.
fn sweep(name: &str, cases: &[&Case]) -> String {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (parameter, value) in cases.iter().flat_map(|case| &case.parameters) {
        let seen = values.entry(parameter).or_default();
        if !seen.contains(&value.as_str()) {
            seen.push(value);
        }
    }
    let swept: Vec<(&str, Vec<&str>)> = values.into_iter().filter(|(_, seen)| seen.len() > 1).collect();
    match swept.as_slice() {
        [] => String::new(),
        [(parameter, values)] => {
            let labels: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let mut series: Series = Vec::new();
            for case in cases {
                let value = case.parameters.get(*parameter).map(String::as_str);
                let Some(place) = values.iter().position(|have| Some(*have) == value) else { continue };
                for side in &case.sides {
                    enter(&mut series, &side.name, place, values.len(), side.wall.as_ref());
                }
            }
            let title = format!("{name}: time over {parameter}");
            let note = "The line is the median, the band reaches from the fastest run to the slowest.";
            section(&title, note, &trend::draw(&labels, &series, &title, trend::WHOLE))
        }
        more => {
            let mut pictures = String::new();
            for (place, first) in more.iter().enumerate() {
                for second in more.iter().skip(place + 1) {
                    pictures.push_str(&heat_map::draw(cases, first, second));
                }
            }
            let note = "Median time of our side; a stronger colour is slower. Below each time: the speed \
                        relative to the first cell. If more than two parameters were swept, a cell shows the \
                        fastest of its cases.";
            section(&format!("{name}: two parameters at a time"), note, &pictures)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_results_there_is_no_page() {
        assert_eq!(html_report(&[]).unwrap_err().what(), "there are no results to draw");
    }

    #[test]
    fn a_result_without_cases_is_a_page_and_its_label_is_escaped() {
        let page = html_report(&[ResultFile::new("<script>x", "a & b")]).unwrap();
        assert!(page.contains("&lt;script&gt;x") && !page.contains("<script>x"));
    }
}
