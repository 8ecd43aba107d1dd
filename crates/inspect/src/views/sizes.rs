//! `--sizes`: where the bytes of the file and of its footer go.
//!
//! A walk over all values of the footer ([`sawmill_footer::dump`]) counts its bytes. The bytes between two
//! values, a byte or two of field headers and stops, count as part of the first.

use std::io::{self, Write};

use sawmill_footer::{DumpLine, Root, dump};
use serde::Serialize;

use crate::file::column::Column;
use crate::file::open_file::OpenFile;
use crate::text::style::{TextStyle, bar, percent, ratio};
use crate::text::table::Table;

/// Most columns in a table, unless all are written.
const SHOWN: usize = 40;

/// Cells of a bar.
const BAR: usize = 24;

/// The magic at the start, the footer's length, and the magic at the end.
const FRAME: u64 = 12;

/// Where the bytes go.
#[derive(Serialize)]
pub(crate) struct Sizes {
    file: FileSizes,
    footer: Vec<FieldSize>,
    columns: Vec<ColumnSize>,
}

#[derive(Default, Serialize)]
struct FileSizes {
    total: u64,
    /// Pages of the decoded column chunks, including dictionaries.
    pages: u64,
    dictionaries: u64,
    column_indexes: u64,
    offset_indexes: u64,
    bloom_filters: u64,
    footer: u64,
    frame: u64,
    /// Everything else: padding, or chunks that were not selected.
    rest: u64,
}

/// Bytes that values of one field take in the footer.
#[derive(Serialize)]
struct FieldSize {
    field: String,
    bytes: u64,
}

/// A column over all decoded row groups.
#[derive(Clone, Default, Serialize)]
struct ColumnSize {
    column: usize,
    path: String,
    compressed: u64,
    uncompressed: u64,
    dictionary: u64,
    values: u64,
    indexes: u64,
    bloom_filters: u64,
    footer: u64,
}

pub(crate) fn sizes(file: &OpenFile) -> Sizes {
    let footer = &file.footer;
    let mut all = FileSizes {
        total: footer.file_len().unwrap_or(footer.footer_len() as u64 + FRAME),
        footer: footer.footer_len() as u64,
        frame: FRAME,
        ..FileSizes::default()
    };
    let of = |(position, column): (usize, &Column)| ColumnSize {
        column: footer.leaf_of(position).unwrap_or(position),
        path: column.path.clone(),
        ..ColumnSize::default()
    };
    let mut columns: Vec<ColumnSize> = file.columns().iter().enumerate().map(of).collect();
    for chunk in file.chunks() {
        let size = &mut columns[chunk.position()];
        let places = file.locations(&chunk);
        // The decoder rejects negative sizes and counts.
        size.compressed = size.compressed.saturating_add(chunk.compressed_size() as u64);
        size.uncompressed = size.uncompressed.saturating_add(chunk.uncompressed_size() as u64);
        size.values = size.values.saturating_add(chunk.num_values() as u64);
        if chunk.has_metadata() {
            // From the dictionary page, if there is one, to the first data page.
            let before = (chunk.data_page_offset() as u64).saturating_sub(chunk.byte_range().start);
            size.dictionary = size.dictionary.saturating_add(before.min(chunk.compressed_size() as u64));
        }
        let length = |length: Option<i32>| length.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let (column_index, offset_index) =
            (length(places.column_index_length), length(places.offset_index_length));
        size.indexes += column_index + offset_index;
        all.column_indexes += column_index;
        all.offset_indexes += offset_index;
        size.bloom_filters += length(places.bloom_filter_length);
        all.bloom_filters += length(places.bloom_filter_length);
    }
    for column in &columns {
        all.pages = all.pages.saturating_add(column.compressed);
        all.dictionaries = all.dictionaries.saturating_add(column.dictionary);
    }
    let known = [all.pages, all.column_indexes, all.offset_indexes, all.bloom_filters, all.footer, all.frame];
    all.rest = all.total.saturating_sub(known.into_iter().fold(0, u64::saturating_add));
    let footer = footer_fields(file, &mut columns);
    Sizes { file: all, footer, columns }
}

/// The structs of a footer: the depth at which [`dump`] reports their fields, and the prefix of their names.
const STRUCTS: [(usize, &str); 4] =
    [(0, ""), (2, "row_groups."), (4, "row_groups.columns."), (5, "row_groups.columns.meta_data.")];

/// Field ids are small; larger ones are counted together.
const FIELDS: usize = 32;

struct Walk<'a> {
    file: &'a OpenFile,
    columns: &'a mut [ColumnSize],
    bytes: [[u64; FIELDS]; 4],
    names: [[Option<&'static str>; FIELDS]; 4],
    /// The previous value: where it starts, its field, its column.
    offset: usize,
    place: (usize, usize),
    column: Option<usize>,
    in_row_groups: bool,
    in_columns: bool,
    row_group_decoded: bool,
}

impl Walk<'_> {
    fn line(&mut self, line: &DumpLine<'_>) {
        self.end_at(line.offset);
        let id = line.id.and_then(|id| usize::try_from(id).ok()).filter(|&id| id < FIELDS).unwrap_or(0);
        let of_struct = match line.depth {
            0 => {
                self.in_row_groups = line.id == Some(4);
                self.column = None;
                Some(0)
            }
            _ if !self.in_row_groups => None,
            1 => {
                let index = line.index.unwrap_or(0);
                let decoded = self.file.footer.row_groups().map(|group| group.index());
                // Few groups are decoded where not all are.
                self.row_group_decoded = self.file.footer.num_row_groups()
                    == self.file.footer.num_row_groups_in_file()
                    || decoded.into_iter().any(|group| group == index);
                None
            }
            2 => {
                self.in_columns = line.id == Some(1);
                self.column = None;
                Some(1)
            }
            3 if self.in_columns => {
                let leaf = line.index.filter(|_| self.row_group_decoded);
                self.column = leaf.and_then(|leaf| self.file.footer.position_of(leaf));
                None
            }
            4 if self.in_columns => Some(2),
            5 if self.in_columns && self.place_is_meta_data() => Some(3),
            _ => None,
        };
        if let Some(of_struct) = of_struct {
            self.place = (of_struct, id);
            self.names[of_struct][id] = line.name;
        }
    }

    /// Whether the last field of a `ColumnChunk` was its metadata (3), or one within it.
    fn place_is_meta_data(&self) -> bool {
        self.place == (2, 3) || self.place.0 == 3
    }

    fn end_at(&mut self, offset: usize) {
        let bytes = (offset - self.offset) as u64;
        self.bytes[self.place.0][self.place.1] += bytes;
        if let Some(column) = self.column.and_then(|column| self.columns.get_mut(column)) {
            column.footer += bytes;
        }
        self.offset = offset;
    }
}

