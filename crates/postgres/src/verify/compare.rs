//! Compares any table with any source, whoever loaded it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use sawmill_loader::{LoadOptions, Located, Sums, TableName, Verification, retry_lost};
use sawmill_pgcopy::Column;
use sawmill_pgwire::{Connection, KnownServer, refuse_pooler};
use sawmill_profile::format_counted;
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::encode::canonical_row::CanonicalRow;
use crate::nested::flat_tables::RecordNumbers;
use crate::rejected::bad_records::BadRecords;
use crate::rejected::file;
use crate::table::catalogue::{Link, find};
use crate::table::columns;
use crate::target::Postgres;
use crate::verify::locate::{LeftOut, Locating};
use crate::verify::sums::{ReadBack, SourceSums};

/// Compares the table with the source: number of rows, non-null values of each column, and the content sum.
/// If the sums differ, both sides are read again to name the columns that differ. The mode of `postgres` does
/// not matter. If it names a file of rejected rows, these are left out of the source: table and file together
/// must have the source's rows.
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
    let path = rejects.map(|rejects| rejects.path.as_path());
    let rejects = path.map(|path| file::open(path, source)).transpose()?;
    let rejected = rejects.as_ref().zip(path).map(|(rows, path)| RejectedRows { rows, path });
    compare(&Compared { source, rejected, records: None }, postgres, options, control).map_err(|error| {
        match error.kind() {
            // A load's advice speaks of committed units.
            Kind::Connection if error.advice().starts_with("run the same command again") => {
                error.advise("run the same command again")
            }
            _ => error,
        }
    })
}

/// The source and the table of a comparison.
pub(crate) struct Compared<'a> {
    pub source: &'a dyn Source,
    /// Rows of the source that are not in the table.
    pub rejected: Option<RejectedRows<'a>>,
    /// The records that the source's rows are of.
    pub records: Option<&'a Arc<RecordNumbers>>,
}

/// Rows that a load has rejected, and their file.
#[derive(Clone, Copy)]
pub(crate) struct RejectedRows<'a> {
    rows: &'a dyn Source,
    path: &'a Path,
}

