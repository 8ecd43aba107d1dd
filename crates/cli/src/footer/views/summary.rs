//! The summary: a line a file, and their sum.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sawmill_footer::{Footer, Options};
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::footer::files::open_file::name_of;
use crate::footer::text::escape::{Left, Right, Table, clipped, escaped};
use crate::screen::phases::{bytes, seconds, thousands};

/// One file's footer, summarised.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FooterSummary {
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// Bytes of the whole file, where they are known.
    pub file_bytes: Option<u64>,
    /// The version of the format that the writer states.
    pub version: i32,
    pub rows: i64,
    pub row_groups: usize,
    pub columns: usize,
    /// Bytes of all column chunks, as stored and as encoded before compression.
    pub compressed_bytes: i64,
    pub uncompressed_bytes: i64,
    pub footer_bytes: usize,
    /// Opening the file, reading the footer's bytes and decoding them.
    pub decode_seconds: f64,
    pub created_by: Option<String>,
    /// The codecs that occur.
    pub codecs: Vec<String>,
}

/// Names that are no UTF-8 are shown as nearly as can be.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Decodes the footer of one file.
pub(crate) fn summarise(file: &Path) -> Result<FooterSummary, Error> {
    decode(file, &Options::new()).map(|(summary, _)| summary).map_err(Error::from)
}

/// Decodes what `options` ask for of the footer of one file.
pub(crate) fn decode(
    file: &Path,
    options: &Options,
) -> Result<(FooterSummary, Footer), sawmill_footer::Error> {
    summarised(file, || Footer::open_with(file, options))
}

/// As [`decode`], with the footer mapped from the file.
#[cfg(all(unix, target_pointer_width = "64"))]
pub(crate) fn decode_mapped(
    file: &Path,
    options: &Options,
) -> Result<(FooterSummary, Footer), sawmill_footer::Error> {
    // SAFETY: who asks for `--mapped` vouches for the files, as its help says.
    summarised(file, || unsafe { Footer::open_mapped(file, options) })
}

fn summarised(
    file: &Path,
    open: impl FnOnce() -> Result<Footer, sawmill_footer::Error>,
) -> Result<(FooterSummary, Footer), sawmill_footer::Error> {
    let started = Instant::now();
    let footer = open()?;
    let decode_seconds = started.elapsed().as_secs_f64();
    let (mut compressed, mut uncompressed) = (0i64, 0i64);
    let mut codecs = BTreeSet::new();
    let mut last_codec = None;
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        compressed = compressed.saturating_add(chunk.compressed_size());
        uncompressed = uncompressed.saturating_add(chunk.uncompressed_size());
        if chunk.has_metadata() && last_codec.replace(chunk.codec()) != Some(chunk.codec()) {
            codecs.insert(chunk.codec());
        }
    }
    // Of a selection of row groups, the rows of these.
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

/// The summaries as a table, with a total below more than one.
pub(crate) fn table_of(summaries: &[FooterSummary]) -> String {
    let mut table = Table::new(&[
        ("file", Left),
        ("rows", Right),
        ("row groups", Right),
        ("columns", Right),
        ("compressed", Right),
        ("uncompressed", Right),
        ("footer", Right),
        ("decode", Right),
    ]);
    let mut line = |name: &str, s: &FooterSummary, columns: &str| {
        table.row(&[
            &name,
            &count(s.rows),
            &thousands(s.row_groups as u64),
            &columns,
            &size(s.compressed_bytes),
            &size(s.uncompressed_bytes),
            &bytes(s.footer_bytes as u64),
            &seconds(Duration::from_secs_f64(s.decode_seconds)),
        ]);
    };
    for summary in summaries {
        line(&name_of(&summary.file), summary, &thousands(summary.columns as u64));
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
        line(&format!("{} files", thousands(summaries.len() as u64)), &total, "");
    }
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = table.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// What a single file says of itself beyond the table.
pub(crate) fn write_remarks(summary: &FooterSummary, out: &mut dyn Write) -> io::Result<()> {
    let (writer, more) = clipped(summary.created_by.as_deref().unwrap_or("nobody who says so"), 200);
    let codecs = match summary.codecs.as_slice() {
        [] => String::new(),
        [one] => format!(", codec {one}"),
        codecs => format!(", codecs {}", codecs.join(", ")),
    };
    let more = if more { "…" } else { "" };
    writeln!(out, "\nwritten by {}{more}, format version {}{codecs}", escaped(writer), summary.version)
}

/// A count of the footer, which is 0 at least if the file is right.
pub(crate) fn count(value: i64) -> String {
    u64::try_from(value).map_or_else(|_| value.to_string(), thousands)
}

/// A size of the footer, which is 0 at least if the file is right.
pub(crate) fn size(value: i64) -> String {
    u64::try_from(value).map_or_else(|_| format!("{value} B"), bytes)
}
