//! Opening a load: its tables, its transport, and the units of earlier runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use sawmill_loader::{ColumnChanges, LoadOptions, LoadState, Mode, Note, Share, Tally, Target};
use sawmill_profile::turns;
use sawmill_source::{Control, Error, Kind, Mapping, Result, Source, UnitKey};

use super::planned::{choose_transport, unnest_of, which_tells_rows};
use super::{CrateSession, EarlierUnits};
use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Sql;
use crate::encode::encoder::EncodePlan;
use crate::records::checkpoint::{Checkpoints, LoadRow, Records, UnitRecord};
use crate::records::history::{brought, sharing_files};
use crate::records::lease::{Lease, lease_name};
use crate::records::shape::Shape;
use crate::table::columns::{Key, Plan, Purpose};
use crate::table::names::CrateTable;
use crate::table::{catalogue, ddl};
use crate::tags::audit::Audit;
use crate::tags::{Recorded, Tags, jobs, version};
use crate::target::CrateDb;
use crate::write::carried::Chosen;
use crate::write::rejects::{Keep, Rejects};
use crate::write::writer::WriterPlan;

impl<'a> CrateSession<'a> {
    pub(crate) fn prepare(
        crate_db: &'a CrateDb,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        let started = turns::now();
        if options.share != Share::Whole {
            return Err(Error::new(Kind::Config, "a load into CrateDB cannot be divided into parts")
                .at(format!("table {}", crate_db.table()?))
                .advise("leave --part out: one process loads the files, over --connections connections"));
        }
        let table = crate_db.table()?;
        check_mode(crate_db.mode)?;
        // Reject unsupported sources before connecting.
        let new_plan = match crate_db.mode {
            Mode::Append => None,
            _ => Some(crate_db.new_plan(source, &table)?),
        };
        let cluster = Cluster::new(&crate_db.server, options.patience, options.retries)?;
        let mut client = Client::new(&cluster);
        let mut opening = Opening::new((crate_db, source, options), table, new_plan, client.on(control))?;
        let lease = opening.take_lease()?;
        let chosen = opening.transport()?;
        let decided = opening.decide()?;
        let (tags, earlier) = opening.earlier(&decided)?;
        let of_all_loads = opening.of_all_loads(&decided)?;
        let chosen = match decided.state {
            LoadState::Complete => Chosen::Http("no row was sent".to_owned()),
            _ => which_tells_rows(chosen?, &decided.record, &opening.plan.key),
        };
        let to = (&decided.written, chosen == Chosen::Pg);
        let encode = crate_db.encode_plan(source, options, &opening.plan, to);
        let writers = opening.writers((lease, tags), (&decided, &chosen), earlier.rejected, &encode)?;
        let Opening { mut sql, table, primary, replaced, .. } = opening;
        let Decided { record, state, counted, written, .. } = decided;
        let session = Self {
            crate_db,
            source,
            options,
            cluster: Arc::clone(sql.cluster()),
            table,
            written,
            primary,
            encode: Arc::new(encode),
            writers: Arc::new(writers),
            record,
            started,
            state,
            earlier,
            of_all_loads,
            chosen,
            counted: Mutex::new(counted),
            loaded: AtomicU64::new(0),
            since: AtomicU64::new(0),
            sealed: AtomicBool::new(false),
            equal: AtomicU64::new(0),
            replaced,
        };
        session.cluster.table_is_known();
        session.count_recorded(&mut sql)?;
        Ok(session)
    }

    /// Makes sure that the table has the rows that earlier runs inserted. With tags, the audit has done that.
    fn count_recorded(&self, sql: &mut Sql<'_>) -> Result<()> {
        if self.state == LoadState::Resumed && self.writers.tags.is_none() {
            let recorded = self.earlier.done.values().map(|tally| tally.rows).sum();
            self.count(recorded, ("are recorded as loaded", None), sql)?;
        }
        Ok(())
    }
}

/// A load that is being opened.
pub(super) struct Opening<'a, 'o> {
    pub crate_db: &'a CrateDb,
    pub source: &'a dyn Source,
    pub options: &'a LoadOptions,
    pub sql: Sql<'o>,
    pub checkpoints: Checkpoints,
    pub table: CrateTable,
    pub plan: Plan,
    /// Changes to the table for columns that differ.
    pub changes: ColumnChanges,
    /// The columns of the table's primary key.
    pub primary: Vec<String>,
    /// The load's ID, and a hash of the mapping from the source's columns to the table's.
    pub id: String,
    pub mapping: Mapping,
    /// How this load stores its rows and creates its table.
    pub shape: Shape,
    /// Rows of the table, once they are counted.
    pub counted: Option<u64>,
    /// The table that gathered the rows of an unfinished load is in its place already.
    pub placed: bool,
    /// Rows of the file that were deleted for its new ones.
    pub replaced: u64,
}

