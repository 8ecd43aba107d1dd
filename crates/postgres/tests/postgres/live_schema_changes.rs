//! Tables that other sessions change while a load fills them: no value is misread, and no row is in a column that it
//! was not loaded for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use postgres::Client;
use sawmill_loader::{LoadOptions, LoadReport, LoadState, Mode, RejectOptions};
use sawmill_postgres::{Nested, PartitionBy, Postgres, Strategy};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::fixture::{file_of, write};
use crate::slowed::Slowed;

const ROWS: i64 = 8;

/// Eight rows in two units of `id`, `v` = 100, `w` = 200.
struct Load {
    database: Database,
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Load {
    fn into(table: &str) -> Self {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
            ("v", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| 100)))),
            ("w", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| 200)))),
        ];
        let (directory, path) = file_of(columns, 4);
        let database = Database::new();
        database.client().batch_execute(table).unwrap();
        Self { database, _directory: directory, path }
    }

    fn source(&self) -> ParquetFiles {
        ParquetFiles::open(&[&self.path]).unwrap()
    }

    fn append(&self) -> Postgres {
        self.database.target("t").mode(Mode::Append)
    }

    /// Loads over one connection, and calls `between` before the first unit is read and before the second one.
    fn load(&self, target: &Postgres, between: impl Fn(u32) + Sync) -> Result<LoadReport> {
        let (source, units) = (self.source(), AtomicU32::new(0));
        let wait = || between(units.fetch_add(1, Relaxed));
        run(&Slowed::new(&source, &wait), target, &options())
    }

    /// Loads while another session changes `table`. That session takes its lock when the first unit is
    /// committed, and the second unit waits for it.
    fn load_while(&self, target: &Postgres, table: &'static str, change: &str) -> Result<LoadReport> {
        let changing: std::sync::Mutex<Option<JoinHandle<()>>> = std::sync::Mutex::default();
        let loaded = self.load(target, |unit| {
            if unit == 0 {
                // The first unit's COPY holds its lock.
                self.wait_for_lock(table, "RowExclusiveLock", true);
                let (mut client, change) = (self.database.client(), change.to_owned());
                let watching = self.database.client();
                *changing.lock().unwrap() = Some(std::thread::spawn(move || {
                    client.batch_execute(&format!("BEGIN; LOCK TABLE {table}")).unwrap();
                    locked(watching, table, "RowExclusiveLock", false);
                    client.batch_execute(&format!("{change}; COMMIT")).unwrap();
                }));
                self.wait_for_lock(table, "AccessExclusiveLock", false);
            }
        });
        changing.into_inner().unwrap().expect("the load read its first unit").join().unwrap();
        loaded
    }

    fn wait_for_lock(&self, table: &str, mode: &str, granted: bool) {
        locked(self.database.client(), table, mode, granted);
    }

    /// Waits until the table has this many rows.
    fn has_committed(&self, rows: i64) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.database.count("t") != rows {
            assert!(Instant::now() < end, "the table does not get {rows} rows");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn execute(&self, sql: &str) {
        self.database.client().batch_execute(sql).unwrap();
    }

    /// The values of a query's rows as text.
    fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.database.client().query(query, &[]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The same command ends with every row once, with its values.
    #[track_caller]
    fn is_finished_by(&self, target: &Postgres) {
        let report = run(&self.source(), target, &options()).unwrap();
        assert_eq!(report.rows, ROWS as u64);
        let wrong = "SELECT t::text FROM t WHERE v::numeric <> 100 OR w::numeric <> 200";
        assert_eq!(self.texts(wrong), Vec::<String>::new());
        assert_eq!(self.texts("SELECT string_agg(id::text, ' ' ORDER BY id) FROM t"), ["0 1 2 3 4 5 6 7"]);
    }
}

/// Waits until a session holds this lock on a table, or waits for it.
fn locked(mut client: Client, table: &str, mode: &str, granted: bool) {
    let sql = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = to_regclass($1) AND mode = $2 AND granted = $3)";
    let end = Instant::now() + Duration::from_secs(60);
    while !client.query_one(sql, &[&table, &mode, &granted]).unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < end, "{mode} on {table}, granted: {granted}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn options() -> LoadOptions {
    LoadOptions { degree: 1, unit_rows: 4, batch_rows: 4, verify: false, ..small() }
}

