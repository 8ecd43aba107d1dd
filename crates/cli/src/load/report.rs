//! The report of a load.

use std::time::Duration;

use sawmill_loader::{LoadReport, LoadState, Note, PartReport, ServerWaits, Verification};
use sawmill_profile::{
    Bottleneck, Maxima, PhaseReport, Profile, Sampler, SamplerOptions, Timeline, format_byte_rate,
    format_rate,
};
use serde::Serialize;

use super::reading::Reading;
use crate::error::{Error, Exit, Result};
use crate::screen::console::Console;
use crate::screen::limit;
use crate::screen::phases::{self, counted};

/// What `--json` prints.
#[derive(Serialize)]
struct LoadResult<'a> {
    table: &'a str,
    report: &'a LoadReport,
    #[serde(flatten)]
    measured: Measured<'a>,
}

/// A load's measurements and its reading, as `--json` prints them.
#[derive(Serialize)]
pub(super) struct Measured<'a> {
    /// What limited the speed, if that could be measured.
    pub bottleneck: Option<Bottleneck>,
    pub phase: &'a PhaseReport,
    /// The maxima of `over_time`.
    pub maxima: Maxima,
    /// Memory, CPU time, rows and bytes sent, over time.
    pub over_time: &'a Timeline,
    #[serde(flatten)]
    pub reading: &'a Reading,
}

/// Most samples to keep of a load.
const MAX_SAMPLES: usize = 300;

/// Starts sampling a load.
pub(super) fn sampled(profile: &Profile) -> Result<Sampler> {
    Ok(Sampler::start(SamplerOptions::new().most_samples(MAX_SAMPLES).profile(profile))?)
}

/// How a load treats rows of the table, as far as its report depends on that.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    /// `--verify`
    pub verifies: bool,
    /// Rows are merged by keys, and compared only then.
    pub merges: bool,
    /// Rows of the files may delete rows of the table.
    pub deletes: bool,
    /// Columns may change, after which only whole tables can be compared.
    pub follows: bool,
    /// Rows may be rejected.
    pub rejects: bool,
}

/// Prints the report of a load.
pub(super) fn print(
    table: &str,
    report: &LoadReport,
    manner: Manner,
    phase: &PhaseReport,
    over_time: &Timeline,
    reading: &Reading,
    console: Console,
) -> Result<()> {
    let maxima = over_time.maxima();
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    let measured = Measured { bottleneck, phase, maxima, over_time, reading };
    let result = LoadResult { table, report, measured };
    console.summary(&result, || {
        let ordered = reading.ordered.as_ref().map(|ordered| ordered.line(&reading.phases) + "\n");
        let left_out = reading.records_left_out.unwrap_or_default();
        let summary = summary(table, report, (manner, left_out), phase, &maxima);
        summary + &reading.left_out() + &ordered.unwrap_or_default()
    })
}

