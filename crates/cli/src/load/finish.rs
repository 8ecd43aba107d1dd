//! `sawmill load finish`: the record of a load names the command of its parts, so the user names only the table.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use sawmill_cratedb::CrateServer;
use sawmill_loader::LoadStatus;
use sawmill_profile::split_command;

use super::records::RecordsOf;
use crate::arguments::record_args::RecordArgs;
use crate::arguments::target::{ConnectionArgs, TargetArgs};
use crate::error::{Error, Exit, Result};
use crate::interrupt;

/// The load to finish, by its table.
#[derive(Args, Debug)]
pub(super) struct FinishArgs {
    /// The files, if they have moved, or if their URL has a password or a signature, which no record holds.
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Compare the table with the files before the load counts as complete.
    #[arg(long)]
    pub verify: bool,
    /// If they differ, report the missing rows and their row groups.
    #[arg(long, requires = "verify")]
    pub locate: bool,
    #[command(flatten)]
    pub connections: ConnectionArgs,
    #[command(flatten)]
    pub records: RecordArgs,
}

impl FinishArgs {
    /// The command line `recorded` of the parts, as one for all of them, with this server and table.
    pub(super) fn words(&self, recorded: &str) -> Result<Vec<OsString>> {
        Ok(completed(split_command(recorded)?, self.target.server()?, self.target.table()))
    }

    /// The command of the unfinished load into the table, or else of the last one.
    pub(super) fn recorded(&self) -> Result<String> {
        let (to, table) = (self.target.server()?, self.target.table());
        if CrateServer::understands(to) {
            let advice = "run the command of the load again: it loads what is missing";
            return Err(Error::usage("CrateDB has no loads in parts", "load finish", advice));
        }
        let of = RecordsOf {
            to: to.to_owned(),
            table: Some(table.to_owned()),
            patience: self.connections.patience,
            records: self.records.clone(),
        };
        let loads = interrupt::during(|control| of.loads(control))?;
        let load =
            to_finish(&loads).map_err(|(what, advice)| Error::new(Exit::Mismatch, what, table, advice))?;
        let what = "the record does not name the command of the load";
        let unnamed = || Error::new(Exit::Mismatch, what, table, "run that command without --part");
        load.facts.command.clone().ok_or_else(unnamed)
    }
}

/// The unfinished load, or one of several that the same command has begun, or the newest complete one. Otherwise the
/// fault and the way out.
fn to_finish(loads: &[LoadStatus]) -> Result<&LoadStatus, (String, &'static str)> {
    let tables: BTreeSet<&str> = loads.iter().map(|load| load.table.as_str()).collect();
    if tables.len() > 1 {
        let names = tables.into_iter().collect::<Vec<_>>().join(", ");
        return Err((format!("the name fits several tables: {names}"), "give the schema, too"));
    }
    let on_record = || loads.iter().filter(|load| !load.load_id.is_empty());
    let unfinished: Vec<&LoadStatus> = on_record().filter(|load| load.completed.is_none()).collect();
    // New files are one load, and each corrected file is another.
    let command =
        |load: &LoadStatus| Some(completed(split_command(load.facts.command.as_ref()?).ok()?, "", ""));
    match unfinished.as_slice() {
        [] => on_record().next().ok_or_else(|| {
            let what = "no part of a load is on record, so there is nothing to finish";
            (what.to_owned(), "run the parts first (--part K/N); load status lists the tables")
        }),
        [load, others @ ..]
            if others.iter().all(|other| command(other).is_some_and(|its| command(load) == Some(its))) =>
        {
            Ok(load)
        }
        _ => {
            let what = "several loads into the table are unfinished";
            Err((what.to_owned(), "run the command of each without --part"))
        }
    }
}

/// The words of the parts' command, without the part, for this server and table.
fn completed(recorded: Vec<String>, to: &str, table: &str) -> Vec<OsString> {
    let mut words = Vec::with_capacity(recorded.len() + 4);
    let mut recorded = recorded.into_iter();
    while let Some(word) = recorded.next() {
        match word.as_str() {
            "--part" | "--table" => drop(recorded.next()),
            _ if word.starts_with("--part=") || word.starts_with("--table=") => {}
            "load" if !words.contains(&"load".into()) => {
                words.extend([word.as_str(), "--to", to, "--table", table].map(Into::into));
            }
            _ => words.push(word.into()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(table: &str, completed: Option<&str>) -> LoadStatus {
        LoadStatus {
            table: table.to_owned(),
            load_id: format!("{table} {completed:?}"),
            completed: completed.map(str::to_owned),
            ..LoadStatus::default()
        }
    }

    #[test]
    fn the_unfinished_load_is_finished_or_the_newest_one_again() {
        let (newest, older, unfinished) = (load("t", Some("2")), load("t", Some("1")), load("t", None));
        let chosen = |loads: &[LoadStatus]| to_finish(loads).cloned().map_err(|(what, _)| what);
        assert_eq!(chosen(&[newest.clone(), older.clone()]), Ok(newest.clone()));
        assert_eq!(chosen(&[newest, unfinished.clone(), older]), Ok(unfinished.clone()));
        let of_command = |command: &str| {
            let mut load = load("t", None);
            load.facts.command = Some(command.to_owned());
            load
        };
        let [new, corrected, other] =
            ["sawmill load d --part 1/2", "sawmill load d --part 2/2", "sawmill load e --part 1/2"]
                .map(of_command);
        assert_eq!(chosen(&[new.clone(), corrected]), Ok(new.clone()));
        for two in [[unfinished.clone(), load("t", None)], [new, other]] {
            let several = chosen(&two).unwrap_err();
            assert!(several.contains("several loads"), "{several}");
        }
        let ambiguous = chosen(&[unfinished, load("other.t", None)]).unwrap_err();
        assert!(ambiguous.contains("other.t, t"), "{ambiguous}");
        let left_behind = LoadStatus { load_id: String::new(), ..load("t", None) };
        for nothing in [&[][..], &[left_behind]] {
            assert!(chosen(nothing).unwrap_err().contains("nothing to finish"));
        }
    }

    #[test]
    fn the_recorded_command_names_no_part_and_the_given_table() {
        let recorded =
            "sawmill -q load load --part auto --table=x --where 'a>1 or b' --part=1/2 --table y -q";
        let words = completed(split_command(recorded).unwrap(), "postgres://h/d", "s.t");
        let finished = "sawmill,-q,load,--to,postgres://h/d,--table,s.t,load,--where,a>1 or b,-q";
        assert_eq!(words, finished.split(',').map(OsString::from).collect::<Vec<_>>());
    }
}
