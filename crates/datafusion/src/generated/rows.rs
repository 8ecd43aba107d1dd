//! The work that makes rows of a dataset.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt64Type};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use sawmill_generator::Dataset;
use serde::{Deserialize, Serialize};

use crate::error::external;
use crate::generated::spec::Spec;
use crate::units::work::{SendBatch, Work, WorkDescription};

/// Columns of rows of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GeneratedRows {
    pub spec: Spec,
    pub seed: u64,
    /// The name of the column with the row's number.
    pub number: Option<String>,
    /// The columns, in their order.
    pub columns: Vec<Column>,
}

/// A column of a generated table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Column {
    /// The row's number, counted from 0.
    Number,
    /// The field at this place of the record.
    Field(usize),
}

/// The units: a row has a range of rows of the dataset.
pub(crate) static UNITS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    Arc::new(Schema::new(vec![number("first_row"), number("end_row")]))
});

/// Ranges of rows as units.
pub(crate) fn units_of(ranges: &[Range<u64>]) -> Result<RecordBatch> {
    let numbers = |number: fn(&Range<u64>) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(ranges.iter().map(number)))
    };
    let columns = vec![numbers(|rows| rows.start), numbers(|rows| rows.end)];
    Ok(RecordBatch::try_new(Arc::clone(&UNITS), columns)?)
}

/// The ranges of rows that are units of `units`.
pub(crate) fn ranges_of(units: &RecordBatch) -> Result<Vec<Range<u64>>> {
    let numbers = |name: &str| {
        let column = units.column_by_name(name).and_then(|column| column.as_primitive_opt::<UInt64Type>());
        column.ok_or_else(|| internal_datafusion_err!("the units of a generated table lack {name}"))
    };
    let (first, end) = (numbers("first_row")?, numbers("end_row")?);
    Ok(first.values().iter().zip(end.values()).map(|(first, end)| *first..*end).collect())
}

/// [`GeneratedRows`], ready to be made.
#[derive(Debug)]
pub(crate) struct RowsWork {
    rows: GeneratedRows,
    dataset: Arc<Dataset>,
    /// The places of the fields among the columns.
    fields: Vec<usize>,
    schema: SchemaRef,
}

impl RowsWork {
    pub(crate) fn new(rows: GeneratedRows, dataset: Arc<Dataset>) -> Self {
        let record = dataset.arrow_schema();
        let fields = rows.columns.iter().filter_map(|column| match column {
            Column::Field(place) => Some(*place),
            Column::Number => None,
        });
        let fields = fields.collect();
        let column = |column: &Column| -> Option<FieldRef> {
            match column {
                Column::Field(place) => record.fields().get(*place).cloned(),
                Column::Number => rows.number.as_ref().map(|name| number_field(name)),
            }
        };
        let schema = Arc::new(Schema::new(rows.columns.iter().filter_map(column).collect::<Vec<_>>()));
        Self { rows, dataset, fields, schema }
    }

    /// Reads the dataset on this machine.
    pub(crate) fn open(rows: GeneratedRows) -> Result<Self> {
        let dataset = rows.spec.open()?;
        Ok(Self::new(rows, dataset))
    }

    /// The columns of a batch, whose first row is `first`: the fields that were drawn, and the row's number.
    fn columns(&self, drawn: &RecordBatch, first: u64) -> Result<RecordBatch> {
        let mut fields = drawn.columns().iter();
        let column = |column: &Column| -> Option<ArrayRef> {
            match column {
                Column::Field(_) => fields.next().cloned(),
                Column::Number => {
                    let numbers = (first..).take(drawn.num_rows()).map(|number| number as i64);
                    Some(Arc::new(Int64Array::from_iter_values(numbers)))
                }
            }
        };
        let columns = self.rows.columns.iter().filter_map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(drawn.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The column with the number of a row.
pub(crate) fn number_field(name: &str) -> FieldRef {
    Arc::new(Field::new(name, DataType::Int64, false))
}

impl Work for RowsWork {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self, units: &RecordBatch) -> Option<u64> {
        Some(ranges_of(units).ok()?.iter().map(|rows| rows.end.saturating_sub(rows.start)).sum())
    }

    fn run(&self, units: &RecordBatch, batch_rows: usize, send: SendBatch<'_>) -> Result<()> {
        for rows in ranges_of(units)? {
            let mut first = rows.start;
            let batches = self.dataset.batches_of(&self.fields, rows, self.rows.seed, batch_rows);
            for batch in batches.map_err(external)? {
                let batch = batch.map_err(external)?;
                if !send(self.columns(&batch, first)?) {
                    return Ok(());
                }
                first += batch.num_rows() as u64;
            }
        }
        Ok(())
    }

    fn description(&self) -> WorkDescription {
        WorkDescription::Rows(self.rows.clone())
    }

    fn explained(&self) -> String {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let (spec, seed) = (self.rows.spec.name(), self.rows.seed);
        format!("GeneratedRows: spec={spec}, seed={seed}, columns=[{}]", names.join(", "))
    }
}
