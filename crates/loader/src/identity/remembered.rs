//! Files that the target already holds, recognised one by one rather than by the list that they came in.

use crate::engine::content_sum::Tally;
use crate::engine::note::Note;
use crate::engine::verification::Verification;

/// What a target knows about the files of an appended source; files are identified by position.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Files that earlier loads completed and that are unchanged.
    pub already: Vec<AlreadyLoaded>,
    /// The files of each interrupted earlier load, in its order; these loads are finished first.
    pub unfinished: Vec<Vec<u32>>,
    /// The other files.
    pub new: Vec<u32>,
    /// The comparison of [`already`](Self::already) with the target, if requested and possible.
    pub verified: Option<Verification>,
    /// Remarks about them for the user.
    pub notes: Vec<Note>,
}

/// A file that the target holds.
#[derive(Clone, Debug)]
pub struct AlreadyLoaded {
    /// Its position in the source.
    pub file: u32,
    /// Totals of what was loaded of it.
    pub tally: Tally,
    /// Its rejected rows.
    pub rejected: u64,
    /// Number of units that it was loaded in.
    pub units: u64,
}
