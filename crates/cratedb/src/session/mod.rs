//! A load into a CrateDB table: found or made, written, checked, put in its place.

mod counting;
pub(crate) mod insertion;
mod opening;
mod placing;
mod planned;
pub(crate) mod prepare;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sawmill_loader::{
    BatchEncoder, ColumnChanges, Encoders, LoadFacts, LoadOptions, LoadState, Mode, Note, RecordedFiles,
    Session, Tally, UnitWriter, Verification,
};
use sawmill_profile::{format_grouped, turns};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::connect::client::{Client, Cluster};
use crate::encode::encoder::{CrateEncoder, EncodePlan, refused};
use crate::records::checkpoint::{LoadRow, State, UnitRecord};
use crate::table::columns::Key;
use crate::table::names::CrateTable;
use crate::target::CrateDb;
use crate::verify::rows::{OfFiles, ReadBack};
use crate::verify::source::encode_source;
use crate::write::carried::Chosen;
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
    writers: Arc<WriterPlan>,
    record: LoadRow,
    /// When this run began.
    started: Instant,
    state: LoadState,
    earlier: EarlierUnits,
    /// The rows of all loads where the record does not tell those of others, or why they cannot be told.
    of_all_loads: std::result::Result<Option<Tally>, Note>,
    chosen: Chosen,
    /// Rows of the table, when they were counted last.
    counted: Mutex<Option<u64>>,
    /// Rows of the source that were acknowledged in the end.
    loaded: AtomicU64,
    /// Rows that were found when first sent but had only appeared during the load, as the table's row count shows.
    since: AtomicU64,
    /// The table that gathers has the name under which late requests do not find it.
    sealed: AtomicBool,
    /// Rows that are equal to an earlier one of the files, as a verification has found.
    equal: AtomicU64,
    /// Rows of the file that were deleted for its new ones.
    replaced: u64,
}

impl CrateSession<'_> {
    fn read_back<'s>(&'s self, table: &'s CrateTable) -> ReadBack<'s> {
        ReadBack { of_files: self.own_rows(), ..ReadBack::new(table, &self.encode.plan, &self.primary) }
    }

    /// How this load's rows are distinguished from others in the table: by the row key of an append.
    fn own_rows(&self) -> Option<OfFiles> {
        let (Mode::Append, Key::Row(column)) = (self.crate_db.mode, &self.encode.plan.key) else {
            return None;
        };
        Some(OfFiles::new(column, self.encode.files.iter().copied()))
    }
}

/// The units that earlier runs of the load have inserted.
struct EarlierUnits {
    done: HashMap<UnitKey, Tally>,
    rejected: u64,
    /// The sums of their rows that were refused.
    refused: Arc<BTreeMap<UnitKey, Tally>>,
    /// Their rows that were in the table before.
    there_before: Tally,
}

