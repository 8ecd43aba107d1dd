//! The faults of a run, and the steps of a loader at which they happen.

/// A step of a loader: a request to the server, or an access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    OpenSource,
    ReadSource,
    CheckSource,
    Connect,
    Lock,
    Remember,
    FindTable,
    FindRecord,
    CountRows,
    ReadUnits,
    MakeRoom,
    CreateTable,
    WriteRecord,
    CommitStart,
    RecordStamps,
    BeginUnits,
    Copy,
    RecordUnits,
    CommitUnits,
    AskUnit,
    AskAll,
    ReadTable,
    CheckLost,
    Replace,
    Rename,
    Complete,
    CommitFinish,
    Rollback,
}

impl Step {
    pub const ALL: [Self; 28] = [
        Self::OpenSource,
        Self::ReadSource,
        Self::CheckSource,
        Self::Connect,
        Self::Lock,
        Self::Remember,
        Self::FindTable,
        Self::FindRecord,
        Self::CountRows,
        Self::ReadUnits,
        Self::MakeRoom,
        Self::CreateTable,
        Self::WriteRecord,
        Self::CommitStart,
        Self::RecordStamps,
        Self::BeginUnits,
        Self::Copy,
        Self::RecordUnits,
        Self::CommitUnits,
        Self::AskUnit,
        Self::AskAll,
        Self::ReadTable,
        Self::CheckLost,
        Self::Replace,
        Self::Rename,
        Self::Complete,
        Self::CommitFinish,
        Self::Rollback,
    ];

    /// Whether it is a request to the server.
    pub fn is_request(self) -> bool {
        !matches!(self, Self::OpenSource | Self::ReadSource | Self::CheckSource)
    }

    pub fn commits(self) -> bool {
        matches!(self, Self::CommitStart | Self::CommitUnits | Self::CommitFinish)
    }

    /// Whether it needs room on the server's disk.
    pub fn writes(self) -> bool {
        self.commits()
            || matches!(self, Self::CreateTable | Self::WriteRecord | Self::Copy | Self::RecordUnits)
            || matches!(self, Self::RecordStamps | Self::Complete)
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The connection is cut before the server has the request.
    CutBefore,
    /// The connection is cut after the server has handled the request, and before its answer.
    CutAfter,
    /// The connection is cut, and the server commits later.
    RunsOn,
    /// The answer takes long.
    Late,
    /// The server crashes and recovers.
    Crash,
    /// The server crashes without its unsynced commits, or a lagging replica takes over.
    CrashLosing,
    /// The server refuses connections for a while.
    Refuses,
    /// The server has no room on its disk for a while.
    DiskFull,
    /// Another client drops, renames or alters the table that is written, or deletes one of its rows.
    Drops,
    Renames,
    Alters,
    Deletes,
    /// A file is overwritten: with the same footer, or with another; it becomes longer; it is removed.
    RewrittenAlike,
    Rewritten,
    Grows,
    Removed,
    /// The loader is killed, cancelled, or one of its threads panics.
    Killed,
    Cancelled,
    Panics,
    /// The clock jumps ahead.
    ClockJumps,
    /// The same command starts a second time while this one runs.
    Twice,
}

impl Fault {
    pub const ALL: [Self; 21] = [
        Self::CutBefore,
        Self::CutAfter,
        Self::RunsOn,
        Self::Late,
        Self::Crash,
        Self::CrashLosing,
        Self::Refuses,
        Self::DiskFull,
        Self::Drops,
        Self::Renames,
        Self::Alters,
        Self::Deletes,
        Self::RewrittenAlike,
        Self::Rewritten,
        Self::Grows,
        Self::Removed,
        Self::Killed,
        Self::Cancelled,
        Self::Panics,
        Self::ClockJumps,
        Self::Twice,
    ];

    /// Whether it can happen at a step.
    pub fn happens_at(self, step: Step) -> bool {
        match self {
            Self::CutBefore | Self::CutAfter | Self::Late => step.is_request(),
            Self::RunsOn => step.commits(),
            Self::DiskFull => step.writes(),
            Self::Twice => step == Step::OpenSource,
            _ => true,
        }
    }
}
