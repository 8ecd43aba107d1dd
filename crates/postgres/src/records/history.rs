//! The history of a table: loads that earlier runs recorded, as an append looks them up.

mod taken_up;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sawmill_loader::{
    BatchEncoder, Encoding, Found, History, LoadOptions, LoadRecord, Loads, Mode, NewColumns, Note, Portion,
    Presence, RecordedFiles, RecordedUnit, Remembered, Share, TableName, Tally, Target, Verification,
    id_of_names, refuse_changed, remember,
};
use sawmill_pgcopy::Buffers;
use sawmill_pgwire::{Connection, KnownServer};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Mapping, Read, Result, Source, UnitKey};

use crate::encode::encoders::SummingEncoder;
use crate::records::checkpoint::{Checkpoints, Records};
use crate::records::filled::FilledColumns;
use crate::records::presence::Scope;
use crate::rejected::file::RejectsFile;
use crate::rejected::rejects::LoadOfFiles;
use crate::table::catalogue::{Link, Parameters, find};
use crate::table::planned_columns::moved;
use crate::target::Postgres;
use crate::verify::sums::ReadBack;
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
        if self.mode != Mode::Append || self.several.is_some() {
            return Ok(None);
        }
        let checkpoints = Checkpoints::new(&self.checkpoint_schema)?;
        let mut connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        let Some(found) = find(link, &self.table)? else { return Ok(None) };
        if !checkpoints.on(link).exist()? {
            return Ok(None);
        }
        if rehearse {
            connection.rehearse(control)?;
        }
        let link = Link::new(&connection, control);
        let checkpoints = checkpoints.of_unlogged(found.unlogged);
        let records = checkpoints.on(link);
        records.create()?;
        let server = KnownServer::new(&self.server, &connection, control)?;
        let (table, oid) = (&self.table.within(&found.schema), found.oid);
        self.follow_renamed(source, &server, &records, oid, &self.id_of(source, table, false))?;
        let mapping = self.mapping_of_files(source);
        let has_whole_files = source.facts().whole_files;
        let mut all = records.of_table(table, oid, &server, has_whole_files)?;
        if !has_whole_files {
            let here: Vec<&LoadRecord> = all.iter().filter(|load| load.table_oid == oid).collect();
            let place = || format!("table {table}, {}", link.place());
            return refuse_changed(source, &here, options).map(|()| None).map_err(|error| error.at(place()));
        }
        let (presence, filled) = (OnceCell::new(), OnceCell::new());
        let found = RefCell::default();
        let history =
            TableHistory { postgres: self, source, options, records, table, oid, presence, filled, found };
        if !rehearse && history.take_up(&all, &mapping, control)? {
            all = history.records.of_table(table, oid, &server, true)?;
        }
        let loads = Loads::new(&all, &mapping, |load| load.table_oid == oid);
        let mut remembered = remember(&history, loads, &mapping, source, options, control)?;
        if let Some(remembered) = remembered.as_mut().filter(|_| !rehearse) {
            history.write_missing_rejects(remembered)?;
        }
        Ok(remembered)
    }

    /// Updates the table names in records of renamed tables, as far as loads of this source would look for
    /// them: records of the table with this OID, and records with the ID of this load.
    pub(crate) fn follow_renamed(
        &self,
        source: &dyn Source,
        server: &KnownServer,
        records: &Records<'_>,
        oid: u32,
        id: &str,
    ) -> Result<()> {
        if self.several.is_some() {
            return Ok(());
        }
        let Some(database) = records.database(server)? else { return Ok(()) };
        records.drop_foreign_oids(&database)?;
        for load in records.renamed(&database, oid, id)? {
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
                records.follow(&load, &now)?;
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
    pub(crate) fn id_of_names<'f>(
        &self,
        names: impl Iterator<Item = &'f str>,
        source: &dyn Source,
        table: &TableName,
        mode: &str,
        staged: bool,
    ) -> String {
        let by_position = if self.by_position { "by position" } else { "" };
        let native = if self.makes_composites() { "nested native" } else { "" };
        let kind = if self.kind.is_plain() { String::new() } else { format!("{:?}", self.kind) };
        let partitions = self.partitions.as_ref();
        let partitioned =
            partitions.map_or_else(String::new, |partitions| format!(" partitioned by {}", partitions.by()));
        let mapping =
            source.facts().arrangement() + by_position + &self.key.join("\0") + native + &kind + &partitioned;
        let mapping = match self.on_conflict {
            OnConflict::Update => mapping,
            OnConflict::History(None) => format!("{mapping}History"),
            _ => format!("{mapping}{:?}", self.on_conflict),
        };
        let staged = if staged { " staged" } else { "" };
        let mapping = format!("{mapping}{staged}{}", self.values.mapping());
        id_of_names(names, &mapping, &table.to_string(), mode)
    }
}

