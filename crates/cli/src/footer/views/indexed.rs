//! `--by-index`: column chunks found by a kept index. Nothing else of the footer is read.
//!
//! ```text
//! index ─schema, selection─▶ chunks ─one read each─▶ records ─▶ tables or JSON, as they come
//! ```

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_footer::{Codec, Footer, IndexedChunk, IndexedFooter};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::footer::FooterArgs;
use crate::footer::files::open_file::{Column, failure, name_of};
use crate::footer::files::run::{interrupted, unwritten};
use crate::footer::files::selection;
use crate::footer::text::each::shown;
use crate::footer::text::escape::{JsonSafe, Left, Right, Table};
use crate::footer::text::values::{CLIP, Value};
use crate::footer::views::statistics::{Bounds, typed};
use crate::footer::views::summary::{count, size};
use crate::screen::console::Console;
use crate::screen::phases::thousands;

/// A column chunk. What an encrypted one keeps to itself is none.
#[derive(Serialize)]
struct Chunk<'a> {
    row_group: usize,
    /// The column's index in the file.
    column: usize,
    path: &'a str,
    physical_type: &'a str,
    logical_type: Option<&'a str>,
    #[serde(serialize_with = "shown")]
    codec: Option<Codec>,
    encodings: Vec<String>,
    num_values: Option<i64>,
    compressed_bytes: Option<i64>,
    uncompressed_bytes: Option<i64>,
    data_page_offset: Option<i64>,
    dictionary_page_offset: Option<i64>,
    /// The first byte of the chunk's pages.
    #[serde(skip)]
    first_byte: u64,
    statistics: Option<Bounds<'a>>,
}

/// The chunks that were asked for.
struct Selected<'s> {
    footer: &'s IndexedFooter<File>,
    /// The wanted columns by their indices.
    columns: Vec<(usize, Column)>,
    row_groups: std::ops::Range<usize>,
    cancel: &'s AtomicBool,
}

impl Selected<'_> {
    /// Hands the chunks of a row group to `take`, one after the other.
    fn each(
        &self,
        row_group: usize,
        mut take: impl FnMut(&Chunk<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut buffer = Vec::new();
        for (index, column) in &self.columns {
            if self.cancel.load(Relaxed) {
                return Err(interrupted());
            }
            let chunk = self.footer.chunk(row_group, *index, &mut buffer).map_err(|error| failure(&error))?;
            if let Some(chunk) = chunk {
                take(&record(&chunk, column).map_err(|error| failure(&error))?)?;
            }
        }
        Ok(())
    }
}

fn record<'a>(chunk: &IndexedChunk<'a>, column: &'a Column) -> Result<Chunk<'a>, sawmill_footer::Error> {
    let there = chunk.has_metadata();
    let number = |value: i64| there.then_some(value);
    Ok(Chunk {
        row_group: chunk.row_group(),
        column: chunk.column(),
        path: &column.path,
        physical_type: &column.physical_type,
        logical_type: column.logical_type.as_deref(),
        codec: there.then(|| chunk.codec()),
        encodings: chunk.encodings().iter().map(|encoding| encoding.to_string()).collect(),
        num_values: number(chunk.num_values()),
        compressed_bytes: number(chunk.compressed_size()),
        uncompressed_bytes: number(chunk.uncompressed_size()),
        data_page_offset: number(chunk.data_page_offset()),
        dictionary_page_offset: chunk.dictionary_page_offset(),
        first_byte: chunk.byte_range().start,
        statistics: chunk.statistics()?.map(|found| typed(&column.reader, found)),
    })
}

