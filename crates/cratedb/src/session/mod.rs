//! A load into a CrateDB table: found or made, written, checked, put in its place.

mod counting;
mod equal_rows;
mod placing;
pub(crate) mod prepare;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_loader::{
    BatchEncoder, Encoders, LoadOptions, LoadState, Mode, Note, RecordedFiles, Session, Tally, UnitWriter,
    Verification,
};
use sawmill_profile::format_grouped;
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::connect::client::{Client, Cluster};
use crate::connect::pg;
use crate::encode::bodies::Bodies;
use crate::encode::encoder::{CrateEncoder, EncodePlan, file_hash, longest_row};
use crate::encode::unnest;
use crate::options::{LongText, Transport};
use crate::records::checkpoint::{Checkpoints, LoadIntoTable, LoadRecord, State};
use crate::records::lease::{Lease, lease_name};
use crate::records::remembered::sharing_files;
use crate::records::shape::Shape;
use crate::session::prepare::{Preparing, choose_key, not_summed_up};
use crate::table::catalogue;
use crate::table::columns;
use crate::table::columns::{Key, LONGEST_TEXT, Plan};
use crate::table::ddl;
use crate::table::names::CrateTable;
use crate::target::CrateDb;
use crate::verify::read_back::{OfFiles, ReadBack, paging_key};
use crate::verify::table::encode_source;
use crate::verify::without_refused::WithoutRefused;
use crate::write::carried::{Carried, Chosen};
use crate::write::rejects::Rejects;
use crate::write::there_before::ThereBefore;
use crate::write::writer::{CrateWriter, WriterPlan};

/// An open load.
pub(crate) struct CrateSession<'a> {
    crate_db: &'a CrateDb,
    source: &'a dyn Source,
    options: &'a LoadOptions,
    cluster: Arc<Cluster>,
    table: CrateTable,
    /// Where rows are written.
    written: CrateTable,
    /// The primary key of the table.
    primary: Vec<String>,
    encode: Arc<EncodePlan>,
    bodies: Arc<Bodies>,
    writers: Arc<WriterPlan>,
    record: LoadRecord,
    state: LoadState,
    done: HashMap<UnitKey, Tally>,
    /// Rows of the units in [`done`](Self::done) that were refused; none where that was not recorded of all
    /// of them.
    refused: Option<Arc<BTreeMap<UnitKey, Tally>>>,
    /// Rows of the units in [`done`](Self::done) that were in the table before.
    there_before: Tally,
    /// Another load has brought other rows of the same files, and what it has brought was not summed up.
    shared: bool,
    chosen: Chosen,
    /// Rows of the table, when they were counted last.
    counted: Mutex<Option<u64>>,
    /// Rows of the source that were acknowledged in the end.
    loaded: AtomicU64,
}

