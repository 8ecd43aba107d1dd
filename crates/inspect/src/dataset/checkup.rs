//! What would make files faster to read or smaller, with the command that does it: the finding that concerns the most bytes first.

use std::path::PathBuf;

use sawmill_footer::{Codec, ColumnChunk, ColumnOrder, Encoding, Footer, PageType, PhysicalType};
use serde::Serialize;

use crate::check::order::BoundsOf;
use crate::dataset::summary::FooterSummary;
use crate::dataset::totals::{LARGE_BYTES, SMALL_BYTES, SMALL_ROWS, lacks_bounds};
use crate::text::escape::escaped;
use crate::text::style::TextStyle;

/// A file below this size costs more to open than to read.
const SMALL_FILE: u64 = 16 << 20;
/// A chunk with more bytes has several pages, which a page index lets readers skip.
const SEVERAL_PAGES: i64 = 2 << 20;

/// A finding: the fault, its cost, and the remedy.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The fault.
    pub what: String,
    /// Its cost.
    pub cost: String,
    /// The command that mends it, or an advice.
    pub command: String,
    /// Bytes that it concerns, for files; their order.
    #[serde(skip)]
    weight: u64,
}

impl Finding {
    /// A finding that concerns no bytes.
    pub fn new(what: impl Into<String>, cost: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), cost: cost.into(), command: command.into(), weight: 0 }
    }
}

/// Items of one kind, and the bytes that they have.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: i64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(0));
    }
}

/// Adds up the footers of files. Its size does not depend on their number.
#[derive(Clone, Debug, Default)]
pub struct Checkup {
    files: u64,
    row_groups: u64,
    chunks: u64,
    bytes: u64,
    small_files: Sum,
    small_groups: Sum,
    large_groups: Sum,
    uncompressed: Sum,
    unbounded: Sum,
    unindexed: Sum,
    fallen_back: Sum,
    largest_fallen_back: FallenBack,
}

/// A column chunk whose dictionary grew too large.
#[derive(Clone, Debug, Default)]
struct FallenBack {
    bytes: i64,
    column: String,
    /// The encoding that suits its type.
    encoding: &'static str,
}

/// More inputs than these are named by a list.
const MAX_NAMED: usize = 8;

