//! Runs a load test and reports it.

use std::path::Path;

use sawmill_drive::{
    Address, DriveResult, Driving, Limit, NamedResult, Plan, Proof, find_max, run as drive, text_report,
};
use sawmill_store::{followed, is_stream};

use crate::arguments::paths::each_has_its_file;
use crate::drive::args::{DriveArgs, DriveCommand, OfResults};
use crate::drive::{merge, plan, results};
use crate::error::{Error, Exit, Result};
use crate::screen::console::Console;
use crate::{forms, interrupt};

pub(crate) fn run(command: &DriveCommand, console: Console) -> Result<()> {
    match &command.results {
        Some(OfResults::Merge(args)) => merge::run(args, console),
        None => drive_it(&command.args, console),
    }
}

fn drive_it(args: &DriveArgs, console: Console) -> Result<()> {
    let mut plan = plan::plan(args)?;
    let files = args.watch.files().into_iter().chain([("--json-file", args.json_file.as_ref())]);
    each_has_its_file(files)?;
    if let Some(path) = &args.json_file {
        may_write(path)?;
    }
    let (mut watchers, troubles) = args.watch.watchers(console)?;
    let (address, mut server) = plan::address(args)?;
    let limits = searched(args, &plan)?;
    let driving = Driving {
        address: &address,
        server: server.as_mut(),
        cancel: interrupt::flag(),
        observer: &mut watchers,
        command: forms::shown(crate::program().iter().chain(crate::words())),
    };
    let result = match limits {
        Some(limits) => find_max(&mut plan, &limits, args.repeats.into(), driving)?,
        None => drive(&plan, driving)?,
    };
    drop(watchers);
    let written = write(args, &result);
    match args.watch.takes_stdout() {
        true => console.steps(&text_report(&result)),
        false => console.result(&result, || text_report(&result))?,
    }
    // Lost rows are worse than a missing file.
    refuse_lost(&result)?;
    written?;
    if let Some(error) = troubles.first() {
        return Err(error.into());
    }
    if let Some(server) = server {
        server.stop()?;
    }
    verdict(&result, &address)
}

/// Writes the files that are asked for.
fn write(args: &DriveArgs, result: &DriveResult) -> Result<()> {
    let json = args.json_file.as_ref().map_or(Ok(()), |path| results::write_json(path, result));
    let html = args.watch.html.as_ref().map_or(Ok(()), |path| {
        results::write_html(path, &[NamedResult { name: name_of(args), result: result.clone() }])
    });
    json.and(html)
}

/// The name of the result in a report: the name of its file, or of its plan.
fn name_of(args: &DriveArgs) -> String {
    let path = args.json_file.as_deref().unwrap_or(Path::new(args.plan()));
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The limits of a search.
fn searched(args: &DriveArgs, plan: &Plan) -> Result<Option<Vec<Limit>>> {
    if !args.find_max {
        return Ok(None);
    }
    let limits: Vec<Limit> =
        args.p99.map(Limit::p99).into_iter().chain(plan.limits.iter().cloned()).collect();
    if limits.is_empty() {
        Err(Error::usage("no limits", "--find-max", "give --p99 50ms or --limit 'insert.p99 < 20ms'"))
    } else {
        Ok(Some(limits))
    }
}

fn verdict(result: &DriveResult, address: &Address) -> Result<()> {
    refuse_lost(result)?;
    if interrupt::asked() {
        let advice = "the figures cover the time until then; no row was looked for";
        return Err(Error::new(Exit::Interrupted, "the run was interrupted", "", advice));
    }
    refuse(result, if matches!(address, Address::Null) { "target null" } else { "" })
}

/// The error of a result that says nothing, or nothing good; its worst news.
pub(super) fn refuse(result: &DriveResult, place: &str) -> Result<()> {
    refuse_lost(result)?;
    refuse_unchecked(result)?;
    let failed = result.chaos.iter().find_map(|event| Some((event, event.error.as_ref()?)));
    if let Some((event, error)) = failed {
        let place = format!("--chaos {:?}, after {:.1} s", event.what, event.at);
        let what = format!("the server was not disturbed as planned: {error}");
        return Err(Error::failure(what, place, "mend the action, and drive again"));
    }
    if let Some(reason) = result.invalid_because.first() {
        let none = if result.total.ok == 0 { "no operation ended well, and " } else { "" };
        return Err(Error::failure(format!("{none}the result is invalid: {reason}"), place, result.advice()));
    }
    if let Some(why) = &result.aborted {
        let advice = "the figures cover the time until then";
        return Err(Error::new(Exit::Slower, format!("the run was ended: {why}"), "--abort-when", advice));
    }
    let missed = result.limits.iter().filter(|limit| !limit.held);
    let missed: Vec<String> = missed.map(|limit| format!("{} ({})", limit.limit, limit.measured)).collect();
    if !missed.is_empty() {
        return Err(Error::new(Exit::Slower, "a limit does not hold", missed.join("; "), ""));
    }
    match result.total.ok {
        0 => Err(Error::failure("no operation ended well", place, "see the errors above")),
        _ => Ok(()),
    }
}

/// The error of a result whose rows could not be looked for, or with a check that could not be carried out.
fn refuse_unchecked(result: &DriveResult) -> Result<()> {
    let unchecked = |proof: &Proof| Some((proof.check, proof.place(), proof.unchecked.clone()?));
    let (what, place, advice) = match result.proof.iter().find_map(unchecked) {
        None => return Ok(()),
        Some((true, place, why)) => (
            format!("the check could not be carried out: {why}"),
            place,
            "the figures above stand; mend the check in the plan, and drive again; the tables were not dropped",
        ),
        Some((false, place, why)) => (
            format!("the rows could not be looked for: {why}"),
            place,
            "the figures above stand, and say nothing about the rows; their tables were not dropped",
        ),
    };
    Err(Error::failure(what, place, advice))
}

/// Fails with a mismatch if the proof found violations: rows that are lost, changed, doubled or foreign.
pub(super) fn refuse_lost(result: &DriveResult) -> Result<()> {
    if let Some(proof) = result.proof.iter().find(|proof| !proof.violations().is_empty()) {
        let advice = if proof.replaced {
            "let no other program use the table during the run, such as a second drive with --overwrite"
        } else {
            "see the examples above"
        };
        return Err(Error::new(Exit::Mismatch, proof.violations().join(", "), proof.place(), advice));
    }
    Ok(())
}

/// Finds out before the run whether the result can be written after it.
pub(super) fn may_write(path: &Path) -> Result<()> {
    if is_stream(path) {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        let what = format!("the result cannot be written: {error}");
        Error::failure(what, path.display().to_string(), "write elsewhere")
    };
    let path = &followed(path).map_err(failed)?;
    let is_new = !path.exists();
    // A file that is not text is not ours either.
    let is_ours = |text: String| text.is_empty() || DriveResult::is_in(&text);
    if path.is_file() && !sawmill_store::read_text(path).is_ok_and(is_ours) {
        let what = "the file exists, and no load test has written it";
        return Err(Error::usage(what, path.display().to_string(), "name another file, or remove this one"));
    }
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
    // A run that is killed leaves no empty file.
    let tried = opened.and_then(|_| if is_new { std::fs::remove_file(path) } else { Ok(()) });
    tried.map_err(failed)
}
