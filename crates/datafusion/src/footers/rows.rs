//! The work that turns files into rows of their footers.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock, Mutex};

use datafusion::arrow::array::{AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use sawmill_footer::{ColumnChunk, Footer, Options};
use serde::{Deserialize, Serialize};

use crate::footers::cells::Cells;
use crate::footers::columns::{FooterColumn, FooterLevel};
use crate::footers::selection::Selection;
use crate::objects;
use crate::units::work::{SendBatch, Work, WorkDescription};

/// Rows of footers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FooterRows {
    pub level: FooterLevel,
    /// Indices of the columns among the level's columns.
    pub columns: Vec<usize>,
    pub selection: Selection,
    /// The maximum number of rows wanted.
    pub limit: Option<usize>,
}

/// The units: each row is a file.
pub(crate) static UNITS: LazyLock<SchemaRef> =
    LazyLock::new(|| Arc::new(Schema::new(vec![Field::new("file", DataType::Utf8, false)])));

/// Files as units.
pub(crate) fn units_of<'a>(files: impl IntoIterator<Item = &'a String>) -> Result<RecordBatch> {
    let files = StringArray::from_iter_values(files);
    Ok(RecordBatch::try_new(Arc::clone(&UNITS), vec![Arc::new(files)])?)
}

/// [`FooterRows`], ready to be made.
#[derive(Debug)]
pub(crate) struct FooterWork {
    rows: FooterRows,
    columns: Vec<FooterColumn>,
    schema: SchemaRef,
}

impl FooterWork {
    pub(crate) fn new(rows: FooterRows) -> Self {
        let all = rows.level.columns();
        let columns = rows.columns.iter().filter_map(|place| all.get(*place).copied());
        let (columns, schema) = (columns.collect(), rows.level.schema(Some(&rows.columns)));
        Self { rows, columns, schema }
    }

    /// Opens a footer again that could not be decoded with the selected columns, because files of one query may
    /// have different columns. `None` if the file lacks all selected columns.
    fn with_columns_of_its_own(&self, name: &str) -> Result<Option<Footer>> {
        let schema = objects::footer(name, &Options::new().row_groups(0..0))?.shared_schema();
        match self.rows.selection.is_in(&schema) {
            true => {
                objects::footer(name, &self.rows.selection.options(self.rows.level, Some(&schema))).map(Some)
            }
            false => Ok(None),
        }
    }
}

impl Work for FooterWork {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn rows(&self, _: &RecordBatch) -> Option<u64> {
        None
    }

    fn run(&self, units: &RecordBatch, batch_rows: usize, send: SendBatch<'_>) -> Result<()> {
        let names = units.column_by_name("file").and_then(|column| column.as_string_opt::<i32>());
        let names =
            names.ok_or_else(|| internal_datafusion_err!("the units of footers lack the column file"))?;
        let names: Vec<&str> = names.iter().flatten().collect();
        let options = self.rows.selection.options(self.rows.level, None);
        let cells = Cells::new(&self.columns, self.schema());
        let left = self.rows.limit.unwrap_or(usize::MAX);
        let sink = Mutex::new(Sink { work: self, cells, batch_rows, left, send, ended: Ok(()) });
        // One thread reads the ends of many files at a time, and makes their rows; the engine has others.
        objects::footers(&names, &options, |place, footer| {
            let (Ok(mut sink), Some(name)) = (sink.lock(), names.get(place)) else {
                return ControlFlow::Break(());
            };
            sink.take(name, footer)
        });
        let sink = sink.into_inner().map_err(|_| internal_datafusion_err!("reading footers panicked"))?;
        sink.finish()
    }

    fn description(&self) -> WorkDescription {
        WorkDescription::Footers(self.rows.clone())
    }

    fn explained(&self) -> String {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let FooterRows { level, selection, .. } = &self.rows;
        format!("FooterRows: level={level:?}, columns=[{}], {selection}", names.join(", "))
    }
}

/// Takes footers in, and sends their rows in batches.
struct Sink<'a> {
    work: &'a FooterWork,
    cells: Cells,
    batch_rows: usize,
    /// Rows that are still wanted.
    left: usize,
    send: SendBatch<'a>,
    ended: Result<()>,
}

impl Sink<'_> {
    fn take(&mut self, name: &str, footer: Result<Footer>) -> ControlFlow<()> {
        let footer = match footer {
            Err(_) if self.work.rows.selection.names_columns() => self.work.with_columns_of_its_own(name),
            other => other.map(Some),
        };
        let done = match footer {
            Ok(Some(footer)) => self.rows_of(name, &footer),
            Ok(None) => Ok(true),
            Err(error) => Err(error),
        };
        match done {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                self.ended = Err(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Appends the rows of a footer; returns false if the receiver has closed.
    fn rows_of(&mut self, name: &str, footer: &Footer) -> Result<bool> {
        match self.work.rows.level {
            FooterLevel::File => {
                self.cells.file(name, footer)?;
                self.flush(self.batch_rows)
            }
            FooterLevel::RowGroup => {
                for group in footer.row_groups() {
                    self.cells.row_group(name, &group)?;
                    if !self.flush(self.batch_rows)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            FooterLevel::Chunk => {
                // Split, so that wide row groups do not exceed the batch size.
                let mut piece: Vec<ColumnChunk<'_>> = Vec::new();
                for group in footer.row_groups() {
                    let mut chunks = group.columns().peekable();
                    while chunks.peek().is_some() {
                        let room = self.batch_rows.saturating_sub(self.cells.rows()).max(1);
                        piece.clear();
                        piece.extend(chunks.by_ref().take(room));
                        self.cells.chunks(name, footer, &piece)?;
                        if !self.flush(self.batch_rows)? {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
        }
    }

    /// Sends the rows if there are `rows` of them, or as many as are still wanted; false if the receiver has closed.
    fn flush(&mut self, rows: usize) -> Result<bool> {
        if self.cells.rows() < rows.min(self.left).max(1) {
            return Ok(true);
        }
        let batch = self.cells.take()?;
        let batch = batch.slice(0, batch.num_rows().min(self.left));
        self.left -= batch.num_rows();
        Ok((self.send)(batch) && self.left > 0)
    }

    fn finish(mut self) -> Result<()> {
        std::mem::replace(&mut self.ended, Ok(()))?;
        if self.left > 0 {
            self.flush(1)?;
        }
        Ok(())
    }
}
