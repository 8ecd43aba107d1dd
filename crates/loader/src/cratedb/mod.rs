//! CrateDB as a target: every row accounted for, and exactly once where rows have a key.
//!
//! | room | what it does |
//! |---|---|
//! | [`connect`] | HTTP, the PostgreSQL wire, TLS, and waiting for a cluster that restarts |
//! | [`table`] | names, the catalogue, types, and whether a source's values fit the columns |
//! | [`encode`] | Arrow batches as JSON rows and, for the PostgreSQL wire, as binary arrays |
//! | [`mod@write`] | blocks sent, and an account of every row |
//! | [`records`] | what the cluster knows of loads, and who may go on with one |
//! | [`mod@verify`] | the table read back in pages, and rows compared by their keys |
//!
//! A [`session`] decides what there is to do and puts the finished table in its place. CrateDB has no
//! transactions: a primary key makes it harmless to repeat a batch.

pub(crate) mod connect;
pub(crate) mod encode;
mod explain;
mod options;
pub(crate) mod records;
mod session;
pub(crate) mod table;
pub(crate) mod target;
mod verify;
pub(crate) mod write;

pub use connect::address::CrateServer;
pub use explain::{CrateExplanation, ExplainedColumn};
pub use options::{Binary, CrateOptions, Dates, LongText, Objects, Times, Timestamps, Transport};
pub use records::status::crate_status;
pub use target::{CrateDb, unnest_blocks};
