//! Partitioned tables: every kind of partition on both ways, whatever the files look like.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_postgres::{PartitionBy, Postgres, Strategy, TableKind, forget, status, verify};
use sawmill_source::{Kind, Limited, ParquetFiles, Result, Source};

use crate::database::{Database, run, small, with_control};
use crate::slowed::Slowed;

const DAY: i64 = 86_400_000_000;
/// 2023-12-30 in microseconds since 1970.
const START: i64 = 19_721 * DAY;
const ROWS: i64 = 6000;

/// Events of about 100 days: `id, at, day, country, flag, text`; every 50th row has no time and no country.
fn events(path: &Path, clustered: bool, statistics: EnabledStatistics) {
    let at = |id: i64| {
        // In other files the rows of all days are mixed.
        let place = if clustered { id } else { id * 2477 % ROWS };
        START + place * DAY / 60
    };
    let some = |id: i64| id % 50 != 49;
    let ids = || 0..ROWS;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids()))),
        ("at", Arc::new(TimestampMicrosecondArray::from_iter(ids().map(|id| some(id).then(|| at(id)))))),
        ("seen", Arc::new(TimestampMicrosecondArray::from_iter_values(ids().map(at)).with_timezone("UTC"))),
        ("day", Arc::new(Date32Array::from_iter_values(ids().map(|id| (at(id) / DAY) as i32)))),
        (
            "country",
            Arc::new(StringArray::from_iter(
                ids().map(|id| some(id).then(|| ["de", "o'b\\x", "fr", ""][(id / 700) as usize % 4])),
            )),
        ),
        ("flag", Arc::new(BooleanArray::from_iter(ids().map(|id| Some(id % 3 == 0))))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    let properties =
        WriterProperties::builder().set_statistics_enabled(statistics).set_max_row_group_row_count(Some(500));
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

struct Events {
    _directory: tempfile::TempDir,
    path: PathBuf,
    source: ParquetFiles,
}

fn files(clustered: bool, statistics: EnabledStatistics) -> Events {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.parquet");
    events(&path, clustered, statistics);
    Events { source: ParquetFiles::open(&[&path]).unwrap(), path, _directory: directory }
}

fn clustered() -> Events {
    files(true, EnabledStatistics::Chunk)
}

fn by(text: &str) -> PartitionBy {
    text.parse().unwrap()
}

fn partitioned(target: Postgres, text: &str, source: &dyn Source) -> Result<Postgres> {
    with_control(|control| target.partitioned(&by(text), source, control))
}

fn options() -> LoadOptions {
    LoadOptions { unit_rows: 300, ..small() }
}

/// The table's partitions with their bounds and rows, as the server has them.
fn partitions(database: &Database, table: &str) -> Vec<(String, String, i64)> {
    let mut client = database.client();
    let sql = "SELECT c.relname::text, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i \
               JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = to_regclass($1) ORDER BY 1";
    let found = client.query(sql, &[&table]).unwrap();
    found
        .iter()
        .map(|row| {
            let (name, bound): (String, String) = (row.get(0), row.get(1));
            let count = format!("SELECT count(*) FROM \"{name}\"");
            (name, bound, client.query_one(&count, &[]).unwrap().get(0))
        })
        .collect()
}

/// All tables of the test.
fn tables(database: &Database) -> Vec<String> {
    let sql = "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND \
               relnamespace = 'public'::regnamespace ORDER BY 1";
    database.client().query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[track_caller]
fn exactly_once(database: &Database, table: &str) {
    let sql = format!("SELECT count(*), count(DISTINCT id), sum(id)::bigint FROM {table}");
    let row = database.client().query_one(&sql, &[]).unwrap();
    assert_eq!(
        (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
        (ROWS, ROWS, ROWS * (ROWS - 1) / 2)
    );
}

/// Both routes make the same partitions with the same rows.
#[track_caller]
fn both_ways(database: &Database, events: &Events, text: &str, table: &str) -> Vec<(String, i64)> {
    let mut seen = Vec::new();
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let target = database.target(table).strategy(strategy).mode(Mode::Replace);
        let target = partitioned(target, text, &events.source).unwrap();
        let report = run(&events.source, &target, &options()).unwrap();
        assert!(report.verified.unwrap().matches());
        exactly_once(database, table);
        let found = partitions(database, table);
        let planned: Vec<(String, Option<u64>)> =
            target.partition_list().into_iter().map(|(name, _, rows)| (name, rows)).collect();
        for (name, _, rows) in &found {
            assert!(planned.contains(&(name.clone(), Some(*rows as u64))), "{name} has {rows}: {planned:?}");
        }
        seen.push(found);
        assert_eq!(tables(database).len(), planned.len() + 1, "{:?}", tables(database));
    }
    assert_eq!(seen[0], seen[1]);
    seen.swap_remove(0).into_iter().map(|(name, _, rows)| (name, rows)).collect()
}

#[test]
fn months_days_and_years_are_ranges_on_both_routes() {
    let database = Database::new();
    for events in [clustered(), files(false, EnabledStatistics::Chunk), files(true, EnabledStatistics::None)]
    {
        let months = both_ways(&database, &events, "month(at)", "events");
        let names: Vec<&str> = months.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "events_2023_12",
                "events_2024_01",
                "events_2024_02",
                "events_2024_03",
                "events_2024_04",
                "events_default"
            ]
        );
        assert_eq!(months[5].1, ROWS / 50);
        let years = both_ways(&database, &events, "year(seen)", "events");
        assert_eq!(years, [("events_2023".to_owned(), 120), ("events_2024".to_owned(), ROWS - 120)]);
        assert_eq!(both_ways(&database, &events, "month(day)", "events").len(), 5);
    }
    let days = both_ways(&database, &clustered(), "day(seen)", "events");
    assert_eq!((days.len(), days[1].clone()), (100, ("events_2023_12_31".to_owned(), 60)));
}

