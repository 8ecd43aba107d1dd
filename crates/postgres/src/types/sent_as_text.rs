//! Columns of types without a wire format: their values are sent and read as text, which the server casts.

use sawmill_loader::{TableName, literal, quote};
use sawmill_pgcopy::{Column, ColumnType};

use crate::table::columns::list;

/// The view of a connection that casts text: the server copies no values of types without a wire format.
const CASTING_VIEW: &str = "pg_temp.sawmill_rows";

fn is_sent_as_text(column: &Column) -> bool {
    matches!(&column.column_type, ColumnType::OfServer(of) if of.0.is_text())
}

/// The columns as a SELECT sends them in their wire format, or as text.
pub(crate) fn selected(columns: &[Column]) -> String {
    let of_column = |column: &Column| match (quote(&column.name), is_sent_as_text(column)) {
        (name, true) => format!("{name}::text AS {name}"),
        (name, false) => name,
    };
    columns.iter().map(of_column).collect::<Vec<_>>().join(", ")
}

/// The COPY into a table, and the statements that make what it needs before: if columns are sent as text, a view whose
/// rows a trigger casts and inserts.
pub(crate) fn copy_into(table: &TableName, columns: &[Column]) -> (String, Option<String>) {
    let (quoted, names) = (table.quoted(), list(columns));
    let copy = |into: &str| format!("COPY {into} ({names}) FROM STDIN (FORMAT binary)");
    if !columns.iter().any(is_sent_as_text) {
        return (copy(&quoted), None);
    }
    let each = |write: fn(&str, &ColumnType, bool) -> String| {
        let parts = columns.iter().map(|column| (quote(&column.name), column));
        let parts = parts.map(|(name, column)| write(&name, &column.column_type, is_sent_as_text(column)));
        parts.collect::<Vec<_>>().join(", ")
    };
    let nulls = each(|name, of, is_text| match is_text {
        true => format!("NULL::text AS {name}"),
        false => format!("NULL::{of} AS {name}"),
    });
    let values = each(|name, of, is_text| match is_text {
        true => format!("NEW.{name}::{of}"),
        false => format!("NEW.{name}"),
    });
    let body = format!(
        "BEGIN INSERT INTO {quoted} ({names}) OVERRIDING SYSTEM VALUE VALUES ({values}); RETURN NEW; END"
    );
    let made = format!(
        "CREATE OR REPLACE FUNCTION {CASTING_VIEW}() RETURNS trigger LANGUAGE plpgsql AS {}; \
         DROP VIEW IF EXISTS {CASTING_VIEW}; CREATE VIEW {CASTING_VIEW} AS SELECT {nulls}; \
         CREATE TRIGGER cast_rows INSTEAD OF INSERT ON {CASTING_VIEW} FOR EACH ROW EXECUTE FUNCTION {CASTING_VIEW}()",
        literal(&body)
    );
    (copy(CASTING_VIEW), Some(made))
}
