//! Commits that the server finishes after their process was killed.

use crate::harness::{signal, start, until, wait};
use crate::load::Bench;

#[test]
fn a_commit_that_runs_on_keeps_other_loads_from_taking_its_load_for_empty() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    for (name, rows) in [("a.csv", "1\n2\n"), ("b.csv", "3\n")] {
        std::fs::write(folder.join(name), format!("id\n{rows}")).unwrap();
    }
    let mut holder = bench.client();
    holder
        .batch_execute(
            "create table days (id bigint); \
             create function hold() returns trigger language plpgsql \
               as 'begin perform pg_advisory_xact_lock_shared(42); return null; end'; \
             create constraint trigger holds after insert on days deferrable initially deferred \
               for each row execute function hold(); \
             select pg_advisory_lock(42)",
        )
        .unwrap();
    let sessions = |state: &str| {
        bench.count(&format!(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'sawmill' {state}"
        ))
    };
    let killed = start(bench.args("load", &folder, "days", &["--mode", "append", "--connections", "1"]));
    until("the commit waits", || sessions("and wait_event = 'advisory'") == 1);
    signal(&killed, "KILL");
    wait(killed);
    until("no other session is left", || sessions("") == 1);
    let other = start(bench.args("load", &folder.join("a.csv"), "days", &["--mode", "append"]));
    until("another load waits", || sessions("and query like '%pg_try_advisory%'") == 1);
    holder.batch_execute("select pg_advisory_unlock(42)").unwrap();
    assert_eq!(wait(other).code, Some(1));
    bench.load(&folder, "days", &["--mode", "append", "--verify"]).ok();
    assert_eq!(bench.count("select count(*) from days"), 3);
}
