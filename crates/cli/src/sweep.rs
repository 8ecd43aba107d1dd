//! Sweeps: expands options whose value is a list or a range into one command line for each combination.
//!
//! This happens before the command line is parsed, so that every point of a sweep is parsed and checked as if
//! the user had typed it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use sawmill_profile::{parse_bytes, parse_count};

use crate::error::{Error, Result};

/// The swept parameters of a point and their values.
pub(crate) type Parameters = BTreeMap<String, String>;

/// A command line, and the swept values in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub parameters: Parameters,
    pub words: Vec<OsString>,
}

/// The options that can be swept, for each sub-command.
const SWEPT: [(&str, &str); 3] = [
    ("gen", "--threads --writers --files --row-group-rows --page-rows --page-size --compression"),
    ("footer", "--tail-hint"),
    ("load", "--connections --unit-rows --batch-rows --batch-bytes --table-kind --keyed --strategy"),
];
/// The options among them whose values are words.
const WORDS: [&str; 4] = ["--table-kind", "--keyed", "--strategy", "--compression"];

/// The options among them whose values are sizes in bytes.
const SIZES: [&str; 3] = ["--page-size", "--tail-hint", "--batch-bytes"];

/// Most points of a command line, and most values of an option.
const MAX: usize = 1000;

const ADVICE: &str = "give a list like 1,2,4 or a range like 1..4, 10..30+10 or 1024..16384*2";

/// The points of a command line, in the order of the values; the last option varies fastest. A command line
/// that sweeps nothing, or is not a benchmark, is one point.
pub(crate) fn points(words: impl IntoIterator<Item = OsString>) -> Result<Vec<Point>> {
    let words: Vec<OsString> = words.into_iter().collect();
    let options: Vec<&str> = options_of(&words).split_whitespace().collect();
    let mut points = vec![Point { parameters: Parameters::new(), words: Vec::new() }];
    let mut option: Option<&str> = None;
    for word in &words {
        let text = word.to_str();
        let (swept, value) = match (option.take(), text) {
            (Some(name), Some(text)) => (Some((name, "")), text),
            (None, Some(text)) => match text.split_once('=') {
                Some((name, value)) => (options.iter().find(|o| **o == name).map(|o| (*o, "=")), value),
                None => {
                    option = options.iter().find(|o| **o == text).copied();
                    (None, text)
                }
            },
            (_, None) => (None, ""),
        };
        let values = match swept {
            Some((name, _)) if WORDS.contains(&name) => words_of(value, name)?,
            Some((name, _)) if value.contains(',') || value.contains("..") => values(value, name)?,
            _ => Vec::new(),
        };
        let Some((name, equals)) = swept.filter(|_| !values.is_empty()) else {
            points.iter_mut().for_each(|point| point.words.push(word.clone()));
            continue;
        };
        if points.len() * values.len() > MAX {
            return Err(Error::usage(format!("more than {MAX} combinations"), name, "sweep fewer values"));
        }
        let parameter = name.trim_start_matches('-').replace('-', "_");
        let at = |point: &Point, value: &String| {
            let mut point = point.clone();
            // An option that may be repeated is one parameter with all of its values.
            let known = point.parameters.entry(parameter.clone()).or_default();
            *known = [known, value.as_str()].join(" ").trim_start().to_owned();
            point.words.push(match equals {
                "" => value.into(),
                _ => format!("{name}={value}").into(),
            });
            point
        };
        points = points.iter().flat_map(|point| values.iter().map(|value| at(point, value))).collect();
    }
    Ok(points)
}

/// The options of this command line that can be swept.
fn options_of(words: &[OsString]) -> &'static str {
    // The flags before a sub-command take no values.
    let mut names = words.iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
    if names.next().map(OsString::as_os_str) != Some(OsStr::new("bench")) {
        return "";
    }
    let name = names.next();
    let found = SWEPT.iter().find(|(sub, _)| name.is_some_and(|name| name == sub));
    found.map_or("", |(_, options)| options)
}

/// The values of a list of words; none for a single word.
fn words_of(text: &str, option: &str) -> Result<Vec<String>> {
    if !text.contains(',') {
        return Ok(Vec::new());
    }
    let words: Vec<String> = text.split(',').map(|word| word.trim().to_owned()).collect();
    let wrong = |what: String| Error::usage(what, format!("{option} {text}"), "give a list like a,b");
    if words.iter().any(String::is_empty) {
        return Err(wrong("nothing between two commas".to_owned()));
    }
    once(words, wrong)
}

/// The values, if none is listed twice.
fn once(values: Vec<String>, wrong: impl Fn(String) -> Error) -> Result<Vec<String>> {
    match (1..values.len()).find(|place| values[..*place].contains(&values[*place])) {
        Some(place) => Err(wrong(format!("{} is listed twice", values[place]))),
        None => Ok(values),
    }
}

