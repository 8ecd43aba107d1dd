//! What the cluster knows of loads, and who may go on with one.

pub(crate) mod checkpoint;
pub(crate) mod forget;
pub(crate) mod lease;
pub(crate) mod remembered;
pub(crate) mod status;
