//! The fields of a record, a struct, a list or a map.

use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::error::Error;
use crate::random::rng::purpose;
use crate::spec::dataset::{Field, Kind, Levels, MAX_DEPTH};
use crate::spec::reader::needed::Only;
use crate::spec::reader::optional::present;
use crate::spec::reader::{GROUP_KEYS, Position, Reader, Seen};
use crate::spec::value_length::{SHORT_BYTES, longest};
use crate::spec_file::toml_reader::{SpecNode, SpecTable, listed};
use crate::types::logical_type::{LEAF_TYPES, LogicalType};

impl Reader<'_> {
    pub(super) fn fields(
        &mut self,
        specs: SpecNode<'_>,
        position: Position<'_>,
        together: Option<&[String]>,
    ) -> Result<Vec<Field>, Error> {
        let path = position.parent;
        let Some(array) = specs.array() else {
            let what = format!("`fields` is {}", specs.described());
            return Err(specs.error(path, what, "write each field under [[fields]]"));
        };
        if array.len() == 0 {
            return Err(specs.error(path, "no fields", "add at least one field"));
        }
        let is_record = path.is_empty();
        if is_record {
            self.first_hidden = self.columns + columns_in(specs, self.only);
        }
        let mut fields: Vec<Field> = Vec::new();
        for spec in array {
            let table = spec.any_table(path, "a field")?;
            let node = table.need("name", path, "a field")?;
            let name = node.string().filter(|n| !n.is_empty() && !n.contains(['.', '\0']));
            let Some(name) = name else {
                let what = format!("{} is not a valid field name", node.described());
                return Err(node.error(path, what, "write `name = \"...\"` without dots"));
            };
            if is_record && !self.only.reads(name) {
                continue;
            }
            let hidden = self.hidden.iter().filter(|_| is_record);
            if fields.iter().chain(hidden).any(|f| f.name == name) {
                return Err(node.error(path, format!("two fields are named {name:?}"), "rename one of them"));
            }
            let bit = together.and_then(|names| names.iter().position(|n| n == name));
            let own = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            self.is_hidden &= !is_record;
            if is_record && let Some(node) = table.get("hidden") {
                let what = format!("`hidden = {}`", node.described());
                let hidden = node.boolean().ok_or_else(|| node.error(&own, what, "use true or false"))?;
                self.is_hidden = hidden && matches!(self.only, Only::All);
            }
            let field = self.field(table, name, own, position, bit)?;
            match (is_record, self.is_hidden) {
                (true, true) => {
                    self.order.push((true, self.hidden.len()));
                    self.hidden.push(field);
                    continue;
                }
                (true, false) => {
                    self.order.push((false, self.order.iter().filter(|(hidden, _)| !hidden).count()));
                }
                (false, _) => {}
            }
            fields.push(field);
        }
        Ok(fields)
    }

    /// The position of the next leaf.
    pub(super) fn next_leaf(&self) -> usize {
        match self.is_hidden {
            true => self.first_hidden + self.leaves.len() - self.columns,
            false => self.columns,
        }
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
    ) -> Result<Field, Error> {
        if position.depth > MAX_DEPTH {
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(table.error(&path, what, "flatten the record"));
        }
        let type_node = table.need("type", &path, "a field")?;
        let type_name = type_node.string().unwrap_or_default();
        self.check_keys(table, type_node, type_name, (&path, position))?;
        let (nulls, null_where) = self.nulls(table, together, &path)?;
        let optional = u8::from(nulls != Nulls::Never);
        let mut levels = Levels { definition: position.levels.definition + optional, ..position.levels };
        let kind = match type_name {
            "struct" => {
                self.groups.insert(path.clone(), levels);
                let specs = table.need("fields", &path, "a struct")?;
                let (names, present) = present(table, specs, &path)?;
                let inner = Position { parent: &path, levels, depth: position.depth + 1, ..position };
                let fields = self.fields(specs, inner, names.as_deref())?;
                Kind::Struct { fields, present }
            }
            "list" | "map" => self.list(table, type_name, &path, &mut levels, nulls, position)?,
            _ => self.leaf(table, type_name, &path, levels, position)?,
        };
        let (null_draws, value_draws) = (purpose(&path, "null"), purpose(&path, "value"));
        Ok(Field { name: name.to_owned(), path, nulls, null_where, levels, kind, null_draws, value_draws })
    }

    /// Refuses unknown types, and keys that do not belong to the type.
    fn check_keys(
        &self,
        table: SpecTable<'_>,
        node: SpecNode<'_>,
        name: &str,
        (path, position): (&str, Position<'_>),
    ) -> Result<(), Error> {
        let mut allowed = vec!["name", "type", "nulls"];
        if position.parent.is_empty() {
            allowed.push("hidden");
        }
        if let Some((_, keys)) = GROUP_KEYS.iter().find(|(group, _)| *group == name) {
            allowed.extend_from_slice(keys);
        } else if let Some(keys) = LogicalType::keys(name) {
            allowed.push("values");
            allowed.extend_from_slice(keys);
        } else {
            let names = LEAF_TYPES.iter().map(|(name, _)| *name);
            let names: Vec<&str> = names.chain(GROUP_KEYS.iter().map(|(name, _)| *name)).collect();
            let what = format!("{} is not a known type", node.described());
            return Err(node.error(path, what, format!("allowed: {}", listed(&names))));
        }
        table.check(path, &format!("a field of type {name}"), &allowed)
    }
}

/// The leaves of the fields `specs` of a record that files have; without hidden fields if there are all.
fn columns_in(specs: SpecNode<'_>, only: Only<'_>) -> usize {
    let of_field = |spec: SpecNode<'_>| {
        let Ok(table) = spec.any_table("", "a field") else { return 0 };
        let is_hidden = table.get("hidden").and_then(|node| node.boolean()) == Some(true);
        if is_hidden && matches!(only, Only::All) { 0 } else { leaves_in(table) }
    };
    specs.array().into_iter().flatten().map(of_field).sum()
}

/// The leaves of a field.
fn leaves_in(table: SpecTable<'_>) -> usize {
    let fields = table.get("fields").and_then(SpecNode::array).into_iter().flatten();
    let children = ["element", "key", "value"].into_iter().filter_map(|key| table.get(key));
    let nested: Vec<SpecNode<'_>> = fields.chain(children).collect();
    let leaves = |node: &SpecNode<'_>| node.any_table("", "a field").map_or(0, leaves_in);
    if nested.is_empty() { 1 } else { nested.iter().map(leaves).sum() }
}
