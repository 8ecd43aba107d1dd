//! Rows that the server refuses: each is found, reported and counted, and all others are loaded.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sawmill_cratedb::{CrateOptions, Timestamps, Transport};
use sawmill_loader::{LoadOptions, LoadReport, LoadState};
use sawmill_source::{Kind, ParquetFiles};
use serde_json::Value;

use crate::cluster::{Cluster, append, keyed, run, small, source_of, write};

/// A table that takes neither long labels nor, as part of its key, NULL.
fn table(cluster: &Cluster) -> String {
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"k\" TEXT PRIMARY KEY, \"id\" BIGINT, \"label\" VARCHAR(9) NOT NULL) \
         CLUSTERED INTO 4 SHARDS WITH (number_of_replicas = '0')"
    ));
    table
}

/// Rows whose label is too long or missing for those numbers.
fn labels(rows: i64, bad: impl Fn(i64) -> bool) -> Vec<(&'static str, ArrayRef)> {
    let keys = StringArray::from_iter_values((0..rows).map(|id| format!("key {id}")));
    let label = |id: i64| match (bad(id), id % 2) {
        (false, _) => Some(format!("row {id}")),
        (true, 0) => Some("much too long".to_owned()),
        (true, _) => None,
    };
    vec![
        ("k", Arc::new(keys)),
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("label", Arc::new(StringArray::from_iter((0..rows).map(label)))),
    ]
}

fn rejected(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| (row["row_group"].as_u64(), row["row"].as_u64()));
    rows
}

#[test]
fn refused_rows_are_rejected_with_place_and_reason_and_the_rest_goes_in() {
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let table = table(&cluster);
        // More in a shard than the server explains.
        let bad = |id: i64| id % 7 == 3;
        let (kept, source) = source_of(labels(1_500, bad), 1000);
        let rejects = kept.path().join("rejects.ndjson");
        let options = CrateOptions {
            transport,
            rejects: Some(rejects.clone()),
            batch_rows: 400,
            ..CrateOptions::default()
        };
        let target = append(cluster.target(&table, options));
        let report = run(&source, &target, &LoadOptions { verify: true, ..small() }).unwrap();
        let expected: Vec<i64> = (0..1_500).filter(|id| bad(*id)).collect();
        assert_eq!(report.rows_rejected, expected.len() as u64);
        assert_eq!(report.rows, 1_500 - expected.len() as u64);
        assert_eq!(cluster.count(&table), report.rows);
        let rows = rejected(&rejects);
        let places: Vec<i64> = rows
            .iter()
            .map(|row| row["row_group"].as_i64().unwrap() * 1000 + row["row"].as_i64().unwrap())
            .collect();
        assert_eq!(places, expected);
        for row in &rows {
            assert!(row["file"].as_str().unwrap().ends_with("data.parquet"));
            assert_ne!(row["reason"], "the server states no reason", "{row}");
            assert_eq!(row["values"][0], format!("key {}", row["values"][1]));
        }
        let says = |report: &LoadReport, what: &str| report.notes.iter().any(|note| note.ends_with(what));
        assert!(says(&report, &format!("see {}", rejects.display())), "{:?}", report.notes);
        std::fs::remove_file(&rejects).unwrap();
        let again = run(&source, &target, &small()).unwrap();
        assert_eq!((again.rows_loaded, again.rows_rejected), (0, report.rows_rejected));
        assert!(
            says(&again, "is gone"),
            "a file that is gone is not named as if it were there: {:?}",
            again.notes
        );
    }
}

#[test]
fn without_a_file_for_them_the_first_refused_row_ends_the_load() {
    let cluster = Cluster::any();
    let table = table(&cluster);
    let (_kept, source) = source_of(labels(900, |id| id == 700), 1000);
    let options = CrateOptions { transport: Transport::Http, batch_rows: 400, ..CrateOptions::default() };
    let error = run(&source, &append(cluster.target(&table, options)), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.place().contains("row 700") && error.advice().contains("--rejects"), "{error}");
}

#[test]
fn a_request_that_is_refused_as_a_whole_is_halved_down_to_the_rows_at_fault() {
    let cluster = Cluster::any();
    let table = table(&cluster);
    // NULL in the primary key refuses the whole request.
    let mut columns = labels(1_000, |_| false);
    let keys = (0..1_000).map(|id| (id != 123 && id != 124 && id != 900).then(|| format!("key {id}")));
    columns[0].1 = Arc::new(StringArray::from_iter(keys));
    let (kept, source) = source_of(columns, 1000);
    let rejects = kept.path().join("rejects.ndjson");
    let options = CrateOptions {
        transport: Transport::Http,
        rejects: Some(rejects.clone()),
        batch_rows: 500,
        ..CrateOptions::default()
    };
    let report =
        run(&source, &append(cluster.target(&table, options)), &LoadOptions { verify: true, ..small() })
            .unwrap();
    assert_eq!((report.rows, report.rows_rejected), (997, 3));
    let rows: Vec<i64> = rejected(&rejects).iter().map(|row| row["row"].as_i64().unwrap()).collect();
    assert_eq!(rows, [123, 124, 900]);
}

