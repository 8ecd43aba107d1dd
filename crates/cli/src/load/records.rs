//! `sawmill load status`, `forget` and `prune`: the records that a server keeps of loads.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use sawmill_cratedb::{CrateServer, crate_prune, crate_status};
use sawmill_loader::{Kept, LoadOptions, LoadStatus, Pruned, TableName};
use sawmill_pgwire::Server;
use sawmill_source::Control;

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::record_args::RecordArgs;
use crate::arguments::target::{ConnectionArgs, EffortArgs, TargetArgs};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

#[derive(Args, Debug)]
pub(super) struct ForgetArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// How long to wait before asking a silent PostgreSQL server whether it still works, such as 90s [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = sawmill_profile::parse_duration)]
    patience: Option<Duration>,
    #[command(flatten)]
    records: RecordArgs,
}

/// A server whose records are read.
#[derive(Args, Debug)]
pub(super) struct RecordsOf {
    /// The server, as for a load.
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Only loads into this table.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// How long to wait before asking a silent PostgreSQL server whether it still works, such as 90s [default: 5m].
    #[arg(long, value_name = "DURATION", value_parser = sawmill_profile::parse_duration)]
    pub patience: Option<Duration>,
    #[command(flatten)]
    pub records: RecordArgs,
}

#[derive(Args, Debug)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    of: RecordsOf,
    /// Show each file with size, hash, rows and rejected rows, and when, how long and by which command and version it
    /// was loaded.
    #[arg(long, help_heading = None)]
    history: bool,
}

#[derive(Args, Debug)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    of: RecordsOf,
    /// Only loads that ended longer ago, such as 90d or 12h.
    #[arg(long, value_name = "DURATION", value_parser = sawmill_profile::parse_duration,
        help_heading = None)]
    older_than: Duration,
    /// Only say which records would be removed.
    #[arg(long, help_heading = None)]
    dry_run: bool,
}

impl RecordsOf {
    fn is_crate(&self) -> bool {
        CrateServer::understands(&self.to)
    }

    fn server(&self) -> Result<Server> {
        let patience = self.patience.unwrap_or(LoadOptions::default().patience);
        Ok(self.to.parse::<Server>()?.patience(patience))
    }

    fn crate_server(&self) -> Result<CrateServer> {
        match self.patience {
            None => Ok(self.to.parse()?),
            Some(_) => {
                let what = "records of CrateDB are read without waiting for a cluster";
                Err(Error::usage(what, "--patience", "leave the option out"))
            }
        }
    }

    fn table(&self) -> Result<Option<TableName>> {
        let parse = if self.is_crate() { sawmill_cratedb::table_name } else { str::parse::<TableName> };
        Ok(self.table.as_deref().map(parse).transpose()?)
    }

    /// The loads on record, the newest first.
    pub(super) fn loads(&self, control: &Control<'_>) -> Result<Vec<LoadStatus>> {
        let table = self.table()?;
        Ok(if self.is_crate() {
            crate_status(&self.crate_server()?, self.records.crate_schema(), table.as_ref(), control)?
        } else {
            sawmill_postgres::status(&self.server()?, self.records.schema(), table.as_ref(), control)?
        })
    }
}

/// Lists loads, then the files of each.
pub(super) fn status(args: &StatusArgs, console: Console) -> Result<()> {
    let StatusArgs { of, history } = args;
    let loads = interrupt::during(|control| of.loads(control))?;
    console.result(&loads, || match (loads.is_empty(), history) {
        (true, _) => "no recorded loads\n".to_owned(),
        (false, true) => loads.iter().map(history_of).collect::<Vec<_>>().join("\n"),
        (false, false) => listed(&loads),
    })
}

/// The loads, and below them their files.
fn listed(loads: &[LoadStatus]) -> String {
    let mut rows = vec![["table", "mode", "files", "units", "rows", "started", "state"].map(str::to_owned)];
    for load in loads {
        let (files, units) = (load.files.len().to_string(), phases::thousands(load.units));
        let (rows_in, begun) = (phases::thousands(load.rows), load.begun.clone());
        rows.push([load.table.clone(), load.mode.clone(), files, units, rows_in, begun, state(load)]);
    }
    let files = loads.iter().map(|load| {
        let mut rows = vec![[format!("{} {}", load.table, load.begun), "rows".to_owned()]];
        rows.extend(load.files.iter().map(|file| [file.name.clone(), known(file.rows)]));
        phases::table(&rows)
    });
    let files = files.collect::<Vec<_>>().join("\n");
    format!("{}\n{files}", phases::table(&rows))
}

