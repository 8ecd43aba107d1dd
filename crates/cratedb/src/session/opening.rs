//! Opening a load: what it writes, where, by which transport, and what earlier runs have brought.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use sawmill_loader::{LoadOptions, LoadState, Mode, Tally};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};
use tokio_postgres::types::Type;

use super::CrateSession;
use crate::connect::client::{Client, Cluster};
use crate::connect::pg;
use crate::encode::bodies::Bodies;
use crate::encode::encoder::{EncodePlan, file_hash, longest_row};
use crate::encode::unnest;
use crate::options::{LongText, Transport};
use crate::records::checkpoint::{Checkpoints, LoadIntoTable, LoadRecord, State, UnitRecord};
use crate::records::lease::{Lease, lease_name};
use crate::records::remembered::sharing_files;
use crate::records::shape::Shape;
use crate::session::prepare::{Preparing, choose_key};
use crate::table::columns::{Key, LONGEST_TEXT, Plan};
use crate::table::names::CrateTable;
use crate::table::{catalogue, columns, ddl};
use crate::tags::begun::Begun;
use crate::target::CrateDb;
use crate::verify::without_refused::WithoutRefused;
use crate::write::carried::{Carried, Chosen};
use crate::write::head::{LONGEST_TAG, head};
use crate::write::rejects::Rejects;
use crate::write::there_before::ThereBefore;
use crate::write::writer::WriterPlan;

impl<'a> CrateSession<'a> {
    pub(crate) fn prepare(
        crate_db: &'a CrateDb,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        let table = crate_db.table()?;
        check_mode(crate_db.mode)?;
        let gathers = crate_db.mode != Mode::Append;
        // Reject unsupported sources before connecting.
        let new_plan = if gathers { Some(new_plan(crate_db, source, &table)?) } else { None };
        let cluster = Cluster::new(&crate_db.server, options.patience)?;
        let mut client = Client::new(&cluster, false);
        let retries = options.retries;
        let (plan, primary) = match new_plan {
            Some(plan) => plan,
            None => existing_plan(crate_db, source, &mut client, &table, retries, control, true)?,
        };
        let checkpoints = Checkpoints::new(&crate_db.checkpoint_schema, retries);
        checkpoints.create(&mut client, control)?;
        let id = crate_db.id_of(source, &table, &plan.key);
        let mapping = crate_db.mapping_of_files(source);
        let name = lease_name(&table.to_string(), crate_db.mode.name(), &id);
        let lease = Lease::take(&checkpoints, &cluster, &name, control)?;
        // Who forgets the last load meanwhile removes them.
        checkpoints.create(&mut client, control)?;
        // Report an unavailable transport before creating anything, unless the load is complete.
        let chosen = choose_transport(crate_db, &cluster, &plan.key, control);
        let complete = |record: &LoadRecord| record.state == State::Complete;
        if let Err(error) = &chosen
            && !checkpoints.find(&mut client, &id, control)?.as_ref().is_some_and(complete)
        {
            return Err(error.clone());
        }
        let create = match gathers {
            true => {
                let key = plan.key.clone().of_finished_table();
                Some(ddl::create_table(&table, &plan.columns, &key, &crate_db.options)?)
            }
            false => None,
        };
        let shape = Shape::new(&crate_db.options, &plan, create.as_deref());
        let mut preparing = Preparing {
            crate_db,
            source,
            options,
            control,
            client: &mut client,
            checkpoints: &checkpoints,
            table: &table,
            plan: &plan,
            primary: &primary,
            id: &id,
            mapping: &mapping,
            shape: &shape,
            counted: None,
            placed: false,
        };
        let (record, state) = if gathers { preparing.gather()? } else { preparing.append()? };
        let counted = preparing.counted.filter(|_| state == LoadState::Complete);
        let placed = preparing.placed || state == LoadState::Complete;
        let mut units = match state {
            LoadState::New => HashMap::new(),
            _ => checkpoints.units(&mut client, &id, control)?,
        };
        let written = if gathers && !placed { table.staging() } else { table.clone() };
        let tags = match &plan.key {
            Key::Tags(column) if !placed => {
                let begun = Begun { checkpoints: &checkpoints, record: &record, state, written: &written };
                begun.tags(column, &mut units, &mut client, retries, control)?
            }
            _ => None,
        };
        let earlier = EarlierUnits::of(units, plan.columns.len());
        let shared = match (&plan.key, state) {
            (Key::Row(_), LoadState::Resumed | LoadState::Complete) => {
                let loads = checkpoints.of_table(&mut client, &table.to_string(), control)?;
                is_shared(&loads, source, &mapping, &record)
            }
            _ => false,
        };
        let chosen = match state {
            LoadState::Complete => Chosen::Http("no row was sent".to_owned()),
            _ => which_tells_rows(chosen?, &record, &plan.key),
        };
        let by_column = chosen == Chosen::Pg;
        let (first, repeat) = (head(&written, &plan, ""), head(&written, &plan, REPEAT));
        let length = repeat.before.len() + repeat.after.len() + LONGEST_TAG;
        let encode = encode_plan(crate_db, source, options, &plan, (by_column, length));
        let rejects = crate_db.options.rejects.as_deref().filter(|_| state != LoadState::Complete);
        let writers = WriterPlan {
            cluster: Arc::clone(&cluster),
            load_id: id,
            checkpoints,
            lease,
            table: written.clone(),
            first,
            repeat,
            tags,
            unnest: by_column.then(|| unnest_of(&written, &plan)),
            resumed: state == LoadState::Resumed,
            gathers,
            before: ThereBefore::none(plan.columns.len()),
            begun: Mutex::default(),
            taken_as_sent: AtomicBool::new(state == LoadState::Resumed),
            equal: Mutex::default(),
            rejects: rejects.map(|path| Rejects::open(path, state == LoadState::Resumed)).transpose()?,
            max_rejects: crate_db.options.max_rejects.unwrap_or(u64::MAX),
            retries,
            gzip: crate_db.options.gzip,
            batch_rows: encode.rows,
            batch_bytes: encode.bytes,
            files: source.files().to_vec(),
            rejected: AtomicU64::new(earlier.rejected),
            retried: AtomicU64::new(0),
            redone: AtomicU64::new(0),
            carried: Carried::default(),
            writers: AtomicU64::new(0),
            plan,
        };
        let session = Self {
            crate_db,
            source,
            options,
            bodies: Bodies::new(encode.bytes),
            cluster,
            table,
            written,
            primary,
            encode: Arc::new(encode),
            writers: Arc::new(writers),
            record,
            state,
            done: earlier.done,
            refused: earlier.refused,
            there_before: earlier.there_before,
            shared,
            chosen,
            counted: Mutex::new(counted),
            loaded: AtomicU64::new(0),
        };
        session.cluster.table_is_known();
        if state == LoadState::Resumed && session.writers.tags.is_none() {
            let recorded = session.done.values().map(|tally| tally.rows).sum();
            let at_end = false;
            session.count(&mut client, recorded, ("are recorded as loaded", at_end), control)?;
        }
        Ok(session)
    }
}

