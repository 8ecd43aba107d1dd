//! A table of a CrateDB cluster as a target.

use std::sync::Arc;

use sawmill_loader::{
    BatchEncoder, LoadOptions, LoadRecord, Mode, RejectOptions, Remembered, SchemaChange, Session, TableName,
    Target, setters,
};
use sawmill_source::{Control, Mapping, Result, Source};

use crate::connect::address::CrateServer;
use crate::connect::client::{Client, Cluster};
use crate::encode::encoder::{CrateEncoder, EncodePlan, MAX_BATCH_BYTES};
use crate::options::CrateOptions;
use crate::records::checkpoint::Checkpoints;
use crate::table::catalogue::exists;
use crate::table::columns::{Key, MAX_TEXT_LENGTH, Plan};
use crate::table::names::CrateTable;

/// A table of a CrateDB cluster.
#[derive(Clone, Debug)]
pub struct CrateDb {
    pub(crate) server: CrateServer,
    pub(crate) name: TableName,
    pub(crate) mode: Mode,
    pub(crate) options: CrateOptions,
    pub(crate) checkpoint_schema: String,
    /// The rows come from one statement, which cannot be resumed.
    pub(crate) of_statement: bool,
    pub(crate) schema_change: SchemaChange,
    /// The column with the names of files, by which their rows are replaced.
    pub(crate) file_column: Option<String>,
    /// The rows of the source's only file take the place of those that it had.
    pub(crate) replaces: bool,
}

impl CrateDb {
    /// Bytes of a batch at most: well below the 104,857,600 of `http.max_content_length`, at which even
    /// one more row of half that size would not go over it.
    pub const MAX_BATCH_BYTES: usize = MAX_BATCH_BYTES;
    /// Bytes of a batch by default: 20,000 rows of ordinary width stay below it.
    pub const BATCH_BYTES: usize = 8 * 1024 * 1024;

    /// The schema of the tables of records where none is named. CrateDB takes no `_` at the beginning of a
    /// name.
    pub const CHECKPOINT_SCHEMA: &str = "sawmill";

    /// A new table on a cluster.
    pub fn new(server: CrateServer, table: TableName) -> Self {
        Self {
            server,
            name: table,
            mode: Mode::Create,
            options: CrateOptions::default(),
            checkpoint_schema: Self::CHECKPOINT_SCHEMA.to_owned(),
            of_statement: false,
            schema_change: SchemaChange::default(),
            file_column: None,
            replaces: false,
        }
    }

    /// The same for another table of the cluster.
    pub fn of_table(mut self, table: TableName) -> Self {
        self.name = table;
        self
    }

    /// The table.
    pub fn table_name(&self) -> &TableName {
        &self.name
    }

    setters! {
        /// Sets how the table is filled.
        mode: Mode,
        /// Sets what mode append does if the files have columns that the table lacks.
        schema_change: SchemaChange,
        /// Sets the options of the load.
        options: CrateOptions,
    }

    /// Sets the column of the source with the names of files, by which rows of changed files are replaced, and the column
    /// of the table that the server fills with the time of the load.
    pub fn lineage(mut self, file_column: Option<String>, loaded_at: Option<String>) -> Self {
        (self.file_column, self.options.loaded_at) = (file_column, loaded_at);
        self
    }

