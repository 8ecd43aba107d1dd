//! The history of a table: loads that earlier runs recorded, as an append looks them up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sawmill_loader::{
    BatchEncoder, Encoding, Found, History, LoadOptions, LoadRecord, Loads, Mode, Note, Portion,
    RecordedFiles, RecordedUnit, Remembered, Tally, Target, Verification, load_id, refuse_changed, remember,
};
use sawmill_profile::{format_counted, format_grouped};
use sawmill_source::{Control, Error, Kind, Mapping, Result, Source, UnitKey};

use crate::CrateDb;
use crate::connect::client::{Client, Cluster};
use crate::encode::encoder::{CrateEncoder, EncodePlan, file_hash, refused};
use crate::records::checkpoint::{Checkpoints, LoadRow, Records, by_time};
use crate::records::shape::Shape;
use crate::records::void;
use crate::session::prepare::{loaded_with_other_options, rows_missing};
use crate::table::columns::{Column, Key, Plan, Purpose};
use crate::table::names::CrateTable;
use crate::verify::rows::{OfFiles, ReadBack};

impl CrateDb {
    /// The ID under which a load of this source is recorded.
    pub(crate) fn id_of(&self, source: &dyn Source, table: &CrateTable, key: &Key) -> String {
        let mapping = format!("{}{key:?}{:?}", source.facts().arrangement(), self.options.by_position);
        let mode = if self.replaces { "replacement" } else { self.mode.name() };
        load_id(source.files(), &mapping, &table.to_string(), mode)
    }

    /// Looks up the source's files in the records of an append; `None` without any.
    pub(crate) fn remember(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        if self.mode != Mode::Append {
            return Ok(None);
        }
        let table = self.table()?;
        let cluster = Cluster::new(&self.server, options.patience, options.retries)?;
        let mut client = Client::new(&cluster);
        let sql = &mut client.on(control);
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        if !checkpoints.on(sql).exist()? {
            return Ok(None);
        }
        let purpose = if self.evolves() { Purpose::Follow } else { Purpose::Write };
        let (plan, primary) = self.existing_plan(source, &table, purpose, sql)?;
        let mut records = checkpoints.on(sql);
        records.create()?;
        let loads = records.of_table(&table.to_string())?;
        if !source.facts().whole_files {
            let here: Vec<&LoadRecord> = loads.iter().map(|row| &row.load).collect();
            let place = || format!("table {table}, {}", cluster.server);
            return refuse_changed(source, &here, options).map(|()| None).map_err(|error| error.at(place()));
        }
        if loads.is_empty() {
            return Ok(None);
        }
        let begun = self
            .replacements_begun(&loads, source, (&table, &plan.key), options)
            .map_err(|error| error.at(format!("table {table}, {}", cluster.server)))?;
        let others = (0..source.files().len() as u32).filter(|place| !begun.contains(place)).collect();
        let others = Others { begun, others };
        let portion = Portion::new(source, others.others.clone());
        let source: &dyn Source = if others.begun.is_empty() { source } else { &portion };
        if source.files().is_empty() && !others.begun.is_empty() {
            return Ok(others.with(None));
        }
        let history = TableHistory {
            crate_db: self,
            source,
            options,
            control,
            cluster: &cluster,
            client: RefCell::new(client),
            checkpoints: &checkpoints,
            table: &table,
            plan: &plan,
            primary: &primary,
            loads: &loads,
            replacing: !others.begun.is_empty(),
            rows: Cell::new(0),
        };
        let known = loads.iter().map(|row| &row.load).filter(|load| load.complete || !load.facts.replaces);
        let mapping = self.mapping_of_files(source);
        let known = Loads::new(known, &mapping, |_| true);
        let remembered = remember(&history, known, &mapping, source, options, control)?;
        Ok(if others.begun.is_empty() { remembered } else { others.with(remembered) })
    }

    /// The files whose rows an earlier run began to replace, by their places: they are replaced again, whatever content
    /// they have now.
    ///
    /// # Errors
    /// A replacement that this load does not begin again.
    fn replacements_begun(
        &self,
        loads: &[LoadRow],
        source: &dyn Source,
        (table, key): (&CrateTable, &Key),
        options: &LoadOptions,
    ) -> Result<BTreeSet<u32>> {
        let again = Self { replaces: true, ..self.clone() };
        let same = |place: &u32, id: &str| {
            again.id_of(&Portion::new(source, vec![*place]), table, key) == id && options.replace_changed
        };
        let begun = loads.iter().filter(|row| !row.load.complete && row.load.facts.replaces);
        let place = |row: &LoadRow| {
            let place = (0..source.files().len() as u32).find(|place| same(place, &row.load.id));
            place.filter(|_| self.file_column.is_some()).ok_or_else(|| {
                let name = row.load.files.names.join(", ");
                let what = format!("the replacement of the rows of {name} is not finished: it was interrupted, or runs");
                Error::new(Kind::Exists, what).advise(
                    "load this file with --changed replace and the options that it began with, which replaces them again; \
                     without the file, sawmill load forget removes the table's records: then load all into a new table",
                )
            })
        };
        begun.map(place).collect()
    }
}

