//! Files that earlier loads added to a table: an append skips complete ones, and finishes the others first.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sawmill_loader::{
    AlreadyLoaded, EarlierLoad, Found, LoadOptions, Mode, Note, Portion, Remembered, Share, TableName, Tally,
    Verification, earlier, earlier::Recorded, id_of_names,
};
use sawmill_pgcopy::{Buffers, Column};
use sawmill_pgwire::{Connection, KnownServer};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::encode::summing::SummingEncoder;
use crate::records::checkpoint::{Checkpoints, LoadRecord, read_files};
use crate::records::filled::{FilledColumns, NotCompared};
use crate::records::presence::{Presence, Scope};
use crate::table::catalogue::find;
use crate::target::Postgres;
use crate::verify::read_back::ReadBack;
use crate::write::upsert::OnConflict;

impl Postgres {
    /// Looks up the source's files in the records, if they are appended.
    pub(crate) fn remember(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        rehearse: bool,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        if self.mode != Mode::Append || self.several.is_some() || !source.facts().whole_files {
            return Ok(None);
        }
        let checkpoints = Checkpoints::new(&self.checkpoint_schema)?;
        let mut connection = Connection::open(&self.server, control)?;
        let Some(found) = find(&connection, &self.table, control)? else { return Ok(None) };
        if !checkpoints.exist(&connection, control)? {
            return Ok(None);
        }
        if rehearse {
            connection.rehearse(control)?;
        }
        checkpoints.create(&connection, control)?;
        let checkpoints = checkpoints.of_unlogged(found.unlogged);
        let table = self.table.within(&found.schema);
        let mapping = self.mapping_of_files(source);
        let server = KnownServer::new(&self.server, &connection, control)?;
        let database = checkpoints.database(&server, &connection, control)?;
        let own = self.id_of(source, &table, false);
        self.follow_renamed(source, &server, &connection, &checkpoints, found.oid, &own, control)?;
        let of_table = OfTable { table: &table, oid: found.oid, database: database.as_deref() };
        let loads = checkpoints.of_files(&connection, &of_table, &mapping, control)?;
        let remembering = Remembering {
            postgres: self,
            source,
            options,
            control,
            connection: &connection,
            checkpoints: &checkpoints,
            table: &table,
            oid: found.oid,
        };
        remembering.run(&loads)
    }