#[test]
fn bounds_of_moments_do_not_depend_on_the_time_zone_of_a_session() {
    let database = Database::new();
    let events = clustered();
    let (_, name) = database.url.rsplit_once('/').unwrap();
    let sql = format!("ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'");
    database.client().batch_execute(&sql).unwrap();
    let months = both_ways(&database, &events, "month(seen)", "events");
    let mut client = database.client();
    client.batch_execute("SET timezone = 'UTC'").unwrap();
    let sql = "SELECT count(*) FROM events_2024_01 WHERE seen < '2024-01-01' OR seen >= '2024-02-01'";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i64>(0), 0);
    assert_eq!(months[1], ("events_2024_01".to_owned(), 31 * 60));
}

#[test]
fn each_value_of_a_list_has_a_partition_and_null_has_one() {
    let database = Database::new();
    for events in [clustered(), files(true, EnabledStatistics::None)] {
        // One of the values does not make a name: all are numbered.
        let countries = both_ways(&database, &events, "list(country)", "events");
        let names: Vec<&str> = countries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["events_1", "events_2", "events_3", "events_4", "events_5"]);
        assert_eq!(countries[4].1, ROWS / 50);
        let flags = both_ways(&database, &events, "list(flag)", "events");
        assert_eq!(flags, [("events_false".to_owned(), ROWS / 3 * 2), ("events_true".to_owned(), ROWS / 3)]);
        assert_eq!(both_ways(&database, &events, "list(day)", "events").len(), 100);
    }
    let error = partitioned(database.target("events"), "list(id)", &clustered().source).unwrap_err();
    assert!(error.what().contains("more than 1000 partitions"), "{error}");
}

#[test]
fn hashes_are_routed_by_the_server_and_known_to_workers() {
    let database = Database::new();
    let events = clustered();
    let target = partitioned(database.target("events"), "hash(country, 3)", &events.source).unwrap();
    assert!(target.route(2).unwrap().starts_with("direct"));
    for text in
        ["hash(id, 7)", "hash(country, 3)", "hash(day, 4)", "hash(flag, 5)", "hash(at, 4)", "hash(seen, 6)"]
    {
        let mut seen = Vec::new();
        for strategy in [Strategy::Direct, Strategy::Staged] {
            let target = database.target("events").strategy(strategy).mode(Mode::Replace);
            let target = partitioned(target, text, &events.source).unwrap();
            assert!(run(&events.source, &target, &options()).unwrap().verified.unwrap().matches());
            exactly_once(&database, "events");
            seen.push(partitions(&database, "events"));
        }
        // A hash has all partitions, even those without rows.
        assert_eq!(seen[0].len(), text[text.len() - 2..text.len() - 1].parse::<usize>().unwrap(), "{text}");
        assert_eq!(seen[0], seen[1], "{text}");
    }
}

