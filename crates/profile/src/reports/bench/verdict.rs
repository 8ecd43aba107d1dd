//! The verdict on a result, or on a series of them, in a sentence.

use crate::measure::compare::comparison::{Comparison, Verdict};
use crate::measure::compare::order::MIN;
use crate::measure::compare::statistics::Statistics;
use crate::measure::results::{Case, ResultFile, SideComparison, SideResult};
use crate::reports::bench::{time, varied};
use crate::reports::distinct::distinct;
use crate::text::byte_sizes::format_byte_rate;
use crate::text::counts::{format_counted, format_rate};
use crate::trace::bottleneck::{Bottleneck, Limit};

/// The verdict: on the last file compared with the first if there are several; else on our side compared
/// with the others; else on the fastest case.
pub(super) fn verdict(files: &[ResultFile]) -> String {
    let Some(last) = files.last() else { return String::new() };
    let over_time = files.first().filter(|_| files.len() > 1).and_then(|first| since(first, last));
    over_time
        .or_else(|| compared(last))
        .or_else(|| fastest(&last.cases))
        .unwrap_or_else(|| format!("{}: nothing was measured", last.label))
}

/// The other headlines: the bottleneck, and whether the figures are firm.
pub(super) fn findings(file: &ResultFile) -> Vec<String> {
    let mut findings = Vec::new();
    let limits: Vec<&Bottleneck> =
        file.cases.iter().filter_map(|case| case.sides.first()?.bottleneck.as_ref()).collect();
    match limits.as_slice() {
        [] => {}
        [only] => findings.push(capitalised(&only.to_string()) + "."),
        all => findings.extend(limits_of(all)),
    }
    let fewest = file.cases.iter().flat_map(|case| &case.sides).map(|side| side.runs.len()).min();
    if let Some(runs) = fewest.filter(|runs| *runs < MIN) {
        findings.push(format!(
            "{} of a side: too few for an interval of its median.",
            format_counted(runs as u64, "run")
        ));
    }
    findings
}

/// How often each limit was found: "The server was the limit in 3 of 4 cases."
fn limits_of(all: &[&Bottleneck]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for found in all {
        let what = match found.limit {
            Limit::Server => "the server was the limit",
            Limit::Disk => "the disk was the limit",
            Limit::Lock => "a lock was the limit",
            Limit::Work => "the work of a stage was the limit",
            Limit::Processors => "the processors were the limit",
            Limit::Connection => "the connection was the limit",
            Limit::Unseen => "the limit is unknown",
        };
        match counts.iter_mut().find(|(have, _)| *have == what) {
            Some((_, count)) => *count += 1,
            None => counts.push((what, 1)),
        }
    }
    let cases = all.len();
    counts.iter().map(|(what, count)| format!("{} in {count} of {cases} cases.", capitalised(what))).collect()
}

/// The last file compared with the first, over the cases that both have.
fn since(first: &ResultFile, last: &ResultFile) -> Option<String> {
    let mut found = Vec::new();
    for case in &last.cases {
        let before = first.cases.iter().find(|before| before.title() == case.title());
        let Some((before, now)) = before.and_then(|before| before.sides.first()).zip(case.sides.first())
        else {
            continue;
        };
        let comparison = Comparison::independent(&now.walls(), &before.walls()).ok()?;
        found.push((case.title(), comparison));
    }
    let (from, to) = (quoted(&first.label), quoted(&last.label));
    match found.as_slice() {
        [] => None,
        [(title, comparison)] => Some(format!("{to} compared with {from}: {title} {}", takes(comparison))),
        all => Some(format!(
            "{to} compared with {from}: {}",
            counted(all.iter().map(|(_, found)| found.verdict))
        )),
    }
}