/// Rejects the modes that only PostgreSQL has.
fn check_mode(mode: Mode) -> Result<()> {
    let advice = match mode {
        Mode::Truncate => "load in mode replace, which puts a new table in the place of the old one",
        Mode::Upsert => "load in mode append: rows whose key is there are left as they are",
        _ => return Ok(()),
    };
    Err(Error::new(Kind::Config, format!("mode {} is for PostgreSQL", mode.name())).advise(advice))
}

/// The plan for a table that the load creates, and the columns of its primary key.
fn new_plan(crate_db: &CrateDb, source: &dyn Source, table: &CrateTable) -> Result<(Plan, Vec<String>)> {
    let columns = columns::natural(source.schema(), &crate_db.options, table)?;
    let key = choose_key(crate_db, table, source, None)?;
    ddl::create_table(table, &columns, &key, &crate_db.options)?;
    let primary = crate_db.primary_columns(&key, &columns)?;
    let longest_text = (crate_db.options.long_text == LongText::Error).then_some(LONGEST_TEXT);
    Ok((Plan { columns, key, longest_text }, primary))
}

/// What earlier runs of the load have brought.
struct EarlierUnits {
    done: HashMap<UnitKey, Tally>,
    rejected: u64,
    refused: Option<Arc<BTreeMap<UnitKey, Tally>>>,
    there_before: Tally,
}

impl EarlierUnits {
    fn of(units: HashMap<UnitKey, UnitRecord>, columns: usize) -> Self {
        let mut there_before = Tally::empty(columns);
        units.values().filter_map(|unit| unit.there_before.as_ref()).for_each(|rows| there_before.add(rows));
        Self {
            rejected: units.values().map(|unit| unit.rejected).sum(),
            refused: WithoutRefused::refused(units.iter()),
            there_before,
            done: units.into_iter().map(|(key, unit)| (key, unit.tally)).collect(),
        }
    }
}

/// How rows are encoded: by row, or by column for the PostgreSQL wire. `head` are the bytes of a request
/// before its rows.
fn encode_plan(
    crate_db: &CrateDb,
    source: &dyn Source,
    options: &LoadOptions,
    plan: &Plan,
    (by_column, head): (bool, usize),
) -> EncodePlan {
    EncodePlan {
        rows: crate_db.options.request_rows(),
        bytes: options.batch_bytes.clamp(4096, CrateDb::MOST_BATCH_BYTES),
        longest_row: longest_row(head),
        columns: by_column,
        leave_out: crate_db.options.rejects.is_some(),
        files: source.files().iter().map(file_hash).collect(),
        plan: plan.clone(),
    }
}

