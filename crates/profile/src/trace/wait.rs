//! What a thread can wait for, as far as a report tells the kinds apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A bounded channel had no room: the stage behind it is slower.
    ChannelFull,
    /// A channel had nothing: the stage before it is slower.
    ChannelEmpty,
    /// The other end of a connection: the server, or the way to it.
    Network,
    /// A read, write or sync of a file.
    Disk,
    /// A lock that another thread held.
    Lock,
}

impl WaitKind {
    /// All kinds, in the order in which reports list them.
    pub const ALL: [Self; 5] = [Self::ChannelFull, Self::ChannelEmpty, Self::Network, Self::Disk, Self::Lock];

    /// The kind in a few words, as it stands in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::ChannelFull => "waited: channel full",
            Self::ChannelEmpty => "waited: channel empty",
            Self::Network => "waited: network",
            Self::Disk => "waited: disk",
            Self::Lock => "waited: lock",
        }
    }
}

impl fmt::Display for WaitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
