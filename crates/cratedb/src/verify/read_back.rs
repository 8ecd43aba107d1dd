//! The table's content, read in pages and summed up.
//!
//! A page begins after the last key of the page before: the row key, the table's primary key, or else the
//! document's `_id`. So the server never sorts more than a page, memory holds one page, and its size follows the
//! width of rows. (`_id` is compared through `concat`, because its index holds another encoding than its text.)

use std::collections::BTreeSet;

use sawmill_loader::{Sums, Tally};
use sawmill_source::{Error, Kind, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::sql::Sql;
use crate::encode::canonical::add_stored;
use crate::encode::form::Form;
use crate::table::columns::{Column, Key, Plan};
use crate::table::names::{CrateTable, quote};

/// Rows of the first page; later ones follow from its size.
const FIRST_PAGE: usize = 1000;
/// Rows of a page at most.
const MAX_PAGE_SIZE: usize = 50_000;
/// Bytes that a page's answer should have.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Files whose rows are counted at once.
const FILES_AT_ONCE: usize = 100;

/// A table to read.
pub(crate) struct ReadBack<'a> {
    pub table: &'a CrateTable,
    pub columns: &'a [Column],
    /// The columns that order the pages.
    pub key: Vec<String>,
    /// If set, only rows with the row keys of certain files are read.
    pub of_files: Option<OfFiles>,
}

/// Rows by the files that their row keys name.
pub(crate) struct OfFiles {
    /// The column of the row key.
    pub column: String,
    /// The prefixes of the files' row keys.
    pub files: BTreeSet<String>,
}

impl OfFiles {
    /// Rows of the files with these hashes.
    pub(crate) fn new(column: &str, files: impl Iterator<Item = u64>) -> Self {
        let text = |hash: u64| {
            let mut text = Vec::new();
            sawmill_pgcopy::write_hex(&hash.to_be_bytes(), &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        Self { column: column.to_owned(), files: files.map(text).collect() }
    }

    /// The condition of each file's rows. In row keys, `-` follows the file. `.` is the next character after `-`,
    /// so it ends the range.
    fn conditions(&self) -> impl Iterator<Item = (String, Vec<Value>)> {
        let column = quote(&self.column);
        self.files.iter().map(move |file| {
            let range = [format!("{file}-"), format!("{file}.")];
            (format!("({column} > ? AND {column} < ?)"), range.map(Value::from).to_vec())
        })
    }

    /// Counts the rows of certain files of a table that was refreshed.
    pub(crate) fn count(&self, table: &CrateTable, sql: &mut Sql<'_>) -> Result<u64> {
        let conditions: Vec<(String, Vec<Value>)> = self.conditions().collect();
        let mut rows = 0;
        for some in conditions.chunks(FILES_AT_ONCE) {
            let text: Vec<&str> = some.iter().map(|(condition, _)| condition.as_str()).collect();
            let values: Vec<Value> = some.iter().flat_map(|(_, values)| values.clone()).collect();
            let statement = format!("SELECT count(*) FROM {} WHERE {}", table.quoted(), text.join(" OR "));
            rows += sql.number(&statement, &values)?;
        }
        Ok(rows)
    }
}

/// The columns that order the pages: a unique key of the table.
fn paging_key(key: &Key, primary: &[String]) -> Vec<String> {
    match key {
        Key::Row(_) | Key::Own(_) if !primary.is_empty() => primary.to_vec(),
        Key::Row(name) => vec![name.clone()],
        Key::Own(names) => names.clone(),
        Key::Tags(_) | Key::None => primary.to_vec(),
    }
}

/// The columns that can order the pages; empty for `_id`. If CrateDB (6.4.3) orders by a float column, it returns
/// NULL in place of Infinity. It does not compare bits by `>`.
fn without_floats<'k>(key: &'k [String], columns: &[Column]) -> &'k [String] {
    let is_float = |column: &Column| matches!(column.form, Form::Real | Form::Double | Form::Native { .. });
    let has_float = columns.iter().any(|column| is_float(column) && key.contains(&column.name));
    if has_float { &[] } else { key }
}

impl<'a> ReadBack<'a> {
    /// All rows of a table with this primary key, by the columns of a plan.
    pub(crate) fn new(table: &'a CrateTable, plan: &'a Plan, primary: &[String]) -> Self {
        let (columns, key) = (plan.columns.as_slice(), paging_key(&plan.key, primary));
        Self { table, columns, key, of_files: None }
    }

