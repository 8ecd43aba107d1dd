//! Reads a table back in the order of its numbers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_pgcopy::HEADER;
use sawmill_pgwire::{BlockingConnection, Patience, ServerReport, from_report};
use sawmill_source::{Error, Kind, Result};

use crate::proof::check::Check;
use crate::work::postgres::messages::query;
use crate::work::rows::SharedTable;
use crate::work::statements;

/// Compares a table's rows that have not been read yet with their known states.
pub(super) fn prove(
    connection: &mut BlockingConnection,
    table: &SharedTable,
    check: &mut Check<'_>,
    cancel: &AtomicBool,
    patience: &mut Patience<'_>,
) -> Result<()> {
    let place = format!("table {}", table.name);
    let lost = |error: std::io::Error| match cancel.load(Relaxed) {
        true => Error::cancelled(),
        false => Error::new(
            Kind::Connection,
            format!("the connection was lost while rows were read back: {error}"),
        )
        .at(place.clone()),
    };
    let columns = statements::columns(table);
    let key = columns.split(", ").next().unwrap_or_default();
    let from = match check.go_on() {
        0 => String::new(),
        next => format!(" WHERE {key} >= {next}"),
    };
    let sql = format!(
        "COPY (SELECT {columns} FROM {}{from} ORDER BY {key}) TO STDOUT (FORMAT binary)",
        statements::quoted(&table.name)
    );
    query(&mut connection.out, &sql);
    connection.send().map_err(lost)?;
    let mut first = true;
    loop {
        let message = connection.message(&mut || patience.given_up()).map_err(lost)?;
        patience.came();
        match message.tag {
            b'd' => {
                // PostgreSQL sends each row as a message; the first one begins with the header.
                let mut row = message.body;
                if std::mem::take(&mut first) {
                    row = row.strip_prefix(HEADER.as_slice()).unwrap_or(row);
                }
                if row.len() > 2 {
                    check.row(row)?;
                }
            }
            b'E' => return Err(from_report(&ServerReport::new(message.body), &place)),
            b'Z' => return Ok(()),
            _ => {}
        }
    }
}
