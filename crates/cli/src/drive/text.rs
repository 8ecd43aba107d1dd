//! The result as text.

use std::fmt::Write as _;

use sawmill_drive::{DriveResult, FindMax, OperationResult, Proof};
use sawmill_profile::{Align, Table, format_count, format_counted, format_grouped};

/// What a person reads after a run.
pub(super) fn text(result: &DriveResult) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write!(out, "{}", operations(&[("", result)]));
    result.operations.iter().for_each(|operation| out.push_str(&failures(operation)));
    let driver = &result.driver;
    let run = &result.run;
    let loop_kind = match run.loop_kind.as_str() {
        "closed" => format!("closed loop of {} clients: latency does not count waiting", run.connections),
        _ => format!("open loop, {} {}, {} connections", run.arrivals, run.shape, run.connections),
    };
    let capacity = driver.capacity.map(|rate| {
        format!("; it can make and record {} operations a second", format_count(rate.round() as u64))
    });
    let _ = writeln!(
        out,
        "\n{loop_kind}\ndriver: {:.1} µs of CPU an operation{}\nlate starts: {} by slow answers of the server, {} by busy \
         connections, {} by the driver",
        driver.cpu_us_per_operation,
        capacity.unwrap_or_default(),
        format_grouped(driver.late_by_server),
        format_grouped(driver.late_by_pool),
        format_grouped(driver.late_by_driver)
    );
    for idle in driver.idle() {
        let _ = writeln!(out, "{idle}");
    }
    if let Some(why) = &result.aborted {
        let _ = writeln!(out, "ABORTED: {why}");
    }
    for event in &result.chaos {
        let failed = event.error.as_ref().map(|error| format!(", failed: {error}")).unwrap_or_default();
        let _ = writeln!(out, "at {:.1} s: {} (took {:.1} s){failed}", event.at, event.what, event.took);
    }
    result.find_max.iter().for_each(|found| out.push_str(&highest(found)));
    for limit in &result.limits {
        let held = if limit.held { "holds" } else { "DOES NOT HOLD" };
        let _ = writeln!(out, "limit {}: {held} ({})", limit.limit, limit.measured);
    }
    result.proof.iter().for_each(|proof| out.push_str(&proof_text(proof)));
    for reason in &result.invalid_because {
        let _ = writeln!(out, "INVALID: {reason}");
    }
    out
}

/// How an operation failed, and how often it was tried again.
fn failures(operation: &OperationResult) -> String {
    let OperationResult { name, errors, messages, failures, .. } = operation;
    let mut out = String::new();
    for (kind, count) in errors {
        let message = messages.get(kind).map(String::as_str).unwrap_or_default();
        let _ = writeln!(out, "{name}: {count} x {kind}: {message}");
    }
    if operation.retries > 0 {
        let retries = format_counted(operation.retries, "further attempt");
        let retried = format_grouped(operation.retried);
        let _ = writeln!(out, "{name}: {retries}, after which {retried} ended well");
    }
    let times = &failures.percentiles;
    if times.count > 0 {
        let [p50, p99, max] = [times.p50_us, times.p99_us, times.max_us].map(milliseconds);
        let _ = writeln!(out, "{name}: failed operations took p50 {p50}, p99 {p99}, max {max} ms");
    }
    out
}

/// What a search for the highest rate has found.
fn highest(found: &FindMax) -> String {
    let limits = found.limits.join(", ");
    let trials = format_counted(found.trials.len() as u64, "trial");
    if found.found.is_empty() {
        return format!("highest rate with {limits}: none was found ({trials})\n");
    }
    let bound = match found.bound_by.as_str() {
        "" => String::new(),
        "pool" => ", bound by busy connections: more connections help only if each stays as fast".to_owned(),
        what => format!(", bound by the {what}"),
    };
    let evidence = found.evidence(|rate| format!("{rate:.0}"));
    format!("highest rate with {limits}: {:.0}/s ({evidence}, {trials}){bound}\n", found.rate)
}