/// The files of a source by their places: those whose rows are replaced again, and all others, in order.
struct Others {
    begun: BTreeSet<u32>,
    others: Vec<u32>,
}

impl Others {
    /// What is known of the others, with the places that they have in the source.
    fn with(self, remembered: Option<Remembered>) -> Option<Remembered> {
        let new = (0..self.others.len() as u32).collect();
        let mut all = remembered.unwrap_or_else(|| Remembered { new, ..Remembered::default() });
        let place = |of: &mut u32| *of = self.others.get(*of as usize).copied().unwrap_or(*of);
        all.already.iter_mut().for_each(|already| place(&mut already.file));
        all.unfinished.iter_mut().flatten().chain(&mut all.new).chain(&mut all.replaced).for_each(place);
        all.replaced.extend(self.begun);
        Some(all)
    }
}

/// The history of a table that a source is appended to.
struct TableHistory<'r> {
    crate_db: &'r CrateDb,
    source: &'r dyn Source,
    options: &'r LoadOptions,
    control: &'r Control<'r>,
    cluster: &'r Arc<Cluster>,
    client: RefCell<Client>,
    checkpoints: &'r Checkpoints,
    table: &'r CrateTable,
    plan: &'r Plan,
    primary: &'r [String],
    /// All loads into the table, in the order in which they began.
    loads: &'r [LoadRow],
    /// An earlier run has begun to replace rows, so that the table may lack some.
    replacing: bool,
    /// The table's rows, once they are counted.
    rows: Cell<u64>,
}

impl History for TableHistory<'_> {
    fn id_of(&self, files: &dyn Source) -> String {
        self.crate_db.id_of(files, self.table, &self.plan.key)
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.cluster.server)
    }

    /// With a key, a load with further files does not get in the way: the server finds the rows that it has inserted.
    fn comes_first(&self, load: &LoadRecord) -> bool {
        let is_named = |name: &String| self.source.files().iter().any(|file| file.name == *name);
        load.mode == Mode::Append.name()
            && (self.plan.key == Key::None || load.files.names.iter().all(is_named))
    }

    fn replaces_unfinished(&self) -> bool {
        self.crate_db.file_column.is_some()
    }

    fn stores_rows_once(&self) -> bool {
        !matches!(self.plan.key, Key::Tags(_) | Key::None)
    }

    fn holds_nothing(&self, load: &LoadRecord) -> Result<bool> {
        let Some(row) = self.row_of(load) else { return Ok(false) };
        let mut client = self.client.borrow_mut();
        void::holds_nothing(row, true, (self.table, self.checkpoints), &mut client.on(self.control))
    }

    /// Refuses files whose rows are in the table in another form, and a table that has lost rows.
    fn check(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        let shape = Shape::new(&self.crate_db.options, self.plan, None);
        for Found { file, load, .. } in found {
            if let Some(differs) = self.row_of(load).and_then(|row| shape.differs_from(&row.shape)) {
                let name = self.source.files().get(*file as usize).map_or("", |file| file.name.as_str());
                return Err(loaded_with_other_options(&differs).at(format!("{name}, {}", self.place())));
            }
        }
        self.rows.set(self.client.borrow_mut().on(self.control).count(self.table)?);
        self.refuse_fewer(remembered)
    }

    fn units(&self, load: &LoadRecord) -> Result<HashMap<UnitKey, RecordedUnit>> {
        let mut client = self.client.borrow_mut();
        let units = self.checkpoints.on(&mut client.on(self.control)).units(&load.id)?;
        Ok(units.into_iter().map(|(key, unit)| (key, unit.rows)).collect())
    }

    fn encoding<'e>(
        &'e self,
        load: &LoadRecord,
        portion: &Portion<'_>,
        units: &BTreeMap<UnitKey, RecordedUnit>,
    ) -> Result<Option<Encoding<'e>>> {
        let Some(columns) = self.columns_of(load) else { return Ok(None) };
        let width = columns.len();
        let plan = Plan { columns, ..self.plan.clone() };
        let encode = EncodePlan::new(&self.crate_db.options, portion, self.options.batch_bytes, plan);
        let leave_out = units.values().any(|unit| unit.rejected > 0);
        let encode = Arc::new(EncodePlan { leave_out, refused: refused(units.iter()), ..encode });
        let encoder =
            move || -> Result<Box<dyn BatchEncoder>> { Ok(Box::new(CrateEncoder::new(Arc::clone(&encode)))) };
        Ok(Some(Encoding { columns: width, encoders: Box::new(encoder) }))
    }

    fn set_stamps(&self, load: &LoadRecord, stamped: &RecordedFiles) -> Result<()> {
        let mut client = self.client.borrow_mut();
        self.checkpoints.on(&mut client.on(self.control)).set_stamps(&load.id, stamped)
    }

    fn compare(&self, remembered: &Remembered) -> Result<std::result::Result<Verification, Note>> {
        let now = self.plan.filled();
        if self.loads.iter().any(|row| !row.filled().is_empty() && row.filled() != now) {
            return Ok(Err(Note::other_columns()));
        }
        let (expected, read) = match &self.plan.key {
            Key::Row(column) => {
                let named: Vec<_> = (remembered.already.iter())
                    .filter_map(|already| self.source.files().get(already.file as usize))
                    .collect();
                let others = self.loads.iter();
                let others = others.filter(|row| !self.is_of_same_rows(row) || row.load.mixes_files());
                let shared: BTreeSet<&String> = others.flat_map(|row| &row.load.files.names).collect();
                if named.iter().any(|file| shared.contains(&file.name)) {
                    return Ok(Err(Note::other_rows()));
                }
                let hashes = named.into_iter().map(file_hash);
                let files = remembered.loaded(self.plan.columns.len());
                (files, self.read_back(Some(OfFiles::new(column, hashes))))
            }
            Key::Own(_) | Key::Tags(_) | Key::None => {
                let mut client = self.client.borrow_mut();
                let mapping = self.crate_db.mapping_of_files(self.source);
                let sql = &mut client.on(self.control);
                let records = &mut self.checkpoints.on(sql);
                match brought(self.loads, (&mapping, &now), self.rows.get(), records)? {
                    Some(expected) => (expected, self.read_back(None)),
                    None => return Ok(Err(Note::other_rows())),
                }
            }
        };
        let found = read.run(&mut self.client.borrow_mut().on(self.control))?;
        let rows_of_others = self.rows.get().saturating_sub(found.rows);
        Ok(Ok(Verification { rows_of_others, ..Verification::new(now, expected, found) }))
    }
}

