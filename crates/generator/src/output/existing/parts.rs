//! Describes which parts of a dataset a directory contains.

use std::collections::HashSet;

use crate::layout::rows::{MAX_FILES, Part};
use crate::output::existing::manifests::Found;
use crate::output::manifest::ManifestFile;

/// The most parts that a message lists.
const MAX_NAMED: usize = 12;

/// Describes the parts that were made separately; `None` if there are none. `files` is the number of files in
/// the dataset, `kept` are the complete files.
pub(crate) fn described(found: &[Found], kept: &[ManifestFile], files: u32) -> Option<String> {
    let mut lines = Vec::new();
    for Division { whole, missing, .. } in divisions(found, kept, files) {
        lines.push(format!("complete parts: {}", listed(&whole)));
        if !missing.is_empty() {
            lines.push(format!("parts whose missing files are made now: {}", listed(&missing)));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The parts that were made separately and lack files; `None` if there are none.
pub(crate) fn missing(found: &[Found], kept: &[ManifestFile], files: u32) -> Option<String> {
    let of_divisions = divisions(found, kept, files).into_iter().filter(|of| !of.missing.is_empty());
    let missing: Vec<(usize, String)> = of_divisions.map(|of| (of.parts, listed(&of.missing))).collect();
    // Processes may have divided the files differently.
    let mut text = missing.first()?.1.clone();
    for (parts, missing) in missing.iter().skip(1) {
        text += &format!("; or, divided into {parts} parts, {missing}");
    }
    Some(text)
}

/// A division of the dataset into parts: those that are complete, and those that lack files.
struct Division {
    parts: usize,
    whole: Vec<String>,
    missing: Vec<String>,
}

/// The divisions that the found manifests are of.
fn divisions(found: &[Found], kept: &[ManifestFile], files: u32) -> Vec<Division> {
    let kept: HashSet<u32> = kept.iter().map(|file| file.file).collect();
    let numbers = found.iter().map(|found| found.part.parts()).collect::<std::collections::BTreeSet<_>>();
    let division = |of: u32| {
        let (mut whole, mut missing) = (Vec::new(), Vec::new());
        for part in Part::all(of) {
            let numbers = part.files(files);
            let there = numbers.clone().filter(|number| kept.contains(number)).count();
            if there == numbers.len() {
                whole.push(part.to_string());
            } else if found.iter().all(|found| found.part != part) && there == 0 {
                missing.push(format!("{part} is missing"));
            } else {
                missing.push(format!("{part} has {there} of {} files", numbers.len()));
            }
        }
        Division { parts: of as usize, whole, missing }
    };
    numbers.into_iter().filter(|of| *of > 1 && *of <= MAX_FILES).map(division).collect()
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        n if n > MAX_NAMED => format!("{} and {} more", names[..MAX_NAMED].join(", "), n - MAX_NAMED),
        _ => names.join(", "),
    }
}