/// The values of a list whose items are numbers or ranges.
fn values(text: &str, option: &str) -> Result<Vec<String>> {
    let wrong = |what: String| Error::usage(what, format!("{option} {text}"), ADVICE);
    let read = if SIZES.contains(&option) { parse_bytes } else { parse_count };
    let number = |part: &str| read(part).map_err(|error| wrong(error.what()));
    let mut values: Vec<String> = Vec::new();
    for item in text.split(',') {
        let Some((start, rest)) = item.split_once("..") else {
            number(item)?;
            values.push(item.trim().to_owned());
            continue;
        };
        let (end, step) = match rest.split_once(['*', '+']) {
            // The factor of a range is a plain number, even in a range of sizes.
            Some((end, step)) if rest.contains('*') => {
                (end, parse_count(step).map_err(|error| wrong(error.what()))?)
            }
            Some((end, step)) => (end, number(step)?),
            None => (rest, 1),
        };
        let times = rest.contains('*');
        let (mut at, end) = (number(start)?, number(end)?);
        if step < if times { 2 } else { 1 } || (times && at == 0) {
            return Err(wrong("a range whose step makes no progress".to_owned()));
        }
        if at > end {
            return Err(wrong("a range that ends before it starts".to_owned()));
        }
        while at <= end {
            values.push(at.to_string());
            if values.len() > MAX {
                return Err(wrong(format!("more than {MAX} values")));
            }
            let next = if times { at.checked_mul(step) } else { at.checked_add(step) };
            let Some(next) = next else { break };
            at = next;
        }
    }
    once(values, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points_of(line: &str) -> Result<Vec<Point>, Error> {
        points(line.split(' ').map(OsString::from))
    }

    fn lines(line: &str) -> Vec<String> {
        let join = |point: Point| point.words.join(OsStr::new(" ")).into_string().unwrap();
        points_of(line).unwrap().into_iter().map(join).collect()
    }

    #[test]
    fn lists_and_inclusive_ranges_are_expanded() {
        let values = |text| values(text, "--connections").unwrap().join(" ");
        assert_eq!(values("1,2,4"), "1 2 4");
        assert_eq!(values("1..4"), "1 2 3 4");
        assert_eq!(values("10..35+10"), "10 20 30");
        assert_eq!(values("1024..16384*2"), "1024 2048 4096 8192 16384");
        assert_eq!(values("1..3,8k"), "1 2 3 8k");
        assert_eq!(values("7..7"), "7");
        assert_eq!(super::values("64k..256k*2", "--batch-bytes").unwrap().join(" "), "65536 131072 262144");
        assert_eq!(
            super::values("1MB..3MB+1MB", "--page-size").unwrap().join(" "),
            "1000000 2000000 3000000"
        );
        assert_eq!(super::values("1.5M,8MiB", "--batch-bytes").unwrap().join(" "), "1.5M 8MiB");
        assert_eq!(values("18446744073709551615..18446744073709551615"), "18446744073709551615");
    }

    #[test]
    fn a_malformed_sweep_is_rejected_with_examples() {
        for text in ["1,", "..", "4..1", "0..8*2", "1..8*1", "1..8+0", "1..", "a,b", "1,1", "1..100000"] {
            let error = values(text, "--connections").unwrap_err().to_string();
            assert!(error.contains("--connections") && error.contains("1,2,4"), "{error}");
        }
    }

    #[test]
    fn all_combinations_are_points_and_the_last_option_varies_fastest() {
        let line = "sawmill --json bench gen contacts --threads 1,2 --files=3,4 --rows 10,000";
        let expected = [("1", "3"), ("1", "4"), ("2", "3"), ("2", "4")].map(|(threads, files)| {
            format!("sawmill --json bench gen contacts --threads {threads} --files={files} --rows 10,000")
        });
        assert_eq!(lines(line), expected);
        let parameters = &points_of(line).unwrap()[1].parameters;
        assert_eq!(format!("{parameters:?}"), r#"{"files": "4", "threads": "1"}"#);
    }

    #[test]
    fn kinds_of_tables_are_swept_by_their_names() {
        let found =
            points_of("sawmill bench load a --table-kind logged,unlogged --keyed=yes,no --connections 1")
                .unwrap();
        assert_eq!(found.len(), 4);
        assert_eq!(format!("{:?}", found[3].parameters), r#"{"keyed": "no", "table_kind": "unlogged"}"#);
        assert!(points_of("sawmill bench load a --table s,t").unwrap()[0].parameters.is_empty());
        assert!(points_of("sawmill bench load a --keyed yes,").is_err());
        assert!(points_of("sawmill bench load a --keyed yes,yes").is_err());
    }

    #[test]
    fn codecs_are_swept_for_all_columns_and_for_single_ones() {
        let line = "sawmill bench gen c --compression none,zstd:3 --compression name=lz4,name=none";
        let found = points_of(line).unwrap();
        let codecs = ["none name=lz4", "none name=none", "zstd:3 name=lz4", "zstd:3 name=none"];
        assert_eq!(found.iter().map(|point| &point.parameters["compression"]).collect::<Vec<_>>(), codecs);
        let line = "sawmill bench gen c --compression snappy --compression=name=lz4,name=none";
        assert_eq!(lines(line)[1], "sawmill bench gen c --compression snappy --compression=name=none");
    }

    #[test]
    fn other_commands_and_other_options_are_left_alone() {
        for line in [
            "sawmill gen contacts --threads 1,2",
            "sawmill bench footer a --row-group 0..4",
            "sawmill bench gen contacts --threads",
            "sawmill bench gen contacts --threads 2",
            "sawmill",
        ] {
            assert_eq!(lines(line), [line]);
            assert!(points_of(line).unwrap()[0].parameters.is_empty());
        }
        assert!(points_of("sawmill bench load a --connections 1..100 --unit-rows 1..100").is_err());
    }
}