impl TableHistory<'_> {
    fn row_of(&self, load: &LoadRecord) -> Option<&LoadRow> {
        self.loads.iter().find(|row| row.load.id == load.id)
    }

    /// Whether a load covered the same rows and columns of its files.
    fn is_of_same_rows(&self, row: &LoadRow) -> bool {
        row.load.takes(&self.crate_db.mapping_of_files(self.source))
    }

    /// Compares the table's count with the one at the end of the last load into it.
    fn refuse_fewer(&self, remembered: &mut Remembered) -> Result<()> {
        let complete = self.loads.iter().filter(|row| row.load.complete);
        let last = complete.max_by_key(|row| row.completed.as_deref().map(by_time));
        let (rows, at_end) = (self.rows.get(), last.map_or(0, |last| last.rows));
        if rows >= at_end || self.replacing {
            return Ok(());
        }
        let (has, at_end) = (format_counted(rows, "row"), format_grouped(at_end));
        let what = format!("the table has {has}; it had {at_end} when the last load into it was complete");
        if rows > 0 && remembered.has_work() {
            remembered.notes.push(Note::Missing(what));
            return Ok(());
        }
        Err(Error::new(Kind::Changed, what).at(self.place()).advise(rows_missing(&self.plan.key)))
    }

    /// The columns that a load fills, as this source has them; `None` if it lacks one.
    fn columns_of(&self, load: &LoadRecord) -> Option<Arc<Vec<Column>>> {
        if load.facts.filled.is_empty() {
            return Some(Arc::clone(&self.plan.columns));
        }
        let column = |name: &String| self.plan.columns.iter().find(|column| column.name == *name).cloned();
        load.facts.filled.iter().map(column).collect::<Option<Vec<_>>>().map(Arc::new)
    }

    fn read_back(&self, of_files: Option<OfFiles>) -> ReadBack<'_> {
        ReadBack { of_files, ..ReadBack::new(self.table, self.plan, self.primary) }
    }
}

/// The sum of what all loads into a table of `rows` rows have brought, if that is all of it. A load may have found rows
/// that another one had brought.
pub(crate) fn brought(
    loads: &[LoadRow],
    (mapping, filled): (&Mapping, &[String]),
    rows: u64,
    records: &mut Records<'_>,
) -> Result<Option<Tally>> {
    let (mut all, mut found) = (Tally::empty(filled.len()), Tally::empty(filled.len()));
    for row in loads {
        if !row.load.takes(mapping) || !row.filled().is_empty() && row.filled() != filled {
            return Ok(None);
        }
        for unit in records.units(&row.load.id)?.values() {
            all.add(&unit.rows.tally);
            unit.there_before.iter().for_each(|rows| found.add(rows));
        }
    }
    let new = all.minus(&found);
    Ok([all, new].into_iter().find(|sum| sum.rows == rows))
}

/// The loads with other rows or columns of the same files, which therefore share row keys with this one.
pub(crate) fn sharing_files<'l>(
    loads: &'l [LoadRow],
    source: &'l dyn Source,
    mapping: &'l Mapping,
    id: &'l str,
) -> impl Iterator<Item = &'l LoadRow> {
    let named = |(name, fingerprint): (&String, &String)| {
        source.files().iter().any(|file| file.name == *name && file.fingerprint == *fingerprint)
    };
    loads.iter().filter(move |LoadRow { load, .. }| {
        load.id != id
            && !load.takes(mapping)
            && load.files.names.iter().zip(&load.files.fingerprints).any(named)
    })
}
