//! The parts of footers that a query needs, as options of the decoder.

use std::fmt;

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use sawmill_footer::{Options, Schema};
use serde::{Deserialize, Serialize};

use crate::footers::columns::FooterLevel;
use crate::units::row_ranges::RowRanges;

/// The row groups and columns that a query can need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// The paths of columns; `None` for all.
    paths: Option<Vec<String>>,
    /// The first row group, and the one after the last.
    row_groups: Option<(usize, usize)>,
}

impl Selection {
    /// The selection that `filters` leave. The filters are applied again to the rows; this only leaves out parts
    /// that cannot match.
    pub(crate) fn new(filters: &[Expr]) -> Self {
        let mut selection = Self::default();
        for filter in filters {
            if let Some(paths) = paths_in(filter) {
                selection.paths.get_or_insert(paths);
            } else if let Some(rows) = RowRanges::where_holds(filter, "row_group") {
                let span = rows.span();
                let number = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
                let (start, end) = selection.row_groups.unwrap_or((0, usize::MAX));
                selection.row_groups = Some((start.max(number(span.start)), end.min(number(span.end))));
            }
        }
        selection
    }

    /// Whether the decoder can make use of a filter.
    pub(crate) fn uses(filter: &Expr) -> bool {
        Self::new(std::slice::from_ref(filter)) != Self::default()
    }

    /// Options for a footer with the schema `schema`; with an unknown one, those for a footer that has all columns of
    /// the selection.
    pub(crate) fn options(&self, level: FooterLevel, schema: Option<&Schema>) -> Options {
        // Rows of files only need fields outside of the row groups.
        let options = match (level, self.row_groups) {
            (FooterLevel::File, _) => Options::new().row_groups(0..0),
            (_, Some((start, end))) => Options::new().row_groups(start..end.max(start)),
            (_, None) => Options::new(),
        };
        match &self.paths {
            Some(paths) if level == FooterLevel::Chunk => {
                let there = |path: &&String| schema.is_none_or(|schema| has(schema, path));
                options.column_paths(paths.iter().filter(there))
            }
            _ => options,
        }
    }

    /// Whether a footer with this schema has a selected column.
    pub(crate) fn is_in(&self, schema: &Schema) -> bool {
        self.paths.as_ref().is_none_or(|paths| paths.iter().any(|path| has(schema, path)))
    }

    /// Whether columns are selected by their paths, which a footer may lack.
    pub(crate) fn names_columns(&self) -> bool {
        self.paths.is_some()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.paths {
            Some(paths) => write!(f, "paths=[{}]", paths.join(", "))?,
            None => f.write_str("paths=*")?,
        }
        match self.row_groups {
            Some((start, usize::MAX)) => write!(f, ", row_groups={start}.."),
            Some((start, end)) => write!(f, ", row_groups={start}..{end}"),
            None => Ok(()),
        }
    }
}

fn has(schema: &Schema, path: &str) -> bool {
    schema.find_all(path).next().is_some()
}

/// The paths that `path = '..'` or `path IN (..)` compares with.
fn paths_in(filter: &Expr) -> Option<Vec<String>> {
    let is_path = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == "path");
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_path(left) => {
            Some(vec![text(right)?])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) if is_path(right) => {
            Some(vec![text(left)?])
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let mut paths = paths_in(left)?;
            paths.extend(paths_in(right)?);
            Some(paths)
        }
        Expr::InList(list) if !list.negated && is_path(&list.expr) => list.list.iter().map(text).collect(),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
        _ => None,
    }
}
