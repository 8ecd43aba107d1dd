//! Sends units, and accounts for each of their rows.
//!
//! A block is sent as a whole. The server's answer decides what comes next:
//!
//! | answer | then |
//! |---|---|
//! | 200 | each row's result is read; a refusal without a reason is asked again alone |
//! | 400, 413 | the rows are sent in halves, down to the one that is at fault |
//! | 429, 502-504, 4040; 4041 and 4045 of a server that restarts | the same again after a pause |
//! | none, and not all was sent | the same again |
//! | none, but all was sent | with a key, the same again with `ON CONFLICT DO NOTHING`; with tags, the rows are counted, and sent again unless all are in; with neither the load ends, since some rows may be in |
//!
//! Small units go together in one batch, and are recorded together.
//!
//! Blocks of columns go over the PostgreSQL wire. If the count of inserted rows differs from the block's, or
//! anything else fails, the block's rows are sent once more over HTTP, which reports the reasons.

mod accounting;
mod batch;
mod sending;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_profile::{WaitKind, wait};
use tokio_postgres::types::Type;

use crate::connect::client::{Client, Cluster};
use crate::connect::pg::PgInsert;
use crate::connect::sql::Sql;
use crate::encode::encoder::EncodePlan;
use crate::records::checkpoint::Checkpoints;
use crate::records::lease::Lease;
use crate::table::columns::Plan;
use crate::table::names::CrateTable;
use crate::tags::{Tagged, Tags};
use crate::verify::source::Place;
use crate::write::bulk::{Head, REPEAT, head};
use crate::write::carried::{ByTransport, Carried};
use crate::write::rejects::{Reject, Rejects};
use crate::write::there_before::ThereBefore;
use batch::{Batch, Together};
pub(crate) use batch::{shown_key, values_of};
use sawmill_loader::{Arrived, Block, Parcel, Parcels, Tally, UnitWriter, received};
use sawmill_source::{Control, Error, Kind, Result, SourceFile, Unit, UnitKey};

/// The state that all writers of a load share.
pub(crate) struct WriterPlan {
    pub cluster: Arc<Cluster>,
    pub load_id: String,
    pub checkpoints: Checkpoints,
    /// `None` if other runs need not be kept out.
    pub lease: Option<Lease>,
    /// The rows come from a statement: units are not recorded, and messages name partitions of its query.
    pub of_statement: bool,
    pub table: CrateTable,
    pub plan: Plan,
    /// Everything before the rows of a request, for the first time and for a repetition.
    pub first: Head,
    pub repeat: Head,
    /// The tags of requests, where rows are accounted for by them.
    pub tags: Option<Tags>,
    /// The statements of the PostgreSQL wire and the types of their parameters, where it is used.
    pub unnest: Option<([String; 2], Vec<Type>)>,
    /// An earlier run may have sent any row.
    pub resumed: bool,
    /// Rows gather in a table of this load's own.
    pub gathers: bool,
    /// Rows of the source that were in the table before.
    pub before: ThereBefore,
    /// Units that this run has sent rows of.
    pub begun: Mutex<HashSet<UnitKey>>,
    /// A row that was sent before was found with its values, in a table that gathers by its own primary key.
    /// It may be an equal row of the source.
    pub taken_as_sent: AtomicBool,
    /// Rows that are known to be equal to another row of the source, which is in the table.
    pub equal: Mutex<HashSet<Place>>,
    pub rejects: Option<Rejects>,
    pub max_rejects: u64,
    pub gzip: bool,
    /// Rows and bytes of a request.
    pub batch_rows: usize,
    pub batch_bytes: usize,
    /// Rows of a unit.
    pub unit_rows: u64,
    pub files: Vec<SourceFile>,
    /// Rows refused so far, including earlier runs.
    pub rejected: AtomicU64,
    /// Rows that the server has counted as inserted, one by one over HTTP.
    pub inserted: AtomicU64,
    /// Rows of requests that got no answer and cannot be repeated.
    pub unanswered: AtomicU64,
    /// Some rows may be in the table that the server has not counted: their request got no answer and was repeated
    /// by key.
    pub in_doubt: AtomicBool,
    pub retried: AtomicU64,
    pub redone: AtomicU64,
    pub carried: Carried,
    pub writers: AtomicU64,
}

