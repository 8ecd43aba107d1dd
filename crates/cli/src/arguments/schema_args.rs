//! What a load does if its files have other columns than the table, or than each other.

use clap::{Args, ValueEnum};
use sawmill_loader::{NewColumns, SchemaChange, Widen};
use sawmill_source::UnlikeFiles;

use crate::arguments::target::{Destination, ModeArg};
use crate::error::{Error, Result};

/// Which differences of columns a load accepts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Columns that change")]
pub(crate) struct SchemaArgs {
    /// What to do if the columns of files differ from each other or from the table's; join several by commas. Not in
    /// mode truncate. Unless it is error, a column that a file lacks is NULL in its rows, or has its
    /// default if all new files lack it.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CHANGES", default_value = "error")]
    schema_change: Vec<SchemaChangeArg>,
    /// Short for --schema-change add,widen.
    #[arg(long, conflicts_with = "schema_change")]
    evolve: bool,
    /// Widen also types for which the server has to rewrite the table. Readers of the table wait until it has.
    #[arg(long)]
    rewrite: bool,
}

/// A difference that a load accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemaChangeArg {
    /// Such files are an error.
    Error,
    /// The table gets columns that it lacks.
    Add,
    /// Types of the table become wider if the files need it: longer text, more digits; with --rewrite also integers
    /// and floats. CrateDB cannot change a type.
    Widen,
    /// Columns that the table lacks are not loaded. PostgreSQL only.
    Ignore,
}

impl SchemaArgs {
    /// The differences, with short forms written out.
    fn changes(&self) -> &[SchemaChangeArg] {
        if self.evolve { &[SchemaChangeArg::Add, SchemaChangeArg::Widen] } else { &self.schema_change }
    }

    /// Whether a load accepts any difference.
    pub(crate) fn accepts_some(&self) -> bool {
        self.changes() != [SchemaChangeArg::Error]
    }

    /// How to open files whose columns differ.
    pub(crate) fn unlike_files(&self, mode: ModeArg) -> UnlikeFiles {
        match mode {
            ModeArg::Truncate => UnlikeFiles::default(),
            _ if self.accepts_some() => UnlikeFiles::United,
            ModeArg::Auto | ModeArg::Append => UnlikeFiles::Refused(
                "to let the table follow the files, add --evolve (--schema-change add,widen); to leave new columns out, \
                 --schema-change ignore; or load the files into different tables",
            ),
            ModeArg::Create | ModeArg::Replace => UnlikeFiles::Refused(
                "to give the table the columns of all files, add --evolve; or load files with different columns separately, into \
                 different tables",
            ),
            _ => UnlikeFiles::default(),
        }
    }

    /// The destination with these changes. Rejects options that contradict each other.
    pub(crate) fn apply(
        &self,
        target: Destination,
        mode: ModeArg,
        others: &[(bool, &str)],
    ) -> Result<Destination> {
        use SchemaChangeArg::{Add, Error as Refuse, Ignore, Widen as Wide};
        let has = |change| self.changes().contains(&change);
        let option = if self.evolve { "--evolve" } else { "--schema-change" };
        let refused = |what: &str, advice: &str| Err(Error::usage(what, option, advice));
        if self.rewrite && !has(Wide) {
            let advice = "add --schema-change widen or --evolve";
            return Err(Error::usage("--rewrite without widening", "--rewrite", advice));
        }
        if !self.accepts_some() {
            return Ok(target);
        }
        if has(Refuse) || has(Add) && has(Ignore) {
            return refused("changes that exclude each other", "give error, ignore, or add, widen or both");
        }
        if matches!(mode, ModeArg::Truncate) {
            return refused("not available in this mode", "use another mode, or leave the option out");
        }
        if let Some((_, other)) = others.iter().find(|(given, _)| *given) {
            return refused(&format!("not available with {other}"), "leave one of them out");
        }
        let new_columns = match (has(Add), has(Ignore)) {
            (true, _) => NewColumns::Add,
            (false, true) => NewColumns::LeaveOut,
            (false, false) => NewColumns::Refuse,
        };
        let widen = match (has(Wide), self.rewrite) {
            (false, _) => Widen::No,
            (true, false) => Widen::InPlace,
            (true, true) => Widen::Rewrite,
        };
        if let Destination::CrateDb(_) = target {
            if new_columns == NewColumns::LeaveOut {
                let advice = "name the columns to load: --columns a,b";
                return refused("ignore is not available for CrateDB", advice);
            }
            if self.rewrite {
                let what = "CrateDB does not change the type of a column";
                return Err(Error::usage(what, "--rewrite", "load into a new table: --mode replace"));
            }
        }
        let change = SchemaChange { new_columns, widen };
        Ok(target.with(|postgres| postgres.schema_change(change), |crate_db| crate_db.schema_change(change)))
    }
}
