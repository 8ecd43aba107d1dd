//! How a new table is created: its storage and its keys, before or after the rows.

use arrow_schema::Schema;
use sawmill_loader::{TableName, check_name, quote};
use sawmill_pgcopy::Column;
use sawmill_profile::known_columns;
use sawmill_source::{Error, Kind, Result};

use crate::table::catalogue::Link;
use crate::table::columns::{self, NewTable};

/// Keys, indexes and storage of a new table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableKind {
    /// `CREATE UNLOGGED TABLE`: its rows bypass the write-ahead log, and a crash of the server empties it.
    pub unlogged: bool,
    /// The names of the primary key's columns; empty for a table without one.
    pub primary_key: Vec<String>,
    /// Adds the primary key after all rows, which takes less time than inserting each row into it.
    pub key_after: bool,
    /// The columns of each index; indexes are built after all rows.
    pub indexes: Vec<Vec<String>>,
    /// Where the table and its keys are stored.
    pub tablespace: Option<String>,
}

impl TableKind {
    /// Whether the table has the default storage and no keys.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The same storage, without keys, for a part table.
    pub(crate) fn of_parts(&self) -> Self {
        Self { unlogged: self.unlogged, tablespace: self.tablespace.clone(), ..Self::default() }
    }

    /// Refuses keys and indexes on columns that the table lacks.
    pub(crate) fn check(&self, columns: &[Column], table: &TableName) -> Result<()> {
        let keys = std::iter::once((&self.primary_key, "the primary key"));
        for (names, of) in keys.chain(self.indexes.iter().map(|names| (names, "an index"))) {
            for (at, name) in names.iter().enumerate() {
                let what = match columns.iter().any(|column| column.name == *name) {
                    false => format!("the source has no column {name:?}, which is part of {of}"),
                    true if names[..at].contains(name) => format!("column {name:?} is twice in {of}"),
                    true => continue,
                };
                let known = columns.iter().map(|column| column.name.as_str());
                return Err(Error::new(Kind::Config, what)
                    .at(format!("table {table}"))
                    .advise(known_columns(name, known)));
            }
        }
        Ok(())
    }

    /// The statements that create the table, before its first row. A `partitioned` table, given by strategy
    /// and key, holds no rows itself and is therefore never unlogged.
    pub(crate) fn create(
        &self,
        table: &TableName,
        new: &NewTable,
        schema: &Schema,
        partitioned: Option<&str>,
    ) -> String {
        let key: &[String] = if self.key_after { &[] } else { &self.primary_key };
        let mut statement = columns::create_table(table, new, schema, key);
        match partitioned {
            Some(by) => statement += &format!(" PARTITION BY {by}"),
            None if self.unlogged => {
                statement = statement.replacen("CREATE TABLE", "CREATE UNLOGGED TABLE", 1);
            }
            None => {}
        }
        statement += &self.within_tablespace(" TABLESPACE ");
        match self.primary_key.is_empty() || self.key_after {
            true => statement,
            false => format!("{statement};\n{}", self.add_key(table)),
        }
    }

    /// The statements to run after all rows: first the key's, then the indexes'.
    pub(crate) fn complete(&self, table: &TableName) -> Vec<String> {
        let key = (self.key_after && !self.primary_key.is_empty()).then(|| self.add_key(table));
        let indexes = self.indexes.iter().map(|names| {
            let space = self.within_tablespace(" TABLESPACE ");
            format!("CREATE INDEX ON {} ({}){space}", table.quoted(), list(names))
        });
        key.into_iter().chain(indexes).collect()
    }

