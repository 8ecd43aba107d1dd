//! Compares any table with any source, whoever loaded it.

use std::sync::Arc;

use sawmill_loader::{LoadOptions, Verification};
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::encode::canonical_row::CanonicalRow;
use crate::nested::flat_tables::RecordNumbers;
use crate::rejected::file;
use crate::table::catalogue::find;
use crate::table::columns;
use crate::target::Postgres;
use crate::verify::locate::Locating;
use crate::verify::read_back::ReadBack;
use crate::verify::source_sums::SourceSums;

/// Compares the table with the source: number of rows, non-null values of each column, and the content sum.
/// If the sums differ, both sides are read again to name the columns that differ. The mode of `postgres` does
/// not matter. If it names a file of rejected rows, these are left out of the source: table and file together
/// must hold what the source holds.
///
/// The verification may say that the two differ; see [`Verification::matches`].
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
    let rejects = postgres.rejects.as_ref();
    let rejects = rejects.map(|rejects| file::open(&rejects.path, source, false)).transpose()?;
    let put_aside = rejects.as_ref().map(|rejects| rejects as &dyn Source);
    compare(&Compared { source, put_aside, records: None }, postgres, options, control)
}

/// What a table is compared with.
pub(crate) struct Compared<'a> {
    pub source: &'a dyn Source,
    /// Rows of the source that are not in the table.
    pub put_aside: Option<&'a dyn Source>,
    /// The records that the source's rows are of.
    pub records: Option<&'a Arc<RecordNumbers>>,
}

/// Compares a table; see [`verify`].
pub(crate) fn compare(
    compared: &Compared<'_>,
    postgres: &Postgres,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Verification> {
    let Compared { source, put_aside: rejects, records } = *compared;
    let connection = Connection::open(&postgres.server, control)?;
    refuse_pooler(&connection, &postgres.server, control)?;
    let server = &KnownServer::of(&postgres.server, &connection, control)?;
    let Some(found) = find(&connection, &postgres.table, control)? else {
        return Err(Error::new(Kind::Schema, "there is no such table")
            .at(format!("table {}, {}", postgres.table, connection.place()))
            .advise("load it first"));
    };
    let table = postgres.table.within(&found.schema);
    let existing = columns::read(&connection, found.oid, control)?;
    let matched =
        |source: &dyn Source| columns::matched(source.schema(), &existing, &table, &postgres.values);
    let planned = matched(source)?;
    let rejects = match rejects {
        None => None,
        Some(rejects) => Some((rejects, matched(rejects)?)),
    };
    drop(connection);
    let read = |each_column, by_value| {
        let degree = options.degree;
        ReadBack { server, table: &table, columns: &planned, degree, each_column, by_value }.run(control)
    };
    let encode = |each_column, by_value| {
        let (unit_rows, leave_out) = (options.unit_rows, rejects.is_some());
        let columns = &planned;
        let refused = None;
        let all =
            SourceSums { source, columns, options, unit_rows, each_column, by_value, leave_out, refused };
        let (sums, left_out) = all.run(control).map_err(with_a_way_out)?;
        let Some((source, columns)) = &rejects else { return Ok(sums) };
        let (aside, left_out_aside) = SourceSums { source: *source, columns, ..all }.run(control)?;
        match left_out == left_out_aside {
            true => Ok(sums.minus(&aside)),
            false => Err(Error::new(
                Kind::Mismatch,
                format!("{left_out} rows of the files cannot be stored in the table, but {left_out_aside} of the rejected ones"),
            )
            .at(format!("table {table}"))
            .advise("name the file of rejected rows that the load of these files wrote")),
        }
    };
    let mut verification = Verification {
        columns: planned.iter().map(|column| column.name.clone()).collect(),
        source: encode(false, false)?.whole,
        target: read(false, false)?.whole,
        put_aside: rejects.as_ref().map_or(0, |(rejects, _)| rejects.rows()),
        not_compared: columns::lacking(source.schema(), &existing)
            .map(|column| column.name.clone())
            .collect(),
        differing: Vec::new(),
        located: None,
    };
    // Rows usually have the same bytes, which is faster to compare.
    let by_value = !verification.matches() && CanonicalRow::numerics_in(&planned);
    if by_value {
        verification.source = encode(false, true)?.whole;
        verification.target = read(false, true)?.whole;
    }
    if !verification.matches() && options.locate {
        let rows = verification.target.rows;
        let (table, columns) = (&table, &planned);
        let put_aside = rejects.as_ref().map(|(source, columns)| (*source, columns));
        let unit_rows = options.unit_rows;
        let locating = Locating {
            source,
            server,
            table,
            columns,
            options,
            unit_rows,
            put_aside,
            refused: None,
            records,
        };
        verification.located = Some(locating.run(rows, control)?);
    }
    if !verification.matches() {
        verification.differing = encode(true, by_value)?.differing(&read(true, by_value)?, &planned);
    }
    Ok(verification)
}

/// A row that the table cannot hold may have been rejected.
fn with_a_way_out(error: Error) -> Error {
    match error.kind() {
        Kind::Value => {
            let advice = "if the load rejected such rows, name their file with --rejects";
            Error::new(Kind::Value, error.what()).at(error.place()).advise(advice)
        }
        _ => error,
    }
}
