//! Starts an append that may change its table: adds the columns that the files have and the table lacks.
//!
//! One statement adds them, before the load's record is written. A load killed after that statement finds the
//! columns when it starts again, and so does the second of two simultaneous loads. A resumed load keeps the columns
//! that it started with. CrateDB does not change the type of a column.

use arrow_schema::Field;
use sawmill_loader::{
    AddedColumn, ColumnChanges, LoadOptions, Mode, NewColumns, NullColumn, Widen, first_file_with,
    refused_changes, with_ways_out,
};
use sawmill_source::{Error, Kind, Result, Source, columns_of_files};

use crate::connect::sql::Sql;
use crate::options::LongText;
use crate::records::checkpoint::Checkpoints;
use crate::session::planned::existing_plan;
use crate::table::catalogue;
use crate::table::columns::{Plan, Purpose, wanted};
use crate::table::crate_type::Layout;
use crate::table::existing::Existing;
use crate::table::names::{CrateTable, quote, refused_name};
use crate::target::CrateDb;

/// The changes that an append makes to its table first.
pub(crate) struct Following {
    pub changes: ColumnChanges,
    /// The statement that adds columns.
    pub statement: Option<String>,
}

impl CrateDb {
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
        let (found, primary) = existing_plan(self, source, table, Purpose::Follow, sql)?;
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
                let (plan, primary) = existing_plan(self, source, table, purpose, sql)?;
                return Ok((plan, primary, record.facts.columns));
            }
        }
        let changes = self.add_columns(source, table, sql)?;
        if changes.added.is_empty() {
            return Ok((found, primary, changes));
        }
        let (plan, primary) = existing_plan(self, source, table, Purpose::Follow, sql)?;
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
            let following = Following::new(self, source, &existing, table)?;
            let Some(statement) = &following.statement else { return Ok(following.changes) };
            let Err(error) = sql.run(statement, &[]) else { return Ok(following.changes) };
            // Another load may have added some of the columns, or the answer got lost.
            let now = catalogue::columns(sql, table)?;
            if now.len() == existing.len() {
                return Err(error);
            }
        }
    }
}

impl Following {
    /// Compares the columns of a source's files with the table's columns.
    ///
    /// # Errors
    /// All columns that cannot be added, or that rows need and files lack.
    pub(crate) fn new(
        crate_db: &CrateDb,
        source: &dyn Source,
        existing: &[Existing],
        table: &CrateTable,
    ) -> Result<Self> {
        let (mut added, mut actions, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for field in columns_of_files(source).fields() {
            if existing.iter().any(|column| column.name == *field.name()) {
                continue;
            }
            match definition(crate_db, source, field) {
                Ok((type_name, storage)) if crate_db.schema_change.new_columns == NewColumns::Add => {
                    actions.push(format!("ADD COLUMN {} {type_name}{storage}", quote(field.name())));
                    added.push(AddedColumn { name: field.name().clone(), type_name });
                }
                Ok((type_name, _)) => refused.push(way_to_add(source, field, &type_name)),
                Err(why) => refused.push(why),
            }
        }
        let null = absent(crate_db, source, existing, &added);
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
        Ok(Self { changes: ColumnChanges { added, null, ..ColumnChanges::default() }, statement })
    }
}

/// Columns of the table, and added ones, that some files lack.
fn absent(
    crate_db: &CrateDb,
    source: &dyn Source,
    existing: &[Existing],
    added: &[AddedColumn],
) -> Vec<NullColumn> {
    let is_written =
        |column: &&Existing| !column.filled && crate_db.options.row_key.as_ref() != Some(&column.name);
    let names = existing.iter().filter(is_written).map(|column| &column.name);
    let in_all = |name: &String| source.schema().index_of(name).is_ok();
    let names = names.chain(added.iter().map(|column| &column.name));
    names.filter_map(|name| NullColumn::new(name, source, in_all(name))).collect()
}

/// The type of a new column, and how it is stored.
fn definition(
    crate_db: &CrateDb,
    source: &dyn Source,
    field: &Field,
) -> std::result::Result<(String, &'static str), String> {
    let name = field.name();
    if let Some((why, proposal)) = refused_name(name, true) {
        return Err(format!("column {name:?}: the name {why}: use --rename '{name}={proposal}'"));
    }
    let options = &crate_db.options;
    let layout = Layout { objects: options.objects, plain_text: options.long_text == LongText::Noindex };
    match wanted(field, options) {
        Ok((crate_type, _)) => Ok((crate_type.ddl(layout), crate_type.text_storage(layout))),
        Err(what) => Err(format!("column {name:?} of {}: {what}", first_file_with(source, name))),
    }
}

fn way_to_add(source: &dyn Source, field: &Field, type_name: &str) -> String {
    let (name, has) = (field.name(), field.data_type());
    let of = first_file_with(source, name);
    format!("column {name:?} ({has}) of {of} is not in the table; --schema-change add adds it as {type_name}")
}

/// The error for columns that do not fit, with the change of the table that would let them.
pub(super) fn with_a_way_out(
    error: Error,
    crate_db: &CrateDb,
    source: &dyn Source,
    existing: &[Existing],
) -> Error {
    let appends = crate_db.mode == Mode::Append && !crate_db.of_statement;
    if error.kind() != Kind::Schema || crate_db.options.by_position || !appends {
        return error;
    }
    let files = columns_of_files(source);
    let is_new = |field: &&std::sync::Arc<Field>| existing.iter().all(|column| column.name != *field.name());
    let mut ways: Vec<String> = files
        .fields()
        .iter()
        .filter(is_new)
        .filter_map(|field| Some(way_to_add(source, field, &definition(crate_db, source, field).ok()?.0)))
        .collect();
    if crate_db.schema_change.widen != Widen::No {
        ways.push(
            "CrateDB does not change the type of a column, so that --schema-change widen has no effect: load into a new \
             table (--mode replace)"
                .to_owned(),
        );
    }
    with_ways_out(error, &ways)
}
