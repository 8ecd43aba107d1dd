//! Generates footers as the `parquet` crate's writer does, of any size and without data.
//!
//! Benchmarks need footers of 100,000 columns, whose files would take hours and terabytes to write; tests
//! need many shapes of chunks. A built-in generator draws the numbers: the same spec produces the same bytes
//! everywhere. The fuzz target, benchmarks and unit tests include this file.

use crate::thrift_writer::ThriftWriter;

const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// The contents of a [`SyntheticFooter`]'s columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticColumns {
    /// FLOAT, all alike: the reference in other projects' benchmarks.
    Float,
    /// Text, all alike: the other reference.
    Text,
    /// Like real tables: many types, sizes over many orders of magnitude, occasional nulls, dictionaries that
    /// some chunks abandon, names of all lengths.
    Mixed,
}

/// The footer to generate.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticFooter {
    /// The number of columns.
    pub columns: usize,
    /// The number of row groups.
    pub row_groups: usize,
    /// The contents of the columns.
    pub kind: SyntheticColumns,
    /// The seed of all numbers.
    pub seed: u64,
}

/// The draws of one column.
struct Column {
    name: String,
    physical_type: i32,
    type_length: usize,
    utf8: bool,
    optional: bool,
    codec: i32,
    dictionary: bool,
    /// Natural logarithm of the usual chunk size.
    log_size: f64,
    has_nulls: bool,
}

impl SyntheticFooter {
    /// The footer's metadata bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut random = Random(self.seed ^ 0x9e37_79b9_7f4a_7c15);
        let columns: Vec<Column> = (0..self.columns).map(|index| self.column(index, &mut random)).collect();
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        write_schema(&mut writer, &columns);
        let rows = 8192 + (random.next() % 100_000) as i64;
        writer.i64(3, rows * self.row_groups as i64);
        writer.list(4, STRUCT, self.row_groups as u64);
        let mut offset = 4;
        // The indexes follow all data, so that their offsets differ from the pages'.
        let mut index_offset = 1 << 33;
        for ordinal in 0..self.row_groups {
            let start = offset;
            writer.begin_element();
            writer.list(1, STRUCT, columns.len() as u64);
            for column in &columns {
                write_chunk(&mut writer, column, rows, &mut offset, &mut index_offset, &mut random);
            }
            writer.i64(2, (offset - start) * 2);
            writer.i64(3, rows);
            writer.i64(5, start);
            writer.i64(6, offset - start);
            if let Ok(ordinal) = i16::try_from(ordinal) {
                writer.field(7, I16);
                writer.integer(ordinal.into());
            }
            writer.stop();
        }
        writer.list(5, STRUCT, 1);
        writer.begin_element();
        writer.binary(1, b"made by");
        writer.binary(2, b"code");
        writer.stop();
        writer.binary(6, b"sawmill synthetic footer");
        writer.list(7, STRUCT, columns.len() as u64);
        for _ in &columns {
            writer.begin_element();
            writer.begin(1);
            writer.stop();
            writer.stop();
        }
        writer.stop();
        writer.into_bytes()
    }

    fn column(&self, index: usize, random: &mut Random) -> Column {
        let mut column = Column {
            name: format!("column_{index:05}"),
            physical_type: 4,
            type_length: 4,
            utf8: false,
            optional: true,
            codec: 0,
            dictionary: true,
            log_size: 10.0,
            has_nulls: false,
        };
        match self.kind {
            SyntheticColumns::Float => {}
            SyntheticColumns::Text => (column.physical_type, column.type_length, column.utf8) = (6, 0, true),
            SyntheticColumns::Mixed => {
                let words = [
                    "id",
                    "user",
                    "price",
                    "timestamp",
                    "is_active",
                    "shipping_address_line",
                    "x",
                    "quantity",
                ];
                column.name = format!("{}_{index}", words[(random.next() % 8) as usize]);
                let types = [(1, 4), (2, 8), (4, 4), (5, 8), (6, 0), (6, 0), (7, 16), (0, 1), (2, 8), (1, 4)];
                (column.physical_type, column.type_length) = types[(random.next() % 10) as usize];
                column.utf8 = column.physical_type == 6 && !random.next().is_multiple_of(4);
                column.optional = !random.next().is_multiple_of(4);
                column.codec = 6;
                column.dictionary = column.physical_type != 0 && !random.next().is_multiple_of(3);
                column.log_size = 6.0 + 8.0 * random.fraction();
                column.has_nulls = column.optional && random.next().is_multiple_of(2);
            }
        }
        column
    }
}

