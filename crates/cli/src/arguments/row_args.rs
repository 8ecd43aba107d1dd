//! Which rows of a source to take.

use clap::Args;
use sawmill_profile::Profile;
use sawmill_source::{Condition, Filtered, Limited, ParquetFiles, Source};

use crate::arguments::inputs::Inputs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct RowArgs {
    /// Only rows for which this is true: comparisons of columns with values (= <> < <= > >=, in, between,
    /// like, is null), joined by and, or, not. Statistics decide which row groups and pages to skip.
    #[arg(long = "where", value_name = "CONDITION", value_parser = condition)]
    condition: Option<Condition>,
    /// Only the first ROWS rows, in the order of the files.
    #[arg(long = "rows", value_name = "ROWS", value_parser = phases::count)]
    limit: Option<u64>,
}

pub(crate) fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|error: sawmill_source::Error| error.to_string())
}

impl RowArgs {
    /// The rows of the files that satisfy the condition, if one was given, and that their table has not deleted.
    pub(crate) fn filtered<'a>(&self, inputs: &'a Inputs, console: Console) -> Result<Option<Filtered<'a>>> {
        let Some(condition) = &self.condition else {
            let kept = |files: &'a ParquetFiles| interrupt::during(|control| files.without_deleted(control));
            return Ok(inputs.files().map_or(Ok(None), kept)?);
        };
        let Some(files) = inputs.files() else {
            let what = format!("a condition on {}", inputs.kind());
            return Err(Error::usage(what, "--where", "write the rows to a Parquet file first"));
        };
        let phase = Profile::new().phase("count");
        let control = interrupt::control(&phase);
        let count = || files.filtered(condition.clone(), &control);
        Ok(Some(console.with_bar("count", files.rows(), &phase, count)?))
    }

    /// The first rows of a source, if a limit was given.
    pub(crate) fn limited<'a>(&self, source: &'a dyn Source) -> Option<Limited<'a>> {
        self.limit.map(|rows| Limited::new(source, rows))
    }
}