/// The history of a table that a source is appended to.
pub(super) struct TableHistory<'r> {
    pub postgres: &'r Postgres,
    pub source: &'r dyn Source,
    options: &'r LoadOptions,
    pub records: Records<'r>,
    pub table: &'r TableName,
    pub oid: u32,
    presence: OnceCell<Presence>,
    filled: OnceCell<FilledColumns>,
    /// The loads that contain files of the source.
    found: RefCell<Vec<LoadOfFiles>>,
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

impl AllOfTable {
    fn rows(self) -> Option<Tally> {
        if let Self::Rows(rows) = self { Some(rows) } else { None }
    }
}

impl TableHistory<'_> {
    /// The table's rows, counted once.
    fn presence(&self) -> Result<Presence> {
        if let Some(presence) = self.presence.get() {
            return Ok(*presence);
        }
        let presence = self.records.presence(Scope::Table(self.oid), self.table)?;
        Ok(*self.presence.get_or_init(|| presence))
    }

    /// Writes the file of rejected rows if it is missing and files of earlier loads had some.
    fn write_missing_rejects(&self, remembered: &mut Remembered) -> Result<()> {
        let rejected = remembered.already.iter().map(|file| file.rejected).sum::<u64>();
        let missing = self.postgres.rejects.as_ref().filter(|to| rejected > 0 && !to.path.exists());
        let Some(rejects) = missing else { return Ok(()) };
        let of = self.postgres.rejects_of(self.source, self.table);
        let mut file = RejectsFile::create(&rejects.path, of)?;
        let read = Read { broken_text: true, ..Read::default() };
        let mut reader = self.source.open(read, self.options.batch_rows);
        for load in self.found.borrow().iter() {
            for (unit, rejects) in load.rejects(self.source, &self.records)? {
                file.unit(&unit, &rejects, reader.as_mut())?;
            }
        }
        file.finish()?;
        let note = format!(
            "{} of earlier loads could not be loaded and were written to {}",
            format_counted(rejected, "row"),
            rejects.path.display()
        );
        remembered.notes.push(Note::Rejected(note));
        Ok(())
    }

    /// The table's columns, read once.
    fn filled(&self) -> Result<&FilledColumns> {
        if let Some(filled) = self.filled.get() {
            return Ok(filled);
        }
        let filled = FilledColumns::new(self)?;
        Ok(self.filled.get_or_init(|| filled))
    }
}

