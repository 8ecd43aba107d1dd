//! A dataset of the generator as a source: rows are generated when they are loaded, without files.
//!
//! Row `i` is a function of the spec, the seed and `i`, so an interrupted load resumes like one of files:
//! units that have not arrived are generated again, with the same rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use sawmill_generator::{Batches, Dataset, Explanation, ROW_GROUP_ROWS};
use sawmill_profile::{Error, Kind, Result};

use crate::columns::choice::ColumnChoice;
use crate::columns::mapping::Mapping;
use crate::condition::pruning::Known;
use crate::parquet_files::interval::embedded_schema;
use crate::parquet_files::schema::{ENUM_MARK, marked};
use crate::units::{
    Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, counted_places, recut,
};

/// A range of rows of a dataset as a source.
pub struct GeneratedRows {
    dataset: Arc<Dataset>,
    seed: u64,
    /// The first row of the source.
    first: u64,
    schema: SchemaRef,
    /// The only "file", which contains all rows.
    files: Vec<SourceFile>,
    /// The selected columns; `None` for all.
    chosen: Option<Vec<usize>>,
    mapping: Mapping,
}

impl GeneratedRows {
    /// Returns rows 0 to `rows` of `dataset` as a source.
    ///
    /// ```
    /// use sawmill_source::{GeneratedRows, Source};
    /// let contacts = sawmill_generator::Dataset::built_in("contacts").unwrap()?;
    /// let source = GeneratedRows::new(contacts, 1_000_000, 42);
    /// assert_eq!(source.files()[0].rows, 1_000_000);
    /// # Ok::<(), sawmill_generator::Error>(())
    /// ```
    pub fn new(dataset: impl Into<Arc<Dataset>>, rows: u64, seed: u64) -> Self {
        let dataset: Arc<Dataset> = dataset.into();
        // Another version may generate other values.
        let fingerprint = format!("{:032x} version {}", dataset.spec_hash(), env!("CARGO_PKG_VERSION"));
        let name = format!("gen:{}?rows={rows}&seed={seed}", dataset.name());
        let explained = dataset.explain();
        let bytes = (explained.bytes_a_row * rows as f64) as u64;
        // Rows are the same whenever they are generated.
        let stamp = Some(fingerprint.clone());
        let files = vec![SourceFile { name, fingerprint, stamp, rows, bytes, columns: None }];
        let schema = as_in_files(&dataset.arrow_schema(), &explained);
        Self { dataset, seed, first: 0, schema, files, chosen: None, mapping: Mapping::default() }
    }

    /// Restricts the source to `rows` of the dataset, such as the rows of one part of its files.
    pub fn within(mut self, rows: Range<u64>) -> Self {
        self.first = rows.start;
        self.files[0].rows = rows.end.saturating_sub(rows.start);
        self
    }

    /// Selects the named columns, in the order of `columns` (all if it is empty), and renames some.
    ///
    /// # Errors
    /// A column that does not exist or is named twice; two columns with the same new name.
    pub fn select(mut self, columns: &[String], renames: &[(String, String)]) -> Result<Self> {
        if let Some(choice) = ColumnChoice::new(&self.schema, columns, renames)? {
            self.chosen = Some(choice.places);
            self.schema = choice.schema;
            self.mapping = Mapping::of_columns(choice.mapping);
        }
        Ok(self)
    }
}

/// The key and the value in the footer of files of `dataset` that have Arrow types which Parquet does not describe
/// alone, as [`Dataset::needs_arrow_schema`] says. The column `partition_by` is in the names of folders instead.
pub fn embedded_arrow_schema(dataset: &Dataset, partition_by: Option<&str>) -> (String, String) {
    let schema = embedded_schema(&dataset.arrow_schema());
    let fields = schema.fields().iter().filter(|field| Some(field.name().as_str()) != partition_by);
    let schema = Schema::new(fields.cloned().collect::<Vec<_>>());
    (ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema))
}

/// Returns the schema with the marks that columns of files have beyond their Arrow types.
fn as_in_files(schema: &Schema, explained: &Explanation) -> SchemaRef {
    let kind = |field: &Field| explained.columns.iter().find(|column| column.path == *field.name());
    let fields = schema.fields().iter().map(|field| match kind(field).map(|column| column.kind.as_str()) {
        Some("enum") => marked(field, ENUM_MARK, ""),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new(fields.collect::<Fields>()))
}

impl Source for GeneratedRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn facts(&self) -> Facts {
        Facts::of_files(&self.files, &self.mapping)
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let SourceFile { rows, bytes, .. } = self.files[0];
        let row_groups = 0..rows.div_ceil(ROW_GROUP_ROWS);
        let group = |row_group: u64| {
            let here = ROW_GROUP_ROWS.min(rows - row_group * ROW_GROUP_ROWS);
            let share = (u128::from(bytes) * u128::from(here) / u128::from(rows)) as u64;
            Unit::of_group(0, row_group as u32, here, share)
        };
        recut(row_groups.map(group).collect(), unit_rows)
    }

    fn known(&self, _file: u32, _column: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, _group: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        let reader = GeneratedReader { source: self, batch_rows, batches: None };
        // Its units are consecutive rows.
        Read { numbered: false, ..read }.of(Box::new(reader))
    }
}

struct GeneratedReader<'a> {
    source: &'a GeneratedRows,
    batch_rows: usize,
    batches: Option<Batches<'a>>,
}

impl UnitReader for GeneratedReader<'_> {
    fn start(&mut self, unit: &Unit) -> Result<()> {
        let before = u64::from(unit.key.row_group) * ROW_GROUP_ROWS + unit.key.first_row;
        let first = self.source.first + before;
        let rows = first..first + unit.rows;
        self.batches = Some(self.source.dataset.batches(rows, self.source.seed, self.batch_rows));
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(batch) = self.batches.as_mut().and_then(Iterator::next) else { return Ok(None) };
        let name = &self.source.files[0].name;
        let batch = batch.map_err(|error| {
            let place = format!("{name}, {}", error.place());
            Error::new(Kind::Source, error.what()).at(place).advise(error.advice())
        })?;
        let Some(chosen) = &self.source.chosen else { return Ok(Some(batch)) };
        let columns = chosen.iter().map(|place| Arc::clone(batch.column(*place))).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.source.schema), columns);
        batch.map(Some).map_err(|error| Error::new(Kind::Source, error.to_string()).at(name))
    }
}
