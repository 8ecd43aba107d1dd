//! Assembles the requested columns, in their order, from the fields that are read of a file and the columns
//! that its folders name.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};

use crate::hive::Folder;
use crate::parquet_files::opened_file::ColumnPlace;

/// The columns to read from a file, and how to assemble the source's columns from them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The fields that are read, in ascending order; `None` for all.
    pub fields: Option<Vec<usize>>,
    /// The columns, if they are not the fields that are read in their order; fields are given by their
    /// positions among those that are read.
    places: Option<Vec<ColumnPlace>>,
}

impl Chosen {
    /// Returns the choice for a file of `fields` fields.
    pub(super) fn new(columns: impl Iterator<Item = ColumnPlace> + Clone, fields: usize) -> Self {
        let field = |column| match column {
            ColumnPlace::Field(at) => Some(at),
            ColumnPlace::Folder(_) => None,
        };
        let mut read: Vec<usize> = columns.clone().filter_map(field).collect();
        read.sort_unstable();
        read.dedup();
        let places: Vec<ColumnPlace> = columns
            .filter_map(|column| match column {
                ColumnPlace::Field(at) => read.binary_search(&at).ok().map(ColumnPlace::Field),
                folder => Some(folder),
            })
            .collect();
        let as_read = places.iter().copied().eq((0..read.len()).map(ColumnPlace::Field));
        Self { fields: (read.len() != fields).then_some(read), places: (!as_read).then_some(places) }
    }
}

/// Assembles batches of the requested columns from the batches that are read.
pub(super) struct Arrangement {
    places: Option<Vec<ColumnPlace>>,
    /// The values of each column that folders name, for the largest batch.
    folders: Vec<(Field, ArrayRef)>,
}

impl Arrangement {
    pub(super) fn new(chosen: Chosen, folders: &[Folder], batch_rows: usize) -> Self {
        let is_used = |at| chosen.places.iter().flatten().any(|place| *place == ColumnPlace::Folder(at));
        let array = |(at, folder): (usize, &Folder)| {
            let rows = if is_used(at) { batch_rows } else { 0 };
            (folder.field.clone(), folder.value.array(rows))
        };
        let folders = folders.iter().enumerate().map(array).collect();
        Self { places: chosen.places, folders }
    }

    pub(super) fn columns(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let Some(places) = &self.places else { return Ok(batch) };
        let missing = || ArrowError::SchemaError("a column is missing".to_owned());
        let mut fields = Vec::with_capacity(places.len());
        let mut columns = Vec::with_capacity(places.len());
        for place in places {
            match *place {
                ColumnPlace::Field(at) => {
                    let schema = batch.schema_ref();
                    fields.push(Arc::clone(schema.fields().get(at).ok_or_else(missing)?));
                    columns.push(Arc::clone(batch.columns().get(at).ok_or_else(missing)?));
                }
                ColumnPlace::Folder(at) => {
                    let (field, array) = self.folders.get(at).ok_or_else(missing)?;
                    let array =
                        Some(array).filter(|array| array.len() >= batch.num_rows()).ok_or_else(missing)?;
                    fields.push(Arc::new(field.clone()));
                    columns.push(array.slice(0, batch.num_rows()));
                }
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ColumnPlace::{Field, Folder};

    #[test]
    fn only_requested_fields_are_read() {
        let of = |columns: &[ColumnPlace]| Chosen::new(columns.iter().copied(), 3);
        let all = Chosen { fields: None, places: None };
        assert_eq!(of(&[Field(0), Field(1), Field(2)]), all);
        assert_eq!(
            of(&[Field(2), Folder(0), Field(0)]),
            Chosen { fields: Some(vec![0, 2]), places: Some(vec![Field(1), Folder(0), Field(0)]) }
        );
        assert_eq!(of(&[Folder(1)]), Chosen { fields: Some(Vec::new()), places: Some(vec![Folder(1)]) });
        assert_eq!(of(&[Field(1), Field(2)]), Chosen { fields: Some(vec![1, 2]), places: None });
    }
}