    /// Whether loads of the same rows and columns have made the table and hold some of the source's files. If
    /// so, the other files must be appended.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn adds_files(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<bool> {
        if self.several.is_some() || !source.facts().whole_files {
            return Ok(false);
        }
        let checkpoints = Checkpoints::new(&self.checkpoint_schema)?;
        self.retried(options.retries, control, || {
            let connection = Connection::open(&self.server, control)?;
            let Some(found) = find(&connection, &self.table, control)? else { return Ok(false) };
            if !checkpoints.exist(&connection, control)? {
                return Ok(false);
            }
            let server = KnownServer::new(&self.server, &connection, control)?;
            let database = checkpoints.database(&server, &connection, control)?;
            let table = self.table.within(&found.schema);
            let of_table = OfTable { table: &table, oid: found.oid, database: database.as_deref() };
            let mapping = self.mapping_of_files(source);
            let loads = checkpoints.of_files(&connection, &of_table, &mapping, control)?;
            let here: Vec<&EarlierLoad> = loads.iter().filter(|load| load.table == Some(found.oid)).collect();
            Ok(earlier::adds_files(source, &here, options))
        })
    }

    /// Updates the table names in records of renamed tables, as far as loads of this source would look for
    /// them: records of the table with this OID, and records with the ID of this load.
    #[allow(clippy::too_many_arguments, reason = "what both callers have at hand")]
    pub(crate) fn follow_renamed(
        &self,
        source: &dyn Source,
        server: &KnownServer,
        connection: &Connection,
        checkpoints: &Checkpoints,
        oid: u32,
        id: &str,
        control: &Control<'_>,
    ) -> Result<()> {
        if self.several.is_some() {
            return Ok(());
        }
        let Some(database) = checkpoints.database(server, connection, control)? else { return Ok(()) };
        checkpoints.drop_foreign_oids(connection, &database, control)?;
        for load in checkpoints.renamed(connection, &database, oid, id, control)? {
            // The ID shows whether the load had these options. Others are remembered file by file.
            let routes = [false, true].into_iter();
            let ids = routes.map(|staged| {
                let id = |table: &TableName| {
                    let names = load.files.iter().map(String::as_str);
                    self.id_of_names(names, source, table, &load.mode, staged)
                };
                (id(&load.was), id(&load.now))
            });
            let now = ids.into_iter().find_map(|(was, now)| (was == load.id).then_some(now));
            let kept = load.id.rsplit_once('#').is_some().then(|| load.id.clone());
            if let Some(now) = now.or(kept) {
                checkpoints.follow(connection, &load, &now, control)?;
            }
        }
        Ok(())
    }

    /// The ID of a load of this source, for a route.
    pub(crate) fn id_of(&self, source: &dyn Source, table: &TableName, staged: bool) -> String {
        if let Some(several) = &self.several {
            return several.id.clone();
        }
        let names = source.files().iter().map(|file| file.name.as_str());
        self.id_of_names(names, source, table, self.mode.name(), staged)
    }

    /// The ID of a load of these files in a mode, otherwise like one of this source.
    fn id_of_names<'f>(
        &self,
        names: impl Iterator<Item = &'f str>,
        source: &dyn Source,
        table: &TableName,
        mode: &str,
        staged: bool,
    ) -> String {
        let by_position = if self.by_position { "by position" } else { "" };
        let native = if self.makes_composites() { "nested native" } else { "" };
        let kind = match self.kind.is_plain() {
            true => String::new(),
            false => format!("{:?}", self.kind),
        };
        let partitions = self.partitions.as_ref();
        let partitioned =
            partitions.map_or_else(String::new, |partitions| format!(" partitioned by {}", partitions.by()));
        let mapping =
            source.facts().mapping + by_position + &self.key.join("\0") + native + &kind + &partitioned;
        let mapping = match self.on_conflict {
            OnConflict::Update => mapping,
            _ => format!("{mapping}{:?}", self.on_conflict),
        };
        let staged = if staged { " staged" } else { "" };
        let mapping = format!("{mapping}{staged}{}", self.values.mapping());
        id_of_names(names, &mapping, &table.to_string(), mode)
    }

    /// The ID of a load that appends rows.
    fn append_id(&self, source: &dyn Source, table: &TableName) -> String {
        self.id_of(source, table, false)
    }

    /// Identifies which rows and columns of a file are loaded; empty for loads whose files are not remembered
    /// one by one.
    pub(crate) fn mapping_of_files(&self, source: &dyn Source) -> String {
        earlier::mapping_of_files(source, self.by_position)
    }
}

/// A table whose loads are looked for.
struct OfTable<'r> {
    table: &'r TableName,
    oid: u32,
    /// The database that gave it its OID, if that is known.
    database: Option<&'r str>,
}

pub(super) struct Remembering<'r> {
    pub postgres: &'r Postgres,
    pub source: &'r dyn Source,
    options: &'r LoadOptions,
    pub control: &'r Control<'r>,
    pub connection: &'r Connection,
    pub checkpoints: &'r Checkpoints,
    pub table: &'r TableName,
    pub oid: u32,
}

/// The recorded rows of all loads into a table.
enum AllOfTable {
    /// The sum of all rows.
    Rows(Tally),
    /// Some loads added other rows or columns of their files.
    OtherRows,
    /// Some loads filled other columns of the table, or columns of other types.
    OtherColumns,
}