impl<'a> CrateSession<'a> {
    pub(crate) fn prepare(
        crate_db: &'a CrateDb,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Self> {
        let table = crate_db.table()?;
        let other_way = match crate_db.mode {
            Mode::Truncate => {
                Some("load in mode replace, which puts a new table in the place of the old one")
            }
            Mode::Upsert => Some("load in mode append: rows whose key is there are left as they are"),
            _ => None,
        };
        if let Some(advice) = other_way {
            let what = format!("mode {} is for PostgreSQL", crate_db.mode.name());
            return Err(Error::new(Kind::Config, what).advise(advice));
        }
        let gathers = crate_db.mode != Mode::Append;
        // Reject unsupported sources before connecting.
        let natural = match gathers {
            true => {
                let columns = columns::natural(source.schema(), &crate_db.options, &table)?;
                let key = choose_key(crate_db, &table, source, None)?;
                ddl::create_table(&table, &columns, &key, &crate_db.options)?;
                Some((columns, key))
            }
            false => None,
        };
        let cluster = Cluster::new(&crate_db.server, options.patience)?;
        let mut client = Client::new(&cluster, false);
        let retries = options.retries;
        let (plan, primary) = match natural {
            Some((columns, key)) => {
                let longest = (crate_db.options.long_text == LongText::Error).then_some(LONGEST_TEXT);
                let primary = crate_db.primary_columns(&key, &columns)?;
                (Plan { columns, key, longest_text: longest }, primary)
            }
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
            true => Some(ddl::create_table(&table, &plan.columns, &plan.key, &crate_db.options)?),
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
        let units = match state {
            LoadState::New => HashMap::new(),
            _ => checkpoints.units(&mut client, &id, control)?,
        };
        let rejected: u64 = units.values().map(|unit| unit.rejected).sum();
        let refused = WithoutRefused::refused(units.iter());
        let mut there_before = Tally::empty(plan.columns.len());
        units.values().filter_map(|unit| unit.there_before.as_ref()).for_each(|rows| there_before.add(rows));
        let shared = match (&plan.key, state) {
            (Key::Row(_), LoadState::Resumed | LoadState::Complete) => {
                let loads = checkpoints.of_table(&mut client, &table.to_string(), control)?;
                is_shared(&loads, source, &mapping, &record)
            }
            _ => false,
        };
        let done = units.into_iter().map(|(key, unit)| (key, unit.tally)).collect();
        let written = if gathers && !placed { table.staging() } else { table.clone() };
        let chosen = match state {
            LoadState::Complete => Chosen::Http("no row was sent".to_owned()),
            _ => which_tells_rows(chosen?, &record, &plan.key),
        };
        let by_column = chosen == Chosen::Pg;
        let (first, repeat) = (head(&written, &plan, ""), head(&written, &plan, REPEAT));
        let encode = EncodePlan {
            rows: crate_db.options.request_rows(),
            bytes: options.batch_bytes.clamp(4096, CrateDb::MOST_BATCH_BYTES),
            longest_row: longest_row(repeat.len()),
            columns: by_column,
            leave_out: crate_db.options.rejects.is_some(),
            files: source.files().iter().map(file_hash).collect(),
            plan: plan.clone(),
        };
        let rejects = crate_db.options.rejects.as_deref().filter(|_| state != LoadState::Complete);
        let writers = WriterPlan {
            cluster: Arc::clone(&cluster),
            load_id: id,
            checkpoints,
            lease,
            table: written.clone(),
            first,
            repeat,
            unnest: by_column.then(|| {
                let statements = ["", REPEAT].map(|clause| {
                    // With a key, rows that are there are counted, and do not end the statement.
                    let clause = if plan.key == Key::None { clause } else { REPEAT };
                    unnest::insert(&written, &plan, clause)
                });
                (statements, unnest::parameter_types(&plan))
            }),
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
            rejected: AtomicU64::new(rejected),
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
            done,
            refused,
            there_before,
            shared,
            chosen,
            counted: Mutex::new(counted),
            loaded: AtomicU64::new(0),
        };
        session.cluster.table_is_known();
        if state == LoadState::Resumed {
            let recorded = session.done.values().map(|tally| tally.rows).sum();
            let at_end = false;
            session.count(&mut client, recorded, ("are recorded as loaded", at_end), control)?;
        }
        Ok(session)
    }

    fn read_back<'s>(&'s self, table: &'s CrateTable) -> ReadBack<'s> {
        ReadBack {
            cluster: &self.cluster,
            table,
            columns: &self.encode.plan.columns,
            of_files: self.own_rows(),
            key: paging_key(&self.encode.plan.key, &self.primary),
            retries: self.options.retries,
        }
    }

    /// How this load's rows are distinguished from others in the table: by the row key of an append.
    fn own_rows(&self) -> Option<OfFiles> {
        let (Mode::Append, Key::Row(column)) = (self.crate_db.mode, &self.encode.plan.key) else {
            return None;
        };
        Some(OfFiles::new(column, self.encode.files.iter().copied()))
    }
}

/// `1 row was`, `1,500 rows were`.
fn were(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing} was"),
        _ if thing.ends_with("ch") => format!("{} {thing}es were", format_grouped(count)),
        _ => format!("{} {thing}s were", format_grouped(count)),
    }
}

