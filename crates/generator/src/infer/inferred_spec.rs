//! Infers a dataset spec from existing data: from its Arrow schema alone, or also from a sample of its rows.
//!
//! The spec is TOML to read and edit. Without a sample, every type gets simple values. With a sample, null
//! shares, list lengths and values follow the sample, see [`crate::infer::numbers`] and
//! [`crate::infer::texts`]. Columns that a spec cannot represent are left out, and named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};

use crate::error::Error;
use crate::infer::by_column::by_column;
use crate::infer::bytes;
use crate::infer::correlation;
use crate::infer::dependence;
use crate::infer::inferred_field::{Inferred, InferredKind, cast, inferred};
use crate::infer::leaf_sample::LeafSample;
use crate::infer::lengths::lengths;
use crate::infer::notation::{literal, quoted, rounded, unit_name};
use crate::infer::numbers::{self, Around};
use crate::infer::references::tables::Roles;
use crate::infer::references::{Hashes, Key, KeyColumn};
use crate::infer::relations::{self, Column, Together};
use crate::infer::texts::Verbatim;
use crate::types::logical_type::is_zone;

/// A spec that is being inferred.
#[derive(Debug)]
pub struct InferredSpec {
    name: String,
    /// A field for each column of the schema, or why it is left out.
    fields: Vec<Result<Inferred, LeftOut>>,
    verbatim: Verbatim,
    /// The sampled ranges of rows: the first row and the number of rows.
    ranges: Vec<(u64, u64)>,
    /// The number of all rows, if known.
    rows: Option<u64>,
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
    /// A name in `exclude` is not that of a column, or no column is left.
    pub fn new(name: &str, schema: &Schema, exclude: &[String]) -> Result<Self, Error> {
        let named = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().map(named).collect();
        let name = if name.is_empty() { "data".to_owned() } else { name };
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        if let Some(unknown) = exclude.iter().find(|name| !columns.contains(&name.as_str())) {
            let what = format!("no column is named {unknown:?}");
            return Err(Error::spec(what, "--exclude", format!("columns: {}", columns.join(", "))));
        }
        let mut fields: Vec<Result<Inferred, LeftOut>> = Vec::new();
        for field in schema.fields() {
            let column = field.name().clone();
            let twice = columns.iter().filter(|name| **name == column).count() > 1;
            let found = if exclude.contains(&column) {
                Err("excluded".to_owned())
            } else if twice {
                Err("another column has the same name".to_owned())
            } else {
                inferred(field)
            };
            let found = found.map(|field| Inferred { there: Some(Vec::new()), ..field });
            fields.push(found.map_err(|reason| LeftOut { column, reason }));
        }
        let spec = InferredSpec {
            name,
            fields,
            verbatim: Verbatim::default(),
            ranges: Vec::new(),
            rows: None,
            hashes: BTreeMap::new(),
            keys: BTreeMap::new(),
        };
        spec.any_left()?;
        Ok(spec)
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
    ) -> Result<(), Error> {
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
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let next = self.ranges.last().map_or(0, |(first, n)| first + n);
        self.add_at(batch, next)
    }

