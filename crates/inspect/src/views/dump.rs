//! `--dump`: the footer's Thrift, one value on each line, even if the footer cannot be decoded.

use std::io::{self, Write};
use std::path::Path;

use sawmill_footer::{DumpLine, DumpValue, RangeReader, Root, dump};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::file::open_file::{OpenFile, name_of};
use crate::text::escape::escaped;
use crate::text::style::TextStyle;
use crate::text::values::Value;

/// Most characters of a value, unless long values are written in full.
const SHOWN: usize = 64;

/// The bytes after a footer: its length and the magic.
const TAIL: u64 = 8;

fn value_of<'a>(value: &DumpValue<'a>) -> Option<Value<'a>> {
    match value {
        // Text that is not UTF-8 is shown as bytes.
        DumpValue::Text(bytes) => Some(std::str::from_utf8(bytes).map_or(Value::Binary(bytes), Value::Text)),
        DumpValue::Binary(bytes) => Some(Value::Binary(bytes)),
        _ => None,
    }
}

fn write_line(line: &DumpLine<'_>, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    // The walk bounds the nesting.
    write!(out, "{:>10}  {:indent$}", line.offset, "", indent = line.depth * 2)?;
    match (line.index, line.id) {
        (Some(index), _) => write!(out, "[{index}]")?,
        (None, Some(id)) => write!(out, "{id} {}", line.name.unwrap_or("?"))?,
        (None, None) => {}
    }
    match value_of(&line.value) {
        Some(value) => writeln!(out, ": {} {}", line.wire, value.shown(limit)),
        None => writeln!(out, ": {} {}", line.wire, line.value),
    }
}

/// Writes all values of `bytes`. The inner result is the error of malformed Thrift, if it is malformed.
fn write_all(
    bytes: &[u8],
    root: Root,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<Option<sawmill_footer::Error>> {
    let limit = style.at_most(SHOWN);
    let mut written = Ok(());
    let read = dump(bytes, root, |line| {
        written = write_line(&line, limit, out);
        written.is_ok()
    });
    written.map(|()| read.err())
}

/// The dump of a file whose footer could be decoded.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let bytes = file.footer.bytes();
    let start = file.footer.file_len().and_then(|len| len.checked_sub(TAIL + bytes.len() as u64));
    head(start, bytes.len() as u64, &file.style, out)?;
    match write_all(bytes, Root::FileMetaData, &file.style, out)? {
        Some(error) => writeln!(out, "{}", escaped(&error.to_string())),
        None => Ok(()),
    }
}

fn head(start: Option<u64>, len: u64, style: &TextStyle, out: &mut dyn Write) -> io::Result<()> {
    match start {
        Some(start) => writeln!(
            out,
            "{} bytes of footer from byte {} of the file; offsets within the footer",
            style.count(len),
            style.count(start)
        ),
        None => writeln!(out, "{} bytes of footer", style.count(len)),
    }
}

/// Dumps what `reader` has of the footer of a file called `name` that could not be decoded, under a title, as far as it
/// can be read. One of more than `most` bytes is not read.
///
/// # Errors
///
/// Writing failed.
pub fn dump_undecoded(
    (name, reader): (&Path, Option<&dyn RangeReader>),
    most: u64,
    style: &TextStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}: dump, as far as it goes", name_of(name))?;
    // Decoding the file has reported the fault.
    let Some(Ok(Some((bytes, start, root)))) = reader.map(|reader| footer_of(reader, most)) else {
        return Ok(());
    };
    head(Some(start), bytes.len() as u64, style, out)?;
    write_all(&bytes, root, style, out).map(drop)
}

/// A footer's bytes, where they start, and what they should contain. `None` if the file has no footer, one of
/// more than `most` bytes, or one that memory does not suffice for.
pub(crate) fn footer_of<R: RangeReader + ?Sized>(
    reader: &R,
    most: u64,
) -> io::Result<Option<(Vec<u8>, u64, Root)>> {
    let Some(tail_at) = reader.len()?.checked_sub(TAIL) else { return Ok(None) };
    let mut tail = [0; TAIL as usize];
    reader.read_exact_at(tail_at, &mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    let root = match &magic {
        b"PAR1" => Root::FileMetaData,
        b"PARE" => Root::FileCryptoMetaData,
        _ => return Ok(None),
    };
    let len = u32::from_le_bytes([a, b, c, d]);
    let Some(start) = tail_at.checked_sub(u64::from(len)) else { return Ok(None) };
    let mut bytes = Vec::new();
    if u64::from(len) > most || bytes.try_reserve_exact(len as usize).is_err() {
        return Ok(None);
    }
    bytes.resize(len as usize, 0);
    reader.read_exact_at(start, &mut bytes)?;
    Ok(Some((bytes, start, root)))
}

/// The dump for programs: a flat list.
pub(crate) struct DumpDoc<'a>(pub(crate) &'a OpenFile);

#[derive(Serialize)]
struct Line<'a> {
    offset: usize,
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    wire: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value<'a>>,
    /// What the format calls the number or the struct.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<usize>,
}

impl Serialize for DumpDoc<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        let mut result = Ok(());
        // Decoding the footer has found malformed Thrift already.
        let _ = dump(self.0.footer.bytes(), Root::FileMetaData, |line| {
            let DumpLine { offset, depth, id, name, index, wire, value, .. } = line;
            let mut shown = Line {
                offset,
                depth,
                id,
                name,
                index,
                wire,
                value: value_of(&value),
                meaning: None,
                elements: None,
            };
            match value {
                DumpValue::Bool(value) => shown.value = Some(Value::Bool(value)),
                DumpValue::Integer(value) => shown.value = Some(Value::Int(value)),
                DumpValue::Named(value, name) => {
                    (shown.value, shown.meaning) = (Some(Value::Int(value)), Some(name));
                }
                DumpValue::Double(value) => shown.value = Some(Value::Double(value)),
                DumpValue::Struct(name) => shown.meaning = (!name.is_empty()).then_some(name),
                DumpValue::List(count) => shown.elements = Some(count),
                DumpValue::Text(_) | DumpValue::Binary(_) => {}
            }
            result = seq.serialize_element(&shown);
            result.is_ok()
        });
        result.and_then(|()| seq.end())
    }
}
