//! Delimited text, such as CSV and TSV, as a source.
//!
//! ```text
//! bytes ─ chunks, on all cores ─▶ in quotes or not? both are followed ─▶ resolved in order ─▶ marks: offset, rows before it
//! sample of the records ─▶ a type for each column        units of rows ─▶ nearest mark ─▶ records ─▶ fields ─▶ Arrow arrays
//! ```
//!
//! A newline ends a record only outside of quotes, and whether a byte is in quotes depends on all bytes
//! before it. [`boundaries`] therefore follows both possibilities through each chunk, and decides afterwards.
//! From then on the number of records is known, and a unit is a range of them, as in Parquet files.
//!
//! The records are split here and not by `csv-core`: it reports neither whether a field was quoted, which
//! separates an empty string from NULL, nor where a field begins, which every message names.

mod addressed;
mod arrays;
mod boundaries;
mod column_type;
mod content;
mod cursor;
mod dialect;
mod files;
mod formats;
mod gather;
mod header;
mod inference;
mod json;
mod place;
mod reader;
mod rejected;
mod splitter;
mod text_file;

pub use column_type::ColumnType;
pub use dialect::{Dialect, Ragged, RecordForm};
pub use files::{DelimitedFiles, DelimitedOptions};
pub use formats::{Formats, Moment, Pattern};
pub use inference::InferredColumn;
pub use rejected::RejectedRecord;
