//! Several runs: at the same time, one after the other, and what the cluster knows of them.

use std::time::{Duration, Instant};

use sawmill_cratedb::{CrateDb, CrateOptions, Transport, crate_status};
use sawmill_cratedb_standin::Fault;
use sawmill_loader::{LoadOptions, LoadState, LoadStatus};
use sawmill_source::Kind;

use crate::cluster::{Cluster, append, keyed, people, run, small, with_control};

fn options() -> CrateOptions {
    CrateOptions { batch_rows: 100, ..keyed(Transport::Http) }
}

fn one_connection() -> LoadOptions {
    LoadOptions { degree: 1, ..small() }
}

fn status(cluster: &Cluster) -> Vec<LoadStatus> {
    with_control(|control| crate_status(&cluster.server(), &cluster.checkpoints(), None, control)).unwrap()
}

/// Returns the result of `meanwhile`, which runs during a load.
fn during<T>(cluster: &Cluster, target: &CrateDb, meanwhile: impl FnOnce() -> T) -> T {
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(1_000);
    std::thread::scope(|scope| {
        let hold = standin.faults().hold_after(1);
        let first = scope.spawn(|| run(&source, target, &one_connection()));
        let end = Instant::now() + Duration::from_secs(30);
        while standin.faults().left() > 0 {
            assert!(Instant::now() < end, "the load does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let result = meanwhile();
        drop(hold);
        assert_eq!(first.join().unwrap().unwrap().rows, 1_000);
        result
    })
}

#[test]
fn a_second_run_into_a_new_table_waits_for_its_turn_and_harms_nothing() {
    let cluster = Cluster::standin();
    let target = cluster.target("t", options());
    let (_kept, other) = people(300);
    during(&cluster, &target, || {
        let error = run(&other, &target, &small()).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
        assert!(error.what().contains("doc.t") && error.what().contains("process"), "{error}");
        let error = with_control(|control| target.forget(true, control)).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy, "{error}");
    });
    assert_eq!(cluster.count("t"), 1_000);
    // Now the lock is free, and the error is about the table.
    assert_eq!(run(&other, &target, &small()).unwrap_err().kind(), Kind::Exists);
}

#[test]
fn appends_of_other_files_go_on_beside_each_other() {
    let cluster = Cluster::standin();
    let (_kept, first) = people(10);
    run(&first, &cluster.target("t", options()), &small()).unwrap();
    let target = append(cluster.target("t", options()));
    let (_other, other) = people(300);
    during(&cluster, &target, || run(&other, &target, &small()).unwrap());
    assert_eq!(cluster.count("t"), 1_310);
}

#[test]
fn a_run_of_another_machine_that_shows_no_life_any_more_is_followed() {
    let cluster = Cluster::standin();
    let target = cluster.target("t", options());
    let (_kept, source) = people(1_000);
    cluster.standin.as_ref().unwrap().faults().plan([None, Some(Fault::Disappear)]);
    run(&source, &target, &LoadOptions { retries: 0, ..one_connection() }).unwrap_err();
    cluster.standin.as_ref().unwrap().restart(0);
    let leases = format!("\"{}\".\"leases\"", cluster.checkpoints());
    cluster.sql(&format!("REFRESH TABLE {leases}"));
    cluster.sql(&format!("DELETE FROM {leases} WHERE \"number\" > 0"));
    let owner = r#"{"host":"elsewhere","boot":"x","namespace":"","process":7,"started":"1","load":1}"#;
    let columns = "(\"name\", \"number\", \"owner\", \"beat\")";
    cluster.sql(&format!("INSERT INTO {leases} {columns} VALUES ('doc.t', 7, '{owner}', 1)"));
    // It is there.
    std::thread::scope(|scope| {
        let second = scope.spawn(|| run(&source, &target, &small()));
        let is_seven = "WHERE \"name\" = 'doc.t' AND \"number\" = 7";
        for beat in 2.. {
            if second.is_finished() {
                break;
            }
            cluster.sql(&format!("UPDATE {leases} SET \"beat\" = {beat} {is_seven}"));
            std::thread::sleep(Duration::from_millis(200));
        }
        let error = second.join().unwrap().unwrap_err();
        assert!(error.kind() == Kind::Busy && error.what().contains("process 7 on elsewhere"), "{error}");
    });
    // Now it is not any more.
    let report = run(&source, &target, &small()).unwrap();
    assert_eq!((report.state, report.rows), (LoadState::Resumed, 1_000));
    assert_eq!(cluster.count("t"), 1_000);
}

#[test]
fn a_batch_that_waits_is_not_sent_again_once_another_run_has_the_load() {
    const FAULTS: usize = 2_000;
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, source) = people(300);
    standin.faults().plan((0..FAULTS).map(|_| Some(Fault::Unavailable)));
    let target = cluster.target("t", options());
    let patient = LoadOptions { patience: Duration::from_secs(60), ..one_connection() };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&source, &target, &patient));
        let end = Instant::now() + Duration::from_secs(30);
        while standin.faults().left() > FAULTS - 2 {
            assert!(Instant::now() < end, "the load does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let leases = format!("\"{}\".\"leases\"", cluster.checkpoints());
        let owner = r#"{"host":"elsewhere","boot":"x","namespace":"","process":7,"started":"1","load":1}"#;
        let columns = "(\"name\", \"number\", \"owner\", \"beat\")";
        cluster.sql(&format!("INSERT INTO {leases} {columns} VALUES ('doc.t', 2, '{owner}', 1)"));
        let error = first.join().unwrap().unwrap_err();
        assert!(error.kind() == Kind::Busy && error.what().contains("has taken over"), "{error}");
    });
    assert!(standin.faults().left() > 0);
}