impl WriterPlan {
    /// Checks that this run has not been replaced, as far as it has seen. If it could not signal for a while, it
    /// asks the server.
    ///
    /// # Errors
    /// Another run has taken over; no connection.
    pub(crate) fn check_lease(&self, sql: &mut Sql<'_>) -> Result<()> {
        match &self.lease {
            Some(lease) if lease.is_late() => lease.confirm(sql),
            Some(lease) => lease.check(),
            None => Ok(()),
        }
    }

    /// As [`check_lease`](Self::check_lease), but always asks the server.
    ///
    /// # Errors
    /// Another run has taken over; no connection.
    pub(crate) fn confirm_lease(&self, sql: &mut Sql<'_>) -> Result<()> {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.confirm(sql))
    }

    /// The plan of a first run whose rows go over HTTP straight into a table, and which records nothing.
    pub(crate) fn of_table(
        cluster: &Arc<Cluster>,
        table: &CrateTable,
        (plan, encode): (&Plan, &EncodePlan),
        checkpoints: Checkpoints,
    ) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            load_id: String::new(),
            checkpoints,
            lease: None,
            of_statement: false,
            table: table.clone(),
            first: head(table, plan, ""),
            repeat: head(table, plan, REPEAT),
            tags: None,
            unnest: None,
            resumed: false,
            gathers: false,
            before: ThereBefore::none(plan.columns.len()),
            begun: Mutex::default(),
            taken_as_sent: AtomicBool::new(false),
            equal: Mutex::default(),
            rejects: None,
            max_rejects: 0,
            gzip: false,
            batch_rows: encode.rows,
            batch_bytes: encode.bytes,
            unit_rows: 0,
            files: Vec::new(),
            rejected: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            in_doubt: AtomicBool::new(false),
            retried: AtomicU64::new(0),
            redone: AtomicU64::new(0),
            carried: Carried::default(),
            writers: AtomicU64::new(0),
            plan: plan.clone(),
        }
    }

    /// Whether a row is known to differ from the stored row that has its key and values: the row was rejected
    /// before its unit was sent again, or a search of the source found equal rows.
    pub(crate) fn is_one_too_many(&self, place: &Place) -> bool {
        self.is_rejected(place) || self.equal.lock().unwrap_or_else(PoisonError::into_inner).contains(place)
    }

    /// Whether the file of rejected rows has this one.
    pub(crate) fn is_rejected(&self, (file, row_group, row): &Place) -> bool {
        let name = self.files.get(*file as usize).map_or("", |file| file.name.as_str());
        self.rejects.as_ref().is_some_and(|rejects| rejects.has(name, *row_group, *row))
    }
}

/// The part of a request after the rows.
const END: &[u8] = b"]}";

/// A connection that sends units.
pub(crate) struct CrateWriter {
    plan: Arc<WriterPlan>,
    client: Client,
    pg: Option<PgInsert>,
    /// The comment by which the server's list of jobs shows the statements of `pg`.
    pg_comment: String,
    /// Failures of the PostgreSQL wire in a row; after three this writer uses HTTP alone.
    pg_failures: u32,
    first_node: usize,
    /// Whether the number of rows of the current batch that were in the table before is known.
    numbered: bool,
    /// Accounts of units that are not recorded yet.
    accounts: HashMap<UnitKey, Account>,
    /// Rejected rows in them.
    rejecting: u64,
    /// Small units that wait to be sent together, and their sums.
    together: Together,
    waiting: Vec<(Unit, Tally)>,
    /// Units whose rows are in but that are not recorded yet.
    sent: Vec<(Unit, Tally)>,
}

/// The rows of a unit that were not plainly inserted.
#[derive(Debug, Default)]
struct Account {
    /// The unit's rows may have been sent before, by this load.
    sent_before: bool,
    /// Rejected rows, and the sum of the rejected rows that were sent.
    rejects: Vec<Reject>,
    lost: Tally,
    /// Rows that were in the table before.
    there_before: Tally,
    /// The requests that inserted its rows.
    tags: Vec<Tagged>,
    /// Its rows by transport.
    carried: ByTransport,
}

