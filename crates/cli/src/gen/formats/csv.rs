//! CSV in which null and the empty string differ, as PostgreSQL's COPY writes and reads it: null is empty (or
//! another text), and a string that equals it is quoted.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Schema};

/// Writes batches that are in their text form.
pub(crate) struct CsvWriter<W> {
    pub(super) out: W,
    null: String,
    /// The lines of one batch.
    lines: Vec<u8>,
}

/// The cells of a column.
enum Cells<'a> {
    Text(&'a StringArray),
    /// Types whose values never contain anything that needs quotes.
    Plain(&'a ArrayRef, ArrayFormatter<'a>),
    Nulls,
}

impl<W: Write> CsvWriter<W> {
    /// Makes a writer, and writes the line of names.
    pub(super) fn new(out: W, schema: &Schema, null: &str) -> Result<Self, ArrowError> {
        let mut writer = CsvWriter { out, null: null.to_owned(), lines: Vec::new() };
        for (i, field) in schema.fields().iter().enumerate() {
            if i > 0 {
                writer.lines.push(b',');
            }
            push_text(&mut writer.lines, field.name(), "");
        }
        writer.lines.push(b'\n');
        writer.flush_lines()?;
        Ok(writer)
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let options = FormatOptions::new().with_display_error(false);
        let cells = batch.columns().iter().map(|column| match column.data_type() {
            DataType::Utf8 => Ok(Cells::Text(column.as_string())),
            // It has no mask of nulls.
            DataType::Null => Ok(Cells::Nulls),
            _ => Ok(Cells::Plain(column, ArrayFormatter::try_new(column.as_ref(), &options)?)),
        });
        let cells = cells.collect::<Result<Vec<_>, ArrowError>>()?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (i, cells) in cells.iter().enumerate() {
                if i > 0 {
                    self.lines.push(b',');
                }
                match cells {
                    Cells::Text(strings) if strings.is_valid(row) => {
                        push_text(&mut self.lines, strings.value(row), &self.null);
                    }
                    Cells::Plain(column, formatter) if column.is_valid(row) => {
                        text.clear();
                        formatter.value(row).write(&mut text)?;
                        match text.is_empty() || text == self.null {
                            true => push_quoted(&mut self.lines, &text),
                            false => self.lines.extend_from_slice(text.as_bytes()),
                        }
                    }
                    _ => self.lines.extend_from_slice(self.null.as_bytes()),
                }
            }
            self.lines.push(b'\n');
        }
        self.flush_lines()
    }

    fn flush_lines(&mut self) -> Result<(), ArrowError> {
        let written = self.out.write_all(&self.lines);
        self.lines.clear();
        Ok(written?)
    }
}

/// Appends a string. It is quoted if a reader would otherwise take it for null, for several cells or lines,
/// or (`\.`) for the end of the data.
fn push_text(out: &mut Vec<u8>, text: &str, null: &str) {
    let special = |b: u8| matches!(b, b',' | b'"' | b'\n' | b'\r');
    if text.is_empty() || text == null || text == "\\." || text.bytes().any(special) {
        push_quoted(out, text);
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
