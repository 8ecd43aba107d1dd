//! The names of files in a table's log.

use std::collections::BTreeMap;

/// The folder of the log below the table's.
pub(crate) const LOG: &str = "_delta_log";

/// The name of a commit's file.
pub(crate) fn commit_name(version: u64) -> String {
    format!("{LOG}/{version:020}.json")
}

/// The commits and checkpoints of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LogNames {
    /// The commits' versions, and the lengths of their files.
    pub commits: BTreeMap<u64, u64>,
    /// The files of each complete checkpoint, by version.
    pub checkpoints: BTreeMap<u64, Vec<String>>,
}

impl LogNames {
    /// Finds them among the names, without the folder, and lengths of files in the log's folder.
    pub(crate) fn new<'a>(names: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut found = Self::default();
        let mut parts: BTreeMap<(u64, u32), Vec<String>> = BTreeMap::new();
        for (name, bytes) in names {
            match parse(name) {
                Some(LogName::Commit(version)) => drop(found.commits.insert(version, bytes)),
                Some(LogName::Checkpoint(version)) => {
                    found.checkpoints.insert(version, vec![name.to_owned()]);
                }
                Some(LogName::Part(version, of)) => {
                    parts.entry((version, of)).or_default().push(name.to_owned());
                }
                None => {}
            }
        }
        for ((version, of), mut names) in parts {
            if names.len() == of as usize {
                names.sort_unstable();
                found.checkpoints.entry(version).or_insert(names);
            }
        }
        found
    }

    /// The newest version; `None` if the table does not exist.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.commits.keys().last().copied().max(self.checkpoints.keys().last().copied())
    }
}

enum LogName {
    Commit(u64),
    /// A checkpoint in one file, or the main file of one with sidecars.
    Checkpoint(u64),
    /// A part of a checkpoint in this many parts.
    Part(u64, u32),
}

fn parse(name: &str) -> Option<LogName> {
    let (version, rest) = name.split_once('.')?;
    // Delta counts versions in 63 bits, and the last has a successor.
    let version = digits(version, 20).filter(|version| *version < i64::MAX as u64)?;
    if rest == "json" {
        return Some(LogName::Commit(version));
    }
    let rest = rest.strip_prefix("checkpoint.")?;
    let parts: Vec<&str> = rest.split('.').collect();
    match parts.as_slice() {
        ["parquet"] => Some(LogName::Checkpoint(version)),
        [part, of, "parquet"] => {
            digits(part, 10)?;
            Some(LogName::Part(version, u32::try_from(digits(of, 10)?).ok()?))
        }
        // The name of a checkpoint with sidecars has a unique part.
        [_, "parquet" | "json"] => Some(LogName::Checkpoint(version)),
        _ => None,
    }
}

fn digits(text: &str, length: usize) -> Option<u64> {
    let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_and_complete_checkpoints_are_found() {
        let names = [
            "00000000000000000002.json",
            "00000000000000000010.json",
            "00000000000000000002.checkpoint.parquet",
            "00000000000000000010.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000009.checkpoint.0000000002.0000000002.parquet",
            "00000000000000000009.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000008.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
            "00000000000000000002.crc",
            "00000000000000000001.00000000000000000002.compacted.json",
            "_last_checkpoint",
            "2.json",
            "09223372036854775807.json",
            "18446744073709551615.checkpoint.parquet",
            "00000000000000000003.json.tmp",
        ];
        let found = LogNames::new(names.into_iter().map(|name| (name, 1)));
        assert_eq!((&found.commits, found.newest()), (&BTreeMap::from([(2, 1), (10, 1)]), Some(10)));
        assert_eq!(found.checkpoints.keys().copied().collect::<Vec<_>>(), [2, 8, 9]);
        assert_eq!(found.checkpoints[&9].len(), 2);
        assert_eq!(commit_name(7), "_delta_log/00000000000000000007.json");
    }
}
