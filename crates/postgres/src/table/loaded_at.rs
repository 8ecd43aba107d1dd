//! The column with the time at which a row was loaded: COPY fills it by its default, a merge writes it.

use sawmill_loader::{Mode, TableName, literal, quote};
use sawmill_pgcopy::Column;
use sawmill_source::{Error, Kind, Result};

use crate::table::columns::TableColumn;
use crate::target::Postgres;

impl Postgres {
    /// The statement that adds the column to a table that is being made, if there is one.
    pub(crate) fn add_loaded_at(&self, table: &TableName) -> Option<String> {
        let (table, name) = (table.quoted(), quote(self.loaded_at.as_ref()?));
        Some(format!("ALTER TABLE {table} ADD COLUMN {name} timestamp with time zone NOT NULL DEFAULT now()"))
    }

    /// Checks that the source does not fill the column with the time.
    ///
    /// # Errors
    /// The source fills it.
    pub(crate) fn refuse_own_loaded_at(&self, columns: &[Column], table: &TableName) -> Result<()> {
        match self.loaded_at.as_ref().filter(|name| columns.iter().any(|column| column.name == **name)) {
            None => Ok(()),
            Some(name) => Err(Error::new(
                Kind::Config,
                format!("the files fill the column {name:?}, which is to have the time of the load"),
            )
            .at(format!("table {table}, --loaded-at-column"))
            .advise("give the column another name, or rename the files' column (--rename)")),
        }
    }

    /// The column, if this is a merge, which writes the time itself.
    pub(crate) fn merged_time(&self) -> Option<&str> {
        self.loaded_at.as_deref().filter(|_| self.mode == Mode::Upsert)
    }

    /// Counts the column as filled if this is a merge.
    pub(crate) fn fill_merged_time(&self, existing: &mut [TableColumn]) {
        let merged = existing.iter_mut().filter(|column| Some(column.name.as_str()) == self.merged_time());
        merged.for_each(|column| column.filled = true);
    }

    /// Checks that a table has the column, and fills it. Merges write the time themselves, with or without a default.
    ///
    /// # Errors
    /// The table lacks it, or has it in a form that a load cannot fill.
    pub(crate) fn check_loaded_at(&self, existing: &mut [TableColumn], table: &TableName) -> Result<()> {
        /// timestamp and timestamptz
        const MOMENTS: [u32; 2] = [1114, 1184];
        self.fill_merged_time(existing);
        let Some(name) = &self.loaded_at else { return Ok(()) };
        let (set, add) = ("ALTER COLUMN", "ADD COLUMN");
        let (what, change) = match existing.iter().find(|column| column.name == *name) {
            Some(column) if !MOMENTS.contains(&column.type_oid) => {
                (format!("is {} in the table", column.type_name), add)
            }
            Some(column) if column.stamped => return Ok(()),
            Some(column) if column.generated => ("is computed from other columns".to_owned(), add),
            Some(_) if self.mode == Mode::Upsert => return Ok(()),
            Some(column) if column.filled => ("has another default than the time".to_owned(), set),
            Some(_) => ("has no default".to_owned(), set),
            None => ("is not in the table".to_owned(), add),
        };
        let to = if change == set { "SET" } else { "timestamptz" };
        let alter = format!("ALTER TABLE {} {change} {} {to} DEFAULT now()", table.quoted(), quote(name));
        Err(Error::new(Kind::Schema, format!("the column {} for the time of the load {what}", literal(name)))
            .at(format!("table {table}"))
            .advise(format!(
                "leave --loaded-at-column out, name another column, or change the table: {alter}"
            )))
    }
}
