//! Table functions of SQL, with arguments by place and by name: `gen('orders', rows => 1e6)`.
//!
//! DataFusion's own table functions take arguments by place only. A planner of relations also sees the names.

pub(crate) mod arguments;
pub(crate) mod planner;
