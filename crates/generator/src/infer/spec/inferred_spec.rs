//! Infers a dataset spec from existing data: from its Arrow schema alone, or also from a sample of its rows.
//!
//! The spec is TOML to read and edit. Without a sample, every type gets simple values. With a sample, null
//! shares, list lengths and values follow the sample, see [`crate::infer::values::numbers`] and
//! [`crate::infer::values::texts`]. Columns that a spec cannot represent are left out, and named.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};

use crate::error::{Error, Result};
use crate::infer::references::found::Roles;
use crate::infer::references::{Hashes, Key, KeyColumn};
use crate::infer::sample::cells::{ChosenRows, MAX_COLUMNS};
use crate::infer::sample::inferred_field::{Inferred, InferredKind, cast, inferred};
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::stored::Stored;
use crate::infer::values::made_up::Verbatim;

/// The most columns of a sample: each is compared with others.
const MAX_FIELDS: usize = 20_000;

/// The most rows of a batch that are sampled at once.
const MAX_BATCH: usize = 1 << 16;

/// Why a column is left out that the user left out.
pub(crate) const EXCLUDED: &str = "excluded";

/// A spec that is being inferred.
#[derive(Debug)]
pub struct InferredSpec {
    pub(super) name: String,
    /// A field for each column of the schema, or why it is left out.
    fields: Vec<Result<Inferred, LeftOut>>,
    pub(super) verbatim: Verbatim,
    /// The sampled ranges of rows: the first row and the number of rows.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// The number of all rows, if known.
    pub(crate) rows: Option<u64>,
    /// The most rows that are made from the spec, as far as known.
    most_rows: u64,
    /// The rows by which pairs of columns are compared.
    pub(crate) chosen: ChosenRows,
    /// The sampled values of columns that may be keys or refer to some, if that is wanted.
    hashes: BTreeMap<usize, Hashes>,
    /// The columns that are keys.
    keys: BTreeMap<usize, Key>,
}

/// A column that the spec does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub column: String,
    /// Why a spec cannot represent it, or that it was excluded.
    pub reason: String,
}

impl InferredSpec {
    /// Starts a spec for the columns of `schema` without those in `exclude`. `name` becomes the name of the
    /// dataset; characters that are not allowed are replaced.
    ///
    /// # Errors
    /// A name in `exclude` is not a column, or no column is left.
    pub fn new(name: &str, schema: &Schema, exclude: &[String]) -> Result<Self> {
        let named = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().map(named).collect();
        let name = if name.is_empty() { "data".to_owned() } else { name };
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        if let Some(unknown) = exclude.iter().find(|name| !columns.contains(&name.as_str())) {
            let what = format!("no column is named {unknown:?}");
            return Err(Error::spec(what, "--exclude", format!("columns: {}", columns.join(", "))));
        }
        let mut kept = columns.iter().filter(|name| !exclude.iter().any(|excluded| excluded == *name));
        if let Some(column) = kept.nth(MAX_FIELDS) {
            let number = MAX_FIELDS + 1 + kept.count();
            let what = format!("a sample of {number} columns, more than {MAX_FIELDS}");
            return Err(Error::spec(what, *column, "leave out some with --exclude"));
        }
        let mut fields: Vec<Result<Inferred, LeftOut>> = Vec::new();
        for field in schema.fields() {
            let column = field.name().clone();
            let twice = || columns.iter().filter(|name| **name == column).count() > 1;
            let found = if exclude.contains(&column) {
                Err(EXCLUDED.to_owned())
            } else if twice() {
                Err("another column has the same name".to_owned())
            } else {
                inferred(field)
            };
            let found = found.map(|field| Inferred { there: Some(Vec::new()), ..field });
            fields.push(found.map_err(|reason| LeftOut { column, reason }));
        }
        let mut left = MAX_COLUMNS;
        fields.iter_mut().flatten().for_each(|field| field.keep_cells(&mut left));
        let mut spec = InferredSpec {
            name,
            fields,
            verbatim: Verbatim::default(),
            ranges: Vec::new(),
            rows: None,
            most_rows: 0,
            chosen: ChosenRows::new(MAX_COLUMNS - left),
            hashes: BTreeMap::new(),
            keys: BTreeMap::new(),
        };
        spec.leave_out_refused();
        spec.any_left()?;
        Ok(spec)
    }