fn footer_fields(file: &OpenFile, columns: &mut [ColumnSize]) -> Vec<FieldSize> {
    let mut walk = Walk {
        file,
        columns,
        bytes: [[0; FIELDS]; 4],
        names: [[None; FIELDS]; 4],
        offset: 0,
        place: (0, 0),
        column: None,
        in_row_groups: false,
        in_columns: false,
        row_group_decoded: false,
    };
    // The footer has been decoded. Malformed nesting, which decoding skips, would end the count early.
    let _ = dump(file.footer.bytes(), Root::FileMetaData, |line| {
        walk.line(&line);
        true
    });
    walk.end_at(file.footer.footer_len());
    let mut fields = Vec::new();
    for ((_, prefix), (bytes, names)) in STRUCTS.iter().zip(walk.bytes.iter().zip(&walk.names)) {
        for (id, (&bytes, name)) in bytes.iter().zip(names).enumerate().filter(|(_, (bytes, _))| **bytes > 0)
        {
            let field = match name {
                Some(name) => format!("{prefix}{name}"),
                None if id == 0 => format!("{prefix}(headers and unknown fields)"),
                None => format!("{prefix}(unknown field {id})"),
            };
            fields.push(FieldSize { field, bytes });
        }
    }
    fields.sort_by_key(|field| std::cmp::Reverse(field.bytes));
    fields
}

/// Three tables: the file's parts, the columns, the footer's fields; the largest first.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let Sizes { file: all, footer, columns } = sizes(file);
    file_table(&all, &file.style, out)?;
    writeln!(out)?;
    column_table(columns, all.pages, &file.style, out)?;
    writeln!(out)?;
    let mut table = Table::new("footer, bytes>, share>,");
    for field in footer {
        let drawn = bar(share(field.bytes, all.footer), BAR);
        table.row(&[&field.field, &file.style.bytes(field.bytes), &percent(field.bytes, all.footer), &drawn]);
    }
    table.write(out)
}

fn file_table(all: &FileSizes, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new("file, bytes>, share>,");
    for (name, size) in [
        ("pages", all.pages),
        ("  of dictionaries", all.dictionaries),
        ("column indexes", all.column_indexes),
        ("offset indexes", all.offset_indexes),
        ("bloom filters", all.bloom_filters),
        ("footer", all.footer),
        ("magic and length", all.frame),
        ("rest", all.rest),
        ("total", all.total),
    ] {
        let drawn = if name == "total" { String::new() } else { bar(share(size, all.total), BAR) };
        table.row(&[&name, &style.bytes(size), &percent(size, all.total), &drawn]);
    }
    table.write(out)
}

fn column_table(
    mut columns: Vec<ColumnSize>,
    pages: u64,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    columns.sort_by(|a, b| (b.compressed, a.column).cmp(&(a.compressed, b.column)));
    let largest = columns.first().map_or(0, |column| column.compressed);
    let mut table = Table::new(
        "column, compressed>, share>, , uncompressed>, ratio>, dictionary>, bytes/value>, indexes>, footer>",
    );
    let mut row = |name: &str, of: &ColumnSize, drawn: &str| {
        table.row(&[
            &name,
            &style.bytes(of.compressed),
            &percent(of.compressed, pages),
            &drawn,
            &style.bytes(of.uncompressed),
            &ratio(of.uncompressed, of.compressed),
            &style.bytes(of.dictionary),
            &ratio(of.compressed, of.values),
            &style.bytes(of.indexes.saturating_add(of.bloom_filters)),
            &style.bytes(of.footer),
        ]);
    };
    let (shown, others) = columns.split_at(style.at_most(SHOWN).min(columns.len()));
    for column in shown {
        row(&column.path, column, &bar(share(column.compressed, largest), BAR));
    }
    if !others.is_empty() {
        let mut sum = ColumnSize::default();
        others.iter().for_each(|other| sum.add(other));
        row(&format!("{} others (-v shows them)", style.count(others.len() as u64)), &sum, "");
    }
    table.write(out)
}

impl ColumnSize {
    fn add(&mut self, other: &Self) {
        self.compressed = self.compressed.saturating_add(other.compressed);
        self.uncompressed = self.uncompressed.saturating_add(other.uncompressed);
        self.dictionary = self.dictionary.saturating_add(other.dictionary);
        self.values = self.values.saturating_add(other.values);
        self.indexes = self.indexes.saturating_add(other.indexes);
        self.bloom_filters = self.bloom_filters.saturating_add(other.bloom_filters);
        self.footer += other.footer;
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
