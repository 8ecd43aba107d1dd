//! Writes the Thrift compact protocol: metadata that the `parquet` crate shall decode.
//!
//! Tests, benchmarks and fuzz targets include this file and write footers with it.

/// Writes structs in the Thrift compact protocol, as well-formed or as broken as its caller wants.
#[derive(Debug, Clone, Default)]
pub struct ThriftWriter {
    bytes: Vec<u8>,
    /// The id of the last field in every open struct.
    last: Vec<i16>,
}

impl ThriftWriter {
    /// A writer inside one open struct.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), last: vec![0] }
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An unsigned varint.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A signed integer as a list element.
    pub fn integer(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Bytes with their length, as a list element.
    pub fn bytes_value(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.raw(value);
    }

    /// The header of a field with a wire type.
    pub fn field(&mut self, id: i16, wire: u8) {
        let last = self.last.last_mut();
        let before = last.as_ref().map_or(0, |last| **last);
        match id.checked_sub(before) {
            Some(delta @ 1..=15) => self.bytes.push((delta as u8) << 4 | wire),
            _ => {
                self.bytes.push(wire);
                self.integer(id.into());
            }
        }
        if let Some(last) = self.last.last_mut() {
            *last = id;
        }
    }

    /// A bool field.
    pub fn bool(&mut self, id: i16, value: bool) {
        self.field(id, if value { 1 } else { 2 });
    }

    /// An i32 field.
    pub fn i32(&mut self, id: i16, value: i32) {
        self.field(id, 5);
        self.integer(value.into());
    }

    /// An i64 field.
    pub fn i64(&mut self, id: i16, value: i64) {
        self.field(id, 6);
        self.integer(value);
    }

    /// A field of bytes or text.
    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, 8);
        self.bytes_value(value);
    }

    /// A list field with `count` elements of a wire type; the caller writes the elements.
    pub fn list(&mut self, id: i16, element: u8, count: u64) {
        self.field(id, 9);
        self.list_header(element, count);
    }

    /// A list header without a field, for a list within a list.
    pub fn list_header(&mut self, element: u8, count: u64) {
        if count < 15 {
            self.bytes.push((count as u8) << 4 | element);
        } else {
            self.bytes.push(0xf0 | element);
            self.varint(count);
        }
    }

    /// Opens a struct field; [`ThriftWriter::stop`] ends it.
    pub fn begin(&mut self, id: i16) {
        self.field(id, 12);
        self.begin_element();
    }

    /// Opens a struct that is an element of a list; [`ThriftWriter::stop`] ends it.
    pub fn begin_element(&mut self) {
        self.last.push(0);
    }

    /// Ends the innermost open struct.
    pub fn stop(&mut self) {
        self.bytes.push(0);
        self.last.pop();
    }
}
