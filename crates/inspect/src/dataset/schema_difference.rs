//! How the columns of two schemas differ.

use std::collections::BTreeMap;
use std::fmt;

use sawmill_footer::{Element, Schema};
use serde::Serialize;

use crate::text::escape::escaped;
use crate::text::values::meaning;
use crate::views::schema::physical_type;

/// How many columns of each kind are named; the others are counted.
const NAMED: usize = 5;

/// How the columns of a schema differ from another's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// Columns that only the other schema has, and columns that only this one has.
    missing: Names,
    added: Names,
    /// Columns of another type: the path, its type here, its type in the other schema.
    changed: Names,
    /// Set if the columns are the same, but their order, field ids or groups differ.
    otherwise: Option<&'static str>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Names {
    count: usize,
    first: Vec<String>,
}

impl Names {
    fn add(&mut self, name: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(name());
        }
    }
}

/// Whether two schemas are equal, except for the name of the root, which depends on the writer.
pub(crate) fn alike(a: &Schema, b: &Schema) -> bool {
    if a == b {
        return true;
    }
    if a.num_elements() != b.num_elements() || a.root().name() == b.root().name() {
        return false;
    }
    a.elements().zip(b.elements()).skip(1).all(|(a, b)| same_element(a, b))
}

fn same_element(a: Element<'_>, b: Element<'_>) -> bool {
    a.name() == b.name()
        && a.repetition() == b.repetition()
        && a.physical_type() == b.physical_type()
        && a.type_length() == b.type_length()
        && a.num_children().unwrap_or(0) == b.num_children().unwrap_or(0)
        && a.field_id() == b.field_id()
        && meaning(a) == meaning(b)
}

/// A short description of a leaf: `optional INT64 (TIMESTAMP(MICROS,true))`.
pub(crate) fn described(leaf: Element<'_>) -> String {
    let repetition = leaf.repetition().map(|it| it.to_string().to_lowercase() + " ").unwrap_or_default();
    let meaning = meaning(leaf).map(|it| format!(" ({it})")).unwrap_or_default();
    // The levels reflect the groups above the leaf.
    let levels = match leaf.max_def() + leaf.max_rep() {
        0 | 1 => String::new(),
        _ => format!(" at levels {}/{}", leaf.max_def(), leaf.max_rep()),
    };
    format!("{repetition}{}{meaning}{levels}", physical_type(leaf))
}

/// How `schema` differs from `other`.
pub(crate) fn between(other: &Schema, schema: &Schema) -> Difference {
    let mut difference = Difference::default();
    let theirs: BTreeMap<String, Element<'_>> = other.leaves().map(|leaf| (leaf.path(), leaf)).collect();
    let mut found = 0;
    for leaf in schema.leaves() {
        let path = leaf.path();
        match theirs.get(&path) {
            None => difference.added.add(|| format!("{path} ({})", described(leaf))),
            Some(&their) => {
                found += 1;
                let (here, there) = (described(leaf), described(their));
                if here != there {
                    difference.changed.add(|| format!("{path} ({here} instead of {there})"));
                }
            }
        }
    }
    if found < theirs.len() {
        let ours: std::collections::BTreeSet<String> = schema.leaves().map(|leaf| leaf.path()).collect();
        for leaf in other.leaves().filter(|leaf| !ours.contains(&leaf.path())) {
            difference.missing.add(|| leaf.path());
        }
    }
    if [&difference.missing, &difference.added, &difference.changed].iter().all(|names| names.count == 0) {
        let same_order = other.leaves().map(|leaf| leaf.path()).eq(schema.leaves().map(|leaf| leaf.path()));
        difference.otherwise = Some(match same_order {
            false => "the same columns in another order",
            true => "the same columns with other field ids or groups",
        });
    }
    difference
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (kind, names) in [("without", &self.missing), ("with", &self.added), ("other", &self.changed)] {
            if names.count > 0 {
                let more = names.count - names.first.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                parts.push(format!("{kind} {}{more}", escaped(&names.first.join(", "))));
            }
        }
        parts.extend(self.otherwise.map(str::to_owned));
        f.write_str(&parts.join("; "))
    }
}
