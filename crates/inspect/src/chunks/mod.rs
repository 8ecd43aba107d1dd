//! Column chunks one by one: as records, and as lines for programs.

pub(crate) mod lines;
pub(crate) mod record;
pub(crate) mod sizes;
