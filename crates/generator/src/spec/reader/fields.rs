//! The fields of a record, a struct, a list or a map.

use std::collections::HashSet;

use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::error::Result;
use crate::random::rng::purpose;
use crate::spec::dataset::{Field, Kind, Levels, MAX_DEPTH};
use crate::spec::reader::names::Scope;
use crate::spec::reader::needed::Only;
use crate::spec::reader::optional::present;
use crate::spec::reader::{GROUP_KEYS, Position, Reader, Seen};
use crate::spec::value_length::{SHORT_BYTES, longest};
use crate::spec_file::toml_reader::{SpecNode, SpecTable, listed};
use crate::types::logical_type::{LogicalType, leaf_types};

/// A field as the spec has it.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    table: SpecTable<'a>,
}

impl Reader<'_> {
    /// Reads the fields of the record, or of a struct. The fields named in `together` are present together.
    pub(super) fn fields(
        &mut self,
        specs: SpecNode<'_>,
        position: Position<'_>,
        together: Option<&[String]>,
    ) -> Result<Vec<Field>> {
        let all = named(specs)?;
        if !position.parent.is_empty() {
            return all.iter().map(|field| self.named_field(field, position, together)).collect();
        }
        let (only, mut fields) = (self.only, Vec::new());
        if let Only::Column(column) = only {
            self.column(column, &all, together, &mut fields)?;
            return Ok(fields);
        }
        self.first_hidden = self.columns + columns_in(&all);
        for field in all.iter().filter(|field| only.reads(field.name)) {
            self.record_field(field, together, &mut fields)?;
        }
        Ok(fields)
    }

    /// Reads a field of the record, and adds it to `fields` or to the hidden ones.
    pub(super) fn record_field(
        &mut self,
        named: &Named<'_>,
        together: Option<&[String]>,
        fields: &mut Vec<Field>,
    ) -> Result<()> {
        self.is_hidden = named.table.at(named.name).flag("hidden")? && matches!(self.only, Only::All);
        let field = self.named_field(named, Position::RECORD, together)?;
        let place = if self.is_hidden { self.hidden.len() } else { self.order.len() - self.hidden.len() };
        self.order.push((self.is_hidden, place));
        if self.is_hidden {
            self.hidden.push(field)
        } else {
            fields.push(field)
        }
        Ok(())
    }

    fn named_field(
        &mut self,
        named: &Named<'_>,
        position: Position<'_>,
        together: Option<&[String]>,
    ) -> Result<Field> {
        let name = named.name;
        let bit = together.and_then(|names| names.iter().position(|n| n == name));
        let path = match position.parent {
            "" => name.to_owned(),
            parent => format!("{parent}.{name}"),
        };
        self.field(named.table, name, path, position, bit)
    }

    /// What names in the spec of the field at `path` can mean.
    pub(super) fn scope<'s>(&'s self, path: &'s str) -> Scope<'s> {
        let (leaves, lists, groups) = (&self.leaves, &self.whole_lists, &self.groups);
        Scope { path, leaves, lists, groups, missing: &self.missing }
    }

    /// The position of the next leaf.
    pub(super) fn next_leaf(&self) -> usize {
        if self.is_hidden { self.first_hidden + self.leaves.len() - self.columns } else { self.columns }
    }

    /// Adds a leaf, and returns its position.
    pub(super) fn see(
        &mut self,
        path: &str,
        kind: &LogicalType,
        levels: Levels,
        values: &ValueSpec,
    ) -> usize {
        let index = self.next_leaf();
        self.columns += usize::from(!self.is_hidden);
        self.leaves.push(Seen {
            index,
            path: path.to_owned(),
            kind: kind.clone(),
            levels,
            reach: values.reach(kind),
            longest: longest(values).unwrap_or(SHORT_BYTES),
            refers: values.referring(),
        });
        index
    }

    /// Reads one field. `together` is its bit in the `present` of the enclosing struct.
    pub(super) fn field(
        &mut self,
        table: SpecTable<'_>,
        name: &str,
        path: String,
        position: Position<'_>,
        together: Option<usize>,
    ) -> Result<Field> {
        let table = table.at(&path);
        if position.depth > MAX_DEPTH {
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(table.error(what, "flatten the record"));
        }
        let type_node = table.need("type", "a field")?;
        let type_name = type_node.string().unwrap_or_default();
        check_keys(table, type_node, type_name, position)?;
        let (nulls, null_where) = self.nulls(table, together)?;
        let optional = u8::from(nulls != Nulls::Never);
        let mut levels = Levels { definition: position.levels.definition + optional, ..position.levels };
        let kind = match type_name {
            "struct" => {
                self.groups.insert(path.clone(), levels);
                let specs = table.need("fields", "a struct")?;
                let (names, present) = present(table, specs)?;
                let inner = Position { parent: &path, levels, depth: position.depth + 1, ..position };
                let fields = self.fields(specs, inner, names.as_deref())?;
                Kind::Struct { fields, present }
            }
            "list" | "map" => self.list(table, type_name, &mut levels, nulls, position)?,
            _ => self.leaf(table, type_name, levels, position)?,
        };
        let (null_draws, value_draws) = (purpose(&path, "null"), purpose(&path, "value"));
        Ok(Field { name: name.to_owned(), path, nulls, null_where, levels, kind, null_draws, value_draws })
    }
}

