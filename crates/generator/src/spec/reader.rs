//! Reads a dataset spec: from TOML to the tree of fields, with all checks.

mod derived;
mod names;
pub(crate) mod needed;

use std::collections::HashMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;
use xxhash_rust::xxh3::xxh3_128;

use crate::draw::choice::bad_weights;
use crate::draw::copula;
use crate::draw::distribution::count;
use crate::draw::expression::{Expression, Operand, OperandRow, Reach};
use crate::draw::lengths::Lengths;
use crate::draw::lengths::MAX_ELEMENTS;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::fan_out::FanOut;
use crate::draw::value_spec::other_column::Referring;
use crate::draw::value_spec::reader::{OtherTables, Surroundings};
use crate::error::Error;
use crate::random::rng::purpose;
use crate::random::weights::Weights;
use crate::spec::dataset::Levels;
use crate::spec::dataset::{Dataset, Field, Kind, Leaf, ListStyle, MAX_DEPTH, Present};
use crate::spec::tables::derived::{DERIVED_KEYS, Derived};
use crate::spec::tables::file_rows::FILE;
use crate::spec::tables::{self, Tables};
use crate::spec::value_length::{MAX_RECORD_BYTES, SHORT_BYTES, longest};
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable, listed, position};
use crate::types::logical_type::{LEAF_TYPES, LogicalType};
use names::{children, key, operand, other_table, referring};
use needed::Only;

/// The top-level keys of a spec, with their descriptions.
pub(crate) const DATASET_KEYS: &[(&str, &str)] = &[
    ("name", "the name of the dataset; file names start with it"),
    ("rows", "the number of rows, for commands without --rows and for references from other datasets"),
    ("fields", "the fields of a record"),
    ("present", "which optional fields of the record are present together"),
    ("copula", "the fields whose ranks depend on one another, and how"),
];

/// The key of a table beside the dataset's keys.
pub(crate) const PER: (&str, &str) =
    ("per", "the parent `table`, for each row of which the table has a drawn number of `rows`");

/// How `--scale` changes the rows of a table, another key beside the dataset's.
pub(crate) const SCALE: (&str, &str) = (
    "scale",
    "how the rows follow `--scale`: `linear`, which is the default, `sqrt`, or `fixed`: not at all",
);

/// The types with nested fields, and the keys of each.
pub(crate) const GROUP_KEYS: &[(&str, &[&str])] = &[
    ("struct", &["fields", "present"]),
    ("list", &["length", "size", "empty", "element", "legacy"]),
    ("map", &["length", "empty", "key", "value"]),
];

/// The longest chain of datasets that refer to one another.
const MAX_REFERENCES: usize = 8;

/// Reads the spec in `text`. `depth` counts the references that led here from the requested dataset.
pub(crate) fn read(text: &str, folder: &SpecFolder<'_>, depth: usize) -> Result<Dataset, Error> {
    let parsed = parsed(text)?;
    let root = SpecTable::root(parsed.get_ref(), text);
    if let Some(tables) = Tables::new(root, folder, None)? {
        let what = "a spec with several tables, where one is needed";
        return Err(Error::spec(what, "", format!("name one: SPEC/TABLE, of {}", tables.names().join(", "))));
    }
    read_table(root, None, folder, depth, Only::All)
}

/// Reads the table `name` of a spec with several; each has `scale` times its rows.
pub(crate) fn read_one(
    text: &str,
    folder: &SpecFolder<'_>,
    name: &str,
    scale: Option<f64>,
) -> Result<Dataset, Error> {
    if scale.is_some_and(|scale| !(scale.is_finite() && scale > 0.0)) {
        return Err(Error::spec("a scale that is not above 0", name, "give a number like 0.1 or 10"));
    }
    let parsed = parsed(text)?;
    let root = SpecTable::root(parsed.get_ref(), text);
    let Some(tables) = Tables::new(root, folder, scale)? else {
        let what = format!("no table {name:?}: the spec describes a single dataset");
        return Err(Error::spec(what, "", "name the spec alone"));
    };
    let dataset = tables.dataset(name, 0)?;
    // Other tables may also hold it, but only tables that were read for it.
    drop(tables);
    let mut dataset = Arc::try_unwrap(dataset)
        .map_err(|_| Error::spec("tables that look one another up", name, "remove one of the look-ups"))?;
    // The spec, the table and the scale decide its rows.
    let mut parts = folder.sum().to_le_bytes().to_vec();
    parts.extend_from_slice(&scale.unwrap_or(1.0).to_le_bytes());
    parts.extend_from_slice(name.as_bytes());
    dataset.text_hash = xxh3_128(&parts);
    dataset.files = folder.files();
    Ok(dataset)
}

