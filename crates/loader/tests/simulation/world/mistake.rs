//! Deliberate mistakes: a simulation that does not find them would not find a real one either.

/// A mistake in the target, in the source, or in what passes between them and the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The rows of units are committed, and then their records.
    CommitBeforeRecord,
    /// The records of units are committed, and then their rows.
    RecordBeforeCommit,
    /// After a reconnect the server is not asked for units whose commit may have happened, and takes them twice.
    ForgetToAsk,
    /// The server takes the same unit twice.
    NoUniqueKey,
    /// A committed unit is reported twice.
    CountTwice,
    /// A resumed load leaves out the first unit that is missing.
    SkipUnit,
    /// The staging table takes its final name before the load is verified.
    RenameTooEarly,
    /// The load is recorded as complete, and only then does the table take its final name.
    CompleteBeforeRename,
    /// The table takes its final name, and only then is the load recorded as complete.
    RenameBeforeComplete,
    /// The old table is dropped when its replacement begins.
    DropFirst,
    /// The staging table is copied and stays.
    LeaveStaging,
    /// The end of a load is not compared with the server's records.
    TrustTotal,
    /// After a reconnect the end of a load is not looked for.
    FinishTwice,
    /// The last commit does not wait for the disk.
    NoSync,
    /// A resumed load trusts files whose stamps differ.
    TrustStamps,
    /// A resumed load takes files with other fingerprints.
    TrustFingerprints,
    /// The files are not compared again at the end.
    NoLastLook,
    /// A refused transaction counts as committed.
    IgnoreRefusal,
    /// A resumed load divides its files by the options of this run.
    CutAnew,
    /// The verification reads nothing.
    VerifyNothing,
    /// The verification reads whatever table has the name, and the end of the load does not look which one it is.
    AnyTable,
    /// A truncating load that is resumed empties the table and keeps its records.
    TruncateAgain,
}

impl Mistake {
    pub const ALL: [Self; 22] = [
        Self::CommitBeforeRecord,
        Self::RecordBeforeCommit,
        Self::ForgetToAsk,
        Self::NoUniqueKey,
        Self::CountTwice,
        Self::SkipUnit,
        Self::RenameTooEarly,
        Self::CompleteBeforeRename,
        Self::RenameBeforeComplete,
        Self::DropFirst,
        Self::LeaveStaging,
        Self::TrustTotal,
        Self::FinishTwice,
        Self::NoSync,
        Self::TrustStamps,
        Self::TrustFingerprints,
        Self::NoLastLook,
        Self::IgnoreRefusal,
        Self::CutAnew,
        Self::VerifyNothing,
        Self::AnyTable,
        Self::TruncateAgain,
    ];
}
