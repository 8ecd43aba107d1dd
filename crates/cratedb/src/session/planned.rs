//! The plan of a load: the columns of a new, existing or changed table, and the key that makes its rows repeatable.

use std::sync::Arc;

use arrow_schema::Field;
use sawmill_loader::{
    AddedColumn, ColumnChanges, LoadOptions, Mode, NewColumns, NullColumn, Widen, first_file_with,
    refused_changes, with_ways_out,
};
use sawmill_source::{Error, Kind, Result, Source, columns_of_files};
use tokio_postgres::types::Type;

use crate::connect::pg;
use crate::connect::sql::Sql;
use crate::encode::encoder::{EncodePlan, longest_row};
use crate::encode::unnest;
use crate::options::{LongText, Transport};
use crate::records::checkpoint::{Checkpoints, LoadRow};
use crate::table::columns::{self, Column, Key, MAX_TEXT_LENGTH, Plan, Purpose, check_loaded_at, wanted};
use crate::table::crate_type::Layout;
use crate::table::existing::Existing;
use crate::table::names::{CrateTable, quote, refused_name};
use crate::table::{catalogue, ddl};
use crate::target::CrateDb;
use crate::write::bulk::{MAX_TAG_LENGTH, REPEAT, head};
use crate::write::carried::Chosen;

/// The statements for the PostgreSQL wire, for first tries and for rows that may be in the table, with their
/// parameter types.
pub(super) fn unnest_of(written: &CrateTable, plan: &Plan) -> ([String; 2], Vec<Type>) {
    let statements = ["", REPEAT].map(|clause| {
        // With a key, existing rows are counted, and do not end the statement.
        let clause = match plan.key {
            Key::Row(_) | Key::Own(_) => REPEAT,
            Key::Tags(_) => "",
            Key::None => clause,
        };
        unnest::insert(written, plan, clause)
    });
    (statements, unnest::parameter_types(plan))
}

impl CrateDb {
    /// The plan for a table that the load creates, and the columns of its primary key.
    pub(super) fn new_plan(&self, source: &dyn Source, table: &CrateTable) -> Result<(Plan, Vec<String>)> {
        let columns = columns::natural(source.schema(), &self.options, table)?;
        let key = self.wished_key(source);
        ddl::create_table(table, &columns, &key, &self.options)?;
        let primary = ddl::primary_key(&key, ddl::partition(&columns, &self.options)?.as_ref());
        let longest_text = (self.options.long_text == LongText::Error).then_some(MAX_TEXT_LENGTH);
        Ok((Plan { columns, key, longest_text }, primary))
    }

    /// The plan for a table that exists, and the columns of its primary key.
    pub(crate) fn existing_plan(
        &self,
        source: &dyn Source,
        table: &CrateTable,
        purpose: Purpose<'_>,
        sql: &mut Sql<'_>,
    ) -> Result<(Plan, Vec<String>)> {
        let existing = catalogue::columns(sql, table)?;
        if existing.is_empty() {
            return Err(Error::new(Kind::Schema, "the table does not exist")
                .at(format!("table {table}, {}", sql.place()))
                .advise("load in mode create, which creates it"));
        }
        if purpose != Purpose::Compare {
            check_loaded_at(self.options.loaded_at.as_deref(), &existing, table)?;
        }
        let primary = catalogue::primary_key(sql, table)?;
        let row_key = self.options.row_key.as_deref();
        let schema = match self.options.by_position {
            false => Arc::clone(source.schema()),
            true => columns::by_position(source.schema(), &existing, row_key, table)?,
        };
        let columns = columns::matched(&schema, &self.options, &existing, table, purpose)
            .map_err(|error| self.with_a_way_out(error, source, &existing))?;
        let key = self.choose_key(table, &columns, (&existing, &primary))?;
        Ok((Plan { columns, key, longest_text: None }, primary))
    }

    /// Chooses how rows of an existing table can be repeated, from the options and its primary key.
    fn choose_key(
        &self,
        table: &CrateTable,
        filled: &[Column],
        (columns, primary): (&[Existing], &[String]),
    ) -> Result<Key> {
        let options = &self.options;
        if let Some(name) = &options.row_key {
            if primary.contains(name) {
                return Ok(Key::Row(name.clone()));
            }
            let what =
                format!("the table has no primary key with the column {name:?}, which the row key needs");
            return Err(Error::new(Kind::Schema, what)
                .at(format!("table {table}"))
                .advise("make the table with --row-key, or append to it with --at-least-once"));
        }
        // A key by default has a new value each time; a computed one depends on the columns.
        let is_filled = |name: &String| filled.iter().any(|column| column.name == *name);
        let is_computed =
            |name: &String| columns.iter().any(|column| column.name == *name && column.generated);
        // Rows are looked up by columns of the key, or by all columns.
        let is_found = primary.iter().any(is_filled) || filled.iter().all(Column::is_comparable);
        if !primary.is_empty() && primary.iter().all(|name| is_filled(name) || is_computed(name)) && is_found
        {
            return Ok(Key::Own(primary.to_vec()));
        }
        if options.at_least_once {
            return Ok(Key::None);
        }
        Err(Error::new(
            Kind::Config,
            "the rows have no key: this load is at least once, and rows of a batch that was interrupted may be in the table twice",
        )
        .at(format!("table {table}"))
        .advise(
            "accept it with --at-least-once; or make the table with a key: in mode create --row-key adds one, and --primary-key \
             names its columns",
        ))
    }

