//! How a table follows the columns of new files: columns that it gets, and types that become wider.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::{DataType, Field, Schema};
use sawmill_loader::{
    AddedColumn, ColumnChanges, Mode, NewColumns, NullColumn, TableName, Widen, WidenedColumn,
    first_file_with, quote, refused_changes,
};
use sawmill_pgcopy::{ColumnType, Integers, PgType, is_json};
use sawmill_source::{Bounds, DELETES, Error, Kind, Result, Source};

use crate::table::columns::{self, TableColumn};
use crate::target::Postgres;

/// The changes that a table needs before files with these columns are loaded into it.
pub(crate) struct Evolution<'e> {
    postgres: &'e Postgres,
    source: &'e dyn Source,
    table: &'e TableName,
    pub changes: ColumnChanges,
    /// The parts of an `ALTER TABLE`.
    actions: Vec<String>,
    refused: Vec<String>,
}

/// The names of the columns that are loaded, in the order of the source.
pub(crate) fn loaded(source: &Schema, files: &Schema, changes: &ColumnChanges) -> Vec<String> {
    let names = source.fields().iter().map(|field| field.name());
    let is_null = |name: &String| changes.null.iter().any(|column| column.name == *name);
    let is_loaded = |name: &&String| match files.index_of(name) {
        Ok(_) => !changes.left_out.contains(*name),
        // It was loaded as NULL, so it is compared as NULL.
        Err(_) => is_null(name) || *name == DELETES,
    };
    names.filter(is_loaded).cloned().collect()
}

