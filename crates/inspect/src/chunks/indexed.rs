//! Column chunks located by a saved index. Nothing else of the footer is read.
//!
//! ```text
//! index ─schema, selection─▶ chunks ─one read each─▶ records ─▶ tables or JSON, as they come
//! ```

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_footer::{ColumnSelector, Footer, FooterIndex, IndexedFooter, RangeReader};
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::chunks::record::{ChunkRecord, none};
use crate::error::Error;
use crate::file::column::Column;
use crate::file::open_file::name_of;
use crate::text::json::JsonSafe;
use crate::text::style::TextStyle;
use crate::text::table::{Left, Right, Table};
use crate::text::values::{CLIP, Value};
use crate::views::statistics::{Bounds, typed};

/// A file whose column chunks are shown by a saved index of its footer.
///
/// As with [`OpenFile`](crate::OpenFile), an error of the output is returned, and a fault of the file is kept
/// for [`IndexedFile::into_fault`]; here a fault also ends the output.
pub struct IndexedFile<'c, R = File> {
    footer: IndexedFooter<R>,
    file: String,
    index: String,
    /// The selected columns by their indices.
    columns: Vec<(usize, Column)>,
    row_groups: Range<usize>,
    style: TextStyle,
    cancel: &'c AtomicBool,
    fault: RefCell<Option<Error>>,
}

/// A chunk with its bounds.
#[derive(Serialize)]
struct Chunk<'a> {
    #[serde(flatten)]
    record: ChunkRecord<'a>,
    statistics: Option<Bounds<'a>>,
}

impl<'c> IndexedFile<'c> {
    /// Opens a file by the index of its footer, and selects columns; none for all. Setting `cancel` ends
    /// the output with an error.
    ///
    /// # Errors
    ///
    /// Either file cannot be read, the index belongs to another footer, or a column does not exist.
    pub fn open(
        file: &Path,
        index: &Path,
        columns: &[ColumnSelector],
        style: TextStyle,
        cancel: &'c AtomicBool,
    ) -> Result<Self, Error> {
        Self::of(Footer::open_with_index(file, index)?, file, index, columns, style, cancel)
    }
}

impl<'c, R: RangeReader> IndexedFile<'c, R> {
    /// Reads a file that is not of this machine, called `name`, like [`IndexedFile::open`].
    ///
    /// # Errors
    ///
    /// As for [`IndexedFile::open`].
    pub fn over(
        (reader, name): (R, &Path),
        index: &Path,
        columns: &[ColumnSelector],
        style: TextStyle,
        cancel: &'c AtomicBool,
    ) -> Result<Self, Error> {
        let footer = IndexedFooter::new(reader, &name.display().to_string(), FooterIndex::load(index)?)?;
        Self::of(footer, name, index, columns, style, cancel)
    }

    fn of(
        footer: IndexedFooter<R>,
        file: &Path,
        index: &Path,
        columns: &[ColumnSelector],
        style: TextStyle,
        cancel: &'c AtomicBool,
    ) -> Result<Self, Error> {
        let schema = footer.index().schema()?;
        let selected = match columns.is_empty() {
            true => (0..schema.num_leaves()).collect(),
            false => schema.select(columns).map_err(|error| error.in_file(name_of(file)))?,
        };
        let column = |leaf| Some((leaf, Column::of(schema.leaf(leaf)?)));
        Ok(Self {
            file: file.display().to_string(),
            index: index.display().to_string(),
            columns: selected.into_iter().filter_map(column).collect(),
            row_groups: 0..footer.index().num_row_groups(),
            footer,
            style,
            cancel,
            fault: RefCell::new(None),
        })
    }

    /// How many row groups the file has.
    pub fn num_row_groups(&self) -> usize {
        self.footer.index().num_row_groups()
    }

    /// Selects the row groups of this range that the file has.
    pub fn row_groups(self, range: Range<usize>) -> Self {
        let all = self.num_row_groups();
        Self { row_groups: range.start.min(all)..range.end.min(all), ..self }
    }

