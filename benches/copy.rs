//! Encodes Arrow batches as PostgreSQL's binary COPY, type by type, with the loader and with `pgpq`. `cargo
//! bench --bench copy`; a filter such as `-- int64` selects some types.
//!
//! Both get the same batches and write bytes to memory. As in a load, the loader also sums up the encoded values
//! (rows, content sum, non-null values); `pgpq` does not. The third figure is the content sum alone. Lists and
//! structs are excluded: the loader encodes them as jsonb, `pgpq` as arrays and composite types. The benchmark
//! stops unless both encode the first batch to the same bytes.

mod taxi;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pgpq::ArrowToPostgresBinaryEncoder;
use sawmill_loader::{BatchEncoder, ContentSum};
use sawmill_postgres::Postgres;
use sawmill_source::{
    Facts, Known, Mapping, Read, Result, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader,
    counted_places,
};

/// Rows per batch, and batches per measurement.
const ROWS: usize = 4096;
const BATCHES: usize = 16;
/// Bytes per block.
const BLOCK: usize = 256 * 1024;

/// A source with a schema but no rows: the batches already exist.
struct SchemaOnly(SchemaRef);

impl Source for SchemaOnly {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn files(&self) -> &[SourceFile] {
        &[]
    }

    fn facts(&self) -> Facts {
        Facts::of_files(self.files(), &Mapping::default())
    }

    fn plan(&self, _: u64) -> Vec<Vec<Unit>> {
        Vec::new()
    }

    fn known(&self, _: u32, _: usize) -> Result<Vec<Known>> {
        Ok(Vec::new())
    }

    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, _: UnitKey, rows: &[u64], _: bool) -> Result<Vec<RowPlace>> {
        Ok(counted_places(rows))
    }

    fn open(&self, _: Read<'_>, _: usize) -> Box<dyn UnitReader + '_> {
        unreachable!("the source has no units")
    }
}

/// Unordered numbers.
fn numbers() -> impl Iterator<Item = i64> + Clone {
    (0..ROWS as i64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))
}

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let some = |number: i64| (number % 10 != 0).then_some(number);
    vec![
        ("bool", Arc::new(BooleanArray::from_iter(numbers().map(|n| Some(n % 2 == 0))))),
        ("int32", Arc::new(Int32Array::from_iter_values(numbers().map(|n| n as i32)))),
        ("int64", Arc::new(Int64Array::from_iter_values(numbers()))),
        ("int64_with_nulls", Arc::new(Int64Array::from_iter(numbers().map(some)))),
        ("float64", Arc::new(Float64Array::from_iter_values(numbers().map(|n| n as f64 / 1e9)))),
        (
            "text_12",
            Arc::new(StringArray::from_iter_values(
                numbers().map(|n| format!("{:012x}", n >> 16 & 0xffff_ffff_ffff)),
            )),
        ),
        (
            "text_200",
            Arc::new(StringArray::from_iter_values(numbers().map(|n| format!("{n:020}").repeat(10)))),
        ),
        ("date", Arc::new(Date32Array::from_iter_values(numbers().map(|n| n.rem_euclid(20_000) as i32)))),
        (
            "timestamp",
            Arc::new(TimestampMicrosecondArray::from_iter_values(numbers().map(|n| n.rem_euclid(1 << 50)))),
        ),
    ]
}

fn ours(source: &SchemaOnly) -> Box<dyn BatchEncoder> {
    let target = Postgres::new("postgres://me@localhost/db".parse().unwrap(), "t".parse().unwrap());
    target.encoder(source, BLOCK).unwrap()
}

/// The encoded rows of a batch, without header and trailer.
fn rows_of_ours(source: &SchemaOnly, batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = ours(source);
    let mut emit = |block: sawmill_loader::Block| {
        bytes.extend_from_slice(&block.bytes);
        Ok(())
    };
    encoder.encode(batch, &mut emit).unwrap();
    encoder.end_unit(&mut emit).unwrap();
    bytes
}

/// Splits encoded rows: each starts with a 16-bit field count, and each field with a 32-bit length.
fn single_rows(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut rows = Vec::new();
    while let Some((fields, _)) = bytes.split_first_chunk::<2>() {
        let mut end = 2;
        for _ in 0..i16::from_be_bytes(*fields) {
            let length = bytes[end..].first_chunk::<4>().expect("a field has a length");
            end += 4 + i32::from_be_bytes(*length).max(0) as usize;
        }
        let (row, rest) = bytes.split_at(end);
        rows.push(row);
        bytes = rest;
    }
    rows
}

fn copy(criterion: &mut Criterion) {
    let columns = columns();
    let all: Vec<ArrayRef> = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let mut cases: Vec<(&str, Vec<ArrayRef>)> =
        columns.into_iter().map(|(name, array)| (name, vec![array])).collect();
    cases.push(("all_nine", all));
    cases.push(("taxi", taxi::batch(ROWS, 7).columns().to_vec()));
    for (name, arrays) in cases {
        let fields: Vec<Field> = arrays
            .iter()
            .enumerate()
            .map(|(i, array)| Field::new(format!("c{i}"), array.data_type().clone(), array.null_count() > 0))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
        let source = SchemaOnly(Arc::clone(&schema));
        let encoder = || ArrowToPostgresBinaryEncoder::try_new(&schema).unwrap();
        let mut theirs = BytesMut::new();
        let mut first = encoder();
        first.write_header(&mut BytesMut::new()).unwrap();
        first.write_batch(&batch, &mut theirs).unwrap();
        assert!(rows_of_ours(&source, &batch) == theirs[..], "{name}: the two encodings differ");
        let mut group = criterion.benchmark_group(format!("copy/{name}"));
        group.throughput(Throughput::Bytes((theirs.len() * BATCHES) as u64));
        group
            .sample_size(20)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_secs(1));
        group.bench_function("sawmill", |bench| {
            let mut encoder = ours(&source);
            let mut emit = |block: sawmill_loader::Block| {
                black_box(block);
                Ok(())
            };
            bench.iter(|| {
                for _ in 0..BATCHES {
                    encoder.encode(black_box(&batch), &mut emit).unwrap();
                }
                encoder.end_unit(&mut emit).unwrap()
            });
        });
        group.bench_function("pgpq", |bench| {
            // Its buffer is reused too.
            let mut buffer = BytesMut::with_capacity(theirs.len() * 2);
            bench.iter_batched_ref(
                || {
                    let mut encoder = encoder();
                    encoder.write_header(&mut BytesMut::new()).unwrap();
                    encoder
                },
                |encoder| {
                    for _ in 0..BATCHES {
                        buffer.clear();
                        encoder.write_batch(black_box(&batch), &mut buffer).unwrap();
                        black_box(&buffer);
                    }
                },
                BatchSize::SmallInput,
            );
        });
        let rows = single_rows(&theirs);
        group.bench_function("content sum alone", |bench| {
            bench.iter(|| {
                let mut sum = ContentSum::default();
                for _ in 0..BATCHES {
                    black_box(&rows).iter().for_each(|row| sum.add(row));
                }
                sum
            });
        });
        group.finish();
    }
}

criterion_group!(benches, copy);
criterion_main!(benches);
