//! The kinds of waits that a report distinguishes.

use serde::{Deserialize, Serialize};

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A bounded channel was full: the next stage is slower.
    ChannelFull,
    /// A channel was empty: the previous stage is slower.
    ChannelEmpty,
    /// The server at the other end of a connection, or the network.
    Network,
    /// A read, write or sync of a file.
    Disk,
    /// A lock held by another thread.
    Lock,
}

impl WaitKind {
    /// All kinds, in report order.
    pub const ALL: [Self; 5] = [Self::ChannelFull, Self::ChannelEmpty, Self::Network, Self::Disk, Self::Lock];

    /// The kind as a short label for reports.
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
