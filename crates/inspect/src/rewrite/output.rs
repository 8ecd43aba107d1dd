//! Writes values in the Thrift compact protocol.

use sawmill_footer::DumpValue;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const BINARY: u8 = 8;
pub(crate) const I32: u8 = 5;
pub(crate) const I64: u8 = 6;

/// The number of a wire type.
pub(crate) fn wire(name: &str, value: &DumpValue<'_>) -> u8 {
    match name {
        "bool" if *value == DumpValue::Bool(true) => TRUE,
        "bool" => FALSE,
        "i8" => BYTE,
        "i16" => 4,
        "i32" => I32,
        "i64" => I64,
        "double" => 7,
        "binary" => BINARY,
        "list" => 9,
        "set" => 10,
        "map" => 11,
        "struct" => 12,
        _ => 13,
    }
}

/// The bytes of a struct that is being written.
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// The id of the last field in each open struct.
    last: Vec<i16>,
    /// The ids of the fields written since the caller cleared it, below 64.
    pub written: u64,
}

impl Output {
    /// Output inside one open struct, of about as many bytes.
    pub fn with_room(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), last: vec![0], written: 0 }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    /// The header of a field.
    pub fn field(&mut self, id: i16, wire: u8) {
        if let 0..64 = id {
            self.written |= 1 << id;
        }
        let before = self.last.last().copied().unwrap_or_default();
        match id.checked_sub(before) {
            Some(delta @ 1..=15) => self.bytes.push((delta as u8) << 4 | wire),
            _ => {
                self.bytes.push(wire);
                self.zigzag(id.into());
            }
        }
        if let Some(last) = self.last.last_mut() {
            *last = id;
        }
    }

    /// An integer of a wire type.
    pub fn integer(&mut self, wire: u8, value: i64) {
        match wire {
            BYTE => self.bytes.push(value as u8),
            _ => self.zigzag(value),
        }
    }

    /// Bytes: text and binary values with their length, others as they are.
    pub fn bytes(&mut self, wire: u8, bytes: &[u8]) {
        if wire == BINARY {
            self.varint(bytes.len() as u64);
        }
        self.raw(bytes);
    }

    /// A field with texts.
    pub fn texts(&mut self, id: i16, texts: &[&str]) {
        self.field(id, 9);
        self.list(BINARY, texts.len());
        texts.iter().for_each(|text| self.bytes(BINARY, text.as_bytes()));
    }

    /// The header of a list.
    pub fn list(&mut self, element: u8, count: usize) {
        match count {
            0..15 => self.bytes.push((count as u8) << 4 | element),
            15.. => {
                self.bytes.push(0xf0 | element);
                self.varint(count as u64);
            }
        }
    }

    /// Opens a struct; [`Output::stop`] ends it.
    pub fn begin(&mut self) {
        self.last.push(0);
    }

    /// Ends the innermost struct.
    pub fn stop(&mut self) {
        self.bytes.push(0);
        self.last.pop();
    }
}
