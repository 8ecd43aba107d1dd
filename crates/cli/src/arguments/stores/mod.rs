//! Stores that URLs on the command line name: their options, and the objects in them.

#[cfg_attr(not(feature = "full"), path = "../../demo_build/objects.rs")]
pub(crate) mod objects;
pub(crate) mod place_bytes;

use std::path::PathBuf;

use clap::Args;
pub(crate) use objects::Objects;
pub(crate) use place_bytes::PlaceBytes;
use sawmill_store::Confinement;

use crate::error::Result;

/// How to reach the stores that URLs name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StoreArgs {
    /// An option of the stores that URLs name: endpoint, region, path_style, anonymous, requester_pays, or
    /// any option of the crate object_store. Write env:NAME for the value of an environment variable; a secret
    /// must be in one. May be repeated. Needs the full build.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Stores")]
    pub store: Vec<String>,
    /// Read no file outside this folder or URL, whatever a link, a list or the log of a Delta table names. Without it,
    /// a Delta table in a store still cannot name files outside its bucket or on this machine.
    #[arg(long, value_name = "FOLDER", help_heading = "Input")]
    pub confine: Option<PathBuf>,
}

impl StoreArgs {
    /// The folder that files must be in, if there is one. Input files that are opened later are, too.
    pub(crate) fn confinement(&self) -> Result<Option<Confinement>> {
        let confinement = self.confine.as_deref().map(Confinement::to).transpose()?;
        confinement.iter().for_each(Confinement::confine_inputs);
        Ok(confinement)
    }
}
