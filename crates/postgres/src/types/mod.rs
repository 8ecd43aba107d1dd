//! Types: the types of new columns, composite types and enumerations.

pub(crate) mod enumerations;
pub(crate) mod made_types;
pub(crate) mod sent_as_text;
pub(crate) mod server_type;
