//! Rows of a table, read back: all of them, or those with the keys of rows that were sent.

use std::collections::{BTreeSet, HashMap, HashSet};

use sawmill_loader::{Sums, Tally};
use sawmill_source::{Error, Kind, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::sql::Sql;
use crate::encode::canonical::{self, add_stored};
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

/// Rows that are looked up at once: by one column a list of values, by several a condition for each row.
const AT_ONCE: usize = 2_000;
const AT_ONCE_BY_SEVERAL: usize = 200;

/// A look at stored rows by their primary key.
pub(crate) struct Comparison<'a> {
    pub table: &'a CrateTable,
    pub plan: &'a Plan,
}

/// A sent row whose key the table has.
pub(crate) struct Sent<'a> {
    pub number: usize,
    /// The row key as JSON, if rows have one.
    pub row_key: Option<&'a [u8]>,
    pub values: &'a [u8],
}

/// Sent rows, by their numbers, compared with the stored rows of the same keys.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// No stored row has its key and values.
    pub different: HashSet<usize>,
    /// The stored row has the same values, and an earlier sent row has them as well.
    pub again: HashSet<usize>,
}

impl Comparison<'_> {
    /// Looks at the stored rows with the keys of these.
    pub(crate) fn run(&self, rows: &[Sent<'_>], sql: &mut Sql<'_>) -> Result<Compared> {
        let Some(keyed) = Keyed::new(self.plan) else { return Ok(Compared::default()) };
        sql.refresh(self.table)?;
        let mut compared = Compared::default();
        let at_once = if keyed.names.len() == 1 { AT_ONCE } else { AT_ONCE_BY_SEVERAL };
        for chunk in rows.chunks(at_once) {
            let (mut ours, (condition, arguments)) =
                keyed.wanted(chunk).map_err(|what| self.unreadable(what))?;
            let select = format!(
                "SELECT {} FROM {} WHERE {condition}",
                keyed.selected.join(", "),
                self.table.quoted(),
            );
            // Without a limit the server may answer with points as its column store rounds them.
            let mut limit = ours.len() + usize::from(keyed.is_partial);
            let answer = loop {
                let answer = sql.run(&format!("{select} LIMIT {limit}"), &arguments)?;
                if !keyed.is_partial || answer.rows()?.len() < limit {
                    break answer;
                }
                limit *= 4;
            };
            for stored in answer.rows()? {
                keyed.compare(&stored, &mut ours, &mut compared).map_err(|what| self.unreadable(what))?;
            }
            compared.different.extend(ours.into_values().flatten().map(|(number, _)| number));
        }
        Ok(compared)
    }

    fn unreadable(&self, what: String) -> Error {
        Error::new(Kind::Server, what).at(format!("table {}", self.table))
    }
}

/// Rows that were sent, by their keys.
type Ours<'s> = HashMap<Vec<u8>, Vec<(usize, &'s [u8])>>;

/// How rows are found by their keys.
struct Keyed<'p> {
    forms: Vec<&'p Form>,
    /// The columns of the source in the condition: of the key, or all if the key has none.
    key: Vec<usize>,
    /// The key has generated columns, too, so that several rows of the table may have these values.
    is_partial: bool,
    /// The selected columns: the row key, if rows have one, and all columns of the source.
    selected: Vec<String>,
    /// The columns of the condition.
    names: Vec<String>,
}

impl<'p> Keyed<'p> {
    fn new(plan: &'p Plan) -> Option<Self> {
        let columns = &plan.columns;
        let (row_key, own): (Option<&String>, &[String]) = match &plan.key {
            Key::Row(name) => (Some(name), &[]),
            Key::Own(names) => (None, names),
            Key::Tags(_) | Key::None => return None,
        };
        let mut key: Vec<usize> =
            own.iter().filter_map(|name| columns.iter().position(|column| column.name == *name)).collect();
        let is_partial = key.len() < own.len();
        if key.is_empty() && is_partial {
            key = (0..columns.len()).collect();
        }
        let names: Vec<String> = columns.iter().map(|column| quote(&column.name)).collect();
        let selected = row_key.iter().map(|name| quote(name)).chain(names.iter().cloned()).collect();
        let of_condition = match row_key {
            Some(name) => vec![quote(name)],
            None => key.iter().filter_map(|i| names.get(*i).cloned()).collect(),
        };
        let forms = columns.iter().map(|column| &column.form).collect();
        Some(Self { forms, key, is_partial, selected, names: of_condition })
    }

    /// Rows by their keys, and the condition that finds them with its values.
    fn wanted<'s>(&self, rows: &[Sent<'s>]) -> Result<(Ours<'s>, (String, Vec<Value>)), String> {
        let mut ours: Ours<'s> = HashMap::with_capacity(rows.len());
        let mut arguments: Vec<Value> = Vec::with_capacity(rows.len() * self.names.len());
        let mut terms = Vec::new();
        for Sent { number, row_key, values } in rows {
            let array = [b"[", *values, b"]"].concat();
            let fields: Vec<&RawValue> = serde_json::from_slice(&array).map_err(|error| error.to_string())?;
            let mut of_key = row_key.unwrap_or_default().to_vec();
            let mut of_row: Vec<Value> =
                row_key.iter().map(|key| serde_json::from_slice(key).unwrap_or(Value::Null)).collect();
            for field in self.key.iter().filter_map(|i| fields.get(*i)) {
                of_key.extend_from_slice(field.get().as_bytes());
                of_key.push(b',');
                of_row.push(serde_json::from_str(field.get()).unwrap_or(Value::Null));
            }
            let rows = ours.entry(of_key).or_default();
            if rows.is_empty() {
                let term = self.names.iter().zip(&of_row).map(|(name, value)| match value {
                    Value::Null => format!("{name} IS NULL"),
                    _ => format!("{name} = ?"),
                });
                terms.push(format!("({})", term.collect::<Vec<_>>().join(" AND ")));
                arguments.extend(of_row.into_iter().filter(|value| !value.is_null()));
            }
            rows.push((*number, *values));
        }
        // A list is planned faster.
        let condition = match self.names.as_slice() {
            [name] if arguments.len() == terms.len() => {
                format!("{name} IN ({})", vec!["?"; terms.len()].join(", "))
            }
            _ => terms.join(" OR "),
        };
        Ok((ours, (condition, arguments)))
    }

    /// Compares a stored row with ours under its key: those with its values leave `ours`.
    fn compare(
        &self,
        stored: &[&RawValue],
        ours: &mut Ours<'_>,
        compared: &mut Compared,
    ) -> Result<(), String> {
        let (key_stored, stored) = stored.split_at(self.selected.len() - self.forms.len());
        let mut row = Vec::new();
        canonical::write_row(&self.forms, stored, &mut row, |_, _| {})?;
        let mut of_key = Vec::new();
        key_stored.iter().for_each(|text| of_key.extend_from_slice(text.get().as_bytes()));
        for i in &self.key {
            if let (Some(form), Some(value)) = (self.forms.get(*i), stored.get(*i)) {
                canonical::write(form, value, &mut of_key)?;
                of_key.push(b',');
            }
        }
        let mut is_again = false;
        if let Some(sent) = ours.get_mut(&of_key) {
            sent.retain(|(number, values)| {
                let is_equal = *values == row.as_slice();
                if is_equal && std::mem::replace(&mut is_again, true) {
                    compared.again.insert(*number);
                }
                !is_equal
            });
        }
        Ok(())
    }
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