/// Our side compared with the others.
fn compared(file: &ResultFile) -> Option<String> {
    let all: Vec<(&Case, &SideComparison)> =
        file.cases.iter().flat_map(|case| case.comparisons.iter().map(move |found| (case, found))).collect();
    match all.as_slice() {
        [] => None,
        [(case, found)] => Some(format!(
            "{}: compared with {}, sawmill {}",
            case.title(),
            found.with,
            takes(&found.comparison)
        )),
        [(case, _), rest @ ..] if rest.iter().all(|(other, _)| other.title() == case.title()) => {
            let each = all.iter().map(|(_, found)| format!("{} {}", share(&found.comparison), than(found)));
            Some(format!("{}: sawmill takes {}", case.title(), each.collect::<Vec<_>>().join(", ")))
        }
        all => {
            let others = distinct(all.iter().map(|(_, found)| found.with.as_str()));
            let of = |other: &&str| {
                let verdicts = all.iter().filter(|(_, found)| found.with == **other);
                format!(
                    "compared with {other}, sawmill is {}",
                    counted(verdicts.map(|(_, found)| found.comparison.verdict))
                )
            };
            Some(others.iter().map(of).collect::<Vec<_>>().join("; "))
        }
    }
    .map(|text| capitalised(&text))
}

/// The fastest of our cases, by its parameters; named only if each other case is slower by its interval.
fn fastest(cases: &[Case]) -> Option<String> {
    let mut sentences = Vec::new();
    for name in distinct(cases.iter().map(|case| case.name.as_str())) {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.name == name).collect();
        let mut measured: Vec<(&Case, &SideResult, &Statistics)> = cases
            .iter()
            .filter_map(|case| {
                let side = case.sides.first()?;
                Some((*case, side, side.wall.as_ref()?))
            })
            .collect();
        measured.sort_by(|a, b| a.2.median.total_cmp(&b.2.median));
        let Some(((best, side, wall), others)) = measured.split_first() else { continue };
        let figures = format!("{}{}", time(wall.median), rate(side));
        let Some((worst, _, slowest)) = others.last() else {
            let runs = format_counted(side.runs.len() as u64, "run");
            sentences.push(format!("{} took {figures}, the median of {runs}", best.title()));
            continue;
        };
        let varied = varied::varied(&cases);
        let parameters: Vec<&str> = varied.iter().map(|(parameter, _)| *parameter).collect();
        let by = |case: &Case| varied::named_by(case, &parameters);
        let as_fast: Vec<String> =
            others.iter().filter(|other| !is_faster(side, other.1)).map(|(case, ..)| by(case)).collect();
        sentences.push(match as_fast.as_slice() {
            [] => format!(
                "{name} is fastest with {}: {figures}, {:.1} times as fast as with {}",
                by(best),
                slowest.median / wall.median.max(f64::MIN_POSITIVE),
                by(worst)
            ),
            _ => format!(
                "{name} has its lowest median with {}: {figures}; no difference is seen to {}",
                by(best),
                as_fast.join(", ")
            ),
        });
    }
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Whether the interval of the ratio of their times says so.
fn is_faster(one: &SideResult, other: &SideResult) -> bool {
    Comparison::independent(&one.walls(), &other.walls()).is_ok_and(|found| found.verdict == Verdict::Faster)
}

fn rate(side: &SideResult) -> String {
    let rate = side.rows_per_second().map(|rate| format_rate(rate, "rows"));
    rate.or_else(|| side.bytes_per_second().map(format_byte_rate))
        .map(|rate| format!(", {rate}"))
        .unwrap_or_default()
}

/// A comparison as a predicate: "takes 25 % less time (ratio 0.750, 95 % interval 0.740 to 0.760)".
fn takes(comparison: &Comparison) -> String {
    let interval = comparison.interval.map(|i| format!(", 95 % interval {:.3} to {:.3}", i.low, i.high));
    let ratio = format!("ratio {:.3}{}", comparison.ratio, interval.unwrap_or_default());
    match comparison.verdict {
        Verdict::NoDifferenceSeen => format!("shows no difference ({ratio})"),
        _ => format!("takes {} time ({ratio})", difference(comparison.ratio)),
    }
}

