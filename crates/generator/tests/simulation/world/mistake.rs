//! Deliberate mistakes: a simulation that does not find them would not find a real one either.

/// A mistake in what passes between the writer and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// An object is written whatever its condition says.
    IgnoreConditions,
    /// An upload is completed without its last part.
    LoseLastPart,
    /// The parts of an upload are seen under its final name.
    ShowParts,
    /// Uploads are not aborted.
    KeepUploads,
    /// Objects are not removed.
    KeepObjects,
}

impl Mistake {
    pub const ALL: [Self; 5] =
        [Self::IgnoreConditions, Self::LoseLastPart, Self::ShowParts, Self::KeepUploads, Self::KeepObjects];
}