    /// Changes the options of the load.
    pub fn with(mut self, change: impl FnOnce(&mut CrateOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Writes rows that the server refuses to a file of NDJSON instead of ending the load.
    pub fn rejects(mut self, rejects: Option<RejectOptions>) -> Self {
        self.options.max_rejects = rejects.as_ref().and_then(|rejects| rejects.most);
        self.options.rejects = rejects.map(|rejects| rejects.path);
        self
    }

    /// The schema of the tables of records, `sawmill` by default.
    pub fn checkpoint_schema(mut self, schema: impl Into<String>) -> Self {
        self.checkpoint_schema = schema.into();
        self
    }

    /// The table, in the schema that was named with it or in the address.
    pub(crate) fn table(&self) -> Result<CrateTable> {
        CrateTable::new(self.name.schema().unwrap_or(&self.server.schema), self.name.name())
    }

    /// `CREATE TABLE` as mode create would run it for this source.
    ///
    /// # Errors
    /// Columns that have no type or no valid name in CrateDB, all named at once; a partition column or a key that
    /// does not exist.
    pub fn ddl(&self, source: &dyn Source) -> Result<String> {
        let table = self.table()?;
        let columns = crate::table::columns::natural(source.schema(), &self.options, &table)?;
        crate::table::ddl::create_table(
            &table,
            &columns,
            &self.wished_key(source).of_finished_table(),
            &self.options,
        )
    }

    /// The key that a new table would get, or what takes its place.
    pub(crate) fn wished_key(&self, source: &dyn Source) -> Key {
        match (&self.options.row_key, self.options.primary_key.as_slice()) {
            (Some(name), _) => Key::Row(name.clone()),
            (None, []) if self.options.at_least_once => Key::None,
            (None, []) => Key::Tags(crate::tags::column_for(source.schema())),
            (None, names) => Key::Own(names.to_vec()),
        }
    }

    /// The encoder that a new table's rows go through, without a server: for measurements. `by_column`
    /// adds the arrays for the PostgreSQL wire.
    ///
    /// # Errors
    /// As [`ddl`](Self::ddl).
    pub fn encoder(
        &self,
        source: &dyn Source,
        batch_bytes: usize,
        by_column: bool,
    ) -> Result<Box<dyn BatchEncoder>> {
        let table = self.table()?;
        let columns = crate::table::columns::natural(source.schema(), &self.options, &table)?;
        let plan = Plan { columns, key: self.wished_key(source), longest_text: Some(MAX_TEXT_LENGTH) };
        let encode =
            EncodePlan { columns: by_column, ..EncodePlan::new(&self.options, source, batch_bytes, plan) };
        Ok(Box::new(CrateEncoder::new(Arc::new(encode))))
    }

    /// The version of the cluster's first node: `6.4.3`.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn server_version(&self, control: &Control<'_>) -> Result<String> {
        let mut client = Client::new(&Cluster::new(&self.server, std::time::Duration::ZERO, 0)?);
        let asked = client.on(control).run("SELECT version['number'] FROM sys.nodes LIMIT 1", &[])?;
        Ok(asked.all::<(String,)>()?.pop().map(|(version,)| version).unwrap_or_default())
    }

    /// The command that forgets unfinished loads into a table. It has no password.
    pub(crate) fn forget_command(&self, table: &CrateTable) -> String {
        let schema = match self.checkpoint_schema.as_str() {
            Self::CHECKPOINT_SCHEMA => String::new(),
            schema => format!(" --checkpoint-schema {schema}"),
        };
        format!("sawmill load forget --to {} --table {table}{schema}", self.server.url())
    }
}

impl Target for CrateDb {
    fn remembered(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        self.remember(source, options, control)
    }

    fn loads_here(&self, options: &LoadOptions, control: &Control<'_>) -> Result<Vec<LoadRecord>> {
        let table = self.table()?;
        let mut client = Client::new(&Cluster::new(&self.server, options.patience, options.retries)?);
        let sql = &mut client.on(control);
        let exists = exists(sql, &table)?;
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        let mut records = checkpoints.on(sql);
        let loads =
            if exists && records.exist()? { records.of_table(&table.to_string())? } else { Vec::new() };
        Ok(loads.into_iter().map(|row| row.load).collect())
    }

    /// Hashed.
    fn mapping_of_files(&self, source: &dyn Source) -> Mapping {
        let mut mapping = source.facts().mapping;
        if self.options.by_position {
            mapping.columns += " by position";
        }
        mapping.hashed()
    }

    fn replacing(&self) -> Option<Box<dyn Target + '_>> {
        self.file_column.as_ref()?;
        Some(Box::new(Self { replaces: true, ..self.clone() }))
    }

    /// Its client waits for a cluster that has answered before.
    fn has_answered(&self) -> bool {
        false
    }

    fn prepare<'a>(
        &'a self,
        source: &'a dyn Source,
        options: &'a LoadOptions,
        control: &Control<'_>,
    ) -> Result<Box<dyn Session + 'a>> {
        Ok(Box::new(crate::session::CrateSession::prepare(self, source, options, control)?))
    }
}
