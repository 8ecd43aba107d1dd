//! `--ddl`, `--explain` and `--dry-run`: what a load would do.

use sawmill_cratedb::CrateExplanation;
use sawmill_loader::{ColumnChanges, LoadOptions, Note};
use sawmill_postgres::{Postgres, PostgresTables};
use sawmill_source::{Control, Source};
use serde::Serialize;

use super::{reading::Reading, tables};
use crate::arguments::table_args::PartitionsPlan;
use crate::arguments::target::Destination;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::escape;
use crate::screen::phases::{self, counted};

/// A load that is ready to start.
#[derive(Clone, Copy)]
pub(super) struct PlannedLoad<'a> {
    pub target: &'a Destination,
    pub source: &'a dyn Source,
    /// The tables, if lists become tables.
    pub tables: Option<&'a PostgresTables<'a>>,
    pub options: &'a LoadOptions,
}

/// What `--explain --json` prints for CrateDB.
#[derive(Serialize)]
struct CratePlan<'a> {
    #[serde(flatten)]
    plan: &'a CrateExplanation,
    #[serde(flatten)]
    reading: &'a Reading,
}

/// What `--explain --json` prints for PostgreSQL.
#[derive(Serialize)]
struct PostgresPlan<'a> {
    files: usize,
    rows: u64,
    units: usize,
    degree: usize,
    #[serde(rename = "way")]
    route: String,
    memory_bytes: u64,
    ddl: String,
    #[serde(flatten)]
    reading: &'a Reading,
    partitions: Option<PartitionsPlan>,
    /// How the load would treat columns by which the files and the table differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<ColumnChanges>,
    /// How values would be converted to the types of the table's columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conversions: Vec<String>,
    /// The partitions that the load would create in its existing table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    new_partitions: Vec<String>,
}

impl PlannedLoad<'_> {
    /// Prints the CREATE TABLE statements.
    pub(super) fn ddl(&self, console: Console) -> Result<()> {
        let ddl = interrupt::during(|control| match self.tables {
            Some(tables) => Ok::<_, Error>(tables.ddl(control)?),
            None => self.target.ddl(self.source, control),
        })?;
        console.document(&ddl, || ddl.clone() + ";\n")
    }

    /// Prints what the load would do.
    pub(super) fn explain(&self, reading: &Reading, console: Console) -> Result<()> {
        interrupt::during(|control| match self.target {
            Destination::CrateDb(crate_db) => {
                let plan = crate_db.explain(self.source, self.options, control)?;
                console.result(&CratePlan { plan: &plan, reading }, || reading.lines() + &crate_text(&plan))
            }
            Destination::Postgres(postgres) => self.explain_postgres(postgres, reading, console, control),
        })
    }

    fn explain_postgres(
        &self,
        postgres: &Postgres,
        reading: &Reading,
        console: Console,
        control: &Control<'_>,
    ) -> Result<()> {
        let Self { source, tables, options, .. } = *self;
        let (columns, alter) = postgres.planned_changes(source, options, control)?.unzip();
        let conversions = match tables {
            Some(_) => None,
            None => postgres.planned_conversions(source, columns.as_ref(), control)?,
        };
        let left = match tables {
            Some(_) => None,
            None => Some(postgres.files_left(source, options, control)?),
        };
        let left: &dyn Source = left.as_ref().map_or(source, |left| left);
        let plan = PostgresPlan {
            files: left.files().len(),
            rows: left.rows(),
            units: left.plan(options.unit_rows).iter().map(Vec::len).sum(),
            degree: options.degree,
            route: postgres.route(options.degree)?,
            memory_bytes: options.block_memory(),
            ddl: match (alter, &conversions) {
                (Some(alter), _) => alter.unwrap_or_default(),
                (None, Some(_)) => String::new(),
                (None, None) if left.files().is_empty() => String::new(),
                (None, None) => {
                    tables.map_or_else(|| postgres.ddl(source, control), |tables| tables.ddl(control))?
                }
            },
            reading,
            partitions: PartitionsPlan::new(postgres),
            columns,
            conversions: conversions.unwrap_or_default(),
            new_partitions: postgres.planned_partitions(source, options, control)?,
        };
        console.result(&plan, || postgres_text(&plan))
    }

    /// Prints what the load would do, after trying it on the server.
    pub(super) fn dry_run(&self, console: Console) -> Result<()> {
        if let Some(tables) = self.tables {
            return tables::dry_run(tables, self.options, console);
        }
        let Self { target, source, options, .. } = *self;
        let Destination::Postgres(postgres) = target else {
            return Err(Error::usage("not available for CrateDB", "--dry-run", "use --explain"));
        };
        let plan = interrupt::during(|control| postgres.rehearse(source, options, control))?;
        console.result(&plan, || {
            let state = tables::rehearsed(&plan);
            let notes = plan.notes.iter().filter(|note| **note != Note::Route(plan.route.clone()));
            let notes: String = notes.map(|note| format!("{note}\n")).collect();
            let partitions = PartitionsPlan::new(postgres).map(|plan| plan.lines()).unwrap_or_default();
            format!(
                "{}: {state}\n{} in {} over {}\n{}\n{partitions}{}\n{notes}nothing was changed\n",
                plan.table,
                counted(plan.rows, "row"),
                counted(plan.units - plan.units_done, "unit"),
                counted(options.degree as u64, "connection"),
                plan.route,
                escape::message(&plan.copy)
            )
        })
    }
}

