//! Reads the parts of the Thrift compact protocol that Parquet footers use: a cursor over a byte slice with
//! the protocol's primitives, which can skip unneeded values.
//!
//! Every count is checked against the bytes left before it is used, and nesting is bounded, so no input makes
//! the walk allocate, recurse or run beyond its own length.
//!
//! Source: the [compact protocol's
//! description](https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).

use crate::error::{Fault, FaultKind};

pub(crate) const STOP: u8 = 0;
pub(crate) const TRUE: u8 = 1;
pub(crate) const FALSE: u8 = 2;
pub(crate) const BYTE: u8 = 3;
pub(crate) const I16: u8 = 4;
pub(crate) const I32: u8 = 5;
pub(crate) const I64: u8 = 6;
pub(crate) const DOUBLE: u8 = 7;
pub(crate) const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
pub(crate) const SET: u8 = 10;
pub(crate) const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;
pub(crate) const UUID: u8 = 13;

/// The deepest nesting accepted. The format itself nests seven deep.
pub(crate) const DEPTH_LIMIT: u32 = 64;

/// The result of a step of the walk.
pub(crate) type Step<T> = Result<T, Fault>;

/// The name of a wire type, for messages.
pub(crate) fn wire_name(wire: u8) -> &'static str {
    match wire {
        STOP => "stop",
        TRUE | FALSE => "bool",
        BYTE => "i8",
        I16 => "i16",
        I32 => "i32",
        I64 => "i64",
        DOUBLE => "double",
        BINARY => "binary",
        LIST => "list",
        SET => "set",
        MAP => "map",
        STRUCT => "struct",
        UUID => "uuid",
        _ => "an unknown wire type",
    }
}

/// A position in the footer's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

/// Reads the fields of a struct up to its end: each by the arm that has its id and wire type. Others are skipped.
macro_rules! each_field {
    ($cursor:ident, { $($field:pat $(if $wanted:expr)? => $read:expr,)* }) => {{
        let mut last = 0;
        while let Some(field) = $cursor.next_field(&mut last)? {
            match (field.id, field.wire) {
                $($field $(if $wanted)? => $read,)*
                (_, wire) => $cursor.skip(wire)?,
            }
        }
    }};
}
pub(crate) use each_field;

