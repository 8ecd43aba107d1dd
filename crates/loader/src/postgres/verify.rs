//! The comparison of any table with any source, whoever loaded it.

use super::catalogue::find;
use super::locate::Locating;
use super::read_back::{ReadBack, encode_source};
use super::{Postgres, columns, connection::Connection};
use crate::control::Control;
use crate::error::{Error, Kind, Result};
use crate::load::LoadOptions;
use crate::source::Source;
use crate::verify::Verification;

/// Compares what is in the table with what is in the source: number of rows, non-null values of each
/// column, and the content sum. Where the sums differ, both sides are read once more to name the
/// columns that differ. The mode of `postgres` does not matter.
///
/// The verification that comes back may say that the two differ; see [`Verification::matches`].
///
/// # Errors
/// A table that does not exist or cannot hold the source's columns exactly, a source that cannot be read,
/// a lost connection.
pub fn verify(
    source: &dyn Source,
    postgres: &Postgres,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Verification> {
    let connection = Connection::open(&postgres.server, control)?;
    let Some(found) = find(&connection, &postgres.table, control)? else {
        return Err(Error::new(Kind::Schema, "there is no such table")
            .at(format!("table {}, {}", postgres.table, connection.place()))
            .advise("load it first"));
    };
    let table = postgres.table.within(&found.schema);
    let existing = columns::read(&connection, found.oid, control)?;
    let planned = columns::matched(source.schema(), &existing, &table, &postgres.values)?;
    drop(connection);
    let read = |each_column| {
        let degree = options.degree;
        ReadBack { server: &postgres.server, table: &table, columns: &planned, degree, each_column }
            .run(control)
    };
    let encode =
        |each_column| encode_source(source, &planned, options, options.unit_rows, each_column, control);
    let mut verification = Verification {
        columns: planned.iter().map(|column| column.name.clone()).collect(),
        source: encode(false)?.whole,
        target: read(false)?.whole,
        differing: Vec::new(),
        located: None,
    };
    if !verification.matches() && options.locate {
        let rows = verification.target.rows;
        let (server, table, columns) = (&postgres.server, &table, &planned);
        let locating = Locating { source, server, table, columns, options, unit_rows: options.unit_rows };
        verification.located = Some(locating.run(rows, control)?);
    }
    if !verification.matches() {
        verification.differing = encode(true)?.differing(&read(true)?, &planned);
    }
    Ok(verification)
}
