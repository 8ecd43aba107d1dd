//! `sawmill load --nested tables` and the same of `verify`: one line a table.

use std::sync::atomic::AtomicBool;

use sawmill_loader::{Control, LoadOptions, LoadReport, OfTable, PostgresTables, Standing};
use sawmill_profile::{PhaseReport, Profile};
use serde::Serialize;

use crate::console::Console;
use crate::error::Error;
use crate::phases::{self, thousands};
use crate::verify as verification;

/// What `--json` prints of a load.
#[derive(Serialize)]
struct TablesResult<'a> {
    tables: &'a [OfTable<LoadReport>],
    phase: &'a PhaseReport,
}

/// Loads all tables and prints what came of each.
pub(crate) fn run(
    tables: &PostgresTables<'_>,
    options: &LoadOptions,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let profile = Profile::new();
    let phase = profile.phase("load");
    let spinner = console.spinner();
    let mut next = |table: &sawmill_loader::TableName| spinner.set_message(format!("loading {table}"));
    let reports = tables.load(options, &Control::new(cancel, &phase), &mut next);
    spinner.finish_and_clear();
    let (reports, phase) = (reports?, phase.finish());
    console.result(&TablesResult { tables: &reports, phase: &phase }, || {
        let header = ["table", "rows", "units", "", "content sum"].map(str::to_owned);
        let rows = reports.iter().map(|OfTable { table, result: report }| {
            let standing = match report.standing {
                Standing::New => "",
                Standing::Resumed => "went on",
                Standing::Complete => "was complete",
            };
            let verified = if report.verified.is_some() { "verified" } else { "" };
            let said: Vec<&str> = [standing, verified].into_iter().filter(|text| !text.is_empty()).collect();
            let sum = report.content.content_sum.to_string();
            [table.clone(), thousands(report.rows), thousands(report.units), said.join(", "), sum]
        });
        let rows: Vec<[String; 5]> = [header].into_iter().chain(rows).collect();
        let notes = reports.iter().flat_map(|report| &report.result.notes);
        let notes: String = notes.map(|note| format!("{note}\n")).collect();
        phases::table(&rows) + &notes + &format!("loaded {}\n", phases::summary(&phase))
    })
}

/// Compares all tables with the source and prints both sides of each.
pub(crate) fn verify(
    tables: &PostgresTables<'_>,
    options: &LoadOptions,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let phase = Profile::new().phase("verify");
    let verified = tables.verify(options, &Control::new(cancel, &phase))?;
    console.result(&verified, || {
        let lines = verified
            .iter()
            .map(|OfTable { table, result }| format!("{table}\n{}", verification::table_of(result)));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    verified.iter().try_for_each(|OfTable { table, result }| verification::check(result, table))
}
