//! Databases that statements fill, and loads as jobs.
//!
//! ```text
//! INSERT INTO pg.t SELECT ..    ─┐                      ┌─ PostgreSQL: one COPY in one transaction
//! CREATE TABLE crate.t AS ..    ─┼─▶ rows ─▶ InsertExec ┤
//! COPY (SELECT ..) TO pg.t      ─┘                      └─ CrateDB: bulk requests, one connection a partition
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `statement` | statements that fill a table |
//! | `copy` | `COPY .. TO table`, which DataFusion's parser does not take |
//! | `catalogue` | the tables of a server by their names |
//! | `table` | a table that takes rows |
//! | `insert` | the operator that inserts them |
//! | `partitions` | the partitions of a query, side by side, until one fails |
//! | `sink` | the operations of a database behind all that |
//! | `postgres`, `crate_db` | PostgreSQL (feature `postgres`) and CrateDB (feature `cratedb`) |
//! | `loads` | loads of files and generated rows as jobs (feature `cluster`) |

pub(crate) mod catalogue;
mod copy;
#[cfg(feature = "cratedb")]
pub(crate) mod crate_db;
pub(crate) mod insert;
#[cfg(feature = "cluster")]
pub(crate) mod loads;
mod partitions;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod sink;
pub(crate) mod statement;
pub(crate) mod table;
