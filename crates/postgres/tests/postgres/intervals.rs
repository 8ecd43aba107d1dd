//! Parquet's INTERVAL, months, days and milliseconds in 12 bytes, as DuckDB writes it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::ConvertedType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use sawmill_loader::{Mode, RejectOptions, Verification};
use sawmill_postgres::{Nested, PostgresTables, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::rejects::read_rejects;

const MESSAGE: &str = "message m {
    required int32 n;
    optional fixed_len_byte_array(12) pause (INTERVAL);
    optional group trip { optional fixed_len_byte_array(12) took (INTERVAL); optional fixed_len_byte_array(12) mark; }
    optional group waits (LIST) { repeated group list { optional fixed_len_byte_array(12) element (INTERVAL); } }
}";

fn bytes(parts: Option<[u32; 3]>) -> Option<Vec<u8>> {
    parts.map(|parts| parts.iter().flat_map(|part| part.to_le_bytes()).collect())
}

fn intervals(values: &[Option<[u32; 3]>]) -> ArrayRef {
    let values = values.iter().map(|parts| bytes(*parts));
    Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 12).unwrap())
}

/// A file without an Arrow schema: each pause also alone in a struct, beside 12 bytes that are not an interval,
/// and in a list of two.
fn file(directory: &Path, pauses: &[Option<[u32; 3]>]) -> PathBuf {
    let bytes_of = |name: &str| Field::new(name, DataType::FixedSizeBinary(12), true);
    let rows = pauses.len();
    let ones = vec![Some([1, 1, 1]); rows];
    let trip = Fields::from(vec![bytes_of("took"), bytes_of("mark")]);
    let trip = StructArray::new(trip, vec![intervals(pauses), intervals(&ones)], None);
    let twice: Vec<_> = pauses.iter().flat_map(|parts| [*parts, Some([0, 0, 500])]).collect();
    let offsets = OffsetBuffer::from_lengths(vec![2; rows]);
    let waits = ListArray::new(Arc::new(bytes_of("element")), offsets, intervals(&twice), None);
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("n", Arc::new(Int32Array::from_iter_values(0..rows as i32)), false),
        ("pause", intervals(pauses), true),
        ("trip", Arc::new(trip), true),
        ("waits", Arc::new(waits), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(MESSAGE).unwrap()));
    let options = ArrowWriterOptions::new().with_parquet_schema(schema).with_skip_arrow_metadata(true);
    let path = directory.join("intervals.parquet");
    let mut writer =
        ArrowWriter::try_new_with_options(File::create(&path).unwrap(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

fn texts(database: &Database, query: &str) -> Vec<Option<String>> {
    database.client().query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

/// One of all three parts, none, an empty one, the greatest.
const PAUSES: [Option<[u32; 3]>; 4] =
    [Some([14, 3, 3_723_004]), None, Some([0; 3]), Some([i32::MAX as u32, i32::MAX as u32, u32::MAX])];
const TEXTS: [Option<&str>; 4] = [
    Some("1 year 2 mons 3 days 01:02:03.004"),
    None,
    Some("00:00:00"),
    Some("178956970 years 7 mons 2147483647 days 1193:02:47.295"),
];

#[test]
fn all_three_parts_arrive_at_any_level_of_nesting() {
    let directory = tempfile::tempdir().unwrap();
    // Many rows of few values: pages of a dictionary.
    let pauses: Vec<_> = PAUSES.iter().copied().cycle().take(1200).collect();
    let source = ParquetFiles::open(&[file(directory.path(), &pauses)]).unwrap();
    let database = Database::new();
    let report = run(&source, &database.target("t"), &small()).unwrap();
    assert!(report.verified.unwrap().matches());
    let values = texts(&database, "SELECT pause::text FROM t ORDER BY n LIMIT 4");
    assert_eq!(values.iter().map(Option::as_deref).collect::<Vec<_>>(), TEXTS);
    assert_eq!(
        texts(&database, "SELECT DISTINCT pg_typeof(pause)::text FROM t"),
        [Some("interval".to_owned())]
    );
    let nested = texts(&database, "SELECT trip::text || waits::text FROM t ORDER BY n LIMIT 2");
    let mark = "\"mark\": \"\\\\x010000000100000001000000\"";
    let expected = [
        format!("{{{mark}, \"took\": \"P1Y2M3DT1H2M3.004S\"}}[\"P1Y2M3DT1H2M3.004S\", \"PT0.5S\"]"),
        format!("{{{mark}, \"took\": null}}[null, \"PT0.5S\"]"),
    ];
    assert_eq!(nested.into_iter().flatten().collect::<Vec<_>>(), expected);

    let native = database.target("native").nested(Nested::Native);
    assert!(run(&source, &native, &small()).unwrap().verified.unwrap().matches());
    let values = texts(&database, "SELECT (trip).took::text FROM native ORDER BY n LIMIT 4");
    assert_eq!(values.iter().map(Option::as_deref).collect::<Vec<_>>(), TEXTS);
    let of_lists = "SELECT pg_typeof(waits)::text || waits[2]::text FROM native LIMIT 1";
    assert_eq!(texts(&database, of_lists), [Some("interval[]00:00:00.5".to_owned())]);

    let tables = PostgresTables::new(&source, database.target("parts"), false).unwrap();
    let reports = with_control(|control| tables.load(&small(), control, &mut |_| {})).unwrap();
    assert!(reports.iter().all(|report| report.result.verified.as_ref().unwrap().matches()));
    let of_structs = "SELECT trip_took::text FROM parts ORDER BY _row LIMIT 4";
    let values = texts(&database, of_structs);
    assert_eq!(values.iter().map(Option::as_deref).collect::<Vec<_>>(), TEXTS);
    let of_items = "SELECT value::text FROM parts_waits ORDER BY _row, _ordinal LIMIT 1";
    assert_eq!(texts(&database, of_items), [TEXTS[0].map(str::to_owned)]);
}

#[test]
fn intervals_go_into_existing_interval_columns_and_rows_are_filtered_by_other_columns() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &PAUSES);
    let source = ParquetFiles::open(&[&path]).unwrap().select(&["pause".into(), "n".into()], &[]).unwrap();
    let database = Database::new();
    database.client().batch_execute("CREATE TABLE t (n integer, pause interval)").unwrap();
    let append = database.target("t").mode(Mode::Append);
    let some = with_control(|control| source.filtered("n <= 1".parse().unwrap(), control)).unwrap();
    assert!(run(&some, &append, &small()).unwrap().verified.unwrap().matches());
    let values = texts(&database, "SELECT pause::text FROM t ORDER BY n");
    assert_eq!(values.iter().map(Option::as_deref).collect::<Vec<_>>(), TEXTS[..2]);

    let condition = "pause = x'000000000000000000000000'".parse().unwrap();
    let Err(error) = with_control(|control| source.filtered(condition, control)) else { panic!("compared") };
    assert!(error.kind() == Kind::Config && error.what().contains("INTERVAL"), "{error}");
    database.client().batch_execute("CREATE TABLE b (n integer, pause bytea)").unwrap();
    let error = run(&source, &database.target("b").mode(Mode::Append), &small()).unwrap_err();
    assert!(error.kind() == Kind::Schema && error.what().contains("\"pause\" is bytea"), "{error}");
}

#[test]
fn more_months_than_the_server_stores_are_located_or_rejected_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &[Some([1, 2, 3]), Some([1 << 31, 0, 0]), Some([0, u32::MAX, 0])]);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let database = Database::new();
    let error = run(&source, &database.target("t"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.what().contains("2147483648 months 0 days 0 ms"), "{error}");
    assert!(error.place().ends_with("row group 0, row 1, column \"pause\""), "{error}");

    let rejects = RejectOptions { path: directory.path().join("rejects.parquet"), most: None };
    let target = database.target("some").rejects(Some(rejects.clone()));
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.rows, report.rows_rejected), (1, 2));
    assert_eq!(read_rejects(&rejects.path).iter().map(|(_, row, _)| *row).collect::<Vec<_>>(), [1, 2]);
    let verified: Verification = with_control(|control| verify(&source, &target, &small(), control)).unwrap();
    assert!(verified.matches());
    // That file also has intervals, with the same bytes.
    let reader = SerializedFileReader::new(File::open(&rejects.path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let written = schema.columns().iter().filter(|leaf| leaf.converted_type() == ConvertedType::INTERVAL);
    let written: Vec<String> = written.map(|leaf| leaf.path().string()).collect();
    assert_eq!(written, ["pause", "trip.took", "waits.list.element"]);
    let again = ParquetFiles::open(&[&rejects.path]).unwrap();
    let error = run(&again, &database.target("again"), &small()).unwrap_err();
    assert!(error.what().contains("2147483648 months 0 days 0 ms"), "{error}");
}

#[test]
fn intervals_of_duckdb_arrive_part_by_part() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/duckdb_intervals.parquet");
    let source = ParquetFiles::open(&[path]).unwrap();
    let database = Database::new();
    let target = database.target("t").nested(Nested::Native);
    assert!(run(&source, &target, &small()).unwrap().verified.unwrap().matches());
    // The intervals that `scripts/peers/files/fixtures.py` has made; DuckDB counts whole days as such. Compared
    // as texts, since 30 days are equal to a month.
    let days = "(id % 40 + id * 61001 / 86400000)::int";
    let seconds = "id * 61001 % 86400000 / 1000.0";
    let made = format!("make_interval(months => (id % 30)::int, days => {days}, secs => {seconds})");
    let same = format!("waits[1]::text = {made}::text AND waits[2] IS NULL AND array_length(waits, 1) = 2");
    assert_eq!(database.count(&format!("t WHERE {same}")), 300);
    assert_eq!(database.count(&format!("t WHERE pause::text = {made}::text AND id % 7 <> 3")), 300 - 43);
    assert_eq!(database.count("t WHERE pause IS NULL AND id % 7 = 3"), 43);
}
