//! A table of a PostgreSQL server as a target: how it is created and filled.

use std::sync::Arc;

use sawmill_loader::{
    BatchEncoder, LoadOptions, LoadRecord, Mode, RejectOptions, Remembered, SchemaChange, Session, TableName,
    Target, retry_reached, setters,
};
use sawmill_pgcopy::{Buffers, Enums, ValueOptions};
use sawmill_pgwire::{Connection, KnownServer, Server};
use sawmill_source::{Control, LineageColumns, Mapping, Result, Source};
use serde::Serialize;

use crate::encode::encoders::SummingEncoder;
use crate::nested::child_tables::OneOfSeveral;
use crate::partition::survey::Partitions;
use crate::records::checkpoint::Checkpoints;
use crate::rejected::file::RejectsOf;
use crate::session::PostgresSession;
use crate::table::catalogue::{Link, find};
use crate::table::columns;
use crate::table::new_table::TableKind;
use crate::types::made_types::Nested;
use crate::write::upsert::{Matching, OnConflict};

/// How rows get into a new table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Chooses automatically; for a partitioned table the report's notes say the choice and the reason.
    #[default]
    Auto,
    /// All connections copy into one table.
    Direct,
    /// Each connection copies into its own tables, which become the table's partitions. For new partitioned
    /// tables only.
    Staged,
}

/// A table of a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct Postgres {
    pub(crate) server: Server,
    pub(crate) table: TableName,
    pub(crate) mode: Mode,
    pub(crate) checkpoint_schema: String,
    pub(crate) by_position: bool,
    pub(crate) nested: Nested,
    /// Set if this is one of several tables that get their places together.
    pub(crate) several: Option<OneOfSeveral>,
    /// The columns by which mode upsert matches rows.
    pub(crate) key: Vec<String>,
    pub(crate) on_conflict: OnConflict,
    /// The columns that say which rows delete, if some do.
    pub(crate) deletes: Option<Vec<String>>,
    /// Keys, indexes and storage of a new table.
    pub(crate) kind: TableKind,
    pub(crate) strategy: Strategy,
    /// The partitions of the new table, if it has any.
    pub(crate) partitions: Option<Arc<Partitions>>,
    pub(crate) values: ValueOptions,
    pub(crate) rejects: Option<RejectOptions>,
    pub(crate) schema_change: SchemaChange,
    /// The columns of the source that say where a row comes from. Rows of files are replaced by the files' names.
    pub(crate) lineage: LineageColumns,
    /// The column with the time of the load.
    pub(crate) loaded_at: Option<String>,
}

impl Postgres {
    /// The default schema of the tables of records.
    pub const CHECKPOINT_SCHEMA: &str = "_sawmill";

    /// A new table on a server.
    pub fn new(server: Server, table: TableName) -> Self {
        Self {
            server,
            table,
            mode: Mode::Create,
            checkpoint_schema: Self::CHECKPOINT_SCHEMA.to_owned(),
            by_position: false,
            nested: Nested::default(),
            several: None,
            key: Vec::new(),
            on_conflict: OnConflict::Update,
            deletes: None,
            kind: TableKind::default(),
            strategy: Strategy::Auto,
            partitions: None,
            values: ValueOptions::default(),
            rejects: None,
            schema_change: SchemaChange::default(),
            lineage: LineageColumns::default(),
            loaded_at: None,
        }
    }

    setters! {
        /// Sets what modes append and upsert do if the files have other columns than the table.
        schema_change: SchemaChange,
        /// How rows get into a new table.
        strategy: Strategy,
        /// Sets keys, indexes and storage of a new table, in modes create and replace.
        kind: TableKind,
        /// Sets how values that PostgreSQL cannot store are converted.
        values: ValueOptions,
        /// Sets the columns by which mode upsert matches rows; the table needs a unique index on exactly these.
        key: Vec<String>,
        /// Sets what mode upsert does with a row whose key the table has.
        on_conflict: OnConflict,
        /// With options, rows that cannot be loaded are rejected instead of ending the load.
        rejects: Option<RejectOptions>,
        /// Sets whether the table is created, replaced, appended to, emptied first or merged into.
        mode: Mode,
        /// Matches columns of an existing table by their position instead of their name.
        by_position: bool,
        /// Sets what lists, structs and maps become in a new table. In an existing table its columns decide.
        nested: Nested,
    }

