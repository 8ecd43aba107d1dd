//! Reads a table back in the order of its numbers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_pgcopy::HEADER;
use sawmill_pgwire::{BlockingConnection, Patience, ServerReport};
use sawmill_source::{Error, Kind, Result};

use crate::proof::check::Check;
use crate::result::proof::Proof;
use crate::work::postgres::messages::query;
use crate::work::rows::SharedTable;
use crate::work::statements;

/// Compares the rows of a table with what is known of them.
pub(super) fn prove(
    connection: &mut BlockingConnection,
    table: &SharedTable,
    cancel: &AtomicBool,
    patience: &mut Patience<'_>,
) -> Result<Proof> {
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
    let sql = format!(
        "COPY (SELECT {columns} FROM {} ORDER BY {}) TO STDOUT (FORMAT binary)",
        statements::quoted(&table.name),
        columns.split(", ").next().unwrap_or_default()
    );
    query(&mut connection.out, &sql);
    connection.send().map_err(lost)?;
    let mut check = Check::new(table);
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
            b'E' => {
                let report = ServerReport::new(message.body);
                return Err(Error::new(
                    Kind::Server,
                    format!("the server says: {} [{}]", report.message, report.code),
                )
                .at(place));
            }
            b'Z' => return check.end(),
            _ => {}
        }
    }
}