    /// How rows are encoded for the table `written`: by row, or by column for the PostgreSQL wire.
    pub(super) fn encode_plan(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        plan: &Plan,
        (written, by_column): (&CrateTable, bool),
    ) -> EncodePlan {
        let head = head(written, plan, REPEAT);
        EncodePlan {
            longest_row: longest_row(head.before.len() + head.after.len() + MAX_TAG_LENGTH),
            columns: by_column,
            leave_out: self.options.rejects.is_some(),
            ..EncodePlan::new(&self.options, source, options.batch_bytes, plan.clone())
        }
    }

    /// Whether a load may begin with columns that the table lacks.
    pub(crate) fn evolves(&self) -> bool {
        self.mode == Mode::Append && self.schema_change.is_allowed()
    }

    /// The plan of an append whose table follows the files, the table's primary key columns, and the changes made.
    pub(super) fn follow(
        &self,
        source: &dyn Source,
        table: &CrateTable,
        options: &LoadOptions,
        sql: &mut Sql<'_>,
    ) -> Result<(Plan, Vec<String>, ColumnChanges)> {
        let (found, primary) = self.existing_plan(source, table, Purpose::Follow, sql)?;
        let checkpoints = Checkpoints::new(&self.checkpoint_schema);
        let mut records = checkpoints.on(sql);
        records.create()?;
        let id = self.id_of(source, table, &found.key);
        let record = records.find(&id)?.map(|row| row.load);
        if let Some(record) = record.filter(|record| !record.facts.filled.is_empty()) {
            let goes_on = match record.complete {
                true => !options.again && record.files.changed(source.files()).is_empty(),
                false => !records.units(&id)?.is_empty(),
            };
            if goes_on {
                let purpose = Purpose::GoOn(&record.facts.filled);
                let (plan, primary) = self.existing_plan(source, table, purpose, sql)?;
                return Ok((plan, primary, record.facts.columns));
            }
        }
        let changes = self.add_columns(source, table, sql)?;
        if changes.added.is_empty() {
            return Ok((found, primary, changes));
        }
        let (plan, primary) = self.existing_plan(source, table, Purpose::Follow, sql)?;
        Ok((plan, primary, changes))
    }

    /// Adds the columns that the table lacks.
    fn add_columns(
        &self,
        source: &dyn Source,
        table: &CrateTable,
        sql: &mut Sql<'_>,
    ) -> Result<ColumnChanges> {
        loop {
            let existing = catalogue::columns(sql, table)?;
            let (changes, statement) = self.following(source, &existing, table)?;
            let Some(statement) = &statement else { return Ok(changes) };
            let Err(error) = sql.run(statement, &[]) else { return Ok(changes) };
            // Another load may have added some of the columns, or the answer got lost.
            let now = catalogue::columns(sql, table)?;
            if now.len() == existing.len() {
                return Err(error);
            }
        }
    }

