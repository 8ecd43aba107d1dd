//! Decides what to do: start a load, finish an earlier one, nothing, or refuse.

use std::collections::HashSet;

use sawmill_loader::{EarlierLoad, LoadOptions, LoadState, Mode, RecordedFiles, Tally};
use sawmill_source::{Control, Error, Kind, Result, Source, SourceFile};

use crate::CrateDb;
use crate::connect::client::Client;
use crate::encode::encoder::file_hash;
use crate::records::checkpoint::{Checkpoints, LoadIntoTable, LoadRecord, State};
use crate::records::remembered::sharing_files;
use crate::records::shape::Shape;
use crate::table::catalogue;
use crate::table::columns::{Key, Plan};
use crate::table::ddl;
use crate::table::names::{CrateTable, quote};
use crate::verify::read_back::{OfFiles, ReadBack, paging_key};

/// The decision between new, resumed and complete.
pub(crate) struct Preparing<'p> {
    pub crate_db: &'p CrateDb,
    pub source: &'p dyn Source,
    pub options: &'p LoadOptions,
    pub control: &'p Control<'p>,
    pub client: &'p mut Client,
    pub checkpoints: &'p Checkpoints,
    pub table: &'p CrateTable,
    pub plan: &'p Plan,
    pub primary: &'p [String],
    pub id: &'p str,
    /// How the source's columns become those of the table: a hash.
    pub mapping: &'p str,
    /// What this load makes.
    pub shape: &'p Shape,
    /// Rows of the table, once they are counted.
    pub counted: Option<u64>,
    /// The table that gathered the rows of an unfinished load is in its place already.
    pub placed: bool,
}

