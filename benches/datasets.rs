//! The rows that the loader's benchmarks load, and the files that hold them.

use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_generator::Dataset;
use sawmill_source::{GeneratedRows, Source};

/// For each dataset its name, its spec, a column that can be its key, and its number of rows: a month of taxi
/// trips, and TPC-H at scale 1.
pub const DATASETS: [(&str, &str, &str, u64); 3] = [
    ("taxi", include_str!("../fixtures/taxi.toml"), "trip_id", 2_964_624),
    ("orders", include_str!("../fixtures/orders.toml"), "o_orderkey", 1_500_000),
    ("lineitem", include_str!("../fixtures/lineitem.toml"), "l_orderkey", 6_001_215),
];

/// Writes the first rows of a spec to a file: dictionaries and Snappy like `pyarrow`'s defaults, row groups
/// of 1 Mi rows.
pub fn write_file(path: &Path, spec: &str, rows: u64) {
    let rows_source = GeneratedRows::new(Dataset::from_toml(spec).expect("a spec"), rows, 1);
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_max_row_group_row_count(Some(1 << 20))
        .build();
    let file = std::fs::File::create(path).expect("the file can be created");
    let schema = rows_source.schema();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).expect("a schema");
    let mut reader = rows_source.reader(64 * 1024);
    for unit in rows_source.plan(u64::MAX).into_iter().flatten() {
        reader.start(&unit).expect("the rows can be drawn");
        while let Some(batch) = reader.next_batch().expect("the rows can be drawn") {
            writer.write(&batch).expect("the rows can be written");
        }
    }
    writer.close().expect("the footer can be written");
}
