//! Names that CrateDB takes, and names of tables.
//!
//! Rules: `ColumnIdent.validateColumnName` and `SysColumns.NAMES` in CrateDB's source, and
//! <https://cratedb.com/docs/crate/reference/en/latest/general/ddl/create-table.html#naming-restrictions>.

use sawmill_loader::TableName;
pub(crate) use sawmill_loader::quote;
use sawmill_source::{Error, Kind, Result};

/// Whether every CrateDB table has a column of this name already.
fn is_system(name: &str) -> bool {
    matches!(name, "_id" | "_version" | "_score" | "_uid" | "_doc" | "_raw" | "_seq_no" | "_primary_term")
        || matches!(name, "_tombstone" | "_fetchid" | "_docid")
}

/// The suffix of a table in which rows gather for another.
pub(crate) const STAGING: &str = "__sawmill_loading";

/// The suffix just before the table gets its final name; late requests no longer find it.
pub(crate) const SEALED: &str = "__sawmill_sealed";

/// The most bytes of a name, with its schema and a dot unless that is `doc`: the server answers "Index name is
/// too long, (256 > 255)".
const MAX_LENGTH: usize = 255;

/// Parses the name of a table, which may be longer than in PostgreSQL.
///
/// # Errors
/// As [`TableName::parse_up_to`].
pub fn table_name(text: &str) -> Result<TableName> {
    TableName::parse_up_to(MAX_LENGTH, text)
}

/// A text in SQL's single quotation marks.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Why CrateDB does not take this name for a column, and one that it takes; `None` if it takes the name.
pub fn refused_column_name(name: &str) -> Option<(String, String)> {
    refused_name(name, true)
}

/// Why CrateDB refuses a column's name and a name that it takes, or nothing. Only whole columns have
/// to keep clear of system columns; fields of objects may be called `_id`.
pub(crate) fn refused_name(name: &str, whole_column: bool) -> Option<(String, String)> {
    let why = if name.is_empty() {
        "is empty"
    } else if name.contains('.') {
        "has a dot"
    } else if name.contains('[') {
        "has a square bracket"
    } else if name.contains(['\t', '\n', '\r']) {
        "has a tabulator or line break"
    } else if whole_column && is_system(name) {
        "is a system column of every table"
    } else {
        return None;
    };
    let mut proposal: String =
        name.chars().map(|c| if ".[\t\n\r".contains(c) { '_' } else { c }).filter(|c| *c != ']').collect();
    if is_system(&proposal) {
        proposal = proposal.trim_start_matches('_').to_owned();
    }
    if proposal.is_empty() {
        proposal = "unnamed".to_owned();
    }
    Some((why.to_owned(), proposal))
}

/// A table and its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrateTable {
    pub schema: String,
    pub name: String,
}

impl CrateTable {
    /// The table for which rows gather or have gathered in this one, out of sight.
    pub(crate) fn gathers_for(&self) -> Option<Self> {
        let name = self.name.strip_suffix(STAGING).or_else(|| self.name.strip_suffix(SEALED))?;
        Some(Self { schema: self.schema.clone(), name: name.to_owned() })
    }

    /// Refuses what `RelationName.ensureValidForRelationCreation` refuses, and names that CrateDB could
    /// not find again.
    pub(crate) fn new(schema: &str, name: &str) -> Result<Self> {
        let refused = |what: &str| {
            Err(Error::new(Kind::Config, what)
                .at(format!("table {schema}.{name}"))
                .advise("choose another name"))
        };
        for part in [schema, name] {
            if part.is_empty()
                || part.contains([
                    '.', '[', '\t', '\n', '\r', '/', '\\', '*', '?', '"', '<', '>', '|', ' ', ',', '#',
                ])
            {
                return refused(
                    "CrateDB takes no empty names and none of . [ / \\ * ? \" < > | , # and white space in them",
                );
            }
            if part.starts_with('_') {
                return refused("names of tables and schemas do not begin with _ in CrateDB");
            }
        }
        if ["sys", "information_schema", "pg_catalog", "blob"].contains(&schema) {
            return refused("the schema belongs to the server");
        }
        let of_schema = if schema == "doc" { 0 } else { schema.len() + 1 };
        let most = MAX_LENGTH.saturating_sub(of_schema + STAGING.len());
        if name.len() > most {
            return refused(&format!(
                "the name has {} bytes; at most {most} leave room for that of the table in which rows gather",
                name.len()
            ));
        }
        Ok(Self { schema: schema.to_owned(), name: name.to_owned() })
    }

    /// Where the rows of a new table gather until it is complete.
    pub(crate) fn staging(&self) -> Self {
        Self { schema: self.schema.clone(), name: format!("{}{STAGING}", self.name) }
    }

    /// The table for which this one gathers rows, or this one.
    pub(crate) fn gathered_for(&self) -> Self {
        let name = self.name.strip_suffix(STAGING).unwrap_or(&self.name);
        Self { schema: self.schema.clone(), name: name.to_owned() }
    }

    /// The name of that table while nothing may be written to it any more.
    pub(crate) fn sealed(&self) -> Self {
        Self { schema: self.schema.clone(), name: format!("{}{SEALED}", self.name) }
    }

    /// For SQL.
    pub(crate) fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

impl std::fmt::Display for CrateTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crate_refuses_comes_with_a_name_that_it_takes() {
        for (name, proposal) in
            [("a.b", "a_b"), ("tags[0]", "tags_0"), ("_id", "id"), ("a\tb", "a_b"), ("", "unnamed")]
        {
            let (_, proposed) = refused_name(name, true).unwrap();
            assert_eq!(proposed, proposal);
            assert_eq!(refused_name(&proposed, true), None);
        }
        assert_eq!(refused_name("_id", false), None);
        assert_eq!(refused_name("Größe \"x\"", true), None);
    }

    #[test]
    fn names_are_quoted_and_their_marks_doubled() {
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(CrateTable::new("doc", "Taxi").unwrap().quoted(), "\"doc\".\"Taxi\"");
        let longest = "t".repeat(255 - "__sawmill_loading".len());
        assert!(CrateTable::new("doc", &longest).is_ok() && CrateTable::new("s", &longest).is_err());
        for (schema, name) in [("doc", ""), ("doc", "a.b"), ("sys", "t"), ("_x", "t")] {
            assert!(CrateTable::new(schema, name).is_err(), "{schema}.{name}");
        }
    }
}