const TABLE: &str = "CREATE TABLE t (id bigint, v bigint, w bigint)";

#[track_caller]
fn names_the_change(loaded: Result<LoadReport>, what: &str) {
    let error = loaded.unwrap_err();
    assert!(error.what().contains(what), "{error}");
    assert!(error.kind() == Kind::Changed && !error.advice().is_empty(), "{error}");
}

#[test]
fn a_type_that_changes_between_two_units_is_an_error_and_the_same_command_finishes_the_load() {
    for (now, using) in [("double precision", ""), ("numeric", ""), ("integer", ""), ("numeric(12,2)", "")] {
        let load = Load::into(TABLE);
        let change = format!("ALTER TABLE t ALTER v TYPE {now} {using}");
        let loaded = load.load_while(&load.append(), "t", &change);
        names_the_change(loaded, &format!("column \"v\" was bigint and became {now}"));
        assert_eq!(load.database.count("t"), 4);
        load.is_finished_by(&load.append());
    }
}

#[test]
fn a_modifier_that_changes_between_two_units_is_noticed() {
    let load = Load::into("CREATE TABLE t (id bigint, v numeric(20,0), w bigint)");
    let change = "ALTER TABLE t ALTER v TYPE numeric(22,2)";
    names_the_change(load.load_while(&load.append(), "t", change), "became numeric(22,2)");
    load.is_finished_by(&load.append());
}

#[test]
fn a_change_is_noticed_under_every_isolation_level_of_the_user() {
    for level in ["repeatable read", "serializable"] {
        let load = Load::into(TABLE);
        let target = load.append().setting("default_transaction_isolation", level);
        let loaded = load.load_while(&target, "t", "ALTER TABLE t ALTER v TYPE double precision");
        names_the_change(loaded, "column \"v\" was bigint and became double precision");
        load.is_finished_by(&target);
    }
}

#[test]
fn columns_that_swap_their_names_are_an_error_and_rows_are_not_mixed() {
    let load = Load::into(TABLE);
    let swap = "ALTER TABLE t RENAME v TO x; ALTER TABLE t RENAME w TO v; ALTER TABLE t RENAME x TO w";
    names_the_change(load.load_while(&load.append(), "t", swap), "column \"v\" was renamed to \"w\"");
    // The rows that are in have their values in the other columns: the load does not go on.
    let error = run(&load.source(), &load.append(), &options()).unwrap_err();
    assert!(error.what().contains("is another one than when the load began"), "{error}");
    assert!(error.kind() == Kind::Changed && error.advice().contains("forget"), "{error}");
    assert_eq!(load.database.count("t"), 4);
}

#[test]
fn a_dropped_column_is_named_and_a_new_one_does_not_matter() {
    let load = Load::into(TABLE);
    let again = "ALTER TABLE t DROP v; ALTER TABLE t ADD v bigint";
    names_the_change(load.load_while(&load.append(), "t", again), "column \"v\" was dropped");
    let load = Load::into(TABLE);
    names_the_change(
        load.load_while(&load.append(), "t", "ALTER TABLE t DROP v"),
        "column \"v\" was dropped",
    );
    let load = Load::into(TABLE);
    let added = "ALTER TABLE t ADD y bigint DEFAULT 7; ALTER TABLE t ALTER v SET STATISTICS 10";
    assert_eq!(load.load_while(&load.append(), "t", added).unwrap().rows, ROWS as u64);
    assert_eq!(load.database.count("t WHERE y = 7"), ROWS);
}

#[test]
fn a_table_that_takes_the_name_of_the_loaded_one_gets_no_row() {
    let load = Load::into(TABLE);
    let change = "ALTER TABLE t RENAME TO old; CREATE TABLE t (id bigint, v double precision, w bigint)";
    let error = load.load_while(&load.append(), "t", change).unwrap_err();
    assert!(error.kind() == Kind::Mismatch && error.what().contains("dropped or renamed while"), "{error}");
    assert_eq!((load.database.count("t"), load.database.count("old")), (0, 4));
}

