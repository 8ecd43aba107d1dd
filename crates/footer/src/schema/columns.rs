//! Selects columns by index, path, root or pattern.

use crate::error::Error;
use crate::schema::arena::Schema;
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

/// The selected leaves of the schema, in ascending order.
pub(crate) fn leaves(selectors: &[ColumnSelector], schema: &Schema) -> Result<Vec<u32>, Error> {
    let mut wanted = Vec::new();
    for selector in selectors {
        let before = wanted.len();
        match selector {
            ColumnSelector::Index(index) => wanted.extend(schema.leaf(*index).and_then(|leaf| leaf.column())),
            ColumnSelector::Path(path) => {
                wanted.extend(schema.find_all(path).flat_map(|at| at.columns()));
            }
            ColumnSelector::Root(name) => {
                let tops = schema.root().children().filter(|top| top.name() == name);
                wanted.extend(tops.flat_map(|top| top.columns()));
            }
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
    // Columns are schema elements, of which a footer has fewer than 2^32.
    Ok(wanted.into_iter().map(|column| column as u32).collect())
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
