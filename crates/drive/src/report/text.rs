//! The result as text, for a terminal.

use std::fmt::Write as _;

use sawmill_profile::{Align, Table, format_count, format_counted, format_grouped};

use crate::result::file::{DriveResult, OperationResult};
use crate::result::proof::Proof;

/// What a person reads after a run.
pub fn text_report(result: &DriveResult) -> String {
    let operations = operations_table(&[("", result)]).to_string();
    let failures: String = result.operations.iter().map(failures).collect();
    let proofs: String = result.proof.iter().map(proof_text).collect();
    operations + &failures + &driver(result) + &events(result) + &proofs + &objections(result)
}

/// The errors and further attempts of an operation.
fn failures(operation: &OperationResult) -> String {
    let name = &operation.name;
    let mut out = String::new();
    for (kind, count) in &operation.errors {
        let message = operation.messages.get(kind).map(String::as_str).unwrap_or_default();
        out += &format!("{name}: {count} x {kind}: {message}\n");
    }
    if operation.retries > 0 {
        let retries = format_counted(operation.retries, "further attempt");
        out += &format!("{name}: {retries}, after which {} ended well\n", format_grouped(operation.retried));
    }
    let failures = &operation.failures.percentiles;
    if failures.count > 0 {
        let times = [failures.p50_us, failures.p99_us, failures.max_us];
        let [p50, p99, max] = times.map(|micros| format!("{:.2}", micros as f64 / 1000.0));
        out += &format!("{name}: failed operations took p50 {p50}, p99 {p99}, max {max} ms\n");
    }
    out
}

/// How operations were started, and how much of that was the driver's.
fn driver(result: &DriveResult) -> String {
    let (driver, run) = (&result.driver, &result.run);
    let loop_kind = match run.loop_kind.as_str() {
        "closed" => format!("closed loop of {} clients: latency does not count waiting", run.connections),
        _ => format!("open loop, {} {}, {} connections", run.arrivals, run.shape, run.connections),
    };
    let capacity = driver.capacity.map(|rate| {
        format!("; it can make and record {} operations a second", format_count(rate.round() as u64))
    });
    let mut out = format!(
        "\n{loop_kind}\ndriver: {:.1} µs of CPU an operation{}\nlate starts: {} by slow answers of the server, {} by busy \
         connections, {} by the driver\n",
        driver.cpu_us_per_operation,
        capacity.unwrap_or_default(),
        format_grouped(driver.late_by_server),
        format_grouped(driver.late_by_pool),
        format_grouped(driver.late_by_driver)
    );
    for idle in driver.idle() {
        out += &format!("{idle}\n");
    }
    out
}

/// What ended or disturbed the run, the highest rate, and the limits.
fn events(result: &DriveResult) -> String {
    let mut out = result.aborted.iter().map(|why| format!("ABORTED: {why}\n")).collect::<String>();
    for event in &result.chaos {
        let failed = event.error.as_ref().map(|error| format!(", failed: {error}")).unwrap_or_default();
        out += &format!("at {:.1} s: {} (took {:.1} s){failed}\n", event.at, event.what, event.took);
    }
    if let Some(found) = &result.find_max {
        let trials = format_counted(found.trials.len() as u64, "trial");
        let bound = match found.bound_by.as_str() {
            "" => String::new(),
            "pool" => {
                ", bound by busy connections: more connections help only if each stays as fast".to_owned()
            }
            what => format!(", bound by the {what}"),
        };
        out += &format!("highest rate with {}: ", found.limits.join(", "));
        out += &match found.found.is_empty() {
            true => format!("none was found ({trials})\n"),
            false => {
                let evidence = found.evidence(|rate| format!("{rate:.0}"));
                format!("{:.0}/s ({evidence}, {trials}){bound}\n", found.rate)
            }
        };
    }
    for limit in &result.limits {
        let held = if limit.held { "holds" } else { "DOES NOT HOLD" };
        out += &format!("limit {}: {held} ({})\n", limit.limit, limit.measured);
    }
    out
}

/// Why the result says nothing about the server, and what to do.
fn objections(result: &DriveResult) -> String {
    let mut out = result.invalid_because.iter().map(|why| format!("INVALID: {why}\n")).collect::<String>();
    if !result.valid {
        out += &format!("  {}\n", result.advice());
    }
    out
}

/// A line for each operation of each result, with the names of several.
pub fn operations_table(results: &[(&str, &DriveResult)]) -> Table {
    let columns =
        ["intended", "ok", "ok/s", "errors", "late", "p50 ms", "p99 ms", "p99.9 ms", "max ms", "service p99"];
    let columns = std::iter::once(("operation", Align::Left)).chain(columns.map(|name| (name, Align::Right)));
    let mut table = Table::new(columns);
    let mut row = |run: &str, operation: &OperationResult| {
        let latency = &operation.latency.percentiles;
        // A percentile of no operation has no value.
        let ms = |micros: u64| match latency.count {
            0 => "-".to_owned(),
            _ => format!("{:.2}", micros as f64 / 1000.0),
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
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "{}; {} not written; {} of {} with an unknown outcome are there; {} read back",
        if proof.holds() { found(proof) } else { violated(proof) },
        format_grouped(proof.failed),
        format_grouped(proof.unknown_found),
        format_grouped(proof.unknown),
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

/// The rows that are as they were acknowledged.
fn found(proof: &Proof) -> String {
    let updates = match proof.updates {
        updates if updates == 0 || proof.not_checked > 0 => String::new(),
        updates => format!(", and all {}", format_counted(updates, "acknowledged update")),
    };
    let rows = format_counted(proof.acknowledged, "acknowledged row");
    let what = if proof.not_checked == 0 { "all".to_owned() } else { format_grouped(proof.found) + " of" };
    format!("{what} {rows} found with their values{updates}")
}

fn violated(proof: &Proof) -> String {
    let number = format_grouped;
    format!(
        "{} LOST of {} acknowledged rows, {} LOST of {} acknowledged updates, {} updates that were not sent, {} wrong \
         reads, {} with other values, {} refused or deleted but there, {} twice, {} not of this run",
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
    )
}

fn examples(proof: &Proof) -> String {
    proof.examples.iter().map(|example| format!("  {example}\n")).collect()
}