impl Preparing<'_> {
    /// A table that gathers out of sight, and takes its name (or another's place) in the end.
    pub(crate) fn gather(&mut self) -> Result<(LoadRecord, LoadState)> {
        let (staging, sealed) = (self.table.staging(), self.table.sealed());
        let retries = self.options.retries;
        let record = self.checkpoints.find(self.client, self.id, self.control)?;
        let tables = [self.table, &staging, &sealed];
        let [table, mut gathered, is_sealed] =
            catalogue::which_exist(self.client, tables, retries, self.control)?;
        if is_sealed && !gathered {
            // A run was killed between the last audit and the table's final name.
            rename(self.client, &sealed, &staging, retries, self.control)?;
            gathered = true;
        }
        match (record, table) {
            (Some(record), true) if record.state == State::Complete => {
                let changed = record.files.changed(self.source.files());
                let rows = self.count(self.table)?;
                let differs = self.differs(&record);
                let untouched = rows == record.rows
                    && differs.is_none()
                    && !(self.options.again && self.crate_db.mode == Mode::Replace);
                match (changed.is_empty(), untouched, self.crate_db.mode) {
                    (true, true, _) => Ok((record, LoadState::Complete)),
                    (_, _, Mode::Replace) => self.start(gathered, &staging),
                    _ if differs.is_some() => {
                        let differs = differs.unwrap_or_default();
                        Err(self.exists(&format!("loaded from these files with other options: {differs}")))
                    }
                    (false, ..) => {
                        Err(self.exists(&format!("loaded from another content of {}", changed.join(", "))))
                    }
                    (true, false, _) => {
                        let at_end = record.rows;
                        Err(self.exists(&format!(
                            "with {rows} rows; it had {at_end} when this load was complete"
                        )))
                    }
                }
            }
            // It was put in its place and the word of it was lost.
            (Some(record), true) if record.state == State::Placing && !gathered => {
                self.refuse_changed(&record)?;
                self.refuse_other_options(&record)?;
                self.placed = true;
                Ok((record, LoadState::Resumed))
            }
            (Some(record), _) if record.state != State::Complete && gathered => {
                if self.crate_db.mode == Mode::Create && table {
                    return Err(self.exists("made by another program while the load ran"));
                }
                if self.differs(&record).is_some() && self.is_empty(&staging)? {
                    return self.start(gathered, &staging);
                }
                self.refuse_changed(&record)?;
                self.refuse_other_options(&record)?;
                Ok((record, LoadState::Resumed))
            }
            (_, true) if self.crate_db.mode == Mode::Create => Err(self.exists("not loaded by this command")),
            _ => self.start(gathered, &staging),
        }
    }

    fn start(&mut self, gathered: bool, staging: &CrateTable) -> Result<(LoadRecord, LoadState)> {
        if gathered {
            self.take_away(staging)?;
        }
        let record = self.record(None);
        self.write_record(&record)?;
        let create = ddl::create_table(staging, &self.plan.columns, &self.plan.key, &self.crate_db.options)?;
        // Run twice after a lost answer, it says that the table exists: that is well then.
        let create = create.replacen("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1);
        self.client.sql(&create, &[], self.options.retries, self.control)?;
        Ok((record, LoadState::New))
    }

    /// Drops the staging table of an earlier load, which no run works on, if it has no rows.
    fn take_away(&mut self, staging: &CrateTable) -> Result<()> {
        let loads = self.checkpoints.of_table(self.client, &self.table.to_string(), self.control)?;
        let begun =
            loads.into_iter().find(|into| !into.load.complete && into.load.mode != Mode::Append.name());
        if self.is_empty(staging)? {
            let drop = format!("DROP TABLE IF EXISTS {}", staging.quoted());
            self.client.sql(&drop, &[], self.options.retries, self.control)?;
            if let Some(begun) = begun {
                self.checkpoints.delete(self.client, "load_id", &begun.load.id, self.control)?;
            }
            return Ok(());
        }
        let same_files = begun.as_ref().filter(|into| {
            let names = self.source.files().iter().map(|file| &file.name);
            into.load.mode == self.crate_db.mode.name()
                && into.load.mapping.as_deref() == Some(self.mapping)
                && into.load.files.names.iter().eq(names)
        });
        let differs = same_files.and_then(|into| self.shape.differs_from(into.shape.as_ref()?));
        Err(self.unfinished(differs.as_deref(), begun.as_ref().map(|into| &into.load)))
    }

    fn is_empty(&self, table: &CrateTable) -> Result<bool> {
        let mut client = Client::new(&self.client.cluster, false);
        Ok(self.read_back(table).count(&mut client, self.control)? == 0)
    }

    /// How the options of a recorded load differ from those of this one.
    fn differs(&self, record: &LoadRecord) -> Option<String> {
        self.shape.differs_from(record.shape.as_ref()?)
    }

    fn refuse_other_options(&self, record: &LoadRecord) -> Result<()> {
        match self.differs(record) {
            None => Ok(()),
            Some(differs) => Err(self.unfinished(Some(&differs), None)),
        }
    }

    /// The error for rows of an unfinished load that this one cannot continue.
    fn unfinished(&self, differs: Option<&str>, begun: Option<&EarlierLoad>) -> Error {
        let what = match (differs, begun) {
            (Some(differs), _) => format!("an unfinished load of these files has other options: {differs}"),
            (None, Some(begun)) => format!(
                "a load into this table in mode {} with other files, columns or options is not finished: {} is there",
                begun.mode,
                self.table.staging()
            ),
            (None, None) => format!("{} is there, and no record says what it holds", self.table.staging()),
        };
        let forget = self.crate_db.forget_command(self.table);
        let advice = format!(
            "run the command with the earlier options to finish that load, or drop its rows with: {forget}"
        );
        Error::new(Kind::Exists, what).at(self.place()).advise(advice)
    }

    pub(crate) fn append(&mut self) -> Result<(LoadRecord, LoadState)> {
        let record = self.checkpoints.find(self.client, self.id, self.control)?;
        if let Some(record) = record {
            match (record.state == State::Complete, record.files.changed(self.source.files()).is_empty()) {
                (true, true) if !self.options.again => {
                    if let Some(differs) = self.differs(&record) {
                        return Err(loaded_with_other_options(&differs).at(self.place()));
                    }
                    self.refuse_fewer(&record)?;
                    return Ok((record, LoadState::Complete));
                }
                // Another content under the same name, after the first was loaded, is another load.
                (true, _) => {}
                (false, _) => {
                    self.refuse_changed(&record)?;
                    self.refuse_other_options(&record)?;
                    self.refuse_unverifiable(&record)?;
                    return Ok((record, LoadState::Resumed));
                }
            }
        }
        self.refuse_twice(Kind::Exists)?;
        let before = match self.options.verify {
            true => self.sum_up_before()?,
            false => None,
        };
        let rows = self.count(self.table)?;
        if rows == 0 && self.options.again {
            // What was recorded of the rows that are gone is gone, too.
            self.checkpoints.delete_others(self.client, &self.table.to_string(), self.id, self.control)?;
        }
        let record = LoadRecord { rows, ..self.record(before) };
        self.write_record(&record)?;
        // Of two loads that begin at once with the same file each sees the other by now.
        if let Err(error) = self.refuse_twice(Kind::Busy) {
            self.checkpoints.delete(self.client, "load_id", self.id, self.control)?;
            return Err(error);
        }
        Ok((record, LoadState::New))
    }

    /// What the table holds of rows that cannot be distinguished from the load's own: by their row keys all
    /// rows of other files can.
    fn sum_up_before(&mut self) -> Result<Option<Tally>> {
        let loads = self.checkpoints.of_table(self.client, &self.table.to_string(), self.control)?;
        let shares = sharing_files(&loads, self.source, self.mapping, self.id).next().is_some();
        let of_files = match &self.plan.key {
            Key::Row(_) if !shares => return Ok(None),
            Key::Row(column) => Some(OfFiles::new(column, self.source.files().iter().map(file_hash))),
            Key::Own(_) | Key::Tags(_) | Key::None => None,
        };
        let read = ReadBack { of_files, ..self.read_back(self.table) };
        read.run(self.control).map(Some)
    }

    /// Refuses to append a file without a key that another load into the table has brought, because that would
    /// duplicate its rows. With a key the server finds existing rows.
    fn refuse_twice(&mut self, kind: Kind) -> Result<()> {
        if self.plan.key != Key::None || self.options.again {
            return Ok(());
        }
        let loads = self.checkpoints.of_table(self.client, &self.table.to_string(), self.control)?;
        let others = loads.iter().filter(|LoadIntoTable { load, .. }| {
            load.id != self.id && load.mapping.as_deref() == Some(self.mapping)
        });
        let files = others
            .flat_map(|LoadIntoTable { load, .. }| load.files.names.iter().zip(&load.files.fingerprints));
        let recorded: HashSet<(&String, &String)> = files.collect();
        let is_recorded = |file: &&SourceFile| recorded.contains(&(&file.name, &file.fingerprint));
        let again: Vec<&str> =
            self.source.files().iter().filter(is_recorded).map(|file| file.name.as_str()).collect();
        let Some(first) = again.first() else { return Ok(()) };
        let others = match again.len() {
            1 => String::new(),
            count => format!(" and {} more files", count - 1),
        };
        let what = format!(
            "another load into this table has {first}{others}, and rows have no key: they would be duplicated"
        );
        Err(Error::new(kind, what).at(self.place()).advise(
            "leave these files out; or load all of them once more with --again; or give rows a key, by which those that are \
             there are found",
        ))
    }

    /// Refuses to call a load complete whose table has fewer rows than when it was.
    fn refuse_fewer(&mut self, record: &LoadRecord) -> Result<()> {
        let rows = self.count(self.table)?;
        if rows >= record.rows {
            return Ok(());
        }
        let at_end = record.rows;
        let what = format!("the table has {rows} rows; it had {at_end} when this load was complete");
        Err(Error::new(Kind::Changed, what).at(self.place()).advise(
            "load the files once more with --again (rows whose key is in the table are not added), or forget the load \
             (sawmill load forget) if the rows were deleted on purpose",
        ))
    }

    /// Refuses at the start what verification would find out at the end: that an earlier run of this append
    /// has not summed up what the table held before, or that it has left rows that will be there twice.
    fn refuse_unverifiable(&mut self, record: &LoadRecord) -> Result<()> {
        if !self.options.verify || matches!(self.plan.key, Key::Row(_)) {
            // Whether its rows can be distinguished from others is seen from the other loads.
            return Ok(());
        }
        let Some(before) = &record.before else {
            return Err(not_summed_up(&self.place()));
        };
        if self.plan.key != Key::None {
            return Ok(());
        }
        let units = self.checkpoints.units(self.client, self.id, self.control)?;
        let recorded = before.rows + units.values().map(|unit| unit.tally.rows).sum::<u64>();
        let rows = self.count(self.table)?;
        if rows == recorded {
            return Ok(());
        }
        let what = format!(
            "cannot be verified: the table has {rows} rows, of which {recorded} were there before or are of recorded units; \
             rows have no key, so those of units that an earlier run had begun would be duplicated"
        );
        Err(Error::new(Kind::Mismatch, what).at(self.place()).advise(
            "delete the rows of the unfinished units, or run the same command without --verify and accept duplicate rows",
        ))
    }

    fn read_back<'a>(&'a self, table: &'a CrateTable) -> ReadBack<'a> {
        ReadBack {
            cluster: &self.client.cluster,
            table,
            columns: &self.plan.columns,
            of_files: None,
            key: paging_key(&self.plan.key, self.primary),
            retries: self.options.retries,
        }
    }

    fn count(&mut self, table: &CrateTable) -> Result<u64> {
        let mut client = Client::new(&self.client.cluster, false);
        let rows = self.read_back(table).count(&mut client, self.control)?;
        self.counted = Some(rows);
        Ok(rows)
    }

    fn record(&self, before: Option<Tally>) -> LoadRecord {
        LoadRecord {
            id: self.id.to_owned(),
            state: State::Loading,
            unit_rows: self.options.unit_rows.max(1),
            files: RecordedFiles::of(self.source.files()),
            rows: 0,
            before,
            shape: Some(self.shape.clone()),
            runs: 1,
        }
    }

    fn write_record(&mut self, record: &LoadRecord) -> Result<()> {
        let target = self.table.to_string();
        let words = [target.as_str(), self.crate_db.mode.name(), self.mapping];
        self.checkpoints.begin(self.client, record, words, self.control)
    }

    fn refuse_changed(&self, record: &LoadRecord) -> Result<()> {
        let changed = record.files.changed(self.source.files());
        match changed.is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                Kind::Changed,
                format!("a source file has changed since the load began: {}", changed.join(", ")),
            )
            .at(self.place())
            .advise("bring back the file as it was to finish the load, or forget the load and start afresh")),
        }
    }

    fn exists(&self, how: &str) -> Error {
        Error::new(Kind::Exists, format!("the table exists already, {how}"))
            .at(self.place())
            .advise("load in mode append to add to it, in mode replace to put another in its place, or choose another table")
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.client.place())
    }
}