fn write_schema(writer: &mut ThriftWriter, columns: &[Column]) {
    writer.list(2, STRUCT, columns.len() as u64 + 1);
    writer.begin_element();
    writer.binary(4, b"arrow_schema");
    writer.i32(5, columns.len() as i32);
    writer.stop();
    for column in columns {
        writer.begin_element();
        writer.i32(1, column.physical_type);
        if column.physical_type == 7 {
            writer.i32(2, column.type_length as i32);
        }
        writer.i32(3, i32::from(column.optional));
        writer.binary(4, column.name.as_bytes());
        if column.utf8 {
            writer.i32(6, 0);
            writer.begin(10);
            writer.begin(1);
            writer.stop();
            writer.stop();
        }
        writer.stop();
    }
}

fn write_chunk(
    writer: &mut ThriftWriter,
    column: &Column,
    rows: i64,
    offset: &mut i64,
    index_offset: &mut i64,
    random: &mut Random,
) {
    // Sizes scatter around the column's own size by a factor of about three.
    let size = (column.log_size + random.normal()).exp() as i64 + 20;
    // One in eight chunks of a dictionary column overflows its dictionary.
    let fallback = column.dictionary && column.codec != 0 && random.next().is_multiple_of(8);
    let nulls = if column.has_nulls { (random.next() % 1000) as i64 } else { 0 };
    let pages = 1 + size / 100_000;
    writer.begin_element();
    writer.i64(2, 0);
    writer.begin(3);
    writer.i32(1, column.physical_type);
    let encodings: &[i64] = match (column.dictionary, fallback) {
        (false, _) => &[0, 3],
        (true, _) => &[0, 3, 8],
    };
    writer.list(2, I32, encodings.len() as u64);
    encodings.iter().for_each(|&encoding| writer.integer(encoding));
    writer.list(3, BINARY, 1);
    writer.bytes_value(column.name.as_bytes());
    writer.i32(4, column.codec);
    writer.i64(5, rows);
    writer.i64(6, size + size / 3);
    writer.i64(7, size);
    let dictionary_size = if column.dictionary { size / 4 } else { 0 };
    writer.i64(9, *offset + dictionary_size);
    if column.dictionary {
        writer.i64(11, *offset);
    }
    *offset += size;
    write_statistics(writer, column, nulls, random);
    write_encoding_stats(writer, column.dictionary, fallback, pages);
    writer.begin(16);
    if column.physical_type == 6 {
        writer.i64(1, size * 2);
    }
    if column.optional {
        writer.list(3, I64, 2);
        writer.integer(nulls);
        writer.integer(rows - nulls);
    }
    writer.stop();
    writer.stop();
    let (offsets, bounds) = (10 + 6 * pages, 20 + 12 * pages);
    writer.i64(4, *index_offset + bounds);
    writer.i32(5, offsets as i32);
    writer.i64(6, *index_offset);
    writer.i32(7, bounds as i32);
    *index_offset += offsets + bounds;
    writer.stop();
}

fn write_statistics(writer: &mut ThriftWriter, column: &Column, nulls: i64, random: &mut Random) {
    let bound = |random: &mut Random| -> Vec<u8> {
        let len = match column.type_length {
            0 => 1 + (random.next() % 24) as usize,
            len => len,
        };
        (0..len).map(|_| if column.physical_type == 0 { 1 } else { random.next() as u8 }).collect()
    };
    let (max, min) = (bound(random), bound(random));
    writer.begin(12);
    // For signed orders, also fill the deprecated fields.
    if matches!(column.physical_type, 0..=5) {
        writer.binary(1, &max);
        writer.binary(2, &min);
    }
    writer.i64(3, nulls);
    writer.binary(5, &max);
    writer.binary(6, &min);
    writer.bool(7, true);
    writer.bool(8, true);
    writer.stop();
}

fn write_encoding_stats(writer: &mut ThriftWriter, dictionary: bool, fallback: bool, pages: i64) {
    let plain = (0, 0, pages);
    let stats: &[(i32, i32, i64)] = match (dictionary, fallback) {
        (false, _) => &[plain],
        (true, false) => &[(2, 0, 1), (0, 8, pages)],
        (true, true) => &[(2, 0, 1), (0, 8, 1), plain],
    };
    writer.list(13, STRUCT, stats.len() as u64);
    for (page_type, encoding, count) in stats {
        writer.begin_element();
        writer.i32(1, *page_type);
        writer.i32(2, *encoding);
        writer.i32(3, *count as i32);
        writer.stop();
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately standard normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0
    }
}
