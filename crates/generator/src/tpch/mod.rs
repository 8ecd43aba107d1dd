//! The eight tables of TPC-H: the rows of the crate `tpchgen`, pages written by ours.
//!
//! (TPC Benchmark H, revision 3.0.1, sections 1.4 and 4.2.) The columns of line items
//! and orders, nine tenths of the rows, and all comments are drawn by our own code, the other columns by `tpchgen`;
//! every row equals `tpchgen`'s. Columns with few distinct values (dates, flags, quantities) are stored as indices
//! of a sorted dictionary that is known in advance.
//!
//! Comments are cut from 300 MiB of text, which [`text`] makes block by block as they need it.

mod columns;
mod line_items;
mod lists;
mod orders;
mod tables;
mod text;

use crate::benchmark::columns::Column;
use crate::shred::row_maker::RowMaker;

/// The names of all tables, each after the tables that it refers to.
pub(crate) const TABLES: [&str; 8] =
    ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"];

/// The columns of one of [`TABLES`] at a scale factor, the number of its rows, and their maker.
pub(crate) fn table(table: &str, scale: f64) -> (Vec<Column>, u64, Box<dyn RowMaker>) {
    let (rows, maker) = tables::maker(table, scale);
    (columns::columns(table), rows, maker)
}
