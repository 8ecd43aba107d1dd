//! Page indexes: located through the footer and decoded into shared tables.

pub(crate) mod entries;
pub(crate) mod indexes;
pub(crate) mod locations;
pub(crate) mod read;
pub(crate) mod runs;
pub(crate) mod tables;
pub(crate) mod usual;
