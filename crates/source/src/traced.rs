//! A source whose rows say more than their files: columns with the file's name, with the row's number in it, and with a
//! mark that says whether a condition is true.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use sawmill_profile::{Error, Kind, Result};

use crate::condition::Condition;
use crate::condition::pruning::Known;
use crate::condition::rows::RowTest;
use crate::units::{Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader};

/// The names of the columns that say where a row comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineageColumns {
    /// The column with the name of the row's file.
    pub file: Option<String>,
    /// The column with the row's number in its file, from 0.
    pub row: Option<String>,
}

/// The name of the column with the mark, the last one of a source that has one: true for rows that delete the row of
/// their key.
pub const DELETES: &str = "sawmill_deletes";

/// The condition that is true for marked rows.
struct Mark {
    condition: String,
    test: RowTest,
    tested: Vec<String>,
}

/// A source with [`LineageColumns`] and a mark behind its own columns.
pub struct Traced<'a> {
    source: &'a dyn Source,
    columns: LineageColumns,
    mark: Option<Mark>,
    schema: SchemaRef,
    files: Vec<SourceFile>,
    /// The rows of a file before each of its row groups.
    before: HashMap<(u32, u32), u64>,
}

impl<'a> Traced<'a> {
    /// Returns the rows of `source` with these columns.
    ///
    /// # Errors
    /// A column of the source has one of the names; rows are to be numbered, but the source leaves some out.
    pub fn new(source: &'a dyn Source, columns: LineageColumns) -> Result<Self> {
        let added = columns.fields();
        let taken = added.iter().find(|field| source.schema().index_of(field.name()).is_ok());
        if let Some(taken) = taken {
            return Err(Error::new(
                Kind::Config,
                format!("the files have a column {:?} already", taken.name()),
            )
            .advise("give the column another name, or rename the files' column (--rename)"));
        }
        if columns.row.is_some() && !source.facts().counts_all_rows {
            let what = "rows cannot be numbered when some are left out";
            return Err(Error::new(Kind::Config, what)
                .at("--row-column")
                .advise("leave the option out, or load all rows of the files"));
        }
        let files = source.files().iter().map(|file| SourceFile {
            columns: file.columns.as_deref().map(|own| with(own, &added)),
            ..file.clone()
        });
        let mut before = HashMap::new();
        let mut groups: Vec<Unit> = source.plan(u64::MAX).into_iter().flatten().collect();
        groups.sort_unstable_by_key(|unit| unit.key);
        let (mut file, mut rows) = (u32::MAX, 0);
        for Unit { key, rows: of_group, .. } in groups {
            if key.file != file {
                (file, rows) = (key.file, 0);
            }
            before.entry((key.file, key.row_group)).or_insert(rows);
            rows += of_group;
        }
        let schema = with(source.schema(), &added);
        Ok(Self { schema, files: files.collect(), source, columns, mark: None, before })
    }

    /// Adds the column [`DELETES`], true where `condition` is. It names columns as in the files; `renames` has their names
    /// there and in the source.
    ///
    /// # Errors
    /// The condition names a column that the source lacks or that is nested, or compares one with a value of another
    /// type; the source has a column of the mark's name.
    pub fn marked(mut self, condition: &Condition, renames: &[(String, String)]) -> Result<Self> {
        if self.schema.index_of(DELETES).is_ok() {
            return Err(Error::new(Kind::Config, format!("the files have a column {DELETES:?} already"))
                .advise("rename it (--rename), or leave it out (--columns)"));
        }
        let own = self.source.schema().fields();
        let in_files = own.iter().map(|field| {
            let renamed = renames.iter().find(|(_, to)| to == field.name());
            renamed.map_or_else(|| field.as_ref().clone(), |(from, _)| field.as_ref().clone().with_name(from))
        });
        let in_files = Schema::new(in_files.collect::<Vec<Field>>());
        let test = RowTest::new(condition, &in_files, &[])?;
        let tested = own.iter().zip(in_files.fields()).filter(|(_, in_file)| condition.names(in_file.name()));
        let tested = tested.map(|(field, _)| field.name().clone()).collect();
        self.schema = with(&self.schema, &[mark_field()]);
        for file in &mut self.files {
            file.columns = file.columns.as_deref().map(|own| with(own, &[mark_field()]));
        }
        self.mark = Some(Mark { condition: condition.to_string(), test, tested });
        Ok(self)
    }