#[test]
fn rows_are_not_rejected_because_a_type_has_changed() {
    for now in ["integer", "double precision"] {
        let load = Load::into(TABLE);
        let path = load.path.with_file_name("rejects.parquet");
        let target = load.append().rejects(Some(RejectOptions { path: path.clone(), most: None }));
        let change = format!("ALTER TABLE t ALTER v TYPE {now}");
        // With rejects the COPY begins with the first block, so that nothing is locked when a unit begins.
        let loaded = load.load(&target, |unit| {
            if unit == 1 {
                load.execute(&change);
            }
        });
        names_the_change(loaded, &format!("became {now}"));
        assert!(!path.exists());
        load.is_finished_by(&target);
        assert_eq!(load.database.count("_sawmill.rejects"), 0);
    }
}

#[test]
fn the_staging_table_of_a_new_table_is_compared_and_the_same_command_finishes_the_load() {
    let load = Load::into("SELECT");
    let target = load.database.target("t");
    let change = "ALTER TABLE t__sawmill_loading ALTER v TYPE double precision";
    let loaded = load.load_while(&target, "t__sawmill_loading", change);
    names_the_change(loaded, "column \"v\" was bigint and became double precision");
    assert!(!load.database.has("t"));
    load.is_finished_by(&target);
}

#[test]
fn an_upsert_compares_the_staging_table_and_the_types_of_the_table_that_it_merges_into() {
    let table = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, w bigint)";
    let load = Load::into(table);
    let target = load.database.target("t").mode(Mode::Upsert).key(vec!["id".into()]);
    let change = "ALTER TABLE t__sawmill_loading ALTER v TYPE double precision";
    names_the_change(
        load.load_while(&target, "t__sawmill_loading", change),
        "column \"v\" was bigint and became double precision",
    );
    // A merge would round 100.5 where the table became integer.
    let load = Load::into(table);
    let target = load.database.target("t").mode(Mode::Upsert).key(vec!["id".into()]);
    let loaded = load.load(&target, |unit| {
        if unit == 1 {
            load.execute("ALTER TABLE t ALTER v TYPE smallint");
        }
    });
    names_the_change(loaded, "column \"v\" was bigint when its rows were gathered and is smallint now");
    assert_eq!(load.database.count("t"), 0);
    with_control(|control| sawmill_postgres::forget(&target, false, control)).unwrap();
    load.execute("ALTER TABLE t ALTER v TYPE bigint");
    load.is_finished_by(&target);
}

#[test]
fn partitions_are_compared_whether_the_server_or_the_workers_fill_them() {
    let load = Load::into("CREATE TABLE t (id bigint, v bigint, w bigint) PARTITION BY LIST (w)");
    // The numbers of the partition's columns are others.
    load.execute("CREATE TABLE p (w bigint, v bigint, id bigint); ALTER TABLE t ATTACH PARTITION p DEFAULT");
    let loaded = load.load_while(&load.append(), "t", "ALTER TABLE t ALTER v TYPE double precision");
    names_the_change(loaded, "column \"v\" was bigint and became double precision");
    load.is_finished_by(&load.append());
    for strategy in [Strategy::Direct, Strategy::Staged] {
        let load = Load::into("SELECT");
        let by: PartitionBy = "list(id)".parse().unwrap();
        let target = load.database.target("t").strategy(strategy);
        let target = with_control(|control| target.partitioned(&by, &load.source(), control)).unwrap();
        let change = "ALTER TABLE t__sawmill_loading ALTER v TYPE double precision";
        let loaded = match strategy {
            Strategy::Direct => load.load_while(&target, "t__sawmill_loading", change),
            // Workers hold no lock on the table that their tables will belong to.
            _ => load.load(&target, |unit| {
                if unit == 1 {
                    load.execute(change);
                }
            }),
        };
        names_the_change(loaded, "column \"v\" was bigint and became double precision");
        if strategy == Strategy::Staged {
            let error = run(&load.source(), &target, &options()).unwrap_err();
            assert!(error.kind() == Kind::Changed && error.advice().contains("forget"), "{error}");
        }
    }
}

/// Eight records of a struct of two fields of the same type.
fn structs(path: &std::path::Path) -> ParquetFiles {
    let field = |name: &str, value: i64| -> (Arc<Field>, ArrayRef) {
        let values = Int64Array::from_iter_values((0..ROWS).map(|_| value));
        (Arc::new(Field::new(name, DataType::Int64, true)), Arc::new(values))
    };
    let point = StructArray::from(vec![field("x", 1), field("y", 2)]);
    let id = Int64Array::from_iter_values(0..ROWS);
    let columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::new(id)), ("p", Arc::new(point))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(path, &batch, 4);
    ParquetFiles::open(&[path]).unwrap()
}

