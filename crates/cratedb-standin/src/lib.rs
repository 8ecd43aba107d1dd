//! A strict stand-in for a CrateDB cluster, inside the process of a test.
//!
//! It supports `POST /_sql` and as much of the PostgreSQL wire protocol as UNNEST needs, keeps rows in
//! memory, and treats them like the real 6.4.3, including silent losses: rows that return -2 with or without
//! a reason, whole requests rejected with 400, numbers that wrap around or are truncated, extra values that
//! are ignored. Unknown statements are syntax errors. Faults are planned batch by batch.
//!
//! ```text
//!  POST /_sql  ─▶ http ─┐
//!                       ├─▶ sql ─▶ store ─▶ types
//!  PostgreSQL  ─▶ pg ───┘          (rows in memory, converted as the real server does)
//!  protocol       fault: what goes wrong with which batch
//! ```
//!
//! ```
//! use sawmill_cratedb_standin::{Fault, StandIn};
//!
//! let cluster = StandIn::start(1);
//! cluster.faults().plan([None, Some(Fault::DropAfter)]);
//! assert!(cluster.url().starts_with("crate://127.0.0.1:"));
//! ```

mod cluster;
mod fault;
mod http;
mod json;
mod pg;
mod row_cost;
mod served;
mod sql;
mod stand_in;
mod store;
mod types;

pub use fault::{Fault, Faults, Hold};
pub use served::{Request, Served, Work};
pub use stand_in::StandIn;
pub use store::Engine;
