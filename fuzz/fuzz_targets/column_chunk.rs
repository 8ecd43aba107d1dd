//! A Parquet file of one column chunk, whose pages are any bytes.

use std::io::Write;

use crate::thrift_writer::ThriftWriter;

/// Physical type, length, converted type, and decimal places.
const COLUMNS: [(i32, i32, Option<i32>, Option<i32>); 14] = [
    (0, 0, None, None),
    (1, 0, None, None),
    (2, 0, None, None),
    (3, 0, None, None),
    (4, 0, None, None),
    (5, 0, None, None),
    (6, 0, Some(0), None),
    (6, 0, None, None),
    (7, 5, None, None),
    (7, 6, Some(5), Some(2)),
    (1, 0, Some(5), Some(2)),
    (2, 0, Some(10), None),
    (1, 0, Some(6), None),
    (2, 0, Some(5), Some(0)),
];
// The seeds use the first seven.
const ENCODINGS: [i32; 9] = [0, 2, 3, 4, 5, 8, 9, 6, 7];
const CODECS: [i32; 8] = [0, 0, 0, 1, 2, 4, 6, 7];

fn compressed(codec: i32, bytes: &[u8]) -> Vec<u8> {
    match codec {
        1 => snap::raw::Encoder::new().compress_vec(bytes).expect("a short text"),
        2 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("written to memory");
            encoder.finish().expect("written to memory")
        }
        4 => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 16);
            encoder.write_all(bytes).expect("written to memory");
            encoder.into_inner()
        }
        6 => zstd::bulk::compress(bytes, 1).expect("written to memory"),
        7 => lz4_flex::block::compress(bytes),
        _ => bytes.to_vec(),
    }
}

/// A column chunk, as the first five bytes of an input choose it.
pub struct Chunk<'a> {
    column: usize,
    encoding: i32,
    codec: i32,
    optional: bool,
    second_version: bool,
    /// The bytes of pages are compressed already.
    pub raw: bool,
    pages: usize,
    values: i32,
    dictionary: &'a [u8],
    body: &'a [u8],
}

impl<'a> Chunk<'a> {
    pub fn new(input: &'a [u8]) -> Option<Self> {
        let [column, how, codec, values, dictionary, rest @ ..] = input else { return None };
        let (dictionary, body) = rest.split_at(usize::from(*dictionary).min(rest.len()));
        Some(Self {
            column: usize::from(*column) % COLUMNS.len(),
            encoding: ENCODINGS[usize::from(how % 16) % ENCODINGS.len()],
            codec: CODECS[usize::from(codec % 8)],
            optional: how & 16 > 0,
            second_version: how & 32 > 0,
            raw: how & 64 > 0,
            pages: if how & 128 > 0 { 2 } else { 1 },
            values: i32::from(*values),
            dictionary,
            body,
        })
    }

    /// The bytes of the file.
    pub fn file(&self) -> Vec<u8> {
        let (kind, length, converted, scale) = COLUMNS[self.column];
        let mut bytes = b"PAR1".to_vec();
        // The width of a value, or the least that one takes.
        let width = [1, 4, 8, 12, 4, 8, 4, length as usize][kind as usize];
        if !self.dictionary.is_empty() {
            let mut header = ThriftWriter::new();
            let stored = compressed(self.codec, self.dictionary);
            header.i32(1, 2);
            header.i32(2, self.dictionary.len() as i32);
            header.i32(3, stored.len() as i32);
            header.begin(7);
            header.i32(1, (self.dictionary.len() / width) as i32);
            header.i32(2, 0);
            header.stop();
            header.stop();
            bytes.extend(header.into_bytes());
            bytes.extend(stored);
        }
        let first = bytes.len();
        for _ in 0..self.pages {
            let mut header = ThriftWriter::new();
            // In the second version the first byte has the length of the levels, and the number of NULLs.
            let (nulls, levels, body) = match self.body.split_first().filter(|_| self.second_version) {
                Some((how, rest)) => {
                    let (levels, body) = rest.split_at(usize::from(how % 16).min(rest.len()));
                    (i32::from(how / 16).min(self.values), levels, body)
                }
                None => (0, &[][..], self.body),
            };
            let (whole, stored) = match self.raw {
                true => (body.len() * 2, body.to_vec()),
                false => (body.len(), compressed(self.codec, body)),
            };
            header.i32(1, if self.second_version { 3 } else { 0 });
            header.i32(2, (whole + levels.len()) as i32);
            header.i32(3, (stored.len() + levels.len()) as i32);
            header.begin(if self.second_version { 8 } else { 5 });
            header.i32(1, self.values);
            if self.second_version {
                header.i32(2, nulls);
                header.i32(3, self.values);
                header.i32(4, self.encoding);
                header.i32(5, levels.len() as i32);
                header.i32(6, 0);
            } else {
                header.i32(2, self.encoding);
                header.i32(3, 3);
                header.i32(4, 3);
            }
            header.stop();
            header.stop();
            bytes.extend(header.into_bytes());
            bytes.extend([levels, &stored].concat());
        }
        let mut footer = ThriftWriter::new();
        footer.i32(1, 1);
        footer.list(2, 12, 2);
        footer.begin_element();
        footer.binary(4, b"root");
        footer.i32(5, 1);
        footer.stop();
        footer.begin_element();
        footer.i32(1, kind);
        footer.i32(2, length);
        footer.i32(3, self.optional.into());
        footer.binary(4, b"c");
        if let Some(converted) = converted {
            footer.i32(6, converted);
        }
        if let Some(scale) = scale {
            footer.i32(7, scale);
            footer.i32(8, 9);
        }
        footer.stop();
        let rows = i64::from(self.values) * self.pages as i64;
        footer.i64(3, rows);
        footer.list(4, 12, 1);
        footer.begin_element();
        footer.list(1, 12, 1);
        footer.begin_element();
        footer.i64(2, 0);
        footer.begin(3);
        footer.i32(1, kind);
        footer.list(2, 5, 2);
        footer.integer(self.encoding.into());
        footer.integer(3);
        footer.list(3, 8, 1);
        footer.bytes_value(b"c");
        footer.i32(4, self.codec);
        let length = (bytes.len() - 4) as i64;
        for (field, number) in [(5, rows), (6, length), (7, length), (9, first as i64)] {
            footer.i64(field, number);
        }
        if !self.dictionary.is_empty() {
            footer.i64(11, 4);
        }
        footer.stop();
        footer.stop();
        footer.i64(2, length);
        footer.i64(3, rows);
        footer.stop();
        footer.stop();
        let footer = footer.into_bytes();
        bytes.extend(&footer);
        bytes.extend((footer.len() as u32).to_le_bytes());
        bytes.extend(b"PAR1");
        bytes
    }
}