/// The statements of the PostgreSQL wire, for the first time and for rows that may be there, and the types of
/// their parameters.
fn unnest_of(written: &CrateTable, plan: &Plan) -> ([String; 2], Vec<Type>) {
    let statements = ["", REPEAT].map(|clause| {
        // With a key, existing rows are counted, and do not end the statement.
        let clause = match plan.key {
            Key::Row(_) | Key::Own(_) => REPEAT,
            Key::Tags(_) => "",
            Key::None => clause,
        };
        unnest::insert(written, plan, clause)
    });
    (statements, unnest::parameter_types(plan))
}

/// What makes a repeated row harmless.
const REPEAT: &str = " ON CONFLICT DO NOTHING";

/// The plan for a table that exists, and the columns of its primary key.
pub(crate) fn existing_plan(
    crate_db: &CrateDb,
    source: &dyn Source,
    client: &mut Client,
    table: &CrateTable,
    retries: u32,
    control: &Control<'_>,
    writing: bool,
) -> Result<(Plan, Vec<String>)> {
    let existing = catalogue::columns(client, table, retries, control)?;
    if existing.is_empty() {
        return Err(Error::new(Kind::Schema, "there is no such table")
            .at(format!("table {table}, {}", client.place()))
            .advise("load in mode create, which creates it"));
    }
    let primary = catalogue::primary_key(client, table, retries, control)?;
    let row_key = crate_db.options.row_key.as_deref();
    let schema = match crate_db.options.by_position {
        false => Arc::clone(source.schema()),
        true => columns::by_position(source.schema(), &existing, row_key, table)?,
    };
    let columns = columns::matched(&schema, &crate_db.options, &existing, table, writing)?;
    let named = Renamed { source, schema };
    let key = choose_key(crate_db, table, &named, Some((&existing, &primary)))?;
    Ok((Plan { columns, key, longest_text: None }, primary))
}

/// A source whose columns have the names of the table's columns.
struct Renamed<'a> {
    source: &'a dyn Source,
    schema: arrow_schema::SchemaRef,
}

impl Source for Renamed<'_> {
    fn schema(&self) -> &arrow_schema::SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[sawmill_source::SourceFile] {
        self.source.files()
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<sawmill_source::Unit>> {
        self.source.plan(unit_rows)
    }

    fn reader(&self, batch_rows: usize) -> Box<dyn sawmill_source::UnitReader + '_> {
        self.source.reader(batch_rows)
    }
}

/// The transport that blocks take, or the error of one that was asked for and is not there.
fn choose_transport(
    crate_db: &CrateDb,
    cluster: &Cluster,
    key: &Key,
    control: &Control<'_>,
) -> Result<Chosen> {
    let wanted = crate_db.options.transport;
    if wanted == Transport::Http {
        return Ok(Chosen::Http("--transport http".to_owned()));
    }
    if wanted == Transport::Auto && *key == Key::None && crate_db.options.rejects.is_some() {
        return Ok(Chosen::Http(
            "without a key only HTTP tells which rows of a batch were refused".to_owned(),
        ));
    }
    match pg::open(&pg::server(&crate_db.server, cluster.tls.as_ref(), 0), control) {
        Ok(_) => Ok(Chosen::Pg),
        Err(error) if error.kind() == Kind::Cancelled || wanted == Transport::Pg => Err(error),
        Err(error) => {
            let port = crate_db.server.pg_port;
            Ok(Chosen::Http(format!("no PostgreSQL wire of CrateDB at port {port}: {}", error.what())))
        }
    }
}

/// Over the PostgreSQL wire it is not known which rows of a batch were there before. Of a table that holds
/// rows which cannot be distinguished from the load's, verification needs to know.
fn which_tells_rows(chosen: Chosen, record: &LoadRecord, key: &Key) -> Chosen {
    let needs = *key != Key::None && record.before.as_ref().is_some_and(|before| before.rows > 0);
    match chosen {
        Chosen::Pg if needs => {
            let reason = "to verify an append by the table's key, it has to be known which rows were there, which only HTTP tells";
            Chosen::Http(reason.to_owned())
        }
        chosen => chosen,
    }
}

/// Whether other loads have brought other rows of the same files since the load began, or before it, when it
/// did not sum them up.
fn is_shared(loads: &[LoadIntoTable], source: &dyn Source, mapping: &str, record: &LoadRecord) -> bool {
    // In the order in which they began.
    let own = loads.iter().position(|into| into.load.id == record.id);
    let (before, since) = loads.split_at(own.unwrap_or(0));
    let shares = |loads| sharing_files(loads, source, mapping, &record.id).next().is_some();
    shares(since) || record.before.is_none() && shares(before)
}