#[test]
fn text_numbers_and_moments_of_every_size_have_the_hash_of_the_server() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("texts.parquet");
    let texts = StringArray::from_iter_values(
        (0..200)
            .map(|row| "aé0\u{7f}z".repeat(9).chars().take(row % 50).collect::<String>() + &row.to_string()),
    );
    let numbers = Int64Array::from_iter_values(
        (0..200).map(|row: i64| (row - 100).wrapping_mul(row.pow(8)) << (row % 9)),
    );
    let unsigned = UInt64Array::from_iter_values((0..200u64).map(|row| {
        if row < 100 { 10u64.pow(row as u32 % 20).wrapping_mul(row / 20) } else { u64::MAX / row }
    }));
    let moments = TimestampNanosecondArray::from_iter_values(
        (0..200).map(|row: i64| (row - 100) * 12_345_678_901_234_000),
    );
    let uuids: Vec<[u8; 16]> =
        (0..200u8).map(|row| std::array::from_fn(|at| row.wrapping_mul(at as u8 + 3))).collect();
    let uuids = arrow_array::FixedSizeBinaryArray::try_from_iter(uuids.iter()).unwrap();
    let uuid = arrow_schema::Field::new("uuid", arrow_schema::DataType::FixedSizeBinary(16), false)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into());
    let schema = arrow_schema::Schema::new(vec![
        arrow_schema::Field::new("text", arrow_schema::DataType::Utf8, false),
        arrow_schema::Field::new("number", arrow_schema::DataType::Int64, false),
        arrow_schema::Field::new("unsigned", arrow_schema::DataType::UInt64, false),
        arrow_schema::Field::new("moment", moments.data_type().clone(), false),
        uuid,
    ]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(texts), Arc::new(numbers), Arc::new(unsigned), Arc::new(moments), Arc::new(uuids)];
    crate::fixture::write(&path, &RecordBatch::try_new(Arc::new(schema), columns).unwrap(), 100);
    let source = ParquetFiles::open(&[&path]).unwrap();
    for column in ["text", "number", "unsigned", "moment", "uuid"] {
        let target = database.target("hashed").strategy(Strategy::Staged).mode(Mode::Replace);
        let target = partitioned(target, &format!("hash({column}, 16)"), &source).unwrap();
        // The server checks each row by its own hash.
        assert!(run(&source, &target, &options()).unwrap().verified.unwrap().matches(), "{column}");
        let rows: Vec<i64> = partitions(&database, "hashed").into_iter().map(|(.., rows)| rows).collect();
        assert_eq!((rows.len(), rows.iter().sum::<i64>()), (16, 200));
        assert!(rows.iter().all(|rows| *rows > 0), "{column}: {rows:?}");
    }
}

#[test]
fn row_groups_within_one_partition_are_counted_by_their_statistics() {
    let (with, without, mixed) =
        (clustered(), files(true, EnabledStatistics::None), files(false, EnabledStatistics::Chunk));
    let found = |events: &Events, text: &str| {
        let target = Postgres::new("postgres://nobody@localhost/x".parse().unwrap(), "t".parse().unwrap());
        let target = partitioned(target, text, &events.source).unwrap();
        (target.partitions().unwrap().found(), target.partition_list())
    };
    // The second half of 12 row groups of 500 rows, 60 a day: four have the end of a month in them.
    let (known, list) = found(&with, "month(seen)");
    assert_eq!((known.row_groups, known.row_groups_known), (12, 8));
    assert_eq!(known.rows_by_partition, 16 * 500);
    let (unknown, same) = found(&without, "month(seen)");
    assert_eq!((unknown.row_groups, unknown.row_groups_known, same), (12, 0, list.clone()));
    let (all, same) = found(&mixed, "month(seen)");
    assert_eq!((all.row_groups_known, same), (0, list));
    assert_eq!(all.rows_by_partition, 12 * 5 * 500);
    // Nulls among the values: the bounds do not say which rows these are.
    assert_eq!(found(&with, "month(at)").0.row_groups_known, 0);
}

#[test]
fn only_selected_rows_have_partitions() {
    let database = Database::new();
    let events = clustered();
    let condition: sawmill_source::Condition = "seen >= 2024-02-10 and flag".parse().unwrap();
    let filtered = with_control(|control| events.source.filtered(condition, control)).unwrap();
    let limited = Limited::new(&filtered, 700);
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let target = database.target("events").strategy(strategy).mode(Mode::Replace);
        let target = partitioned(target, "month(seen)", &limited).unwrap();
        let report = run(&limited, &target, &options()).unwrap();
        assert!(report.verified.unwrap().matches());
        let found = partitions(&database, "events");
        let rows: Vec<(&str, i64)> = found.iter().map(|(name, _, rows)| (name.as_str(), *rows)).collect();
        assert_eq!(rows, [("events_2024_02", 400), ("events_2024_03", 300)]);
    }
}

