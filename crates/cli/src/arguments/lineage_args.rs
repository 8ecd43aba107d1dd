//! Columns that say where a row comes from.

use clap::Args;
use sawmill_source::LineageColumns;

use crate::arguments::given::Given;
use crate::arguments::target::Destination;
use crate::error::{Error, Result};

/// Names of the columns.
#[derive(Args, Debug)]
#[command(next_help_heading = "Lineage")]
pub(crate) struct LineageArgs {
    #[command(flatten)]
    given: Given,
    /// Write the name of each row's file into this column.
    #[arg(long, value_name = "NAME")]
    file_column: Option<String>,
    /// Write each row's number in its file, from 0, into this column.
    #[arg(long, value_name = "NAME")]
    row_column: Option<String>,
    /// Let the server write the time of the load into this column (PostgreSQL: not with --partition-by).
    #[arg(long, value_name = "NAME")]
    pub loaded_at_column: Option<String>,
}

impl LineageArgs {
    /// The columns that the files' rows get.
    pub(crate) fn columns(&self) -> LineageColumns {
        LineageColumns { file: self.file_column.clone(), row: self.row_column.clone() }
    }

    /// The destination with the columns. Rejects options that contradict each other.
    pub(crate) fn apply(
        &self,
        target: Destination,
        replaces: bool,
        others: &[(bool, &str)],
    ) -> Result<Destination> {
        if let (Some(option), Some((_, other))) =
            (self.given.first_of::<Self>(&[]), others.iter().find(|(given, _)| *given))
        {
            return Err(Error::usage(format!("not available with {other}"), option, "leave one of them out"));
        }
        if replaces && self.file_column.is_none() {
            let what = "--changed replace without --file-column";
            return Err(Error::usage(what, "--changed", "name the column that has the rows' files"));
        }
        let loaded_at = self.loaded_at_column.clone();
        Ok(target.with(
            |postgres| postgres.lineage(self.columns(), loaded_at.clone()),
            |crate_db| crate_db.lineage(self.file_column.clone(), loaded_at.clone()),
        ))
    }
}