/// Refuses unknown types, and keys that do not belong to the type.
fn check_keys(table: SpecTable<'_>, node: SpecNode<'_>, name: &str, position: Position<'_>) -> Result<()> {
    let mut allowed = vec!["name", "type", "nulls"];
    if position.parent.is_empty() {
        allowed.push("hidden");
    }
    if let Some((_, keys)) = GROUP_KEYS.iter().find(|(group, _)| *group == name) {
        allowed.extend_from_slice(keys);
    } else if let Some((_, keys)) = leaf_types().find(|(leaf, _)| *leaf == name) {
        allowed.push("values");
        allowed.extend_from_slice(keys);
    } else {
        let names: Vec<&str> = leaf_types().chain(GROUP_KEYS.iter().copied()).map(|(name, _)| name).collect();
        return Err(node.unfit("{} is not a known type", format!("allowed: {}", listed(&names))));
    }
    table.check(&format!("a field of type {name}"), &allowed)
}

/// The fields `specs` of the record or of the struct at `path`, with their names.
fn named<'a>(specs: SpecNode<'a>) -> Result<Vec<Named<'a>>> {
    let Some(array) = specs.array() else {
        return Err(specs.unfit("`fields` is {}", "write each field under [[fields]]"));
    };
    if array.len() == 0 {
        return Err(specs.error("no fields", "add at least one field"));
    }
    let mut names = HashSet::with_capacity(array.len());
    let mut all = Vec::with_capacity(array.len());
    for spec in array {
        let table = spec.any_table("a field")?;
        let node = table.need("name", "a field")?;
        let Some(name) = node.string().filter(|n| !n.is_empty() && !n.contains(['.', '\0'])) else {
            let advice = "write `name = \"...\"` without dots";
            return Err(node.unfit("{} is not a valid field name", advice));
        };
        if !names.insert(name) {
            return Err(node.error(format!("two fields are named {name:?}"), "rename one of them"));
        }
        all.push(Named { name, table });
    }
    Ok(all)
}

/// How many leaves of a record's fields the files have.
fn columns_in(all: &[Named<'_>]) -> usize {
    let is_hidden = |table: SpecTable<'_>| table.get("hidden").and_then(SpecNode::boolean) == Some(true);
    all.iter().filter(|field| !is_hidden(field.table)).map(|field| leaves_in(field.table)).sum()
}

/// How many leaves a field has.
fn leaves_in(table: SpecTable<'_>) -> usize {
    let fields = table.get("fields").and_then(SpecNode::array).into_iter().flatten();
    let children = ["element", "key", "value"].into_iter().filter_map(|key| table.get(key));
    let nested: Vec<SpecNode<'_>> = fields.chain(children).collect();
    let leaves = |node: &SpecNode<'_>| node.any_table("a field").map_or(0, leaves_in);
    if nested.is_empty() { 1 } else { nested.iter().map(leaves).sum() }
}