#[test]
fn columns_are_partitioned_under_the_names_that_they_have_in_the_table() {
    let database = Database::new();
    let events = clustered();
    let chosen = ParquetFiles::open(&[&events.path]).unwrap();
    let chosen =
        chosen.select(&["id".into(), "seen".into()], &[("seen".into(), "When \"UTC\"".into())]).unwrap();
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let target = database.target("events").strategy(strategy).mode(Mode::Replace);
        let target = partitioned(target, "month(\"When \"\"UTC\"\"\")", &chosen).unwrap();
        assert!(run(&chosen, &target, &options()).unwrap().verified.unwrap().matches());
        assert_eq!(partitions(&database, "events").len(), 5);
    }
    let error = partitioned(database.target("t"), "month(seen)", &chosen).unwrap_err();
    assert!(error.what().contains("\"seen\"") && error.kind() == Kind::Config, "{error}");
}

#[test]
fn partitions_are_attached_without_scanning_their_rows() {
    let database = Database::new();
    let events = clustered();
    // Scans of a partition in the transaction that attaches it, as the server counts them.
    for (text, table) in [
        ("month(seen)", "months"),
        ("month(at)", "defaults"),
        ("list(country)", "countries"),
        ("hash(id, 3)", "hashes"),
        ("list(flag)", "flags"),
    ] {
        let target = database.target(table).strategy(Strategy::Staged);
        let target = partitioned(target, text, &events.source).unwrap();
        let mut client = database.client();
        client
            .batch_execute(
                "CREATE TABLE IF NOT EXISTS scans (relation text, scans bigint); \
                 CREATE OR REPLACE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
                   INSERT INTO scans SELECT relname, pg_stat_get_xact_numscans(oid) FROM pg_class \
                   WHERE relispartition AND relkind = 'r'; END $$; \
                 DROP EVENT TRIGGER IF EXISTS attached; \
                 CREATE EVENT TRIGGER attached ON ddl_command_end WHEN TAG IN ('ALTER TABLE') \
                 EXECUTE FUNCTION note()",
            )
            .unwrap();
        run(&events.source, &target, &LoadOptions { verify: false, ..options() }).unwrap();
        let row = client.query_one("SELECT count(*), coalesce(max(scans), 0) FROM scans", &[]).unwrap();
        assert!(row.get::<_, i64>(0) > 0);
        assert_eq!(row.get::<_, i64>(1), 0, "{text}");
        client.batch_execute("DELETE FROM scans").unwrap();
        let left = "SELECT count(*) FROM pg_constraint WHERE conname = 'sawmill_partition'";
        assert_eq!(client.query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
    }
    // A table without a constraint that implies its bound is scanned.
    let mut client = database.client();
    let attach = "CREATE TABLE loose (LIKE flags); ALTER TABLE flags DETACH PARTITION flags_true; \
                  DELETE FROM scans; ALTER TABLE flags ATTACH PARTITION loose FOR VALUES IN ('true')";
    client.batch_execute(attach).unwrap();
    let row = client.query_one("SELECT max(scans) FROM scans WHERE relation = 'loose'", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[test]
fn keys_indexes_and_storage_are_those_of_each_partition() {
    let database = Database::new();
    let events = clustered();
    for (strategy, key_after) in [
        (Strategy::Direct, false),
        (Strategy::Direct, true),
        (Strategy::Staged, false),
        (Strategy::Staged, true),
    ] {
        let kind = TableKind {
            unlogged: true,
            primary_key: vec!["id".into(), "seen".into()],
            key_after,
            indexes: vec![vec!["country".into()]],
            ..TableKind::default()
        };
        let target = database.target("events").strategy(strategy).mode(Mode::Replace).kind(kind);
        let target = partitioned(target, "month(seen)", &events.source).unwrap();
        let report = run(&events.source, &target, &options()).unwrap();
        assert!(report.verified.unwrap().matches());
        assert_eq!(run(&events.source, &target, &options()).unwrap().state, LoadState::Complete);
        let mut client = database.client();
        let mut one = |sql: &str| -> i64 { client.query_one(sql, &[]).unwrap().get(0) };
        assert_eq!(one("SELECT count(*) FROM pg_indexes WHERE schemaname = 'public'"), 2 * 6);
        assert_eq!(
            one("SELECT count(*) FROM pg_class WHERE relname LIKE '%sawmill%' AND relkind <> 'S' \
                        AND relnamespace = 'public'::regnamespace"),
            0
        );
        assert_eq!(
            one("SELECT count(*) FROM pg_class WHERE relname LIKE 'events_2%' AND relkind = 'r' \
                        AND relpersistence = 'u'"),
            5
        );
        with_control(|control| forget(&target, true, control)).unwrap();
    }
}

#[test]
fn a_primary_key_needs_the_column_and_no_nulls_in_it() {
    let database = Database::new();
    let events = clustered();
    let key = |columns: &[&str]| TableKind {
        primary_key: columns.iter().map(|&name| name.to_owned()).collect(),
        ..TableKind::default()
    };
    let error =
        partitioned(database.target("t").kind(key(&["id"])), "month(seen)", &events.source).unwrap_err();
    assert!(error.what().contains("must contain its column \"seen\""), "{error}");
    let error =
        partitioned(database.target("t").kind(key(&["id", "at"])), "month(at)", &events.source).unwrap_err();
    assert!(error.what().contains("needs \"at\", which is null in 120 rows"), "{error}");
    let error =
        partitioned(database.target("t").mode(Mode::Append), "month(at)", &events.source).unwrap_err();
    assert!(error.what().contains("new table"), "{error}");
    for (wrong, what) in
        [("month(id)", "neither a date"), ("month(nothing)", "not among those"), ("list(at)", "lists need")]
    {
        let error = partitioned(database.target("t"), wrong, &events.source).unwrap_err();
        assert!(error.what().contains(what) && error.kind() == Kind::Config, "{error}");
    }
    assert_eq!(tables(&database), Vec::<String>::new());
}

#[test]
fn values_outside_of_the_calendar_are_located() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("far.parquet");
    let days = Date32Array::from_iter_values((0..1000).map(|row| if row == 731 { i32::MAX } else { 19_000 }));
    let batch = RecordBatch::try_from_iter([("day", Arc::new(days) as ArrayRef)]).unwrap();
    crate::fixture::write(&path, &batch, 400);
    let source = ParquetFiles::open(&[&path]).unwrap();
    let target = Postgres::new("postgres://nobody@localhost/x".parse().unwrap(), "t".parse().unwrap());
    let error = partitioned(target, "day(day)", &source).unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.place().contains("row group 1, row 331, column \"day\""), "{error}");
    assert!(error.what().contains("years 1 to 9999"), "{error}");
}

#[test]
fn plain_and_partitioned_tables_replace_each_other() {
    let database = Database::new();
    let events = clustered();
    let plain = || database.target("events").mode(Mode::Replace);
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let months = partitioned(plain().strategy(strategy), "month(seen)", &events.source).unwrap();
        run(&events.source, &months, &options()).unwrap();
        assert_eq!(tables(&database).len(), 6);
        run(&events.source, &plain(), &options()).unwrap();
        assert_eq!(tables(&database), ["events"]);
        let days = partitioned(plain().strategy(strategy), "list(flag)", &events.source).unwrap();
        run(&events.source, &days, &options()).unwrap();
        assert_eq!(tables(&database), ["events", "events_false", "events_true"]);
        // The same partitions again, whose names belong to those that are dropped.
        database.client().batch_execute("DELETE FROM _sawmill.loads").unwrap();
        run(&events.source, &days, &options()).unwrap();
        exactly_once(&database, "events");
        let compared = with_control(|control| verify(&events.source, &days, &options(), control));
        assert!(compared.unwrap().matches());
    }
    // A foreign table has the name of a partition: refused before a row is sent.
    database.client().batch_execute("CREATE TABLE others_2024_02 ()").unwrap();
    let target = partitioned(database.target("others"), "month(seen)", &events.source).unwrap();
    let error = run(&events.source, &target, &options()).unwrap_err();
    assert!(error.place().contains("others_2024_02") && error.kind() == Kind::Exists, "{error}");
    assert!(!tables(&database).iter().any(|table| table.contains("sawmill")), "{:?}", tables(&database));
}

