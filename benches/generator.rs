//! The generator's hot paths, each measured with a dataset that uses little else: drawing values by
//! distribution, shredding by nesting, encoding pages by type. `cargo bench --bench generator`; a filter such
//! as `-- draw` selects some.
//!
//! Page encoding is compared with the `parquet` crate 60: its `ArrowWriter` with the same settings (no
//! compression) gets batches drawn beforehand, while ours draws and encodes.

#[path = "generator_run.rs"]
mod generator_run;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array60::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema60::{DataType, Field, Schema};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use generator_run::generate;
use parquet60::arrow::ArrowWriter;
use parquet60::file::properties::WriterProperties;
use sawmill_generator::{Dataset, FileOptions, ZipfSampler};

/// Rows per dataset: several pages of each column.
const ROWS: u64 = 100_000;
/// The number of 1,024-value blocks with about as many values.
const BLOCKS: u64 = 98;

fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(ROWS));
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    group
}

fn field(kind: &str, rest: &str) -> String {
    format!("name = \"d\"\n[[fields]]\nname = \"a\"\ntype = \"{kind}\"\n{rest}\n")
}

fn ours(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, spec: &str) {
    let dataset = Dataset::from_toml(spec).unwrap();
    group.bench_function(name, |bench| {
        bench.iter(|| generate(black_box(&dataset), ROWS, 1, &FileOptions::default()))
    });
}

/// One column for each distribution; includes encoding its page.
fn draw(criterion: &mut Criterion) {
    let mut group = group(criterion, "draw");
    for (name, kind, values) in [
        ("constant", "int64", "values = { constant = 7 }"),
        ("uniform_int64", "int64", "values = { uniform = { min = 0, max = 1000000000 } }"),
        ("uniform_double", "double", "values = { uniform = { min = 0.5, max = 200 } }"),
        ("zipf_1000000", "int64", "values = { zipf = { n = 1000000, s = 1.1 } }"),
        ("zipf_1000", "int64", "values = { zipf = { n = 1000, s = 1.2 } }"),
        ("weights_3_words", "string", "values = { weights = { open = 20, shipped = 70, returned = 10 } }"),
        ("unique_text", "string", "values = { unique = \"SKU-{id:08}\" }"),
        ("person_name", "string", "values = \"person_name\""),
        ("with_nulls", "int64", "nulls = 0.2\nvalues = { uniform = { min = 0, max = 1000000000 } }"),
    ] {
        ours(&mut group, name, &field(kind, values));
    }
    group.finish();
}

/// Drawing alone, into memory that stays in the cache: the cost of one value.
fn value(criterion: &mut Criterion) {
    let mut group = group(criterion, "value");
    group.throughput(Throughput::Elements(BLOCKS * 1024));
    let mut ranks = vec![0u64; 1024];
    for n in [1_000, 1_000_000, 1_000_000_000] {
        let sampler = ZipfSampler::new(n, 1.1, 42).unwrap();
        group.bench_function(format!("zipf, n = {n}"), |bench| {
            bench.iter(|| (0..BLOCKS).for_each(|block| sampler.fill(block, black_box(&mut ranks))));
        });
    }
    group.finish();
}

/// The same leaf below increasingly deep structures.
fn shred(criterion: &mut Criterion) {
    let mut group = group(criterion, "shred");
    let leaf = "values = { uniform = { min = 0, max = 255 } }";
    let length = "length = { uniform = { min = 0, max = 3 } }";
    let list = |at: &str, inner: &str| format!("{length}\n[{at}.element]\n{inner}");
    ours(&mut group, "flat", &field("int32", leaf));
    ours(&mut group, "optional", &field("int32", &format!("nulls = 0.3\n{leaf}")));
    let inner = format!("type = \"int32\"\n{leaf}");
    ours(&mut group, "list", &field("list", &list("fields", &inner)));
    let inner = format!("type = \"list\"\n{}", list("fields.element", &inner));
    ours(&mut group, "list_of_lists", &field("list", &list("fields", &inner)));
    let structs = format!(
        "nulls = 0.1\n[[fields.fields]]\nname = \"b\"\ntype = \"int32\"\nnulls = 0.1\n{leaf}\n\
         [[fields.fields]]\nname = \"c\"\ntype = \"int32\"\n{leaf}"
    );
    ours(&mut group, "struct_of_two", &field("struct", &structs));
    let contacts = Dataset::built_in("contacts").unwrap().unwrap();
    group.bench_function("contacts", |bench| {
        bench.iter(|| generate(black_box(&contacts), ROWS, 1, &FileOptions::default()))
    });
    group.finish();
}

/// Ours draws and encodes; the peer encodes prepared batches.
fn pages(criterion: &mut Criterion) {
    let mut group = group(criterion, "pages");
    let random: Vec<i64> =
        (0..ROWS as i64).map(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)).collect();
    let text: Vec<String> = (0..ROWS).map(|row| format!("SKU-{row:08}")).collect();
    let words = ["open", "shipped", "returned"];
    let peers: [(&str, &str, &str, ArrayRef); 5] = [
        (
            "int64",
            "int64",
            "values = { uniform = { min = 0, max = 1000000000 } }",
            Arc::new(Int64Array::from_iter_values(
                random.iter().map(|value| value.rem_euclid(1_000_000_000)),
            )),
        ),
        (
            "double",
            "double",
            "values = { uniform = { min = 0.5, max = 200 } }",
            Arc::new(Float64Array::from_iter_values(random.iter().map(|value| *value as f64 / 1e12))),
        ),
        (
            "boolean",
            "boolean",
            "values = { weights = { true = 1, false = 2 } }",
            Arc::new(BooleanArray::from_iter(random.iter().map(|value| Some(value % 3 == 0)))),
        ),
        (
            "dictionary",
            "string",
            "values = { weights = { open = 20, shipped = 70, returned = 10 } }",
            Arc::new(StringArray::from_iter_values(
                random.iter().map(|value| words[value.rem_euclid(3) as usize]),
            )),
        ),
        (
            "text",
            "string",
            "values = { unique = \"SKU-{id:08}\" }",
            Arc::new(StringArray::from_iter_values(&text)),
        ),
    ];
    for (name, kind, values, array) in peers {
        ours(&mut group, &format!("{name}/sawmill, drawing included"), &field(kind, values));
        let schema = Arc::new(Schema::new(vec![Field::new("a", array.data_type().clone(), false)]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).unwrap();
        // Unique values gain nothing from a dictionary, and ours creates none for them either.
        let dictionary =
            matches!(batch.schema().field(0).data_type(), DataType::Utf8) && name == "dictionary";
        let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
        group.bench_function(format!("{name}/parquet60, ready-made batches"), |bench| {
            bench.iter(|| {
                let sink = std::io::sink();
                let mut writer =
                    ArrowWriter::try_new(sink, Arc::clone(&schema), Some(properties.clone())).unwrap();
                writer.write(black_box(&batch)).unwrap();
                writer.close().unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, value, draw, shred, pages);
criterion_main!(benches);
