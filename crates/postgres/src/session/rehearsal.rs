//! A load up to its first row, in a transaction that is never committed: a report of its effects, checked by
//! the server.

use sawmill_loader::{
    ColumnChanges, LoadOptions, LoadRecord, LoadState, Mode, Note, Portion, Remembered, Session, Target,
};
use sawmill_pgwire::Connection;
use sawmill_profile::format_counted;
use sawmill_source::{Control, Kind, Result, Source, columns_of_files};
use serde::Serialize;

use crate::session::PostgresSession;
use crate::table::catalogue::Link;
use crate::table::columns;
use crate::table::evolution::Evolution;
use crate::target::Postgres;

/// The effects that a load would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rehearsal {
    /// How the target was found.
    #[serde(rename = "standing")]
    pub state: LoadState,
    /// The table, with its schema.
    pub table: String,
    /// The statement that copies rows.
    pub copy: String,
    /// Units of the plan.
    pub units: u64,
    /// Units that earlier runs have committed.
    pub units_done: u64,
    /// Rows that would be loaded.
    pub rows: u64,
    /// The most bytes of encoded rows in memory.
    pub memory_bytes: u64,
    /// The route that rows would take, and why.
    #[serde(rename = "way")]
    pub route: String,
    /// Other notes.
    pub notes: Vec<Note>,
}

impl Rehearsal {
    /// Adds the effects for other files.
    fn add(&mut self, other: Self) {
        if other.state == LoadState::Resumed {
            self.state = LoadState::Resumed;
        }
        self.units += other.units;
        self.units_done += other.units_done;
        self.rows += other.rows;
        self.notes.extend(other.notes);
    }
}