/// The names of the tables of the spec in `text`; none if it describes a single dataset.
pub(crate) fn table_names(text: &str) -> Result<Vec<String>, Error> {
    let parsed = parsed(text)?;
    Ok(tables::names(SpecTable::root(parsed.get_ref(), text)))
}

fn parsed(text: &str) -> Result<Spanned<DeTable<'_>>, Error> {
    DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or_else(String::new, |span| position(text, span.start));
        let what = error.message().trim().replace('\n', ", ");
        Error::spec(what, place, "see `sawmill gen contacts --print` for a valid spec")
    })
}

/// Reads a dataset, or one of the `tables` of a spec, with `only` some fields.
pub(crate) fn read_table(
    root: SpecTable<'_>,
    tables: Option<&Tables<'_>>,
    folder: &SpecFolder<'_>,
    depth: usize,
    only: Only<'_>,
) -> Result<Dataset, Error> {
    let of_tables = [&[PER, SCALE, FILE], DERIVED_KEYS].concat();
    let keys = DATASET_KEYS.iter().chain(of_tables.iter().filter(|_| tables.is_some()));
    let keys: Vec<&str> = keys.map(|(key, _)| *key).collect();
    root.check("", if tables.is_some() { "a table" } else { "a dataset" }, &keys)?;
    let name = root.need("name", "", "a dataset")?;
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let stem = name.string().filter(|n| !n.is_empty() && n.chars().all(named));
    let Some(stem) = stem else {
        let what = format!("{} cannot be the start of file names", name.described());
        return Err(name.error("", what, "use letters, digits, - and _"));
    };
    let (rows, fan_out) = match tables {
        Some(tables) => (tables.rows(stem)?, tables.fan_out(stem)?),
        None => {
            let count = |node: SpecNode<'_>| match node.integer() {
                // Data may be empty.
                Some(0) => Ok(0),
                _ => count(node, "", i64::MAX as u64),
            };
            (root.get("rows").map(count).transpose()?, None)
        }
    };
    let salt = tables.map_or(0, |_| purpose(stem, "table"));
    let mut reader = Reader {
        folder,
        depth,
        dataset: stem,
        root,
        tables,
        fan_out,
        only,
        leaves: Vec::new(),
        columns: 0,
        first_hidden: 0,
        lists: 0,
        hidden: Vec::new(),
        is_hidden: false,
        order: Vec::new(),
        operands: Vec::new(),
        groups: HashMap::from([(String::new(), Levels::default())]),
    };
    let derived = tables.map_or(Ok(None), |tables| tables.derived(stem, 0))?;
    let (fields, present) = match (tables, &derived) {
        (Some(tables), Some(derived)) => reader.derived(derived, tables, root)?,
        _ => {
            let specs = root.need("fields", "", "a dataset")?;
            let (names, present) = present(root, specs, "")?;
            (reader.fields(specs, Position::RECORD, names.as_deref())?, present)
        }
    };
    let changes = match &derived {
        Some(Derived::Changes(changes, _)) => Some(changes.clone()),
        _ => None,
    };
    if fields.is_empty() {
        return Err(root.error(
            "",
            "a record without fields that files have",
            "add a field that is not hidden",
        ));
    }
    let place = |(is_hidden, place): (bool, usize)| place + if is_hidden { fields.len() } else { 0 };
    let order = reader.order.into_iter().map(place).collect();
    let (leaves, operands) = (reader.columns, reader.operands);
    let mut dataset = Dataset {
        name: stem.to_owned(),
        rows,
        fields,
        hidden: reader.hidden,
        order,
        chain: None,
        present,
        copula: None,
        present_ranked: None,
        leaves,
        text_hash: folder.sum(),
        files: folder.files(),
        salt,
        most_rows: derived
            .map(|derived| derived.rows())
            .or(reader.fan_out.as_ref().map(|fan_out| fan_out.rows))
            .or(rows.filter(|_| root.get("file").is_some())),
        changes,
        maker: None,
    };
    let mut is_chain = false;
    dataset.each_leaf_mut(&mut |leaf| {
        leaf.is_operand = operands.contains(&leaf.index);
        is_chain |= leaf.values.follows_rows();
    });
    dataset.chain = reader.fan_out.filter(|_| is_chain);
    if !matches!(only, Only::Key(_)) {
        copula::reader::read(root, &mut dataset)?;
    }
    Ok(dataset)
}

