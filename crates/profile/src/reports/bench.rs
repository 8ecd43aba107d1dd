//! Draws results of benchmarks as one page: one file shows its cases, several files their
//! history and the cases of the last one.

mod box_plot;
mod details;
mod heat_map;
mod history;
mod over_time;
pub(in crate::reports) mod summary;
mod sweep;
mod varied;
mod verdict;
mod waterfall;

use std::path::Path;

use crate::error::{Error, Result};
use crate::measure::results::{Case, ResultFile};
use crate::reports::distinct::distinct;
use crate::reports::page::{Fold, Page, Section};
use crate::reports::whole_file::write_whole;
use crate::text::durations::format_duration;
use crate::trace::seconds;

/// With more cases their details begin folded.
const FEW_CASES: usize = 1;

/// Draws the page for one result, or for a series of results in the given order.
///
/// # Errors
/// The list of results is empty.
pub fn html_report(files: &[ResultFile]) -> Result<String> {
    let Some(last) = files.last() else {
        return Err(Error::failed("there are no results to draw", "", "pass at least one result file"));
    };
    // Results without a name have their time as the label.
    let mut origin = vec!["sawmill bench", &last.label, &last.started];
    origin.dedup();
    let mut page = Page {
        origin: origin.join(", "),
        verdict: verdict::verdict(files),
        findings: verdict::findings(last),
        facts: facts(last),
        sections: Vec::new(),
    };
    let names = distinct(last.cases.iter().map(|case| case.name.as_str()));
    let of = |name: &str| -> Vec<&Case> { last.cases.iter().filter(|case| case.name == name).collect() };
    for name in &names {
        page.sections.extend(sweep::sections(name, &of(name)));
    }
    if files.len() > 1 {
        page.sections.push(history::section(files));
    }
    page.sections.push(summary::section(last));
    for name in &names {
        let note = "The box covers the middle half of the runs, its line is the median, the whiskers reach \
                    the last run within Tukey's fences, rings are outliers. The bar below a box is the 95 % \
                    interval of the median.";
        let section = Section::new(&format!("{name}: time of each run"), note, box_plot::draw(&of(name)));
        page.sections.push(section.folding(if last.cases.len() > 8 { Fold::Closed } else { Fold::Open }));
    }
    let fold = if last.cases.len() > FEW_CASES { Fold::Closed } else { Fold::Open };
    for case in &last.cases {
        page.sections.extend(case.sides.iter().map(|side| details::section(case, side).folding(fold)));
    }
    Ok(page.html())
}

/// Writes the page to a file.
///
/// # Errors
/// The list of results is empty, or the file cannot be written.
pub fn write_html_report(path: &Path, files: &[ResultFile]) -> Result<()> {
    write_whole(path, html_report(files)?.as_bytes())
}

/// A value in seconds, formatted for reading.
fn time(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format_duration(seconds::from_number(value)) }
}

/// A value in seconds at a tick of an axis: without zeros behind the point.
fn time_tick(value: f64) -> String {
    let text = time(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn facts(file: &ResultFile) -> Vec<(String, String)> {
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
    [
        ("label", file.label.clone()),
        ("started", file.started.clone()),
        ("command", file.command.clone()),
        ("machine", file.machine.to_string()),
        ("files", disks.join(", ")),
        ("commit", commit.unwrap_or_default()),
        ("versions", versions.join(", ")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
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

    #[test]
    fn ticks_have_no_zeros_behind_the_point() {
        assert_eq!(
            [0.0, 0.5, 1.0, 1.5, 20.0, 100.0].map(time_tick),
            ["0", "500 ms", "1 s", "1.5 s", "20 s", "1 min 40 s"]
        );
    }
}