    /// The fault of the file that ended the output, if one did.
    pub fn into_fault(self) -> Option<Error> {
        self.fault.into_inner()
    }

    /// Writes one table for each row group.
    ///
    /// # Errors
    ///
    /// Writing failed, the command was cancelled, or the file has a fault.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.row_groups.is_empty() {
            writeln!(out, "no row groups")?;
        }
        for row_group in self.row_groups.clone() {
            let table = self.table(row_group)?;
            if row_group != self.row_groups.start {
                writeln!(out)?;
            }
            writeln!(out, "row group {row_group}")?;
            table.write(out)?;
        }
        Ok(())
    }

    /// Writes one JSON document, while it reads chunks.
    ///
    /// # Errors
    ///
    /// As for [`IndexedFile::text`].
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let index = self.footer.index();
        let document = Document {
            file: &self.file,
            index: &self.index,
            footer_bytes: index.footer_len(),
            row_groups: index.num_row_groups(),
            columns: index.num_columns(),
            chunks: Chunks(self),
        };
        let mut serializer = serde_json::Serializer::pretty(JsonSafe(&mut *out));
        document.serialize(&mut serializer).map_err(io::Error::from)?;
        writeln!(out)
    }

    /// Hands the chunks of a row group to `take`, one after the other.
    fn each<E>(
        &self,
        row_group: usize,
        ended: impl Fn() -> E,
        mut take: impl FnMut(&Chunk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut buffer = Vec::new();
        for (index, column) in &self.columns {
            if self.cancel.load(Relaxed) {
                return Err(ended());
            }
            let chunk = self.chunk(row_group, *index, column, &mut buffer).map_err(|fault| {
                *self.fault.borrow_mut() = Some(fault);
                ended()
            })?;
            if let Some(chunk) = &chunk {
                take(chunk)?;
            }
        }
        Ok(())
    }

    fn chunk<'b>(
        &self,
        row_group: usize,
        index: usize,
        column: &'b Column,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Chunk<'b>>, Error> {
        let Some(chunk) = self.footer.chunk(row_group, index, buffer)? else { return Ok(None) };
        let statistics = chunk.statistics()?.map(|found| typed(&column.reader, found));
        Ok(Some(Chunk { record: ChunkRecord::of_indexed(&chunk, column), statistics }))
    }

    fn table(&self, row_group: usize) -> io::Result<Table> {
        let style = &self.style;
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
        let ended = || io::Error::other("ended");
        self.each(row_group, ended, |Chunk { record, statistics }| {
            let bounds = statistics.as_ref();
            let nulls = bounds.and_then(|bounds| bounds.null_count);
            let bound = |value: Option<&Value<'_>>| value.map_or_else(none, |value| value.shown(CLIP));
            table.row(&[
                &record.path,
                &record.kind(),
                &record.codec(),
                &record.encodings.join(" "),
                &record.values(style),
                &nulls.map_or_else(none, |nulls| style.stated_count(nulls)),
                &record.compressed(style),
                &record.uncompressed(style),
                &record.first_byte(style),
                &bound(bounds.and_then(|bounds| bounds.min.as_ref())),
                &bound(bounds.and_then(|bounds| bounds.max.as_ref())),
            ]);
            Ok(())
        })?;
        Ok(table)
    }
}

#[derive(Serialize)]
struct Document<'d, C> {
    file: &'d str,
    index: &'d str,
    footer_bytes: u64,
    row_groups: usize,
    columns: usize,
    chunks: C,
}

struct Chunks<'d, R>(&'d IndexedFile<'d, R>);

impl<R: RangeReader> Serialize for Chunks<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut chunks = serializer.serialize_seq(None)?;
        for row_group in self.0.row_groups.clone() {
            self.0.each(row_group, || S::Error::custom("ended"), |chunk| chunks.serialize_element(chunk))?;
        }
        chunks.end()
    }
}