/// A number of a file, if it is known.
fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), phases::thousands)
}

fn state(load: &LoadStatus) -> String {
    match (&load.completed, load.running) {
        (None, _) if load.load_id.is_empty() => "left behind; load forget removes it".to_owned(),
        (Some(completed), _) => {
            let audited = load.audited_batches.map(|batches| match batches {
                1 => ", 1 batch audited".to_owned(),
                _ => format!(", {} batches audited", phases::thousands(batches)),
            });
            format!("complete {completed}").trim_end().to_owned() + &audited.unwrap_or_default()
        }
        (None, true) => "running".to_owned(),
        (None, false) => "interrupted".to_owned(),
    }
}

/// A load with all that its record says.
fn history_of(load: &LoadStatus) -> String {
    let facts = &load.facts;
    let dropped = if load.table_exists { "" } else { " (dropped)" };
    let seconds = facts.seconds.map(|seconds| format!(" in {seconds} s")).unwrap_or_default();
    let version = facts.version.as_ref().map(|version| format!(", Sawmill {version}")).unwrap_or_default();
    let mut text = format!(
        "{}{dropped}: mode {}, started {}, {}{seconds}{version}\n",
        load.table,
        load.mode,
        load.begun,
        state(load)
    );
    if let Some(command) = &facts.command {
        text += &format!("  {command}\n");
    }
    for line in facts.columns.lines() {
        text += &format!("  {line}\n");
    }
    let mut rows = vec![["file", "bytes", "rows", "rejected", "hash"].map(str::to_owned)];
    rows.extend(load.files.iter().map(|file| {
        let [bytes, loaded, rejected] = [file.bytes, file.rows, file.rejected].map(known);
        [file.name.clone(), bytes, loaded, rejected, file.hash.clone()]
    }));
    text + &phases::table(&rows)
}

/// Removes the records that no later load needs.
pub(super) fn prune(args: &PruneArgs, console: Console) -> Result<()> {
    let PruneArgs { of, older_than, dry_run } = args;
    let (table, how) = (of.table()?, (*older_than, *dry_run));
    let pruned = if of.is_crate() {
        let (server, schema) = (of.crate_server()?, of.records.crate_schema());
        interrupt::during(|control| crate_prune(&server, schema, table.as_ref(), how, control))?
    } else {
        let (server, schema) = (of.server()?, of.records.schema());
        interrupt::during(|control| sawmill_postgres::prune(&server, schema, table.as_ref(), how, control))?
    };
    console.result(&pruned, || pruned_lines(&pruned))
}

/// Lists the removed loads, and counts the kept ones by table and reason.
fn pruned_lines(pruned: &Pruned) -> String {
    let loads = |count: usize| phases::counted(count as u64, "load");
    let done = if pruned.dry_run { "would remove" } else { "removed" };
    let mut text = format!("{done} the records of {}\n", loads(pruned.removed.len()));
    for load in &pruned.removed {
        text += &format!("  {}, mode {}, started {}, {}\n", load.table, load.mode, load.begun, state(load));
    }
    let mut kept: BTreeMap<(&str, Kept), usize> = BTreeMap::new();
    for load in &pruned.kept {
        *kept.entry((&load.load.table, load.why)).or_default() += 1;
    }
    for ((table, why), count) in kept {
        text += &format!("keeps {} into {table}: {}\n", loads(count), why.reason());
    }
    text
}

pub(super) fn forget(args: &ForgetArgs, console: Console) -> Result<()> {
    let mut effort = EffortArgs::default();
    effort.replace_connections(ConnectionArgs { patience: args.patience, ..ConnectionArgs::default() });
    let target = args.target.destination(&CrateArgs::default(), &effort)?;
    target.refuse_for_crate_db(args.patience.is_some(), "--patience")?;
    let target = args.records.apply(target);
    let forgotten = interrupt::during(|control| target.forget(control))?;
    console.result(&forgotten, || {
        let staging = if forgotten.staging_dropped || forgotten.table_dropped {
            "; dropped an unfinished table"
        } else {
            ""
        };
        let loads = phases::counted(forgotten.loads, "load");
        format!("{}: forgot {loads}{staging}\n", args.target.table())
    })
}
