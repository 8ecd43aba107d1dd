//! Several load tests side by side: their figures in one table, their curves in one chart.

use sawmill_profile::{
    Across, Fold, Line, Lines, Page, Section, Upward, escape_html, format_grouped, format_rate, text_table,
};

use crate::report::distribution::{chart, curve};
use crate::report::over_time::{HEIGHT, clock, greatest, heat_map, line, operations_a_second};
use crate::report::tables::percentile_cells;
use crate::report::{NamedResult, ends, facts, sections, verdict};
use crate::result::latency::Percentiles;
use crate::result::proof::Proof;
use crate::result::second::Second;
use crate::watch::screen::micros;

pub(super) fn page(results: &[NamedResult]) -> Page {
    let mut findings: Vec<String> =
        results.iter().map(|one| format!("{}: {}.", one.name, verdict::verdict(&one.result))).collect();
    if results.iter().any(|one| !one.result.valid) {
        findings.push("An invalid run says nothing about its server.".to_owned());
    }
    findings.push("Each is one run: whether others would differ as much is not known.".to_owned());
    let mut page_sections =
        vec![figures(results), over_time(results), percentiles(results), heat_maps(results)];
    for one in results {
        for section in sections(&one.result) {
            let title = format!("{}: {}", one.name, section.title);
            page_sections.push(Section { title, fold: Fold::Closed, ..section });
        }
    }
    let mut all = Vec::new();
    for one in results {
        all.extend(facts(&one.result).into_iter().map(|(name, value)| {
            let name = if value.is_empty() { name } else { format!("{}: {name}", one.name) };
            (name, value)
        }));
    }
    let names: Vec<&str> = results.iter().map(|one| one.name.as_str()).collect();
    Page {
        origin: format!("sawmill drive, {} runs: {}", results.len(), names.join(", ")),
        verdict: sentence(results),
        findings,
        facts: all,
        sections: page_sections,
    }
}

/// "p99 from 3.2 ms at 50.0 k ops/s (“after”) to 12 ms at 50.0 k ops/s (“before”), one run each": which is better, single
/// runs do not show.
fn sentence(results: &[NamedResult]) -> String {
    let valid = || results.iter().filter(|one| one.result.valid && one.result.total.ok > 0);
    let p99 = |one: &&NamedResult| one.result.total.latency.percentiles.p99_us;
    let told = |one: &NamedResult| {
        let time = micros(one.result.total.latency.percentiles.p99_us as f64);
        format!("{time} at {} (“{}”)", format_rate(one.result.total.rate, "ops"), one.name)
    };
    match (valid().min_by_key(p99), valid().max_by_key(p99)) {
        (Some(best), Some(worst)) if valid().count() > 1 => {
            format!("p99 from {} to {}, one run each", told(best), told(worst))
        }
        (Some(only), _) => format!("p99 {}; the others are invalid or have no successes", told(only)),
        _ => "None of these runs is valid and has successes".to_owned(),
    }
}

/// Lost rows and updates, if all tables were read back.
fn lost(proof: &[Proof]) -> String {
    match proof.is_empty() || proof.iter().any(|one| one.unchecked.is_some()) {
        true => "not checked".to_owned(),
        false => format_grouped(proof.iter().map(|one| one.lost + one.lost_updates).sum()),
    }
}

fn figures(results: &[NamedResult]) -> Section {
    let mut heads = vec!["run", "operation", "valid", "rate", "ok", "failed", "late"];
    heads.extend(Percentiles::NAMES);
    heads.push("lost rows");
    let mut lines = Vec::new();
    for one in results {
        let several = one.result.operations.len() > 1;
        let total = Some(&one.result.total).filter(|_| several || one.result.operations.is_empty());
        for operation in one.result.operations.iter().chain(total) {
            let mut cells = vec![one.name.clone(), operation.name.clone()];
            cells.push(if one.result.valid { "yes" } else { "no" }.to_owned());
            cells.push(format_rate(operation.rate, "ops"));
            cells.extend([operation.ok, operation.failed(), operation.late].map(format_grouped));
            cells.extend(percentile_cells(&operation.latency.percentiles));
            cells.push(lost(&one.result.proof));
            lines.push(cells);
        }
    }
    Section::new("Side by side", "Latency counts from the intended start.", text_table(&heads, &lines))
}

/// Rates and the 99th percentile of all runs on one axis, from the start of each.
fn over_time(results: &[NamedResult]) -> Section {
    let end = results.iter().map(|one| ends(&one.result).1).fold(0.0, f64::max);
    let chart = |title: &str, upward: Upward, lines: Vec<Line>| {
        let chart = Lines::new(title, HEIGHT, Across::time((0.0, end), clock), upward, lines);
        format!("<h3>{title}</h3>\n{}", chart.html())
    };
    // The slowest operation's percentile: percentiles of several operations cannot be added up.
    let p99 = |second: &Second| {
        let slowest = second
            .operations
            .values()
            .filter(|one| one.latency.count > 0)
            .map(|one| one.latency.p99_us)
            .max();
        slowest.map(|value| value.max(1) as f64)
    };
    let rates = results.iter().map(|one| line(&one.result, &one.name, |second| Some(second.achieved)));
    let slowest = results.iter().map(|one| greatest(&one.result, &one.name, p99));
    let rate = Upward::linear("operations a second", operations_a_second);
    let time = Upward::logarithmic("latency", micros);
    let content = chart("Achieved rate", rate, rates.collect())
        + &chart("99th percentile of the latency, of the slowest operation", time, slowest.collect());
    Section::new("Over time", "Time counts from the start of each run.", content)
}

fn percentiles(results: &[NamedResult]) -> Section {
    let of = |one: &NamedResult| curve(&one.name, &one.result.total.latency.histogram);
    let content = chart("Percentile curves of the latency", results.iter().map(of).collect());
    Section::new("Percentiles", "All operations of each run.", content)
}

fn heat_maps(results: &[NamedResult]) -> Section {
    let map = |one: &NamedResult| {
        let map = heat_map(&one.result, &format!("Heat map of the latency of {}", one.name)).html();
        format!("<h3>{}</h3>\n{map}", escape_html(&one.name))
    };
    Section::new(
        "Latency as heat maps",
        "A darker cell has more operations.",
        results.iter().map(map).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_only_if_its_figure_is_another_one() {
        let named = |name: &str, p99_us: u64, valid| {
            let mut one = NamedResult { name: name.into(), result: crate::DriveResult::default() };
            (one.result.valid, one.result.total.ok) = (valid, p99_us);
            one.result.total.latency.percentiles.p99_us = p99_us;
            one
        };
        let (a, b) = (named("a", 3000, true), named("b", 3000, true));
        assert!(sentence(&[a.clone(), b]).starts_with("p99 from 3.00 ms"));
        let both = sentence(&[a.clone(), named("c", 2000, true)]);
        assert!(both.starts_with("p99 from 2.00 ms") && both.ends_with("(“a”), one run each"), "{both}");
        assert!(
            sentence(&[a.clone(), named("d", 9, false)])
                .starts_with("p99 3.00 ms at 0.00 ops/s (“a”); the others")
        );
        assert!(
            sentence(&[a, named("nothing succeeded", 0, true)])
                .starts_with("p99 3.00 ms at 0.00 ops/s (“a”); the others")
        );
    }
}
