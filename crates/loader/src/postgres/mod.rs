//! PostgreSQL as a target: binary COPY over several connections, exactly once.
//!
//! | room | what it does |
//! |---|---|
//! | [`connect`] | addresses, TLS, sockets, what servers answer, and which server it is |
//! | [`table`] | names, the catalogue, how columns fit together, how tables are made and replaced |
//! | [`types`] | what a column becomes; composites and enumerations |
//! | [`copy_binary`], [`jsonb`] | Arrow batches as rows of binary COPY, nested values as jsonb |
//! | [`mod@write`] | COPY and the units' records in one transaction, directly or through part tables |
//! | [`records`] | what the server knows of loads, and whether the tables still hold it |
//! | [`partition`] | which row groups have rows of which partitions; the source read partition by partition |
//! | [`nested`] | a nested source as several tables |
//! | [`rejected`] | rejected rows and records |
//! | [`mod@verify`] | the table read back, summed up, and compared with the source |
//!
//! A [`session`] decides what there is to do and puts the finished table in its place.

pub(crate) mod encode;
pub(crate) mod nested;
pub(crate) mod partition;
pub(crate) mod records;
pub(crate) mod rejected;
mod session;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod types;
mod verify;
pub(crate) mod write;

pub use crate::pgcopy::types::value_options::{Enums, Nanoseconds, Nul, ValueOptions};
pub use crate::pgwire::address::server::Server;
pub use nested::child_tables::{OfTable, PostgresTables};
pub use partition::by::PartitionBy;
pub use partition::survey::{Partitions, Survey};
pub use records::forget::forget;
pub use records::status::status;
pub use session::rehearsal::Rehearsal;
pub use table::new_table::TableKind;
pub use target::{Postgres, Strategy};
pub use types::natural::Nested;
pub use verify::compare::verify;
pub use verify::content::content;