/// Whether the load is new, resumed or complete, and where its rows go.
struct Decided {
    record: LoadRow,
    state: LoadState,
    /// Rows of a complete load's table.
    counted: Option<u64>,
    written: CrateTable,
    /// The table has its final name already.
    placed: bool,
}

impl<'a, 'o> Opening<'a, 'o> {
    /// Rejects tables and servers with which the load cannot be. `new_plan` is the plan of a table that the load makes.
    fn new(
        (crate_db, source, options): (&'a CrateDb, &'a dyn Source, &'a LoadOptions),
        table: CrateTable,
        new_plan: Option<(Plan, Vec<String>)>,
        mut sql: Sql<'o>,
    ) -> Result<Self> {
        let (plan, primary, changes) = match new_plan {
            Some((plan, primary)) => {
                let names = plan.filled();
                (plan, primary, ColumnChanges::absent(names.iter(), source))
            }
            None if crate_db.evolves() => crate_db.follow(source, &table, options, &mut sql)?,
            None => {
                let (plan, primary) = crate_db.existing_plan(source, &table, Purpose::Write, &mut sql)?;
                (plan, primary, ColumnChanges::default())
            }
        };
        if matches!(plan.key, Key::Tags(_)) {
            version::check_version(&mut sql)?;
        }
        let create = match crate_db.mode {
            Mode::Append => None,
            _ => {
                let key = plan.key.clone().of_finished_table();
                Some(ddl::create_table(&table, &plan.columns, &key, &crate_db.options)?)
            }
        };
        Ok(Self {
            checkpoints: Checkpoints::new(&crate_db.checkpoint_schema),
            id: crate_db.id_of(source, &table, &plan.key),
            mapping: crate_db.mapping_of_files(source),
            shape: Shape::new(&crate_db.options, &plan, create.as_deref()),
            counted: None,
            placed: false,
            replaced: 0,
            crate_db,
            source,
            options,
            sql,
            table,
            plan,
            changes,
            primary,
        })
    }

    /// Whether rows gather in a separate table.
    fn gathers(&self) -> bool {
        self.crate_db.mode != Mode::Append
    }

    pub(super) fn records(&mut self) -> Records<'_> {
        self.checkpoints.on(&mut self.sql)
    }

    /// Keeps other runs out, and makes the tables of records.
    fn take_lease(&mut self) -> Result<Lease> {
        let name = lease_name(&self.table.to_string(), self.crate_db.mode.name(), &self.id);
        let lease = Lease::take(&self.checkpoints, &name, &mut self.sql)?;
        // A command that forgets the last load may have removed the tables before the lease was taken.
        self.records().create()?;
        Ok(lease)
    }

    /// The transport. One that is not available is an error before anything is created, unless the load is
    /// complete.
    fn transport(&mut self) -> Result<Result<Chosen>> {
        let chosen = choose_transport(self.crate_db, &self.plan.key, &self.sql);
        if let Err(error) = &chosen {
            let row = self.checkpoints.on(&mut self.sql).find(&self.id)?;
            if row.is_none_or(|row| !row.load.complete) {
                return Err(error.clone());
            }
        }
        Ok(chosen)
    }

    fn decide(&mut self) -> Result<Decided> {
        let gathers = self.gathers();
        let (record, state) = match gathers {
            true => self.gather()?,
            false if self.crate_db.replaces => self.replace_rows()?,
            false => self.append()?,
        };
        let placed = self.placed || state == LoadState::Complete;
        Ok(Decided {
            counted: self.counted.filter(|_| state == LoadState::Complete),
            written: if gathers && !placed { self.table.staging() } else { self.table.clone() },
            record,
            state,
            placed,
        })
    }

    /// The tags of this run, and the units of earlier runs.
    fn earlier(&mut self, decided: &Decided) -> Result<(Option<Tags>, EarlierUnits)> {
        let mut units = match decided.state {
            LoadState::New => HashMap::new(),
            _ => self.checkpoints.on(&mut self.sql).units(&self.id)?,
        };
        let tags = match self.plan.key.clone() {
            Key::Tags(column) if !decided.placed => self.tags(&column, decided, &mut units)?,
            _ => None,
        };
        Ok((tags, EarlierUnits::new(units, self.plan.columns.len())))
    }

