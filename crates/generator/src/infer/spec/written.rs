//! An inferred spec as TOML.

use std::collections::BTreeMap;
use std::fmt::Write;

use arrow_schema::DataType;

use crate::error::Result;
use crate::infer::by_column::by_column;
use crate::infer::copula::{self, Fitted, Of};
use crate::infer::notation::{quoted, rounded};
use crate::infer::references::found::Roles;
use crate::infer::relations::together::{Together, together};
use crate::infer::relations::{Column, dependence, sums};
use crate::infer::sample::inferred_field::{Inferred, InferredKind};
use crate::infer::sample::leaf_sample::LeafSample;
use crate::infer::sample::stored::Stored;
use crate::infer::spec::inferred_spec::{InferredSpec, LeftOut};
use crate::infer::spec::type_keys::{alone, type_keys};
use crate::infer::values::bytes;
use crate::infer::values::lengths::lengths;
use crate::infer::values::made_up::Verbatim;
use crate::infer::values::numbers::{self, Around};
use crate::spec::dataset::{Dataset, ListStyle};

impl InferredSpec {
    /// The spec with its fields under `path`, and columns that are keys or refer to some.
    pub(super) fn written(&self, path: &str, roles: &Roles) -> Result<String> {
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
        for LeftOut { column, reason } in self.types_not_kept() {
            let _ = writeln!(out, "# Type not kept: {}: {reason}.", quoted(&column));
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
        if roles.is_fixed {
            out.push_str("scale = \"fixed\"\n");
        }
        let (places, fields): (Vec<usize>, Vec<&Inferred>) = self.kept_places().unzip();
        let role = |i: usize| places.get(i).and_then(|place| roles.columns.get(place));
        // A key and its references have only this relation.
        let columns = fields.iter().enumerate().map(|(i, field)| match role(i) {
            Some(_) => Column { leaf: None, ..field.column() },
            None => field.column(),
        });
        let columns: Vec<Column<'_>> = columns.collect();
        let together = together(&columns);
        let found = self.found(&fields, &columns, together.as_ref(), &|i| role(i).is_none());
        if let Some(together) = &together {
            let order = found.copula.as_ref().and_then(|copula| copula.order(Of::Present));
            let _ = write!(out, "{}", present(together, &columns, order.unwrap_or_default()));
        }
        out.push_str(&roles.hidden);
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
        if let Some(copula) = &found.copula {
            let path = if path.starts_with("tables") { "tables.copula" } else { "copula" };
            out.push_str(&copula.to_toml(path, &|i| fields[i].name.clone()));
        }
        Ok(out)
    }

    /// Why a spec of this field alone is not read back, if it is not.
    pub(super) fn refused(&self, field: &Inferred) -> Option<LeftOut> {
        let mut text = format!("name = \"one\"\n\n[[fields]]\nname = {}\n", quoted(&field.name));
        self.write(field, "fields", &Related::default(), &mut text);
        let error = Dataset::from_toml(&text).err()?;
        let reason = format!("a spec cannot have it: {}; {}", error.what(), error.advice());
        Some(LeftOut { column: field.name.clone(), reason })
    }

    /// The leaves that get another type than they have in the Parquet file, with the reason.
    pub fn types_not_kept(&self) -> Vec<LeftOut> {
        let mut out = Vec::new();
        self.kept().for_each(|field| add_not_kept(field, &field.name, self.verbatim, &mut out));
        out
    }

    /// The relations of the columns. Those that are `together` are null together, and `is_free` says which columns may
    /// depend on others.
    fn found(
        &self,
        fields: &[&Inferred],
        columns: &[Column<'_>],
        together: Option<&Together>,
        is_free: &dyn Fn(usize) -> bool,
    ) -> Found {
        if self.sampled_rows() == 0 {
            return Found::default();
        }
        let (mut sums, dependences) = (sums::sums(columns), dependence::dependences(columns));
        // A function says more than a difference that varies.
        let is_function = |of: usize| dependences.iter().any(|found| found.of == of);
        sums.retain(|sum| !is_function(sum.of) || sums::is_exact(columns, sum));
        let is_free = |i: usize| is_free(i) && !is_function(i) && sums.iter().all(|sum| sum.of != i);
        let (axes, values) = self.axes(fields, &is_free, together);
        let copula = copula::fitted(axes);
        Found { sums, dependences, values, copula }
    }

    /// How column `i` depends on others.
    fn related(&self, i: usize, columns: &[Column<'_>], found: &Found) -> Related {
        let sum = found.sums.iter().find(|sum| sum.of == i).and_then(|sum| sums::values(columns, sum));
        let by = found.dependences.iter().find(|found| sum.is_none() && found.of == i);
        let is_member = found.copula.as_ref().is_some_and(|copula| copula.has(Of::Field(i)));
        let own = found.values.get(&i).filter(|_| sum.is_none() && by.is_none() && is_member);
        let keeps_nulls = by.map_or(own.is_some(), |found| dependence::keeps_nulls(&columns[found.by]));
        let values =
            sum.or_else(|| dependence::values(columns, *by?, self.verbatim)).or_else(|| own.cloned());
        Related { values, keeps_nulls, ..Related::default() }
    }

    /// Writes everything of a field except the name, under the TOML table `path`.
    fn write(&self, field: &Inferred, path: &str, related: &Related, out: &mut String) {
        let kind = match &field.kind {
            InferredKind::Leaf { kind, stored, values, .. } => {
                let as_is = Stored::Plain;
                type_keys(
                    kind,
                    if not_kept(stored, values, self.verbatim).is_some() { &as_is } else { stored },
                )
            }
            InferredKind::Struct(_) => "type = \"struct\"\n".to_owned(),
            InferredKind::List { style: ListStyle::Map, .. } => "type = \"map\"\n".to_owned(),
            InferredKind::List { .. } => "type = \"list\"\n".to_owned(),
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
            InferredKind::List { style, children, lengths: counts } => {
                let _ = match (style, children.first().map(|key| &key.kind)) {
                    (ListStyle::Fixed(size), _) => writeln!(out, "size = {size}"),
                    // Without a sample, no more keys than there are.
                    (ListStyle::Map, Some(InferredKind::Leaf { kind: DataType::Boolean, .. }))
                        if counts.is_empty() =>
                    {
                        writeln!(out, "length = {{ uniform = {{ min = 0, max = 2 }} }}")
                    }
                    (ListStyle::Map, _) => {
                        writeln!(out, "length = {}", lengths(&of_different_keys(children, counts)))
                    }
                    _ => writeln!(out, "length = {}", lengths(counts)),
                };
                for field in children {
                    let path = format!("{path}.{}", field.name);
                    let _ = write!(out, "\n[{path}]\n");
                    self.write(field, &path, &Related::default(), out);
                }
            }
        }
    }

    /// The findings about a leaf besides its sample.
    pub(super) fn around(&self, field: &Inferred) -> Around {
        let mut around = Around { n: self.rows.unwrap_or(0), ..Around::default() };
        if let Some(there) = field.there.as_ref().filter(|_| field.may_follow_rows()) {
            let rows = self.ranges.iter().flat_map(|(first, n)| *first..first + n);
            around.rows = Some(rows.zip(there).filter(|(_, there)| **there).map(|(row, _)| row).collect());
        }
        let follow = |ranges: &[(u64, u64)]| ranges[0].0 + ranges[0].1 == ranges[1].0;
        let is_all = self.rows == Some(self.sampled_rows()) && self.ranges.windows(2).all(follow);
        around.is_whole = is_all && field.there.as_ref().is_some_and(|there| !there.contains(&false));
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
    pub(super) fn values(&self, field: &Inferred) -> String {
        self.values_with(field, false)
    }

    /// The `values` of a leaf; numbers `by_quantiles`, if that is wanted and they are not something simpler.
    pub(super) fn values_with(&self, field: &Inferred, by_quantiles: bool) -> String {
        let around = || Around { by_quantiles, ..self.around(field) };
        let InferredKind::Leaf { kind, stored, values, .. } = &field.kind else { return String::new() };
        match values {
            _ if *stored == Stored::Uuid => "\"uuid\"".to_owned(),
            LeafSample::Text(texts) if *stored == Stored::Json && texts.n == 0 => {
                "{ constant = \"{}\" }".to_owned()
            }
            LeafSample::Boolean { trues: 0, falses: 0 } => "{ weights = { true = 1, false = 1 } }".to_owned(),
            LeafSample::Boolean { trues, falses } => {
                format!("{{ weights = {{ true = {trues}, false = {falses} }} }}")
            }
            LeafSample::Real(values) => numbers::real(kind, values, &around()),
            // Leaves in lists keep no cells.
            LeafSample::Text(texts) => {
                let rows = field.cells.is_some().then(|| self.rows_to_make());
                texts.values(self.verbatim, rows, around().is_whole)
            }
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

/// Adds the leaves of a field at `path` whose types are not kept.
fn add_not_kept(field: &Inferred, path: &str, verbatim: Verbatim, out: &mut Vec<LeftOut>) {
    for field in field.children() {
        add_not_kept(field, &format!("{path}.{}", field.name), verbatim, out);
    }
    if let InferredKind::Leaf { stored, values, .. } = &field.kind {
        let reason = not_kept(stored, values, verbatim);
        out.extend(reason.map(|reason| LeftOut { column: path.to_owned(), reason }));
    }
}

/// Why a leaf does not get the type that it has in the Parquet file.
fn not_kept(stored: &Stored, values: &LeafSample, verbatim: Verbatim) -> Option<String> {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    match (stored, values) {
        (Stored::Json, LeafSample::Text(texts)) if texts.n > 0 && !texts.lists_only(verbatim, is_json) => {
            Some("the values are made up and no JSON, so it becomes a string".to_owned())
        }
        (Stored::Other(name), _) => Some(format!("--like does not learn {name}, so it gets a plain type")),
        _ => None,
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

/// The relations of the columns of a record.
#[derive(Default)]
struct Found {
    sums: Vec<sums::Sum>,
    dependences: Vec<dependence::Dependence>,
    /// The values of columns that may be members of the copula.
    values: BTreeMap<usize, String>,
    copula: Option<Fitted>,
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

/// The `present` of the record, in this order of its combinations.
fn present(together: &Together, columns: &[Column<'_>], order: &[String]) -> String {
    let mut out = "present = [\n".to_owned();
    let mut combinations: Vec<(&u32, &u64)> = together.combinations.iter().collect();
    let place = |mask: &u32| order.iter().position(|known| *known == mask.to_string());
    combinations.sort_by_key(|(mask, _)| place(mask));
    for (mask, n) in combinations {
        let there = together.fields.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        let names: Vec<String> = there.map(|(_, i)| quoted(columns[*i].name)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {{ fields = [{}], weight = {n} }},", names.join(", "));
    }
    out + "]\n"
}