#[test]
fn too_many_refused_rows_end_the_load() {
    let cluster = Cluster::any();
    let table = table(&cluster);
    let (kept, source) = source_of(labels(900, |id| id >= 100), 1000);
    let options = CrateOptions {
        transport: Transport::Http,
        rejects: Some(kept.path().join("rejects.ndjson")),
        max_rejects: Some(5),
        ..CrateOptions::default()
    };
    let error = run(&source, &append(cluster.target(&table, options)), &LoadOptions { degree: 1, ..small() })
        .unwrap_err();
    assert!(error.what().contains("the server refused 6 rows"), "{error}");
    assert_eq!(rejected(&kept.path().join("rejects.ndjson")).len(), 6);
}

#[test]
fn values_that_have_no_place_in_the_table_are_rejected_too() {
    let cluster = Cluster::any();
    let fine = (0..300).map(|i| if i == 17 || i == 250 { 1001 } else { i * 1000 });
    let columns: Vec<(&str, ArrayRef)> =
        vec![("at", Arc::new(TimestampMicrosecondArray::from_iter_values(fine)))];
    let (kept, source) = source_of(columns, 1000);
    for transport in [Transport::Http, Transport::Pg] {
        let rejects = kept.path().join("rejects.ndjson");
        let options = CrateOptions {
            rejects: Some(rejects.clone()),
            timestamps: Timestamps::Error,
            batch_rows: 100,
            ..crate::cluster::keyed(transport)
        };
        let table = cluster.table();
        let report =
            run(&source, &cluster.target(&table, options), &LoadOptions { verify: true, ..small() }).unwrap();
        assert_eq!((report.rows, report.rows_rejected), (298, 2));
        let rows = rejected(&rejects);
        assert_eq!(rows[0]["row"], 17);
        assert!(rows[1]["reason"].as_str().unwrap().contains("finer than a millisecond"));
    }
}

#[test]
fn a_file_with_rejected_rows_is_compared_with_the_table() {
    // Length and footer of the file do not depend on the keys.
    let written = |path: &Path, key: &str| {
        let mut columns = labels(1_500, |id| id % 7 == 3);
        columns[0].1 = Arc::new(StringArray::from_iter_values((0..1_500).map(|id| format!("{key} {id}"))));
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::None)
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(1_000))
            .build();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        ParquetFiles::open(&[path]).unwrap()
    };
    for transport in [Transport::Http, Transport::Pg] {
        let cluster = Cluster::any();
        let (table, kept) = (table(&cluster), tempfile::tempdir().unwrap());
        let rejects = Some(kept.path().join("rejects.ndjson"));
        let options = CrateOptions { transport, rejects, batch_rows: 400, ..CrateOptions::default() };
        let target = append(cluster.target(&table, options));
        let path = kept.path().join("data.parquet");
        let first = run(&written(&path, "key"), &target, &small()).unwrap();
        let again = run(&written(&path, "key"), &target, &small()).unwrap();
        assert_eq!((again.state, again.rows), (LoadState::Complete, first.rows));
        assert!(!again.notes.iter().any(|note| note.contains("not looked at")), "{:?}", again.notes);
        // Alone as well as beside another file.
        let other = kept.path().join("other.parquet");
        let beside = || ParquetFiles::open(&[path.clone(), other.clone()]).unwrap();
        let error = run(&written(&path, "kex"), &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed, "{error}");
        written(&other, "oth");
        let error = run(&beside(), &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Changed, "{error}");
        written(&path, "key");
        let report = run(&beside(), &target, &small()).unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 1));
        assert_eq!((report.rows, report.rows_rejected), (2 * first.rows, 2 * first.rows_rejected));
    }
}

#[test]
fn a_later_append_keeps_the_rejected_rows_of_other_files() {
    let cluster = Cluster::any();
    let table = cluster.table();
    cluster.sql(&format!(
        "CREATE TABLE doc.\"{table}\" (\"id\" BIGINT PRIMARY KEY) WITH (number_of_replicas = '0')"
    ));
    let folder = tempfile::tempdir().unwrap();
    let rejects = folder.path().join("rejects.ndjson");
    let options = CrateOptions { row_key: None, rejects: Some(rejects.clone()), ..keyed(Transport::Http) };
    let target = append(cluster.target(&table, options));
    let file = |name: &str, ids: Vec<i64>| {
        let path = folder.path().join(name);
        let ids: ArrayRef = Arc::new(Int64Array::from(ids));
        write(&path, &RecordBatch::try_from_iter([("id", ids)]).unwrap(), 1000);
        path
    };
    let (a, b) = (file("a.parquet", vec![1, i64::MAX]), file("b.parquet", vec![2, i64::MAX, i64::MIN]));
    let load = |paths: &[&std::path::PathBuf]| {
        let report = run(&ParquetFiles::open(paths).unwrap(), &target, &small()).unwrap();
        let text = std::fs::read_to_string(&rejects).unwrap();
        let of = |path: &std::path::PathBuf| {
            text.lines().filter(|line| line.contains(path.to_str().unwrap())).count()
        };
        (report.rows_rejected, of(&a), of(&b))
    };
    assert_eq!(load(&[&a]), (1, 1, 0));
    assert_eq!(load(&[&a, &b]), (3, 1, 2));
    assert_eq!(load(&[&b]), (2, 1, 2));
}