/// The header of a field: its wire type and id. A wire type of [`STOP`] ends the struct.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub wire: u8,
    pub id: i16,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    #[inline(always)]
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    #[cold]
    fn end<T>(&self, needed: u64) -> Step<T> {
        Err(Fault::new(self.at, FaultKind::End { needed, left: self.left() as u64 }))
    }

    #[inline(always)]
    pub fn byte(&mut self) -> Step<u8> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => self.end(1),
        }
    }

    #[inline(always)]
    pub fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => self.end(count as u64),
        }
    }

    /// An unsigned varint of up to ten bytes and 64 bits.
    #[inline(always)]
    pub fn varint(&mut self) -> Step<u64> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Step<u64> {
        let start = self.at;
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = match self.byte() {
                Ok(byte) => byte,
                Err(fault) => {
                    self.at = start;
                    return Err(fault);
                }
            };
            // The tenth byte contains only the 64th bit.
            if shift == 63 && byte > 1 {
                self.at = start;
                return Err(Fault::new(start, FaultKind::Varint));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    /// A signed integer of up to 64 bits (zigzag).
    #[inline(always)]
    pub fn integer(&mut self) -> Step<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    #[inline(always)]
    pub fn i32(&mut self) -> Step<i32> {
        let start = self.at;
        let value = self.integer()?;
        match i32::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => Err(Fault::new(start, FaultKind::Range { value, expected: "a 32-bit integer" })),
        }
    }

    #[inline(always)]
    pub fn i16(&mut self) -> Step<i16> {
        let start = self.at;
        let value = self.integer()?;
        match i16::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => Err(Fault::new(start, FaultKind::Range { value, expected: "a 16-bit integer" })),
        }
    }

    /// A size, count or offset: a non-negative integer.
    #[inline(always)]
    pub fn size(&mut self) -> Step<i64> {
        let start = self.at;
        let value = self.integer()?;
        if value < 0 {
            return Err(Fault::new(start, FaultKind::Range { value, expected: "a non-negative value" }));
        }
        Ok(value)
    }

    /// A size, count or offset of one column or row group. A negative one counts as 0, unknown, and does not hide the
    /// file's other facts.
    #[inline(always)]
    pub fn size_or_zero(&mut self) -> Step<i64> {
        Ok(self.integer()?.max(0))
    }

    #[inline(always)]
    pub fn double(&mut self) -> Step<f64> {
        let mut raw = [0; 8];
        raw.copy_from_slice(self.take(8)?);
        Ok(f64::from_le_bytes(raw))
    }

    #[inline(always)]
    pub fn binary(&mut self) -> Step<&'a [u8]> {
        let start = self.at;
        let count = self.varint()?;
        let left = self.left() as u64;
        if count > left {
            return Err(Fault::new(start, FaultKind::End { needed: count, left }));
        }
        self.take(count as usize)
    }

    pub fn text(&mut self) -> Step<&'a str> {
        let start = self.at;
        let bytes = self.binary()?;
        std::str::from_utf8(bytes).map_err(|_| Fault::new(start, FaultKind::Utf8))
    }

    /// The next field's header; `last` is the id of the previous field, initially 0.
    #[inline(always)]
    pub fn field(&mut self, last: &mut i16) -> Step<Field> {
        let header = self.byte()?;
        let wire = header & 0x0f;
        if wire == STOP {
            return Ok(Field { wire, id: 0 });
        }
        let delta = i16::from(header >> 4);
        let id = if delta == 0 {
            self.i16()?
        } else {
            match last.checked_add(delta) {
                Some(id) => id,
                None => return Err(self.field_id_overflow(*last, delta)),
            }
        };
        *last = id;
        Ok(Field { wire, id })
    }

    /// The next field's header; `None` at the end of the struct.
    #[inline(always)]
    pub fn next_field(&mut self, last: &mut i16) -> Step<Option<Field>> {
        let field = self.field(last)?;
        Ok((field.wire != STOP).then_some(field))
    }

    #[cold]
    fn field_id_overflow(&self, last: i16, delta: i16) -> Fault {
        let value = i64::from(last) + i64::from(delta);
        Fault::new(self.at - 1, FaultKind::Range { value, expected: "a 16-bit field id" })
    }

    /// The element type and length of a list or set. Every element takes at least one byte, so a length
    /// beyond the bytes left is a fault at once.
    #[inline(always)]
    pub fn list(&mut self) -> Step<(u8, usize)> {
        let start = self.at;
        let header = self.byte()?;
        let wire = header & 0x0f;
        let short = header >> 4;
        let count = if short == 15 { self.varint()? } else { u64::from(short) };
        let left = self.left() as u64;
        if count > left {
            return Err(Fault::new(start, FaultKind::Count { count, left }));
        }
        Ok((wire, count as usize))
    }

    /// The length of a list whose elements must have type `wire`, described by `expected`. An empty list may
    /// state any element type: some writers use 0.
    #[inline(always)]
    pub fn list_of(&mut self, wire: u8, expected: &'static str) -> Step<usize> {
        let start = self.at;
        let (found, count) = self.list()?;
        if found != wire && count > 0 {
            return Err(Fault::new(start, FaultKind::Wire { found, expected }));
        }
        Ok(count)
    }

    /// Skips the value of a field of type `wire`; a bool has no bytes after the field header.
    #[inline]
    pub fn skip(&mut self, wire: u8) -> Step<()> {
        self.skip_value(wire, DEPTH_LIMIT)
    }

    #[inline]
    fn skip_value(&mut self, wire: u8, depth: u32) -> Step<()> {
        match wire {
            TRUE | FALSE => Ok(()),
            I16 | I32 | I64 => self.varint().map(drop),
            BINARY => self.binary().map(drop),
            _ => self.skip_rare(wire, depth),
        }
    }

    fn skip_rare(&mut self, wire: u8, depth: u32) -> Step<()> {
        match wire {
            BYTE => return self.byte().map(drop),
            DOUBLE => return self.take(8).map(drop),
            UUID => return self.take(16).map(drop),
            LIST | SET | MAP | STRUCT => {}
            found => return Err(Fault::new(self.at, FaultKind::UnknownWire { found })),
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Fault::new(self.at, FaultKind::Depth { limit: DEPTH_LIMIT }));
        };
        match wire {
            STRUCT => self.skip_struct(depth),
            MAP => self.skip_map(depth),
            _ => {
                let (wire, count) = self.list()?;
                self.skip_elements(wire, count, depth)
            }
        }
    }

    fn skip_struct(&mut self, depth: u32) -> Step<()> {
        loop {
            let header = self.byte()?;
            let wire = header & 0x0f;
            if wire == STOP {
                return Ok(());
            }
            if header < 0x10 {
                self.i16()?;
            }
            self.skip_value(wire, depth)?;
        }
    }

    fn skip_elements(&mut self, wire: u8, count: usize, depth: u32) -> Step<()> {
        let width = match wire {
            // In a list, a bool has its own byte.
            TRUE | FALSE | BYTE => 1,
            DOUBLE => 8,
            UUID => 16,
            _ => {
                for _ in 0..count {
                    self.skip_value(wire, depth)?;
                }
                return Ok(());
            }
        };
        self.take(count.saturating_mul(width)).map(drop)
    }

    fn skip_map(&mut self, depth: u32) -> Step<()> {
        let start = self.at;
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let left = self.left() as u64;
        // Besides the byte with the types, every entry takes at least one byte for its key and one for its
        // value.
        if count > left / 2 {
            return Err(Fault::new(start, FaultKind::Count { count, left }));
        }
        let wires = self.byte()?;
        for _ in 0..count {
            self.skip_elements(wires >> 4, 1, depth)?;
            self.skip_elements(wires & 0x0f, 1, depth)?;
        }
        Ok(())
    }
}
