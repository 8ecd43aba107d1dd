//! Memory that footers need: allocated fallibly, on huge pages, reused.

pub(crate) mod allocate;
pub(crate) mod pages;
pub(crate) mod spare;
