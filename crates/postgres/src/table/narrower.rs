//! Columns that are narrower in the table than in the files. Each value is checked, and the error for one
//! that does not fit shows the change of the table that would let it in.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::{DataType, Schema};
use sawmill_loader::{TableName, first_file_with};
use sawmill_pgcopy::{Integers, PgType};
use sawmill_source::{Bounds, Error, Kind, Result, Source};

use crate::table::columns::TableColumn;
use crate::table::evolution::wider;

/// A column that is narrower in the table.
struct Narrower {
    /// Its position in the source.
    position: usize,
    name: String,
    /// The difference, and the option that would let all values in.
    what: String,
    /// The range of integers that it takes, if it is known.
    range: Option<(i128, i128)>,
    /// It has text of a limited length.
    is_text: bool,
}

fn narrower(source: &dyn Source, schema: &Schema, existing: &[TableColumn]) -> Vec<Narrower> {
    let of_field = |(position, field): (usize, &Arc<arrow_schema::Field>)| {
        let column = existing.iter().find(|column| column.name == *field.name())?;
        let (to, rewritten) = wider(column, field)?;
        let rewrite = if rewritten { " with --rewrite" } else { "" };
        let (name, file) = (field.name().clone(), first_file_with(source, field.name()));
        let what = format!(
            "column {name:?} is {} in the table and {} in {file}; --schema-change widen{rewrite} makes it {to}",
            column.type_name,
            field.data_type(),
        );
        let of = PgType::of_catalogue(column.type_oid, column.modifier);
        let range = match of {
            Some(PgType::Int2) => Some((i16::MIN.into(), i16::MAX.into())),
            Some(PgType::Int4) => Some((i32::MIN.into(), i32::MAX.into())),
            // The sign takes the place of a digit.
            Some(PgType::Varchar(Some(most))) => {
                let greatest = |digits: u32| 10_i128.saturating_pow(digits).saturating_sub(1);
                Some((-greatest(most.saturating_sub(1)), greatest(most)))
            }
            _ => None,
        };
        let range = range.filter(|_| DataType::is_integer(field.data_type()));
        Some(Narrower { position, name, what, range, is_text: matches!(of, Some(PgType::Varchar(_))) })
    };
    schema.fields().iter().enumerate().filter_map(of_field).collect()
}

/// Refuses files whose statistics say that some of their integers do not fit. Of one that is too long as text the error
/// names the row.
pub(crate) fn refuse_larger(
    source: &dyn Source,
    schema: &Schema,
    existing: &[TableColumn],
    table: &TableName,
) -> Result<()> {
    let (mut refused, mut row) = (Vec::new(), None);
    for Narrower { position, name, what, range, is_text } in narrower(source, schema, existing) {
        let Some((least, greatest)) = range else { continue };
        for (file, named) in (0..).zip(source.files()) {
            let known = (0..).zip(source.known(file, position)?);
            let outside = known.filter_map(|(row_group, known)| match known.bounds? {
                Bounds::Whole(low, _) if low < least => Some((low, row_group)),
                Bounds::Whole(_, high) if high > greatest => Some((high, row_group)),
                _ => None,
            });
            if let Some((value, row_group)) = outside.max_by_key(|(value, _)| value.unsigned_abs()) {
                refused.push(format!("{what} ({} has the value {value})", named.name));
                if is_text && row.is_none() {
                    let row_of = row_of(source, (file, row_group), position, value)?;
                    let of_file =
                        |row| format!("{}, row group {row_group}, row {row}, column {name:?}", named.name);
                    row = row_of.map(of_file);
                }
                break;
            }
        }
    }
    let (kind, place) = match row {
        Some(row) => (Kind::Value, row),
        None => (Kind::Schema, format!("table {table}")),
    };
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Error::new(kind, refused.join("; "))
            .at(place)
            .advise("let the table follow the files, change the table, or collect such rows with --rejects")),
    }
}

/// The first row of a row group that has this value in a column, counted from 0 there.
fn row_of(source: &dyn Source, group: (u32, u32), column: usize, value: i128) -> Result<Option<u64>> {
    const BATCH_ROWS: usize = 8192;
    let mut reader = source.reader_of(&[column], BATCH_ROWS);
    let units = source.plan(u64::MAX).into_iter().flatten();
    for unit in units.filter(|unit| (unit.key.file, unit.key.row_group) == group) {
        let mut first = unit.key.first_row;
        reader.start(&unit)?;
        while let Some(batch) = reader.next_batch()? {
            let Some(integers) = Integers::bind(batch.column(0)) else { return Ok(None) };
            let has = |row: &usize| batch.column(0).is_valid(*row) && integers.wide(*row) == Ok(value);
            if let Some(row) = (0..batch.num_rows()).find(has) {
                return Ok(source.place_of_row(unit.key, first + row as u64).map(|place| place.row));
            }
            first += batch.num_rows() as u64;
        }
    }
    Ok(None)
}

/// For each column that is narrower in the table, the option that would let all values in.
pub(crate) fn hints(
    source: &dyn Source,
    schema: &Schema,
    existing: &[TableColumn],
) -> BTreeMap<String, String> {
    narrower(source, schema, existing).into_iter().map(|column| (column.name, column.what)).collect()
}