impl Checkup {
    /// Adds a file. Damage in a chunk hides only that chunk's facts; `--check` finds it.
    pub fn add(&mut self, summary: &FooterSummary, footer: &Footer) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(summary.compressed_bytes).unwrap_or(0));
        if let Some(bytes) = summary.file_bytes.filter(|bytes| *bytes < SMALL_FILE) {
            self.small_files.add(i64::try_from(bytes).unwrap_or(0));
        }
        let groups = footer.num_row_groups();
        for group in footer.row_groups() {
            self.row_groups += 1;
            let bytes = group.total_byte_size();
            let is_rest = group.index() + 1 == groups;
            if group.num_rows() < SMALL_ROWS && bytes < SMALL_BYTES && !is_rest {
                self.small_groups.add(bytes);
            } else if bytes > LARGE_BYTES {
                self.large_groups.add(bytes);
            }
            group.columns().filter(ColumnChunk::has_metadata).for_each(|chunk| self.chunk(&chunk));
        }
    }

    fn chunk(&mut self, chunk: &ColumnChunk<'_>) {
        self.chunks += 1;
        let bytes = chunk.compressed_size();
        if chunk.codec() == Codec::Uncompressed {
            self.uncompressed.add(bytes);
        }
        // Values without an order, such as intervals, have no bounds in any file.
        let ordered = || BoundsOf::column(&chunk.element(), Some(ColumnOrder::TypeOrder));
        if chunk.num_values() > 0
            && lacks_bounds(chunk).unwrap_or(false)
            && ordered().is_some_and(|bounds| bounds.has_order())
        {
            self.unbounded.add(bytes);
        }
        if bytes > SEVERAL_PAGES && matches!(chunk.offset_index_range(), Ok(None)) {
            self.unindexed.add(bytes);
        }
        let pages = chunk.details().ok().and_then(|details| details.encoding_stats).unwrap_or_default();
        let data = || pages.iter().filter(|pages| pages.page_type != PageType::DictionaryPage);
        let is_coded =
            |encoding: Encoding| matches!(encoding, Encoding::PlainDictionary | Encoding::RleDictionary);
        if data().any(|pages| is_coded(pages.encoding)) && data().any(|pages| !is_coded(pages.encoding)) {
            self.fallen_back.add(bytes);
            if self.largest_fallen_back.bytes < bytes {
                let encoding = match chunk.physical_type() {
                    PhysicalType::Float | PhysicalType::Double => "byte-stream-split",
                    PhysicalType::ByteArray | PhysicalType::FixedLenByteArray => "delta-bytearray",
                    _ => "delta",
                };
                self.largest_fallen_back = FallenBack { bytes, column: chunk.path(), encoding };
            }
        }
    }

    /// The findings about files at `inputs`, the greatest first.
    pub fn findings(&self, inputs: &[PathBuf], style: &TextStyle) -> Vec<Finding> {
        let named = inputs.iter().map(|input| quoted(&input.display().to_string()));
        let shown = match inputs.len() > MAX_NAMED {
            true => "@LIST".to_owned(),
            false => escaped(&named.collect::<Vec<_>>().join(" ")).into_owned(),
        };
        // Without a codec it would store pages as they are.
        let convert = |options: &str| format!("sawmill convert {shown} OUT{options} --compression zstd");
        let FallenBack { column, encoding, .. } = &self.largest_fallen_back;
        let of = |sum: Sum, all: u64, noun: &str| {
            format!("{} of {} {noun}", style.count(sum.count), style.count(all))
        };
        let kinds = [
            (
                self.small_files,
                self.files > 1 && self.small_files.count > 1,
                format!(
                    "{} are smaller than {}",
                    of(self.small_files, self.files, "files"),
                    style.bytes(SMALL_FILE)
                ),
                "opening a small file takes longer than reading it",
                convert("/ --file-size 256MiB"),
            ),
            (
                self.small_groups,
                true,
                format!(
                    "{} have fewer than {} rows",
                    of(self.small_groups, self.row_groups, "row groups"),
                    style.stated_count(SMALL_ROWS)
                ),
                "queries take 5 to 10 times as long, and the footer is larger",
                convert(" --row-group-rows 128k"),
            ),
            (
                self.large_groups,
                true,
                format!(
                    "{} have more than {} before compression",
                    of(self.large_groups, self.row_groups, "row groups"),
                    style.stated_bytes(LARGE_BYTES)
                ),
                "readers work on whole row groups: few threads have work, and each needs the memory",
                convert(" --row-group-rows 1M"),
            ),
            (
                self.uncompressed,
                self.uncompressed.bytes > 1 << 20,
                format!("{} are not compressed", of(self.uncompressed, self.chunks, "column chunks")),
                "more bytes to store and to read",
                convert(""),
            ),
            (
                self.unbounded,
                true,
                format!("{} have no bounds", of(self.unbounded, self.chunks, "column chunks")),
                "a condition on the column skips no row group",
                convert(""),
            ),
            (
                self.unindexed,
                true,
                format!(
                    "{} of several pages have no page index",
                    of(self.unindexed, self.chunks, "column chunks")
                ),
                "a condition skips whole row groups, but no pages",
                convert(""),
            ),
            (
                self.fallen_back,
                true,
                format!(
                    "the dictionary of {} grew too large",
                    of(self.fallen_back, self.chunks, "column chunks")
                ),
                "the values after it are stored plainly; fewer rows a row group, sorted rows or another encoding are smaller",
                convert(&format!(" --encoding {}", quoted(&format!("{column}={encoding}")))),
            ),
        ];
        let found = kinds.into_iter().filter(|(sum, counts, ..)| *counts && sum.count > 0);
        let mut findings: Vec<Finding> = found
            .map(|(sum, _, what, cost, command)| Finding {
                what: format!("{what} ({})", style.bytes(sum.bytes)),
                cost: cost.to_owned(),
                command,
                weight: sum.bytes,
            })
            .collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
        findings
    }

    /// The files and row groups that were looked at, in a line.
    pub fn looked_at(&self, style: &TextStyle) -> String {
        let [files, row_groups, chunks] =
            [(self.files, "file"), (self.row_groups, "row group"), (self.chunks, "column chunk")]
                .map(|(count, noun)| style.counted(count, noun));
        format!("{files}, {row_groups}, {chunks}, {} of pages", style.bytes(self.bytes))
    }
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=@%,".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
