//! What the footers of Parquet files state, for people and for programs.
//!
//! ```text
//! Footer ──▶ OpenFile ──View──▶ text, JSON
//!    │           └────────────▶ lines of NDJSON or CSV, one for each column chunk
//!    ├──▶ check_page_sizes ───▶ how much memory a decoder of pages may take
//!    ├──▶ FooterSummary ──────▶ a line of a table
//!    ├──▶ FooterDifference ───▶ how two files differ
//!    ├──▶ MergePlan ──────────▶ which small files to merge
//!    └──▶ Facts ──▶ Dataset ──▶ sums of many files, and unusual facts
//! ```
//!
//! ```
//! # let (path, mut out) = (std::path::Path::new("../../fixtures/foreign/pyarrow_plain.parquet"), Vec::new());
//! # let footer = sawmill_footer::Footer::open(path)?;
//! use sawmill_inspect::{OpenFile, TextStyle, View};
//!
//! let file = OpenFile::new(path, footer, TextStyle::default());
//! View::RowGroups.text(&file, &mut out)?;
//! serde_json::to_writer(&mut out, &View::Statistics.json(&file))?;
//! if let Some(fault) = file.into_fault() {
//!     eprintln!("{fault}");
//! }
//! # let out = String::from_utf8(out)?;
//! # assert!(out.starts_with("row group "), "{out}");
//! # assert!(out.contains("\"null_count\":"), "{out}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | room | content |
//! |---|---|
//! | `views` | one view in each file: schema, row groups, columns, statistics, page index and headers, sizes, dump, ... |
//! | `chunks` | column chunks one by one: records, NDJSON, CSV |
//! | `check` | what a footer contradicts: itself, its file, its page indexes |
//! | `pages` | the sizes, levels and checksums of pages, before a decoder sees them |
//! | `rewrite` | footers repaired, and footers alone, scrubbed |
//! | `dataset` | one file in a line, many files together, which to merge, how two files differ |
//! | `file` | what views share of an open file, and many files decoded in order |
//! | `text` | typed values, dates, tables, safe text for terminals, JSON while it is made |
//!
//! Nothing of a file is kept once its views are written: views write while they read. Anyone may have written
//! the names and values in a file, so text is escaped before it reaches a terminal. Numbers are exact digits
//! unless the caller's [`TextStyle`] shortens them.

mod check;
mod chunks;
mod dataset;
mod error;
mod file;
mod pages;
mod rewrite;
mod text;
mod views;

#[cfg(test)]
#[path = "../../footer/tests/footer/synthetic.rs"]
#[allow(dead_code, reason = "tests here need two of its three kinds of columns")]
mod synthetic;
#[cfg(test)]
#[path = "../../footer/src/interop/writer.rs"]
#[allow(dead_code, reason = "tests here need some of its methods")]
mod thrift_writer;

pub use check::{Inconsistency, check, check_file, consistent};
pub use chunks::lines::{CSV_HEADER, write_csv, write_ndjson};
pub use dataset::checkup::{Checkup, Finding};
pub use dataset::footer_difference::{ComparedParts, FooterDifference};
pub use dataset::merge_plan::MergePlan;
pub use dataset::summary::{FooterSummary, summary_table, write_remarks};
pub use dataset::totals::{Dataset, Facts};
pub use error::Error;
pub use file::column::Column;
pub use file::open_file::OpenFile;
pub use pages::chunks::{check_chunk_page_sizes, check_page_sizes};
pub use pages::limits::{DEFAULT_MAX_PAGE, LargestPages, PageLimits};
#[cfg(feature = "parquet-59")]
pub use pages::parquet_limits::page_limits_59;
pub use pages::reading::{CheckedPages, CorrectedHeaders, check_pages_within};
pub use rewrite::{Repair, Repaired, Repairs, repaired, scrubbed, write_file};
pub use text::escape::escaped;
pub use text::json::JsonSafe;
pub use text::narrow::NarrowLines;
pub use text::shown::TerminalSafe;
pub use text::style::TextStyle;
pub use views::check::CheckTotal;
pub use views::dictionary::DictionaryValues;
pub use views::dump::dump_undecoded;
pub use views::view::View;
