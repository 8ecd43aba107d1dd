//! Result files of load tests: reading them, and drawing them as a page.

use std::path::Path;

use sawmill_drive::{DriveResult, NamedResult, html_report, operations_table};
use sawmill_profile::write_whole;
use sawmill_store::WholeFile;

use crate::error::{Error, Result};
use crate::screen::console::Console;

/// Draws files whose texts have been read, one or several side by side.
pub(crate) fn report(texts: &[(&Path, String)], html: &Path, console: Console) -> Result<()> {
    let results: Vec<NamedResult> =
        texts.iter().map(|(path, text)| NamedResult::from_json(text, path)).collect::<Result<_, _>>()?;
    write_html(html, &results)?;
    let plain: Vec<&DriveResult> = results.iter().map(|one| &one.result).collect();
    console.result(&plain, || {
        let named: Vec<(&str, &DriveResult)> =
            results.iter().map(|one| (one.name.as_str(), &one.result)).collect();
        let invalid = results.iter().filter(|one| !one.result.valid);
        let invalid =
            invalid.map(|one| format!("{}: invalid: {}\n", one.name, one.result.invalid_because.join("; ")));
        operations_table(&named).to_string() + &invalid.collect::<String>()
    })
}

/// Writes a result, whole or not at all; its examples of rows are for the owner alone.
pub(super) fn write_json(path: &Path, result: &DriveResult) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| {
        let what = format!("the result cannot be written: {error}");
        Error::failure(what, path.display().to_string(), "write elsewhere")
    };
    let text = serde_json::to_string_pretty(result).map_err(|error| failed(&error))?;
    WholeFile::write_private(path, (text + "\n").as_bytes()).map_err(|error| failed(&error))
}

/// Writes the page, whole or not at all.
pub(crate) fn write_html(path: &Path, results: &[NamedResult]) -> Result<()> {
    Ok(write_whole(path, html_report(results)?.as_bytes())?)
}
