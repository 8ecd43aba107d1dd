//! The verdict on a load test in a sentence, worst news first.

use sawmill_profile::{format_counted, format_grouped, format_rate};

use crate::report::tables::time;
use crate::result::file::{DriveResult, LimitResult};
use crate::result::proof::Proof;

/// The sentence: an invalid run, lost rows, missed limits, the highest rate, or how the run went.
pub(super) fn verdict(result: &DriveResult) -> String {
    if !result.valid {
        return format!("Invalid: {}", result.invalid_because.join("; "));
    }
    let lost: u64 = result.proof.iter().map(|proof| proof.lost).sum();
    if lost > 0 {
        let acknowledged: u64 = result.proof.iter().map(|proof| proof.acknowledged).sum();
        return format!(
            "{} of {} acknowledged rows are lost",
            format_grouped(lost),
            format_grouped(acknowledged)
        );
    }
    if let Some(broken) = result.proof.iter().find(|proof| !proof.violations().is_empty()) {
        return format!("{}: {}", capital(&broken.place()), broken.violations().join(", "));
    }
    let unchecked = |proof: &Proof| {
        let done = if proof.check { "carried out" } else { "looked at" };
        Some((proof.place(), done, proof.unchecked.clone()?))
    };
    if let Some((place, done, why)) = result.proof.iter().find_map(unchecked) {
        return format!("{} could not be {done}: {why}", capital(&place));
    }
    if let Some(why) = &result.aborted {
        return format!("The run was ended: {why}");
    }
    let missed: Vec<&LimitResult> = result.limits.iter().filter(|limit| !limit.held).collect();
    if let Some(first) = missed.first() {
        let more = match missed.len() {
            1 => String::new(),
            count => format!(", and {} more", format_counted(count as u64 - 1, "limit")),
        };
        return format!("The limit {} is missed: {}{more}", first.limit, first.measured);
    }
    if result.total.ok == 0 {
        return format!("None of {} ended well", format_counted(result.total.intended, "operation"));
    }
    if let Some(found) = &result.find_max {
        return format!(
            "{} holds {} up to {} ({}){}",
            result.run.name,
            found.limits.join(" and "),
            format_rate(found.rate, "ops"),
            found.evidence(|rate| format_rate(rate, "ops")),
            if found.bound_by.is_empty() {
                String::new()
            } else {
                format!(", bound by the {}", found.bound_by)
            },
        );
    }
    went(result)
}

/// "50.0 k ops/s of 50.0 k ops/s intended: p99 3.2 ms, p99.9 12 ms, no errors".
fn went(result: &DriveResult) -> String {
    let total = &result.total;
    let latency = &total.latency.percentiles;
    let intended = match result.run.loop_kind.as_str() {
        "closed" => format!(" in a closed loop of {}", format_counted(result.run.connections, "client")),
        _ => {
            let rate = total.intended as f64 / result.run.duration.max(1e-9);
            format!(" of {} intended", format_rate(rate, "ops"))
        }
    };
    let failed = match total.failed() {
        0 => "no errors".to_owned(),
        count => format_counted(count, "error"),
    };
    format!(
        "{}: {}{intended}, p99 {}, p99.9 {}, {failed}",
        result.run.name,
        format_rate(total.rate, "ops"),
        time(latency, latency.p99_us),
        time(latency, latency.p999_us),
    )
}

/// Further findings that a reader has to know at once.
pub(super) fn findings(result: &DriveResult) -> Vec<String> {
    let mut findings = Vec::new();
    if !result.valid {
        findings.push(capital(&result.advice()) + ".");
    }
    if verdict(result) != went(result) {
        findings.push(capital(&went(result)) + ".");
    }
    // An invalid run may have lost rows all the same.
    let wrong =
        result.proof.iter().map(|proof| (proof, proof.violations())).filter(|(_, all)| !all.is_empty());
    findings.extend(wrong.map(|(proof, all)| format!("{}: {}.", capital(&proof.place()), all.join(", "))));
    if result.interrupted {
        findings.push("The run was interrupted: figures are of what ran until then.".to_owned());
    }
    let held = result.limits.iter().filter(|limit| limit.held).count();
    if held > 0 && held == result.limits.len() {
        findings.push(format!(
            "{} held.",
            if held == 1 { "The limit".to_owned() } else { format!("All {held} limits") }
        ));
    }
    let sum = |count: fn(&Proof) -> u64| result.proof.iter().map(count).sum::<u64>();
    let (acknowledged, found) = (sum(|proof| proof.acknowledged), sum(|proof| proof.found));
    if acknowledged > 0 && result.proof.iter().all(Proof::holds) {
        let rows = match sum(|proof| proof.not_checked) {
            0 => format!("All {} acknowledged rows were found afterwards", format_grouped(found)),
            others => format!(
                "{} of {} acknowledged rows were found afterwards with their values, and the values of {} were not compared",
                format_grouped(found),
                format_grouped(acknowledged),
                format_counted(others, "row")
            ),
        };
        let unknown = format_grouped(sum(|proof| proof.unknown));
        findings.push(format!("{rows}; the outcome of {unknown} is unknown."));
    }
    if result.total.failed() > 0 {
        let kinds =
            result.total.errors.iter().map(|(kind, count)| format!("{kind} {}", format_grouped(*count)));
        findings.push(format!("Errors by kind: {}.", kinds.collect::<Vec<_>>().join(", ")));
    }
    if result.total.late > 0 {
        findings.push(format!(
            "{} started more than 1 ms late; their latency counts from the intended start.",
            format_counted(result.total.late, "operation")
        ));
    }
    if result.proof.is_empty() {
        findings.push("No table was read back, so that nothing is said about acknowledged rows.".to_owned());
    }
    findings
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_news_is_the_verdict() {
        let limit = LimitResult { limit: "insert.p99 < 20ms".into(), measured: "35 ms".into(), held: false };
        let mut result = DriveResult { valid: true, limits: vec![limit], ..DriveResult::default() };
        assert_eq!(verdict(&result), "The limit insert.p99 < 20ms is missed: 35 ms");
        result.proof.push(Proof { lost: 2, acknowledged: 1000, ..Proof::default() });
        assert_eq!(verdict(&result), "2 of 1,000 acknowledged rows are lost");
        result.valid = false;
        result.invalid_because.push("the driver was late".into());
        assert_eq!(verdict(&result), "Invalid: the driver was late");
        let told = findings(&result).join(" ");
        assert!(!told.contains("acknowledged rows were found"), "{told}");
        assert!(told.contains(": 2 acknowledged rows are lost."), "{told}");
    }

    #[test]
    fn a_check_that_failed_says_nothing_against_the_tables() {
        let unchecked = |check| {
            let proof = Proof { table: "a".into(), check, unchecked: Some("why".into()), ..Proof::default() };
            verdict(&DriveResult { valid: true, proof: vec![proof], ..DriveResult::default() })
        };
        assert_eq!(unchecked(true), "Check \"a\" could not be carried out: why");
        assert_eq!(unchecked(false), "Table a could not be looked at: why");
    }

    #[test]
    fn rows_that_were_not_checked_are_not_all_found() {
        let proof = Proof { acknowledged: 1000, found: 600, not_checked: 400, ..Proof::default() };
        let result = DriveResult { valid: true, proof: vec![proof], ..DriveResult::default() };
        let told = findings(&result).join(" ");
        let expected = "600 of 1,000 acknowledged rows were found afterwards with their values, and the values of 400 rows were not compared; the outcome of 0 is unknown.";
        assert!(told.contains(expected), "{told}");
    }
}
