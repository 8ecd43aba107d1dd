//! Many rows in one request.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering::Relaxed;

use super::condition::argument;
use super::{Engine, Error, RowResult, error, parsed};
use crate::json::Json;
use crate::sql::{Name, OnConflict, Statement};

/// Rejected rows of a shard that are answered with a reason; all others have none.
const EXPLAINED: usize = 10;

/// A table as a request found it when it was planned.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    name: Name,
    number: Option<u64>,
}

impl Engine {
    /// The table of an INSERT that the server begins now.
    pub(crate) fn planned(&self, sql: &str, schema: &str) -> Result<Planned, Error> {
        match parsed(sql, schema)? {
            Statement::Insert { name, .. } | Statement::Unnest { name, .. } => {
                let number = self.lock().get(&name).map(|table| table.number);
                Ok(Planned { name, number })
            }
            _ => Err(error(400, 4000, "SQLParseException[Bulk requests take INSERT only]")),
        }
    }

    /// The name under which a request that was planned earlier finds its table now.
    pub(crate) fn name_now(&self, planned: &Planned) -> Name {
        let tables = self.lock();
        let renamed = tables.iter().find(|(_, table)| Some(table.number) == planned.number);
        match renamed {
            Some((name, _)) if self.keeps_shards_open.load(Relaxed) => name.clone(),
            _ => planned.name.clone(),
        }
    }

    /// Inserts the rows of a statement that was planned earlier.
    pub(crate) fn bulk_planned(
        &self,
        sql: &str,
        schema: &str,
        rows: &[Vec<Json>],
        planned: &Planned,
    ) -> Result<Vec<RowResult>, Error> {
        let (_, columns, full, conflict) = complete(sql, schema, rows)?;
        self.insert(&self.name_now(planned), &columns, &full, &conflict, usize::MAX)
    }

    /// Inserts rows; all of them are complete. `Err` rejects the whole request and inserts no row. Inserts at most
    /// `most` rows, for a server that dies midway.
    pub(crate) fn insert(
        &self,
        name: &Name,
        columns: &[String],
        rows: &[Vec<Json>],
        conflict: &OnConflict,
        most: usize,
    ) -> Result<Vec<RowResult>, Error> {
        self.with(name, |table| {
            let positions =
                columns.iter().map(|column| table.position(column)).collect::<Result<Vec<_>, _>>()?;
            let existing = table.existing(conflict)?;
            let before = table.rows.len();
            let mut results = Vec::with_capacity(rows.len());
            let mut explained: HashMap<u64, usize> = HashMap::new();
            for row in rows {
                match table.insert(name, &positions, row, &existing) {
                    Ok(RowResult::Refused(code, message)) => {
                        let of_shard = explained.entry(shard(row, table.shards)).or_default();
                        *of_shard += 1;
                        results.push(match *of_shard > EXPLAINED {
                            true => RowResult::Bare,
                            false => RowResult::Refused(code, message),
                        });
                    }
                    Ok(result) => results.push(result),
                    Err(refused) => {
                        // The real server rejects the request before it inserts a row.
                        table.truncate(before);
                        return Err(refused);
                    }
                }
            }
            if most < rows.len() {
                table.truncate(before + most.min(table.rows.len() - before));
            }
            Ok(results)
        })
    }
}

/// The table, the columns, the rows with all of their values, and how to treat rows that the table has already.
pub(crate) type Complete = (Name, Vec<String>, Vec<Vec<Json>>, OnConflict);

pub(crate) fn complete(sql: &str, schema: &str, rows: &[Vec<Json>]) -> Result<Complete, Error> {
    let (name, columns, expressions, conflict) = match parsed(sql, schema)? {
        Statement::Insert { name, columns, rows, conflict } => (name, columns, rows, conflict),
        _ => return Err(error(400, 4000, "SQLParseException[Bulk requests take INSERT only]")),
    };
    let [expressions] = expressions.as_slice() else {
        return Err(error(400, 4000, "SQLParseException[one row of values is expected]"));
    };
    let mut full = Vec::with_capacity(rows.len());
    for arguments in rows {
        let values = expressions.iter().map(|expression| argument(expression, arguments));
        full.push(values.collect::<Result<Vec<Json>, Error>>()?);
    }
    Ok((name, columns, full, conflict))
}

/// The shard of a row.
fn shard(row: &[Json], shards: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{row:?}").hash(&mut hasher);
    hasher.finish() % shards as u64
}
