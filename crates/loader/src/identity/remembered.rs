//! Files that are in the target already, each by itself and not by the list that it came in.

use crate::engine::content_sum::Tally;
use crate::engine::verification::Verification;

/// What a target knows of the files of a source that is appended; files are named by their positions.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Files that earlier loads have brought, and that still hold what these have loaded.
    pub already: Vec<AlreadyLoaded>,
    /// The files of each earlier load that was broken off, in its order; such loads are ended first.
    pub unfinished: Vec<Vec<u32>>,
    /// The other files.
    pub new: Vec<u32>,
    /// The comparison of [`already`](Self::already) with the target, where it was asked for and is possible.
    pub verified: Option<Verification>,
    /// What there is to say about them.
    pub notes: Vec<String>,
}

/// A file that is in the target.
#[derive(Clone, Debug)]
pub struct AlreadyLoaded {
    /// Its position in the source.
    pub file: u32,
    /// What was loaded of it.
    pub tally: Tally,
    /// Rows of it that were put aside.
    pub rejected: u64,
    /// Units that it was loaded in.
    pub units: u64,
}
