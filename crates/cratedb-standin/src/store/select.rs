//! Rows of a table.

use std::cmp::Ordering;

use super::condition::compare;
use super::table::Table;
use super::{Answer, Engine, Error};
use crate::json::{Json, quoted};
use crate::sql::Select;
use crate::types::{Value, to_json};

impl Table {
    /// Rows counted by the values of a column, in their order.
    fn grouped(&self, column: &str, found: &[usize], limit: Option<usize>) -> Result<Answer, Error> {
        let at = self.position(column)?;
        let mut groups: Vec<(&Value, usize)> = Vec::new();
        let mut values: Vec<&Value> = found.iter().map(|row| &self.rows[*row].values[at]).collect();
        values.sort_by(|a, b| compare(a, b));
        for value in values {
            match groups.last_mut().filter(|(last, _)| *last == value) {
                Some((_, count)) => *count += 1,
                None => groups.push((value, 1)),
            }
        }
        groups.truncate(limit.unwrap_or(usize::MAX));
        let rows = groups.iter().map(|(value, count)| vec![to_json(value), count.to_string()]);
        let rows: Vec<Vec<String>> = rows.collect();
        Ok(Answer { columns: vec![column.to_owned(), "count(*)".into()], count: rows.len() as i64, rows })
    }
}

impl Engine {
    pub(super) fn select(&self, select: &Select, arguments: &[Json]) -> Result<Answer, Error> {
        self.with(&select.name, |table| {
            let mut found = table.matching(select.condition.as_ref(), arguments);
            // A column that a statement names; `None` for `_id`.
            let place = |name: &String| match name.as_str() {
                "_id" => Ok(None),
                name => table.position(name).map(Some),
            };
            let order = select.order.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            found.sort_by(|a, b| {
                let (a, b) = (&table.rows[*a], &table.rows[*b]);
                let by = order.iter().map(|place| match place {
                    None => a.id.cmp(&b.id),
                    Some(at) => compare(&a.values[*at], &b.values[*at]),
                });
                by.into_iter().find(|by| by.is_ne()).unwrap_or(Ordering::Equal)
            });
            if select.group.is_none() {
                found.truncate(select.limit.unwrap_or(usize::MAX));
            }
            if let Some(column) = &select.group {
                return table.grouped(column, &found, select.limit);
            }
            if select.columns.is_empty() {
                return Ok(Answer::count(found.len()));
            }
            let mut names = Vec::new();
            for column in &select.columns {
                match column.as_str() {
                    "*" => names.extend(table.columns.iter().map(|column| column.name.clone())),
                    name => names.push(name.to_owned()),
                }
            }
            let places = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            let cells = |at: usize| {
                let row = &table.rows[at];
                let cell = |place: &Option<usize>| match place {
                    None => quoted(&row.id),
                    Some(at) => to_json(&row.values[*at]),
                };
                places.iter().map(cell).collect()
            };
            let rows: Vec<Vec<String>> = found.into_iter().map(cells).collect();
            Ok(Answer { columns: names, count: rows.len() as i64, rows })
        })
    }
}
