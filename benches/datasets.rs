//! The rows that benchmarks of the loader load, and the files they are in.

use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use sawmill_generator::Dataset;
use sawmill_loader::{GeneratedRows, Source};

/// The name of a dataset, its spec, the column that can be its key, and its rows: a month of taxi trips, and TPC-H at
/// scale 1.
pub const DATASETS: [(&str, &str, &str, u64); 3] = [
    ("taxi", include_str!("../fixtures/taxi.toml"), "trip_id", 2_964_624),
    ("orders", include_str!("../fixtures/orders.toml"), "o_orderkey", 1_500_000),
    ("lineitem", include_str!("../fixtures/lineitem.toml"), "l_orderkey", 6_001_215),
];

/// A file of the first rows of a spec: dictionaries and Snappy as `pyarrow` writes by default, row groups of 1 Mi rows.
pub fn write_file(path: &Path, spec: &str, rows: u64) {
    let rows_source = GeneratedRows::new(Dataset::from_toml(spec).expect("a spec"), rows, 1);
    let properties = WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_max_row_group_row_count(Some(1 << 20))
        .build();
    let file = std::fs::File::create(path).expect("a file is made");
    let schema = rows_source.schema();
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).expect("a schema");
    let mut reader = rows_source.reader(64 * 1024);
    for unit in rows_source.plan(u64::MAX).into_iter().flatten() {
        reader.start(&unit).expect("rows are drawn");
        while let Some(batch) = reader.next_batch().expect("rows are drawn") {
            writer.write(&batch).expect("rows are written");
        }
    }
    writer.close().expect("the footer is written");
}
