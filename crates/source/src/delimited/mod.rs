//! Delimited text, such as CSV and TSV, as a source.
//!
//! ```text
//! bytes ─ chunks, on all cores ─▶ in quotes or not? both are followed ─▶ resolved in order ─▶ marks: offset, rows before it
//! sample of the records ─▶ a type for each column        units of rows ─▶ nearest mark ─▶ records ─▶ fields ─▶ Arrow arrays
//! ```
//!
//! A newline ends a record only outside of quotes, and whether a byte is in quotes depends on all bytes
//! before it. [`boundaries`](records::boundaries) therefore follows both possibilities through each chunk, and
//! decides afterwards. From then on the number of records is known, and a unit is a range of them, as in
//! Parquet files.
//!
//! The records are split here and not by `csv-core`: it reports neither whether a field was quoted, which
//! separates an empty string from NULL, nor where a field begins, which every message names.

mod columns;
mod content;
mod files;
mod json;
mod reading;
mod records;
mod text_columns;
mod text_file;

pub use columns::column_type::ColumnType;
pub use columns::formats::{Formats, Moment, Pattern};
pub use columns::inference::InferredColumn;
pub use files::{DelimitedFiles, DelimitedOptions};
pub use reading::rejected::RejectedRecord;
pub use records::dialect::{Dialect, Ragged, RecordForm};
pub use records::proposal::ProposedOption;
pub use text_columns::TextColumns;