    /// Samples the rows of a batch that starts at row `first`.
    ///
    /// # Errors
    /// As [`InferredSpec::add`].
    pub fn add_at(&mut self, batch: &RecordBatch, first: u64) -> Result<(), Error> {
        if batch.num_columns() != self.fields.len() {
            let what = format!("a batch of {} columns instead of {}", batch.num_columns(), self.fields.len());
            return Err(Error::spec(what, "the sample", "sample rows of one file only"));
        }
        self.ranges.push((first, batch.num_rows() as u64));
        for (field, column) in self.fields.iter_mut().zip(batch.columns()) {
            if let Ok(field) = field {
                field.add(column, None)?;
            }
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

    fn any_left(&self) -> Result<(), Error> {
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
    pub fn to_toml(&self) -> Result<String, Error> {
        self.written("fields", &Roles::default())
    }

    /// The spec as one of several tables.
    pub(crate) fn to_table(&self, roles: &Roles) -> Result<String, Error> {
        self.written("tables.fields", roles)
    }

    /// The spec with its fields under `path`, and columns that are keys or refer to some.
    fn written(&self, path: &str, roles: &Roles) -> Result<String, Error> {
        self.any_left()?;
        let mut out = String::new();
        let sampled = self.sampled_rows();
        // Writing to a string cannot fail.
        let _ = match self.rows {
            Some(rows) if sampled > 0 => writeln!(out, "# Inferred from {sampled} of {rows} rows."),
            None if sampled > 0 => writeln!(out, "# Inferred from {sampled} rows."),
            _ => Ok(()),
        };
        for LeftOut { column, reason } in self.left_out() {
            let _ = writeln!(out, "# Left out: {}: {reason}.", quoted(&column));
        }
        if path.starts_with("tables") {
            out.push_str("[[tables]]\n");
        }
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        match (
            &roles.per,
            self.rows.filter(|rows| (*rows == 0 && !path.starts_with("tables")) || sampled > 0),
        ) {
            (Some(per), _) => out.push_str(per),
            (None, Some(rows)) => out.push_str(&format!("rows = {rows}\n")),
            (None, None) => (),
        }
        let fields: Vec<&Inferred> = self.kept().collect();
        let places: Vec<usize> = self.kept_places().collect();
        let role = |i: usize| places.get(i).and_then(|place| roles.columns.get(place));
        // A key and what refers to it have no other relations.
        let columns = fields.iter().enumerate().map(|(i, field)| match role(i) {
            Some(_) => Column { leaf: None, ..field.column() },
            None => field.column(),
        });
        let columns: Vec<Column<'_>> = columns.collect();
        let together = relations::together(&columns);
        if let Some(together) = &together {
            let _ = write!(out, "{}", present(together, &columns));
        }
        let found = self.found(&fields, &columns);
        let written = by_column(fields.len(), |i| {
            let mut out = String::from("\n");
            if let Some(said) = role(i).and_then(|role| role.said.as_ref()) {
                let _ = writeln!(out, "# {said}.");
            }
            let _ = write!(out, "[[{path}]]\nname = {}\n", quoted(&fields[i].name));
            let mut related = match role(i) {
                Some(role) => Related {
                    values: Some(role.values.clone()),
                    keeps_nulls: true,
                    is_key: role.is_key,
                    together: false,
                },
                None => self.related(i, &columns, &found),
            };
            related.together = together.as_ref().is_some_and(|together| together.fields.contains(&i));
            self.write(fields[i], path, &related, &mut out);
            out
        });
        out.extend(written);
        Ok(out)
    }

    /// The relations of the columns.
    fn found(&self, fields: &[&Inferred], columns: &[Column<'_>]) -> Found {
        if self.sampled_rows() == 0 {
            return Found::default();
        }
        let (sums, dependences) = (relations::sums(columns), dependence::dependences(columns));
        let correlated = self.correlated(fields, columns, (&sums, &dependences));
        Found { sums, dependences, correlated }
    }

    /// How column `i` depends on others.
    fn related(&self, i: usize, columns: &[Column<'_>], found: &Found) -> Related {
        let is_function = found.dependences.iter().any(|found| found.of == i && found.is_function);
        // A function says more than a difference that varies.
        let sum = found.sums.iter().find(|sum| sum.of == i);
        let sum = sum.filter(|sum| !is_function || relations::is_exact(columns, sum));
        let sum = sum.and_then(|sum| relations::values(columns, sum));
        let by = found.dependences.iter().find(|found| sum.is_none() && found.of == i);
        let follows = found.correlated.iter().find(|(of, _)| *of == i && sum.is_none() && by.is_none());
        let keeps_nulls = match (by, follows) {
            (Some(found), _) => dependence::keeps_nulls(&columns[found.by]),
            (None, Some((_, follows))) => follows.keeps_nulls,
            (None, None) => false,
        };
        let values = sum
            .or_else(|| dependence::values(columns, *by?, self.verbatim))
            .or_else(|| follows.map(|(_, follows)| follows.values.clone()));
        Related { values, keeps_nulls, ..Related::default() }
    }

    /// The columns whose ranks are correlated, each by its quantiles: those that follow another one, and those that are followed.
    fn correlated(
        &self,
        fields: &[&Inferred],
        columns: &[Column<'_>],
        (sums, dependences): (&[relations::Sum], &[dependence::Dependence]),
    ) -> Vec<(usize, Follows)> {
        let is_free =
            |i: usize| sums.iter().all(|sum| sum.of != i) && dependences.iter().all(|found| found.of != i);
        let mut found = correlation::correlations(columns, &is_free);
        let involved: BTreeSet<usize> = found.iter().flat_map(|found| [found.of, found.by]).collect();
        let involved: Vec<usize> = involved.into_iter().collect();
        let quantiles = by_column(involved.len(), |at| self.values_with(fields[involved[at]], true));
        let quantiles: BTreeMap<usize, String> = involved
            .into_iter()
            .zip(quantiles)
            .filter(|(_, values)| values.starts_with("{ quantiles = {"))
            .collect();
        found.retain(|found| quantiles.contains_key(&found.of) && quantiles.contains_key(&found.by));
        let mut out: BTreeMap<usize, Follows> = BTreeMap::new();
        for found in found {
            let values =
                quantiles.get(&found.of).and_then(|values| found.follows(values, columns[found.by].name));
            let keeps_nulls = dependence::keeps_nulls(&columns[found.by]);
            out.extend(values.map(|values| (found.of, Follows { values, keeps_nulls })));
            if let Some(values) = quantiles.get(&found.by) {
                out.entry(found.by).or_insert_with(|| Follows { values: values.clone(), keeps_nulls: true });
            }
        }
        out.into_iter().collect()
    }

    /// The fields that the spec has.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Inferred> {
        self.fields.iter().flatten().filter(|field| field.unfit(1).is_none())
    }

    /// Their places among the columns.
    fn kept_places(&self) -> impl Iterator<Item = usize> {
        let is_kept =
            |field: &Result<Inferred, LeftOut>| matches!(field, Ok(field) if field.unfit(1).is_none());
        self.fields.iter().enumerate().filter(move |(_, field)| is_kept(field)).map(|(place, _)| place)
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

    /// The `values` of a key that can be referred to.
    pub(crate) fn key_values(&self, column: usize) -> Option<String> {
        let field = self.fields.get(column)?.as_ref().ok()?;
        Some(self.keys.get(&column)?.values(&self.values(field)))
    }

    /// The sampled ranges of rows: the first row and the number of rows.
    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The number of all rows, if known.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// Writes everything of a field except the name, under the TOML table `path`.
    fn write(&self, field: &Inferred, path: &str, related: &Related, out: &mut String) {
        let kind = match &field.kind {
            InferredKind::Leaf { is_uuid: true, .. } => "type = \"uuid\"\n".to_owned(),
            InferredKind::Leaf { kind, .. } => type_keys(kind),
            InferredKind::Struct(_) => "type = \"struct\"\n".to_owned(),
            InferredKind::List { .. } => "type = \"list\"\n".to_owned(),
            InferredKind::Map { .. } => "type = \"map\"\n".to_owned(),
        };
        out.push_str(&kind);
        if related.is_key {
            // A key is required.
        } else if field.nullable && related.values.is_some() && !related.together && !related.keeps_nulls {
            out.push_str("nulls = 0\n");
        } else if field.nullable && !related.together {
            let sampled = field.nulls_share();
            // Writing to a string cannot fail.
            let _ = writeln!(out, "nulls = {}", rounded(field.null_share.unwrap_or(sampled)));
        }
        match &field.kind {
            InferredKind::Leaf { .. } => {
                let values = related.values.clone().unwrap_or_else(|| self.values(field));
                let _ = writeln!(out, "values = {values}");
            }
            InferredKind::Struct(fields) => {
                for field in fields {
                    let _ = write!(out, "\n[[{path}.fields]]\nname = {}\n", quoted(&field.name));
                    self.write(field, &format!("{path}.fields"), &Related::default(), out);
                }
            }
            InferredKind::List { element, lengths: counts, fixed } => {
                let _ = match fixed {
                    Some(size) => writeln!(out, "size = {size}"),
                    None => writeln!(out, "length = {}", lengths(counts)),
                };
                let _ = write!(out, "\n[{path}.element]\n");
                self.write(element, &format!("{path}.element"), &Related::default(), out);
            }
            InferredKind::Map { entries, lengths: counts } => {
                let _ = writeln!(out, "length = {}", lengths(&of_different_keys(entries, counts)));
                for (field, part) in entries.iter().zip(["key", "value"]) {
                    let _ = write!(out, "\n[{path}.{part}]\n");
                    self.write(field, &format!("{path}.{part}"), &Related::default(), out);
                }
            }
        }
    }

    /// What is known of a leaf besides its sample.
    fn around(&self, field: &Inferred) -> Around {
        let mut around = Around { n: self.rows.unwrap_or(0), ..Around::default() };
        if let Some(there) = field.there.as_ref().filter(|_| field.may_follow_rows()) {
            let rows = self.ranges.iter().flat_map(|(first, n)| *first..first + n);
            around.rows = Some(rows.zip(there).filter(|(_, there)| **there).map(|(row, _)| row).collect());
        }
        let ends = |values: &[i128]| Some((*values.iter().min()?, *values.iter().max()?));
        match &field.bounds {
            Some(LeafSample::Whole(values)) => {
                around.whole_bounds = ends(&values.iter().map(|v| i128::from(*v)).collect::<Vec<_>>());
            }
            Some(LeafSample::Wide(values)) => around.whole_bounds = ends(values),
            Some(LeafSample::Real(values)) if !values.is_empty() && values.iter().all(|v| v.is_finite()) => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                around.real_bounds = Some((least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
            }
            _ => {}
        }
        around
    }

    /// The `values` of a leaf.
    fn values(&self, field: &Inferred) -> String {
        self.values_with(field, false)
    }

    /// The `values` of a leaf; numbers `by_quantiles`, if that is wanted and they are not something simpler.
    fn values_with(&self, field: &Inferred, by_quantiles: bool) -> String {
        let around = || Around { by_quantiles, ..self.around(field) };
        let InferredKind::Leaf { kind, is_uuid, values, .. } = &field.kind else { return String::new() };
        if *is_uuid {
            return "\"uuid\"".to_owned();
        }
        match values {
            LeafSample::Boolean { trues: 0, falses: 0 } => "{ weights = { true = 1, false = 1 } }".to_owned(),
            LeafSample::Boolean { trues, falses } => {
                format!("{{ weights = {{ true = {trues}, false = {falses} }} }}")
            }
            LeafSample::Real(values) => numbers::real(kind, values, &around()),
            LeafSample::Text(texts) => texts.values(self.verbatim),
            LeafSample::Bytes(sample) => bytes::values(sample, self.verbatim).unwrap_or_else(|| match kind {
                DataType::FixedSizeBinary(_) => "\"bytes\"".to_owned(),
                _ => bytes::random(sample),
            }),
            LeafSample::Whole(_) | LeafSample::Wide(_) => {
                numbers::whole(kind, values, &around(), &alone(kind))
            }
        }
    }
}

/// The lengths of maps, whose keys all differ: no map has more entries than there are keys. Some writers repeat a
/// key.
fn of_different_keys(entries: &[Inferred], lengths: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    let keys = entries.first().and_then(|key| match &key.kind {
        InferredKind::Leaf { values, .. } => values.distinct(),
        _ => None,
    });
    let mut out = BTreeMap::new();
    for (length, n) in lengths {
        let most = keys.map_or(*length, |keys| (*length).min(u32::try_from(keys).unwrap_or(u32::MAX)));
        *out.entry(most).or_default() += n;
    }
    out
}

/// The quantiles of a column that follows another one, or is followed.
struct Follows {
    values: String,
    /// Whether its nulls are drawn as those of others.
    keeps_nulls: bool,
}

/// The relations of the columns of a record.
#[derive(Default)]
struct Found {
    sums: Vec<relations::Sum>,
    dependences: Vec<dependence::Dependence>,
    /// Those that follow another column or are followed.
    correlated: Vec<(usize, Follows)>,
}

/// How a field of the record depends on others.
#[derive(Default)]
struct Related {
    /// Its `values` as a formula.
    values: Option<String>,
    /// Whether the `present` of the record names it.
    together: bool,
    /// Whether its nulls are drawn although its values depend on another field.
    keeps_nulls: bool,
    /// Whether it is a key, which is required.
    is_key: bool,
}

/// The `present` of the record.
fn present(together: &Together, columns: &[Column<'_>]) -> String {
    let mut out = "present = [\n".to_owned();
    for (mask, n) in &together.combinations {
        let there = together.fields.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        let names: Vec<String> = there.map(|(_, i)| quoted(columns[*i].name)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {{ fields = [{}], weight = {n} }},", names.join(", "));
    }
    out + "]\n"
}

/// The `values` of whole numbers without a sample.
fn alone(kind: &DataType) -> String {
    let (min, max) = match kind {
        DataType::Decimal128(p, _) | DataType::Decimal256(p, _) => {
            (literal(kind, 0), literal(kind, 10i128.pow(u32::from(*p).min(18)) - 1))
        }
        DataType::Date32 => ("2000-01-01".to_owned(), "2024-12-31".to_owned()),
        DataType::Time32(_) | DataType::Time64(_) => ("00:00:00".to_owned(), "23:59:59".to_owned()),
        DataType::Timestamp(_, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            (format!("2000-01-01T00:00:00{zone}"), format!("2024-12-31T23:59:59{zone}"))
        }
        DataType::Int8 | DataType::UInt8 => ("0".to_owned(), "100".to_owned()),
        DataType::Int16 | DataType::UInt16 => ("0".to_owned(), "10000".to_owned()),
        _ => ("0".to_owned(), "1000000".to_owned()),
    };
    format!("{{ uniform = {{ min = {min}, max = {max} }} }}")
}

/// The lines with the type of a leaf.
fn type_keys(kind: &DataType) -> String {
    let plain = |name: &str| format!("type = \"{name}\"\n");
    match kind {
        DataType::Boolean => plain("boolean"),
        DataType::Int8 => plain("int8"),
        DataType::Int16 => plain("int16"),
        DataType::Int32 => plain("int32"),
        DataType::UInt8 => plain("uint8"),
        DataType::UInt16 => plain("uint16"),
        DataType::UInt32 => plain("uint32"),
        DataType::UInt64 => plain("uint64"),
        DataType::Float16 => plain("float16"),
        DataType::Float32 => plain("float"),
        DataType::Float64 => plain("double"),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            format!("type = \"decimal\"\nprecision = {p}\nscale = {s}\n")
        }
        DataType::Date32 => plain("date"),
        DataType::Time32(_) => "type = \"time\"\nunit = \"ms\"\n".to_owned(),
        DataType::Time64(unit) => format!("type = \"time\"\nunit = \"{}\"\n", unit_name(*unit)),
        DataType::Timestamp(unit, zone) => {
            // Some writers use other names for zones; the instants are the same in any zone.
            let known = |zone: &str| if is_zone(zone) { quoted(zone) } else { quoted("UTC") };
            let zone = zone.as_ref().map_or_else(String::new, |zone| format!("zone = {}\n", known(zone)));
            format!("type = \"timestamp\"\nunit = \"{}\"\n{zone}", unit_name(*unit))
        }
        DataType::Duration(unit) => format!("type = \"duration\"\nunit = \"{}\"\n", unit_name(*unit)),
        DataType::Utf8 => plain("string"),
        DataType::Binary => plain("binary"),
        DataType::FixedSizeBinary(width) => format!("type = \"fixed_binary\"\nwidth = {width}\n"),
        _ => plain("int64"),
    }
}
