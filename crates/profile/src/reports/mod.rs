//! Presents results: tables for the terminal, HTML pages, flame graphs.
//!
//! ```text
//! results ─▶ bench ─┐
//!                   ├─▶ charts ─▶ page: one design, light and dark, wide and narrow
//! load tests ───────┘
//! ```

pub(crate) mod bench;
pub(crate) mod chart;
pub(crate) mod distinct;
pub(crate) mod flamegraph;
pub(crate) mod page;
pub(crate) mod results_table;
pub(crate) mod sweep_table;
pub(crate) mod table;
pub(crate) mod whole_file;