impl History for TableHistory<'_> {
    fn id_of(&self, files: &dyn Source) -> String {
        self.postgres.id_of(files, self.table, false)
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.records.link.place())
    }

    fn replaces_unfinished(&self) -> bool {
        self.options.share == Share::Whole && self.postgres.lineage.file.is_some()
    }

    fn updates_rows(&self) -> bool {
        true
    }

    fn holds_nothing(&self, load: &LoadRecord) -> Result<bool> {
        Ok(self.options.share == Share::Whole && self.records.holds_nothing(&load.id)?)
    }

    fn refuse_unknown(&self, file: &str) -> Result<()> {
        self.presence()?.refuse_unknown(&format!("{file} was"), self.place())
    }

    fn check(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        self.found.replace(LoadOfFiles::containing(found));
        self.presence()?.check(remembered, self.place())
    }

    fn units(&self, load: &LoadRecord) -> Result<HashMap<UnitKey, RecordedUnit>> {
        self.records.units_with_rejects(&load.id)
    }

    fn encoding<'e>(
        &'e self,
        load: &LoadRecord,
        _portion: &Portion<'_>,
        _units: &BTreeMap<UnitKey, RecordedUnit>,
    ) -> Result<Option<Encoding<'e>>> {
        let Some(columns) = self.filled()?.by(load, self)? else { return Ok(None) };
        let (width, buffers) = (columns.len(), Buffers::new(self.options.batch_bytes));
        let encoder = move || -> Result<Box<dyn BatchEncoder>> {
            Ok(Box::new(SummingEncoder::new(Arc::clone(&columns), Arc::clone(&buffers))))
        };
        Ok(Some(Encoding { columns: width, encoders: Box::new(encoder) }))
    }

    fn set_stamps(&self, load: &LoadRecord, stamped: &RecordedFiles) -> Result<()> {
        self.records.set(&load.id, "stamps", &stamped.stamps)
    }

    fn compare(&self, remembered: &Remembered) -> Result<std::result::Result<Verification, Note>> {
        let mapping = self.postgres.mapping_of_files(self.source);
        let loaded = remembered.already.iter();
        let loaded = loaded.filter_map(|loaded| self.source.files().get(loaded.file as usize));
        let left_out = self.filled()?.left_out(loaded);
        if !(left_out.is_empty() || self.postgres.schema_change.new_columns == NewColumns::LeaveOut) {
            return Ok(Err(Note::left_out(&left_out)));
        }
        let (columns, lines) = self.filled()?.now(self)?;
        let presence = self.presence()?;
        if presence.rows.is_none() {
            return Ok(Err(Note::uncounted()));
        }
        let recorded = match presence.is_known_whole() {
            true => self.records.all_of_table(self.oid, &mapping, &lines)?,
            false => AllOfTable::OtherRows,
        };
        let recorded = match recorded {
            AllOfTable::Rows(recorded) => recorded,
            AllOfTable::OtherRows => return Ok(Err(Note::other_rows())),
            AllOfTable::OtherColumns => {
                let filled = self.records.filled_lines(self.oid)?;
                return Ok(Err(moved(&filled, &lines).map_or_else(Note::other_columns, Note::moved_column)));
            }
        };
        let link = self.records.link;
        let server = KnownServer::new(&self.postgres.server, link.connection, link.control)?;
        let read = ReadBack::new(&server, self.table, &columns, self.options.degree);
        let names = columns.iter().map(|column| column.name.clone()).collect();
        Ok(Ok(Verification::new(names, recorded, read.led_by(link)?.whole)))
    }
}

