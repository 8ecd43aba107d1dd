//! Deliberate mistakes: a simulation that does not find them would not find a real one either.

/// A mistake in the source, or in what passes between the loader and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A resumed load leaves out the first unit that is missing.
    SkipUnit,
    /// A resumed load trusts files whose stamps differ.
    TrustStamps,
    /// A resumed load takes files with other fingerprints.
    TrustFingerprints,
    /// The files are not compared again at the end.
    NoLastLook,
    /// Tables are not refreshed.
    NoRefresh,
    /// Each loader gets the lease.
    LeaseForAll,
    /// Rows without a record stay.
    KeepRows,
    /// A load is recorded as complete before its table has its name.
    CompleteEarly,
}

impl Mistake {
    pub const ALL: [Self; 8] = [
        Self::SkipUnit,
        Self::TrustStamps,
        Self::TrustFingerprints,
        Self::NoLastLook,
        Self::NoRefresh,
        Self::LeaseForAll,
        Self::KeepRows,
        Self::CompleteEarly,
    ];
}
