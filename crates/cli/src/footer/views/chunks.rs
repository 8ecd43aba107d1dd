//! `--ndjson` and `--csv`: one column chunk a line, with its bounds, for programs that read streams.

use std::io::{self, Write};

use serde::Serialize;

use crate::footer::files::open_file::OpenFile;
use crate::footer::text::escape::{JsonSafe, escaped};
use crate::footer::views::columns::{Chunk, chunk_of};
use crate::footer::views::statistics::{Bounds, bounds_of};

#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    chunk: Chunk<'a>,
    statistics: Option<Bounds<'a>>,
}

/// The chunks of a file as lines of JSON.
pub(crate) fn ndjson(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    for chunk in file.footer.row_groups().flat_map(|group| group.columns()) {
        let line =
            Line { file: &file.path, chunk: chunk_of(file, &chunk), statistics: bounds_of(file, &chunk) };
        serde_json::to_writer(JsonSafe(&mut *out), &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The names of the columns of [`csv`], as a line.
pub(crate) const CSV_HEAD: &str = "file,row_group,column,path,physical_type,logical_type,codec,encodings,\
num_values,compressed_bytes,uncompressed_bytes,data_page_offset,dictionary_page_offset,column_index_offset,\
column_index_length,offset_index_offset,offset_index_length,bloom_filter_offset,bloom_filter_length,\
file_path,encrypted,null_count,distinct_count,nan_count,min,max,is_min_exact,is_max_exact";

/// The chunks of a file as comma-separated values (RFC 4180, lines end with a line feed). Control
/// characters are escaped: a spreadsheet or a terminal is what reads this.
pub(crate) fn csv(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let mut line = String::new();
    for chunk in file.footer.row_groups().flat_map(|group| group.columns()) {
        let record = chunk_of(file, &chunk);
        let bounds = bounds_of(file, &chunk);
        let bounds = bounds.as_ref();
        line.clear();
        let mut row = Row { line: &mut line };
        row.text(Some(&file.path));
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
        row.shown(record.column_index_offset);
        row.shown(record.column_index_length);
        row.shown(record.offset_index_offset);
        row.shown(record.offset_index_length);
        row.shown(record.bloom_filter_offset);
        row.shown(record.bloom_filter_length);
        row.text(record.file_path);
        row.shown(Some(record.encrypted));
        row.shown(bounds.and_then(|bounds| bounds.null_count));
        row.shown(bounds.and_then(|bounds| bounds.distinct_count));
        row.shown(bounds.and_then(|bounds| bounds.nan_count));
        let text = |value: &Option<_>| {
            value.as_ref().map(|value: &crate::footer::text::values::Value<'_>| value.to_string())
        };
        row.text(bounds.and_then(|bounds| text(&bounds.min)).as_deref());
        row.text(bounds.and_then(|bounds| text(&bounds.max)).as_deref());
        row.shown(bounds.and_then(|bounds| bounds.is_min_exact));
        row.shown(bounds.and_then(|bounds| bounds.is_max_exact));
        // In the place of the comma behind the last value.
        line.pop();
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

struct Row<'a> {
    line: &'a mut String,
}

impl Row<'_> {
    /// A number or a flag; nothing where there is none.
    fn shown(&mut self, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.line.push_str(&value.to_string());
        }
        self.line.push(',');
    }

    /// Text: nothing where there is none, quotes where it is empty or holds what lines are made of.
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