impl Records<'_> {
    /// The loads into this table, or into one that had its name and is gone, in the order in which they began. With
    /// `has_whole_files`, only the loads whose files are remembered one by one; otherwise also loads of a part of the
    /// files' rows.
    pub(crate) fn of_table(
        &self,
        table: &TableName,
        oid: u32,
        server: &KnownServer,
        has_whole_files: bool,
    ) -> Result<Vec<LoadRecord>> {
        let condition = "(table_oid = $2 AND (database = $3 OR target = $1) OR target = $1 AND NOT (table_oid <> $2 \
                 AND coalesce(database = $3, false) AND completed IS NOT NULL \
                 AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = table_oid::oid))) \
             AND (mapping <> '' OR NOT $4) AND mode <> 'upsert' AND strpos(load_id, '/') = 0 \
             ORDER BY begun, load_id";
        let database = self.database(server)?;
        self.loads(condition, &[&table.to_string(), &i64::from(oid), &database, &has_whole_files])
    }

    /// The unfinished loads that gather rows to replace a file's rows in the table.
    pub(crate) fn replacing(&self, oid: u32) -> Result<Vec<LoadRecord>> {
        let loads =
            self.loads("table_oid = $1 AND completed IS NULL AND mode = 'upsert'", &[&i64::from(oid)])?;
        Ok(loads
            .into_iter()
            .filter(|load| load.facts.merge.as_deref() == Some(Mode::Append.name()))
            .collect())
    }

    /// The sum of the rows that later loads added to the table. `None` if some of them added other columns,
    /// or merged rows.
    pub(crate) fn since(&self, record: &LoadRecord) -> Result<Option<Tally>> {
        let later = format!(
            "l.columns IS NOT DISTINCT FROM this.columns FROM {} this JOIN {} l USING (table_oid)",
            self.table("loads"),
            self.table("loads")
        );
        let condition = "this.load_id = $1 AND l.load_id <> $1 AND l.begun > this.begun \
                         AND NOT (l.mode = 'upsert' AND l.completed IS NULL)";
        self.sum_of(record.mapping.as_ref(), Tally::default(), &later, condition, &[&record.id])
            .map(AllOfTable::rows)
    }

    /// The columns, as in records, that all loads into a table have filled.
    fn filled_lines(&self, oid: u32) -> Result<Vec<String>> {
        let loads = self.table("loads");
        let sql =
            format!("SELECT DISTINCT unnest(columns) FROM {loads} WHERE table_oid = $1 AND mode <> 'upsert'");
        self.link.list(&sql, &[&i64::from(oid)])
    }

    /// The sum of the rows that all loads have added to a table, if they filled the same columns as this one of the same
    /// rows.
    pub(crate) fn sum_of_table(&self, record: &LoadRecord, columns: &[String]) -> Result<Option<Tally>> {
        let Some(mapping) = &record.mapping else { return Ok(None) };
        self.all_of_table(record.table_oid, mapping, columns).map(AllOfTable::rows)
    }

    /// The sum of the rows that all loads have added to a table.
    fn all_of_table(&self, oid: u32, mapping: &Mapping, columns: &[String]) -> Result<AllOfTable> {
        let all = format!("coalesce(l.columns = $2, true) FROM {} l", self.table("loads"));
        let none = Tally::empty(columns.len());
        let of_table = "l.table_oid = $1 AND l.mode <> 'upsert'";
        self.sum_of(Some(mapping), none, &all, of_table, &[&i64::from(oid), &columns])
    }

    /// The sum of the rows of the loads `l` that a condition selects. `from` says in the first place whether they have
    /// filled the same columns.
    fn sum_of(
        &self,
        mapping: Option<&Mapping>,
        mut all: Tally,
        from: &str,
        condition: &str,
        parameters: Parameters<'_>,
    ) -> Result<AllOfTable> {
        let units = self.all_units();
        let sql = format!(
            "SELECT u.rows, u.content_sum, u.non_null, l.mapping, {from} \
             JOIN {units} u ON u.load_id = l.load_id WHERE {condition}"
        );
        for (rows, sum, counts, of_load, same_columns) in
            self.link.rows::<(i64, String, Vec<i64>, String, bool)>(&sql, parameters)?
        {
            let of_load = Mapping::from_text(&of_load);
            let same_rows = mapping.zip(of_load).is_some_and(|(own, of_load)| own.takes_the_same(&of_load));
            match (same_rows, same_columns) {
                (true, true) => all.add(&self.tally((rows, sum, counts))?),
                (true, false) => return Ok(AllOfTable::OtherColumns),
                (false, _) => return Ok(AllOfTable::OtherRows),
            }
        }
        Ok(AllOfTable::Rows(all))
    }
}