/// Time saved or lost: "25 % less".
fn difference(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.0 => format!("{:.0} % less", 100.0 * (1.0 - ratio)),
        ratio if ratio >= 1.95 => format!("{ratio:.1} times the"),
        ratio => format!("{:.0} % more", 100.0 * (ratio - 1.0)),
    }
}

fn share(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::NoDifferenceSeen => format!("{:.2} times (no difference seen)", comparison.ratio),
        _ => format!("{:.2} times", comparison.ratio),
    }
}

fn than(found: &SideComparison) -> String {
    format!("the time of {}", found.with)
}

/// How often each verdict was reached: "faster in 3 cases, slower in 1, no difference seen in 2".
fn counted(verdicts: impl Iterator<Item = Verdict>) -> String {
    let verdicts: Vec<Verdict> = verdicts.collect();
    let kinds = [Verdict::Faster, Verdict::Slower, Verdict::NoDifferenceSeen];
    let part = |kind: Verdict| {
        let count = verdicts.iter().filter(|verdict| **verdict == kind).count();
        (count > 0).then(|| format!("{kind} in {count}"))
    };
    let parts: Vec<String> = kinds.into_iter().filter_map(part).collect();
    format!("{} of {}", parts.join(", "), format_counted(verdicts.len() as u64, "case"))
}

fn quoted(label: &str) -> String {
    format!("“{label}”")
}

/// A text with a capital first letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::run::Run;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn side(name: &str, millis: u64) -> SideResult {
        let run =
            |n: u64| Run { wall: Duration::from_millis(millis + n), rows: Some(1000), ..Run::default() };
        SideResult::new(name, 1, (0..5).map(run).collect())
    }

    fn case(degree: &str, sides: Vec<SideResult>) -> Case {
        Case::new("load", BTreeMap::from([("degree".to_owned(), degree.to_owned())]), sides).unwrap()
    }

    fn file(label: &str, cases: Vec<Case>) -> ResultFile {
        ResultFile { cases, ..ResultFile::new(label, "sawmill bench load") }
    }

    #[test]
    fn the_fastest_case_is_named_by_what_was_varied() {
        let one = case("1", vec![side("sawmill", 800)]);
        let two = case("2", vec![side("sawmill", 400)]);
        let text = verdict(&[file("a", vec![one.clone(), two])]);
        assert_eq!(
            text,
            "load is fastest with degree 2: 402 ms, 2.49 k rows/s, 2.0 times as fast as with degree 1"
        );
        let as_fast = case("3", vec![side("sawmill", 801)]);
        let text = verdict(&[file("a", vec![one.clone(), as_fast])]);
        assert_eq!(
            text,
            "load has its lowest median with degree 1: 802 ms, 1.25 k rows/s; no difference is seen to degree 3"
        );
        let text = verdict(&[file("a", vec![one])]);
        assert_eq!(text, "load degree=1 took 802 ms, 1.25 k rows/s, the median of 5 runs");
        assert_eq!(verdict(&[file("a", Vec::new())]), "a: nothing was measured");
    }

    #[test]
    fn another_program_is_named_with_the_ratio_and_its_interval() {
        let faster = case("1", vec![side("sawmill", 400), side("psql", 800)]);
        let text = verdict(&[file("a", vec![faster.clone()])]);
        assert!(
            text.starts_with("Load degree=1: compared with psql, sawmill takes 50 % less time (ratio 0.501"),
            "{text}"
        );
        let same = case("2", vec![side("sawmill", 400), side("psql", 400)]);
        let text = verdict(&[file("a", vec![faster, same])]);
        assert_eq!(text, "Compared with psql, sawmill is faster in 1, no difference seen in 1 of 2 cases");
    }

    #[test]
    fn a_series_compares_its_last_file_with_its_first() {
        let at = |label, millis| file(label, vec![case("1", vec![side("sawmill", millis)])]);
        let text = verdict(&[at("first", 400), at("between", 9), at("last", 800)]);
        assert!(
            text.starts_with("“last” compared with “first”: load degree=1 takes 2.0 times the time"),
            "{text}"
        );
    }
}
