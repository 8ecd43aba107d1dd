//! A source whose rows name their origin: columns with the file's name, and with the row's number in it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use sawmill_profile::{Error, Kind, Result};

use crate::condition::pruning::Known;
use crate::units::{Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader};

/// The names of the columns that say where a row comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineageColumns {
    /// The column with the name of the row's file.
    pub file: Option<String>,
    /// The column with the row's number in its file, from 0.
    pub row: Option<String>,
}

/// A source with [`LineageColumns`] behind its own columns.
pub struct Traced<'a> {
    source: &'a dyn Source,
    columns: LineageColumns,
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
        let with = |schema: &Schema| {
            let fields = schema.fields().iter().cloned().chain(added.iter().cloned());
            Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
        };
        let files = source
            .files()
            .iter()
            .map(|file| SourceFile { columns: file.columns.as_deref().map(with), ..file.clone() });
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
        Ok(Self { schema: with(source.schema()), files: files.collect(), source, columns, before })
    }

    /// The added columns of `rows` rows, beginning with row `first` of the row group.
    fn arrays(&self, key: UnitKey, first: u64, rows: usize) -> Vec<ArrayRef> {
        let name = self.files.get(key.file as usize).map_or("", |file| file.name.as_str());
        let from = self.before.get(&(key.file, key.row_group)).copied().unwrap_or_default() + first;
        let file: Option<ArrayRef> =
            self.columns.file.as_ref().map(|_| {
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, rows))) as ArrayRef
            });
        let numbers = || Int64Array::from_iter_values((from..).take(rows).map(|row| row as i64));
        let row: Option<ArrayRef> = self.columns.row.as_ref().map(|_| Arc::new(numbers()) as ArrayRef);
        file.into_iter().chain(row).collect()
    }
}

impl LineageColumns {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
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
        let mapping = format!("{} from {:?}", facts.mapping, self.columns);
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
        let rows = batch.num_rows();
        let mut columns = batch.columns().to_vec();
        let mut fields: Vec<FieldRef> = batch.schema_ref().fields().iter().cloned().collect();
        // The number of a row in its group, where it was asked for, stays the last column.
        let at = own.min(columns.len());
        columns.splice(at..at, self.traced.arrays(key, self.row, rows));
        fields.splice(at..at, self.traced.columns.fields());
        self.row += rows as u64;
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map(Some)
            .map_err(|error| Error::new(Kind::Source, error.to_string()))
    }

    fn row_in_unit(&self, in_batch: usize) -> Option<u64> {
        self.reader.row_in_unit(in_batch)
    }
}