impl<'e> Evolution<'e> {
    /// Compares the columns of a source's files with the table's.
    ///
    /// # Errors
    /// A column that cannot become one of the table.
    pub(crate) fn new(
        of: (&'e Postgres, &'e dyn Source, &'e TableName),
        files: &Schema,
        existing: &[TableColumn],
    ) -> Result<Self> {
        let mut evolution = Self::begun(of);
        for field in files.fields() {
            match existing.iter().find(|column| column.name == *field.name()) {
                None => evolution.meet_new(field)?,
                Some(column) => evolution.meet(field, column),
            }
        }
        evolution.find_absent(files, existing);
        Ok(evolution)
    }

    /// How new columns of the files could be accepted, one line each.
    pub(crate) fn ways_out(
        of: (&'e Postgres, &'e dyn Source, &'e TableName),
        files: &Schema,
        existing: &[TableColumn],
    ) -> Vec<String> {
        let mut evolution = Self::begun(of);
        let is_new = |field: &&Arc<Field>| existing.iter().all(|column| column.name != *field.name());
        for field in files.fields().iter().filter(is_new) {
            // A column that cannot be added has no way out.
            let _ = evolution.meet_new(field);
        }
        evolution.refused
    }

    fn begun((postgres, source, table): (&'e Postgres, &'e dyn Source, &'e TableName)) -> Self {
        let (changes, actions, refused) = (ColumnChanges::default(), Vec::new(), Vec::new());
        Self { postgres, source, table, changes, actions, refused }
    }

    /// The statement that changes the table; `None` if nothing has to change.
    ///
    /// # Errors
    /// All columns that may not be changed as the files need it.
    pub(crate) fn statement(&self) -> Result<Option<String>> {
        if !self.refused.is_empty() {
            return Err(refused_changes(&self.refused, self.table));
        }
        let actions = self.actions.join(", ");
        Ok((!actions.is_empty()).then(|| format!("ALTER TABLE {} {actions}", self.table.quoted())))
    }

    /// A column that the table lacks.
    fn meet_new(&mut self, field: &Field) -> Result<()> {
        let (postgres, name) = (self.postgres, field.name());
        if postgres.has_deletes() && name == DELETES {
            return Ok(());
        }
        let is_tested = postgres.deletes.as_ref().is_some_and(|tested| tested.contains(name));
        if is_tested || postgres.schema_change.new_columns == NewColumns::LeaveOut {
            self.changes.left_out.push(name.clone());
            return Ok(());
        }
        let nullable = Schema::new(vec![field.clone().with_nullable(true)]);
        let new = columns::natural(&nullable, self.table, postgres.nested, &postgres.values)?;
        let Some(column_type) = new.columns.first().map(|column| &column.column_type) else { return Ok(()) };
        let type_name = column_type.to_string();
        if postgres.schema_change.new_columns == NewColumns::Refuse {
            let (of, has) = (first_file_with(self.source, name), field.data_type());
            self.refused.push(format!(
                "column {name:?} ({has}) of {of} is not in the table; --schema-change add adds it as {type_name}, ignore \
                 leaves it out"
            ));
        } else if !new.types.is_empty() {
            self.refused.push(format!(
                "column {name:?} of {} needs the new type {type_name}; add it to the table first",
                first_file_with(self.source, name)
            ));
        } else {
            self.actions.push(format!("ADD COLUMN {} {type_name}", quote(name)));
            self.changes.added.push(AddedColumn { name: name.clone(), type_name });
        }
        Ok(())
    }

    /// A column of the table, which may be narrower than the files need.
    fn meet(&mut self, field: &Field, column: &TableColumn) {
        let change = self.postgres.schema_change;
        if change.widen == Widen::No || is_json(field) {
            return;
        }
        let Some((to, rewritten)) = wider(column, field) else { return };
        let name = field.name();
        if rewritten && change.widen == Widen::InPlace {
            self.refused.push(format!(
                "column {name:?} is {} in the table and {} in {}: to make it {to}, the server has to rewrite the table, \
                 which --rewrite allows",
                column.type_name,
                field.data_type(),
                first_file_with(self.source, name)
            ));
            return;
        }
        self.actions.push(format!("ALTER COLUMN {} TYPE {to}", quote(name)));
        let (name, from, to) = (name.clone(), column.type_name.clone(), to.to_string());
        self.changes.widened.push(WidenedColumn { name, from, to, rewritten });
    }

    /// Columns of the table, and added ones, that some files lack.
    fn find_absent(&mut self, files: &Schema, existing: &[TableColumn]) {
        for column in existing.iter().filter(|column| !column.generated) {
            let in_some = files.index_of(&column.name).is_ok();
            let is_kept = self.postgres.mode == Mode::Upsert && !self.postgres.replaces_files();
            if !in_some && (column.filled || is_kept) {
                continue;
            }
            let Some(null) = NullColumn::new(&column.name, self.source, in_some) else { continue };
            match column.not_null {
                true => self.refused.push(format!(
                    "column {:?} of the table is not in {}, and is NOT NULL",
                    null.name, null.first
                )),
                false => self.changes.null.push(null),
            }
        }
        let of_added = ColumnChanges::absent(self.changes.added.iter().map(|added| &added.name), self.source);
        self.changes.null.extend(of_added.null);
    }
}

/// The wider type that a column needs for a field, and whether the server rewrites the table for it. `None`
/// if the column takes each value of the field, or if no type takes the values of both.
pub(super) fn wider(column: &TableColumn, field: &Field) -> Option<(PgType, bool)> {
    if *field.data_type() == DataType::Null {
        return None;
    }
    let natural = PgType::natural(field).ok()?;
    // The columns of a domain have the domain's type.
    match (PgType::of_catalogue(column.type_oid, column.modifier), natural) {
        // Digits of seconds: the server does not rewrite the table to allow more.
        (None, PgType::Time | PgType::Timestamp | PgType::TimestampTz) => {
            (PgType::of_catalogue(column.type_oid, -1) == Some(natural)).then_some((natural, false))
        }
        (Some(PgType::Varchar(Some(most))), natural) => {
            let longest = longest_text(natural)?;
            longest.is_none_or(|longest| longest > most).then_some((PgType::Text, false))
        }
        (Some(has), _) if !ColumnType::Plain(has).takes(field) => wider_number(has, natural),
        _ => None,
    }
}

fn wider_number(has: PgType, needed: PgType) -> Option<(PgType, bool)> {
    use PgType::{Float4, Float8, Int2, Int4, Int8, Numeric};
    match (has, needed) {
        (Int2, Int4 | Int8) | (Int4, Int8) | (Float4, Float8) => Some((needed, true)),
        _ => {
            let ((before, behind), (needed_before, needed_behind)) = (has.digits()?, needed.digits()?);
            let scale = behind.max(needed_behind);
            // The server keeps the digits after the point in each value.
            let rewritten = !matches!(has, Numeric(_)) || scale != behind;
            /// `NUMERIC_MAX_PRECISION` in src/include/utils/numeric.h.
            const MAX_PRECISION: u16 = 1000;
            let precision = u16::try_from(before.max(needed_before) + scale).ok();
            let precision = precision.filter(|precision| *precision <= MAX_PRECISION)?;
            Some((Numeric(Some((precision, i16::try_from(scale).ok()?))), rewritten))
        }
    }
}

/// The most characters of a type's values as text; `Some(None)` if unlimited. `None` if text columns do not take the
/// type.
fn longest_text(natural: PgType) -> Option<Option<u32>> {
    Some(match natural {
        PgType::Text => None,
        PgType::Bool => Some(5),
        // Signs, a point, and an exponent of two or three digits.
        PgType::Float4 => Some(15),
        PgType::Float8 => Some(24),
        number => {
            let (before, behind) = number.digits()?;
            u32::try_from(before.max(1) + behind + 1 + i32::from(behind > 0)).ok()
        }
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use PgType::{Float4, Float8, Int2, Int4, Int8, Numeric, Text};

    #[test]
    fn numbers_become_wider_only_if_no_digit_is_lost() {
        let numeric = |precision, scale| Numeric(Some((precision, scale)));
        for (has, needed, wide) in [
            (Int2, Int4, Some((Int4, true))),
            (Int4, Int8, Some((Int8, true))),
            (Int8, numeric(20, 0), Some((numeric(20, 0), true))),
            (Int4, numeric(10, 2), Some((numeric(12, 2), true))),
            (Float4, Float8, Some((Float8, true))),
            (numeric(10, 2), numeric(12, 2), Some((numeric(12, 2), false))),
            (numeric(10, 2), numeric(10, 4), Some((numeric(12, 4), true))),
            (numeric(4, 2), Int8, Some((numeric(21, 2), false))),
            (numeric(3, 5), numeric(5, 2), Some((numeric(8, 5), false))),
            (numeric(3, -2), Int4, Some((numeric(10, 0), true))),
            (Int4, Float8, None),
            (Float8, Int8, None),
            (Text, Int4, None),
        ] {
            assert_eq!(wider_number(has, needed), wide, "{has} {needed}");
        }
    }
}