    /// Leaves out the nested columns whose own spec is not read back: of flat columns all are.
    pub fn leave_out_refused(&mut self) {
        let refused = |field: &Inferred| match &field.kind {
            InferredKind::Leaf { .. } => None,
            _ => self.refused(field),
        };
        let refused = |field: &Result<Inferred, LeftOut>| field.as_ref().ok().and_then(refused);
        let refused: Vec<Option<LeftOut>> = self.fields.iter().map(refused).collect();
        for (field, refused) in self.fields.iter_mut().zip(refused) {
            if let Some(refused) = refused {
                *field = Err(refused);
            }
        }
    }

    /// Which strings may be copied from the data.
    #[must_use]
    pub fn with_verbatim(self, verbatim: Verbatim) -> Self {
        InferredSpec { verbatim, ..self }
    }

    /// Also samples what tells keys, and columns that refer to keys of other tables: 8 bytes for each value.
    #[must_use]
    pub fn with_keys(mut self, schema: &Schema) -> Self {
        for (column, field) in schema.fields().iter().enumerate() {
            let found = self.fields.get(column).is_some_and(Result::is_ok);
            let hashes = found.then(|| Hashes::new(field.data_type())).flatten();
            self.hashes.extend(hashes.map(|hashes| (column, hashes)));
        }
        self
    }

    /// The columns that may be keys: no two sampled values are equal, and none is null. All values of each say
    /// whether it is one.
    pub fn may_be_keys(&self) -> Vec<usize> {
        let may_be = |column: usize, hashes: &Hashes| self.nulls(column) == 0 && hashes.all_differ();
        self.hashes
            .iter()
            .filter(|(column, hashes)| may_be(**column, hashes))
            .map(|(column, _)| *column)
            .collect()
    }

    /// Sets all values of a column that may be a key.
    pub fn set_key(&mut self, column: usize, values: &KeyColumn) {
        self.keys.extend(values.key().map(|key| (column, key)));
    }

    /// Sets the number of all rows, which the spec gets as its default.
    pub fn set_rows(&mut self, rows: u64) {
        self.rows = Some(rows);
    }

    /// Sets the number of rows that may be made from the spec, for which keys must suffice.
    pub fn set_most_rows(&mut self, rows: u64) {
        self.most_rows = rows;
    }

    pub(super) fn rows_to_make(&self) -> u64 {
        self.rows.unwrap_or_else(|| self.sampled_rows()).max(self.most_rows)
    }

    /// Sets what footers say of all values of a column: the number of nulls, and the least and greatest
    /// values of row groups.
    ///
    /// # Errors
    /// The bounds have another type than the column.
    pub fn set_footer(
        &mut self,
        column: usize,
        nulls: Option<(u64, u64)>,
        bounds: &[ArrayRef],
    ) -> Result<()> {
        let Some(Ok(field)) = self.fields.get_mut(column) else { return Ok(()) };
        field.null_share =
            nulls.filter(|(_, rows)| *rows > 0).map(|(nulls, rows)| nulls as f64 / rows as f64);
        if let InferredKind::Leaf { kind, .. } = &field.kind
            && !matches!(kind, DataType::Utf8 | DataType::Binary | DataType::FixedSizeBinary(_))
        {
            let mut sample = LeafSample::new(kind);
            for array in bounds {
                let array = cast(array, kind)?;
                let there: Vec<bool> = (0..array.len()).map(|i| array.is_valid(i)).collect();
                sample.add(&array, &there);
            }
            field.bounds = Some(sample);
        }
        Ok(())
    }

