//! `--schema`: the schema as a message type, as a tree, and as a flat list for programs.
//!
//! Nothing here recurses: a schema may be 100,000 deep. For the same reason indentation stops at
//! [`MAX_DEPTH`] levels.

use std::fmt::Write as _;
use std::io::{self, Write};

use sawmill_footer::{Element, PhysicalType, Repetition, Schema};
use serde::{Serialize, Serializer};

use crate::file::open_file::OpenFile;
use crate::text::escape::{clipped, escaped};
use crate::text::values::meaning;

/// Most levels of indentation; deeper elements are indented no further.
const MAX_DEPTH: usize = 64;

/// Most characters of a name.
const MAX_LENGTH: usize = 200;

/// `INT64`, `FIXED_LEN_BYTE_ARRAY(16)`; empty for groups.
pub(crate) fn physical_type(element: Element<'_>) -> String {
    match element.physical_type() {
        Some(PhysicalType::FixedLenByteArray) => {
            format!("FIXED_LEN_BYTE_ARRAY({})", element.type_length().unwrap_or(0))
        }
        Some(physical) => physical.to_string(),
        None => String::new(),
    }
}

fn repetition(element: Element<'_>) -> String {
    element.repetition().unwrap_or(Repetition::Required).to_string().to_lowercase()
}

/// ` (STRING)`; empty without an annotation.
fn annotation(element: Element<'_>) -> String {
    let text = match (element.logical_type(), element.converted_type()) {
        (Some(logical), _) => logical.to_string(),
        // All converted types that have a meaning of a logical type.
        (None, Some(_)) if meaning(element).is_some() => {
            let converted = element.converted_type().map(|c| c.to_string()).unwrap_or_default();
            match (element.precision(), element.scale()) {
                (Some(precision), scale) if converted == "DECIMAL" => {
                    format!("DECIMAL({precision},{})", scale.unwrap_or(0))
                }
                _ => converted,
            }
        }
        (None, Some(converted)) => converted.to_string(),
        (None, None) => return String::new(),
    };
    format!(" ({})", escaped(&text))
}

fn name(element: Element<'_>) -> String {
    let (name, more) = clipped(element.name(), MAX_LENGTH);
    format!("{}{}", escaped(name), if more { "…" } else { "" })
}

/// Writes both forms, one below the other.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let schema = file.footer.schema();
    message_type(schema, out)?;
    writeln!(out)?;
    tree(schema, out)
}

/// Writes the schema as parquet-format and most tools do.
pub(crate) fn message_type(schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
    let root = schema.root();
    writeln!(out, "message {} {{", if root.name().is_empty() { "schema".to_owned() } else { name(root) })?;
    let mut open = 1;
    for (element, depth) in with_depths(schema).skip(1) {
        close(&mut open, depth, out)?;
        let indent = depth.min(MAX_DEPTH) * 2;
        let id = element.field_id().map(|id| format!(" = {id}")).unwrap_or_default();
        let kind = match element.physical_type() {
            Some(PhysicalType::ByteArray) if element.is_leaf() => "binary".to_owned(),
            Some(_) if element.is_leaf() => physical_type(element).to_lowercase(),
            _ => "group".to_owned(),
        };
        let (repetition, name, note) = (repetition(element), name(element), annotation(element));
        if element.is_leaf() {
            writeln!(out, "{:indent$}{repetition} {kind} {name}{note}{id};", "")?;
        } else {
            writeln!(out, "{:indent$}{repetition} {kind} {name}{note}{id} {{", "")?;
            open = depth + 1;
        }
    }
    close(&mut open, 0, out)
}

/// Closes groups until `depth` groups are open.
fn close(open: &mut usize, depth: usize, out: &mut dyn Write) -> io::Result<()> {
    while *open > depth {
        *open -= 1;
        writeln!(out, "{:indent$}}}", "", indent = (*open).min(MAX_DEPTH) * 2)?;
    }
    Ok(())
}

