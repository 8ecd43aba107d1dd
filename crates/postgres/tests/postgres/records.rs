//! The schema of the records of loads: the user chooses it, and it is created if permitted or left as it was.

use sawmill_loader::{LoadReport, LoadState, LoadStatus};
use sawmill_postgres::{Postgres, forget, status};
use sawmill_source::{Kind, ParquetFiles, Result};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

/// A name that means something else without its quotes.
const ODD: &str = "Load \"records\"; drop";

struct Case {
    database: Database,
    _directory: tempfile::TempDir,
    source: ParquetFiles,
}

fn case(statements: &str) -> Case {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1500, 700);
    let database = Database::new();
    database.client().batch_execute(statements).unwrap();
    Case { database, source: ParquetFiles::open(&[path]).unwrap(), _directory: directory }
}

impl Case {
    fn target(&self, schema: &str) -> Postgres {
        self.database.target("t").checkpoint_schema(schema)
    }

    /// The same, as a role with few rights that is called after the database.
    fn as_guest(&self, schema: &str) -> Postgres {
        Postgres::new(self.guest_url().parse().unwrap(), "mine.t".parse().unwrap()).checkpoint_schema(schema)
    }

    fn guest_url(&self) -> String {
        let (rest, database) = self.database.url.rsplit_once('/').unwrap();
        let (_, host) = rest.rsplit_once('@').unwrap();
        format!("postgres://{}:secret@{host}/{database}", self.guest())
    }

    fn guest(&self) -> String {
        let (_, database) = self.database.url.rsplit_once('/').unwrap();
        format!("guest_{database}")
    }

    fn make_guest(&self, statements: &str) {
        let guest = self.guest();
        self.database
            .client()
            .batch_execute(&format!(
                "CREATE ROLE {guest} LOGIN PASSWORD 'secret'; CREATE SCHEMA mine AUTHORIZATION {guest}; {}",
                statements.replace("GUEST", &guest)
            ))
            .unwrap();
    }

    fn load(&self, target: &Postgres) -> Result<LoadReport> {
        run(&self.source, target, &small())
    }

    fn status(&self, schema: &str) -> Vec<LoadStatus> {
        let server = self.database.url.parse().unwrap();
        with_control(|control| status(&server, schema, None, control)).unwrap()
    }

    fn has_schema(&self, name: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
        self.database.client().query_one(sql, &[&name]).unwrap().get(0)
    }
}

fn forgotten(target: &Postgres) -> u64 {
    with_control(|control| forget(target, false, control)).unwrap().loads
}

#[test]
fn records_are_kept_in_the_named_schema_and_nowhere_else() {
    let case = case("SELECT 1");
    let target = case.target(ODD);
    assert_eq!(case.load(&target).unwrap().state, LoadState::New);
    assert!(case.has_schema(ODD) && !case.has_schema("_sawmill"));
    assert_eq!(case.load(&target).unwrap().state, LoadState::Complete);
    assert_eq!(
        (case.status(ODD).len(), case.status("_sawmill").len(), case.status("other").len()),
        (1, 0, 0)
    );
    // Created for the records, it is dropped with the last of them.
    assert_eq!(forgotten(&target), 1);
    assert!(!case.has_schema(ODD) && case.database.count("t") == 1500);
}

#[test]
fn an_existing_schema_stays_when_the_last_record_is_removed() {
    let case = case("CREATE SCHEMA etl");
    let target = case.target("etl");
    case.load(&target).unwrap();
    assert_eq!(forgotten(&target), 1);
    assert!(case.has_schema("etl"));
    assert!(!case.database.has("etl.loads"));
    // The table's own schema also works.
    case.database.client().batch_execute("DROP TABLE t").unwrap();
    let target = case.target("public");
    case.load(&target).unwrap();
    assert_eq!((forgotten(&target), case.database.count("t")), (1, 1500));
}

#[test]
fn invalid_and_reserved_schema_names_are_refused_before_connecting() {
    let case = case("SELECT 1");
    for (name, what) in [
        ("", "empty"),
        (&"x".repeat(64) as &str, "64 bytes"),
        ("pg_records", "reserved by the server"),
        ("information_schema", "reserved by the server"),
    ] {
        let nowhere = Postgres::new("host=/nowhere".parse().unwrap(), "t".parse().unwrap());
        let error = case.load(&nowhere.checkpoint_schema(name)).unwrap_err();
        assert!(error.kind() == Kind::Config && error.what().contains(what), "{error}");
    }
}

#[test]
fn a_foreign_table_is_not_mistaken_for_the_records() {
    let case = case("CREATE SCHEMA cargo; CREATE TABLE cargo.loads (ship text, tons int)");
    let error = case.load(&case.target("cargo")).unwrap_err();
    assert!(error.kind() == Kind::Exists && error.what().contains("\"cargo\".\"loads\""), "{error}");
    assert!(error.advice().contains("--checkpoint-schema"), "{error}");
    assert!(!case.database.has("t__sawmill_loading"));
}

#[test]
fn a_user_who_may_not_create_a_schema_can_use_one_created_for_him() {
    let case = case("SELECT 1");
    case.make_guest("CREATE SCHEMA etl AUTHORIZATION GUEST; CREATE SCHEMA closed");
    for schema in ["_sawmill", "new"] {
        let error = case.load(&case.as_guest(schema)).unwrap_err();
        assert!(
            error.what().contains(&format!("schema \"{schema}\" for the records of loads does not exist")),
            "{error}"
        );
        assert!(error.advice().contains("CREATE SCHEMA") && error.advice().contains("--checkpoint-schema"));
    }
    let error = case.load(&case.as_guest("closed")).unwrap_err();
    assert!(error.what().contains("permission denied for schema closed"), "{error}");
    let target = case.as_guest("etl");
    assert_eq!(case.load(&target).unwrap().rows, 1500);
    assert_eq!(forgotten(&target), 1);
}

#[test]
fn records_in_the_tables_of_another_user_can_be_forgotten() {
    let case = case("SELECT 1");
    case.load(&case.target("_sawmill")).unwrap();
    case.make_guest(
        "GRANT USAGE ON SCHEMA _sawmill TO GUEST; GRANT ALL ON ALL TABLES IN SCHEMA _sawmill TO GUEST",
    );
    let target = case.as_guest("_sawmill");
    assert_eq!(case.load(&target).unwrap().rows, 1500);
    assert_eq!(forgotten(&case.target("_sawmill")), 1);
    // The last record is removed; this user may not drop the tables.
    assert_eq!(forgotten(&target), 1);
    assert!(case.has_schema("_sawmill") && case.database.count("_sawmill.loads") == 0);
}

#[test]
fn records_that_no_load_has_written_are_errors_and_not_rows() {
    let changes = [
        ("UPDATE _sawmill.loads SET files = '{}'", "0 names and 1 fingerprints of files"),
        ("UPDATE _sawmill.units SET rows = -5", "the invalid number of rows -"),
        ("UPDATE _sawmill.units SET non_null = '{-1}'", "the invalid number of rows -1"),
    ];
    for (change, what) in changes {
        let case = case("SELECT 1");
        let target = case.target("_sawmill");
        case.load(&target).unwrap();
        case.database.client().batch_execute(change).unwrap();
        let error = case.load(&target).unwrap_err();
        assert!(error.what().contains(what) && error.advice().contains("restore the record"), "{error}");
        assert_eq!(case.database.count("t"), 1500);
    }
}
