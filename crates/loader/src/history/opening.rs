//! How a load begins: one decision for all modes and targets.
//!
//! | on record | found | mode | then |
//! |---|---|---|---|
//! | complete | its rows, of the same files | any | complete |
//! | complete | its rows are missing, or others are there | replace, truncate | new |
//! | complete | its rows are missing | create, append, upsert | refused |
//! | complete | other content of its files | create | refused |
//! | complete | other content of its files | others | new |
//! | complete, `--again` | | all but create | new |
//! | interrupted, or nothing | a table of the name | create | refused |
//! | interrupted | rows of others | truncate | new |
//! | interrupted | no rows, or none that are seen; other content of its files | any | new |
//! | interrupted | its rows; other content of its files | truncate | new |
//! | interrupted | its rows, as far as they are recorded | any | resumed |
//! | nothing | | any | new |

use sawmill_source::{Error, Result};

use crate::engine::target::LoadState;
use crate::table::mode::Mode;

/// The record of a load whose table, or staging table, is the one that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRecord {
    /// All units are committed. `changed` says that the files have other content now.
    Complete {
        /// See above.
        changed: bool,
    },
    /// Units are missing. `changed` says that the load would store other rows now.
    Interrupted {
        /// See above.
        changed: bool,
    },
}

/// What a load finds. The decision asks only as far as it has to: an answer may be a query.
pub trait Standing {
    /// The record of this load; `None` if there is none, or if its table is gone.
    fn on_record(&self) -> Option<OnRecord>;

    /// The error for a table of the load's name that is not the load's, if there is one.
    ///
    /// # Errors
    /// No connection.
    fn taken(&mut self) -> Result<Option<Error>>;

    /// The error for the table of a complete load that does not hold the load's rows any more; `None` if it does.
    ///
    /// # Errors
    /// No connection; rows that are missing in any mode.
    fn lost(&mut self) -> Result<Option<Error>>;

    /// The error for files that have other content than when the load was complete.
    fn other_content(&self) -> Error;

    /// Whether rows of others are in the table that an interrupted load had emptied.
    ///
    /// # Errors
    /// No connection.
    fn has_other_rows(&mut self) -> Result<bool> {
        Ok(false)
    }

    /// Whether an interrupted load has brought nothing into the table, so that it may begin with other content.
    ///
    /// # Errors
    /// No connection.
    fn holds_nothing(&mut self) -> Result<bool>;

    /// Checks that an interrupted load can be resumed.
    ///
    /// # Errors
    /// No connection; files, options or units that have changed; rows that are missing.
    fn check_resumed(&mut self) -> Result<()>;
}

/// Decides how a load in this mode begins. `again` repeats a complete load.
///
/// # Errors
/// See the module's table; errors of `found`.
pub fn open(mode: Mode, again: bool, found: &mut dyn Standing) -> Result<LoadState> {
    let on_record = found.on_record();
    if let Some(OnRecord::Complete { changed }) = on_record
        && (!again || mode == Mode::Create)
    {
        return match (changed, mode) {
            (true, Mode::Create) => Err(found.other_content()),
            (true, _) => Ok(LoadState::New),
            (false, _) => match found.lost()? {
                None => Ok(LoadState::Complete),
                Some(_) if matches!(mode, Mode::Replace | Mode::Truncate) => Ok(LoadState::New),
                Some(error) => Err(error),
            },
        };
    }
    if mode == Mode::Create
        && let Some(error) = found.taken()?
    {
        return Err(error);
    }
    let Some(OnRecord::Interrupted { changed }) = on_record else { return Ok(LoadState::New) };
    if mode == Mode::Truncate && found.has_other_rows()? || changed && found.holds_nothing()? {
        return Ok(LoadState::New);
    }
    found.check_resumed()?;
    Ok(LoadState::Resumed)
}

#[cfg(test)]
mod tests {
    use sawmill_source::Kind;

    use super::*;

    /// Answers as given. Errors carry their reason.
    #[derive(Clone, Copy)]
    struct Found {
        on_record: Option<OnRecord>,
        taken: bool,
        lost: bool,
        others: bool,
        nothing: bool,
    }

    fn refused(why: &str) -> Error {
        Error::new(Kind::Exists, why)
    }

    impl Standing for Found {
        fn on_record(&self) -> Option<OnRecord> {
            self.on_record
        }

        fn taken(&mut self) -> Result<Option<Error>> {
            Ok(self.taken.then(|| refused("taken")))
        }

        fn lost(&mut self) -> Result<Option<Error>> {
            Ok(self.lost.then(|| refused("lost")))
        }

        fn other_content(&self) -> Error {
            refused("other content")
        }

        fn has_other_rows(&mut self) -> Result<bool> {
            Ok(self.others)
        }

        fn holds_nothing(&mut self) -> Result<bool> {
            Ok(self.nothing)
        }

        fn check_resumed(&mut self) -> Result<()> {
            if self.lost { Err(refused("lost")) } else { Ok(()) }
        }
    }

    #[test]
    fn a_load_begins_as_the_table_says() {
        use Mode::{Append, Create, Replace, Truncate, Upsert};
        const NOTHING: Found =
            Found { on_record: None, taken: false, lost: false, others: false, nothing: false };
        let complete = |changed| Found { on_record: Some(OnRecord::Complete { changed }), ..NOTHING };
        let interrupted = |changed| Found { on_record: Some(OnRecord::Interrupted { changed }), ..NOTHING };
        let lost = |found: Found| Found { lost: true, ..found };
        let cases: [(&str, Found, &[Mode], &str); 15] = [
            ("complete", complete(false), &[Create, Replace, Append, Truncate, Upsert], "Complete"),
            ("complete, lost", lost(complete(false)), &[Replace, Truncate], "New"),
            ("complete, lost", lost(complete(false)), &[Create, Append, Upsert], "lost"),
            ("complete, changed", complete(true), &[Create], "other content"),
            ("complete, changed", complete(true), &[Replace, Append, Truncate, Upsert], "New"),
            ("taken", Found { taken: true, ..NOTHING }, &[Create], "taken"),
            ("taken", Found { taken: true, ..interrupted(false) }, &[Create], "taken"),
            ("taken", Found { taken: true, ..NOTHING }, &[Replace, Append, Truncate, Upsert], "New"),
            ("others", Found { others: true, ..interrupted(false) }, &[Truncate], "New"),
            ("others", Found { others: true, ..interrupted(false) }, &[Append], "Resumed"),
            (
                "empty",
                Found { nothing: true, ..interrupted(true) },
                &[Create, Replace, Append, Upsert],
                "New",
            ),
            ("empty", Found { nothing: true, ..interrupted(false) }, &[Create, Append], "Resumed"),
            ("interrupted", interrupted(true), &[Create, Replace, Append, Truncate, Upsert], "Resumed"),
            ("interrupted, lost", lost(interrupted(false)), &[Create, Replace, Append, Upsert], "lost"),
            ("nothing", NOTHING, &[Create, Replace, Append, Truncate, Upsert], "New"),
        ];
        for (name, found, modes, expected) in cases {
            for mode in modes {
                let state = match open(*mode, false, &mut { found }) {
                    Ok(state) => format!("{state:?}"),
                    Err(error) => error.what(),
                };
                assert_eq!(state, expected, "{name}, {mode:?}");
            }
        }
        for mode in [Replace, Append, Truncate, Upsert] {
            assert_eq!(open(mode, true, &mut complete(false)).unwrap(), LoadState::New);
        }
        assert_eq!(open(Create, true, &mut complete(false)).unwrap(), LoadState::Complete);
    }
}
