//! A role that may have one connection: everything that works with one does, and the rest says so before it begins.

use sawmill_loader::{LoadOptions, LoadState, Mode};
use sawmill_postgres::{PartitionBy, Postgres, Strategy, TableKind, forget, status, verify};
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

const ROWS: i64 = 3000;

/// A database whose role may have one connection.
struct Single {
    database: Database,
    url: String,
    role: String,
}

impl Single {
    fn new() -> Self {
        let database = Database::new();
        let (host, name) = database.url.rsplit_once('/').unwrap();
        let role = format!("one_{name}");
        let mut client = database.client();
        client
            .batch_execute(&format!(
                "CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT 1; GRANT ALL ON DATABASE {name} TO {role}; \
                 GRANT ALL ON SCHEMA public TO {role}"
            ))
            .unwrap();
        let (scheme, rest) = host.split_once("://").unwrap();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        Self { url: format!("{scheme}://{role}:x@{host}/{name}"), role, database }
    }

    fn target(&self, table: &str) -> Postgres {
        Postgres::new(self.url.parse().unwrap(), table.parse().unwrap())
    }

    /// A table of the role.
    fn table(&self, table: &str, columns: &str) {
        let Self { database, role, .. } = self;
        let sql = format!("CREATE TABLE {table} ({columns}); ALTER TABLE {table} OWNER TO {role}");
        database.client().batch_execute(&sql).unwrap();
    }

    #[track_caller]
    fn holds_each_row_once(&self, table: &str) {
        let sql = format!("SELECT count(*), count(DISTINCT id) FROM {table}");
        let row = self.database.client().query_one(&sql, &[]).unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS, ROWS), "{table}");
    }
}

fn file() -> (tempfile::TempDir, ParquetFiles) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, ROWS as usize, 1000);
    let source = ParquetFiles::open(&[&path]).unwrap();
    (directory, source)
}

fn one(verify: bool) -> LoadOptions {
    LoadOptions { degree: 1, verify, locate: verify, ..small() }
}

const COLUMNS: &str = "id bigint, name text, amount float8";

#[test]
fn every_mode_loads_over_one_connection() {
    let single = Single::new();
    let (_kept, source) = file();
    for verified in [false, true] {
        for mode in [Mode::Create, Mode::Append, Mode::Truncate, Mode::Replace, Mode::Upsert] {
            let table = format!("{}_{verified}", mode.name());
            match mode {
                Mode::Create => {}
                Mode::Upsert => single.table(&table, &COLUMNS.replace("bigint", "bigint PRIMARY KEY")),
                _ => single.table(&table, COLUMNS),
            }
            let target = single.target(&table).mode(mode).key(vec!["id".into()]);
            let report =
                run(&source, &target, &one(verified)).unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!((report.rows_loaded, report.retries), (ROWS as u64, 0), "{table}");
            assert_eq!(
                report.verified.map(|verified| verified.matches()),
                verified.then_some(true),
                "{table}"
            );
            single.holds_each_row_once(&table);
            let again = run(&source, &target, &one(false)).unwrap_or_else(|error| panic!("{table}: {error}"));
            assert_eq!(again.rows_loaded, 0, "{table}");
        }
    }
}

#[test]
fn staged_and_partitioned_tables_are_made_over_one_connection() {
    let single = Single::new();
    let (_kept, source) = file();
    let kind = TableKind { indexes: vec![vec!["id".into()]], ..TableKind::default() };
    for strategy in [Strategy::Staged, Strategy::Direct] {
        let table = format!("made_{strategy:?}").to_lowercase();
        let by: PartitionBy = "hash(id, 4)".parse().unwrap();
        let target = single.target(&table).strategy(strategy).kind(kind.clone());
        let target = with_control(|control| target.partitioned(&by, &source, control)).unwrap();
        let report = run(&source, &target, &one(true)).unwrap_or_else(|error| panic!("{table}: {error}"));
        assert!(report.verified.unwrap().matches(), "{table}");
        single.holds_each_row_once(&table);
    }
}

#[test]
fn a_comparison_the_records_a_rehearsal_and_forgetting_need_one_connection() {
    let single = Single::new();
    let (_kept, source) = file();
    let target = single.target("t");
    let rehearsal = with_control(|control| target.rehearse(&source, &one(false), control)).unwrap();
    assert_eq!((rehearsal.state, rehearsal.rows), (LoadState::New, ROWS as u64));
    run(&source, &target, &one(false)).unwrap();
    assert!(with_control(|control| verify(&source, &target, &one(true), control)).unwrap().matches());
    single.database.client().batch_execute("DELETE FROM t WHERE id = 77").unwrap();
    let verified = with_control(|control| verify(&source, &target, &one(true), control)).unwrap();
    assert_eq!(verified.located.unwrap().units[0].first_missing, [77]);
    let server = single.url.parse().unwrap();
    let loads = with_control(|control| status(&server, "_sawmill", None, control)).unwrap();
    assert_eq!(loads.len(), 1);
    assert!(with_control(|control| forget(&target, true, control)).unwrap().table_dropped);
}

#[test]
fn a_load_whose_only_connection_is_killed_takes_its_lock_again_and_goes_on() {
    let single = Single::new();
    let (_kept, source) = file();
    single.table("t", COLUMNS);
    let sql = "CREATE FUNCTION end_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF NEW.id = 1700 AND nextval('ended') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; \
                 RETURN NEW; END $$; \
               CREATE SEQUENCE ended; GRANT ALL ON SEQUENCE ended TO PUBLIC; \
               CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION end_once()";
    single.database.client().batch_execute(sql).unwrap();
    let report = run(&source, &single.target("t").mode(Mode::Append), &one(true)).unwrap();
    assert!(report.retries > 0 && report.verified.unwrap().matches());
    single.holds_each_row_once("t");
}

#[test]
fn rejected_rows_are_found_over_one_connection() {
    let single = Single::new();
    let (kept, source) = file();
    single.table("t", &format!("{COLUMNS}, CHECK (id % 1000 <> 7)"));
    let rejects = sawmill_loader::RejectOptions { path: kept.path().join("rejects.parquet"), most: None };
    let target = single.target("t").mode(Mode::Append).rejects(Some(rejects));
    let report = run(&source, &target, &one(true)).unwrap();
    assert_eq!((report.rows_rejected, report.rows_loaded), (3, ROWS as u64 - 3));
    assert!(report.verified.unwrap().matches());
}

#[test]
fn what_needs_several_connections_is_refused_before_anything_is_written() {
    let single = Single::new();
    let (_kept, source) = file();
    let error = run(&source, &single.target("t"), &small()).unwrap_err();
    assert_eq!(error.kind(), Kind::Config);
    assert!(error.what().contains("may have one connection, and 3 are needed"), "{error}");
    assert!(error.to_string().contains("--connections 1"), "{error}");
    let error = crate::tables::load(&source, single.target("t"), false, &one(false)).unwrap_err();
    assert!(error.kind() == Kind::Config && error.to_string().contains("--nested jsonb"), "{error}");
    assert!(!single.database.has("_sawmill.loads") && !single.database.has("t__sawmill_loading"));
}

#[test]
fn a_connection_that_another_session_has_is_named_with_advice() {
    let single = Single::new();
    let (_kept, source) = file();
    let _other = postgres::Client::connect(&single.url, postgres::NoTls).unwrap();
    let options = LoadOptions { retries: 1, ..one(false) };
    let error = run(&source, &single.target("t"), &options).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("too many connections for role") && text.contains("CONNECTION LIMIT"), "{text}");
}