#[test]
fn the_route_is_chosen_by_what_would_be_read_and_kept_by_the_next_run() {
    let database = Database::new();
    let (events, mixed) = (clustered(), files(false, EnabledStatistics::Chunk));
    let way = |events: &Events, degree| {
        partitioned(database.target("events"), "month(seen)", &events.source).unwrap().route(degree).unwrap()
    };
    assert!(way(&events, 2).starts_with("staged: each connection fills whole partitions: there are 5"));
    assert!(way(&events, 8).contains("direct") && way(&events, 8).contains("than connections (8)"));
    assert!(way(&mixed, 2).contains("would read 5.00 rows"), "{}", way(&mixed, 2));
    let target = partitioned(database.target("events"), "month(seen)", &events.source).unwrap();
    let report = run(&events.source, &target, &options()).unwrap();
    assert!(report.notes.iter().any(|note| note.starts_with("staged")), "{:?}", report.notes);
    // With more connections than partitions it is still the same load.
    let again = run(&events.source, &target, &LoadOptions { degree: 8, ..options() }).unwrap();
    assert_eq!(again.state, LoadState::Complete);
    let loads = with_control(|control| {
        status(&database.url.parse().unwrap(), Postgres::CHECKPOINT_SCHEMA, None, control)
    });
    assert_eq!(loads.unwrap().iter().map(|load| load.rows).collect::<Vec<_>>(), [ROWS as u64]);
}

