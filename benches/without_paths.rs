//! A footer without the `path_in_schema` of its chunks, as parquet-format #563 allows.

use crate::thrift_writer::ThriftWriter;

/// Where `path_in_schema` is: row groups, columns, metadata, path.
const PATH: [i16; 4] = [4, 1, 3, 3];

/// The footer, with that list left out of each `ColumnMetaData`.
pub fn without_paths(footer: &[u8]) -> Vec<u8> {
    let mut copy = Copy { bytes: footer, at: 0, out: Vec::new() };
    copy.structure(&mut Vec::new());
    copy.out
}

struct Copy<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
}

impl Copy<'_> {
    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    /// Copies the bytes from `start` to here.
    fn copied(&mut self, start: usize) {
        self.out.extend_from_slice(&self.bytes[start..self.at]);
    }

    fn structure(&mut self, path: &mut Vec<i16>) {
        let (mut last, mut last_written) = (0_i16, 0_i16);
        loop {
            let header = self.bytes[self.at];
            self.at += 1;
            if header == 0 {
                self.out.push(0);
                return;
            }
            last = match header >> 4 {
                0 => {
                    let id = self.varint();
                    (id >> 1) as i16 ^ -((id & 1) as i16)
                }
                delta => last + i16::from(delta),
            };
            path.push(last);
            let wire = header & 0xf;
            if path[..] == PATH {
                let written = self.out.len();
                self.value(wire, path);
                self.out.truncate(written);
            } else {
                match last - last_written {
                    delta @ 1..=15 => self.out.push((delta as u8) << 4 | wire),
                    _ => {
                        let mut id = ThriftWriter::new();
                        id.integer(last.into());
                        self.out.push(wire);
                        self.out.extend(id.into_bytes());
                    }
                }
                last_written = last;
                self.value(wire, path);
            }
            path.pop();
        }
    }

    fn value(&mut self, wire: u8, path: &mut Vec<i16>) {
        let start = self.at;
        match wire {
            // Booleans as fields are in the header; as elements they take a byte (see `list`).
            1 | 2 => {}
            3 => self.at += 1,
            4..=6 => _ = self.varint(),
            7 => self.at += 8,
            8 => {
                let len = self.varint() as usize;
                self.at += len;
            }
            9 | 10 => return self.list(path),
            12 => return self.structure(path),
            other => panic!("no writer of footers uses the type {other}"),
        }
        self.copied(start);
    }

    fn list(&mut self, path: &mut Vec<i16>) {
        let start = self.at;
        let header = self.bytes[self.at];
        self.at += 1;
        let count = match header >> 4 {
            15 => self.varint(),
            short => short.into(),
        };
        self.copied(start);
        for _ in 0..count {
            match header & 0xf {
                1 | 2 => {
                    let start = self.at;
                    self.at += 1;
                    self.copied(start);
                }
                wire => self.value(wire, path),
            }
        }
    }
}
