//! `--ndjson` and `--csv`: one line for each column chunk, with its bounds, for programs that read streams.

use std::io::{self, Write};

use sawmill_footer::ColumnChunk;
use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::escape::escaped;
use crate::text::json::JsonSafe;
use crate::text::values::Value;
use crate::views::columns::{Chunk, chunk_of};
use crate::views::row_groups::{Sorting, order_by, sorting_of};
use crate::views::statistics::{Bounds, PageEncodings, SizesAndEncodings, bounds_of, sizes_and_encodings};

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    chunk: Chunk<'a>,
    statistics: Option<Bounds<'a>>,
    row_group_rows: i64,
    sorting_columns: Option<Vec<Sorting>>,
    #[serde(flatten)]
    sizes: SizesAndEncodings,
}

fn line_of<'a>(file: &'a OpenFile, chunk: &ColumnChunk<'a>) -> Line<'a> {
    let group = chunk.row_group();
    Line {
        file: &file.path,
        chunk: chunk_of(file, chunk),
        statistics: bounds_of(file, chunk),
        row_group_rows: group.num_rows(),
        sorting_columns: sorting_of(&file.footer, &group),
        sizes: sizes_and_encodings(&mut file.details(chunk)),
    }
}

/// Writes one line of JSON for each column chunk.
///
/// # Errors
///
/// Writing failed.
pub fn write_ndjson(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    for chunk in file.chunks() {
        serde_json::to_writer(JsonSafe(&mut *out), &line_of(file, &chunk))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The first line of a CSV file: the names of the columns that [`write_csv`] writes.
pub const CSV_HEADER: &str = "file,row_group,column,path,physical_type,logical_type,codec,encodings,\
num_values,compressed_bytes,uncompressed_bytes,data_page_offset,dictionary_page_offset,column_index_offset,\
column_index_length,offset_index_offset,offset_index_length,bloom_filter_offset,bloom_filter_length,\
file_path,encrypted,null_count,distinct_count,nan_count,min,max,is_min_exact,is_max_exact,\
row_group_rows,sorting_columns,unencoded_byte_array_data_bytes,repetition_level_histogram,\
definition_level_histogram,encoding_stats";

/// Writes one line of comma-separated values for each column chunk (RFC 4180, lines end with a line feed).
/// Control characters are escaped: a spreadsheet or a terminal reads this.
///
/// # Errors
///
/// Writing failed.
pub fn write_csv(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for chunk in file.chunks() {
        line.clear();
        csv_line(&line_of(file, &chunk), &mut line);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn csv_line(of: &Line<'_>, line: &mut String) {
    let (chunk, bounds) = (&of.chunk, of.statistics.as_ref());
    let record = &chunk.record;
    let mut row = Row { line };
    row.text(Some(of.file));
    row.shown(Some(record.row_group));
    row.shown(Some(record.column));
    row.text(Some(record.path));
    row.text(Some(record.physical_type));
    row.text(record.logical_type);
    row.text(record.codec.map(|codec| codec.to_string()).as_deref());
    row.text(Some(&record.encodings.join(" ")));
    row.shown(record.num_values);
    row.shown(record.compressed_bytes);
    row.shown(record.uncompressed_bytes);
    row.shown(record.data_page_offset);
    row.shown(record.dictionary_page_offset);
    row.shown(chunk.column_index_offset);
    row.shown(chunk.column_index_length);
    row.shown(chunk.offset_index_offset);
    row.shown(chunk.offset_index_length);
    row.shown(chunk.bloom_filter_offset);
    row.shown(chunk.bloom_filter_length);
    row.text(chunk.file_path);
    row.shown(Some(chunk.encrypted));
    row.shown(bounds.and_then(|bounds| bounds.null_count));
    row.shown(bounds.and_then(|bounds| bounds.distinct_count));
    row.shown(bounds.and_then(|bounds| bounds.nan_count));
    let text = |value: Option<&Value<'_>>| value.map(ToString::to_string);
    row.text(bounds.and_then(|bounds| text(bounds.min.as_ref())).as_deref());
    row.text(bounds.and_then(|bounds| text(bounds.max.as_ref())).as_deref());
    row.shown(bounds.and_then(|bounds| bounds.is_min_exact));
    row.shown(bounds.and_then(|bounds| bounds.is_max_exact));
    row.shown(Some(of.row_group_rows));
    let sorted = of.sorting_columns.as_ref();
    row.text(sorted.map(|by| by.iter().map(order_by).collect::<Vec<_>>().join(", ")).as_deref());
    row.shown(of.sizes.unencoded_byte_array_data_bytes);
    let joined = |numbers: Option<&Vec<i64>>| {
        numbers.map(|numbers| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" "))
    };
    row.text(joined(of.sizes.repetition_level_histogram.as_ref()).as_deref());
    row.text(joined(of.sizes.definition_level_histogram.as_ref()).as_deref());
    let pages = |pages: &Vec<PageEncodings>| {
        let one = |of: &PageEncodings| format!("{} {} {}", of.page_type, of.encoding, of.count);
        pages.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    row.text(of.sizes.encoding_stats.as_ref().map(pages).as_deref());
    // It replaces the comma after the last value.
    line.pop();
    line.push('\n');
}

struct Row<'a> {
    line: &'a mut String,
}

impl Row<'_> {
    /// A number or a flag; empty for `None`.
    fn shown(&mut self, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.line.push_str(&value.to_string());
        }
        self.line.push(',');
    }

    /// Text: empty for `None`, in quotes if it is empty or contains separators or quotes.
    fn text(&mut self, text: Option<&str>) {
        if let Some(text) = text.map(escaped) {
            if text.is_empty() || text.contains(['"', ',', ' ', ';']) {
                self.line.push('"');
                self.line.push_str(&text.replace('"', "\"\""));
                self.line.push('"');
            } else {
                self.line.push_str(&text);
            }
        }
        self.line.push(',');
    }
}
