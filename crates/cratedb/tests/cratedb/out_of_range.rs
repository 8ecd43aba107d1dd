//! Values that CrateDB takes over HTTP and the PostgreSQL wire cannot carry.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, RecordBatch, TimestampMillisecondArray};
use sawmill_cratedb::{CrateOptions, Transport};
use sawmill_loader::LoadOptions;
use sawmill_source::ParquetFiles;

use crate::cluster::{Cluster, run, small, source_of, write};

#[test]
fn values_out_of_the_range_of_the_postgresql_wire_go_over_http() {
    for transport in [Transport::Auto, Transport::Pg] {
        let cluster = Cluster::any();
        let table = cluster.table();
        // Milliseconds that are in the range of CrateDB, and as microseconds beyond 64 bits.
        let extremes = [i64::MAX - 1, i64::MIN + 1, 253_402_300_800_000, -62_135_596_800_000];
        let moments = TimestampMillisecondArray::from_iter_values(
            (0..1_500).map(|row| if row % 300 == 7 { extremes[row as usize / 300 % 4] } else { row }),
        );
        let days = Date32Array::from_iter_values((0..1_500).map(|row| match row {
            900 => i32::MAX,
            901 => i32::MIN,
            row => row,
        }));
        let (_kept, source) = source_of(vec![("at", Arc::new(moments)), ("day", Arc::new(days))], 1000);
        let options = CrateOptions {
            transport,
            batch_rows: 100,
            replicas: Some("0".into()),
            ..CrateOptions::default()
        };
        let report = run(&source, &cluster.target(&table, options), &LoadOptions { verify: true, ..small() });
        let report = report.unwrap();
        assert_eq!((report.rows, cluster.count(&table)), (1_500, 1_500));
        assert!(report.verified.unwrap().matches());
        let told = |note: &sawmill_loader::Note| {
            note.contains("transport pg: ") && note.contains("http: ") && note.contains("out of the range")
        };
        assert!(report.notes.iter().any(told), "{:?}", report.notes);
    }
}

#[test]
fn small_files_that_share_a_batch_with_such_a_value_go_over_http_together() {
    let cluster = Cluster::any();
    let table = cluster.table();
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..30i64)
        .map(|file| {
            let moments =
                (0..20).map(|row| if (file, row) == (11, 4) { i64::MAX - 1 } else { file * 20 + row });
            let array: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(moments));
            let path = directory.path().join(format!("{file:02}.parquet"));
            write(&path, &RecordBatch::try_from_iter([("at", array)]).unwrap(), 1000);
            path
        })
        .collect();
    let source = ParquetFiles::open(&paths).unwrap();
    let options =
        CrateOptions { transport: Transport::Pg, replicas: Some("0".into()), ..CrateOptions::default() };
    let report =
        run(&source, &cluster.target(&table, options), &LoadOptions { verify: true, degree: 1, ..small() })
            .unwrap();
    assert_eq!((report.rows, cluster.count(&table)), (600, 600));
    assert!(report.verified.unwrap().matches());
}
