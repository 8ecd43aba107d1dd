//! The contacts dataset generated the usual way: values are drawn into Arrow builders, and batches go to the
//! `ArrowWriter` of the `parquet` crate 60. One thread and one file per part, without channels.
//!
//! Values have the distribution of `crates/generator/datasets/contacts.toml`: 20 % of the names are null, 40 % of
//! the phone lists, and so on. They are drawn with one multiplication and shift (SplitMix64) from tables and
//! written to the builders without intermediate strings, so that drawing is not the bottleneck.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, LazyLock};

use arrow_array60::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array60::{ArrayRef, RecordBatch};
use arrow_schema60::{DataType, Field, Fields, Schema, SchemaRef};
use parquet60::arrow::ArrowWriter;
use parquet60::basic::Compression;
use parquet60::file::properties::WriterProperties;

/// Rows per batch.
const BATCH: u64 = 8192;

/// The words from which the generator builds names.
static FIRST: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../crates/generator/datasets/first_names.txt").lines().collect());
static LAST: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../crates/generator/datasets/last_names.txt").lines().collect());
const TYPES: [(&str, u64); 3] = [("Mobile", 55), ("Work", 35), ("Home", 10)];
/// Of 180 non-null lists, how many have one phone, two, and so on.
const LENGTHS: [u64; 5] = [135, 30, 5, 5, 5];
/// Which fields of a phone are present, in percent: both, the number, the type, neither.
const PRESENT: [u64; 4] = [90, 5, 4, 1];

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(z ^ (z >> 31)) * u128::from(end)) >> 64) as u64
    }

    /// The index of a weight, drawn according to the weights.
    fn weighted(&mut self, weights: impl IntoIterator<Item = u64> + Clone) -> usize {
        let mut at = self.below(weights.clone().into_iter().sum());
        for (place, weight) in weights.into_iter().enumerate() {
            if at < weight {
                return place;
            }
            at -= weight;
        }
        0
    }
}

fn phone_fields() -> Fields {
    vec![Field::new("number", DataType::Utf8, true), Field::new("phone_type", DataType::Utf8, true)].into()
}

fn schema() -> SchemaRef {
    let phone = Field::new("element", DataType::Struct(phone_fields()), true);
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8, true),
        Field::new("phones", DataType::List(Arc::new(phone)), true),
    ]))
}

fn batch(schema: &SchemaRef, random: &mut Random, rows: u64, next_number: &mut u64) -> RecordBatch {
    let mut names = StringBuilder::with_capacity(rows as usize, rows as usize * 16);
    let element = Field::new("element", DataType::Struct(phone_fields()), true);
    let phones = StructBuilder::from_fields(phone_fields(), rows as usize);
    let mut phones = ListBuilder::new(phones).with_field(element);
    for _ in 0..rows {
        match random.below(10) < 2 {
            true => names.append_null(),
            false => {
                let mut word = |words: &[&'static str]| words[random.below(words.len() as u64) as usize];
                let (first, last) = (word(&FIRST), word(&LAST));
                // Written in place, without a string per name.
                let _ = write!(names, "{first} {last}");
                names.append_value("");
            }
        }
        if random.below(10) < 4 {
            phones.append_null();
            continue;
        }
        for _ in 0..=random.weighted(LENGTHS) {
            let present = random.weighted(PRESENT);
            let phone = phones.values();
            let number = phone.field_builder::<StringBuilder>(0).unwrap();
            if present == 0 || present == 1 {
                let _ = write!(number, "+91-{next_number:010}");
                number.append_value("");
                *next_number += 1;
            } else {
                number.append_null();
            }
            let kind = phone.field_builder::<StringBuilder>(1).unwrap();
            if present == 0 || present == 2 {
                kind.append_value(TYPES[random.weighted(TYPES.map(|(_, weight)| weight))].0);
            } else {
                kind.append_null();
            }
            phone.append(true);
        }
        phones.append(true);
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(names.finish()), Arc::new(phones.finish())];
    RecordBatch::try_new(Arc::clone(schema), columns).unwrap()
}

/// Writes one part and returns its number of rows. Parts draw different values.
pub fn write_part(sink: impl Write + Send, part: u64, rows: u64, codec: Compression) -> u64 {
    let schema = schema();
    let properties = WriterProperties::builder().set_compression(codec).build();
    let mut writer = ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties)).unwrap();
    let mut random = Random(42 + part);
    let mut next_number = part << 32;
    let mut left = rows;
    while left > 0 {
        let now = left.min(BATCH);
        writer.write(&batch(&schema, &mut random, now, &mut next_number)).unwrap();
        left -= now;
    }
    writer.close().unwrap().file_metadata().num_rows() as u64
}