    /// The tags of this run. Ends requests of earlier runs, removes rows that no record accounts for, and takes
    /// units that the table does not have whole off `units`. Returns `None` if the table has its final form
    /// already.
    fn tags(
        &mut self,
        column: &str,
        Decided { record, state, written, .. }: &Decided,
        units: &mut HashMap<UnitKey, UnitRecord>,
    ) -> Result<Option<Tags>> {
        if *state == LoadState::New {
            return Ok(Some(Tags::of_first_run(column, record.runs)));
        }
        if !catalogue::has_column(&mut self.sql, written, column)? {
            return Ok(None);
        }
        let (id, run) = (&record.load.id, record.runs + 1);
        self.records().set_runs(id, run)?;
        jobs::end_inserts(&mut self.sql, written, true)?;
        let mut recorded = Recorded::default();
        units.iter().for_each(|(key, unit)| recorded.insert(*key, unit.tags.clone()));
        let audited = Audit { table: written, column }.run(&mut recorded, &mut self.sql)?;
        for unit in audited.lacking {
            units.remove(&unit);
            self.records().delete_unit(id, unit)?;
        }
        Ok(Some(Tags::new(column, run, recorded)))
    }

    /// The rows of all loads, for a verification, where the load's record does not tell those of others. The inner error
    /// says why the load's rows cannot be distinguished from them.
    fn of_all_loads(
        &mut self,
        Decided { record, state, counted, .. }: &Decided,
    ) -> Result<std::result::Result<Option<Tally>, Note>> {
        let by_row_key = matches!(self.plan.key, Key::Row(_));
        let is_told = self.gathers() || record.load.before.is_some() || *state != LoadState::Complete;
        if !self.options.verify || *state == LoadState::New || !by_row_key && is_told {
            return Ok(Ok(None));
        }
        let target = self.table.to_string();
        let loads = self.records().of_table(&target)?;
        if by_row_key {
            return Ok(match is_shared(&loads, self.source, &self.mapping, record) {
                true => Err(Note::Unverified(SHARED.to_owned())),
                false => Ok(None),
            });
        }
        let (filled, records) = (self.plan.filled(), &mut self.checkpoints.on(&mut self.sql));
        let all = brought(&loads, (&self.mapping, &filled), counted.unwrap_or_default(), records)?;
        Ok(all.map(Some).ok_or_else(|| Note::OtherRows(NOT_ON_RECORD.to_owned())))
    }

    /// The state that all writers share.
    fn writers(
        &self,
        (lease, tags): (Lease, Option<Tags>),
        (Decided { record, state, written, .. }, chosen): (&Decided, &Chosen),
        rejected: u64,
        encode: &EncodePlan,
    ) -> Result<WriterPlan> {
        let (plan, options) = (&self.plan, &self.crate_db.options);
        let rejects = options.rejects.as_deref().filter(|_| *state != LoadState::Complete);
        let resumed = *state == LoadState::Resumed;
        let keep = match self.gathers() {
            _ if resumed => Keep::All,
            true => Keep::Nothing,
            false => Keep::OtherFiles,
        };
        Ok(WriterPlan {
            load_id: self.id.clone(),
            lease: Some(lease),
            of_statement: self.crate_db.of_statement,
            tags,
            unnest: (*chosen == Chosen::Pg).then(|| unnest_of(written, plan)),
            resumed,
            gathers: self.gathers(),
            taken_as_sent: AtomicBool::new(resumed),
            rejects: rejects.map(|path| Rejects::open(path, keep, self.source.files())).transpose()?,
            max_rejects: options.max_rejects.unwrap_or(u64::MAX),
            gzip: options.gzip,
            unit_rows: record.load.unit_rows,
            files: self.source.files().to_vec(),
            rejected: AtomicU64::new(rejected),
            ..WriterPlan::of_table(self.sql.cluster(), written, (plan, encode), self.checkpoints.clone())
        })
    }
}

/// Why a load by row key is not verified.
const SHARED: &str = "not verified: another load has brought other rows or columns of the same files (sawmill verify compares \
                      whole tables)";

/// Why a complete append is not verified that did not sum up what the table held before.
const NOT_ON_RECORD: &str = "not verified: the files were compared with the record of their load, but not with the table, which has \
                             other rows than those on record (sawmill verify compares whole tables)";

/// Rejects the modes that only PostgreSQL has.
fn check_mode(mode: Mode) -> Result<()> {
    let advice = match mode {
        Mode::Truncate => "load in mode replace, which puts a new table in the place of the old one",
        Mode::Upsert => "load in mode append: rows whose key is there are left as they are",
        _ => return Ok(()),
    };
    Err(Error::new(Kind::Config, format!("mode {} is for PostgreSQL", mode.name())).advise(advice))
}

/// Whether other loads inserted other rows of the same files since the load began; or earlier, if the load did not
/// record the sum at its start.
fn is_shared(loads: &[LoadRow], source: &dyn Source, mapping: &Mapping, record: &LoadRow) -> bool {
    // In the order in which they began.
    let own = loads.iter().position(|row| row.load.id == record.load.id);
    let (before, since) = loads.split_at(own.unwrap_or(0));
    let shares = |loads| sharing_files(loads, source, mapping, &record.load.id).next().is_some();
    shares(since) || record.load.before.is_none() && shares(before)
}