/// Advice for a load that cannot be finished.
const FORGET: &str = "forget this load (sawmill load forget) and start it again";

/// What makes a repeated row harmless.
const REPEAT: &str = " ON CONFLICT DO NOTHING";

/// The part of a request before the rows.
fn head(table: &CrateTable, plan: &Plan, clause: &str) -> Vec<u8> {
    let names = plan.inserted();
    let marks = vec!["?"; names.len()].join(",");
    let statement = format!("INSERT INTO {} ({}) VALUES ({marks}){clause}", table.quoted(), names.join(","));
    let mut head = b"{\"stmt\":".to_vec();
    crate::encode::json::write_text(statement.as_bytes(), &mut head);
    head.extend_from_slice(b",\"bulk_args\":[");
    head
}

/// The plan for a table that exists, and the columns of its primary key.
pub(super) fn existing_plan(
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

impl Session for CrateSession<'_> {
    fn state(&self) -> LoadState {
        self.state
    }

    fn unit_rows(&self) -> u64 {
        self.record.unit_rows
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.done
    }

    fn to_send_again(&self, total: &Tally, control: &Control<'_>) -> Result<Vec<UnitKey>> {
        self.with_equal_rows(total, control)
    }

    fn recorded_files(&self) -> &RecordedFiles {
        &self.record.files
    }

    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()> {
        let mut client = Client::new(&self.cluster, false);
        self.writers.checkpoints.set_stamps(&mut client, &self.writers.load_id, files, control)
    }

    fn starts_anew(&self) -> bool {
        self.crate_db.mode == Mode::Replace
    }

    fn columns(&self) -> usize {
        self.encode.plan.columns.len()
    }

    fn numbers_rows(&self) -> bool {
        true
    }

    fn summing_encoders<'e>(
        &'e self,
        _source: &dyn Source,
        _control: &Control<'_>,
    ) -> Result<Option<Box<Encoders<'e>>>> {
        if self.rejected() == 0 {
            return Ok(Some(Box::new(|| self.encoder())));
        }
        let Some(refused) = &self.refused else { return Ok(None) };
        let encode =
            Arc::new(EncodePlan { leave_out: true, columns: false, ..EncodePlan::clone(&self.encode) });
        Ok(Some(Box::new(move || Ok(Box::new(WithoutRefused::new(&encode, &self.bodies, refused))))))
    }

    fn can_verify(&self) -> bool {
        !self.shared
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        Ok(Box::new(CrateEncoder::new(Arc::clone(&self.encode), Arc::clone(&self.bodies))))
    }

    fn writer(&self, _control: &Control<'_>) -> Result<Box<dyn UnitWriter>> {
        Ok(Box::new(CrateWriter::new(Arc::clone(&self.writers))))
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        let mut target = self.read_back(&self.written).run(control)?;
        let row_key = matches!(self.encode.plan.key, Key::Row(_));
        let alone = self.crate_db.mode != Mode::Append || row_key && self.record.before.is_none();
        if !alone {
            target = target.minus(&self.before_without_ours()?);
        }
        let columns = self.encode.plan.columns.iter().map(|column| column.name.clone()).collect();
        let mut verification = Verification::new(columns, expected.clone(), target);
        if !verification.matches() && !alone && !self.writers.before.is_counted() {
            return Err(self
                .error(
                    Kind::Mismatch,
                    "cannot be verified: an earlier run was broken off, and of some rows that it may have sent it is not known \
                     whether they were in the table before",
                )
                .advise("compare the whole table with all that should be in it (sawmill verify)"));
        }
        // Which columns differ is known for a table that holds nothing else, and when all rows went in.
        if !verification.matches() && alone && self.rejected() == 0 {
            let unit_rows = self.record.unit_rows;
            let source = encode_source(self.source, &self.encode, self.options, unit_rows, true, control)?;
            let target = self.read_back(&self.written).sums(true, control)?;
            verification.differing = source.differing(&target, &self.encode.plan.columns);
        }
        verification.into_result(&format!("table {}, {}", self.table, self.cluster.server))
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        let mut client = Client::new(&self.cluster, false);
        let checkpoints = &self.writers.checkpoints;
        let id = &self.writers.load_id;
        self.writers.lease.confirm(&mut client, control)?;
        let rows = self.count_all(&mut client, total, control)?;
        self.loaded.store(total.rows, Relaxed);
        if self.written != self.table {
            checkpoints.set_state(&mut client, id, State::Placing, rows, total, control)?;
            self.place(&mut client, control)?;
        }
        if self.writers.gathers {
            checkpoints.delete_others(&mut client, &self.table.to_string(), id, control)?;
        }
        checkpoints.set_state(&mut client, id, State::Complete, rows, total, control)
    }

    fn counted(&self) -> Option<u64> {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn there_before(&self) -> u64 {
        self.writers.before.rows()
    }

    fn rejected(&self) -> u64 {
        self.writers.rejected.load(Relaxed)
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> =
            self.writers.carried.report(&self.chosen).into_iter().map(Note::from).collect();
        let mut count = |number: u64, thing: &str, what: &str| {
            if number > 0 {
                notes.push(format!("{} {what}", were(number, thing)).into());
            }
        };
        count(self.writers.retried.load(Relaxed), "request", "tried again");
        count(self.writers.redone.load(Relaxed), "batch", "redone over HTTP");
        notes.extend(self.note_of_rejected());
        // Rows of one load have their row keys each by itself.
        let since = match &self.encode.plan.key {
            Key::Own(_) => "already (of another load, or equal rows of this one)",
            Key::Row(_) | Key::None => "before",
        };
        match (self.writers.before.rows(), self.writers.before.is_counted()) {
            (0, true) => {}
            (rows, true) => notes.push(Note::Remark(format!(
                "{} in the table {since}, by their keys and with the same values, and not added",
                were(rows, "row")
            ))),
            (rows, false) => notes.push(Note::Remark(format!(
                "at least {} in the table {since}, by their keys and with the same values; others were there when they were \
                 sent again",
                were(rows, "row")
            ))),
        }
        notes.extend(self.sent_twice(self.loaded.load(Relaxed)).map(Note::from));
        if self.shared && self.options.verify {
            notes.push(
                "not verified: another load has brought other rows or columns of the same files (sawmill verify compares whole \
                 tables)"
                    .to_owned()
                    .into(),
            );
        }
        notes
    }
}

