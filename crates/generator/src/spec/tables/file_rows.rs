//! The rows of a table that a CSV file beside the spec has.

use crate::draw::choice::of_text;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::cycle::in_order;
use crate::error::{Complaint, Error};
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// The key of a table with the rows of a file.
pub(crate) const FILE: (&str, &str) = (
    "file",
    "a CSV file with a header, whose rows the table has; fields with the values `column` are its columns",
);

/// The names of the columns, and the rows.
#[derive(Debug)]
pub(crate) struct FileRows {
    columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl FileRows {
    /// The rows of the file that `table` names as `node`.
    pub(crate) fn read(
        table: SpecTable<'_>,
        node: SpecNode<'_>,
        folder: &SpecFolder<'_>,
    ) -> Result<Self, Error> {
        if let Some(key) = ["rows", "per", "scale"].iter().find(|key| table.get(key).is_some()) {
            let what = format!("`{key}` of a table with `file`, which determines its rows");
            return Err(table.key_error(key, "", what, "remove one of them"));
        }
        let name = node.string().unwrap_or_default();
        let text = folder.read(name).map_err(|error| {
            let what = format!("cannot read the rows in {}: {error}", folder.path(name).display());
            node.error("", what, "put a CSV file next to the spec")
        })?;
        let mut records = records(&text).into_iter();
        let columns = records.next().unwrap_or_default();
        let rows: Vec<Vec<String>> = records.collect();
        let wrong = rows.iter().position(|row| row.len() != columns.len());
        let what = match wrong {
            Some(row) => format!("row {} of {name} has not {} cells", row + 1, columns.len()),
            None if rows.is_empty() => format!("{name} has no rows"),
            None => return Ok(FileRows { columns, rows }),
        };
        Err(node.error("", what, "write a header, then rows with as many cells, separated by commas"))
    }

    /// The values of the column `name`, for a field of this type.
    pub(crate) fn column(&self, name: &str, kind: &LogicalType) -> Result<ValueSpec, Complaint> {
        let Some(place) = self.columns.iter().position(|column| column == name) else {
            let what = format!("the file has no column {name:?}");
            return Err((what, format!("its columns are {}", self.columns.join(", "))));
        };
        if *kind == LogicalType::Boolean {
            return Err((
                "a boolean column of a file".to_owned(),
                "use a string, and compare it in a formula".into(),
            ));
        }
        let mut values = Vec::with_capacity(self.rows.len());
        for (row, cells) in self.rows.iter().enumerate() {
            let value = cells.get(place).and_then(|cell| of_text(kind, cell));
            values.push(value.ok_or_else(|| {
                let what = format!("row {} of the file has no {} in {name}", row + 1, kind.name());
                (what, kind.takes())
            })?);
        }
        in_order(&values, 1)
    }
}

/// The records of comma-separated text. A quoted cell may contain commas, line ends and doubled quotes.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records = Vec::new();
    let (mut record, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' if is_quoted || cell.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut cell));
                records.push(std::mem::take(&mut record));
            }
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !record.is_empty() {
        record.push(cell);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_may_be_quoted() {
        let text = "a,b\r\n\"1, \"\"x\"\"\ny\",2\n,\"\"\nlast,";
        assert_eq!(records(text), [vec!["a", "b"], vec!["1, \"x\"\ny", "2"], vec!["", ""], vec!["last", ""]]);
    }
}
