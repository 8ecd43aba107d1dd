//! A writer of the Thrift compact protocol, limited to what Parquet's structs need.
//!
//! (Apache Thrift, `doc/specs/thrift-compact-protocol.md`.)

/// Appends an unsigned LEB128 varint.
#[inline]
pub(crate) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The wire types used here.
const I32: u8 = 5;
const I64: u8 = 6;
const BYTE: u8 = 3;
const I16: u8 = 4;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
const TRUE: u8 = 1;
const FALSE: u8 = 2;

/// Writes the fields of one struct in ascending order of their ids.
#[derive(Debug)]
pub(crate) struct StructWriter<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

/// Signed to unsigned; small numbers of either sign stay small.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

impl StructWriter<'_> {
    fn header(&mut self, id: i16, kind: u8) {
        match id - self.last {
            delta @ 1..=15 => self.out.push((delta as u8) << 4 | kind),
            _ => {
                self.out.push(kind);
                varint(zigzag(id.into()), self.out);
            }
        }
        self.last = id;
    }

    pub(crate) fn boolean(&mut self, id: i16, value: bool) {
        self.header(id, if value { TRUE } else { FALSE });
    }

    pub(crate) fn byte(&mut self, id: i16, value: i8) {
        self.header(id, BYTE);
        self.out.push(value as u8);
    }

    pub(crate) fn i16(&mut self, id: i16, value: i16) {
        self.header(id, I16);
        varint(zigzag(value.into()), self.out);
    }

    pub(crate) fn i32(&mut self, id: i16, value: i32) {
        self.header(id, I32);
        varint(zigzag(value.into()), self.out);
    }

    pub(crate) fn i64(&mut self, id: i16, value: i64) {
        self.header(id, I64);
        varint(zigzag(value), self.out);
    }

    pub(crate) fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, BINARY);
        binary(value, self.out);
    }

    /// A struct field that `fields` writes.
    pub(crate) fn structure(&mut self, id: i16, fields: impl FnOnce(&mut StructWriter<'_>)) {
        self.header(id, STRUCT);
        structure(self.out, fields);
    }

    /// A struct field from encoded bytes, including the end of the struct.
    pub(crate) fn encoded(&mut self, id: i16, bytes: &[u8]) {
        self.header(id, STRUCT);
        self.out.extend_from_slice(bytes);
    }

    /// A list of structs; `element(i, ..)` writes element `i`.
    pub(crate) fn structs(
        &mut self,
        id: i16,
        n: usize,
        mut element: impl FnMut(usize, &mut StructWriter<'_>),
    ) {
        self.list(id, STRUCT, 0..n, |i, out| structure(out, |w| element(i, w)));
    }

    pub(crate) fn i32s(&mut self, id: i16, values: &[i32]) {
        self.list(id, I32, values.iter(), |value, out| varint(zigzag((*value).into()), out));
    }

    pub(crate) fn i64s(&mut self, id: i16, values: impl ExactSizeIterator<Item = i64>) {
        self.list(id, I64, values, |value, out| varint(zigzag(value), out));
    }

    pub(crate) fn binaries<'b>(&mut self, id: i16, values: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.list(id, BINARY, values, binary);
    }

    pub(crate) fn booleans(&mut self, id: i16, values: impl ExactSizeIterator<Item = bool>) {
        // Elements are one byte each, 1 for true and 2 for false. The element type is 1 or 2; Parquet writers
        // use either, and readers accept both.
        self.list(id, TRUE, values, |value, out| out.push(if value { TRUE } else { FALSE }));
    }

    fn list<T>(
        &mut self,
        id: i16,
        kind: u8,
        values: impl ExactSizeIterator<Item = T>,
        mut element: impl FnMut(T, &mut Vec<u8>),
    ) {
        self.header(id, LIST);
        list_header(values.len(), kind, self.out);
        values.for_each(|value| element(value, self.out));
    }
}

/// Appends a whole struct.
pub(crate) fn structure(out: &mut Vec<u8>, fields: impl FnOnce(&mut StructWriter<'_>)) {
    fields(&mut StructWriter { out, last: 0 });
    out.push(0);
}

fn binary(value: &[u8], out: &mut Vec<u8>) {
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn list_header(n: usize, kind: u8, out: &mut Vec<u8>) {
    if n < 15 {
        out.push((n as u8) << 4 | kind);
    } else {
        out.push(0xF0 | kind);
        varint(n as u64, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_small_struct() {
        let mut out = Vec::new();
        structure(&mut out, |w| {
            w.i32(1, -1);
            w.binary(2, b"ab");
            w.boolean(20, true);
            w.i64s(21, [300i64].into_iter());
            w.structure(22, |w| w.i16(1, 1));
        });
        assert_eq!(out, [0x15, 1, 0x18, 2, b'a', b'b', 0x01, 40, 0x19, 0x16, 0xD8, 4, 0x1C, 0x14, 2, 0, 0]);
    }

    #[test]
    fn the_length_of_a_long_list_is_a_varint() {
        let mut out = Vec::new();
        structure(&mut out, |w| w.i32s(1, &[0; 15]));
        assert_eq!(out[..3], [0x19, 0xF5, 15]);
        assert_eq!(out.len(), 3 + 15 + 1);
    }
}
