//! Describes which parts of a dataset a directory contains.

use std::collections::HashSet;

use crate::layout::rows::{MOST_FILES, Part};
use crate::output::existing::manifests::Found;
use crate::output::manifest::ManifestFile;

/// The most parts that a message lists.
const MOST_NAMED: usize = 12;

/// Describes the parts that were made separately; `None` if there are none. `files` is the number of files in
/// the dataset, `kept` are the complete files.
pub(crate) fn described(found: &[Found], kept: &[ManifestFile], files: u32) -> Option<String> {
    let kept: HashSet<u32> = kept.iter().map(|file| file.file).collect();
    let mut lines = Vec::new();
    for of in found.iter().map(|found| found.part.of()).collect::<std::collections::BTreeSet<_>>() {
        if of == 1 || of > MOST_FILES {
            continue;
        }
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
        lines.push(format!("complete parts: {}", listed(&whole)));
        if !missing.is_empty() {
            lines.push(format!("parts whose missing files are made now: {}", listed(&missing)));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn listed(names: &[String]) -> String {
    match names.len() {
        0 => "none".to_owned(),
        n if n > MOST_NAMED => format!("{} and {} more", names[..MOST_NAMED].join(", "), n - MOST_NAMED),
        _ => names.join(", "),
    }
}