/// Writes the schema as a tree, with the number and the maximum levels of each column.
pub(crate) fn tree(schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", name(schema.root()))?;
    let depths: Vec<usize> = with_depths(schema).map(|(_, depth)| depth).collect();
    let last = last_children(depths.into_iter());
    // For each level of the current branch, whether its element is a last child.
    let mut last_child: Vec<bool> = Vec::new();
    let mut line = String::new();
    for (element, depth) in with_depths(schema).skip(1) {
        last_child.truncate(depth - 1);
        last_child.push(last[element.index()]);
        line.clear();
        for &last in last_child.iter().take(depth - 1).take(MAX_DEPTH) {
            line.push_str(if last { "   " } else { "│  " });
        }
        line.push_str(if last_child[depth - 1] { "└─ " } else { "├─ " });
        line.push_str(&name(element));
        // Writing to a string does not fail.
        let _ = write!(line, ": {}", repetition(element));
        if element.is_leaf() {
            let _ = write!(line, " {}{}", physical_type(element), annotation(element));
            let _ = write!(line, ", column {}", element.column().unwrap_or_default());
            for (level, short) in [(element.max_def(), "definition"), (element.max_rep(), "repetition")] {
                if level > 0 {
                    let _ = write!(line, ", {short} level {level}");
                }
            }
        } else {
            let _ = write!(line, " group{}", annotation(element));
        }
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// For each element, whether it is the last child of its parent.
fn last_children(depths: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator) -> Vec<bool> {
    let mut last = vec![false; depths.len()];
    // Going backwards: for each level of the current branch, whether a later sibling was seen.
    let mut seen = Vec::new();
    for (index, depth) in depths.enumerate().rev() {
        seen.resize(depth + 1, false);
        last[index] = !std::mem::replace(&mut seen[depth], true);
    }
    last
}

/// All elements with their distance from the root.
pub(crate) fn with_depths(schema: &Schema) -> impl Iterator<Item = (Element<'_>, usize)> {
    let mut depths: Vec<u32> = Vec::with_capacity(schema.num_elements());
    schema.elements().map(move |element| {
        // Parents come before their children.
        let depth = element.parent().map_or(0, |parent| depths[parent.index()] + 1);
        depths.push(depth);
        (element, depth as usize)
    })
}

/// The schema for programs: the message type as text and all elements in depth-first order, flat.
pub(crate) struct SchemaDoc<'a>(pub(crate) &'a Schema);

#[derive(Serialize)]
struct Node<'a> {
    depth: usize,
    name: &'a str,
    /// The column of a leaf, and its path.
    column: Option<usize>,
    path: Option<String>,
    repetition: Option<String>,
    physical_type: Option<String>,
    type_length: Option<i32>,
    num_children: Option<u32>,
    logical_type: Option<String>,
    converted_type: Option<String>,
    scale: Option<i32>,
    precision: Option<i32>,
    field_id: Option<i32>,
    max_definition_level: u32,
    max_repetition_level: u32,
}

#[derive(Serialize)]
struct Parts<'a> {
    message_type: String,
    elements: Nodes<'a>,
}

struct Nodes<'a>(&'a Schema);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(with_depths(self.0).map(|(element, depth)| Node {
            depth,
            name: element.name(),
            column: element.column(),
            path: element.is_leaf().then(|| element.path()),
            repetition: element.repetition().map(|it| it.to_string()),
            physical_type: element.physical_type().map(|it| it.to_string()),
            type_length: element.type_length(),
            num_children: element.num_children(),
            logical_type: element.logical_type().map(|it| it.to_string()),
            converted_type: element.converted_type().map(|it| it.to_string()),
            scale: element.scale(),
            precision: element.precision(),
            field_id: element.field_id(),
            max_definition_level: element.max_def(),
            max_repetition_level: element.max_rep(),
        }))
    }
}

impl Serialize for SchemaDoc<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::new();
        message_type(self.0, &mut text).map_err(serde::ser::Error::custom)?;
        let message_type = String::from_utf8_lossy(&text).into_owned();
        Parts { message_type, elements: Nodes(self.0) }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_determine_the_last_children() {
        // A root with two groups of two leaves each.
        let depths = [0, 1, 2, 2, 1, 2, 2];
        let expected = [true, false, false, true, true, false, true];
        assert_eq!(last_children(depths.into_iter()), expected);
    }
}
