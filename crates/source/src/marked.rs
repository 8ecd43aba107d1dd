//! A source whose rows carry a mark: a column that says whether a condition is true for the row.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use crate::condition::Condition;
use crate::condition::pruning::Known;
use crate::condition::rows::RowTest;
use crate::error::{Error, Kind, Result};
use crate::units::{Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader};

/// The name of the column with the mark, the last one of a [`Marked`] source: true for rows that delete the row of
/// their key.
pub const DELETES: &str = "sawmill_deletes";

/// A source with the column [`DELETES`] behind its own.
pub struct Marked<'a> {
    source: &'a dyn Source,
    condition: String,
    test: RowTest,
    tested: Vec<String>,
    schema: SchemaRef,
    files: Vec<SourceFile>,
}

impl<'a> Marked<'a> {
    /// Returns the rows of `source`, marked where `condition` is true. It names columns as in the files; `renames` has
    /// their names there and in the source. Each batch is tested once, in memory.
    ///
    /// # Errors
    /// The condition names a column that the source lacks or that is nested, or compares one with a value of another
    /// type; the source has a column of the mark's name.
    pub fn new(source: &'a dyn Source, condition: &Condition, renames: &[(String, String)]) -> Result<Self> {
        if source.schema().index_of(DELETES).is_ok() {
            return Err(Error::new(Kind::Config, format!("the files have a column {DELETES:?} already"))
                .advise("rename it (--rename), or leave it out (--columns)"));
        }
        let in_files = source.schema().fields().iter().map(|field| {
            let renamed = renames.iter().find(|(_, to)| to == field.name());
            renamed.map_or_else(|| field.as_ref().clone(), |(from, _)| field.as_ref().clone().with_name(from))
        });
        let in_files = Schema::new(in_files.collect::<Vec<Field>>());
        let test = RowTest::new(condition, &in_files, &[])?;
        let fields = source.schema().fields().iter().zip(in_files.fields());
        let tested = fields.filter(|(_, in_file)| condition.names(in_file.name()));
        let tested = tested.map(|(field, _)| field.name().clone()).collect();
        let files = source.files().iter();
        let files =
            files.map(|file| SourceFile { columns: file.columns.as_deref().map(with_mark), ..file.clone() });
        Ok(Self {
            condition: condition.to_string(),
            test,
            tested,
            schema: with_mark(source.schema()),
            files: files.collect(),
            source,
        })
    }

    /// The names, in the source, of the columns that the condition tests.
    pub fn tested(&self) -> &[String] {
        &self.tested
    }

    /// The mark of each row of a batch that has the source's columns.
    fn marks(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        let places: Vec<usize> = self.test.columns.iter().map(|column| column.place).collect();
        let tested = batch.project(&places).map_err(|error| Error::new(Kind::Source, error.to_string()))?;
        Ok(BooleanArray::new(self.test.rows(&tested)?, None))
    }
}

fn with_mark(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().cloned().chain([mark()]);
    Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
}

fn mark() -> FieldRef {
    Arc::new(Field::new(DELETES, DataType::Boolean, false))
}

impl Source for Marked<'_> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        let facts = self.source.facts();
        let mapping = format!("{} delete where {}", facts.mapping, self.condition);
        Facts { mapping, ..facts }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        self.source.plan(unit_rows)
    }

    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        match column < self.source.schema().fields().len() {
            true => self.source.known(file, column),
            false => Ok(Vec::new()),
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        self.source.check_unchanged()
    }

    fn locate(&self, group: UnitKey, rows: &[u64], named: bool) -> Result<Vec<RowPlace>> {
        self.source.locate(group, rows, named)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let reader = self.source.open(Read { columns: None, ..read }, batch_rows);
        Read { numbered: false, ..read }.of(Box::new(MarkedReader { marked: self, reader }))
    }
}

struct MarkedReader<'a> {
    marked: &'a Marked<'a>,
    reader: Box<dyn UnitReader + 'a>,
}

impl UnitReader for MarkedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        self.reader.start(unit)
    }

    fn expect(&mut self, unit: &Unit) {
        self.reader.expect(unit);
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.reader.next_batch()? else { return Ok(None) };
        let marks = self.marked.marks(&batch)?;
        let mut columns = batch.columns().to_vec();
        let mut fields: Vec<FieldRef> = batch.schema_ref().fields().iter().cloned().collect();
        // The number of a row in its group, where it was asked for, stays the last column.
        let at = self.marked.source.schema().fields().len().min(columns.len());
        columns.insert(at, Arc::new(marks));
        fields.insert(at, mark());
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map(Some)
            .map_err(|error| Error::new(Kind::Source, error.to_string()))
    }

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}