impl EarlierUnits {
    fn new(units: HashMap<UnitKey, UnitRecord>, columns: usize) -> Self {
        let mut there_before = Tally::empty(columns);
        units.values().filter_map(|unit| unit.there_before.as_ref()).for_each(|rows| there_before.add(rows));
        Self {
            rejected: units.values().map(|unit| unit.rows.rejected).sum(),
            refused: refused(units.iter().map(|(key, unit)| (key, &unit.rows))),
            there_before,
            done: units.into_iter().map(|(key, unit)| (key, unit.rows.tally)).collect(),
        }
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

impl Session for CrateSession<'_> {
    fn state(&self) -> LoadState {
        self.state
    }

    fn unit_rows(&self) -> u64 {
        self.record.load.unit_rows
    }

    fn done(&self) -> &HashMap<UnitKey, Tally> {
        &self.earlier.done
    }

    fn to_send_again(&self, total: &Tally, control: &Control<'_>) -> Result<Vec<UnitKey>> {
        match &self.writers.tags {
            Some(tags) => self.not_as_recorded(tags, control),
            None => self.with_equal_rows(total, control),
        }
    }

    fn recorded_files(&self) -> &RecordedFiles {
        &self.record.load.files
    }

    fn record_stamps(&self, files: &RecordedFiles, control: &Control<'_>) -> Result<()> {
        let mut client = Client::new(&self.cluster);
        self.writers.checkpoints.on(&mut client.on(control)).set_stamps(&self.writers.load_id, files)
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
        let leave_out = self.encode.leave_out || self.rejected() > 0;
        let refused = Arc::clone(&self.earlier.refused);
        let encode =
            Arc::new(EncodePlan { leave_out, refused, columns: false, ..EncodePlan::clone(&self.encode) });
        Ok(Some(Box::new(move || Ok(Box::new(CrateEncoder::new(Arc::clone(&encode)))))))
    }

    fn can_verify(&self) -> bool {
        self.of_all_loads.is_ok()
    }

    fn encoder(&self) -> Result<Box<dyn BatchEncoder>> {
        Ok(Box::new(CrateEncoder::new(Arc::clone(&self.encode))))
    }

    fn writer(&self, _control: &Control<'_>) -> Result<Box<dyn UnitWriter>> {
        Ok(Box::new(CrateWriter::new(Arc::clone(&self.writers))))
    }

    fn verify(&self, expected: &Tally, control: &Control<'_>) -> Result<Verification> {
        let (table, mut client) = (self.gathered(), Client::new(&self.cluster));
        let sql = &mut client.on(control);
        let (mut target, mut expected) = (self.read_back(&table).run(sql)?, expected.clone());
        let row_key = matches!(self.encode.plan.key, Key::Row(_));
        let alone = self.crate_db.mode != Mode::Append || row_key && self.record.load.before.is_none();
        let rows_of_others = match alone {
            // Only the rows of these files were read.
            true if self.crate_db.mode == Mode::Append => sql.count(&table)?.saturating_sub(target.rows),
            true => 0,
            false => {
                let others;
                (expected, others) = self.with_rows_of_others((&expected, &target), control)?;
                target = target.minus(&others);
                others.rows
            }
        };
        let columns = self.encode.plan.filled();
        let mut verification =
            Verification { rows_of_others, ..Verification::new(columns, expected, target) };
        if !verification.matches() && !alone && !self.writers.before.is_counted() {
            return Err(self
                .error(
                    Kind::Mismatch,
                    "cannot be verified: an earlier run was broken off, and of some rows that it may have sent it is not known \
                     whether they were in the table before",
                )
                .advise("compare the whole table with all that should be in it (sawmill verify)"));
        }
        // The differing columns are only known if the table holds nothing else and all rows are in.
        if !verification.matches() && alone && self.rejected() == 0 {
            let unit_rows = self.record.load.unit_rows;
            let source = encode_source(self.source, &self.encode, self.options, unit_rows, true, control)?;
            let target = self.read_back(&table).sums(true, sql)?;
            let names = self.encode.plan.columns.iter().map(|column| &column.name);
            verification.differing = source.differing(&target, names);
        }
        verification.into_result(&format!("table {}, {}", self.table, self.cluster.server))
    }

    fn finish(&self, total: &Tally, control: &Control<'_>) -> Result<()> {
        let mut client = Client::new(&self.cluster);
        let sql = &mut client.on(control);
        let (checkpoints, id) = (&self.writers.checkpoints, &self.writers.load_id);
        if let Some(tags) = &self.writers.tags {
            return self.finish_tagged(tags, total, sql);
        }
        self.writers.confirm_lease(sql)?;
        let rows = self.count_all(total, sql)?;
        if self.crate_db.replaces {
            self.check_replaced(total, sql)?;
        }
        if self.crate_db.mode == Mode::Replace
            && self.state == LoadState::Resumed
            && self.written == self.table
            && !self.is_placed(total, sql)?
        {
            // The table that gathered the rows is gone, and has not replaced the other one.
            return Err(self.refuse_gone(sql)?);
        }
        self.loaded.store(total.rows, Relaxed);
        if self.written != self.table {
            let (placing, run) = (State::Placing, (total, &self.facts()));
            checkpoints.on(sql).set_state(id, placing, (rows, None), run)?;
            self.place(&self.written, total, sql)?;
        }
        let mut records = checkpoints.on(sql);
        if self.writers.gathers {
            records.delete_others(&self.table.to_string(), id)?;
        }
        records.set_state(id, State::Complete, (rows, None), (total, &self.facts()))
    }

    fn column_changes(&self) -> ColumnChanges {
        match self.state {
            LoadState::New => self.record.load.facts.columns.clone(),
            LoadState::Resumed | LoadState::Complete => ColumnChanges::default(),
        }
    }

    fn counted(&self) -> Option<u64> {
        *self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn there_before(&self) -> u64 {
        self.found_before().max(self.not_gained())
    }

    fn rejected(&self) -> u64 {
        self.writers.rejected.load(Relaxed)
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> =
            self.writers.carried.report(&self.chosen).into_iter().map(Note::from).collect();
        notes.extend(self.column_changes().lines().into_iter().map(Note::from));
        let mut count = |number: u64, thing: &str, what: &str| {
            if number > 0 {
                notes.push(format!("{} {what}", were(number, thing)).into());
            }
        };
        count(self.writers.retried.load(Relaxed), "request", "tried again");
        count(self.writers.redone.load(Relaxed), "batch", "redone over HTTP");
        notes.extend(self.note_of_rejected());
        // Within a load, each row has a unique row key.
        let since = match &self.encode.plan.key {
            Key::Own(_) => "already (of another load, or equal rows of this one)",
            Key::Row(_) | Key::Tags(_) | Key::None => "before",
        };
        match (self.found_before(), self.writers.before.is_counted()) {
            (0, true) => {}
            (0, false) => notes.push(Note::Remark(
                "some rows were in the table, with the same values, when they were sent again; whether another load had brought \
                 them is not known"
                    .to_owned(),
            )),
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
        match self.since.load(Relaxed) {
            0 => {}
            rows => notes.push(Note::Remark(format!(
                "{} in the table when they were sent first, and came while the load ran: a request arrived twice, or another \
                 program wrote them",
                were(rows, "row")
            ))),
        }
        match self.equal.load(Relaxed) {
            0 => {}
            rows => notes.push(Note::Remark(format!(
                "{} equal to an earlier one of the files under the primary key: the table has such rows once, and was verified \
                 with one of them",
                were(rows, "row")
            ))),
        }
        let loaded = self.loaded.load(Relaxed);
        notes
            .extend(self.sent_twice(loaded).into_iter().chain(self.note_of_replaced(loaded)).map(Note::from));
        notes.extend(self.of_all_loads.as_ref().err().cloned());
        notes
    }
}

impl CrateSession<'_> {
    /// How the load was run, up to now.
    fn facts(&self) -> LoadFacts {
        let facts = &self.record.load.facts;
        let run = turns::now().saturating_duration_since(self.started);
        facts.after(run, facts.columns.clone(), (self.options, self.source.files()))
    }

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

    fn error(&self, kind: Kind, what: impl Into<String>) -> Error {
        Error::new(kind, what).at(format!("table {}, {}", self.table, self.cluster.server))
    }
}
