//! Rows that are in the table under the same primary key: ours from an earlier attempt, or others?

use std::collections::{HashMap, HashSet};

use sawmill_source::{Error, Kind, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::sql::Sql;
use crate::encode::canonical;
use crate::encode::form::Form;
use crate::table::columns::{Key, Plan};
use crate::table::names::{CrateTable, quote};

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