    /// Reads the table and sums it up.
    pub(crate) fn run(&self, sql: &mut Sql<'_>) -> Result<Tally> {
        Ok(self.sums(false, sql)?.whole)
    }

    /// As [`run`](Self::run), with a sum for each column on request.
    pub(crate) fn sums(&self, each_column: bool, sql: &mut Sql<'_>) -> Result<Sums> {
        sql.refresh(self.table)?;
        let forms: Vec<&Form> = self.columns.iter().map(|column| &column.form).collect();
        let names: Vec<String> = self.columns.iter().map(|column| quote(&column.name)).collect();
        let paging = without_floats(&self.key, self.columns);
        let key: Vec<String> = match paging {
            [] => vec!["_id".to_owned()],
            names => names.iter().map(|name| quote(name)).collect(),
        };
        // `_id` is a system column: not quoted, and compared as text.
        let compared: Vec<String> = match paging.is_empty() {
            true => vec!["concat(_id, '')".to_owned()],
            false => key.clone(),
        };
        let select = format!("SELECT {}, {} FROM {}", key.join(", "), names.join(", "), self.table.quoted());
        let order = key.join(", ");
        let mut sums = Sums::empty(forms.len(), each_column);
        let mut row = Vec::new();
        let ranges: Vec<Option<(String, Vec<Value>)>> = match &self.of_files {
            None => vec![None],
            Some(of_files) => of_files.conditions().map(Some).collect(),
        };
        for range in ranges {
            let mut after: Vec<Value> = Vec::new();
            let mut page = FIRST_PAGE;
            loop {
                sql.control.check()?;
                let (mut conditions, mut values) = match &range {
                    Some((condition, values)) => (vec![condition.clone()], values.clone()),
                    None => (Vec::new(), Vec::new()),
                };
                if !after.is_empty() {
                    conditions.push(format!("({})", later(&compared)));
                    values.extend(arguments(&after));
                }
                let condition = match conditions.as_slice() {
                    [] => String::new(),
                    conditions => format!(" WHERE {}", conditions.join(" AND ")),
                };
                let statement = format!("{select}{condition} ORDER BY {order} LIMIT {page}");
                let answer = sql.run(&statement, &values)?;
                let rows = answer.rows()?;
                for values in &rows {
                    let (_, values) = values.split_at(key.len().min(values.len()));
                    add_stored(&mut sums, &forms, values, &mut row).map_err(|what| {
                        Error::new(Kind::Mismatch, what).at(format!("table {}", self.table))
                    })?;
                }
                let Some(last) = rows.last().filter(|_| rows.len() == page) else { break };
                after = last.iter().take(key.len()).map(|value| value_of(value)).collect();
                let width = answer.bytes() / rows.len().max(1) + 1;
                page = (PAGE_BYTES / width).clamp(100, MAX_PAGE_SIZE);
            }
        }
        Ok(sums)
    }
}

fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or(Value::Null)
}

/// `(a > ?) OR (a = ? AND b > ?)`: rows after a key.
fn later(key: &[String]) -> String {
    let terms = (0..key.len()).map(|i| {
        let equal = key[..i].iter().map(|name| format!("{name} = ? AND "));
        format!("({}{} > ?)", equal.collect::<String>(), key[i])
    });
    terms.collect::<Vec<_>>().join(" OR ")
}

/// The values for [`later`].
fn arguments(after: &[Value]) -> Vec<Value> {
    (0..after.len()).flat_map(|i| after[..=i].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::crate_type::CrateType;

    #[test]
    fn a_key_with_a_float_is_read_in_the_order_of_ids() {
        let column = |name: &str, crate_type, form| Column {
            name: name.to_owned(),
            source: 0,
            crate_type,
            form,
            nullable: true,
        };
        let columns =
            [column("id", CrateType::BigInt, Form::Int), column("x", CrateType::Double, Form::Double)];
        let key = ["id".to_owned(), "x".to_owned()];
        assert_eq!(without_floats(&key, &columns), [] as [String; 0]);
        assert_eq!(without_floats(&key[..1], &columns), ["id".to_owned()]);
    }

    #[test]
    fn a_page_begins_after_a_key_of_several_columns() {
        let key = ["\"a\"".to_owned(), "\"b\"".to_owned()];
        assert_eq!(later(&key), "(\"a\" > ?) OR (\"a\" = ? AND \"b\" > ?)");
        assert_eq!(arguments(&[1.into(), 2.into()]), [Value::from(1), 1.into(), 2.into()]);
    }
}
