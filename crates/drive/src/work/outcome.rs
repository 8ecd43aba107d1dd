//! The outcomes of operations.

/// The outcome of an operation. No failed operation is an `Ok`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ended well, and wrote or read this many rows.
    Ok(u64),
    /// It failed.
    Failed(Failure),
}

/// The kind of an operation that was never sent: no connection was free until the run ended.
pub(crate) const UNSTARTED: &str = "unstarted";
/// The kind of an operation that was never sent: there was no earlier row to choose.
pub(crate) const NO_ROW: &str = "no-row";

/// The kind of an operation whose statement read nothing that its variables can have.
const VARIABLE: &str = "variable";
/// The kind of an operation with a wrong answer.
pub(crate) const CHECK: &str = "check";

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// An SQLSTATE, `crate-4000`, `timeout`, `lost`, `connect`, `check`, `variable` or `no-row`.
    pub kind: String,
    /// The server's message.
    pub message: String,
    /// Whether the operation certainly had no effect.
    pub without_effect: bool,
}

impl Failure {
    pub(crate) fn new(kind: impl Into<String>, message: impl Into<String>, without_effect: bool) -> Self {
        Self { kind: kind.into(), message: message.into(), without_effect }
    }

    /// A statement that did not read one value of the right type for each of its variables.
    pub(crate) fn variable(message: impl Into<String>) -> Self {
        Self::new(VARIABLE, message, false)
    }

    /// Whether the connection can be used further: the server has answered, and its session continues.
    pub(crate) fn keeps_connection(&self) -> bool {
        self.without_effect || [CHECK, VARIABLE].contains(&self.kind.as_str())
    }
}

impl Outcome {
    /// Whether it ended well.
    pub(crate) fn is_ok(&self) -> bool {
        matches!(self, Self::Ok(_))
    }

    /// An operation that found no earlier row to work on.
    pub(crate) fn no_row() -> Self {
        let message = "no earlier row could be chosen: give the table `rows`, or operations that insert";
        Self::Failed(Failure::new(NO_ROW, message, true))
    }
}

impl From<Result<u64, Failure>> for Outcome {
    fn from(done: Result<u64, Failure>) -> Self {
        done.map_or_else(Self::Failed, Self::Ok)
    }
}

/// A change of a row, to be settled when its outcome is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    Update,
    Delete,
    /// A custom statement inserts it.
    OwnInsert,
    /// A custom statement gives it other values.
    OwnUpdate,
    /// A custom statement uses its number without declaring a write.
    Outside,
}
