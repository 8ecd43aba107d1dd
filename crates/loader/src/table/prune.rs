//! Which records of loads can go: those that later loads do not need to know a table's content.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::table::records::LoadStatus;

/// Records of loads, divided by whether they are still needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pruned {
    /// Loads whose records were removed, or would be.
    pub removed: Vec<LoadStatus>,
    /// The others.
    pub kept: Vec<KeptLoad>,
    /// Nothing was removed: these are the records that would be.
    pub dry_run: bool,
}

/// A load whose record is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeptLoad {
    /// The load.
    #[serde(flatten)]
    pub load: LoadStatus,
    /// Why its record is kept.
    pub why: Kept,
}

/// Why the record of a load is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// It is not old enough.
    Recent,
    /// A process is working on it.
    Running,
    /// Its table exists: an append skips its files because of the record, and verification counts its rows.
    TableExists,
    /// It is a merge that would put its rows in the place of newer ones, if it were repeated.
    Overwrites,
    /// It is an unfinished merge into an existing table, which the next run continues.
    Unfinished,
    /// It came into use while records were pruned.
    Changed,
    /// It belongs to a load of several tables that keeps another part.
    OfSeveral,
}

impl Kept {
    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Recent => "is not old enough",
            Self::Running => "is running",
            Self::TableExists => {
                "the table exists: an append skips the files on record, and --verify counts their rows"
            }
            Self::Overwrites => {
                "would overwrite newer rows if it were repeated: it has no --newest on record, or deletes rows"
            }
            Self::Unfinished => "is unfinished, and the same command continues it",
            Self::Changed => "came into use while records were pruned",
            Self::OfSeveral => "belongs to a load whose other tables are kept",
        }
    }
}

impl Pruned {
    /// Decides about loads. Those that ended before `cutoff`, a moment in the form of [`LoadStatus::begun`], are old.
    pub fn decide(loads: Vec<LoadStatus>, cutoff: &str, dry_run: bool) -> Self {
        let appended: BTreeSet<String> =
            loads.iter().filter(|load| !is_merge(load)).map(|load| load.table.clone()).collect();
        let why: Vec<Option<Kept>> =
            loads.iter().map(|load| why_kept(load, cutoff, appended.contains(&load.table))).collect();
        let kept = loads.iter().zip(&why).filter(|(_, why)| why.is_some());
        let kept_groups: BTreeSet<String> = kept.map(|(load, _)| group(load).to_owned()).collect();
        let mut pruned = Self { dry_run, ..Self::default() };
        for (load, why) in loads.into_iter().zip(why) {
            let of_several = kept_groups.contains(group(&load)).then_some(Kept::OfSeveral);
            match why.or(of_several) {
                Some(why) => pruned.kept.push(KeptLoad { load, why }),
                None => pruned.removed.push(load),
            }
        }
        pruned
    }

    /// Restricts the decision to the tables with these names. Deciding still needs the loads into all tables.
    pub fn of_table(mut self, is_meant: impl Fn(&str) -> bool) -> Self {
        self.removed.retain(|load| is_meant(&load.table));
        self.kept.retain(|kept| is_meant(&kept.load.table));
        self
    }

    /// Keeps a load that has begun to run since the decision, or whose table has come back.
    pub fn keep_changed(&mut self, load_id: &str) {
        let kept = self.removed.extract_if(.., |load| load.load_id == load_id);
        self.kept.extend(kept.map(|load| KeptLoad { load, why: Kept::Changed }));
    }
}

fn why_kept(load: &LoadStatus, cutoff: &str, appended: bool) -> Option<Kept> {
    let ended = load.completed.as_ref().unwrap_or(&load.begun);
    // Without the `Z`, fractions of a second sort by time.
    let is_recent = ended.trim_end_matches('Z') >= cutoff.trim_end_matches('Z');
    let unrecorded = load.load_id.is_empty();
    match load {
        _ if load.running => Some(Kept::Running),
        _ if unrecorded => Some(Kept::Unfinished),
        _ if is_recent => Some(Kept::Recent),
        _ if !load.table_exists => None,
        _ if appended || !is_merge(load) => Some(Kept::TableExists),
        _ if load.completed.is_none() => Some(Kept::Unfinished),
        _ if !load.facts.keeps_newer => Some(Kept::Overwrites),
        _ => None,
    }
}

/// Whether a load merged its rows by a key, so that no append skips its files.
fn is_merge(load: &LoadStatus) -> bool {
    ["upsert", "insert", "history"].contains(&load.mode.as_str())
}

/// The common identity of loads of several tables that belong together.
fn group(load: &LoadStatus) -> &str {
    load.load_id.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::records::LoadFacts;

    fn load(id: &str, table: &str, mode: &str, completed: Option<&str>, table_exists: bool) -> LoadStatus {
        LoadStatus {
            table: table.to_owned(),
            mode: mode.to_owned(),
            files: Vec::new(),
            begun: "2026-01-01T00:00:00Z".to_owned(),
            completed: completed.map(str::to_owned),
            units: 1,
            rows: 1,
            rejected: 0,
            table_exists,
            facts: LoadFacts::default(),
            audited_batches: None,
            running: false,
            load_id: id.to_owned(),
        }
    }

    #[test]
    fn only_what_no_later_load_needs_goes() {
        let merge = |load: LoadStatus| {
            let facts = LoadFacts { keeps_newer: true, ..LoadFacts::default() };
            LoadStatus { facts, ..load }
        };
        let (old, new) = (Some("2026-01-02T00:00:00Z"), Some("2026-06-01T00:00:00.5Z"));
        let loads = vec![
            load("dropped", "gone", "append", old, false),
            load("dropped unfinished", "gone", "create", None, false),
            load("dropped lately", "gone", "append", new, false),
            load("night", "days", "append", old, true),
            load("merged beside", "days", "upsert", old, true),
            merge(load("merged", "merges", "upsert", old, true)),
            merge(load("inserted", "merges", "insert", old, true)),
            merge(load("versions", "merges", "history", old, true)),
            load("last wins", "merges", "upsert", old, true),
            load("last version", "merges", "history", old, true),
            load("merging", "merges", "upsert", None, true),
            load("nested/0", "parts", "create", old, false),
            load("nested", "parts_items", "create", old, true),
            LoadStatus { running: true, ..load("at work", "gone", "append", None, false) },
        ];
        let pruned = Pruned::decide(loads, "2026-06-01T00:00:00Z", true);
        let removed: Vec<&str> = pruned.removed.iter().map(|load| load.load_id.as_str()).collect();
        assert_eq!(removed, ["dropped", "dropped unfinished", "merged", "inserted", "versions"]);
        let kept: Vec<(&str, Kept)> =
            pruned.kept.iter().map(|kept| (kept.load.load_id.as_str(), kept.why)).collect();
        assert_eq!(
            kept,
            [
                ("dropped lately", Kept::Recent),
                ("night", Kept::TableExists),
                ("merged beside", Kept::TableExists),
                ("last wins", Kept::Overwrites),
                ("last version", Kept::Overwrites),
                ("merging", Kept::Unfinished),
                ("nested/0", Kept::OfSeveral),
                ("nested", Kept::TableExists),
                ("at work", Kept::Running),
            ]
        );
    }
}
