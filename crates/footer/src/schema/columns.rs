//! Selects columns by index, path, root or pattern.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::schema::arena::Schema;
use crate::schema::element::Element;
use crate::schema::glob;

/// A way to select columns of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSelector {
    /// The column with this index.
    Index(usize),
    /// The columns at or below this path: names joined by dots. If names are repeated or contain dots, all
    /// elements at the path match.
    Path(String),
    /// The top-level fields with this name, or the columns below them.
    Root(String),
    /// The columns whose paths match: `*` matches any part of a name, `**` any part of a path, `?` one
    /// character of a name, and `\` escapes the next character.
    Glob(String),
}

/// Of more selectors, the top-level fields are found by a map of their names: to search all fields for each of
/// 5,000 of 10,000 columns takes longer than to decode 20 row groups of them.
const FEW: usize = 16;

/// The selected leaves of the schema, in ascending order.
pub(crate) fn leaves(selectors: &[ColumnSelector], schema: &Schema) -> Result<Vec<u32>> {
    let mut wanted = Vec::new();
    let tops = (selectors.len() > FEW).then(|| tops_by_name(schema));
    for selector in selectors {
        let before = wanted.len();
        match selector {
            ColumnSelector::Index(index) => wanted.extend(schema.leaf(*index).and_then(|leaf| leaf.column())),
            ColumnSelector::Path(path) => match &tops {
                Some(tops) => wanted.extend(at_path(tops, path).flat_map(|at| at.columns())),
                None => wanted.extend(schema.find_all(path).flat_map(|at| at.columns())),
            },
            ColumnSelector::Root(name) => match &tops {
                Some(tops) => {
                    let named = tops.get(name.as_str()).into_iter().flatten();
                    wanted.extend(named.flat_map(|top| top.columns()));
                }
                None => {
                    let named = schema.root().children().filter(|top| top.name() == name);
                    wanted.extend(named.flat_map(|top| top.columns()));
                }
            },
            ColumnSelector::Glob(pattern) => {
                let matching = schema.leaves().filter(|leaf| glob::matches(pattern, &leaf.path_names()));
                wanted.extend(matching.filter_map(|leaf| leaf.column()));
            }
        }
        if wanted.len() == before {
            return Err(no_such_column(selector, schema));
        }
    }
    wanted.sort_unstable();
    wanted.dedup();
    // Columns are schema elements, and a footer has fewer than 2^32 elements.
    Ok(wanted.into_iter().map(|column| column as u32).collect())
}

/// The top-level fields of each name.
fn tops_by_name(schema: &Schema) -> HashMap<&str, Vec<Element<'_>>> {
    let mut tops: HashMap<&str, Vec<Element<'_>>> = HashMap::new();
    for top in schema.root().children() {
        tops.entry(top.name()).or_default().push(top);
    }
    tops
}

/// All elements at a path. A name may contain dots, so that each dot may end the top-level one.
fn at_path<'s>(tops: &HashMap<&'s str, Vec<Element<'s>>>, path: &str) -> impl Iterator<Item = Element<'s>> {
    let named = move |name: &str| tops.get(name).cloned().unwrap_or_default();
    let below = path.match_indices('.').flat_map(move |(dot, _)| {
        let rest = &path[dot + 1..];
        named(&path[..dot]).into_iter().flat_map(move |top| top.find_all_below(rest))
    });
    named(path).into_iter().chain(below)
}

fn no_such_column(selector: &ColumnSelector, schema: &Schema) -> Error {
    let what = match selector {
        ColumnSelector::Index(index) => {
            format!("expected a column index below {}, found {index}", schema.num_leaves())
        }
        ColumnSelector::Path(path) => format!("expected a column or group at the path `{path}`, found none"),
        ColumnSelector::Root(name) => format!("expected a top-level field `{name}`, found none"),
        ColumnSelector::Glob(pattern) => format!("expected columns that match `{pattern}`, found none"),
    };
    let mut names: Vec<&str> = schema.root().children().take(9).map(|top| top.name()).collect();
    if names.len() == 9 {
        names[8] = "...";
    }
    Error::new(what).with_advice(format!("the file's fields are {}", names.join(", ")))
}
