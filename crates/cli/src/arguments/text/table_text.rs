//! The text columns of a table, which take the text of files as it is written.

use sawmill_loader::LoadOptions;

use crate::arguments::inputs::ColumnArgs;
use crate::arguments::target::Destination;
use crate::error::{Error, Result};
use crate::interrupt;

/// The columns of the files that the table stores as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableText {
    /// Their names in the files.
    pub names: Vec<String>,
    /// Their places in the files, where columns are matched by position.
    pub places: Vec<usize>,
    /// Whether times of day keep their type.
    pub but_times: bool,
    /// Whether days with a time of day keep their type.
    pub but_timestamps: bool,
    /// The types of columns, by their names in the files, that would be text because the sample has no value of them.
    pub of_empty: Vec<(String, &'static str)>,
}

impl TableText {
    /// Asks the server; nothing without a table.
    ///
    /// # Errors
    /// No connection.
    pub(crate) fn find(
        target: &Destination,
        options: &LoadOptions,
        given: &ColumnArgs,
        by_position: bool,
    ) -> Result<Self> {
        let (columns, rename) = (given.columns(), &given.rename);
        let (of_table, (but_times, but_timestamps)) = interrupt::during(|control| match target {
            Destination::Postgres(of) => {
                Ok::<_, Error>((of.columns_of_text(options, control)?, (false, false)))
            }
            // A load that has made the table has made these columns of moments, whose text is not the file's.
            Destination::CrateDb(of) => {
                let text = of.columns_of_text(options, control)?;
                Ok((text.columns, (text.times, text.timestamps)))
            }
        })?;
        let texts = of_table.into_iter().enumerate().filter(|(_, (_, is_text))| *is_text);
        let in_files = |name: String| match rename.iter().find(|(_, in_table)| *in_table == name) {
            Some((in_files, _)) => Some(in_files.clone()),
            None => Some(name).filter(|name| rename.iter().all(|(in_files, _)| in_files != name)),
        };
        let (names, places) = match (by_position, columns.is_empty()) {
            (false, _) => (texts.filter_map(|(_, (name, _))| in_files(name)).collect(), Vec::new()),
            (true, true) => (Vec::new(), texts.map(|(at, _)| at).collect()),
            (true, false) => (texts.filter_map(|(at, _)| columns.get(at).cloned()).collect(), Vec::new()),
        };
        Ok(Self { names, places, but_times, but_timestamps, of_empty: Vec::new() })
    }
}
