//! Result files of load tests: reading them, and drawing them as a page.

use std::path::Path;

use sawmill_drive::{DriveResult, NamedResult, OperationResult, html_report};
use sawmill_profile::{Align, Table, format_duration, format_grouped, format_rate, write_whole};
use sawmill_store::WholeFile;

use crate::error::Error;
use crate::screen::console::Console;

/// Draws files whose texts have been read, one or several side by side.
pub(crate) fn report(texts: &[(&Path, String)], html: &Path, console: Console) -> Result<(), Error> {
    let results: Vec<NamedResult> =
        texts.iter().map(|(path, text)| NamedResult::from_json(text, path)).collect::<Result<_, _>>()?;
    write_html(html, &results)?;
    let plain: Vec<&DriveResult> = results.iter().map(|one| &one.result).collect();
    console.result(&plain, || table(&results))
}

/// Writes a result, whole or not at all; its examples of rows are for the owner alone.
pub(super) fn write_json(path: &Path, result: &DriveResult) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| {
        let what = format!("the result cannot be written: {error}");
        Error::failure(what, path.display().to_string(), "write elsewhere")
    };
    let text = serde_json::to_string_pretty(result).map_err(|error| failed(&error))?;
    WholeFile::write_private(path, (text + "\n").as_bytes()).map_err(|error| failed(&error))
}

/// Writes the page, whole or not at all.
pub(crate) fn write_html(path: &Path, results: &[NamedResult]) -> Result<(), Error> {
    Ok(write_whole(path, html_report(results)?.as_bytes())?)
}

/// A line for each operation of each result.
pub(super) fn table(results: &[NamedResult]) -> String {
    let right = Align::Right;
    let mut table = Table::new([
        ("run", Align::Left),
        ("operation", Align::Left),
        ("rate", right),
        ("ok", right),
        ("failed", right),
        ("late", right),
        ("p50", right),
        ("p99", right),
        ("p99.9", right),
        ("max", right),
    ]);
    let time = |micros: u64| match micros {
        0 => "0".to_owned(),
        micros => format_duration(std::time::Duration::from_micros(micros)),
    };
    for one in results {
        let result = &one.result;
        let several = result.operations.len() != 1;
        let all: Vec<&OperationResult> =
            result.operations.iter().chain(Some(&result.total).filter(|_| several)).collect();
        for (place, operation) in all.into_iter().enumerate() {
            let latency = &operation.latency.percentiles;
            let name = if place == 0 { one.name.clone() } else { String::new() };
            let mut row = vec![name, operation.name.clone(), format_rate(operation.rate, "ops")];
            row.extend([operation.ok, operation.failed(), operation.late].map(format_grouped));
            row.extend([latency.p50_us, latency.p99_us, latency.p999_us, latency.max_us].map(time));
            table.row(row);
        }
    }
    let mut text = table.to_string();
    for one in results.iter().filter(|one| !one.result.valid) {
        text.push_str(&format!("{}: invalid: {}\n", one.name, one.result.invalid_because.join("; ")));
    }
    text
}
