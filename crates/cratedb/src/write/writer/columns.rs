//! Blocks by column, over the PostgreSQL wire.

use std::sync::Arc;

use sawmill_loader::Marks;
use sawmill_source::{Control, Error, Kind, Result};

use super::CrateWriter;
use crate::connect::pg::PgInsert;
use crate::table::columns::Key;
use crate::tags::Tags;

impl CrateWriter {
    /// Sends a block by column, and returns how many of its rows were inserted. The inner error says why that is
    /// not known.
    pub(super) fn send_columns(
        &mut self,
        marks: &Marks,
        tag: Option<i64>,
        repeat: bool,
        control: &Control<'_>,
    ) -> Result<std::result::Result<u64, String>> {
        let all = marks.rows.len() as u64;
        if let Err(reason) = self.connect_wire(control)? {
            return Ok(Err(reason));
        }
        let Some(connection) = &self.pg else { return Ok(Err("the load has no PostgreSQL wire".to_owned())) };
        let what = match connection.insert(&marks.columns, tag, repeat, control) {
            Ok(rows) if rows == all => {
                self.pg_failures = 0;
                return Ok(Ok(rows));
            }
            Ok(rows) if self.plan.plan.key != Key::None => {
                self.plan.tags.iter().for_each(Tags::doubt);
                return Ok(Ok(rows));
            }
            Ok(rows) => format!("{rows} of {all} rows of a batch went in"),
            Err(error) if error.kind() == Kind::Cancelled => return Err(error),
            Err(error) => {
                if error.kind() == Kind::Connection && self.landed_by_wire(tag, marks.rows.len(), control)? {
                    return Ok(Ok(all));
                }
                self.plan.tags.iter().for_each(Tags::doubt);
                error.what()
            }
        };
        match self.plan.plan.key {
            Key::None => Err(self.keyless(&what)),
            _ => Ok(Err(what)),
        }
    }

    /// Makes sure that a connection of the PostgreSQL wire is open; the inner error says why there is none. Nothing
    /// was sent then, so even rows without a key may be sent another way.
    fn connect_wire(&mut self, control: &Control<'_>) -> Result<std::result::Result<(), String>> {
        let plan = Arc::clone(&self.plan);
        let Some((statements, types)) = &plan.unnest else {
            return Ok(Err("the PostgreSQL wire is not used".to_owned()));
        };
        // Without a key it matters whether a batch was sent at all.
        if plan.plan.key == Key::None && self.pg.as_ref().is_some_and(|pg| pg.is_closed(control)) {
            plan.cluster.connection_lost();
            self.pg = None;
        }
        if self.pg.is_some() {
            return Ok(Ok(()));
        }
        self.pg_comment = plan.tags.as_ref().map(Tags::next_comment).unwrap_or_default();
        let statements = statements.each_ref().map(|statement| format!("{statement} {}", self.pg_comment));
        let statements = statements.each_ref().map(|text| text.trim_end());
        match PgInsert::open(&plan.cluster, self.first_node, statements, types, control) {
            Ok(connection) => {
                self.pg = Some(connection);
                Ok(Ok(()))
            }
            Err(error) if error.kind() == Kind::Cancelled => Err(error),
            Err(error) => {
                self.wire_lost();
                Ok(Err(format!("the PostgreSQL wire cannot be used: {}", error.what())))
            }
        }
    }

    /// Drops the connection; the next one goes to another node.
    fn wire_lost(&mut self) {
        self.pg = None;
        self.pg_failures += 1;
        self.first_node += 1;
        self.plan.cluster.connection_lost();
    }

    /// Whether all rows of a block are in whose connection was lost. Without tags it is not known.
    fn landed_by_wire(&mut self, tag: Option<i64>, rows: usize, control: &Control<'_>) -> Result<bool> {
        self.wire_lost();
        let Some(tag) = tag else { return Ok(false) };
        let comment = self.pg_comment.clone();
        self.landed(tag, rows, &|statement: &str| statement.ends_with(&comment), control)
    }

    fn keyless(&self, what: &str) -> Error {
        Error::new(
            Kind::Value,
            format!("{what}; without a key it is unknown which rows of the batch are in the table"),
        )
        .at(format!("table {}, {}", self.plan.table, self.client.place()))
        .advise("load with --row-key, or with --transport http, which reports errors row by row")
    }
}