    /// Sets the columns of the source that say where a row comes from, and the column of the table that the server fills
    /// with the time of the load. Rows of changed files are replaced by the names of files.
    pub fn lineage(mut self, columns: LineageColumns, loaded_at: Option<String>) -> Self {
        (self.lineage, self.loaded_at) = (columns, loaded_at);
        self
    }

    /// Whether the rows of changed files are replaced.
    pub(crate) fn replaces_files(&self) -> bool {
        matches!(self.on_conflict, OnConflict::ReplaceFiles(_))
    }

    /// The same for another table of the server.
    pub fn of_table(mut self, table: TableName) -> Self {
        self.table = table;
        self
    }

    /// Sets a parameter of the server, such as `maintenance_work_mem`, on each connection.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.server = self.server.setting(name, value);
        self
    }

    /// Lets rows with a true value in the source's last column, [`DELETES`](sawmill_source::DELETES), delete the row of
    /// their key in mode upsert. `tested` are the columns that decide this; a table that lacks them does not get them.
    /// Columns are matched by name.
    pub fn deletes(mut self, tested: &[String]) -> Self {
        self.deletes = Some(tested.to_vec());
        self
    }

    /// The user's name of a mode that is recorded as mode upsert.
    pub(crate) fn merge(&self) -> Option<String> {
        match (self.mode, &self.on_conflict) {
            (Mode::Upsert, OnConflict::Keep) => Some("insert".to_owned()),
            (Mode::Upsert, OnConflict::History(_)) => Some("history".to_owned()),
            (Mode::Upsert, OnConflict::ReplaceFiles(_)) => Some(Mode::Append.name().to_owned()),
            _ => None,
        }
    }

    /// The user's name of the mode.
    pub(crate) fn name_of_mode(&self) -> String {
        self.merge().unwrap_or_else(|| self.mode.name().to_owned())
    }

    /// Whether a merge that is repeated when later ones are complete leaves their rows as they are.
    pub(crate) fn keeps_newer(&self) -> bool {
        let (newest, inserts) = (self.on_conflict.newest(), self.on_conflict == OnConflict::Keep);
        self.mode == Mode::Upsert && !self.has_deletes() && (inserts || newest.is_some())
    }

    /// Whether rows of the source may delete rows of the table.
    pub fn has_deletes(&self) -> bool {
        self.deletes.is_some()
    }

    /// How mode upsert matches rows.
    pub(crate) fn matching(&self) -> Matching<'_> {
        let Self { key, on_conflict, lineage, .. } = self;
        let loaded_at = self.loaded_at.as_deref();
        Matching { key, on_conflict, deletes: self.has_deletes(), lineage, loaded_at }
    }

    /// The table.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Repeats `work` after a lost connection, once the server has answered.
    pub(crate) fn retried<T>(
        &self,
        retries: u32,
        control: &Control<'_>,
        work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        retry_reached(retries, control, &|| self.server.is_reached(), work)
    }

    /// Sets how long an answer may take before the server is asked, over another connection, whether it still works on
    /// it.
    pub fn patience(mut self, patience: std::time::Duration) -> Self {
        self.server = self.server.patience(patience);
        self
    }

    /// Whether a load may begin with columns that differ from the table's.
    pub(crate) fn evolves(&self) -> bool {
        matches!(self.mode, Mode::Append | Mode::Upsert) && self.schema_change.is_allowed()
    }

    /// The load that writes the file of rejected rows.
    pub(crate) fn rejects_of<'a>(&self, source: &'a dyn Source, table: &'a TableName) -> RejectsOf<'a> {
        RejectsOf { source, table, adds: matches!(self.mode, Mode::Append | Mode::Upsert) }
    }

    /// Whether types may be created with a new table.
    pub(crate) fn makes_types(&self) -> bool {
        self.makes_composites() || self.mode.makes_the_table() && self.values.enums == Enums::Enum
    }

    /// Whether composite types may be created with a new table.
    pub(crate) fn makes_composites(&self) -> bool {
        self.mode.makes_the_table() && self.nested == Nested::Native
    }

    /// Sets the schema of the tables of records, `_sawmill` by default.
    pub fn checkpoint_schema(mut self, schema: impl Into<String>) -> Self {
        self.checkpoint_schema = schema.into();
        self
    }

    /// The ID of the load if this is one of several tables; empty otherwise.
    pub(crate) fn load_id(&self) -> &str {
        self.several.as_ref().map(|several| several.id.as_str()).unwrap_or_default()
    }

    /// `CREATE TABLE` as mode create would run it for this source, preceded by its types and followed by keys
    /// and indexes. If columns become enumerations, this reads the source.
    ///
    /// # Errors
    /// Columns that have no type or no valid name in PostgreSQL, all in one error; a key over columns that
    /// the source lacks; values that cannot become an enumeration.
    pub fn ddl(&self, source: &dyn Source, control: &Control<'_>) -> Result<String> {
        Ok(self.statements(source, control)?.join(";\n"))
    }

    /// The encoder of a new table's rows, in blocks of `block_bytes`, without a server: for measurements.
    ///
    /// # Errors
    /// As [`ddl`](Self::ddl).
    pub fn encoder(&self, source: &dyn Source, block_bytes: usize) -> Result<Box<dyn BatchEncoder>> {
        let new = columns::natural(source.schema(), &self.table, self.nested, &self.values)?;
        Ok(Box::new(SummingEncoder::new(new.columns, Buffers::new(block_bytes))))
    }
}