/// Says, also with `--quiet`, what a load with `--verify` did not compare.
///
/// # Errors
/// The table is known to lack rows of the files, or nothing was compared.
pub(super) fn check(table: &str, report: &LoadReport, manner: Manner, console: Console) -> Result<()> {
    if !manner.verifies || report.part.is_some() {
        return Ok(());
    }
    let noted = |of_kind: fn(&Note) -> bool| {
        let notes = report.notes.iter().filter(|note| of_kind(note)).map(ToString::to_string);
        notes.collect::<Vec<_>>().join("; ")
    };
    let place = format!("table {table}");
    let missing = noted(|note| matches!(note, Note::Missing(_)));
    if !missing.is_empty() {
        let advice = "sawmill verify --locate finds the missing rows; load with --mode replace loads all from the beginning";
        return Err(Error::new(Exit::Mismatch, missing, place, advice));
    }
    if report.rows_rejected > 0 && !manner.rejects {
        let what = format!("the table lacks {} of the files", counted(report.rows_rejected, "rejected row"));
        let advice =
            "give --rejects FILE to accept them; or load with --mode replace, which tries them again";
        return Err(Error::new(Exit::Mismatch, what, place, advice));
    }
    let moved = noted(|note| matches!(note, Note::MovedColumn(_)));
    if !moved.is_empty() {
        return Err(Error::failure(moved, place, ""));
    }
    let unverified = noted(|note| {
        let of_others =
            matches!(note, Note::OtherRows(_) | Note::PartlyVerified(_) | Note::BesideRejected(_));
        of_others || matches!(note, Note::Unverified(_))
    });
    let has = |of_kind: fn(&Note) -> bool| report.notes.iter().any(of_kind);
    let partly = has(|note| matches!(note, Note::PartlyVerified(_)));
    // A run with new files ends well beside other rows and rejected ones, and so does one without.
    let beside_others = has(|note| matches!(note, Note::OtherRows(_) | Note::BesideRejected(_)))
        && !has(|note| matches!(note, Note::Unverified(_)));
    let was_merged = manner.merges && report.state == LoadState::Complete;
    let is_accepted = partly || beside_others || manner.follows || was_merged;
    if report.verified.is_none() && !is_accepted {
        let what = if unverified.is_empty() { "not verified".to_owned() } else { unverified };
        return Err(Error::failure(what, place, "compare the whole table with sawmill verify"));
    }
    if console.quiet && !unverified.is_empty() {
        console.warn(&format!("{place}: {unverified}"));
    }
    Ok(())
}

/// The lines about a load; `left_out` records of its files cannot be read.
fn summary(
    table: &str,
    report: &LoadReport,
    (manner, left_out): (Manner, u64),
    phase: &PhaseReport,
    maxima: &Maxima,
) -> String {
    let mut out = state_line(table, report);
    if let Some(part) = &report.part {
        out += &of_part(table, report, part);
    }
    if report.files_already + report.files_replaced > 0 && report.files_loaded > 0 {
        let new = counted(report.files_loaded - report.files_replaced, "new file");
        let already = phases::thousands(report.files_already);
        let replaced = match report.files_replaced {
            0 => String::new(),
            replaced => format!(", {} replaced", phases::thousands(replaced)),
        };
        out += &format!("{new}{replaced}, {already} already loaded\n");
    }
    // The phase also counts rejected rows and rows that were already in the table.
    let all_loaded = report.rows_rejected == 0 && report.rows_there_before == 0;
    let done = if all_loaded { "loaded" } else { "processed" };
    if !report.finished {
        out += &format!("{done} {}\n", phases::summary(phase));
    }
    if report.rows_loaded > 0 {
        let rate = report.bytes_read as f64 / phase.wall.as_secs_f64().max(1e-9);
        out += &format!(
            "read {} of the source ({})\n",
            phases::bytes(report.bytes_read),
            format_byte_rate(rate)
        );
        out += &peaks(maxima, phase.wall);
    }
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    let bottleneck = bottleneck.filter(|_| report.rows_loaded > 0);
    out += &found(report.server_waits.as_ref(), bottleneck.as_ref(), report.retries, &report.notes);
    let whose = if report.part.is_some() { "content sum of the part" } else { "content sum" };
    out += &format!("{whose} {}", report.content.content_sum);
    if let Some(verified) = &report.verified {
        out += ", verified: ";
        let rejected = except(report.rows_rejected + left_out);
        out += &match (report.verified_by_key, manner.deletes) {
            (_, true) => {
                format!("the table has each key that the files keep{rejected}, and none that they delete")
            }
            (true, false) => format!("the table has each key of the files{rejected}"),
            (false, false) => compared(verified, manner.merges, left_out),
        };
    }
    out + "\n"
}