    /// The names, in the source, of the columns that decide on the mark, if there is one.
    pub fn tested(&self) -> Option<&[String]> {
        self.mark.as_ref().map(|mark| mark.tested.as_slice())
    }

    /// The fields behind the source's own.
    fn added(&self) -> impl Iterator<Item = FieldRef> {
        self.columns.fields().into_iter().chain(self.mark.as_ref().map(|_| mark_field()))
    }

    /// The added columns of a batch that begins with row `first` of the row group.
    fn arrays(&self, key: UnitKey, first: u64, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let rows = batch.num_rows();
        let name = self.files.get(key.file as usize).map_or("", |file| file.name.as_str());
        let from = self.before.get(&(key.file, key.row_group)).copied().unwrap_or_default() + first;
        let file: Option<ArrayRef> =
            self.columns.file.as_ref().map(|_| {
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows))) as ArrayRef
            });
        let numbers = || Int64Array::from_iter_values((from..).take(rows).map(|row| row as i64));
        let row: Option<ArrayRef> = self.columns.row.as_ref().map(|_| Arc::new(numbers()) as ArrayRef);
        let mark = self.mark.as_ref().map(|mark| mark.array(batch)).transpose()?;
        Ok(file.into_iter().chain(row).chain(mark).collect())
    }
}

impl Mark {
    fn array(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let places: Vec<usize> = self.test.columns.iter().map(|column| column.place).collect();
        let tested = batch.project(&places).map_err(|error| Error::new(Kind::Source, error.to_string()))?;
        Ok(Arc::new(BooleanArray::new(self.test.rows(&tested)?, None)))
    }
}

fn mark_field() -> FieldRef {
    Arc::new(Field::new(DELETES, DataType::Boolean, false))
}

/// A schema with more fields at its end.
fn with(schema: &Schema, added: &[FieldRef]) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().chain(added).cloned().collect::<Vec<FieldRef>>()))
}

impl LineageColumns {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a column of this name is one of them.
    pub fn contains(&self, name: &str) -> bool {
        [&self.file, &self.row].into_iter().flatten().any(|column| column == name)
    }

    fn fields(&self) -> Vec<FieldRef> {
        let field = |name: &Option<String>, data_type| {
            name.as_ref().map(|name| Arc::new(Field::new(name, data_type, false)))
        };
        field(&self.file, DataType::Utf8).into_iter().chain(field(&self.row, DataType::Int64)).collect()
    }
}

impl Source for Traced<'_> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        let facts = self.source.facts();
        let mut mapping = facts.mapping;
        if !self.columns.is_empty() {
            mapping.added += &format!("from {:?}", self.columns);
        }
        if let Some(mark) = &self.mark {
            mapping.added += &format!(" delete where {}", mark.condition);
        }
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
        let inner = self.source.open(Read { columns: None, ..read }, batch_rows);
        let reader = TracedReader { traced: self, reader: inner, key: None, row: 0 };
        Read { numbered: false, ..read }.of(Box::new(reader))
    }
}

struct TracedReader<'a> {
    traced: &'a Traced<'a>,
    reader: Box<dyn UnitReader + 'a>,
    key: Option<UnitKey>,
    /// The next row of its row group.
    row: u64,
}

impl UnitReader for TracedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        (self.key, self.row) = (Some(unit.key), unit.key.first_row);
        self.reader.start(unit)
    }

    fn expect(&mut self, unit: &Unit) {
        self.reader.expect(unit);
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let (Some(batch), Some(key)) = (self.reader.next_batch()?, self.key) else { return Ok(None) };
        let own = self.traced.source.schema().fields().len();
        let mut columns = batch.columns().to_vec();
        let mut fields: Vec<FieldRef> = batch.schema_ref().fields().iter().cloned().collect();
        // The number of a row in its group, where it was asked for, stays the last column.
        let at = own.min(columns.len());
        columns.splice(at..at, self.traced.arrays(key, self.row, &batch)?);
        fields.splice(at..at, self.traced.added());
        self.row += batch.num_rows() as u64;
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map(Some)
            .map_err(|error| Error::new(Kind::Source, error.to_string()))
    }

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}
