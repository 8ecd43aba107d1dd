//! Deliberate mistakes: a simulation that does not find them would not find a real one either.

use sawmill_loader::Mode;

use super::fault::Fault;
use super::setting::{Repeated, Setting};

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
    /// A load is never recorded as complete.
    NeverComplete,
    /// The audit takes the tags on record for those of the table.
    TrustRecords,
    /// The table is placed with the column of its tags.
    KeepTags,
    /// The lease is not given back.
    KeepLease,
    /// Rows that are not on the disk are not flushed.
    NoFlush,
    /// The old table is dropped when its replacement begins.
    DropFirst,
    /// The table gets its name before its rows are audited.
    PlaceEarly,
    /// Rows of lost shards count as inserted.
    IgnoreLostShard,
    /// A batch that the server refuses for now counts as inserted.
    IgnoreRefusal,
    /// A batch without an answer counts as inserted.
    TrustLost,
}

impl Mistake {
    pub const ALL: [Self; 18] = [
        Self::SkipUnit,
        Self::TrustStamps,
        Self::TrustFingerprints,
        Self::NoLastLook,
        Self::NoRefresh,
        Self::LeaseForAll,
        Self::KeepRows,
        Self::CompleteEarly,
        Self::NeverComplete,
        Self::TrustRecords,
        Self::KeepTags,
        Self::KeepLease,
        Self::NoFlush,
        Self::DropFirst,
        Self::PlaceEarly,
        Self::IgnoreLostShard,
        Self::IgnoreRefusal,
        Self::TrustLost,
    ];

    /// Changes a setting to one in which the mistake matters more often.
    pub fn fit(self, setting: &mut Setting) {
        if self == Self::NoFlush {
            setting.asynchronous = setting.mode != Mode::Append;
        }
        // Rows with tags are counted, and sent again.
        if self == Self::TrustLost {
            (setting.repeated, setting.batch_rows) = (Repeated::RowKey, 1);
        }
    }

    /// Whether a batch that meets this fault counts as inserted.
    pub fn ignores(self, fault: Fault) -> bool {
        match self {
            Self::IgnoreLostShard => fault == Fault::LostShard,
            Self::IgnoreRefusal => matches!(fault, Fault::Unavailable | Fault::Busy),
            Self::TrustLost => fault == Fault::CutBefore,
            _ => false,
        }
    }
}