/// Shows the chunks of `file` that the arguments select, by `index`.
pub(crate) fn run(
    args: &FooterArgs,
    file: &Path,
    index: &Path,
    console: Console,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let footer = Footer::open_with_index(file, index).map_err(|error| failure(&error))?;
    let schema = footer.index().schema().map_err(|error| failure(&error))?;
    let selectors = selection::columns(args);
    let wanted = match selectors.is_empty() {
        true => (0..schema.num_leaves()).collect(),
        false => schema.select(&selectors).map_err(|error| failure(&error.in_file(name_of(file))))?,
    };
    let columns =
        wanted.into_iter().filter_map(|leaf| Some((leaf, Column::of(schema.leaf(leaf)?)))).collect();
    let there = footer.index().num_row_groups();
    if let Some(what) = args.row_group.as_ref().and_then(|wanted| selection::none_of(wanted, there)) {
        return Err(Error::failure(what, name_of(file), "leave --row-group out for all"));
    }
    let row_groups = args.row_group.clone().unwrap_or(0..there);
    let row_groups = row_groups.start.min(there)..row_groups.end.min(there);
    let selected = Selected { footer: &footer, columns, row_groups, cancel };
    let mut out = console.output(cancel);
    if console.json {
        let document = Document { file, index, selected: &selected, ended: RefCell::new(None) };
        let mut serializer = serde_json::Serializer::pretty(JsonSafe(&mut out));
        let done = document.serialize(&mut serializer);
        if let Some(ended) = document.ended.take() {
            return Err(ended);
        }
        done.map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        if selected.row_groups.is_empty() {
            writeln!(out, "no row groups").map_err(|error| unwritten(&error, cancel))?;
        }
        for row_group in selected.row_groups.clone() {
            let table = table(&selected, row_group)?;
            let separated = match row_group == selected.row_groups.start {
                true => Ok(()),
                false => writeln!(out),
            };
            separated
                .and_then(|()| writeln!(out, "row group {row_group}"))
                .and_then(|()| table.write(&mut out))
                .map_err(|error| unwritten(&error, cancel))?;
        }
        Ok(())
    }
    .and_then(|()| out.flush())
    .map_err(|error| unwritten(&error, cancel))
}

fn table(selected: &Selected<'_>, row_group: usize) -> Result<Table, Error> {
    let mut table = Table::new(&[
        ("column", Left),
        ("type", Left),
        ("codec", Left),
        ("encodings", Left),
        ("values", Right),
        ("nulls", Right),
        ("compressed", Right),
        ("uncompressed", Right),
        ("first byte", Right),
        ("min", Left),
        ("max", Left),
    ]);
    selected.each(row_group, |chunk| {
        let none = || "-".to_owned();
        let kind = match chunk.logical_type {
            Some(logical) => format!("{} ({logical})", chunk.physical_type),
            None => chunk.physical_type.to_owned(),
        };
        let number = |value: Option<i64>, show: fn(i64) -> String| value.map_or_else(none, show);
        let bounds = chunk.statistics.as_ref();
        let bound = |value: Option<&Value<'_>>| value.map_or_else(none, |value| value.shown(CLIP));
        table.row(&[
            &chunk.path,
            &kind,
            &chunk.codec.map_or_else(none, |codec| codec.to_string()),
            &chunk.encodings.join(" "),
            &number(chunk.num_values, count),
            &number(bounds.and_then(|bounds| bounds.null_count), count),
            &number(chunk.compressed_bytes, size),
            &number(chunk.uncompressed_bytes, size),
            &chunk.data_page_offset.map_or_else(none, |_| thousands(chunk.first_byte)),
            &bound(bounds.and_then(|bounds| bounds.min.as_ref())),
            &bound(bounds.and_then(|bounds| bounds.max.as_ref())),
        ]);
        Ok(())
    })?;
    Ok(table)
}

/// One document, written while chunks are read.
struct Document<'d> {
    file: &'d Path,
    index: &'d Path,
    selected: &'d Selected<'d>,
    /// Why it ended early.
    ended: RefCell<Option<Error>>,
}

#[derive(Serialize)]
struct Fields<'d> {
    file: String,
    index: String,
    footer_bytes: u64,
    row_groups: usize,
    columns: usize,
    chunks: Chunks<'d>,
}

struct Chunks<'d>(&'d Document<'d>);

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let index = self.selected.footer.index();
        let fields = Fields {
            file: self.file.display().to_string(),
            index: self.index.display().to_string(),
            footer_bytes: index.footer_len(),
            row_groups: index.num_row_groups(),
            columns: index.num_columns(),
            chunks: Chunks(self),
        };
        fields.serialize(serializer)
    }
}

impl Serialize for Chunks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { selected, ended, .. } = self.0;
        let mut chunks = serializer.serialize_seq(None)?;
        let mut unwritten = None;
        for row_group in selected.row_groups.clone() {
            let done = selected.each(row_group, |chunk| {
                chunks.serialize_element(chunk).map_err(|error| {
                    unwritten = Some(error);
                    Error::failure("", "", "")
                })
            });
            match (unwritten.take(), done) {
                (Some(error), _) => return Err(error),
                (None, Err(error)) => {
                    *ended.borrow_mut() = Some(error);
                    return Err(S::Error::custom("ended"));
                }
                (None, Ok(())) => {}
            }
        }
        chunks.end()
    }
}
