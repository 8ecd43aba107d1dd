//! What would make files faster to read or smaller, in order of gain, with the command that does it.

use std::path::PathBuf;
use std::sync::Arc;

use sawmill_footer::{Codec, ColumnChunk, ColumnOrder, Encoding, Footer, PageType, PhysicalType, Schema};
use serde::Serialize;

use crate::check::order::BoundsOf;
use crate::dataset::schema_difference::alike;
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
    /// The commands that mend it, one after the other, as they can be pasted.
    pub commands: Vec<String>,
    /// What else to know or to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

impl Finding {
    /// A finding with a remedy.
    pub fn new(what: impl Into<String>, cost: impl Into<String>, commands: &[&str], advice: &str) -> Self {
        let commands = commands.iter().map(|&command| command.to_owned()).collect();
        Self { what: what.into(), cost: cost.into(), commands, advice: advice.to_owned() }
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
    unsorted: Sum,
    schema: Option<Arc<Schema>>,
    schemas_differ: bool,
}

/// A column chunk whose dictionary grew too large.
#[derive(Clone, Debug, Default)]
struct FallenBack {
    bytes: i64,
    column: String,
    /// The encoding that suits its type.
    encoding: &'static str,
}

/// What is wrong with some of the items, and the option of `sawmill convert` that mends it.
struct Fault {
    sum: Sum,
    what: String,
    cost: &'static str,
    option: String,
}

/// With fewer row groups, order skips little.
const MANY_GROUPS: usize = 4;

impl Checkup {
    /// Adds a file. Damage in a chunk hides only that chunk's facts; `--check` finds it.
    pub fn add(&mut self, summary: &FooterSummary, footer: &Footer) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(u64::try_from(summary.compressed_bytes).unwrap_or(0));
        if let Some(bytes) = summary.file_bytes.filter(|bytes| *bytes < SMALL_FILE) {
            self.small_files.add(i64::try_from(bytes).unwrap_or(0));
        }
        match &self.schema {
            Some(first) => self.schemas_differ |= !alike(first, footer.schema()),
            None => self.schema = Some(footer.shared_schema()),
        }
        if is_unsorted(footer) {
            self.unsorted.add(summary.compressed_bytes);
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

    /// The findings about files at `inputs`, in order of gain. One command mends all that a command can mend.
    pub fn findings(&self, inputs: &[PathBuf], style: &TextStyle) -> Vec<Finding> {
        let of_files = self.of_files(style).into_iter().chain(self.of_chunks(style));
        let found: Vec<Fault> = of_files.filter(|fault| fault.sum.count > 0).collect();
        let (commands, advice) = match self.schemas_differ {
            false => (vec![command(inputs, &found)], ""),
            true => (Vec::new(), "the columns of the files differ: look at those of each schema alone"),
        };
        let finding = |fault: Fault| Finding {
            what: format!("{} ({})", fault.what, style.bytes(fault.sum.bytes)),
            cost: fault.cost.to_owned(),
            commands: commands.clone(),
            advice: advice.to_owned(),
        };
        let mut findings: Vec<Finding> = found.into_iter().map(finding).collect();
        if self.unsorted.count > 0 {
            let files = out_of(style, self.unsorted, self.files, "files");
            let are = if self.unsorted.count == 1 { "is" } else { "are" };
            findings.push(Finding::new(
                format!("{files} {are} sorted by no column ({})", style.bytes(self.unsorted.bytes)),
                "the ranges of their row groups overlap: a condition skips few of them",
                &[],
                "sort by the column of most conditions: sawmill convert --sort-by COLUMN",
            ));
        }
        findings
    }

    /// The faults of the sizes of files and row groups, in order of gain.
    fn of_files(&self, style: &TextStyle) -> [Fault; 3] {
        let [small, large] = [self.small_groups, self.large_groups];
        let groups = |sum| out_of(style, sum, self.row_groups, "row groups");
        let several = self.files > 1 && self.small_files.count > 1;
        let small_files = Some(self.small_files).filter(|_| several).unwrap_or_default();
        let files = out_of(style, small_files, self.files, "files");
        [
            Fault {
                sum: small,
                what: format!("{} have fewer than {} rows", groups(small), style.stated_count(SMALL_ROWS)),
                cost: "queries take 5 to 10 times as long, and the footer is larger",
                option: " --row-group-rows 128k".to_owned(),
            },
            Fault {
                sum: small_files,
                what: format!("{files} are smaller than {}", style.bytes(SMALL_FILE)),
                cost: "opening a small file takes longer than reading it",
                option: " --file-size 256MiB".to_owned(),
            },
            Fault {
                sum: large,
                what: format!(
                    "{} have more than {} before compression",
                    groups(large),
                    style.stated_bytes(LARGE_BYTES)
                ),
                cost: "readers work on whole row groups: few threads have work, and each needs the memory",
                option: " --row-group-rows 1M".to_owned(),
            },
        ]
    }

    /// The faults of column chunks, in order of gain.
    fn of_chunks(&self, style: &TextStyle) -> [Fault; 4] {
        let chunks = |sum| out_of(style, sum, self.chunks, "column chunks");
        let fault = |sum, what, cost| Fault { sum, what, cost, option: String::new() };
        let plain = Some(self.uncompressed).filter(|sum| sum.bytes > 1 << 20).unwrap_or_default();
        let FallenBack { column, encoding, .. } = &self.largest_fallen_back;
        [
            fault(
                self.unbounded,
                format!("{} have no bounds", chunks(self.unbounded)),
                "a condition on the column skips no row group",
            ),
            fault(
                self.unindexed,
                format!("{} of several pages have no page index", chunks(self.unindexed)),
                "a condition skips whole row groups, but no pages",
            ),
            fault(plain, format!("{} are not compressed", chunks(plain)), "more bytes to store and to read"),
            Fault {
                sum: self.fallen_back,
                what: format!("the dictionary of {} grew too large", chunks(self.fallen_back)),
                cost: "the values after it are stored plainly; fewer rows a row group, sorted rows or another encoding are smaller",
                option: format!(" --encoding {}", quoted(&format!("{column}={encoding}"))),
            },
        ]
    }

    /// The files and row groups that were looked at, in a line.
    pub fn looked_at(&self, style: &TextStyle) -> String {
        let [files, row_groups, chunks] =
            [(self.files, "file"), (self.row_groups, "row group"), (self.chunks, "column chunk")]
                .map(|(count, noun)| style.counted(count, noun));
        format!("{files}, {row_groups}, {chunks}, {} of pages", style.bytes(self.bytes))
    }
}

fn out_of(style: &TextStyle, sum: Sum, all: u64, noun: &str) -> String {
    format!("{} of {} {noun}", style.count(sum.count), style.count(all))
}

/// The command that mends all faults of the files at `inputs`.
fn command(inputs: &[PathBuf], found: &[Fault]) -> String {
    let named: Vec<String> = inputs.iter().map(|input| quoted(&input.display().to_string())).collect();
    let mut options = String::new();
    for Fault { option, .. } in found {
        let name = option.split(' ').nth(1).unwrap_or_default();
        // Small row groups come before large ones.
        if !options.contains(name) {
            options += option;
        }
    }
    let folder = if options.contains("--file-size") { "/" } else { "" };
    // Without a codec it would store pages as they are.
    format!("sawmill convert {} OUT{folder}{options} --compression zstd", escaped(&named.join(" ")))
}

/// The bounds of a column in the row groups so far.
struct Ranges<'f> {
    order: BoundsOf,
    last: (&'f [u8], &'f [u8]),
    varies: bool,
    rises: bool,
    falls: bool,
}

impl<'f> Ranges<'f> {
    fn new(chunk: ColumnChunk<'f>) -> Option<Self> {
        let order = BoundsOf::column(&chunk.element(), Some(ColumnOrder::TypeOrder))?;
        let last = bounds(&chunk).filter(|_| order.has_order())?;
        Some(Self { order, last, varies: last.0 != last.1, rises: true, falls: true })
    }
}

fn bounds<'f>(chunk: &ColumnChunk<'f>) -> Option<(&'f [u8], &'f [u8])> {
    let found = chunk.statistics().ok().flatten()?;
    found.min_value.zip(found.max_value)
}

/// Whether a file of many row groups has bounds, but no column whose ranges follow each other.
fn is_unsorted(footer: &Footer) -> bool {
    let mut groups = footer.row_groups();
    let Some(first) = groups.next().filter(|_| footer.num_row_groups() >= MANY_GROUPS) else { return false };
    let mut columns: Vec<Option<Ranges<'_>>> = first.columns().map(Ranges::new).collect();
    for group in groups {
        for (chunk, column) in group.columns().zip(&mut columns) {
            let Some(ranges) = column else { continue };
            let Some((lower, upper)) = bounds(&chunk) else {
                *column = None;
                continue;
            };
            ranges.varies |= (lower, upper) != ranges.last;
            ranges.rises &= !ranges.order.crossed(ranges.last.1, lower);
            ranges.falls &= !ranges.order.crossed(upper, ranges.last.0);
            ranges.last = (lower, upper);
        }
    }
    let mut varying = columns.iter().flatten().filter(|ranges| ranges.varies).peekable();
    varying.peek().is_some() && varying.all(|ranges| !ranges.rises && !ranges.falls)
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    // It would be an option.
    let word = if word.starts_with('-') { format!("./{word}") } else { word.to_owned() };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=@%,".contains(c);
    if word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
