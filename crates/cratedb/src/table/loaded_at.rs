//! The column with the time at which a row was loaded: the server fills it by its default.

use sawmill_source::{Error, Kind, Result};

use crate::table::existing::{Existing, StoredType};
use crate::table::names::{CrateTable, quote};

/// The column's type, and what fills it.
pub(crate) const LOADED_AT: &str = "TIMESTAMP WITH TIME ZONE DEFAULT current_timestamp";

/// Whether the server evaluates a default to the time.
pub(crate) fn is_the_time(default: &str) -> bool {
    let default = default.to_lowercase();
    ["current_timestamp", "now("].iter().any(|function| default.contains(function))
}

/// Checks that a table has the column, and fills it.
///
/// # Errors
/// It does not.
pub(crate) fn check_loaded_at(name: Option<&str>, existing: &[Existing], table: &CrateTable) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let is_moment = |column: &Existing| matches!(&column.data_type, StoredType::Scalar(name) if name.starts_with("timestamp"));
    let what = match existing.iter().find(|column| column.name == name) {
        Some(column) if is_moment(column) && column.stamped => return Ok(()),
        Some(column) if is_moment(column) && column.filled => "has another default than the time".to_owned(),
        Some(column) if is_moment(column) => "has no default".to_owned(),
        Some(column) => format!("is {} in the table", column.data_type),
        None => "is not in the table".to_owned(),
    };
    let add = format!("ALTER TABLE {} ADD COLUMN {} {LOADED_AT}", table.quoted(), quote(name));
    Err(Error::new(Kind::Schema, format!("the column {name:?} for the time of the load {what}"))
        .at(format!("table {table}"))
        .advise(format!("leave --loaded-at-column out, or add a column: {add}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_other_than_the_time_is_refused() {
        let table = CrateTable { schema: "doc".to_owned(), name: "t".to_owned() };
        let with = |default: &str| {
            let column = Existing {
                name: "at".to_owned(),
                data_type: StoredType::named("timestamp with time zone", None),
                nullable: true,
                filled: true,
                stamped: is_the_time(default),
                generated: false,
            };
            check_loaded_at(Some("at"), &[column], &table).map_err(|error| error.what())
        };
        for default in ["CURRENT_TIMESTAMP", "current_timestamp(3)", "now()"] {
            assert_eq!(with(default), Ok(()));
        }
        let refused = with("946684800000").unwrap_err();
        assert!(refused.contains("another default"), "{refused}");
    }
}
