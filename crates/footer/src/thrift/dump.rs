//! Dumps the footer's Thrift as stored: every value with its byte offset, field id, name and type. The same walk finds
//! the Thrift path of a byte, for errors: `row_groups[3].columns[17].meta_data.statistics`.

use std::fmt;

use crate::error::{Error, Result};
use crate::thrift::cursor::{
    BINARY, BYTE, Cursor, DEPTH_LIMIT, DOUBLE, FALSE, I16, I32, I64, LIST, MAP, SET, STRUCT, Step, TRUE,
    UUID, wire_name,
};
use crate::thrift::format::{
    COLUMN_INDEX, FILE_CRYPTO_META_DATA, FILE_META_DATA, FieldKind, OFFSET_INDEX, StructDef,
};

/// The top-level structs in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A footer.
    FileMetaData,
    /// The metadata of an encrypted footer.
    FileCryptoMetaData,
    /// A column index.
    ColumnIndex,
    /// An offset index.
    OffsetIndex,
}

impl Root {
    fn def(self) -> &'static StructDef {
        match self {
            Self::FileMetaData => &FILE_META_DATA,
            Self::FileCryptoMetaData => &FILE_CRYPTO_META_DATA,
            Self::ColumnIndex => &COLUMN_INDEX,
            Self::OffsetIndex => &OFFSET_INDEX,
        }
    }
}

/// One value of a [`dump`], which precedes the values within it.
#[derive(Debug, Clone, PartialEq)]
pub struct DumpLine<'a> {
    /// Where the value starts, after the field's header.
    pub offset: usize,
    /// The number of structs, lists and maps that contain the value.
    pub depth: usize,
    /// The field id; `None` for list elements.
    pub id: Option<i16>,
    /// The field's name, if this version of the format knows it.
    pub name: Option<&'static str>,
    /// The element's index in its list.
    pub index: Option<usize>,
    /// The type on the wire.
    pub wire: &'static str,
    /// The type that the format gives the field, if it has another one: readers skip it, or go wrong.
    pub expected: Option<&'static str>,
    /// The value.
    pub value: DumpValue<'a>,
}

/// The value in a [`DumpLine`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DumpValue<'a> {
    /// A bool.
    Bool(bool),
    /// Any integer.
    Integer(i64),
    /// A number with a name in the format.
    Named(i64, &'static str),
    /// A floating-point number.
    Double(f64),
    /// Bytes that the format calls a string.
    Text(&'a [u8]),
    /// Bytes.
    Binary(&'a [u8]),
    /// A struct with its name in the format; the name is empty if unknown.
    Struct(&'static str),
    /// A list, set or map with this many elements.
    List(usize),
}

impl fmt::Display for DumpValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Named(value, name) => write!(f, "{value} {name}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Text(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Binary(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::Struct(name) => f.write_str(name),
            Self::List(count) => write!(f, "{count} elements"),
        }
    }
}

/// Calls `line` for every value in `bytes`, in order, until it returns false.
///
/// Costs one walk over the bytes; nothing is kept.
///
/// # Errors
///
/// The bytes are not Thrift or nest too deeply; `line` was called for all values before the error.
pub fn dump<'a>(bytes: &'a [u8], root: Root, mut line: impl FnMut(DumpLine<'a>) -> bool) -> Result<()> {
    let mut dump =
        Dump { cursor: Cursor::new(bytes, 0), line: &mut line, until: usize::MAX, path: String::new() };
    dump.fields(Some(root.def()), 0).map(drop).map_err(|fault| {
        Error::new(fault.kind.to_string()).at_offset(fault.at as u64).at_path(up_to_unknown(dump.path))
    })
}

/// The path of the value that contains the byte `offset`, within the struct of type `root` that starts at byte `start`.
pub(crate) fn path_of(bytes: &[u8], start: usize, root: &'static StructDef, offset: usize) -> String {
    let cursor = Cursor::new(bytes, start);
    let mut dump = Dump { cursor, line: &mut |_| true, until: offset, path: String::new() };
    // A fault at the byte ends the walk there, too.
    let _ = dump.fields(Some(root), 0);
    up_to_unknown(dump.path)
}

/// A path up to the first field that the format does not have.
fn up_to_unknown(mut path: String) -> String {
    if let Some(at) = path.find("field ")
        && let Some(end) = path[at..].find(['.', '['])
    {
        path.truncate(at + end);
    }
    path
}

struct Dump<'a, 'f> {
    cursor: Cursor<'a>,
    line: &'f mut dyn FnMut(DumpLine<'a>) -> bool,
    /// The walk stops once it is past this byte.
    until: usize,
    /// Where it stopped, or failed.
    path: String,
}

/// The context of a value before it is read.
#[derive(Clone, Copy)]
struct ValueContext {
    depth: usize,
    id: Option<i16>,
    name: Option<&'static str>,
    index: Option<usize>,
    kind: Option<&'static FieldKind>,
}

