//! Records that are removed while a load runs: `forget` waits for the load and then refuses; if they are
//! removed by other means, the load fails with an error that says so.

use postgres::Client;
use sawmill_loader::{LoadOptions, LoadReport, Mode};
use sawmill_postgres::forget;
use sawmill_source::{Kind, Result};

use crate::database::{run, small, with_control};
use crate::rejects::{Case, words};

/// Makes an append of 2,000 rows wait for the table, runs the closure, then lets the append continue.
fn during_an_append(meanwhile: impl FnOnce(&Case, &mut Client)) -> (Case, Result<LoadReport>) {
    let case = Case::new(words(2000), "(id bigint, word text)");
    let mut client = case.database.client();
    client.batch_execute("BEGIN; LOCK TABLE t IN SHARE MODE").unwrap();
    let options = LoadOptions { degree: 1, verify: false, ..small() };
    let result = std::thread::scope(|scope| {
        let append = || run(&case.source, &case.database.target("t").mode(Mode::Append), &options);
        let load = scope.spawn(append);
        let mut watching = case.database.client();
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                     AND datname = current_database() AND query LIKE 'COPY%')";
        while !watching.query_one(waits, &[]).unwrap().get::<_, bool>(0) {
            assert!(!load.is_finished(), "it did not wait");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        meanwhile(&case, &mut watching);
        client.batch_execute("COMMIT").unwrap();
        load.join().unwrap()
    });
    (case, result)
}

#[test]
fn forgetting_is_refused_while_a_load_runs_and_no_row_is_loaded_twice() {
    let (case, loaded) = during_an_append(|case, _| {
        let target = case.database.target("t");
        let error = with_control(|control| forget(&target, false, control)).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
        assert!(error.to_string().contains("a load into the table is running"), "{error}");
        assert!(error.place().contains("public.t"), "{error}");
    });
    assert_eq!(loaded.unwrap().rows_loaded, 2000);
    let again = run(&case.source, &case.database.target("t").mode(Mode::Append), &small()).unwrap();
    assert_eq!((again.rows_loaded, case.database.count("t")), (0, 2000));
    let forgotten = with_control(|control| forget(&case.database.target("t"), false, control)).unwrap();
    assert_eq!(forgotten.loads, 1);
}

#[test]
fn a_load_whose_records_are_removed_reports_that_and_blames_no_row() {
    let (case, loaded) = during_an_append(|_, watching| {
        watching.batch_execute("DELETE FROM _sawmill.loads").unwrap();
    });
    let error = loaded.unwrap_err();
    assert!(error.what().contains("the records of this load were removed while it ran"), "{error}");
    assert!(!error.to_string().contains("correct the row"), "{error}");
    assert!(error.advice().contains("sawmill verify"), "{error}");
    assert_eq!(case.database.count("t"), 0);
}