fn milliseconds(micros: u64) -> String {
    format!("{:.2}", micros as f64 / 1000.0)
}

/// A line for each operation of each result, with the names of several.
pub(super) fn operations(results: &[(&str, &DriveResult)]) -> Table {
    let columns =
        ["intended", "ok", "ok/s", "errors", "late", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "service p99"];
    let columns = std::iter::once(("operation", Align::Left)).chain(columns.map(|name| (name, Align::Right)));
    let mut table = Table::new(columns);
    let mut row = |run: &str, operation: &OperationResult| {
        let latency = &operation.latency.percentiles;
        // A percentile of no operation has no value.
        let ms = |micros: u64| match latency.count {
            0 => "-".to_owned(),
            _ => milliseconds(micros),
        };
        table.row([
            if run.is_empty() { operation.name.clone() } else { format!("{run}: {}", operation.name) },
            format_grouped(operation.intended),
            format_grouped(operation.ok),
            format!("{:.1}", operation.rate),
            format_grouped(operation.failed()),
            format_grouped(operation.late),
            ms(latency.p50_us),
            ms(latency.p99_us),
            ms(latency.p999_us),
            ms(latency.max_us),
            ms(operation.service.percentiles.p99_us),
        ]);
    };
    for (run, result) in results {
        let total = Some(&result.total).filter(|_| result.operations.len() > 1);
        result.operations.iter().chain(total).for_each(|operation| row(run, operation));
    }
    table
}

fn proof_text(proof: &Proof) -> String {
    let number = format_grouped;
    let mut out = format!("{}: ", proof.place());
    if let Some(why) = &proof.unchecked {
        let what =
            if proof.check { "NOT CARRIED OUT" } else { "NOT CHECKED, so nothing is said about its rows" };
        return out + &format!("{what}: {why}\n");
    }
    if proof.check {
        out += &match proof.broken {
            0 => "holds\n".to_owned(),
            rows => format!("DOES NOT HOLD: it returns {}\n", format_counted(rows, "row")),
        };
        return out + &examples(proof);
    }
    let verdict = match proof.holds() {
        true => {
            let updates = match proof.updates {
                updates if updates == 0 || proof.not_checked > 0 => String::new(),
                updates => format!(", and all {}", format_counted(updates, "acknowledged update")),
            };
            let rows = format_counted(proof.acknowledged, "acknowledged row");
            let what = if proof.not_checked == 0 { "all".to_owned() } else { number(proof.found) + " of" };
            format!("{what} {rows} found with their values{updates}")
        }
        false => format!(
            "{} LOST of {} acknowledged rows, {} LOST of {} acknowledged updates, {} updates that were not sent, {} wrong reads, {} with other values, {} refused or deleted but there, {} twice, {} not of this run",
            number(proof.lost),
            number(proof.acknowledged),
            number(proof.lost_updates),
            number(proof.updates),
            number(proof.unsent_updates),
            number(proof.wrong_reads),
            number(proof.different),
            number(proof.failed_but_found),
            number(proof.doubled),
            number(proof.foreign)
        ),
    };
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "{verdict}; {} not written; {} of {} with an unknown outcome are there; {} read back",
        number(proof.failed),
        number(proof.unknown_found),
        number(proof.unknown),
        format_counted(proof.read_back, "row")
    );
    if proof.not_checked > 0 {
        let rows = format_counted(proof.not_checked, "row");
        let _ = match &proof.undeclared {
            Some(operation) => writeln!(
                out,
                "  {rows} NOT CHECKED: {operation:?} writes this table and does not say what; give it `writes`"
            ),
            None => writeln!(
                out,
                "  {rows} written by custom statements: values NOT CHECKED (give the plan `checks`)"
            ),
        };
    }
    if proof.replaced {
        out.push_str("  another program dropped the table during the run and made one of the same name\n");
    }
    out + &examples(proof)
}

fn examples(proof: &Proof) -> String {
    proof.examples.iter().map(|example| format!("  {example}\n")).collect()
}