/// The reader's position in the tree of fields.
#[derive(Clone, Copy)]
struct Position<'a> {
    parent: &'a str,
    levels: Levels,
    /// The most elements that one record can have at this position.
    elements: u32,
    depth: usize,
}

impl Position<'_> {
    /// The fields of the record.
    const RECORD: Self =
        Position { parent: "", levels: Levels { definition: 0, repetition: 0 }, elements: 1, depth: 1 };
}

/// A leaf that has been read.
struct Seen {
    /// Its position: the columns of files come before hidden leaves.
    index: usize,
    path: String,
    kind: LogicalType,
    levels: Levels,
    /// The range of its values.
    reach: Reach,
    /// The bytes of its longest value, if it is a string.
    longest: u64,
    /// The table that its values are keys of.
    refers: Option<Referring>,
}

struct Reader<'a> {
    folder: &'a SpecFolder<'a>,
    depth: usize,
    dataset: &'a str,
    root: SpecTable<'a>,
    /// The tables of the spec, if it has several.
    tables: Option<&'a Tables<'a>>,
    /// How the rows of this table follow from its parent's rows.
    fan_out: Option<Arc<FanOut>>,
    /// The fields of the record to read.
    only: Only<'a>,
    leaves: Vec<Seen>,
    /// The columns of files among them, and the position of the first hidden leaf.
    columns: usize,
    first_hidden: usize,
    /// The lists so far.
    lists: usize,
    hidden: Vec<Field>,
    /// Whether the field that is read is hidden.
    is_hidden: bool,
    /// Whether each field of the record is hidden, and its place.
    order: Vec<(bool, usize)>,
    /// The leaves that expressions use.
    operands: Vec<usize>,
    /// The levels of a present group, by its path.
    groups: HashMap<String, Levels>,
}

