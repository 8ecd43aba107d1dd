//! `--nested tables` of `sawmill load` and `sawmill verify`: one line for each table.

use std::sync::atomic::AtomicU64;

use sawmill_loader::{LoadOptions, LoadReport, LoadState, ServerWaits, TableName};
use sawmill_postgres::{OfTable, PostgresTables, Rehearsal};
use sawmill_profile::{PhaseReport, Profile, format_byte_rate};
use serde::Serialize;

use crate::error::Result;
use crate::interrupt;
use crate::load::reading::Reading;
use crate::load::report::{Manner, Measured, check, found, peaks, sampled};
use crate::screen::console::Console;
use crate::screen::limit;
use crate::screen::phases::{self, counted, thousands};
use crate::verify as verification;

/// What `--json` prints of a load.
#[derive(Serialize)]
struct TablesResult<'a> {
    tables: &'a [OfTable<LoadReport>],
    /// What the server waited for, over all tables.
    server_waits: Option<ServerWaits>,
    #[serde(flatten)]
    measured: Measured<'a>,
}

/// Loads all tables and prints a report of each.
pub(super) fn run(
    tables: &PostgresTables<'_>,
    reading: &Reading,
    options: &LoadOptions,
    manner: Manner,
    console: Console,
) -> Result<()> {
    let profile = Profile::new();
    let sampler = sampled(&profile)?;
    let (reports, phase) = load(tables, options, &profile, console)?;
    let over_time = &sampler.stop();
    let server_waits =
        ServerWaits::together(reports.iter().filter_map(|report| report.result.server_waits.as_ref()));
    let measured = Measured {
        bottleneck: limit::of_load(&phase.threads, server_waits.as_ref()).filter(|_| phase.rows > 0),
        phase: &phase,
        maxima: over_time.maxima(),
        over_time,
        reading,
    };
    let result = TablesResult { tables: &reports, server_waits, measured };
    console.summary(&result, || summary(&result) + &reading.left_out())?;
    reports.iter().try_for_each(|OfTable { table, result }| check(table, result, manner, console))
}

/// Loads all tables under a progress bar. The phase counts the rows of all tables.
pub(crate) fn load(
    tables: &PostgresTables<'_>,
    options: &LoadOptions,
    profile: &Profile,
    console: Console,
) -> Result<(Vec<OfTable<LoadReport>>, PhaseReport)> {
    let phase = profile.phase("load");
    // Each table is made from all records.
    let records = tables.records() * tables.names().len() as u64;
    let reports = console.with_named_bar("load", records, &AtomicU64::new(0), &phase, |name| {
        let mut next = |table: &TableName| name(table.name().to_owned());
        let say = |line: &str| console.notice(line);
        tables.load(options, &interrupt::control(&phase).with_notices(&say), &mut next)
    })?;
    let mut phase = phase.finish();
    // The bar counted records.
    phase.rows = reports.iter().map(|report| report.result.rows_loaded).sum();
    Ok((reports, phase))
}

fn summary(result: &TablesResult<'_>) -> String {
    let TablesResult { tables, server_waits, measured } = result;
    let Measured { bottleneck, phase, maxima, .. } = measured;
    let header = ["table", "rows", "units", "", "content sum"].map(str::to_owned);
    let rows = tables.iter().map(|OfTable { table, result: report }| {
        let state = match report.state {
            LoadState::New => "",
            LoadState::Resumed => "resumed",
            LoadState::Complete => "was complete",
        };
        let verified = if report.verified.is_some() { "verified" } else { "" };
        let remarks: Vec<&str> = [state, verified].into_iter().filter(|text| !text.is_empty()).collect();
        let sum = report.content.content_sum.to_string();
        [table.clone(), thousands(report.rows), thousands(report.units), remarks.join(", "), sum]
    });
    let rows: Vec<[String; 5]> = [header].into_iter().chain(rows).collect();
    let mut out = phases::table(&rows) + &format!("loaded {}\n", phases::summary(phase));
    if let Some(files) = tables.first().map(|report| report.result.bytes_in).filter(|_| phase.rows > 0) {
        let rate = files as f64 / phase.wall.as_secs_f64().max(1e-9);
        out += &format!(
            "files of {}, read once for each table ({})\n",
            phases::bytes(files),
            format_byte_rate(rate)
        );
    }
    if phase.rows > 0 {
        out += &peaks(maxima, phase.wall);
    }
    let retries: u64 = tables.iter().map(|report| report.result.retries).sum();
    let notes = tables.iter().flat_map(|report| &report.result.notes);
    out + &found(server_waits.as_ref(), bottleneck.as_ref(), retries, notes)
}

/// Prints what a load of all tables would do, after trying it on the server.
pub(crate) fn dry_run(tables: &PostgresTables<'_>, options: &LoadOptions, console: Console) -> Result<()> {
    let plans = interrupt::during(|control| tables.rehearse(options, control))?;
    console.result(&plans, || {
        let lines = plans
            .iter()
            .map(|OfTable { table, result: plan }| format!("{table}: {}\n{}\n", rehearsed(plan), plan.copy));
        let (lines, records) = (lines.collect::<String>(), counted(tables.records(), "record"));
        let over = counted(options.degree as u64, "connection");
        format!("{lines}{records} over {over}, once for each table\nnothing was changed\n")
    })
}

/// What a load would do, in a clause.
pub(super) fn rehearsed(plan: &Rehearsal) -> String {
    let units = counted(plan.units, "unit");
    match plan.state {
        LoadState::New => format!("a new load of {units}"),
        LoadState::Resumed => format!("would resume after {} of {units}", plan.units_done),
        LoadState::Complete => "complete already; nothing to do".to_owned(),
    }
}

/// Compares all tables with the source and prints both sides of each.
pub(crate) fn verify(tables: &PostgresTables<'_>, options: &LoadOptions, console: Console) -> Result<()> {
    let verified = interrupt::during(|control| tables.verify(options, control))?;
    console.result(&verified, || {
        let lines = verified
            .iter()
            .map(|OfTable { table, result }| format!("{table}\n{}", verification::table_of(result, 0)));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    verified.iter().try_for_each(|OfTable { table, result }| verification::check(result, table))
}
