//! The columns that earlier loads have filled: the table may have got others since, or wider types.

use std::sync::Arc;

use arrow_schema::Schema;
use sawmill_loader::{EarlierLoad, Note};
use sawmill_pgcopy::Column;
use sawmill_source::Result;

use crate::records::remembered::Remembering;
use crate::table::columns::TableColumn;
use crate::table::planned_columns::{PlannedColumns, RecordedColumn};
use crate::table::{catalogue_type, columns};

/// The table's columns now, and the source's columns by their names in the table.
pub(super) struct FilledColumns {
    existing: Vec<TableColumn>,
    schema: Arc<Schema>,
}

/// Files that could not be compared with their loaded rows.
#[derive(Default)]
pub(super) struct NotCompared {
    /// Some of their rows were rejected.
    pub rejected: Vec<String>,
    /// They were loaded as columns or types that the table does not have any more.
    pub retyped: Vec<String>,
}

impl FilledColumns {
    pub(super) fn new(of: &Remembering<'_>) -> Result<Self> {
        let existing = columns::read(of.connection, of.oid, of.control)?;
        let schema = match of.postgres.by_position {
            false => Arc::clone(of.source.schema()),
            true => columns::by_position(of.source.schema(), &existing, of.table)?,
        };
        Ok(Self { existing, schema })
    }

    /// The columns that a load has filled, with their types then. `None` if they can no longer be encoded.
    pub(super) fn by(&self, load: &EarlierLoad, of: &Remembering<'_>) -> Result<Option<Arc<Vec<Column>>>> {
        let values = &of.postgres.values;
        let Some(lines) = of.checkpoints.columns(of.connection, &load.id, of.control)? else {
            return columns::matched(&self.schema, &self.existing, of.table, values).map(Some);
        };
        let mut filled = Vec::with_capacity(lines.len());
        for line in &lines {
            let Some(column) = RecordedColumn::read(line) else { return Ok(None) };
            let Ok(at) = self.schema.index_of(column.name) else { return Ok(None) };
            let column_type =
                catalogue_type::read(of.connection, column.type_oid, column.modifier, of.control)?;
            let Some(column_type) = column_type else { return Ok(None) };
            match Column::new(self.schema.field(at), at, column_type, values) {
                Ok(column) => filled.push(column),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(Arc::new(filled)))
    }

    /// The columns that a load of the source would fill now, also in the form of a load's record.
    pub(super) fn now(&self, of: &Remembering<'_>) -> Result<(Arc<Vec<Column>>, Vec<String>)> {
        let is_there = |name: &&String| self.existing.iter().any(|column| column.name == **name);
        let names = self.schema.fields().iter().map(|field| field.name());
        let names: Vec<String> = names.filter(is_there).cloned().collect();
        let values = &of.postgres.values;
        let columns = columns::matched_of(&names, &self.schema, &self.existing, of.table, values)?;
        let names = names.iter().map(String::as_str);
        let planned = PlannedColumns::read(of.connection, of.table, of.oid, names, of.control)?;
        let recorded = planned.recorded(&columns);
        Ok((columns, recorded))
    }
}

impl NotCompared {
    pub(super) fn is_empty(&self) -> bool {
        self.rejected.is_empty() && self.retyped.is_empty()
    }

    /// A note on each kind.
    pub(super) fn notes(&self) -> impl Iterator<Item = Note> {
        let note = |files: &[String], why: &str| {
            let first = files.first()?;
            let more = match files.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more files"),
            };
            Some(Note::Rejected(format!("not compared with what was loaded: {first}{more}, since {why}")))
        };
        let rejected = note(&self.rejected, "some rows were rejected");
        let retyped =
            note(&self.retyped, "the table does not have the columns any more that they were loaded into");
        rejected.into_iter().chain(retyped)
    }
}