fn postgres_text(plan: &PostgresPlan<'_>) -> String {
    let partitions = plan.partitions.as_ref().map(PartitionsPlan::lines).unwrap_or_default();
    let changes = plan.columns.iter().flat_map(ColumnChanges::lines).chain(plan.conversions.iter().cloned());
    let changes = changes.chain(plan.new_partitions.iter().cloned());
    let changes: String = changes.map(|line| escape::message(&line) + "\n").collect();
    let ddl =
        if plan.ddl.is_empty() { String::new() } else { format!("\n{};\n", escape::message(&plan.ddl)) };
    format!(
        "{}{}, {} in {} over {}, binary COPY\n{}\nexactly once: a unit's record commits with its rows\n\
         at most {} of encoded rows in memory\n{partitions}{changes}{ddl}",
        plan.reading.lines(),
        counted(plan.files as u64, "file"),
        counted(plan.rows, "row"),
        counted(plan.units as u64, "unit"),
        counted(plan.degree as u64, "connection"),
        plan.route,
        phases::bytes(plan.memory_bytes),
    )
}

fn crate_text(plan: &CrateExplanation) -> String {
    let mut rows = vec![["column", "source", "CrateDB", "over the PostgreSQL wire"].map(str::to_owned)];
    for column in &plan.columns {
        rows.push([&column.name, &column.arrow, &column.crate_type, &column.sent_as].map(Clone::clone));
    }
    let mut ways = vec![["way", "delivery", "HTTP", "PostgreSQL wire", "costs"].map(str::to_owned)];
    for way in &plan.ways {
        let name = if way.chosen { format!("{} <- this load", way.way) } else { way.way.clone() };
        let rate = |rate: Option<u32>| rate.map_or("-".to_owned(), |rate| rate.to_string());
        let (http, pg) = (rate(way.over_http), rate(way.over_pg));
        ways.push([name, way.delivery.clone(), http, pg, way.costs.clone()]);
    }
    let changes: String = plan.changes.lines().iter().map(|line| escape::message(line) + "\n").collect();
    let ddl = plan.ddl.as_ref().map(|ddl| format!("\n{};\n", escape::message(ddl))).unwrap_or_default();
    format!(
        "table {}, mode {:?}\n{}, {} in {} over {}\ntransport {}\ndelivery {}\n\
         requests of at most {} rows and {}; at most {} of encoded rows in memory\n\n{}{}\n\n{}{changes}{ddl}",
        plan.table,
        plan.mode,
        counted(plan.files as u64, "file"),
        counted(plan.rows, "row"),
        counted(plan.units as u64, "unit"),
        counted(plan.degree as u64, "connection"),
        plan.transport,
        plan.delivery,
        phases::thousands(plan.batch_rows as u64),
        phases::bytes(plan.batch_bytes as u64),
        phases::bytes(plan.memory_bytes),
        phases::table(&ways),
        plan.measured,
        phases::table(&rows),
    )
}
