//! How modes upsert, insert and history merge rows into a table.

use clap::Args;
use sawmill_postgres::OnConflict;
use sawmill_source::{Condition, LineageColumns, Source, Traced};

use crate::arguments::row_args::condition;
use crate::arguments::target::{Destination, ModeArg};
use crate::error::{Error, Result};

/// Which rows of the table are meant, and what becomes of them.
#[derive(Args, Debug)]
#[command(next_help_heading = "Mode")]
pub(crate) struct MergeArgs {
    /// The columns by which modes upsert, insert and history find existing rows.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',',
        required_if_eq_any([("mode", "upsert"), ("mode", "insert"), ("mode", "history")]))]
    key: Vec<String>,
    /// In modes upsert and history, keep each key's row with the greatest value in this column, such as
    /// updated_at.
    #[arg(long, value_name = "COLUMN", requires = "key")]
    newest: Option<String>,
    /// In modes upsert and history, rows for which this is true delete the row of their key, such as "op = 'D'". The
    /// conditions of --where. Columns that it tests are not loaded if the table lacks them. PostgreSQL only.
    #[arg(long, value_name = "CONDITION", requires = "key", value_parser = condition)]
    delete_where: Option<Condition>,
}

impl MergeArgs {
    /// The destination with these options. Rejects a mode that does not have them.
    pub(crate) fn apply(&self, target: Destination, mode: ModeArg, by_position: bool) -> Result<Destination> {
        refuse_crate_db(&target, mode)?;
        let merges = matches!(mode, ModeArg::Upsert | ModeArg::Insert | ModeArg::History);
        if !merges && !self.key.is_empty() {
            let advice = "add --mode upsert, insert or history";
            return Err(Error::usage("--key without --mode upsert", "--key", advice));
        }
        let deletes = self.delete_where.is_some();
        if deletes && mode == ModeArg::Insert {
            let what = "mode insert leaves all rows of the table as they are";
            return Err(Error::usage(what, "--delete-where", "use --mode upsert or history"));
        }
        if deletes && by_position {
            let what = "not available with --map position";
            return Err(Error::usage(what, "--delete-where", "leave one of them out"));
        }
        let on_conflict = match (&self.newest, mode) {
            (None, ModeArg::Insert) => OnConflict::Keep,
            (newest, ModeArg::History) => OnConflict::History(newest.clone()),
            (None, _) => OnConflict::Update,
            (Some(column), ModeArg::Upsert) => OnConflict::KeepNewest(column.clone()),
            (Some(_), _) => {
                let what = "--newest without --mode upsert or history";
                return Err(Error::usage(what, "--newest", "add one of these modes, or leave it out"));
            }
        };
        Ok(target.with_postgres(|postgres| postgres.key(self.key.clone()).on_conflict(on_conflict)))
    }

    /// Whether the condition of deletions compares this column of the files with a value that is not text.
    pub(crate) fn refuses_text(&self, column: &str) -> bool {
        self.delete_where.as_ref().is_some_and(|condition| condition.refuses_text(column))
    }

    /// The types of columns of the files without a value that the condition of deletions compares with one.
    pub(crate) fn types_of_empty(&self) -> Vec<(String, &'static str)> {
        self.delete_where.as_ref().map(Condition::types_beside_text).unwrap_or_default()
    }

    /// The source with these columns of its lineage, and a mark on rows that delete, if there are any.
    pub(crate) fn traced<'a>(
        &self,
        source: &'a dyn Source,
        columns: LineageColumns,
        renames: &[(String, String)],
    ) -> Result<Option<Traced<'a>>> {
        if columns.is_empty() && self.delete_where.is_none() {
            return Ok(None);
        }
        let traced = Traced::new(source, columns)?;
        Ok(Some(match &self.delete_where {
            Some(condition) => traced.marked(condition, renames)?,
            None => traced,
        }))
    }
}

/// Rejects what CrateDB cannot do without transactions, by the name that the user gave it.
fn refuse_crate_db(target: &Destination, mode: ModeArg) -> Result<()> {
    let Destination::CrateDb(_) = target else { return Ok(()) };
    let (name, advice) = match mode {
        ModeArg::Truncate => ("truncate", "use --mode replace: a new table takes the old one's place"),
        ModeArg::Upsert => ("upsert", "use --mode replace with all rows, or load into PostgreSQL"),
        ModeArg::Insert => (
            "insert",
            "use --mode append --rejects FILE into a table with a primary key: rows whose key is there go to FILE",
        ),
        ModeArg::History => {
            ("history", "use --mode append with --file-column: all versions stay, each with its file")
        }
        ModeArg::Auto | ModeArg::Create | ModeArg::Append | ModeArg::Replace => return Ok(()),
    };
    let what = format!("mode {name} is for PostgreSQL: it needs a transaction, and CrateDB has none");
    Err(Error::usage(what, format!("--mode {name}"), advice))
}