#[test]
fn attributes_of_composite_types_that_swap_their_names_are_noticed() {
    let swap = "ALTER TYPE point2 RENAME ATTRIBUTE x TO z; ALTER TYPE point2 RENAME ATTRIBUTE y TO x; \
                ALTER TYPE point2 RENAME ATTRIBUTE z TO y";
    let add = "ALTER TYPE point2 ADD ATTRIBUTE z bigint";
    for (column, change, named) in [
        ("point2", swap, "column \"x\" was renamed to \"y\""),
        ("point2", add, "type point2 has a new attribute \"z\""),
    ] {
        let load = Load::into("CREATE TYPE point2 AS (x bigint, y bigint)");
        load.execute(&format!("CREATE TABLE t (id bigint, p {column})"));
        let source = structs(&load.path);
        let units = AtomicU32::new(0);
        let wait = || {
            if units.fetch_add(1, Relaxed) == 1 {
                load.has_committed(4);
                load.execute(change);
            }
        };
        let target = load.append().nested(Nested::Native);
        let loaded = run(&Slowed::new(&source, &wait), &target, &options());
        names_the_change(loaded, named);
        assert_eq!(load.database.count("t"), 4);
    }
}

#[test]
fn tables_of_lists_are_compared() {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let source = structs(&directory.path().join("data.parquet"));
    let (units, changed) = (AtomicU32::new(0), AtomicBool::new(false));
    let loaded = {
        let (database, changed) = (&database, &changed);
        let wait = move || {
            if units.fetch_add(1, Relaxed) == 0 {
                locked(database.client(), "t__sawmill_loading", "RowExclusiveLock", true);
                let mut client = database.client();
                std::thread::spawn(move || {
                    let change = "ALTER TABLE t__sawmill_loading ALTER id TYPE double precision";
                    client.batch_execute(change).unwrap();
                });
                locked(database.client(), "t__sawmill_loading", "AccessExclusiveLock", false);
                changed.store(true, Relaxed);
            }
        };
        crate::tables::load(&Slowed::new(&source, &wait), database.target("t"), false, &options())
    };
    assert!(changed.into_inner());
    let error = loaded.map(|_| ()).unwrap_err();
    assert!(error.what().contains("column \"id\" was bigint and became double precision"), "{error}");
    let reports = crate::tables::load(&source, database.target("t"), false, &options()).unwrap();
    assert_eq!(reports[0].result.state, LoadState::Resumed);
    assert_eq!(database.count("t WHERE id BETWEEN 0 AND 7"), ROWS);
}

#[test]
fn a_load_that_failed_before_its_first_row_takes_the_changed_column() {
    let load = Load::into("CREATE TABLE t (id bigint, v varchar(2), w bigint)");
    run(&load.source(), &load.append(), &options()).unwrap_err();
    load.execute("ALTER TABLE t ALTER v TYPE varchar(9)");
    let verified = run(&load.source(), &load.append(), &LoadOptions { verify: true, ..options() }).unwrap();
    assert_eq!(verified.rows, ROWS as u64);
}

#[test]
fn a_type_of_another_length_is_named_and_not_taken_for_a_lost_connection() {
    let load = Load::into("CREATE TABLE t (id bigint, v integer, w bigint)");
    let loaded = load.load_while(&load.append(), "t", "ALTER TABLE t ALTER v TYPE bigint");
    names_the_change(loaded, "column \"v\" was integer and became bigint");
    load.is_finished_by(&load.append());
}

#[test]
fn a_type_that_takes_no_values_of_the_files_has_to_be_changed_back() {
    let load = Load::into(TABLE);
    let loaded = load.load_while(&load.append(), "t", "ALTER TABLE t ALTER v TYPE bytea USING int8send(v)");
    let error = loaded.unwrap_err();
    assert!(error.what().contains("was bigint and became bytea"), "{error}");
    assert!(error.advice().contains("otherwise undo the change first"), "{error}");
    run(&load.source(), &load.append(), &options()).unwrap_err();
    load.execute("ALTER TABLE t ALTER v TYPE bigint USING ('x' || encode(v, 'hex'))::bit(64)::bigint");
    load.is_finished_by(&load.append());
}