    /// Compares the columns of a source's files with the table's columns.
    ///
    /// # Errors
    /// All columns that cannot be added, or that rows need and files lack.
    pub(crate) fn following(
        &self,
        source: &dyn Source,
        existing: &[Existing],
        table: &CrateTable,
    ) -> Result<(ColumnChanges, Option<String>)> {
        let (mut added, mut actions, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for field in columns_of_files(source).fields() {
            if existing.iter().any(|column| column.name == *field.name()) {
                continue;
            }
            match self.definition(source, field) {
                Ok((type_name, storage)) if self.schema_change.new_columns == NewColumns::Add => {
                    actions.push(format!("ADD COLUMN {} {type_name}{storage}", quote(field.name())));
                    added.push(AddedColumn { name: field.name().clone(), type_name });
                }
                Ok((type_name, _)) => refused.push(way_to_add(source, field, &type_name)),
                Err(why) => refused.push(why),
            }
        }
        let null = self.absent(source, existing, &added);
        let needed = existing.iter().filter(|column| !column.nullable);
        let needed = needed.filter_map(|column| null.iter().find(|null| null.name == column.name));
        refused.extend(needed.map(|null| {
            format!("column {:?} of the table is not in {}, and is NOT NULL", null.name, null.first)
        }));
        if !refused.is_empty() {
            return Err(refused_changes(&refused, table));
        }
        let statement =
            (!actions.is_empty()).then(|| format!("ALTER TABLE {} {}", table.quoted(), actions.join(", ")));
        Ok((ColumnChanges { added, null, ..ColumnChanges::default() }, statement))
    }

    /// Columns of the table, and added ones, that some files lack.
    fn absent(&self, source: &dyn Source, existing: &[Existing], added: &[AddedColumn]) -> Vec<NullColumn> {
        let is_written =
            |column: &&Existing| !column.filled && self.options.row_key.as_ref() != Some(&column.name);
        let names = existing.iter().filter(is_written).map(|column| &column.name);
        let in_all = |name: &String| source.schema().index_of(name).is_ok();
        let names = names.chain(added.iter().map(|column| &column.name));
        names.filter_map(|name| NullColumn::new(name, source, in_all(name))).collect()
    }

    /// The type of a new column, and how it is stored.
    fn definition(
        &self,
        source: &dyn Source,
        field: &Field,
    ) -> std::result::Result<(String, &'static str), String> {
        let name = field.name();
        if let Some((why, proposal)) = refused_name(name, true) {
            return Err(format!("column {name:?}: the name {why}: use --rename '{name}={proposal}'"));
        }
        let options = &self.options;
        let layout = Layout { objects: options.objects, plain_text: options.long_text == LongText::Noindex };
        match wanted(field, options) {
            Ok((crate_type, _)) => Ok((crate_type.ddl(layout), crate_type.text_storage(layout))),
            Err(what) => Err(format!("column {name:?} of {}: {what}", first_file_with(source, name))),
        }
    }

    /// The error for columns that do not fit, with the change of the table that would let them.
    pub(super) fn with_a_way_out(&self, error: Error, source: &dyn Source, existing: &[Existing]) -> Error {
        let appends = self.mode == Mode::Append && !self.of_statement;
        if error.kind() != Kind::Schema || self.options.by_position || !appends {
            return error;
        }
        let files = columns_of_files(source);
        let is_new =
            |field: &&std::sync::Arc<Field>| existing.iter().all(|column| column.name != *field.name());
        let mut ways: Vec<String> = files
            .fields()
            .iter()
            .filter(is_new)
            .filter_map(|field| Some(way_to_add(source, field, &self.definition(source, field).ok()?.0)))
            .collect();
        if self.schema_change.widen != Widen::No {
            ways.push(
                "CrateDB does not change the type of a column, so that --schema-change widen has no effect: load into a new \
                 table (--mode replace)"
                    .to_owned(),
            );
        }
        with_ways_out(error, &ways)
    }
}

fn way_to_add(source: &dyn Source, field: &Field, type_name: &str) -> String {
    let (name, has) = (field.name(), field.data_type());
    let of = first_file_with(source, name);
    format!("column {name:?} ({has}) of {of} is not in the table; --schema-change add adds it as {type_name}")
}

/// The transport of the blocks. An explicitly requested transport that is not available is an error.
pub(super) fn choose_transport(crate_db: &CrateDb, key: &Key, sql: &Sql<'_>) -> Result<Chosen> {
    let wanted = crate_db.options.transport;
    if wanted == Transport::Http {
        return Ok(Chosen::Http("--transport http".to_owned()));
    }
    if wanted == Transport::Auto && *key == Key::None && crate_db.options.rejects.is_some() {
        return Ok(Chosen::Http(
            "without a key only HTTP tells which rows of a batch were refused".to_owned(),
        ));
    }
    match pg::open(&pg::server(sql.cluster(), 0), sql.control) {
        Ok(_) => Ok(Chosen::Pg),
        Err(error) if error.kind() == Kind::Cancelled || wanted == Transport::Pg => Err(error),
        Err(error) => {
            let port = crate_db.server.pg_port;
            Ok(Chosen::Http(format!("no PostgreSQL wire of CrateDB at port {port}: {}", error.what())))
        }
    }
}

/// The PostgreSQL wire does not tell which rows of a batch were in the table before. Verification needs to know if
/// the table holds rows that cannot be distinguished from the load's.
pub(super) fn which_tells_rows(chosen: Chosen, record: &LoadRow, key: &Key) -> Chosen {
    let needs = *key != Key::None && record.load.before.as_ref().is_some_and(|before| before.rows > 0);
    match chosen {
        Chosen::Pg if needs => {
            let reason = "to verify an append by the table's key, it has to be known which rows were there, which only HTTP tells";
            Chosen::Http(reason.to_owned())
        }
        chosen => chosen,
    }
}