impl Postgres {
    /// Does everything that a load does before its first row, and rolls it back.
    ///
    /// # Errors
    /// As a load's before its first row.
    pub fn rehearse(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Rehearsal> {
        // Rows in the table are not summed for a load that does not run.
        let options = LoadOptions { verify: false, ..options.clone() };
        let Some(remembered) = self.remember(source, &options, true, control)? else {
            return self.rehearse_files(source, &options, control);
        };
        let Remembered { already, unfinished, replaced, new, mut notes, .. } = remembered;
        let added = source.files().len() - already.len() - replaced.len();
        let (added, already) = (format_counted(added as u64, "new file"), already.len());
        notes.insert(0, Note::Remark(format!("{added}, {already} already loaded")));
        let named = replaced.iter().filter_map(|file| source.files().get(*file as usize));
        notes.extend(named.map(|file| Note::Remark(format!("the rows of {} are replaced", file.name))));
        let mut portions = unfinished.into_iter().chain(Some(new)).filter(|files| !files.is_empty());
        let first = portions.next();
        let none_left = first.is_none();
        // Without files left, the rehearsal reports only the table's state.
        let first = Portion::new(source, first.unwrap_or_default());
        let mut whole = self.rehearse_files(&first, &options, control)?;
        for files in portions {
            whole.add(self.rehearse_files(&Portion::new(source, files), &options, control)?);
        }
        if none_left && replaced.is_empty() {
            whole.state = LoadState::Complete;
        }
        let replaced = Portion::new(source, replaced);
        whole.rows += replaced.rows();
        whole.units += replaced.plan(options.unit_rows).iter().map(Vec::len).sum::<usize>() as u64;
        notes.append(&mut whole.notes);
        Ok(Rehearsal { notes, ..whole })
    }

    /// How values would be converted for columns of the table with other types than the files', one line each. `None`
    /// if the load makes its table.
    ///
    /// # Errors
    /// Columns that do not fit; no connection.
    pub fn planned_conversions(
        &self,
        source: &dyn Source,
        changes: Option<&ColumnChanges>,
        control: &Control<'_>,
    ) -> Result<Option<Vec<String>>> {
        if self.mode.makes_the_table() {
            return Ok(None);
        }
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        let found = self.find(link)?;
        let mut existing = columns::read(link, found.oid)?;
        self.fill_merged_time(&mut existing);
        let table = self.table.within(&found.schema);
        let schema = self.renamed(source.schema(), &existing, &table)?;
        let Some(changes) = changes else {
            let matched = self.matched(&columns::names_of(&schema), &schema, &existing, &table)?;
            return Ok(Some(columns::conversions(&schema, &matched)));
        };
        // Columns that change are not compared.
        existing.iter_mut().for_each(|column| column.not_null = false);
        existing.retain(|column| changes.widened.iter().all(|widened| widened.name != column.name));
        let names = schema.fields().iter().map(|field| field.name());
        let names: Vec<String> =
            names.filter(|name| existing.iter().any(|column| column.name == **name)).cloned().collect();
        let columns = columns::matched_of(&names, &schema, &existing, &table, &self.values)?;
        Ok(Some(columns::conversions(&schema, &columns)))
    }

    /// The changes a load would make for columns by which its new files and the table differ, and its
    /// statement. `None` if it may change nothing.
    ///
    /// # Errors
    /// Columns that may not be changed as the files need it; no connection.
    pub fn planned_changes(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<(ColumnChanges, Option<String>)>> {
        if !self.evolves() {
            return Ok(None);
        }
        let new = self.new_files(source, options, control)?;
        let (table, existing) = match self.table_and_columns(control) {
            // The load makes the table.
            Err(error) if error.kind() == Kind::Schema && self.on_conflict.is_history() => return Ok(None),
            found => found?,
        };
        let files = columns_of_files(&new);
        let evolution = match new.files().is_empty() {
            true => return Ok(Some((ColumnChanges::default(), None))),
            false => Evolution::new((self, &new, &table), &files, &existing)?,
        };
        let statement = evolution.statement()?;
        Ok(Some((evolution.changes, statement)))
    }

    /// The files whose rows a load would send. Without an answer from the server these are all, if the load makes its table.
    ///
    /// # Errors
    /// No connection, for a load into a table that exists; files that the load refuses.
    pub fn files_left<'s>(
        &self,
        source: &'s dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Portion<'s>> {
        let all = || Portion::new(source, (0..source.files().len() as u32).collect());
        if self.mode != Mode::Create || self.several.is_some() {
            return self.new_files(source, options, control);
        }
        // Only records can say that nothing is left to do.
        let is_made =
            |loads: Vec<LoadRecord>| loads.iter().any(|load| load.complete && load.made_the_table());
        match self.loads_here(options, control).map(is_made) {
            Err(error) if error.kind() == Kind::Connection => Ok(all()),
            Ok(true) if self.rehearse_files(source, options, control)?.state == LoadState::Complete => {
                Ok(Portion::new(source, Vec::new()))
            }
            is_made => is_made.map(|_| all()),
        }
    }

    /// The files that an append would load: those that no earlier load holds, or not with their content of now.
    pub(crate) fn new_files<'s>(
        &self,
        source: &'s dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Portion<'s>> {
        // Rows in the table are not summed for a load that does not run.
        let options = LoadOptions { verify: false, ..options.clone() };
        let remembered = self.remember(source, &options, true, control)?;
        let Some(Remembered { unfinished, replaced, new, .. }) = remembered else {
            return Ok(Portion::new(source, (0..source.files().len() as u32).collect()));
        };
        Ok(Portion::new(source, unfinished.into_iter().flatten().chain(replaced).chain(new).collect()))
    }

    fn rehearse_files(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Rehearsal> {
        let prepare = || PostgresSession::prepare(self, source, options, true, control);
        let session = self.retried(options.retries, control, prepare)?;
        let source = session.source().unwrap_or(source);
        let units: Vec<_> = source.plan(session.unit_rows()).into_iter().flatten().collect();
        let left = match session.state() {
            LoadState::Complete => Vec::new(),
            _ => units.iter().filter(|unit| !session.done().contains_key(&unit.key)).collect(),
        };
        let mut notes = session.notes();
        if !self.mode.makes_the_table() {
            let conversions = columns::conversions(source.schema(), &session.columns);
            notes.extend(conversions.into_iter().map(Note::Remark));
        }
        Ok(Rehearsal {
            state: session.state(),
            table: session.table.to_string(),
            copy: session.plan.copy.clone(),
            units: units.len() as u64,
            units_done: (units.len() - left.len()) as u64,
            rows: left.iter().map(|unit| unit.rows).sum(),
            memory_bytes: options.block_memory(),
            route: session.route.to_string(),
            notes,
        })
    }
}
