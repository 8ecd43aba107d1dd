//! A replacement keeps the grants and comments of a table; a note names everything else that it had, and the
//! sessions that keep it from being dropped.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use sawmill_loader::{Mode, load};
use sawmill_postgres::TableKind;
use sawmill_source::{Kind, ParquetFiles};

use crate::database::{Database, run, small, with_control};
use crate::fixture::people;

fn loaded() -> (Database, tempfile::TempDir, ParquetFiles) {
    let database = Database::new();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("people.parquet");
    people(&path, 0, 1000, 400);
    let source = ParquetFiles::open(&[&path]).unwrap();
    run(&source, &database.target("people"), &small()).unwrap();
    (database, directory, source)
}

#[test]
fn grants_and_comments_are_kept_and_everything_else_that_is_lost_is_named() {
    let (database, _directory, source) = loaded();
    let mut client = database.client();
    let name: String = client.query_one("SELECT current_database()::text", &[]).unwrap().get(0);
    let role = format!("reader of {name}");
    client
        .batch_execute(
            &format!(
                "CREATE ROLE \"{role}\"; GRANT SELECT, INSERT ON people TO \"{role}\" WITH GRANT OPTION; \
             GRANT UPDATE (name) ON people TO PUBLIC; GRANT SELECT (gone) ON people TO PUBLIC; \
             COMMENT ON TABLE people IS 'it''s people'; COMMENT ON COLUMN people.amount IS 'in \\ euros'; \
             COMMENT ON COLUMN people.gone IS 'no more'; \
             CREATE INDEX ON people (amount); CREATE UNIQUE INDEX odd ON people (lower(name), id); \
             ALTER TABLE people ADD CHECK (id >= 0); ALTER TABLE people ADD PRIMARY KEY (id); \
             ALTER TABLE people ALTER name SET DEFAULT 'nobody'; \
             ALTER TABLE people SET (fillfactor = 70); ALTER TABLE people ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON people USING (id > 5); \
             CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
             CREATE TRIGGER passes BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION pass()"
            )
            .replace("CREATE ROLE", "ALTER TABLE people ADD gone text; CREATE ROLE"),
        )
        .unwrap();
    let kind = TableKind {
        primary_key: vec!["id".into()],
        indexes: vec![vec!["amount".into()]],
        ..TableKind::default()
    };
    let target = database.target("people").mode(Mode::Replace).kind(kind);
    let report = run(&source, &target, &small()).unwrap();
    let kept = format!(
        "SELECT has_table_privilege('{role}', 'people', 'SELECT WITH GRANT OPTION'), \
           has_table_privilege('{role}', 'people', 'INSERT'), has_table_privilege('{role}', 'people', 'DELETE'), \
           has_column_privilege('{role}', 'people', 'name', 'UPDATE'), \
           has_column_privilege('{role}', 'people', 'amount', 'UPDATE'), \
           obj_description('people'::regclass, 'pg_class') = 'it''s people', \
           col_description('people'::regclass, 3) = 'in \\ euros'"
    );
    let row = client.query_one(&kept, &[]).unwrap();
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6].map(|i| row.get::<_, bool>(i)),
        [true, true, false, true, false, true, true]
    );
    let note = report.notes.iter().find(|note| note.contains("was replaced")).expect("a note");
    let lost = [
        "index UNIQUE btree (lower(name), id)",
        "constraint CHECK ((id >= 0))",
        "default of column name: 'nobody'::text",
        "trigger passes",
        "policy own",
        "row level security",
        "parameter fillfactor=70",
        "comment on column \"gone\"",
        "SELECT of PUBLIC on column \"gone\"",
    ];
    for lost in lost {
        assert!(note.contains(lost), "{lost}: {note}");
    }
    for kept in ["btree (amount)", "PRIMARY KEY", "owner"] {
        assert!(!note.contains(kept), "{kept}: {note}");
    }
    // A second replacement has nothing to lose.
    let again = run(&source, &target, &sawmill_loader::LoadOptions { again: true, ..small() }).unwrap();
    assert!(again.notes.iter().all(|note| !note.contains("was replaced")), "{:?}", again.notes);
    assert!(client.query_one(&kept, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute(&format!("DROP OWNED BY \"{role}\"; DROP ROLE \"{role}\"")).unwrap();
}

#[test]
fn sessions_that_read_the_table_are_named_while_the_load_waits_and_the_wait_may_be_limited() {
    for mode in [Mode::Replace, Mode::Truncate] {
        let (database, _directory, source) = loaded();
        let mut reader = database.client();
        let process: i32 = reader.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
        reader.batch_execute("BEGIN; SELECT count(*) AS rows_of_people FROM people").unwrap();
        let named = format!("process {process} (user ");

        let limited = database.target("people").mode(mode).setting("lock_timeout", "600ms");
        let error = run(&source, &limited, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Server);
        assert!(error.what().contains(&named) && error.what().contains("rows_of_people"), "{error}");
        assert!(error.advice().contains("--lock-timeout"), "{error}");
        assert_eq!(database.count("people"), 1000);

        let notices: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let report = std::thread::scope(|scope| {
            scope.spawn(|| {
                let started = Instant::now();
                while notices.lock().unwrap().is_empty() && started.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                reader.batch_execute("COMMIT").unwrap();
            });
            let say = |line: &str| notices.lock().unwrap().push(line.to_owned());
            let target = database.target("people").mode(mode);
            with_control(|control| load(&source, &target, &small(), &control.with_notices(&say)))
        });
        assert!(report.unwrap().verified.unwrap().matches());
        let notices = notices.into_inner().unwrap();
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].contains(&named) && notices[0].contains("rows_of_people"), "{notices:?}");
        assert_eq!(database.count("people"), 1000);
    }
}
