//! `sawmill load status` and `sawmill load forget`: the records that a server keeps of loads.

use std::sync::atomic::AtomicBool;

use clap::Args;
use sawmill_cratedb::{CrateServer, crate_status};
use sawmill_loader::TableName;
use sawmill_pgwire::Server;
use sawmill_profile::Profile;
use sawmill_source::Control;

use crate::arguments::crate_options::CrateArgs;
use crate::arguments::record_args::RecordArgs;
use crate::arguments::target::{EffortArgs, TargetArgs};
use crate::error::Error;
use crate::screen::console::Console;
use crate::screen::phases;

#[derive(Args, Debug)]
pub(super) struct ForgetArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    records: RecordArgs,
}

#[derive(Args, Debug)]
pub(super) struct StatusArgs {
    /// The server, as for a load.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only loads into this table.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    records: RecordArgs,
}

/// Lists loads, then the files of each.
pub(super) fn status(args: &StatusArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let is_crate = CrateServer::understands(&args.to);
    let parse = if is_crate { sawmill_cratedb::table_name } else { str::parse::<TableName> };
    let table = args.table.as_deref().map(parse).transpose()?;
    let phase = Profile::new().phase("status");
    let control = Control::new(cancel, &phase);
    let table = table.as_ref();
    let loads = match is_crate {
        true => crate_status(&args.to.parse()?, args.records.crate_schema(), table, &control)?,
        false => {
            sawmill_postgres::status(&args.to.parse::<Server>()?, args.records.schema(), table, &control)?
        }
    };
    console.result(&loads, || {
        if loads.is_empty() {
            return "no recorded loads\n".to_owned();
        }
        let mut rows =
            vec![["table", "mode", "files", "units", "rows", "started", "state"].map(str::to_owned)];
        for load in &loads {
            let state = match (&load.completed, load.running) {
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
            };
            let (files, units) = (load.files.len().to_string(), phases::thousands(load.units));
            let (rows_in, begun) = (phases::thousands(load.rows), load.begun.clone());
            rows.push([load.table.clone(), load.mode.clone(), files, units, rows_in, begun, state]);
        }
        let files = loads.iter().map(|load| {
            let mut rows = vec![[format!("{} {}", load.table, load.begun), "rows".to_owned()]];
            rows.extend(load.files.iter().map(|file| [file.name.clone(), phases::thousands(file.rows)]));
            phases::table(&rows)
        });
        let files = files.collect::<Vec<_>>().join("\n");
        format!("{}\n{files}", phases::table(&rows))
    })
}

pub(super) fn forget(args: &ForgetArgs, console: Console, cancel: &AtomicBool) -> Result<(), Error> {
    let profile = Profile::new();
    let phase = profile.phase("forget");
    let target = args.target.destination(&CrateArgs::default(), &EffortArgs::default())?;
    let target = args.records.of(target);
    let forgotten = target.forget(&Control::new(cancel, &phase))?;
    console.result(&forgotten, || {
        let staging = if forgotten.staging_dropped { "; dropped an unfinished table" } else { "" };
        let loads = if forgotten.loads == 1 { "load" } else { "loads" };
        format!("{}: forgot {} {loads}{staging}\n", args.target.table(), forgotten.loads)
    })
}