impl CrateSession<'_> {
    /// How many rows were rejected, and where they are now.
    fn note_of_rejected(&self) -> Option<Note> {
        let rows = self.rejected();
        let what = match &self.crate_db.options.rejects {
            _ if rows == 0 => return None,
            Some(file) if file.exists() => format!("{} rejected, see {}", were(rows, "row"), file.display()),
            Some(file) => format!("{} rejected, and {} is gone", were(rows, "row"), file.display()),
            None => format!("{} rejected, see the file that --rejects named then", were(rows, "row")),
        };
        Some(Note::Rejected(what))
    }

    /// What the table held before this load of rows that are not this load's, too.
    fn before_without_ours(&self) -> Result<Tally> {
        let place = format!("table {}", self.table);
        let Some(before) = &self.record.before else { return Err(not_summed_up(&place)) };
        match self.writers.before.tally() {
            Some(ours) => Ok(before.minus(&self.there_before).minus(&ours)),
            None => Err(self
                .error(
                    Kind::Mismatch,
                    "cannot be verified: of some rows whose key was there it is not known whether they were there before",
                )
                .advise("run sawmill verify, or load with --transport http")),
        }
    }

    fn error(&self, kind: Kind, what: impl Into<String>) -> Error {
        Error::new(kind, what).at(format!("table {}, {}", self.table, self.cluster.server))
    }
}
