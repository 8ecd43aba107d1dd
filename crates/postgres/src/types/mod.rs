//! Types: what a column becomes, composites and enumerations, values that PostgreSQL cannot hold.

pub(crate) mod enumerations;
pub(crate) mod made_types;
pub(crate) mod natural;
