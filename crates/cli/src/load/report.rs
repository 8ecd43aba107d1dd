//! The report of a load.

use sawmill_loader::{LoadReport, LoadState, Note, PartReport, ServerWaits};
use sawmill_profile::{
    Bottleneck, Maxima, PhaseReport, Profile, Sampler, SamplerOptions, Timeline, format_byte_rate,
    format_bytes, format_rate,
};
use serde::Serialize;

use super::reading::Reading;
use crate::error::Error;
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
pub(super) fn sampled(profile: &Profile) -> Result<Sampler, Error> {
    Ok(Sampler::start(SamplerOptions::new().most_samples(MAX_SAMPLES).profile(profile))?)
}

/// Prints the report of a load.
pub(super) fn print(
    table: &str,
    report: &LoadReport,
    deletes: bool,
    phase: &PhaseReport,
    over_time: &Timeline,
    reading: &Reading,
    console: Console,
) -> Result<(), Error> {
    let maxima = over_time.maxima();
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    let measured = Measured { bottleneck, phase, maxima, over_time, reading };
    let result = LoadResult { table, report, measured };
    console.summary(&result, || {
        let ordered = reading.ordered.as_ref().map(|ordered| ordered.line(&reading.phases) + "\n");
        summary(table, report, deletes, phase, &maxima) + &reading.left_out() + &ordered.unwrap_or_default()
    })
}

fn summary(table: &str, report: &LoadReport, deletes: bool, phase: &PhaseReport, maxima: &Maxima) -> String {
    let mut out = match report.state {
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
    };
    if let Some(part) = &report.part {
        out += &of_part(table, report, part);
    }
    if report.files_already > 0 && report.files_loaded > 0 {
        out += &format!(
            "{}, {} already loaded\n",
            counted(report.files_loaded, "new file"),
            phases::thousands(report.files_already)
        );
    }
    // The phase also counts rejected rows and rows that were already in the table.
    let all_loaded = report.rows_rejected == 0 && report.rows_there_before == 0;
    let done = if all_loaded { "loaded" } else { "processed" };
    if !report.finished {
        out += &format!("{done} {}\n", phases::summary(phase));
    }
    if report.rows_loaded > 0 {
        let rate = report.bytes_read as f64 / phase.wall.as_secs_f64().max(1e-9);
        out +=
            &format!("read {} of the files ({})\n", phases::bytes(report.bytes_read), format_byte_rate(rate));
    }
    if report.rows_loaded > 0 {
        out += &at_most(maxima);
    }
    let bottleneck = limit::of_load(&phase.threads, report.server_waits.as_ref());
    let bottleneck = bottleneck.filter(|_| report.rows_loaded > 0);
    out += &found(report.server_waits.as_ref(), bottleneck.as_ref(), report.retries, &report.notes);
    let whose = if report.part.is_some() { "content sum of the part" } else { "content sum" };
    out += &format!("{whose} {}", report.content.content_sum);
    if report.verified.is_some() {
        out += match (report.verified_by_key, deletes) {
            (_, true) => ", verified: the table has each key that the files keep, and none that they delete",
            (true, false) => ", verified: the table has each key of the files",
            (false, false) => ", verified: the table holds what the files hold",
        };
    }
    out + "\n"
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

/// The most that a load used, in one line.
pub(super) fn at_most(maxima: &Maxima) -> String {
    let memory =
        maxima.memory.map(|bytes| format!("{} of memory, ", format_bytes(bytes))).unwrap_or_default();
    format!(
        "at most {memory}{:.1} processors, {}, {} sent\n",
        maxima.processors,
        format_rate(maxima.rows_per_second, "rows"),
        format_byte_rate(maxima.sent_per_second)
    )
}
