//! Presents results: tables for the terminal, HTML pages, flame graphs.

pub(crate) mod flamegraph;
pub(crate) mod html;
pub(crate) mod results_table;
pub(crate) mod svg;
pub(crate) mod sweep_table;
pub(crate) mod table;
pub(crate) mod whole_file;