impl CrateWriter {
    pub(crate) fn new(plan: Arc<WriterPlan>) -> Self {
        let client = Client::of_rows(&plan.cluster, plan.gzip);
        let first_node = plan.writers.fetch_add(1, Relaxed) as usize;
        Self {
            client,
            pg: None,
            pg_comment: String::new(),
            pg_failures: 0,
            first_node,
            numbered: false,
            accounts: HashMap::new(),
            rejecting: 0,
            together: Together::default(),
            waiting: Vec::new(),
            sent: Vec::new(),
            plan,
        }
    }

    fn account_of(&mut self, unit: &Unit) -> &mut Account {
        self.accounts.entry(unit.key).or_default()
    }

    /// Begins a unit.
    pub(crate) fn begin(&mut self, unit: &Unit) {
        let first = self.plan.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(unit.key);
        let none = Tally::empty(self.plan.plan.columns.len());
        let sent_before = self.plan.resumed || !first;
        let account = Account { sent_before, lost: none.clone(), there_before: none, ..Account::default() };
        if let Some(earlier) = self.accounts.insert(unit.key, account) {
            self.rejecting -= earlier.rejects.len() as u64;
        }
    }

    /// A block of a unit, without the rows that cannot be represented.
    fn batch_of(&mut self, unit: &Unit, block: Block) -> Result<Batch> {
        let mut batch = Batch::new(unit, block)?;
        for (row, reason) in std::mem::take(&mut batch.marks.refused) {
            self.reject(unit, row, &reason, None, None)?;
        }
        Ok(batch)
    }

    /// Sends rows of a statement's unit, and returns when each of them is in.
    ///
    /// # Errors
    /// A row that the server refuses; no answer where rows cannot be repeated; no connection.
    pub(crate) fn push(&mut self, unit: &Unit, block: Block, control: &Control<'_>) -> Result<()> {
        let batch = self.batch_of(unit, block)?;
        self.send_batch(&batch, control)
    }

    /// Whether several such units fit one request.
    fn is_small(&self, batch: &Batch) -> bool {
        batch.rows() * 2 <= self.plan.batch_rows && batch.size() * 2 <= self.plan.batch_bytes
    }
}

impl UnitWriter for CrateWriter {
    fn committed(&mut self, key: UnitKey, control: &Control<'_>) -> Result<Option<Tally>> {
        let plan = Arc::clone(&self.plan);
        let unit = plan.checkpoints.on(&mut self.client.on(control)).unit(&plan.load_id, key)?;
        Ok(unit.map(|record| {
            if let Some(tags) = &plan.tags {
                tags.recorded().insert(record.unit, record.tags);
            }
            record.rows.tally
        }))
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        self.begin(unit);
        let (mut held, mut is_begun) = (None, false);
        let tally = loop {
            let parcel = {
                let _empty = wait(WaitKind::ChannelEmpty);
                received(parcels)
            };
            match parcel {
                Some(Parcel::Rows(block)) => {
                    let batch = self.batch_of(unit, block)?;
                    // Whether it is the unit's only one shows with the next parcel.
                    if self.is_small(&batch) && held.is_none() && !is_begun {
                        held = Some(batch);
                        continue;
                    }
                    is_begun = true;
                    for batch in held.take().iter().chain([&batch]) {
                        self.send_batch(batch, control)?;
                    }
                }
                Some(Parcel::End(tally)) => break tally,
                Some(Parcel::Failed(error)) => return Err(error),
                Some(Parcel::Unit(_)) => {
                    return Err(Error::new(Kind::Source, "a unit began before the last one ended"));
                }
                None => return Ok(None),
            }
        };
        match is_begun {
            true => self.record_with_others((*unit, tally), control).map(Some),
            false => self.wait_for_others((unit, tally), held, control).map(Some),
        }
    }

    fn close(&mut self, control: &Control<'_>) -> Result<Vec<Arrived>> {
        let mut arrived = if self.waiting.is_empty() { Vec::new() } else { self.send_together(control)? };
        if !self.sent.is_empty() {
            let sent = std::mem::take(&mut self.sent);
            arrived.extend(self.record(sent, control)?);
        }
        Ok(arrived)
    }
}
