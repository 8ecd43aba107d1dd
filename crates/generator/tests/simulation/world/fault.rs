//! The faults of a run, and the steps of a writer at which they happen.

/// A request of a writer to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    List,
    ListUploads,
    /// Reads a manifest or a mark.
    Read,
    /// Asks for the version of an object.
    Look,
    /// Reads a range of an object.
    ReadBack,
    /// Writes a manifest or a mark.
    WriteState,
    WriteObject,
    Begin,
    Part,
    Complete,
    Abort,
    Remove,
}

impl Step {
    pub const ALL: [Self; 12] = [
        Self::List,
        Self::ListUploads,
        Self::Read,
        Self::Look,
        Self::ReadBack,
        Self::WriteState,
        Self::WriteObject,
        Self::Begin,
        Self::Part,
        Self::Complete,
        Self::Abort,
        Self::Remove,
    ];

    /// Whether it changes something in the store.
    pub fn writes(self) -> bool {
        self as usize >= Self::WriteState as usize
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The connection breaks before the store has the request.
    CutBefore,
    /// The connection breaks, and the store carries out the request.
    CutAfter,
    /// The store refuses the request for now.
    Throttled,
    /// The connection breaks, and the store gets the request later.
    Late,
    /// The store gets the request twice, and the second answer arrives.
    Doubled,
    /// The writer is killed, before or after the store carries out its request.
    Killed,
    Cancelled,
    /// A second writer runs at once, perhaps with other options.
    Twice,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::CutBefore,
        Self::CutAfter,
        Self::Throttled,
        Self::Late,
        Self::Doubled,
        Self::Killed,
        Self::Cancelled,
        Self::Twice,
    ];

    /// Whether it can happen at a step. No store can tell a late removal from a new one.
    pub fn happens_at(self, step: Step) -> bool {
        match self {
            Self::Late => step.writes() && !matches!(step, Step::Abort | Step::Remove),
            Self::Doubled => step.writes(),
            Self::Twice => step == Step::List,
            _ => true,
        }
    }
}