/// What became of the load, in a line; empty of a part, which has its own.
fn state_line(table: &str, report: &LoadReport) -> String {
    match report.state {
        _ if report.part.is_some() => String::new(),
        LoadState::Complete => {
            let rows = counted(report.rows, "row");
            let others = report.rows_in_table.filter(|counted| *counted != report.rows);
            let others = others.map(|counted| format!(" of {} in the table", phases::thousands(counted)));
            format!(
                "{table}: this load was complete already, {rows}{}; nothing to do\n",
                others.unwrap_or_default()
            )
        }
        LoadState::Resumed if report.finished => format!(
            "{table}: finished the load of the parts, {} in {}\n",
            counted(report.rows, "row"),
            counted(report.units, "unit")
        ),
        LoadState::Resumed => format!(
            "{table}: resumed after {} of {}; now {}\n",
            phases::thousands(report.units_resumed),
            counted(report.units, "unit"),
            counted(report.rows_in_table.unwrap_or(report.rows), "row")
        ),
        LoadState::New if report.rows_there_before > 0 => format!(
            "{table}: {}, {} of them loaded\n",
            counted(report.rows, "row"),
            phases::thousands(report.rows_loaded)
        ),
        LoadState::New => format!("{table}: {}\n", counted(report.rows, "row")),
    }
}

/// Names rejected rows and records, which a comparison leaves out.
pub(crate) fn except(rejected: u64) -> String {
    match rejected {
        0 => String::new(),
        rows => format!(" except {}", counted(rows, "rejected row")),
    }
}

/// What a comparison has shown.
fn compared(verified: &Verification, merges: bool, left_out: u64) -> String {
    let rejected = except(verified.rejected + left_out);
    match verified.rows_of_others {
        _ if merges => format!("the table has each row of the files{rejected}"),
        0 => format!("the table holds what the files hold{rejected}"),
        others => format!(
            "the table holds {} of the files{rejected}; not compared with the files: {}",
            counted(verified.source.rows, "row"),
            counted(others, "other row")
        ),
    }
}

/// The lines about one part: its rows and units, the units of the whole load, and the next command.
fn of_part(table: &str, report: &LoadReport, part: &PartReport) -> String {
    let units = counted(report.units, "unit");
    let resumed = match report.units_resumed {
        0 => String::new(),
        resumed => format!(", {} of them before this run", phases::thousands(resumed)),
    };
    let rows = counted(report.rows, "row");
    let all = format!("{} of {}", phases::thousands(part.units_recorded), counted(part.units, "unit"));
    let next = match part.units_recorded == part.units {
        true => "all parts are in: finish the load with sawmill load finish",
        false => "when the other parts have ended, finish the load with sawmill load finish",
    };
    format!(
        "{table}: part {} has {rows} in {units}{resumed}\n{all} of the load are recorded; {next}\n",
        part.part
    )
}

/// The server's waits, the bottleneck, lost connections, and notes.
pub(super) fn found<'n>(
    waits: Option<&ServerWaits>,
    bottleneck: Option<&Bottleneck>,
    retries: u64,
    notes: impl IntoIterator<Item = &'n Note>,
) -> String {
    let lost = (retries > 0).then(|| format!("reconnected after {}", counted(retries, "lost connection")));
    let waits = limit::enough(waits).map(ToString::to_string);
    let limit = bottleneck.map(ToString::to_string);
    let notes = notes.into_iter().map(ToString::to_string);
    [waits, limit, lost].into_iter().flatten().chain(notes).map(|line| line + "\n").collect()
}

/// The most that a load used over half a second, in one line; empty for shorter ones, which have no such half second. Its
/// summary has the peak of memory.
pub(super) fn peaks(maxima: &Maxima, wall: Duration) -> String {
    if wall < Duration::from_millis(500) {
        return String::new();
    }
    format!(
        "peaks: {:.1} processors, {}, {} sent\n",
        maxima.processors,
        format_rate(maxima.rows_per_second, "rows"),
        format_byte_rate(maxima.sent_per_second)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_shorter_than_the_window_of_peaks_has_none() {
        let maxima = Maxima { processors: 1.5, rows_per_second: 2e6, ..Maxima::default() };
        let line = peaks(&maxima, Duration::from_millis(500));
        assert!(line.starts_with("peaks: 1.5 processors, 2.00 M rows/s, "), "{line}");
        assert_eq!(peaks(&maxima, Duration::from_millis(499)), "");
    }
}