impl<'a> Dump<'a, '_> {
    /// Dumps the fields of a struct; returns false to stop.
    fn fields(&mut self, def: Option<&'static StructDef>, depth: usize) -> Step<bool> {
        let mut last = 0;
        while let Some(field) = self.cursor.next_field(&mut last)? {
            if self.cursor.at > self.until {
                return Ok(false);
            }
            let known = def.and_then(|def| def.field(field.id));
            let name = known.map(|known| known.name);
            let kind = known.map(|known| &known.kind);
            let place = ValueContext { depth, id: Some(field.id), name, index: None, kind };
            let goes_on = match field.wire {
                TRUE | FALSE => {
                    self.report(self.cursor.at, place, field.wire, DumpValue::Bool(field.wire == TRUE))
                }
                wire => self.value(wire, place)?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn report(&mut self, offset: usize, place: ValueContext, wire: u8, value: DumpValue<'a>) -> bool {
        let known = place.kind.filter(|kind| place.id.is_some() && !kind.is(wire));
        self.report_other(offset, place, wire, value, known.map(FieldKind::wire_name))
    }

    /// Reports a value; `expected` is the type that the format gives its field, if it is another one.
    fn report_other(
        &mut self,
        offset: usize,
        place: ValueContext,
        wire: u8,
        value: DumpValue<'a>,
        expected: Option<&'static str>,
    ) -> bool {
        let ValueContext { depth, id, name, index, .. } = place;
        (self.line)(DumpLine { offset, depth, id, name, index, wire: wire_name(wire), expected, value })
    }

    /// Dumps a value that is not in a field's header; returns false to stop.
    fn value(&mut self, wire: u8, place: ValueContext) -> Step<bool> {
        let goes_on = self.read_value(wire, place).map(|goes_on| goes_on && self.cursor.at <= self.until);
        if !matches!(goes_on, Ok(true)) {
            let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
            self.path = match (place.index, place.name) {
                (Some(index), _) => format!("[{index}]{dot}{}", self.path),
                (None, Some(name)) => format!("{name}{dot}{}", self.path),
                (None, None) => format!("field {}{dot}{}", place.id.unwrap_or_default(), self.path),
            };
        }
        goes_on
    }

    fn read_value(&mut self, wire: u8, place: ValueContext) -> Step<bool> {
        let offset = self.cursor.at;
        if place.depth >= DEPTH_LIMIT as usize {
            // `skip` reports any fault; deeper values are not dumped.
            self.cursor.skip(wire)?;
            return Ok(true);
        }
        let value = match (wire, place.kind) {
            (TRUE | FALSE, _) => DumpValue::Bool(self.cursor.byte()? == TRUE),
            (BYTE, _) => DumpValue::Integer(i64::from(self.cursor.byte()? as i8)),
            (I16 | I32 | I64, kind) => {
                let number = self.cursor.integer()?;
                let name = match kind {
                    Some(FieldKind::Enum(name_of)) => i32::try_from(number).ok().and_then(name_of),
                    _ => None,
                };
                name.map_or(DumpValue::Integer(number), |name| DumpValue::Named(number, name))
            }
            (DOUBLE, _) => DumpValue::Double(self.cursor.double()?),
            (BINARY, Some(FieldKind::Text)) => DumpValue::Text(self.cursor.binary()?),
            (BINARY, _) => DumpValue::Binary(self.cursor.binary()?),
            (UUID, _) => DumpValue::Binary(self.cursor.take(16)?),
            (STRUCT, kind) => {
                let def = match kind {
                    Some(FieldKind::Struct(def)) => Some(*def),
                    _ => None,
                };
                let name = def.map_or("", |def| def.name);
                return Ok(self.report(offset, place, wire, DumpValue::Struct(name))
                    && self.fields(def, place.depth + 1)?);
            }
            (LIST | SET, kind) => return self.list(offset, wire, place, kind),
            // No struct of the format contains a map.
            (MAP, _) => {
                self.cursor.skip(MAP)?;
                DumpValue::Binary(&self.cursor.bytes[offset..self.cursor.at])
            }
            // An unknown wire type, which `skip` reports.
            (wire, _) => {
                self.cursor.skip(wire)?;
                return Ok(true);
            }
        };
        Ok(self.report(offset, place, wire, value))
    }

    fn list(
        &mut self,
        offset: usize,
        wire: u8,
        place: ValueContext,
        kind: Option<&'static FieldKind>,
    ) -> Step<bool> {
        let (element, count) = self.cursor.list()?;
        let expected = match place.kind {
            Some(FieldKind::List(of)) if wire == LIST => {
                (count > 0 && !of.is(element)).then(|| of.list_name())
            }
            Some(kind) if !kind.is(wire) => Some(kind.wire_name()),
            _ => None,
        };
        let expected = expected.filter(|_| place.id.is_some());
        let goes_on = self.report_other(offset, place, wire, DumpValue::List(count), expected);
        if !goes_on || self.cursor.at > self.until {
            return Ok(false);
        }
        let kind = match kind {
            Some(FieldKind::List(kind)) => Some(*kind),
            _ => None,
        };
        for index in 0..count {
            let place =
                ValueContext { depth: place.depth + 1, id: None, name: None, index: Some(index), kind };
            if !self.value(element, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