impl Remembering<'_> {
    fn run(&self, loads: &[EarlierLoad]) -> Result<Option<Remembered>> {
        let (here, elsewhere): (Vec<&EarlierLoad>, Vec<&EarlierLoad>) =
            loads.iter().partition(|load| load.table == Some(self.oid));
        let own = self.postgres.append_id(self.source, self.table);
        let here = earlier::without_void(self.source, here, &own, |load| self.holds_nothing(load))?;
        let unfinished = self.unfinished(&here)?;
        if self.options.again {
            return Ok(earlier::loaded_again(self.source, &here, &own, unfinished));
        }
        let found = earlier::found(self.source, &here);
        let in_found: BTreeSet<u32> = found.iter().map(|found| found.file).collect();
        let broken_off: BTreeSet<u32> = unfinished.iter().flatten().copied().collect();
        self.refuse_of_another_table(&elsewhere, &in_found, &broken_off)?;
        if earlier::is_known_list(self.source, &here, &own) {
            return Ok(None);
        }
        let mut remembered = Remembered::with_the_rest(self.source, unfinished, in_found);
        earlier::of_another_content(self.source, &here, &mut remembered, self.options)
            .map_err(|error| error.at(self.place()))?;
        let nothing_known = found.is_empty() && remembered.unfinished.is_empty();
        if nothing_known && remembered.replaced.is_empty() && remembered.notes.is_empty() {
            return Ok(None);
        }
        if !found.is_empty() {
            self.look_at(&found, &mut remembered)?;
        }
        Ok(Some(remembered))
    }

    /// Whether a load has committed nothing, as a run of the whole load sees it.
    fn holds_nothing(&self, load: &EarlierLoad) -> Result<bool> {
        let (checkpoints, connection, control) = (self.checkpoints, self.connection, self.control);
        Ok(self.options.share == Share::Whole
            && checkpoints.units(connection, &load.id, control)?.is_empty()
            && checkpoints.count_rejects(connection, &load.id, control)?.is_empty())
    }

    /// The files of each unfinished load that has some of the source's.
    fn unfinished(&self, here: &[&EarlierLoad]) -> Result<Vec<Vec<u32>>> {
        let same = |portion: &Portion<'_>, load: &EarlierLoad| {
            self.postgres.append_id(portion, self.table) == load.id
        };
        earlier::broken_off(self.source, here, same).map_err(|error| error.at(self.place()))
    }

    /// The rows of files loaded into a table that no longer exists may be in the one that now has its name,
    /// restored from a dump.
    fn refuse_of_another_table(
        &self,
        elsewhere: &[&EarlierLoad],
        in_found: &BTreeSet<u32>,
        broken_off: &BTreeSet<u32>,
    ) -> Result<()> {
        let names: BTreeSet<&String> = elsewhere.iter().flat_map(|load| &load.files.names).collect();
        let known = |file: u32| in_found.contains(&file) || broken_off.contains(&file);
        let named = (0..).zip(self.source.files());
        let Some((_, file)) =
            named.into_iter().find(|(position, file)| !known(*position) && names.contains(&file.name))
        else {
            return Ok(());
        };
        let presence = self.presence()?;
        match presence.rows {
            Some(0) | None => Ok(()),
            Some(_) if presence.is_known_whole() => Ok(()),
            Some(rows) => Err(Error::new(
                Kind::Mismatch,
                format!(
                    "{} was loaded into a table of this name that no longer exists (dropped, or restored from a dump); the one \
                     that exists now has {rows} rows, and whether the file's are among them is unknown",
                    file.name
                ),
            )
            .at(self.place())
            .advise("compare them with sawmill verify; load with --again, or forget the load first (sawmill load forget)")),
        }
    }

    /// Checks that the table, as far as known, and the files still hold the files' rows.
    fn look_at(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        let presence = self.presence()?;
        let nothing_to_do =
            remembered.new.is_empty() && remembered.unfinished.is_empty() && remembered.replaced.is_empty();
        if presence.was_emptied() || presence.lacks_rows() && nothing_to_do {
            return Err(presence.error(
                self.place(),
                "restore the rows; or forget the loads (sawmill load forget) to load all files from the beginning; or load \
                 these files again with --again",
            ));
        }
        remembered.notes.extend(presence.finding().map(Note::from));
        let ids: BTreeSet<&str> = found.iter().map(|found| found.load.id.as_str()).collect();
        let filled = FilledColumns::new(self)?;
        let mut not_compared = NotCompared::default();
        for id in ids {
            let of_load: Vec<&Found<'_>> = found.iter().filter(|found| found.load.id == *id).collect();
            remembered.already.extend(self.of_load(&of_load, &filled, &mut not_compared)?);
        }
        remembered.already.sort_unstable_by_key(|already| already.file);
        remembered.notes.extend(not_compared.notes());
        if self.options.verify && not_compared.is_empty() {
            self.verify(&presence, &filled, remembered)?;
        }
        Ok(())
    }

    /// The rows that a load added from these files, which are unchanged. Adds to `not_compared` the names of
    /// files that had to be compared but could not be, since some of their rows were rejected.
    fn of_load(
        &self,
        found: &[&Found<'_>],
        filled: &FilledColumns,
        not_compared: &mut NotCompared,
    ) -> Result<Vec<AlreadyLoaded>> {
        let Some(load) = found.first().map(|found| found.load) else { return Ok(Vec::new()) };
        let columns = filled.by(load, self)?;
        let units = self.checkpoints.units(self.connection, &load.id, self.control)?;
        let rejects = self.checkpoints.count_rejects(self.connection, &load.id, self.control)?;
        let portion = Portion::new(self.source, found.iter().map(|found| found.file).collect());
        let places: HashMap<u32, u32> = (0..).zip(found).map(|(at, found)| (found.place, at)).collect();
        let in_portion = |key: &UnitKey| places.get(&key.file).map(|at| UnitKey { file: *at, ..*key });
        let recorded: BTreeMap<UnitKey, &Tally> =
            units.iter().filter_map(|(key, tally)| Some((in_portion(key)?, tally))).collect();
        let mut rejected: HashMap<u32, u64> = HashMap::new();
        for (key, rows) in &rejects {
            if let Some(key) = in_portion(key) {
                *rejected.entry(key.file).or_default() += rows;
            }
        }
        let untrusted = load.files.untrusted(portion.files());
        let (skipped, looked_at): (BTreeSet<u32>, BTreeSet<u32>) = (0..found.len() as u32)
            .filter(|at| self.options.verify || untrusted.contains(at))
            .partition(|at| rejected.contains_key(at));
        let name = |at: &u32| portion.files().get(*at as usize).map(|file| file.name.clone());
        not_compared.rejected.extend(skipped.iter().filter_map(name));
        let width = columns.as_ref().map_or(0, |columns| columns.len());
        let recorded = Recorded { load, files: &looked_at, units: recorded, columns: width };
        match &columns {
            Some(columns) => self.compare(&portion, &recorded, columns)?,
            None => not_compared.retyped.extend(looked_at.iter().filter_map(name)),
        }
        if !untrusted.is_empty() && skipped.is_empty() && columns.is_some() {
            let now = load.files.with_stamps_of(portion.files());
            self.checkpoints.set_stamps(self.connection, &load.id, &now, self.control)?;
        }
        let already = (0..).zip(found).map(|(at, found)| {
            let mut tally = Tally::empty(width);
            let of_file = || recorded.units.iter().filter(|(key, _)| key.file == at);
            of_file().for_each(|(_, unit)| tally.add(unit));
            let rejected = rejected.get(&at).copied().unwrap_or(0);
            AlreadyLoaded { file: found.file, tally, rejected, units: of_file().count() as u64 }
        });
        Ok(already.collect())
    }

    fn compare(
        &self,
        portion: &Portion<'_>,
        recorded: &Recorded<'_>,
        columns: &Arc<Vec<Column>>,
    ) -> Result<()> {
        if recorded.files.is_empty() {
            return Ok(());
        }
        let buffers = Buffers::new(self.options.batch_bytes);
        let encoder = || -> Result<Box<dyn sawmill_loader::BatchEncoder>> {
            Ok(Box::new(SummingEncoder::new(Arc::clone(columns), Arc::clone(&buffers))))
        };
        recorded.compare(portion, &encoder, self.options, self.control)
    }

    /// Compares the table with the records, if it holds nothing else.
    fn verify(&self, presence: &Presence, filled: &FilledColumns, remembered: &mut Remembered) -> Result<()> {
        let mapping = self.postgres.mapping_of_files(self.source);
        let (columns, lines) = filled.now(self)?;
        let recorded = match presence.is_known_whole() {
            true => {
                self.checkpoints.all_of_table(self.connection, self.oid, &mapping, &lines, self.control)?
            }
            false => AllOfTable::OtherRows,
        };
        let recorded = match recorded {
            AllOfTable::Rows(recorded) => recorded,
            AllOfTable::OtherRows => {
                remembered.note_other_rows();
                return Ok(());
            }
            AllOfTable::OtherColumns => {
                remembered.note_other_columns();
                return Ok(());
            }
        };
        let read = ReadBack {
            server: &KnownServer::new(&self.postgres.server, self.connection, self.control)?,
            table: self.table,
            columns: &columns,
            degree: self.options.degree,
            each_column: false,
            by_value: false,
        };
        let names = columns.iter().map(|column| column.name.clone()).collect();
        let all = Verification::new(names, recorded, read.led_by(self.connection, self.control)?.whole);
        remembered.verify(all, &self.place())
    }

    fn presence(&self) -> Result<Presence> {
        Presence::new(Scope::Table(self.oid), self.table, self.checkpoints, self.connection, self.control)
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.connection.place())
    }
}