/// The error of an append of files that were loaded in another form.
pub(crate) fn loaded_with_other_options(differs: &str) -> Error {
    Error::new(Kind::Exists, format!("the files were loaded with other options: {differs}")).advise(
        "give the options of that load, or load the files once more with --again, which adds their rows as they are stored \
         now",
    )
}

/// The error of an append whose rows cannot be distinguished from those that were there before.
pub(crate) fn not_summed_up(place: &str) -> Error {
    let what = "cannot be verified: the first run of this append was without --verify, so what the table held before \
                was not summed up";
    Error::new(Kind::Mismatch, what).at(place).advise(
        "run the same command without --verify to finish the load; sawmill verify then compares the table as a whole",
    )
}

/// Renames a table. What was done before an answer got lost is seen from what is there.
pub(crate) fn rename(
    client: &mut Client,
    from: &CrateTable,
    to: &CrateTable,
    retries: u32,
    control: &Control<'_>,
) -> Result<()> {
    let statement = format!("ALTER TABLE {} RENAME TO {}", from.quoted(), quote(&to.name));
    let renamed = client.sql(&statement, &[], retries, control);
    match renamed {
        Ok(_) => Ok(()),
        Err(error) => match catalogue::which_exist(client, [from, to], retries, control)? {
            [false, true] => Ok(()),
            _ => Err(error),
        },
    }
}

