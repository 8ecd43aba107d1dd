//! Column chunks one by one: as records, as lines for programs, and found by a saved index.

pub(crate) mod indexed;
pub(crate) mod lines;
pub(crate) mod record;