    /// The same for a partition that will be called `name`. Its indexes are named as the server would name
    /// them then, where these names are free.
    pub(crate) fn complete_partition(
        &self,
        part: &TableName,
        name: &TableName,
        link: Link<'_>,
    ) -> Result<Vec<String>> {
        let key = (self.key_after && !self.primary_key.is_empty()).then(|| self.add_key(part));
        let mut statements: Vec<String> = key.into_iter().collect();
        let mut given: Vec<String> = Vec::new();
        for names in &self.indexes {
            let index = format!("{}_{}_idx", name.name(), names.join("_"));
            let is_free = check_name(&index).is_ok() && !given.contains(&index) && {
                let sql = "SELECT FROM pg_catalog.pg_class c \
                           JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                           WHERE n.nspname = $1 AND c.relname = $2";
                link.query(sql, &[&part.schema().unwrap_or_default(), &index])?.is_empty()
            };
            let named = if is_free { quote(&index) } else { String::new() };
            let space = self.within_tablespace(" TABLESPACE ");
            statements.push(format!("CREATE INDEX {named} ON {} ({}){space}", part.quoted(), list(names)));
            given.push(index);
        }
        Ok(statements)
    }

    fn add_key(&self, table: &TableName) -> String {
        let space = self.within_tablespace(" USING INDEX TABLESPACE ");
        format!("ALTER TABLE {} ADD PRIMARY KEY ({}){space}", table.quoted(), list(&self.primary_key))
    }

    /// The word before `TABLE` in a statement that creates a table with rows.
    pub(crate) fn unlogged_word(&self) -> &'static str {
        if self.unlogged { "UNLOGGED " } else { "" }
    }

    pub(crate) fn within_tablespace(&self, words: &str) -> String {
        self.tablespace.as_ref().map_or_else(String::new, |space| format!("{words}{}", quote(space)))
    }
}

/// Renames a key that was created with the table as the server would have named it.
pub(crate) fn rename_key(link: Link<'_>, table: &TableName) -> Result<()> {
    let name = format!("{}_pkey", table.name());
    if check_name(&name).is_err() {
        return Ok(());
    }
    let sql = "SELECT conname::text FROM pg_catalog.pg_constraint c \
               WHERE conrelid = to_regclass($1) AND contype = 'p' AND conname <> $2 AND NOT EXISTS ( \
                 SELECT FROM pg_catalog.pg_class WHERE relname = $2 AND relnamespace = c.connamespace)";
    let Some((old,)) = link.first::<(String,)>(sql, &[&table.quoted(), &name])? else { return Ok(()) };
    let rename =
        format!("ALTER TABLE {} RENAME CONSTRAINT {} TO {}", table.quoted(), quote(&old), quote(&name));
    link.batch(&rename)
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field};

    use super::*;
    use crate::Nested;
    use sawmill_pgcopy::ValueOptions;

    #[test]
    fn statements_say_what_was_asked_for_and_in_which_order() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("at", DataType::Utf8, true),
        ]));
        let table: TableName = "s.t".parse().unwrap();
        let new = columns::natural(&schema, &table, Nested::Jsonb, &ValueOptions::default()).unwrap();
        let kind = TableKind {
            unlogged: true,
            primary_key: vec!["id".into()],
            key_after: true,
            indexes: vec![vec!["at".into(), "id".into()]],
            tablespace: Some("fast".into()),
        };
        let created = kind.create(&table, &new, &schema, None);
        assert!(created.starts_with("CREATE UNLOGGED TABLE \"s\".\"t\""), "{created}");
        assert!(created.ends_with(") TABLESPACE \"fast\""), "{created}");
        assert_eq!(
            kind.complete(&table),
            [
                "ALTER TABLE \"s\".\"t\" ADD PRIMARY KEY (\"id\") USING INDEX TABLESPACE \"fast\"",
                "CREATE INDEX ON \"s\".\"t\" (\"at\", \"id\") TABLESPACE \"fast\"",
            ]
        );
        let before = TableKind { key_after: false, ..kind.clone() };
        assert!(before.create(&table, &new, &schema, None).contains("ADD PRIMARY KEY"));
        assert_eq!(before.complete(&table).len(), 1);
        let wrong = TableKind { primary_key: vec!["nr".into()], ..kind };
        assert!(wrong.check(&new.columns, &table).unwrap_err().what().contains("\"nr\""));
    }
}