#[test]
fn the_status_says_which_loads_run_are_broken_off_complete_or_left_behind() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    assert_eq!(status(&cluster), []);
    let (_kept, source) = people(1_000);
    let running = during(&cluster, &cluster.target("a", options()), || status(&cluster));
    let [load] = running.as_slice() else { panic!("{running:?}") };
    assert!(load.running && load.completed.is_none(), "{load:?}");
    assert_eq!((load.table.as_str(), load.mode.as_str()), ("doc.a", "create"));
    standin.faults().plan([None, None, None, None, None, None, Some(Fault::Disappear)]);
    let broken = cluster.target("b", options());
    run(&source, &broken, &LoadOptions { retries: 0, ..one_connection() }).unwrap_err();
    standin.restart(0);
    let mut loads = status(&cluster);
    loads.sort_by(|a, b| a.table.cmp(&b.table));
    let [complete, broken_off] = loads.as_slice() else { panic!("{loads:?}") };
    assert!(
        !complete.running && complete.completed.as_ref().is_some_and(|at| at.ends_with('Z')),
        "{complete:?}"
    );
    assert_eq!((complete.units, complete.rows), (2, 1_000));
    assert!(!broken_off.running && broken_off.completed.is_none() && broken_off.begun.starts_with("20"));
    assert_eq!((broken_off.units, broken_off.rows), (1, 500));
    // Its records are gone, the table in which its rows gathered is not.
    for table in ["units", "loads"] {
        cluster.sql(&format!("DROP TABLE \"{}\".\"{table}\"", cluster.checkpoints()));
    }
    let loads = status(&cluster);
    let [left] = loads.as_slice() else { panic!("{loads:?}") };
    assert_eq!(
        (left.table.as_str(), left.mode.as_str(), left.load_id.as_str()),
        ("doc.b", "not recorded", "")
    );
    let forgotten = with_control(|control| broken.forget(false, control)).unwrap();
    assert!(forgotten.staging_dropped && forgotten.loads == 0, "{forgotten:?}");
    assert_eq!(status(&cluster), []);
    run(&source, &broken, &small()).unwrap();
    assert_eq!(cluster.count("b"), 1_000);
}

#[test]
fn an_append_that_cannot_be_verified_says_so_before_it_sends_a_row() {
    let cluster = Cluster::standin();
    let standin = cluster.standin.as_ref().unwrap();
    let (_kept, first) = people(10);
    let keyless = CrateOptions { row_key: None, at_least_once: true, ..options() };
    for (table, options) in [("keyed", options()), ("keyless", keyless)] {
        let target = cluster.target(table, options);
        run(&first, &target, &small()).unwrap();
        let target = append(target);
        let (_other, source) = people(1_000);
        let broken_off = |verify| {
            standin.faults().plan([None, None, None, None, None, None, Some(Fault::Disappear)]);
            run(&source, &target, &LoadOptions { retries: 0, verify, ..one_connection() }).unwrap_err();
            standin.restart(0);
        };
        let verifying = LoadOptions { verify: true, ..small() };
        broken_off(false);
        let sent = standin.bulks();
        match (table, run(&source, &target, &verifying)) {
            // A row key tells the load's rows from others.
            ("keyed", report) => assert!(report.unwrap().verified.is_some_and(|found| found.matches())),
            (_, error) => {
                let error = error.unwrap_err();
                assert!(
                    error.what().contains("the first run of this append was without --verify"),
                    "{error}"
                );
                assert_eq!(standin.bulks(), sent);
            }
        }
        run(&source, &target, &small()).unwrap();
        // Where it was asked for from the start, a key makes it good, and without one rows would be there
        // twice.
        let (_third, source) = people(1_000);
        let broken_off = || {
            standin.faults().plan([None, None, None, None, None, None, Some(Fault::Disappear)]);
            run(
                &source,
                &target,
                &LoadOptions { retries: 0, ..LoadOptions { verify: true, ..one_connection() } },
            )
            .unwrap_err();
            standin.restart(0);
        };
        broken_off();
        let sent = standin.bulks();
        match (table, run(&source, &target, &verifying)) {
            ("keyed", report) => assert!(report.unwrap().verified.is_some_and(|found| found.matches())),
            (_, error) => {
                let error = error.unwrap_err();
                assert!(error.what().contains("would be duplicated"), "{error}");
                assert_eq!(standin.bulks(), sent);
            }
        }
    }
}