/// Whether rows can be repeated, by what was asked for and what the table has.
pub(crate) fn choose_key(
    crate_db: &CrateDb,
    table: &CrateTable,
    source: &dyn Source,
    existing: Option<(&[crate::table::existing::Existing], &[String])>,
) -> Result<Key> {
    let options = &crate_db.options;
    if let Some(name) = &options.row_key {
        return match existing {
            Some((_, primary)) if !primary.contains(name) => Err(Error::new(
                Kind::Schema,
                format!("the table has no primary key with the column {name:?}, which the row key needs"),
            )
            .at(format!("table {table}"))
            .advise("make the table with --row-key, or append to it with --at-least-once")),
            _ => Ok(Key::Row(name.clone())),
        };
    }
    let own = match existing {
        None => options.primary_key.clone(),
        // A key that the server makes up is another one each time.
        Some((columns, primary)) => {
            let given = |name: &String| {
                let source = source.schema().fields().iter().any(|field| field.name() == name);
                source || columns.iter().any(|column| column.name == *name && column.generated)
            };
            if primary.iter().all(given) { primary.to_vec() } else { Vec::new() }
        }
    };
    if !own.is_empty() {
        return Ok(Key::Own(own));
    }
    match options.at_least_once {
        true => Ok(Key::None),
        false if existing.is_none() => Ok(Key::Tags(crate::tags::column_for(source))),
        false => Err(Error::new(
            Kind::Config,
            "the rows have no key: this load is at least once, and rows of a batch that was interrupted may be in the table twice",
        )
        .at(format!("table {table}"))
        .advise("accept it with --at-least-once; or make the table with a key: in mode create --row-key adds one, and --primary-key \
                 names its columns")),
    }
}