impl Target for Postgres {
    fn remembered(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        self.remember(source, options, false, control)
    }

    fn loads_here(&self, options: &LoadOptions, control: &Control<'_>) -> Result<Vec<LoadRecord>> {
        let checkpoints = Checkpoints::new(&self.checkpoint_schema)?;
        self.retried(options.retries, control, || {
            let connection = Connection::open(&self.server, control)?;
            let link = Link::new(&connection, control);
            let records = checkpoints.on(link);
            let Some(found) = find(link, &self.table)? else { return Ok(Vec::new()) };
            if !records.exist()? {
                return Ok(Vec::new());
            }
            let server = KnownServer::new(&self.server, &connection, control)?;
            let mut loads = records.of_table(&self.table.within(&found.schema), found.oid, &server, true)?;
            loads.retain(|load| load.table_oid == found.oid);
            Ok(loads)
        })
    }

    fn mapping_of_files(&self, source: &dyn Source) -> Mapping {
        let mut mapping = source.facts().mapping;
        if self.by_position {
            mapping.columns += " by position";
        }
        if let Some(zone) = self.values.timezone {
            mapping.columns += &format!(" timezone {zone}");
        }
        mapping
    }

    fn replacing(&self) -> Option<Box<dyn Target + '_>> {
        let column = self.lineage.file.clone()?;
        let replacing = self.clone().mode(Mode::Upsert).key(vec![column.clone()]);
        Some(Box::new(replacing.on_conflict(OnConflict::ReplaceFiles(column))))
    }

    fn replaces_together(&self) -> bool {
        true
    }

    fn has_answered(&self) -> bool {
        self.server.is_reached()
    }

    fn prepare<'a>(
        &'a self,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(PostgresSession::prepare(self, source, options, false, control)?))
    }
}