impl Reader<'_> {
    fn fields(
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
    fn next_leaf(&self) -> usize {
        match self.is_hidden {
            true => self.first_hidden + self.leaves.len() - self.columns,
            false => self.columns,
        }
    }

    /// Adds a leaf, and returns its position.
    fn see(&mut self, path: &str, kind: &LogicalType, levels: Levels, values: &ValueSpec) -> usize {
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
    fn field(
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

    fn list(
        &mut self,
        table: SpecTable<'_>,
        type_name: &str,
        path: &str,
        levels: &mut Levels,
        nulls: Nulls,
        position: Position<'_>,
    ) -> Result<Kind, Error> {
        let (length, lengths, fixed) = list_lengths(table, type_name, nulls, path)?;
        let elements = position.elements.saturating_mul(lengths.longest.max(1));
        if elements > MAX_ELEMENTS {
            let what = format!("lists may hold {elements} elements in one record");
            let advice = format!("shorten the lists to at most {MAX_ELEMENTS} on one path");
            return Err(length.error(path, what, advice));
        }
        *levels = Levels { definition: levels.definition + 1, repetition: levels.repetition + 1 };
        let number = self.lists;
        self.lists += 1;
        let inner = Position { parent: path, levels: *levels, elements, depth: position.depth + 1 };
        if type_name == "map" {
            let (key_node, value) = (table.need("key", path, "a map")?, table.need("value", path, "a map")?);
            let group = format!("{path}.key_value");
            self.groups.insert(group.clone(), *levels);
            let key =
                self.field(child(key_node, type_name, path)?, "key", format!("{group}.key"), inner, None)?;
            let value =
                self.field(child(value, type_name, path)?, "value", format!("{group}.value"), inner, None)?;
            if key.nulls != Nulls::Never || !matches!(key.kind, Kind::Leaf(_)) {
                let what = "the key of a map must be a required leaf";
                return Err(key_node.error(path, what, "use a leaf type, without `nulls`"));
            }
            let mut children = vec![key, value];
            if let Some(Field { kind: Kind::Leaf(leaf), .. }) = children.first_mut() {
                leaf.distinct = true;
                let different = different_keys(&leaf.values);
                if u64::from(lengths.longest) > different {
                    let what =
                        format!("maps of {} keys, but only {different} different keys", lengths.longest);
                    return Err(key_node.error(path, what, "shorten the map or allow more key values"));
                }
            }
            return Ok(Kind::List { number, lengths, style: ListStyle::Map, children });
        }
        let legacy = match table.get("legacy") {
            None => false,
            Some(node) => node.boolean().ok_or_else(|| {
                node.error(path, format!("`legacy = {}`", node.described()), "use true or false")
            })?,
        };
        let node = table.need("element", path, "a list")?;
        let (style, name, own) = match (legacy, fixed) {
            (true, _) => (ListStyle::Legacy, "array", format!("{path}.array")),
            (false, None) => (ListStyle::Standard, "element", format!("{path}.list.element")),
            (false, Some(size)) => (ListStyle::Fixed(size), "element", format!("{path}.list.element")),
        };
        self.groups.insert(own.rsplit_once('.').map_or(path, |(group, _)| group).to_owned(), *levels);
        let element = self.field(child(node, type_name, path)?, name, own, inner, None)?;
        if legacy && (element.nulls != Nulls::Never || matches!(element.kind, Kind::List { .. })) {
            let what = "the element of a legacy list cannot be nullable, a list or a map";
            return Err(node.error(path, what, "remove `nulls` or `legacy`"));
        }
        Ok(Kind::List { number, lengths, style, children: vec![element] })
    }

    fn leaf(
        &mut self,
        table: SpecTable<'_>,
        type_name: &str,
        path: &str,
        levels: Levels,
        position: Position<'_>,
    ) -> Result<Kind, Error> {
        let Some(kind) = LogicalType::read(type_name, table, path)? else {
            return Err(table.error(path, format!("{type_name} is not a leaf type"), "change the type"));
        };
        let node = table.need("values", path, "a leaf")?;
        if node.string() == Some("column") {
            let file = self.tables.map_or(Ok(None), |tables| tables.file(self.dataset))?;
            let Some(file) = file.filter(|_| position.levels.repetition == 0) else {
                let what = "a column of a file in a table without `file`, or in a list";
                return Err(node.error(path, what, "add `file = \"rows.csv\"` to the table"));
            };
            let values = file.column(path, &kind).map_err(|(what, advice)| node.error(path, what, advice))?;
            let index = self.see(path, &kind, levels, &values);
            return Ok(Kind::Leaf(Box::new(Leaf::new(index, kind, values))));
        }
        let (leaves, groups) = (&self.leaves, &self.groups);
        let (folder, depth, dataset, root) = (self.folder, self.depth, self.dataset, self.root);
        let mut around = Surroundings {
            kind: &kind,
            path,
            folder,
            operand: &mut |name| operand(name, path, leaves, groups),
            key: &mut |name| key(name, (dataset, root, path), self.tables, folder, depth),
            tables: OtherTables {
                referring: &|name| referring(name, path, leaves, groups),
                table: &|name, column| other_table((name, column), dataset, self.tables, folder, depth),
                children: &|name| children(name, dataset, self.tables),
                fan_out: self.fan_out.as_ref(),
            },
            in_list: position.levels.repetition > 0,
            own: self.fan_out.as_ref().filter(|_| position.levels.repetition == 0).map(|_| Operand {
                leaf: self.next_leaf(),
                kind: kind.clone(),
                repetition: 0,
                nullable: levels.definition > 0,
                reach: Reach::ANY,
                longest: SHORT_BYTES,
                row: OperandRow::Before,
            }),
        };
        let values = ValueSpec::read(node, &mut around)?;
        check_length(&values, position.elements, node, path)?;
        let optional = levels.definition > position.levels.definition;
        self.use_operands(&values, optional, node, path)?;
        let index = self.see(path, &kind, levels, &values);
        let mut leaf = Leaf::new(index, kind, values);
        leaf.most_in_record = position.elements.into();
        Ok(Kind::Leaf(Box::new(leaf)))
    }

    /// Reads when the field in `table` is null, and the condition for it if there is one.
    fn nulls(
        &mut self,
        table: SpecTable<'_>,
        together: Option<usize>,
        path: &str,
    ) -> Result<(Nulls, Option<Box<Expression>>), Error> {
        let given = table.get("nulls").filter(|node| node.is_table());
        let given = given.map(|node| node.any_table(path, "`nulls`")).transpose()?;
        let Some(node) = given.and_then(|given| given.get("expression")) else {
            return Ok((nulls(table, together, path)?, None));
        };
        given.map_or(Ok(()), |given| given.check(path, "`nulls`", &["expression"]))?;
        if together.is_some() || node.string().is_none() {
            let what = format!("`nulls.expression = {}`", node.described());
            return Err(node.error(path, what, "write a condition, for a field that no `present` names"));
        }
        let resolve = &mut |name: &str| operand(name, path, &self.leaves, &self.groups);
        let text = node.string().unwrap_or_default();
        let condition = Expression::parse(text, &LogicalType::Boolean, &[], resolve)
            .map_err(|(what, advice)| node.error(path, what, advice))?;
        if condition.operands.iter().any(|operand| operand.row != OperandRow::Own) {
            return Err(node.error(path, "previous() in a condition of nulls", "use a hidden field for it"));
        }
        self.operands.extend(condition.operands.iter().map(|operand| operand.leaf));
        Ok((Nulls::Where, Some(Box::new(condition))))
    }

    /// Notes the fields that `values` depend on. Where one of them is null, so is the value.
    fn use_operands(
        &mut self,
        values: &ValueSpec,
        optional: bool,
        node: SpecNode<'_>,
        path: &str,
    ) -> Result<(), Error> {
        let operand = values.operands().iter().find(|operand| operand.nullable);
        let operand = operand.and_then(|operand| self.leaves.iter().find(|seen| seen.index == operand.leaf));
        let other = match values {
            ValueSpec::OtherColumn(column) if column.nullable => Some(&column.name),
            _ => operand.map(|seen| &seen.path),
        };
        if let (false, Some(name)) = (optional, other) {
            let what = format!("a required field computed from {name}, which can be null");
            let advice = format!("add `nulls = 0`: the field is then null wherever {name} is");
            return Err(node.error(path, what, advice));
        }
        self.operands.extend(values.operands().iter().map(|o| o.leaf));
        Ok(())
    }
}

/// Reads the `length` of a list or map, or the `size` of a list that always has as many elements; with the node
/// that says so.
fn list_lengths<'a>(
    table: SpecTable<'a>,
    type_name: &str,
    nulls: Nulls,
    path: &str,
) -> Result<(SpecNode<'a>, Lengths, Option<u32>), Error> {
    let Some(node) = table.get("size").filter(|_| type_name == "list") else {
        if type_name == "list" && table.get("length").is_none() {
            return Err(table.error(
                path,
                "a list without `length`",
                "add `length`, or `size` if all have the same",
            ));
        }
        let length = table.need("length", path, &format!("a {type_name}"))?;
        return Ok((length, Lengths::read(length, table.get("empty"), nulls, path)?, None));
    };
    if let Some(key) = ["length", "empty", "legacy"].iter().find(|key| table.get(key).is_some()) {
        let what = format!("`{key}` on a list with a `size`, which always has as many elements");
        return Err(table.key_error(key, path, what, format!("remove `{key}` or `size`")));
    }
    let size = node.integer().and_then(|size| u32::try_from(size).ok());
    let size = size.filter(|size| (1..=MAX_ELEMENTS).contains(size)).ok_or_else(|| {
        let what = format!("`size = {}`", node.described());
        node.error(path, what, format!("use 1 to {MAX_ELEMENTS} elements"))
    })?;
    Ok((node, Lengths::of_size(size, nulls, node, path)?, Some(size)))
}

/// How many different keys maps can have.
fn different_keys(values: &ValueSpec) -> u64 {
    match values {
        ValueSpec::Choice { table, .. } => table.probabilities().len() as u64,
        ValueSpec::Boolean(_) => 2,
        ValueSpec::Zipf(ranks) => ranks.count(),
        ValueSpec::Integers { span, .. } if *span > 0 => *span,
        _ => u64::MAX,
    }
}

/// Refuses values if the `elements` of one record would be too long together.
fn check_length(values: &ValueSpec, elements: u32, node: SpecNode<'_>, path: &str) -> Result<(), Error> {
    let longest = longest(values).unwrap_or(0);
    if longest.saturating_mul(elements.into()) <= MAX_RECORD_BYTES {
        return Ok(());
    }
    let what = match elements {
        1 => format!("values of up to {longest} bytes"),
        n => format!("{n} values of up to {longest} bytes in one record"),
    };
    let advice = format!("shorten the values or lists to {MAX_RECORD_BYTES} bytes in one record");
    Err(node.error(path, what, advice))
}

/// The field inside a list or map, which the format names.
fn child<'a>(node: SpecNode<'a>, around: &str, path: &str) -> Result<SpecTable<'a>, Error> {
    let table = node.any_table(path, "a field")?;
    if table.get("name").is_some() {
        let what = format!("`name` on a field inside a {around}");
        return Err(table.key_error("name", path, what, "remove it: the format names this field"));
    }
    Ok(table)
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

