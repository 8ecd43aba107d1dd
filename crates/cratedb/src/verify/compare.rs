//! Rows that are in the table under the same primary key: ours from an earlier attempt, or others?

use std::collections::{HashMap, HashSet};

use sawmill_source::{Control, Error, Kind, Result};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::connect::client::Client;
use crate::encode::canonical;
use crate::encode::form::Form;
use crate::table::columns::{Key, Plan};
use crate::table::names::{CrateTable, quote};

/// Rows that are looked up at once.
const AT_ONCE: usize = 200;

/// A look at stored rows by their primary key.
pub(crate) struct Comparison<'a> {
    pub table: &'a CrateTable,
    pub plan: &'a Plan,
    pub retries: u32,
}

/// A row that the table has by its key.
pub(crate) struct Sent<'a> {
    pub number: usize,
    /// The row key as it stands in JSON, where rows have one.
    pub row_key: Option<&'a [u8]>,
    pub values: &'a [u8],
}

/// Rows that were sent, by their numbers, beside the stored ones with their keys.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// The stored row has other values.
    pub different: HashSet<usize>,
    /// The stored row has the same values, and so has an earlier one of those that were compared.
    pub again: HashSet<usize>,
}

impl Comparison<'_> {
    /// Looks at the stored rows with the keys of these. A row whose key is not found counts as different.
    pub(crate) fn run(
        &self,
        client: &mut Client,
        rows: &[Sent<'_>],
        control: &Control<'_>,
    ) -> Result<Compared> {
        let columns = &self.plan.columns;
        let (row_key, own): (Option<&String>, &[String]) = match &self.plan.key {
            Key::Row(name) => (Some(name), &[]),
            Key::Own(names) => (None, names),
            Key::Tags(_) | Key::None => return Ok(Compared::default()),
        };
        // Columns of the key that come from the source; generated ones follow from them.
        let key: Vec<usize> =
            own.iter().filter_map(|name| columns.iter().position(|column| column.name == *name)).collect();
        let names: Vec<String> = columns.iter().map(|column| quote(&column.name)).collect();
        let selected: Vec<String> =
            row_key.iter().map(|name| quote(name)).chain(names.iter().cloned()).collect();
        let forms: Vec<&Form> = columns.iter().map(|column| &column.form).collect();
        let compared: Vec<&String> = match row_key {
            Some(_) => selected.iter().take(1).collect(),
            None => key.iter().filter_map(|i| names.get(*i)).collect(),
        };
        client.sql(&format!("REFRESH TABLE {}", self.table.quoted()), &[], self.retries, control)?;
        let unreadable = |what: String| Error::new(Kind::Server, what).at(format!("table {}", self.table));
        let mut compared_rows = Compared::default();
        for chunk in rows.chunks(AT_ONCE) {
            let mut ours: HashMap<Vec<u8>, Vec<(usize, &[u8])>> = HashMap::with_capacity(chunk.len());
            let mut arguments: Vec<Value> = Vec::with_capacity(chunk.len() * key.len());
            for Sent { number, row_key, values } in chunk {
                let array = [b"[", *values, b"]"].concat();
                let fields: Vec<&RawValue> =
                    serde_json::from_slice(&array).map_err(|error| unreadable(error.to_string()))?;
                let mut of_key = row_key.unwrap_or_default().to_vec();
                if let Some(row_key) = row_key {
                    arguments.push(serde_json::from_slice(row_key).unwrap_or(Value::Null));
                }
                for field in key.iter().filter_map(|i| fields.get(*i)) {
                    of_key.extend_from_slice(field.get().as_bytes());
                    of_key.push(b',');
                    arguments.push(serde_json::from_str(field.get()).unwrap_or(Value::Null));
                }
                let rows = ours.entry(of_key).or_default();
                if !rows.is_empty() {
                    arguments.truncate(arguments.len().saturating_sub(compared.len()));
                }
                rows.push((*number, values));
            }
            let condition = match compared.as_slice() {
                [name] => format!("{name} IN ({})", vec!["?"; ours.len()].join(", ")),
                names => {
                    let one: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
                    vec![format!("({})", one.join(" AND ")); ours.len()].join(" OR ")
                }
            };
            let statement =
                format!("SELECT {} FROM {} WHERE {condition}", selected.join(", "), self.table.quoted());
            let answer = client.sql(&statement, &arguments, self.retries, control)?;
            let mut row = Vec::new();
            let mut of_key = Vec::new();
            for stored in answer.rows()? {
                let (key_stored, stored) = stored.split_at(selected.len() - names.len());
                canonical::write_row(&forms, stored, &mut row, |_, _| {}).map_err(unreadable)?;
                of_key.clear();
                key_stored.iter().for_each(|text| of_key.extend_from_slice(text.get().as_bytes()));
                for i in &key {
                    if let (Some(form), Some(value)) = (forms.get(*i), stored.get(*i)) {
                        canonical::write(form, value, &mut of_key).map_err(unreadable)?;
                        of_key.push(b',');
                    }
                }
                let mut is_again = false;
                for (number, values) in ours.remove(&of_key).unwrap_or_default() {
                    if values != row.as_slice() {
                        compared_rows.different.insert(number);
                    } else if std::mem::replace(&mut is_again, true) {
                        compared_rows.again.insert(number);
                    }
                }
            }
            compared_rows.different.extend(ours.into_values().flatten().map(|(number, _)| number));
        }
        Ok(compared_rows)
    }
}
