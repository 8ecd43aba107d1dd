//! Loads into a table that others rename, move, empty, replace or restore: records follow the table, not its name.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sawmill_loader::{LoadOptions, LoadState, Mode, load};
use sawmill_postgres::status;
use sawmill_profile::Profile;
use sawmill_source::{Control, Kind, Limited};

use crate::database::{run, small, with_control};
use crate::remembered::{Directory, ROWS};

#[test]
fn a_table_that_is_emptied_or_replaced_while_a_load_runs_is_not_reported_as_loaded() {
    for (change, expected) in [
        ("TRUNCATE t", Some("truncated or rewritten")),
        ("ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old)", Some("dropped or renamed while")),
        (
            "DROP TABLE t; CREATE TABLE t (id bigint, name text, amount float8)",
            Some("dropped or renamed while"),
        ),
        ("VACUUM FULL t", None),
    ] {
        let files = Directory::new();
        // Each transaction takes a while.
        files
            .database
            .client()
            .batch_execute(
                "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS \
                   'BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END'; \
                 CREATE TRIGGER slowly BEFORE INSERT ON t EXECUTE FUNCTION slowly()",
            )
            .unwrap();
        let (cancel, phase, source) = (AtomicBool::new(false), Profile::new().phase("load"), files.source());
        let options = LoadOptions { degree: 1, unit_rows: 20, batch_rows: 20, verify: false, ..small() };
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while phase.rows() < 300 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                files.database.client().batch_execute(change).unwrap();
            });
            load(&source, &files.target(), &options, &Control::new(&cancel, &phase))
        });
        match expected {
            None => assert_eq!(result.unwrap().rows, ROWS as u64),
            Some(expected) => {
                let error = result.unwrap_err();
                assert!(
                    error.kind() == Kind::Mismatch && error.what().contains(expected),
                    "{change}: {error}"
                );
            }
        }
    }
}

#[test]
fn a_table_that_becomes_unlogged_or_logged_still_has_its_rows() {
    for (first, then) in [("LOGGED", "UNLOGGED"), ("UNLOGGED", "LOGGED")] {
        let files = Directory::new();
        let turned = |kind| {
            files.database.client().batch_execute(&format!("ALTER TABLE t SET {kind}")).unwrap();
        };
        turned(first);
        files.append().unwrap();
        turned(then);
        let again = files.append().unwrap();
        assert_eq!((again.state, again.rows), (LoadState::Complete, ROWS as u64), "{then}");
        assert!(again.verified.unwrap().matches());
    }
}

#[test]
fn records_follow_a_table_that_is_renamed_or_moved_to_another_schema() {
    for (change, name) in [
        ("ALTER TABLE t RENAME TO u", "u"),
        ("CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s", "s.t"),
        ("CREATE SCHEMA s; ALTER TABLE t SET SCHEMA s; ALTER TABLE s.t RENAME TO u", "s.u"),
    ] {
        let files = Directory::new();
        files.append().unwrap();
        files.execute(change);
        let target = files.database.target(name).mode(Mode::Append);
        let report = run(&files.source(), &target, &small()).unwrap();
        assert_eq!((report.state, report.files_already), (LoadState::Complete, 1), "{change}");
        let server = files.database.url.parse().unwrap();
        let loads =
            with_control(|control| status(&server, "_sawmill", Some(target.table()), control)).unwrap();
        assert_eq!(loads.len(), 1);
        // Also a list whose files are not remembered one by one.
        let source = files.source();
        let first = Limited::new(&source, 10);
        let unverified = LoadOptions { verify: false, ..small() };
        run(&first, &target, &unverified).unwrap();
        files.execute(&format!("ALTER TABLE {name} RENAME TO again"));
        let again = name.rsplit_once('.').map_or("again".to_owned(), |(schema, _)| format!("{schema}.again"));
        let target = files.database.target(&again).mode(Mode::Append);
        assert_eq!(run(&first, &target, &unverified).unwrap().state, LoadState::Complete);
        files.file("b", 1);
        let report = run(&files.source(), &target, &unverified).unwrap();
        assert_eq!((report.files_loaded, report.files_already), (1, 1));
        assert_eq!(files.database.count(&again), 2 * ROWS as i64 + 10);
        with_control(|control| sawmill_postgres::forget(&target, false, control)).unwrap();
        assert!(!files.database.has("_sawmill.loads"));
    }
}

#[test]
fn an_interrupted_append_goes_on_after_its_table_is_renamed() {
    let files = Directory::new();
    files.begin(&files.source());
    files.execute("ALTER TABLE t RENAME TO u");
    let target = files.database.target("u").mode(Mode::Append);
    let report = run(&files.source(), &target, &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, ROWS as u64));
    assert_eq!(files.database.count("u"), ROWS as i64);
}

#[test]
fn a_renamed_table_and_a_new_one_of_its_name_have_histories_of_their_own() {
    for created_by_load in [false, true] {
        let files = Directory::new();
        let target = |name: &str| files.database.target(name);
        let mode = match created_by_load {
            true => {
                files.execute("DROP TABLE t");
                Mode::Create
            }
            false => Mode::Append,
        };
        run(&files.source(), &target("t").mode(mode), &small()).unwrap();
        files.execute("ALTER TABLE t RENAME TO u");
        if !created_by_load {
            files.execute("CREATE TABLE t (LIKE u)");
        }
        let report = run(&files.source(), &target("t").mode(mode), &small()).unwrap();
        assert_eq!((report.state, report.files_loaded), (LoadState::New, 1));
        for name in ["t", "u", "t"] {
            let report = run(&files.source(), &target(name).mode(Mode::Append), &small()).unwrap();
            assert_eq!((report.state, report.files_already), (LoadState::Complete, 1), "{name}");
            assert_eq!(files.database.count(name), ROWS as i64);
        }
        with_control(|control| sawmill_postgres::forget(&target("t"), false, control)).unwrap();
        assert_eq!(files.database.count("_sawmill.loads"), 1);
        let report = run(&files.source(), &target("u").mode(Mode::Append), &small()).unwrap();
        assert_eq!((report.state, report.files_already), (LoadState::Complete, 1));
    }
}

#[test]
fn an_oid_from_a_restored_dump_is_not_taken_for_the_table_that_has_it_here() {
    let files = Directory::new();
    files.append().unwrap();
    // As if the records came from another database, where table `t` had the OID that `u` has here.
    files.execute("CREATE TABLE u (LIKE t)");
    files.execute("UPDATE _sawmill.loads SET database = 'another', table_oid = 'u'::regclass::oid::bigint");
    let report = run(&files.source(), &files.database.target("u").mode(Mode::Append), &small()).unwrap();
    assert_eq!((report.state, report.files_loaded), (LoadState::New, 1));
    assert_eq!(files.database.count("u"), ROWS as i64);
}