/// Reads how often the field in `table` is null, if no condition says it.
fn nulls(table: SpecTable<'_>, together: Option<usize>, path: &str) -> Result<Nulls, Error> {
    let Some(node) = table.get("nulls") else {
        return Ok(together.map_or(Nulls::Never, |bit| Nulls::Together(bit as u32)));
    };
    if together.is_some() {
        let what = "`nulls` on a field that the `present` of its struct names";
        return Err(node.error(path, what, "keep one of them"));
    }
    let wrong = || {
        let what = format!("`nulls = {}` is not a probability", node.described());
        node.error(
            path,
            what,
            "use 0.0 to 1.0, { weights = { null = 1, value = 9 } } or { expression = \"...\" }",
        )
    };
    if node.is_table() {
        let weights =
            node.table(path, "`nulls`", &["weights", "expression"])?.need("weights", path, "`nulls`")?;
        let weights = weights.table(path, "`nulls`", &["null", "value"])?;
        let weight = |key| {
            let number = weights.need(key, path, "`nulls`")?.number();
            number.filter(|w| w.is_finite() && *w >= 0.0).ok_or_else(wrong)
        };
        let (null, value) = (weight("null")?, weight("value")?);
        return if null + value > 0.0 { Ok(Nulls::Share(null / (null + value))) } else { Err(wrong()) };
    }
    node.number().filter(|p| (0.0..=1.0).contains(p)).map(Nulls::Share).ok_or_else(wrong)
}

