//! The records of loads in the cluster, and the lease that lets one run continue a load.

pub(crate) mod checkpoint;
pub(crate) mod forget;
pub(crate) mod history;
pub(crate) mod lease;
pub(crate) mod prune;
pub(crate) mod shape;
pub(crate) mod status;
pub(crate) mod stored_text;
pub(crate) mod void;
