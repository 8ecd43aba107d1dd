//! The repairs, for people and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::text::escape::escaped;
use crate::text::style::TextStyle;

/// How many columns with the same repair are named; of the rest, only the number is.
const MAX_NAMED: usize = 10;

/// A field that was changed, in one column or beside all columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The Thrift path of the field, without the indices of its row group and column.
    pub field: String,
    /// The path of the column, if the field belongs to one.
    pub column: Option<String>,
    /// What the field is now.
    pub now: String,
    /// Its former value, where it was changed first.
    pub was: String,
    /// The row groups in which it was changed; none for fields outside of row groups.
    pub row_groups: Vec<usize>,
}

/// For each column, what its field was first, and the row groups in which it was changed.
type Columns = BTreeMap<Option<String>, (String, Vec<usize>)>;

/// All repairs of a footer, grouped by field and column. There are fewer than values in the footer.
#[derive(Clone, Debug, Default)]
pub struct Repairs {
    /// By the field and its new value.
    by_field: BTreeMap<(String, String), Columns>,
}

impl Repairs {
    /// Adds the change of a field.
    pub(crate) fn add(
        &mut self,
        (field, was, now): (String, String, String),
        column: Option<String>,
        row_group: Option<usize>,
    ) {
        let (_, groups) =
            self.by_field.entry((field, now)).or_default().entry(column).or_insert_with(|| (was, Vec::new()));
        if groups.last() != row_group.as_ref() {
            groups.extend(row_group);
        }
    }

    /// Whether nothing was repaired.
    pub fn is_empty(&self) -> bool {
        self.by_field.is_empty()
    }

    /// Each repair, by field and column.
    pub fn iter(&self) -> impl Iterator<Item = Repair> {
        self.by_field.iter().flat_map(|((field, now), columns)| {
            columns.iter().map(|(column, (was, row_groups))| Repair {
                field: field.clone(),
                column: column.clone(),
                now: now.clone(),
                was: was.clone(),
                row_groups: row_groups.clone(),
            })
        })
    }

    /// Writes a line for each repair of a column; repairs of many columns together.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn text(&self, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
        for ((field, now), columns) in &self.by_field {
            for (column, (was, groups)) in columns.iter().take(MAX_NAMED) {
                let column =
                    column.as_ref().map(|column| format!("{}: ", escaped(column))).unwrap_or_default();
                let groups = match groups.as_slice() {
                    [] => String::new(),
                    [only] => format!(", in row group {only}"),
                    [first, .., last] => {
                        format!(", in {} row groups from {first} to {last}", style.count(groups.len() as u64))
                    }
                };
                writeln!(out, "{column}{field} was {}, is {now}{groups}", escaped(was))?;
            }
            if let Some(more @ 1..) = columns.len().checked_sub(MAX_NAMED) {
                writeln!(out, "{field} is {now} in {} more columns", style.count(more as u64))?;
            }
        }
        Ok(())
    }
}
