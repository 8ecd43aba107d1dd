//! The summary: one line for each file, and their total.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sawmill_footer::Footer;
use serde::{Serialize, Serializer};

use crate::file::open_file::name_of;
use crate::text::escape::{clipped, escaped};
use crate::text::style::TextStyle;
use crate::text::table::Table;

/// What one line of a table states of a footer, and a few facts more.
#[derive(Clone, Debug, Serialize)]
pub struct FooterSummary {
    /// The file.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// The length of the whole file, if it is known.
    pub file_bytes: Option<u64>,
    /// The version of the format, as the writer states it.
    pub version: i32,
    /// Rows of the decoded row groups.
    pub rows: i64,
    /// Decoded row groups.
    pub row_groups: usize,
    /// Decoded columns.
    pub columns: usize,
    /// Bytes of the decoded column chunks, compressed.
    pub compressed_bytes: i64,
    /// Bytes of the decoded column chunks, before compression.
    pub uncompressed_bytes: i64,
    /// The length of the footer.
    pub footer_bytes: usize,
    /// The time to open the file, read the footer's bytes and decode them.
    pub decode_seconds: f64,
    /// The program that wrote the file.
    pub created_by: Option<String>,
    /// The codecs of the decoded column chunks, without repetition.
    pub codecs: Vec<String>,
}

/// Replaces bytes of names that are not UTF-8.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl FooterSummary {
    /// Opens a footer with `open`, timing it, and summarises it.
    ///
    /// # Errors
    ///
    /// Errors of `open`.
    pub fn new<E>(file: &Path, open: impl FnOnce() -> Result<Footer, E>) -> Result<(Self, Footer), E> {
        let started = Instant::now();
        let footer = open()?;
        let decode_seconds = started.elapsed().as_secs_f64();
        let (mut compressed, mut uncompressed) = (0i64, 0i64);
        let mut codecs = BTreeSet::new();
        let mut last_codec = None;
        for chunk in footer.row_groups().flat_map(|group| group.columns()) {
            compressed = compressed.saturating_add(chunk.compressed_size());
            uncompressed = uncompressed.saturating_add(chunk.uncompressed_size());
            if chunk.has_metadata() {
                let codec = chunk.codec();
                if last_codec.replace(codec) != Some(codec) {
                    codecs.insert(codec);
                }
            }
        }
        // The footer states the rows of the whole file: for a selection, add up the rows of its row groups.
        let rows = match footer.num_row_groups() == footer.num_row_groups_in_file() {
            true => footer.num_rows(),
            false => footer.row_groups().map(|group| group.num_rows()).fold(0, i64::saturating_add),
        };
        let summary = FooterSummary {
            file: file.to_owned(),
            file_bytes: footer.file_len(),
            version: footer.version(),
            rows,
            row_groups: footer.num_row_groups(),
            columns: footer.num_columns(),
            compressed_bytes: compressed,
            uncompressed_bytes: uncompressed,
            footer_bytes: footer.footer_len(),
            decode_seconds,
            created_by: footer.created_by().map(Cow::into_owned),
            codecs: codecs.iter().map(ToString::to_string).collect(),
        };
        Ok((summary, footer))
    }
}

/// The summaries as a table: one line for each file and, below several, a total.
pub fn summary_table(summaries: &[FooterSummary], style: &TextStyle) -> String {
    let mut table =
        Table::new("file, rows>, row groups>, columns>, compressed>, uncompressed>, footer>, decode>");
    let mut line = |name: &str, s: &FooterSummary, columns: &str| {
        table.row(&[
            &name,
            &style.stated_count(s.rows),
            &style.count(s.row_groups as u64),
            &columns,
            &style.stated_bytes(s.compressed_bytes),
            &style.stated_bytes(s.uncompressed_bytes),
            &style.bytes(s.footer_bytes as u64),
            &style.duration(Duration::from_secs_f64(s.decode_seconds)),
        ]);
    };
    for summary in summaries {
        line(&name_of(&summary.file), summary, &style.count(summary.columns as u64));
    }
    if let [first, rest @ ..] = summaries
        && !rest.is_empty()
    {
        let mut total = first.clone();
        for summary in rest {
            total.rows = total.rows.saturating_add(summary.rows);
            total.row_groups += summary.row_groups;
            total.compressed_bytes = total.compressed_bytes.saturating_add(summary.compressed_bytes);
            total.uncompressed_bytes = total.uncompressed_bytes.saturating_add(summary.uncompressed_bytes);
            total.footer_bytes += summary.footer_bytes;
            total.decode_seconds += summary.decode_seconds;
        }
        line(&format!("{} files", style.count(summaries.len() as u64)), &total, "");
    }
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = table.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes what the table leaves out of a single file: its writer, format version and codecs.
///
/// # Errors
///
/// Writing failed.
pub fn write_remarks(summary: &FooterSummary, out: &mut dyn Write) -> io::Result<()> {
    let codecs = match summary.codecs.as_slice() {
        [] => String::new(),
        [one] => format!(", codec {one}"),
        codecs => format!(", codecs {}", codecs.join(", ")),
    };
    let writer = match summary.created_by.as_deref().map(|writer| clipped(writer, 200)) {
        None => "created_by is not set".to_owned(),
        Some((writer, true)) => format!("written by {}…", escaped(writer)),
        Some((writer, false)) => format!("written by {}", escaped(writer)),
    };
    writeln!(out, "\n{writer}, format version {}{codecs}", summary.version)
}
