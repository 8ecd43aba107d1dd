//! Stores that URLs on the command line name: their options, and the objects in them.

#[cfg(feature = "full")]
pub(crate) mod objects;
pub(crate) mod place_bytes;

#[cfg(not(feature = "full"))]
pub(crate) use crate::demo_build::objects::Objects;
use clap::Args;
#[cfg(feature = "full")]
pub(crate) use objects::Objects;
pub(crate) use place_bytes::PlaceBytes;

/// How to reach the stores that URLs name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StoreArgs {
    /// An option of the stores that URLs name: endpoint, region, path_style, anonymous, requester_pays, and
    /// those of the crate object_store. Write env:NAME for the value of an environment variable; a secret
    /// must be in one. May be repeated. Needs the full build.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Stores")]
    pub store: Vec<String>,
}
