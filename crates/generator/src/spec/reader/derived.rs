//! The fields of tables that are derived from another one: its columns, in a change stream as they were before and
//! are after.

use std::sync::Arc;

use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::changes::{Changes, Operation};
use crate::draw::value_spec::other_rows::other_column::{OtherColumn, RowOf, column_of};
use crate::error::{Error, Result};
use crate::random::rng::purpose;
use crate::random::weights::Weights;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, Levels, Present, images};
use crate::spec::reader::{Position, Reader};
use crate::spec::tables::Tables;
use crate::spec::tables::derived::Derived;
use crate::spec_file::toml_reader::SpecTable;
use crate::types::logical_type::LogicalType;

/// The fields of a change stream: what happens, and the row before and after.
const STREAM_FIELDS: [&str; 3] = ["op", "before", "after"];

impl Reader<'_> {
    /// The fields of a derived table, and which are present together: the other table's fields, then its own.
    pub(super) fn derived(
        &mut self,
        derived: &Derived,
        tables: &Tables<'_>,
        root: SpecTable<'_>,
    ) -> Result<(Vec<Field>, Option<Present>)> {
        let base = tables.dataset(derived.source_name(), self.depth + 1)?;
        let mut fields = self.derived_fields(derived, &base)?;
        self.order = (0..fields.len()).map(|place| (false, place)).collect();
        if let Some(specs) = root.get("fields") {
            let own = self.fields(specs, Position::RECORD, None)?;
            if let Some(twice) = own.iter().find(|own| fields.iter().any(|field| field.name == own.name)) {
                let what = format!("a field {:?}, which the table has already", twice.name);
                return Err(specs.at(&twice.path).error(what, "give the field another name"));
            }
            fields.extend(own);
        }
        let present = match derived {
            Derived::Changes(changes, _) => present(changes),
            _ => None,
        };
        Ok((fields, present))
    }

    fn derived_fields(&mut self, derived: &Derived, base: &Arc<Dataset>) -> Result<Vec<Field>> {
        let changing: Arc<[bool]> = changing(derived, base)?.into();
        let own = Levels::default();
        Ok(match derived {
            Derived::State(changes, _) => {
                self.columns(base, &changing, "", own, &|| RowOf::Left(changes.clone()))?
            }
            Derived::Arrivals(arrivals) => {
                self.columns(base, &changing, "", own, &|| RowOf::Arriving(arrivals.clone()))?
            }
            Derived::Changes(changes, _) => {
                let [op, before, after] = STREAM_FIELDS;
                let operation = self.made(
                    "",
                    op,
                    (own, false),
                    (LogicalType::String, ValueSpec::Operation(changes.clone())),
                );
                let images: [(&str, &dyn Fn() -> RowOf); 2] = [
                    (before, &|| RowOf::Before(changes.clone())),
                    (after, &|| RowOf::After(changes.clone())),
                ];
                let mut fields = vec![operation];
                for (bit, (name, of)) in images.into_iter().enumerate() {
                    let levels = Levels { definition: 1, repetition: 0 };
                    self.groups.insert(name.to_owned(), levels);
                    let columns = self.columns(base, &changing, name, levels, of)?;
                    let kind = Kind::Struct { fields: columns, present: None };
                    fields.push(field("", name, Nulls::Together(bit as u32), levels, kind));
                }
                fields
            }
        })
    }

    /// The columns of `base`, below the struct `parent` if it has a name.
    fn columns(
        &mut self,
        base: &Arc<Dataset>,
        changing: &Arc<[bool]>,
        parent: &str,
        levels: Levels,
        of: &dyn Fn() -> RowOf,
    ) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for column in &base.fields {
            let Kind::Leaf(leaf) = &column.kind else {
                let what = format!("the column {} of {} is not a plain value", column.path, base.name());
                let advice = "derive from a table of columns outside of structs, lists and maps";
                return Err(Error::spec(what, self.dataset, advice));
            };
            let found = column_of(of(), base.clone(), &column.path, &leaf.kind)
                .map_err(|(what, advice)| Error::spec(what, self.dataset, advice))?;
            let values = ValueSpec::OtherColumn(OtherColumn { changing: changing.clone(), ..found });
            let nulls = column.nulls != Nulls::Never;
            let levels = Levels { definition: levels.definition + u8::from(nulls), ..levels };
            fields.push(self.made(parent, &column.name, (levels, nulls), (leaf.kind.clone(), values)));
        }
        Ok(fields)
    }

    /// A leaf with these values, null where they are.
    fn made(
        &mut self,
        parent: &str,
        name: &str,
        (levels, nullable): (Levels, bool),
        (kind, values): (LogicalType, ValueSpec),
    ) -> Field {
        let index = self.see(&below(parent, name), &kind, levels, &values);
        let nulls = if nullable { Nulls::Share(0.0) } else { Nulls::Never };
        field(parent, name, nulls, levels, Kind::Leaf(Box::new(Leaf::new(index, kind, values))))
    }
}

fn below(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn field(parent: &str, name: &str, nulls: Nulls, levels: Levels, kind: Kind) -> Field {
    let path = below(parent, name);
    let (null_draws, value_draws) = (purpose(&path, "null"), purpose(&path, "value"));
    Field { name: name.to_owned(), path, nulls, null_where: None, levels, kind, null_draws, value_draws }
}

/// Whether updates change each column of `base`: the listed ones, and those that are computed from them.
fn changing(derived: &Derived, base: &Dataset) -> Result<Vec<bool>> {
    if matches!(derived, Derived::Arrivals(_)) {
        return Ok(Vec::new());
    }
    let listed = derived.columns();
    let mut known = Vec::new();
    let mut leaves = 0;
    base.each_leaf(&mut |_, _| leaves += 1);
    let mut changing = vec![false; leaves];
    base.each_leaf(&mut |field, leaf| {
        known.push(field.path.clone());
        // UUIDs are keys.
        let wanted = match listed {
            Some(listed) => listed.contains(&field.path),
            None => !matches!(leaf.values, ValueSpec::Uuid),
        };
        let mut computed = false;
        field.each_operand(&mut |operand| computed |= changing.get(operand.leaf) == Some(&true));
        changing[leaf.index] = wanted || computed;
    });
    match listed.into_iter().flatten().find(|name| !known.contains(name)) {
        None => Ok(changing),
        Some(name) => {
            let what = format!("{} has no column {name:?}, which updates would change", base.name());
            Err(Error::spec(what, base.name(), format!("its columns are {}", known.join(", "))))
        }
    }
}

/// How often rows of a change stream have `before` and `after`.
fn present(changes: &Changes) -> Option<Present> {
    let table = Weights::new(&changes.shares()).ok()?;
    Some(Present { table, masks: Operation::ALL.into_iter().map(images).collect() })
}
