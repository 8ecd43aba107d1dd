//! Files that are loaded already, and whose columns do not fit the other files': a load does not read them again.

use std::collections::HashSet;

use sawmill_loader::{LoadOptions, and_more_files};
use sawmill_source::{Control, Kind, Source, SourceFile};

use super::TableLoad;
use crate::arguments::inputs::Inputs;
use crate::arguments::target::{Destination, ModeArg};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;

impl TableLoad {
    /// The names and fingerprints of the files that the table has the rows of, if the load adds to it: of any loads, or of
    /// those that take the same rows and columns as this source.
    pub(super) fn loaded_files(
        &self,
        target: &Destination,
        source: Option<&dyn Source>,
        options: &LoadOptions,
    ) -> sawmill_source::Result<HashSet<(String, String)>> {
        let appends = matches!(self.mode, ModeArg::Auto | ModeArg::Append);
        if !appends || self.again || self.ddl || self.nested.makes_tables() {
            return Ok(HashSet::new());
        }
        self.asked(|control| target.as_target().loaded_files(source, options, control))
    }

    /// The target's answer. A plan that needs no server takes silence for an empty answer. CrateDB that does not answer is
    /// an error of the server.
    pub(super) fn asked<T: Default>(
        &self,
        ask: impl FnOnce(&Control<'_>) -> sawmill_source::Result<T>,
    ) -> sawmill_source::Result<T> {
        match interrupt::during(ask) {
            Err(error)
                if matches!(error.kind(), Kind::Connection | Kind::Server) && self.is_planned_alone() =>
            {
                Ok(T::default())
            }
            answer => answer,
        }
    }

    /// Checks that the files which were taken out are loaded, and names them.
    ///
    /// # Errors
    /// They were loaded with other options.
    pub(super) fn check_taken_out(
        &self,
        target: &Destination,
        (source, inputs): (&dyn Source, &Inputs),
        options: &LoadOptions,
        console: Console,
    ) -> Result<()> {
        let Some(first) = inputs.taken_out.first() else { return Ok(()) };
        let loaded = match source.facts().whole_files {
            true => self.loaded_files(target, Some(source), options)?,
            false => HashSet::new(),
        };
        let is_loaded = |file: &SourceFile| loaded.contains(&(file.name.clone(), file.fingerprint.clone()));
        if let Some(file) = inputs.taken_out.iter().find(|file| !is_loaded(file)) {
            let what = if source.facts().whole_files {
                "its columns do not fit those of the other files, and it was loaded with other options"
            } else {
                "its columns do not fit those of the other files, and a load of some rows does not know which \
                     files are loaded"
            };
            return Err(Error::failure(what, &file.name, "load it alone, or with the options of that load"));
        }
        let more = and_more_files(inputs.taken_out.len() - 1);
        console.notice(&format!(
            "{}{more}: loaded already, and not compared, since the columns do not fit those of the other files",
            first.name
        ));
        Ok(())
    }
}