impl Checkpoints {
    /// The loads of the same rows and columns, into this table or into one that had its
    /// name and is gone, in the order in which they began.
    fn of_files(
        &self,
        connection: &Connection,
        of: &OfTable<'_>,
        mapping: &str,
        control: &Control<'_>,
    ) -> Result<Vec<EarlierLoad>> {
        let sql = format!(
            "SELECT load_id, mode, table_oid, unit_rows, completed IS NOT NULL, files, fingerprints, stamps, mapping FROM {} \
             WHERE (table_oid = $3 AND (database = $4 OR target = $1) OR target = $1 AND NOT (table_oid <> $3 \
                 AND coalesce(database = $4, false) AND completed IS NOT NULL \
                 AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = table_oid::oid))) \
             AND mapping = $2 AND mode <> 'upsert' AND strpos(load_id, '/') = 0 \
             ORDER BY begun, load_id",
            self.table("loads")
        );
        let (target, oid) = (of.table.to_string(), i64::from(of.oid));
        let rows = connection.query(control, &sql, &[&target, &mapping, &oid, &of.database])?;
        let read = |row: &tokio_postgres::Row| -> Result<EarlierLoad> {
            let (oid, unit_rows): (i64, i64) = (connection.get(row, 2)?, connection.get(row, 3)?);
            Ok(EarlierLoad {
                id: connection.get(row, 0)?,
                mode: connection.get(row, 1)?,
                table: Some(oid as u32),
                unit_rows: unit_rows.max(1) as u64,
                files: read_files(connection, row, [5, 6, 7])?,
                complete: connection.get(row, 4)?,
                mapping: connection.get(row, 8)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// The sum of the rows that later loads added to the table. `None` if some of them added other columns,
    /// or merged rows.
    pub(crate) fn since(
        &self,
        connection: &Connection,
        record: &LoadRecord,
        control: &Control<'_>,
    ) -> Result<Option<Tally>> {
        let loads = self.table("loads");
        let sql = format!(
            "SELECT u.rows, u.content_sum, u.non_null, l.mapping = $2 AND l.mapping <> '' \
               AND l.columns IS NOT DISTINCT FROM this.columns \
             FROM {loads} this JOIN {loads} l USING (table_oid) JOIN {} u ON u.load_id = l.load_id \
             WHERE this.load_id = $1 AND l.load_id <> $1 AND l.begun > this.begun",
            self.all_units()
        );
        let mut since = Tally::default();
        for row in connection.query(control, &sql, &[&record.id, &record.mapping])? {
            if !connection.get::<bool>(&row, 3)? {
                return Ok(None);
            }
            since.add(&crate::records::checkpoint::read_tally(connection, &row, 0)?);
        }
        Ok(Some(since))
    }

    /// The sum of the rows that all loads have added to a table.
    fn all_of_table(
        &self,
        connection: &Connection,
        oid: u32,
        mapping: &str,
        columns: &[String],
        control: &Control<'_>,
    ) -> Result<AllOfTable> {
        let loads = self.table("loads");
        let sql = format!(
            "SELECT u.rows, u.content_sum, u.non_null, l.mapping = $2, coalesce(l.columns = $3, true) \
             FROM {} u JOIN {loads} l USING (load_id) WHERE l.table_oid = $1 AND l.mode <> 'upsert'",
            self.all_units()
        );
        let mut all = Tally::default();
        for row in connection.query(control, &sql, &[&i64::from(oid), &mapping, &columns])? {
            match (connection.get::<bool>(&row, 3)?, connection.get::<bool>(&row, 4)?) {
                (true, true) => all.add(&crate::records::checkpoint::read_tally(connection, &row, 0)?),
                (true, false) => return Ok(AllOfTable::OtherColumns),
                (false, _) => return Ok(AllOfTable::OtherRows),
            }
        }
        Ok(AllOfTable::Rows(all))
    }
}