/// Reads which fields of `table` are present together, and returns the names of these fields with it.
fn present(
    table: SpecTable<'_>,
    fields: SpecNode<'_>,
    path: &str,
) -> Result<(Option<Vec<String>>, Option<Present>), Error> {
    let Some(node) = table.get("present") else { return Ok((None, None)) };
    let wrong = |node: SpecNode<'_>| {
        let what = format!("`present` contains {}", node.described());
        node.error(path, what, "write a list of { fields = [...], weight = ... }")
    };
    let mut combinations: Vec<(Vec<String>, f64)> = Vec::new();
    for combination in node.array().ok_or_else(|| wrong(node))? {
        let table = combination.table(path, "a combination of `present`", &["fields", "weight"])?;
        let names = table.need("fields", path, "a combination of `present`")?;
        let mut all = Vec::new();
        for name in names.array().ok_or_else(|| wrong(names))? {
            let text = name.string().ok_or_else(|| wrong(name))?;
            let known = fields.array().into_iter().flatten().any(|field| {
                let table = field.any_table(path, "a field").ok();
                table.and_then(|t| t.get("name")).and_then(|n| n.string()) == Some(text)
            });
            if !known {
                let what = format!("no field is named {text:?}");
                return Err(name.error(path, what, "use names of fields of this struct"));
            }
            all.push(text.to_owned());
        }
        let weight = table.need("weight", path, "a combination of `present`")?;
        combinations.push((all, weight.number().ok_or_else(|| wrong(weight))?));
    }
    let mut names: Vec<String> = combinations.iter().flat_map(|(names, _)| names.iter().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 32 {
        return Err(node.error(path, "`present` names more than 32 fields", "name fewer fields"));
    }
    let bit = |name: &String| names.iter().position(|n| n == name).map_or(0, |i| 1u32 << i);
    let masks = combinations.iter().map(|(n, _)| n.iter().map(bit).fold(0, |a, b| a | b)).collect();
    let weights: Vec<f64> = combinations.iter().map(|(_, w)| *w).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, node, path))?;
    Ok((Some(names), Some(Present { table, masks })))
}

#[cfg(test)]
mod tests;
