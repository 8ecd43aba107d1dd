//! Lists and maps: their lengths, and the fields inside.

use crate::draw::lengths::{Lengths, MAX_ELEMENTS};
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::ValueSpec;
use crate::error::Result;
use crate::spec::dataset::{Field, Kind, Levels, ListStyle};
use crate::spec::reader::{Position, Reader, SeenList};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};

impl Reader<'_> {
    pub(super) fn list(
        &mut self,
        table: SpecTable<'_>,
        type_name: &str,
        levels: &mut Levels,
        nulls: Nulls,
        position: Position<'_>,
    ) -> Result<Kind> {
        let (length, lengths, fixed) = list_lengths(table, type_name, nulls)?;
        let elements = position.elements.saturating_mul(lengths.longest.max(1));
        if elements > MAX_ELEMENTS {
            let what = format!("lists may hold {elements} elements in one record");
            let advice = format!("shorten the lists to at most {MAX_ELEMENTS} on one path");
            return Err(length.error(what, advice));
        }
        *levels = Levels { definition: levels.definition + 1, repetition: levels.repetition + 1 };
        let (number, first) = (self.lists, self.next_leaf());
        self.lists += 1;
        let path = table.path();
        let inner = Position { parent: path, levels: *levels, elements, depth: position.depth + 1 };
        if type_name == "map" {
            let (key_node, value) = (table.need("key", "a map")?, table.need("value", "a map")?);
            let group = format!("{path}.key_value");
            self.groups.insert(group.clone(), *levels);
            let key = self.field(child(key_node, type_name)?, "key", format!("{group}.key"), inner, None)?;
            let value =
                self.field(child(value, type_name)?, "value", format!("{group}.value"), inner, None)?;
            if key.nulls != Nulls::Never || !matches!(key.kind, Kind::Leaf(_)) {
                let what = "the key of a map must be a required leaf";
                return Err(key_node.error(what, "use a leaf type, without `nulls`"));
            }
            let mut children = vec![key, value];
            if let Some(Field { kind: Kind::Leaf(leaf), .. }) = children.first_mut() {
                leaf.distinct = true;
                let different = different_keys(&leaf.values);
                if u64::from(lengths.longest) > different {
                    let what =
                        format!("maps of {} keys, but only {different} different keys", lengths.longest);
                    return Err(key_node.error(what, "shorten the map or allow more key values"));
                }
            }
            self.see_list((path, group), *levels, first, &lengths);
            return Ok(Kind::List { number, lengths, style: ListStyle::Map, children });
        }
        let legacy = table.flag("legacy")?;
        let node = table.need("element", "a list")?;
        let (style, name, own) = match (legacy, fixed) {
            (true, _) => (ListStyle::Legacy, "array", format!("{path}.array")),
            (false, None) => (ListStyle::Standard, "element", format!("{path}.list.element")),
            (false, Some(size)) => (ListStyle::Fixed(size), "element", format!("{path}.list.element")),
        };
        self.groups.insert(own.rsplit_once('.').map_or(path, |(group, _)| group).to_owned(), *levels);
        let element = self.field(child(node, type_name)?, name, own.clone(), inner, None)?;
        if legacy && (element.nulls != Nulls::Never || matches!(element.kind, Kind::List { .. })) {
            let what = "the element of a legacy list cannot be nullable, a list or a map";
            return Err(node.error(what, "remove `nulls` or `legacy`"));
        }
        self.see_list((path, own), *levels, first, &lengths);
        Ok(Kind::List { number, lengths, style, children: vec![element] })
    }

    /// Adds a list that has been read, with the path of its elements and its first leaf.
    fn see_list(
        &mut self,
        (path, elements): (&str, String),
        levels: Levels,
        first: usize,
        lengths: &Lengths,
    ) {
        let may_be_empty = lengths.lengths.iter().any(|length| length.unwrap_or(0) == 0);
        self.whole_lists.push(SeenList { path: path.to_owned(), elements, levels, first, may_be_empty });
    }
}

/// Reads the `length` of a list or map, or the `size` of a list that always has as many elements; with the node
/// that says so.
fn list_lengths<'a>(
    table: SpecTable<'a>,
    type_name: &str,
    nulls: Nulls,
) -> Result<(SpecNode<'a>, Lengths, Option<u32>)> {
    let Some(node) = table.get("size").filter(|_| type_name == "list") else {
        if type_name == "list" && table.get("length").is_none() {
            let advice = "add `length`, or `size` if all have the same";
            return Err(table.error("a list without `length`", advice));
        }
        let length = table.need("length", &format!("a {type_name}"))?;
        return Ok((length, Lengths::read(length, table.get("empty"), nulls)?, None));
    };
    if let Some(key) = ["length", "empty", "legacy"].iter().find(|key| table.get(key).is_some()) {
        let what = format!("`{key}` on a list with a `size`, which always has as many elements");
        return Err(table.key_error(key, what, format!("remove `{key}` or `size`")));
    }
    let wrong = || node.wrong("size", format!("use 1 to {MAX_ELEMENTS} elements"));
    let size = node.integer_in(1..=MAX_ELEMENTS).ok_or_else(wrong)?;
    Ok((node, Lengths::of_size(size, nulls, node)?, Some(size)))
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

/// The field inside a list or map, which the format names.
fn child<'a>(node: SpecNode<'a>, around: &str) -> Result<SpecTable<'a>> {
    let table = node.any_table("a field")?;
    if table.get("name").is_some() {
        let what = format!("`name` on a field inside a {around}");
        return Err(table.key_error("name", what, "remove it: the format names this field"));
    }
    Ok(table)
}
