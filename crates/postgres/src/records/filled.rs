//! The columns that earlier loads have filled: the table may have got others since, or wider types.

use std::sync::Arc;

use arrow_schema::Schema;
use sawmill_loader::LoadRecord;
use sawmill_pgcopy::Column;
use sawmill_source::{Result, SourceFile};

use crate::records::history::TableHistory;
use crate::table::catalogue;
use crate::table::columns::{self, TableColumn};
use crate::table::planned_columns::{PlannedColumns, RecordedColumn};

/// The table's columns now, and the source's columns by their names in the table.
pub(super) struct FilledColumns {
    existing: Vec<TableColumn>,
    schema: Arc<Schema>,
}

impl FilledColumns {
    pub(super) fn new(of: &TableHistory<'_>) -> Result<Self> {
        let existing = columns::read(of.records.link, of.oid)?;
        let schema = of.postgres.renamed(of.source.schema(), &existing, of.table)?;
        Ok(Self { existing, schema })
    }

    /// The columns that a load has filled, with their types then. `None` if they can no longer be encoded.
    pub(super) fn by(&self, load: &LoadRecord, of: &TableHistory<'_>) -> Result<Option<Arc<Vec<Column>>>> {
        let values = &of.postgres.values;
        let Some(lines) = of.records.columns(&load.id)? else {
            return columns::matched(&self.schema, &self.existing, of.table, values).map(Some);
        };
        let mut filled = Vec::with_capacity(lines.len());
        for line in &lines {
            let Some(column) = RecordedColumn::read(line) else { return Ok(None) };
            let Ok(at) = self.schema.index_of(column.name) else { return Ok(None) };
            let column_type = catalogue::read(of.records.link, column.type_oid, column.modifier)?;
            let Some(column_type) = column_type else { return Ok(None) };
            match Column::new(self.schema.field(at), at, column_type, values) {
                Ok(column) => filled.push(column),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(Arc::new(filled)))
    }

    /// The columns of these files that the table lacks.
    pub(super) fn left_out<'s>(
        &'s self,
        files: impl Iterator<Item = &'s SourceFile> + Clone,
    ) -> Vec<&'s str> {
        let is_there = |name: &str| self.existing.iter().any(|column| column.name == name);
        let has = |file: &SourceFile, name: &str| match &file.columns {
            Some(columns) => columns.index_of(name).is_ok(),
            None => true,
        };
        let names = self.schema.fields().iter().map(|field| field.name().as_str());
        names.filter(|name| !is_there(name) && files.clone().any(|file| has(file, name))).collect()
    }

    /// The columns that a load of the source would fill now, also in the form of a load's record.
    pub(super) fn now(&self, of: &TableHistory<'_>) -> Result<(Arc<Vec<Column>>, Vec<String>)> {
        let is_there = |name: &&String| self.existing.iter().any(|column| column.name == **name);
        let names = self.schema.fields().iter().map(|field| field.name());
        let names: Vec<String> = names.filter(is_there).cloned().collect();
        let values = &of.postgres.values;
        let columns = columns::matched_of(&names, &self.schema, &self.existing, of.table, values)?;
        let names = names.iter().map(String::as_str);
        let planned = PlannedColumns::read(of.records.link, of.table, of.oid, names)?;
        let recorded = planned.recorded(&columns);
        Ok((columns, recorded))
    }
}
