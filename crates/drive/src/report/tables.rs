//! Tables of the report; in narrow windows their lines are cards.

use std::fmt::Write as _;

use sawmill_profile::{Section, escape_html, format_grouped, format_rate, text_table};

use crate::Proof;
use crate::report::over_time::operations_a_second;
use crate::result::file::{DriveResult, OperationResult};
use crate::result::latency::Percentiles;
use crate::watch::screen::micros;

/// The cells of a line of percentiles, whose heads are [`Percentiles::NAMES`].
pub(super) fn percentile_cells(of: &Percentiles) -> [String; 5] {
    of.figures().map(|value| time(of, value))
}

/// A figure of these percentiles; `-` if they are of no operation.
pub(super) fn time(of: &Percentiles, value: u64) -> String {
    if of.count == 0 { "-".to_owned() } else { micros(value as f64) }
}

pub(super) fn operations(result: &DriveResult) -> Section {
    let mut heads = vec!["operation", "intended", "ok", "rate", "rows", "failed", "retried", "late"];
    heads.extend(Percentiles::NAMES);
    heads.push("service p99");
    let line = |one: &OperationResult| {
        let mut cells = vec![one.name.clone()];
        cells.extend([one.intended, one.ok].map(format_grouped));
        cells.push(format_rate(one.rate, "ops"));
        cells.extend([one.rows, one.failed(), one.retried, one.late].map(format_grouped));
        cells.extend(percentile_cells(&one.latency.percentiles));
        cells.push(time(&one.service.percentiles, one.service.percentiles.p99_us));
        cells
    };
    let mut lines: Vec<Vec<String>> = result.operations.iter().map(line).collect();
    if lines.len() != 1 {
        lines.push(line(&result.total));
    }
    let mut content = text_table(&heads, &lines);
    let mut failures = Vec::new();
    for operation in &result.operations {
        for (kind, count) in &operation.errors {
            let message = operation.messages.get(kind).cloned().unwrap_or_default();
            failures.push(vec![operation.name.clone(), kind.clone(), format_grouped(*count), message]);
        }
    }
    if !failures.is_empty() {
        content.push_str("<h3>Errors</h3>\n");
        content.push_str(&text_table(&["operation", "kind", "count", "a message"], &failures));
    }
    let note = "Latency counts from the intended start; the warm-up is left out.";
    Section::new("Operations", note, content)
}

pub(super) fn limits(result: &DriveResult) -> Section {
    let line = |limit: &crate::LimitResult| {
        let held = if limit.held { "held" } else { "missed" };
        vec![limit.limit.clone(), limit.measured.clone(), held.to_owned()]
    };
    let lines: Vec<Vec<String>> = result.limits.iter().map(line).collect();
    Section::new("Limits", "", text_table(&["limit", "measured", "result"], &lines))
}

/// A count of the proof's table: its heading, the count, and whether it is shown if it is 0 everywhere.
type Count = (&'static str, fn(&Proof) -> u64, bool);

const COUNTS: [Count; 17] = [
    ("read back", |proof| proof.read_back, true),
    ("acknowledged", |proof| proof.acknowledged, true),
    ("found", |proof| proof.found, true),
    ("lost", |proof| proof.lost, true),
    ("different", |proof| proof.different, true),
    ("failed", |proof| proof.failed, false),
    ("failed but found", |proof| proof.failed_but_found, false),
    ("unknown", |proof| proof.unknown, false),
    ("unknown found", |proof| proof.unknown_found, false),
    ("foreign", |proof| proof.foreign, false),
    ("doubled", |proof| proof.doubled, true),
    ("updates", |proof| proof.updates, false),
    ("lost updates", |proof| proof.lost_updates, false),
    ("unsent updates", |proof| proof.unsent_updates, false),
    ("wrong reads", |proof| proof.wrong_reads, false),
    ("not checked", |proof| proof.not_checked, false),
    ("breaks the check", |proof| proof.broken, false),
];

pub(super) fn proof(result: &DriveResult) -> Section {
    let is_shown = |(_, count, always): &&Count| *always || result.proof.iter().any(|proof| count(proof) > 0);
    let shown: Vec<&Count> = COUNTS.iter().filter(is_shown).collect();
    let heads: Vec<&str> =
        std::iter::once("table or check").chain(shown.iter().map(|(head, ..)| *head)).collect();
    let line = |proof: &Proof| {
        let counts = shown.iter().map(|(_, count, _)| format_grouped(count(proof)));
        std::iter::once(proof.place()).chain(counts).collect()
    };
    let lines: Vec<Vec<String>> = result.proof.iter().map(line).collect();
    let mut content = text_table(&heads, &lines);
    let unchecked = result.proof.iter().filter_map(|proof| proof.unchecked.as_ref());
    for example in unchecked.chain(result.proof.iter().flat_map(|proof| &proof.examples)) {
        let _ = writeln!(content, "<p class=\"note\">{}</p>", escape_html(example));
    }
    let note = "The rows of each table, read back after the run and compared with what the server had acknowledged. Counts that \
         are 0 everywhere may be left out.";
    Section::new("Proof of the writes", note, content)
}

pub(super) fn find_max(result: &DriveResult) -> Section {
    let Some(found) = &result.find_max else { return Section::default() };
    let line = |trial: &crate::Trial| {
        let held = match (trial.valid, trial.held) {
            (false, _) => "invalid",
            (true, true) => "held",
            (true, false) => "missed",
        };
        vec![
            operations_a_second(trial.rate),
            operations_a_second(trial.achieved),
            micros(trial.p99_us as f64),
            held.to_owned(),
        ]
    };
    let lines: Vec<Vec<String>> = found.trials.iter().map(line).collect();
    let note = "Each rate that was tried, in order.";
    Section::new(
        "The search for the highest rate",
        note,
        text_table(&["rate", "achieved", "p99", "limits"], &lines),
    )
}