/// Not a test: [`the_next_run_finishes_the_load_of_a_killed_one`] runs and kills it.
#[test]
fn as_a_child_process() {
    let (Ok(url), Ok(path)) = (std::env::var("SAWMILL_TEST_URL"), std::env::var("SAWMILL_TEST_FILE")) else {
        return;
    };
    let staged = std::env::var("SAWMILL_TEST_STRATEGY").is_ok_and(|strategy| strategy == "staged");
    let source = ParquetFiles::open(&[path]).unwrap();
    let target = Postgres::new(url.parse().unwrap(), "events".parse().unwrap());
    let target = target.strategy(if staged { Strategy::Staged } else { Strategy::Direct });
    let target = partitioned(target, "day(seen)", &source).unwrap();
    let slowed = Slowed::new(&source, &|| std::thread::sleep(Duration::from_millis(5)));
    run(&slowed, &target, &LoadOptions { unit_rows: 20, ..options() }).unwrap();
}

#[test]
fn the_next_run_finishes_the_load_of_a_killed_one() {
    for (strategy, word) in [(Strategy::Direct, "direct"), (Strategy::Staged, "staged")] {
        let database = Database::new();
        let events = clustered();
        let killed = database.kill_loads(
            "partitions::as_a_child_process",
            &events.path,
            &[("SAWMILL_TEST_STRATEGY", word)],
            5,
            |round| 1 + round,
        );
        let target = database.target("events").strategy(strategy);
        let target = partitioned(target, "day(seen)", &events.source).unwrap();
        let options = LoadOptions { unit_rows: 20, ..options() };
        let report = run(&events.source, &target, &options).unwrap();
        println!("{killed} killed, then {:?}, {} units resumed", report.state, report.units_resumed);
        assert!(killed >= 2, "only {killed} runs were killed before they ended");
        assert!(report.verified.unwrap().matches());
        exactly_once(&database, "events");
        assert_eq!(partitions(&database, "events").len(), 100);
        assert!(tables(&database).iter().all(|table| !table.contains("sawmill")), "{:?}", tables(&database));
    }
}

#[test]
fn killed_connections_neither_lose_nor_duplicate_a_partition() {
    let database = Database::new();
    let events = files(false, EnabledStatistics::Chunk);
    let target = database.target("events").strategy(Strategy::Staged);
    let target = partitioned(target, "month(seen)", &events.source).unwrap();
    let report = database.killing_connections(Duration::from_millis(40), || {
        run(&events.source, &target, &LoadOptions { unit_rows: 50, ..options() })
    });
    let report = report.unwrap();
    println!("{} retries", report.retries);
    assert!(report.verified.unwrap().matches());
    exactly_once(&database, "events");
}

#[test]
fn an_unfinished_load_can_be_forgotten() {
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let database = Database::new();
        let events = clustered();
        // A unique key on a column with two values cannot be built in the end.
        let kind = TableKind { primary_key: vec!["flag".into()], key_after: true, ..TableKind::default() };
        let target = database.target("events").strategy(strategy).kind(kind);
        let target = partitioned(target, "list(flag)", &events.source).unwrap();
        let error = run(&events.source, &target, &options()).unwrap_err();
        assert!(error.advice().contains("all rows are loaded"), "{error}");
        assert!(tables(&database).len() >= 3, "{:?}", tables(&database));
        with_control(|control| forget(&target, false, control)).unwrap();
        assert_eq!(tables(&database), Vec::<String>::new());
    }
}