    /// Samples the rows of a batch, which must have the columns of the schema and follows the last one.
    ///
    /// # Errors
    /// The batch has other columns, or one cannot be read.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let next = self.ranges.last().map_or(0, |(first, n)| first + n);
        self.add_at(batch, next)
    }

    /// Samples the rows of a batch that starts at row `first`.
    ///
    /// # Errors
    /// As [`InferredSpec::add`].
    pub fn add_at(&mut self, batch: &RecordBatch, first: u64) -> Result<()> {
        if batch.num_columns() != self.fields.len() {
            let what = format!("a batch of {} columns instead of {}", batch.num_columns(), self.fields.len());
            return Err(Error::spec(what, "the sample", "sample rows of one file only"));
        }
        if batch.num_rows() > MAX_BATCH {
            let part = |start: usize| batch.slice(start, MAX_BATCH.min(batch.num_rows() - start));
            let mut starts = (0..batch.num_rows()).step_by(MAX_BATCH);
            return starts.try_for_each(|start| self.add_at(&part(start), first + start as u64));
        }
        self.ranges.push((first, batch.num_rows() as u64));
        let chosen = self.chosen.choose(first, batch.num_rows());
        for (field, column) in self.fields.iter_mut().zip(batch.columns()) {
            if let Ok(field) = field {
                field.add(column, None, &chosen)?;
            }
        }
        if let Some(stays) = self.chosen.thinned() {
            self.fields.iter_mut().flatten().for_each(|field| field.thin_cells(&stays));
        }
        for (column, hashes) in &mut self.hashes {
            hashes.add(batch.column(*column))?;
        }
        Ok(())
    }

    /// The columns that the spec does not have, with the reason.
    pub fn left_out(&self) -> Vec<LeftOut> {
        let reason = |field: &Result<Inferred, LeftOut>| match field {
            Err(left_out) => Some(left_out.clone()),
            Ok(field) => field.unfit(1).map(|reason| LeftOut { column: field.name.clone(), reason }),
        };
        self.fields.iter().filter_map(reason).collect()
    }

    pub(super) fn any_left(&self) -> Result<()> {
        let left_out = self.left_out();
        if left_out.len() < self.fields.len() || self.fields.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> =
            left_out.iter().map(|LeftOut { column, reason }| format!("{column} ({reason})")).collect();
        let what = format!("no column that a spec can represent: {}", reasons.join(", "));
        Err(Error::spec(what, "the data", "give data with columns of other types"))
    }

    /// The number of sampled rows.
    pub fn sampled_rows(&self) -> u64 {
        self.ranges.iter().map(|(_, n)| n).sum()
    }

    /// The spec as TOML.
    ///
    /// # Errors
    /// No column is left that a spec can represent.
    pub fn to_toml(&self) -> Result<String> {
        self.written("fields", &Roles::default())
    }

    /// The spec as one of several tables.
    pub(crate) fn to_table(&self, roles: &Roles) -> Result<String> {
        self.written("tables.fields", roles)
    }

    /// The fields that the spec has, with their places among the columns.
    pub(super) fn kept_places(&self) -> impl Iterator<Item = (usize, &Inferred)> {
        let fields = self.fields.iter().enumerate();
        let fields = fields.filter_map(|(place, field)| Some((place, field.as_ref().ok()?)));
        fields.filter(|(_, field)| field.unfit(1).is_none())
    }

    /// The fields that the spec has.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Inferred> {
        self.kept_places().map(|(_, field)| field)
    }

    /// The name of the dataset.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of columns of the data.
    pub(crate) fn columns(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn column_name(&self, column: usize) -> &str {
        match self.fields.get(column) {
            Some(Ok(field)) => &field.name,
            Some(Err(left_out)) => &left_out.column,
            None => "",
        }
    }

    pub(crate) fn column_named(&self, name: &str) -> Option<usize> {
        (0..self.fields.len()).find(|column| self.column_name(*column) == name)
    }

    /// The type of a column that is not nested.
    pub(crate) fn kind(&self, column: usize) -> Option<&DataType> {
        match self.fields.get(column)?.as_ref().ok()?.kind {
            InferredKind::Leaf { ref kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// The number of nulls in the sample, or that the footers say.
    pub(crate) fn nulls(&self, column: usize) -> u64 {
        let Some(Ok(field)) = self.fields.get(column) else { return 0 };
        field.nulls + u64::from(field.null_share.is_some_and(|share| share > 0.0))
    }

    /// The name and the sampled values of a column that may refer to a key.
    pub(crate) fn hashes(&self, column: usize) -> Option<(&str, &Hashes)> {
        Some((self.column_name(column), self.hashes.get(&column)?))
    }

    pub(crate) fn key(&self, column: usize) -> Option<&Key> {
        self.keys.get(&column)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.keys.iter().map(|(column, key)| (*column, key))
    }

    /// Whether a column has the type of UUIDs.
    pub(crate) fn is_uuid(&self, column: usize) -> bool {
        let field = self.fields.get(column).and_then(|field| field.as_ref().ok());
        field.is_some_and(|field| matches!(&field.kind, InferredKind::Leaf { stored: Stored::Uuid, .. }))
    }

    /// The `values` of a key that can be referred to.
    pub(crate) fn key_values(&self, column: usize) -> Option<String> {
        let field = self.fields.get(column)?.as_ref().ok()?;
        Some(self.keys.get(&column)?.values(&self.values(field)))
    }
}
