//! The report of a load test as text; of one or of several side by side as a page of HTML.
//!
//! All charts over time share one time axis, with the chaos events drawn in: rates, latencies, errors, and below
//! them the server's own figures.

mod distribution;
mod over_time;
mod server;
mod side_by_side;
mod tables;
mod text;
mod verdict;

use sawmill_profile::{Error, Event, Page, Section};

pub use text::{operations_table, text_report};

use crate::result::file::DriveResult;
use crate::watch::screen::micros;

/// A result with its name in a report: the file's name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedResult {
    /// The name.
    pub name: String,
    /// The result.
    pub result: DriveResult,
}

/// Draws the page for one result, or for several side by side in the given order.
///
/// # Errors
/// The list of results is empty.
pub fn html_report(results: &[NamedResult]) -> Result<String, Error> {
    match results {
        [] => Err(Error::failed("there are no results to draw", "", "pass at least one result file")),
        [one] => Ok(single(one).html()),
        several => Ok(side_by_side::page(several).html()),
    }
}

fn single(one: &NamedResult) -> Page {
    Page {
        origin: format!("sawmill drive, {}, {}", one.name, one.result.started),
        verdict: verdict::verdict(&one.result),
        findings: verdict::findings(&one.result),
        facts: facts(&one.result),
        sections: sections(&one.result),
    }
}

/// The sections of one result.
fn sections(result: &DriveResult) -> Vec<Section> {
    vec![
        over_time::rates(result),
        over_time::latencies(result),
        over_time::heat(result),
        over_time::errors(result),
        server::section(result),
        distribution::section(result),
        tables::operations(result),
        tables::limits(result),
        tables::proof(result),
        tables::find_max(result),
    ]
}

/// The chaos events, drawn into everything over time.
fn events(result: &DriveResult) -> Vec<Event> {
    let event = |event: &crate::result::second::ChaosEvent| {
        let error = event.error.as_ref().map(|error| format!(" (failed: {error})")).unwrap_or_default();
        Event {
            at: event.at,
            until: (event.took > 0.0).then_some(event.at + event.took),
            name: format!("{}{error}", event.what),
        }
    };
    result.chaos.iter().map(event).collect()
}

/// The ends of the time axis.
fn ends(result: &DriveResult) -> (f64, f64) {
    (0.0, result.seconds.last().map_or(1.0, |second| second.at).max(1e-3))
}

fn facts(result: &DriveResult) -> Vec<(String, String)> {
    let run = &result.run;
    let versions: Vec<String> =
        result.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let how = match run.loop_kind.as_str() {
        "closed" => format!("closed loop, {} clients", run.connections),
        _ => format!("open loop, {} arrivals, {}, {} connections", run.arrivals, run.shape, run.connections),
    };
    let driver = &result.driver;
    let capacity =
        driver.capacity.map(|rate| format!(", capacity {}", sawmill_profile::format_rate(rate, "ops")));
    let cost = format!(
        "{:.1} µs of CPU time for each operation{}; operations that found a free connection started late by p50 {}, \
         p99.9 {}",
        driver.cpu_us_per_operation,
        capacity.unwrap_or_default(),
        micros(driver.lateness.percentiles.p50_us as f64),
        micros(driver.lateness.percentiles.p999_us as f64),
    );
    [
        ("plan", run.name.clone()),
        ("target", run.target.clone()),
        ("load", how),
        ("time", format!("{} s counted, {} s of warm-up before", run.duration, run.warm_up)),
        ("part", run.part.clone().unwrap_or_default()),
        ("seed", run.seed.to_string()),
        ("isolation", run.isolation.clone().unwrap_or_default()),
        ("driver", cost),
        ("started", result.started.clone()),
        ("command", result.command.clone()),
        ("machine", result.machine.to_string()),
        ("versions", versions.join(", ")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