/// Compares a table; see [`verify`].
pub(crate) fn compare(
    compared: &Compared<'_>,
    postgres: &Postgres,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Verification> {
    let Compared { source, rejected, records } = *compared;
    let look = || {
        let connection = Connection::open(&postgres.server, control)?;
        let link = Link::new(&connection, control);
        refuse_pooler(&connection, &postgres.server, control)?;
        let server = KnownServer::new(&postgres.server, &connection, control)?;
        let Some(found) = find(link, &postgres.table)? else {
            return Err(Error::new(Kind::Schema, "the table does not exist")
                .at(format!("table {}, {}", postgres.table, link.place()))
                .advise("load it first"));
        };
        let table = postgres.table.within(&found.schema);
        let mut existing = columns::read(link, found.oid)?;
        // A comparison fills no column: one that the files lack is only named.
        existing.iter_mut().for_each(|column| column.not_null = false);
        Ok((server, table, existing))
    };
    let (server, table, existing) = postgres.retried(options.retries, control, look)?;
    let (server, table) = (&server, &table);
    let matched = |source: &dyn Source| columns::matched(source.schema(), &existing, table, &postgres.values);
    let columns = matched(source)?;
    let rejects = rejected.map(|rejects| Ok::<_, Error>((rejects, matched(rejects.rows)?))).transpose()?;
    let replaced = OnceCell::new();
    let sides = Sides { source, rejects, replaced, server, table, columns: &columns, options, records };
    let names = columns.iter().map(|column| column.name.clone()).collect();
    let source_sum = sides.source_sums(false, false, control)?.whole;
    let mut verification = Verification {
        rejected: rejected.map_or(0, |rejected| rejected.rows.rows()),
        not_compared: columns::lacking(source.schema(), &existing)
            .map(|column| column.name.clone())
            .collect(),
        ..Verification::new(names, source_sum, sides.table_sums(false, false, control)?.whole)
    };
    // Rows usually have the same bytes, which is faster to compare.
    let by_value = !verification.matches() && CanonicalRow::numerics_in(&columns);
    if by_value {
        verification.source = sides.source_sums(false, true, control)?.whole;
        verification.target = sides.table_sums(false, true, control)?.whole;
    }
    if !verification.matches() {
        if options.locate {
            verification.located = Some(sides.locate(verification.target.rows, control)?);
        }
        let source = sides.source_sums(true, by_value, control)?;
        let table = sides.table_sums(true, by_value, control)?;
        verification.differing = source.differing(&table, columns.iter().map(|column| &column.name));
    }
    Ok(verification)
}

/// The two sides of a comparison: source and table.
struct Sides<'a> {
    source: &'a dyn Source,
    /// Rejected rows, with their columns.
    rejects: Option<(RejectedRows<'a>, Arc<Vec<Column>>)>,
    /// The rejected rows whose text was not UTF-8: their file has other text in its place.
    replaced: OnceCell<BadRecords>,
    server: &'a KnownServer,
    table: &'a TableName,
    columns: &'a Arc<Vec<Column>>,
    options: &'a LoadOptions,
    records: Option<&'a Arc<RecordNumbers>>,
}

impl Sides<'_> {
    fn table_sums(&self, each_column: bool, by_value: bool, control: &Control<'_>) -> Result<Sums> {
        let Self { server, table, columns, options, .. } = *self;
        let read = ReadBack { server, table, columns, degree: options.degree, each_column, by_value };
        retry_lost(options.retries, control, || read.run(control))
    }

    /// The sums of the source's rows, without the rejected ones.
    fn source_sums(&self, each_column: bool, by_value: bool, control: &Control<'_>) -> Result<Sums> {
        let Self { source, columns, options, .. } = *self;
        let (unit_rows, leave_out, refused) = (options.unit_rows, self.rejects.is_some(), None);
        let all =
            SourceSums { source, columns, options, unit_rows, each_column, by_value, leave_out, refused };
        let (sums, left_out) = all.run(control).map_err(with_a_way_out)?;
        let Some((rejects, columns)) = &self.rejects else { return Ok(sums) };
        let of_rejects = SourceSums { source: rejects.rows, columns, refused: self.replaced.get(), ..all };
        let (rejected, left_out_rejected) = of_rejects.run(control)?;
        if self.replaced.get().is_some() || left_out.len() == left_out_rejected.len() {
            return Ok(sums.minus(&rejected));
        }
        let (replaced, found) = self.replaced(*rejects, &left_out)?;
        if found == left_out.len() {
            let refused = Some(self.replaced.get_or_init(|| replaced));
            let (rejected, _) = SourceSums { refused, ..of_rejects }.run(control)?;
            return Ok(sums.minus(&rejected));
        }
        let what = format!(
            "{} of the files cannot be stored in the table, but {found} of the rejected ones",
            format_counted(left_out.len() as u64, "row")
        );
        Err(Error::new(Kind::Mismatch, what)
            .at(format!("table {}", self.table))
            .advise("name the file of rejected rows that the load of these files wrote"))
    }

    /// The rejected rows at the places of rows of the source that cannot be encoded, and their number.
    fn replaced(
        &self,
        rejects: RejectedRows<'_>,
        left_out: &[(UnitKey, u64)],
    ) -> Result<(BadRecords, usize)> {
        let files = self.source.files();
        let mut places: HashMap<(&str, u32), BTreeSet<u64>> = HashMap::new();
        let mut left_out = left_out.to_vec();
        left_out.sort_unstable();
        for unit in left_out.chunk_by(|a, b| a.0 == b.0) {
            let Some((key, _)) = unit.first() else { continue };
            let rows: Vec<u64> = unit.iter().map(|(_, row)| *row).collect();
            let file = files.get(key.file as usize).map(|file| file.name.as_str()).unwrap_or_default();
            let rows = self.source.rows_in_group(*key, &rows)?;
            places.entry((file, key.row_group)).or_default().extend(rows);
        }
        let (mut replaced, mut found) = (BadRecords::new(&std::env::temp_dir())?, 0);
        let mut groups: BTreeMap<UnitKey, Vec<u64>> = BTreeMap::new();
        file::places(rejects.path, |key, at, (file, row_group, row)| {
            if places.get(&(file, row_group)).is_some_and(|rows| rows.contains(&row)) {
                found += 1;
                groups.entry(key).or_default().push(at);
            }
        })?;
        for (key, rows) in groups {
            replaced.add(key, rows)?;
        }
        Ok((replaced, found))
    }

    /// Locates missing rows; the table has `rows` rows.
    fn locate(&self, rows: u64, control: &Control<'_>) -> Result<Located> {
        let Self { source, server, table, columns, options, records, .. } = *self;
        let rejected = self.rejects.as_ref().map(|(rejects, columns)| LeftOut {
            source: rejects.rows,
            columns,
            replaced: self.replaced.get(),
        });
        let (unit_rows, refused) = (options.unit_rows, None);
        let locating =
            Locating { source, server, table, columns, options, unit_rows, rejected, refused, records };
        retry_lost(options.retries, control, || locating.run(rows, control))
    }
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
