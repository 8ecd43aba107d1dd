//! The records of loads in the cluster, and the lease that lets one run continue a load.

pub(crate) mod checkpoint;
pub(crate) mod commands;
pub(crate) mod history;
pub(crate) mod lease;
pub(crate) mod shape;
pub(crate) mod stored_text;
pub(crate) mod void;
