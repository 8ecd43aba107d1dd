//! Loads that cannot be compared with another program: into CrateDB, and into several tables of PostgreSQL.

use std::cell::Cell;
use std::path::PathBuf;

use sawmill_cratedb::{CrateDb, CrateServer};
use sawmill_loader::{LoadOptions, TableName};
use sawmill_pgwire::Server as Address;
use sawmill_postgres::{Postgres, PostgresTables};
use sawmill_profile::{Profile, Target};
use sawmill_source::Source;

use super::{LoadBench, numbered};
use crate::arguments::target::{self, Destination, ModeArg};
use crate::bench::case::{Beside, Done, Measured, Measurement};
use crate::error::{Error, Result};
use crate::load::load_files;
use crate::load::tables as load_tables;
use crate::screen::console::Console;
use crate::{demo, interrupt};

/// Whether the arguments ask for a load into CrateDB or into several tables.
pub(super) fn is_meant(args: &LoadBench) -> bool {
    into_crate_db(args) || args.nested.makes_tables()
}

fn into_crate_db(args: &LoadBench) -> bool {
    args.to.as_deref().is_some_and(CrateServer::understands)
}

/// Rejects options that only a single table of PostgreSQL has.
fn reject_other_options(args: &LoadBench) -> Result<()> {
    let given = [
        ("--sort-by", args.order.sort_by.is_some()),
        ("--against", !args.plan.against.is_empty()),
        ("--table-kind", args.table_kind.is_some()),
        ("--keyed", args.keyed.is_some()),
        ("--primary-key", !args.primary_key.is_empty()),
        ("--strategy", args.strategy.is_some()),
        ("--partition-by", args.partition_by.is_some()),
        ("--mode", args.mode != ModeArg::Create),
    ];
    let Some((option, _)) = given.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let what = match into_crate_db(args) {
        true => "a benchmark of CrateDB always creates new tables and runs no other program",
        false => "a benchmark with --nested tables always creates new tables and runs no other program",
    };
    Err(Error::usage(what, option, "leave the option out"))
}

/// Measures loads, each into new tables that are dropped afterwards.
pub(super) fn measure(
    args: &LoadBench,
    source: &dyn Source,
    (url, local): (&str, Option<Target>),
    folders: Vec<PathBuf>,
    measurement: &Measurement<'_>,
) -> Result<Measured> {
    reject_other_options(args)?;
    let number = Cell::new(0);
    let name = args.name()?;
    let (product, listener) = match into_crate_db(args) {
        true => ("CrateDB", url.parse::<CrateServer>().ok().and_then(|server| server.local_listener())),
        false => ("PostgreSQL", url.parse::<Address>().ok().and_then(|server| server.local_listener())),
    };
    let server = local.or(listener).map(|process| (product, process));
    let beside = Beside { server, folders };
    let quiet = Console { verbose: 0, ..measurement.console };
    let mut measured = measurement.case(beside, |profile| {
        number.set(number.get() + 1);
        let destination = destination(args, url, &numbered(&name, number.get()))?;
        let options = LoadOptions { verify: args.verify, ..args.effort.options_for(&destination)? };
        let tables = args.nested.tables(&destination, source)?;
        let loaded = load(source, (&destination, tables.as_ref()), &options, profile, quiet);
        let made = match &loaded {
            Ok(_) => Some(true),
            // Nothing was created if the server was never reached.
            Err(error) => error.made_table,
        };
        let removed = made.map_or(Ok(()), |made| remove(&destination, tables.as_ref(), url, made));
        match (loaded, removed) {
            (Ok(done), removed) => removed.map(|()| done),
            (Err(error), removed) => {
                if let Err(left) = removed {
                    measurement.console.step(&format!("warning: {left}"));
                }
                Err(error)
            }
        }
    })?;
    if measurement.once.is_none() {
        let destination = destination(args, url, &name.to_string())?;
        let version = interrupt::despite(|control| match &destination {
            Destination::CrateDb(crate_db) => Ok(crate_db.server_version(control)?),
            Destination::Postgres(postgres) => Ok(postgres.server_version(control)?),
        })?;
        measured.versions.insert(product.to_owned(), version);
    }
    Ok(measured)
}

fn destination(args: &LoadBench, url: &str, table: &str) -> Result<Destination> {
    if into_crate_db(args) {
        let options = args.crate_options.options(args.effort.batch_rows());
        let crate_db = CrateDb::new(url.parse::<CrateServer>()?, table.parse::<TableName>()?);
        return args.nested.apply(Destination::CrateDb(Box::new(crate_db.options(options))));
    }
    args.nested.apply(Destination::Postgres(Box::new(target::postgres(url, table)?)))
}

/// Loads once, into the table or into its tables; several have their content sums one after the other.
fn load(
    source: &dyn Source,
    (destination, tables): (&Destination, Option<&PostgresTables<'_>>),
    options: &LoadOptions,
    profile: &Profile,
    console: Console,
) -> Result<Done> {
    let (rows, checksum, phase) = match tables {
        None => {
            let (report, phase) = load_files(source, destination.as_target(), options, profile, console)?;
            (report.rows, report.content.content_sum.to_string(), phase)
        }
        Some(tables) => {
            let (reports, phase) = load_tables::load(tables, options, profile, console)?;
            let sums = reports.iter().map(|report| report.result.content.content_sum.to_string());
            let rows = reports.iter().map(|report| report.result.rows).sum();
            (rows, sums.collect::<Vec<_>>().join(" "), phase)
        }
    };
    Ok(Done { bytes: phase.bytes, phase, rows: Some(rows), stored: None, checksum: Some(checksum) })
}

/// Removes what a run left, with its tables if it created them.
fn remove(
    destination: &Destination,
    tables: Option<&PostgresTables<'_>>,
    url: &str,
    made: bool,
) -> Result<()> {
    match (destination, tables) {
        (Destination::CrateDb(crate_db), _) => {
            interrupt::despite(|control| Ok(crate_db.forget(made, control)?))?;
            Ok(())
        }
        (Destination::Postgres(postgres), None) => demo::remove(postgres, made),
        // Tables of lists first: they may refer to the others.
        (Destination::Postgres(_), Some(tables)) => tables
            .names()
            .into_iter()
            .rev()
            .try_for_each(|name| demo::remove(&Postgres::new(url.parse::<Address>()?, name), made)),
    }
}
