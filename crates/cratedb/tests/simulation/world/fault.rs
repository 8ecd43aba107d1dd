//! The faults of a run, and the steps of a loader at which they happen.

use sawmill_cratedb_standin::Request;

/// A step of a loader: a request to the server, or an access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    OpenSource,
    ReadSource,
    CheckSource,
    Connect,
    AskServer,
    AskCatalogue,
    AskJobs,
    Kill,
    CreateRecords,
    ReadRecords,
    RefreshRecords,
    RecordLoad,
    RecordRuns,
    RecordUnits,
    RecordPlacing,
    RecordComplete,
    ForgetRecords,
    TakeLease,
    ReadLease,
    Beat,
    GiveLeaseBack,
    CreateTable,
    DropTable,
    Insert,
    Refresh,
    Count,
    ReadTable,
    RemoveRows,
    Flush,
    Seal,
    Unseal,
    DropTags,
    Place,
}

/// The steps of a statement that begins with a word: texts in it, the first of which decides.
const STATEMENTS: [(&str, &[(&str, Step)]); 11] = [
    ("CREATE ", &[("\"sawmill\".", Step::CreateRecords), ("", Step::CreateTable)]),
    ("DROP ", &[("", Step::DropTable)]),
    (
        "ALTER ",
        &[
            ("SWAP TABLE", Step::Place),
            ("RENAME TO \"rows\"", Step::Place),
            ("RENAME TO \"rows__sawmill_sealed\"", Step::Seal),
            ("RENAME TO ", Step::Unseal),
            ("DROP COLUMN", Step::DropTags),
            ("", Step::CreateRecords),
        ],
    ),
    (
        "INSERT ",
        &[
            ("\"leases\"", Step::TakeLease),
            ("\"sawmill\".\"units\"", Step::RecordUnits),
            ("\"sawmill\".", Step::RecordLoad),
            ("", Step::Insert),
        ],
    ),
    (
        "UPDATE ",
        &[("\"leases\"", Step::Beat), ("\"state\" = ?", Step::RecordPlacing), ("", Step::RecordRuns)],
    ),
    (
        "DELETE ",
        &[("\"leases\"", Step::GiveLeaseBack), ("\"sawmill\".", Step::ForgetRecords), ("", Step::RemoveRows)],
    ),
    ("REFRESH ", &[("\"sawmill\".", Step::RefreshRecords), ("", Step::Refresh)]),
    ("OPTIMIZE ", &[("", Step::Flush)]),
    ("KILL ", &[("", Step::Kill)]),
    ("SHOW ", &[("", Step::AskCatalogue)]),
    (
        "SELECT ",
        &[
            ("sys.jobs", Step::AskJobs),
            ("information_schema", Step::AskCatalogue),
            ("\"leases\"", Step::ReadLease),
            ("\"sawmill\".", Step::ReadRecords),
            ("count(*)", Step::Count),
            ("\"doc\".", Step::ReadTable),
            ("", Step::AskServer),
        ],
    ),
];

impl Step {
    pub const ALL: [Self; 33] = [
        Self::OpenSource,
        Self::ReadSource,
        Self::CheckSource,
        Self::Connect,
        Self::AskServer,
        Self::AskCatalogue,
        Self::AskJobs,
        Self::Kill,
        Self::CreateRecords,
        Self::ReadRecords,
        Self::RefreshRecords,
        Self::RecordLoad,
        Self::RecordRuns,
        Self::RecordUnits,
        Self::RecordPlacing,
        Self::RecordComplete,
        Self::ForgetRecords,
        Self::TakeLease,
        Self::ReadLease,
        Self::Beat,
        Self::GiveLeaseBack,
        Self::CreateTable,
        Self::DropTable,
        Self::Insert,
        Self::Refresh,
        Self::Count,
        Self::ReadTable,
        Self::RemoveRows,
        Self::Flush,
        Self::Seal,
        Self::Unseal,
        Self::DropTags,
        Self::Place,
    ];

    /// The step of a request, by its statement.
    pub fn of(request: &Request) -> Self {
        let statement = request.statement();
        let of_word = STATEMENTS.iter().find(|(word, _)| statement.starts_with(word));
        let steps = of_word.map_or(&[] as &[_], |(_, steps)| *steps);
        match steps.iter().find(|(text, _)| statement.contains(text)) {
            Some((_, Self::RecordPlacing)) if request.has_argument("complete") => Self::RecordComplete,
            Some((_, step)) => *step,
            None => Self::AskServer,
        }
    }

    /// Whether it is a request to the server.
    pub fn is_request(self) -> bool {
        !matches!(self, Self::OpenSource | Self::ReadSource | Self::CheckSource | Self::Connect)
    }

    /// Whether it changes something at the server.
    pub fn writes(self) -> bool {
        self.is_request()
            && !matches!(self, Self::AskServer | Self::AskCatalogue | Self::AskJobs | Self::ReadRecords)
            && !matches!(self, Self::ReadLease | Self::Count | Self::ReadTable)
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The connection is cut while the request is sent.
    CutSending,
    /// The connection is cut, and the server never has the request.
    CutBefore,
    /// The connection is cut when some rows are in, and the others never come.
    CutBetween,
    /// The connection is cut at some byte of the answer.
    CutAfter,
    /// The connection is cut, and the server goes on with the request for a while.
    RunsOn,
    /// The connection is cut, and the server has the request later.
    ArrivesLate,
    /// The answer takes long: the server works, or the network is slow.
    Late,
    /// The request is delivered twice, and the second answer arrives.
    Doubled,
    /// The request is answered, and delivered once more later.
    Echo,
    /// The server refuses the request: 503, or 429.
    Unavailable,
    Busy,
    /// Some or all rows are refused, because their shards are lost.
    LostShard,
    /// The node crashes and recovers; without rows that are not on its disk.
    Crash,
    /// The server refuses connections for a while.
    Refuses,
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
    /// All clocks jump ahead, or the wall clock jumps.
    ClockJumps,
    /// The same command starts a second time while this one runs.
    Twice,
}

impl Fault {
    pub const ALL: [Self; 27] = [
        Self::CutSending,
        Self::CutBefore,
        Self::CutBetween,
        Self::CutAfter,
        Self::RunsOn,
        Self::ArrivesLate,
        Self::Late,
        Self::Doubled,
        Self::Echo,
        Self::Unavailable,
        Self::Busy,
        Self::LostShard,
        Self::Crash,
        Self::Refuses,
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
            Self::CutSending | Self::CutBefore | Self::CutAfter | Self::Late => step.is_request(),
            Self::Unavailable | Self::Busy => step.is_request(),
            Self::RunsOn | Self::Doubled => step.writes(),
            Self::ArrivesLate | Self::Echo | Self::CutBetween | Self::LostShard => step == Step::Insert,
            Self::Twice => step == Step::OpenSource,
            _ => true,
        }
    }

    /// Whether it decides what becomes of a request.
    pub fn is_of_request(self) -> bool {
        (self as usize) <= Self::LostShard as usize
    }
}
