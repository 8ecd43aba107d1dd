//! Rows of a change feed whose marker says that they delete the row of their key.

use std::path::PathBuf;

use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::{ADVISORY_LOCKS, Bench};

/// A table with the keys 0 to 4, of version 5, and a file of changes.
struct Feed {
    bench: Bench,
    file: PathBuf,
}

const DELETES: [&str; 6] = ["--mode", "upsert", "--key", "id", "--delete-where", "op = 'D'"];

impl Feed {
    fn new(changes: &str) -> Self {
        let bench = Bench::new();
        bench
            .client()
            .batch_execute(
                "create table k (id bigint primary key, version int, note text not null); \
                 insert into k select id, 5, 'there' from generate_series(0, 4) id",
            )
            .unwrap();
        let file = bench.dir.path().join("changes.csv");
        let feed = Self { bench, file };
        feed.write(changes);
        feed
    }

    fn write(&self, changes: &str) {
        std::fs::write(&self.file, format!("op,id,version,note\n{changes}")).unwrap();
    }

    fn words(&self, more: &[&str]) -> Vec<String> {
        self.bench.args("load", &self.file, "k", &[&DELETES, more].concat())
    }

    fn load(&self, more: &[&str]) -> Ran {
        sawmill(self.words(more))
    }

    fn rows(&self) -> String {
        let rows = "select string_agg(id || note || version, ' ' order by id, version) from k";
        self.bench.client().query_one(rows, &[]).unwrap().get(0)
    }
}

const BEFORE: &str = "0there5 1there5 2there5 3there5 4there5";

#[test]
fn marked_rows_delete_the_rows_of_their_keys_and_the_others_are_merged() {
    // A deletion needs no value but the key's, and the table has no column for the marker.
    let feed = Feed::new("U,1,6,changed\nD,2,,\nI,9,1,new\nD,7,,\n");
    let ran = feed.load(&["--verify"]).ok();
    for line in [
        "k: 4 rows, 2 of them loaded",
        "2 marked rows deleted 1 row of the table; it has no row with the other keys",
        "verified: the table has each key that the files keep, and none that they delete",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    let after = "0there5 1changed6 3there5 4there5 9new1";
    assert_eq!(feed.rows(), after);
    // What comes back later stays.
    feed.bench.client().batch_execute("insert into k values (2, 5, 'again')").unwrap();
    assert!(feed.load(&["--verify"]).ok().out.contains("nothing to do"));
    assert_eq!(feed.bench.count("select count(*) from k where id = 2"), 1);
}

#[test]
fn the_marker_is_loaded_if_the_table_has_it_and_named_as_in_the_files() {
    let feed = Feed::new("U,1,6,changed\nD,2,,\n");
    feed.bench.client().batch_execute("alter table k add kind text").unwrap();
    feed.load(&["--rename", "op=kind"]).ok();
    assert_eq!(feed.rows(), "0there5 1changed6 3there5 4there5");
    assert_eq!(feed.bench.count("select count(*) from k where kind = 'U'"), 1);
    let error = feed.load(&["--columns", "id,version,note"]).fails(2);
    assert!(error.contains("there is no column \"op\""), "{error}");
}

#[test]
fn a_text_column_of_the_table_can_be_compared_with_a_number() {
    let feed = Feed::new("");
    feed.bench.client().batch_execute("alter table k add deleted text").unwrap();
    std::fs::write(&feed.file, "deleted,id,version,note\n0,1,6,changed\n1,2,,\n").unwrap();
    let deletes = ["--mode", "upsert", "--key", "id", "--delete-where", "deleted = 1", "--verify"];
    feed.bench.load(&feed.file, "k", &deletes).ok();
    assert_eq!(feed.rows(), "0there5 1changed6 3there5 4there5");
    assert_eq!(feed.bench.count("select count(*) from k where deleted = '0'"), 1);
    // A night without any deletion has no value that shows the type.
    std::fs::write(&feed.file, "deleted,id,version,note\n,3,7,later\n").unwrap();
    feed.bench.load(&feed.file, "k", &deletes).ok();
    assert_eq!(feed.rows(), "0there5 1changed6 3later7 4there5");
}

#[test]
fn with_the_newest_row_of_a_key_a_deletion_counts_by_its_time() {
    let feed = Feed::new(concat!(
        "D,0,4,\n",             // Older than the row of the table.
        "D,1,5,\n",             // As new as it.
        "U,2,8,gone\nD,2,9,\n", // The newest row of the key deletes it.
        "D,3,7,\nI,3,8,back\n", // It deletes, and a newer one brings the key back.
        "I,4,6,gone\nD,4,6,\n", // Of equally new ones the deletion counts.
        "I,8,1,first\nD,9,3,\nD,9,2,\n",
    ));
    let ran = feed.load(&["--newest", "version", "--verify"]).ok();
    assert_eq!(feed.rows(), "0there5 3back8 8first1");
    for line in ["5 marked rows deleted 3 rows of the table", "or a newer one", "verified"] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
}

#[test]
fn two_nulls_of_a_key_that_may_have_one_are_named() {
    let bench = Bench::new();
    // PostgreSQL 15 and newer.
    let table = "create table n (id bigint, version int, unique nulls not distinct (id))";
    if bench.client().batch_execute(table).is_err() {
        return;
    }
    let file = bench.dir.path().join("n.csv");
    std::fs::write(&file, "id,version\n,2\n,3\n2,4\n2,5\n").unwrap();
    let options = ["--mode", "upsert", "--key", "id", "--newest", "version"];
    let error = bench.load(&file, "n", &options).fails(1);
    assert!(error.contains("rows of the source have the same key (\"id\"): () occurs 2 times"), "{error}");
}

#[test]
fn a_deletion_whose_row_is_not_certain_ends_the_load_and_changes_nothing() {
    for (changes, reason, advice) in [
        ("U,1,6,changed\nD,,6,\n", "the key of 1 row to delete has a null; the first is (", "--where"),
        ("D,1,,\nU,1,6,changed\n", "have the same key (\"id\"): (1) occurs 2 times", "--newest"),
    ] {
        let feed = Feed::new(changes);
        let error = feed.load(&[]).fails(1);
        assert!(error.contains(reason) && error.contains(advice), "{error}");
        let has_place = error.contains("changes.csv, line 3");
        assert_eq!(has_place, reason.contains("null"), "{error}");
        assert_eq!(feed.rows(), BEFORE);
        feed.write("U,1,6,changed\n");
        feed.load(&["--verify"]).ok();
    }
    // A trigger that keeps rows.
    let feed = Feed::new("D,1,,\nD,2,,\nU,3,6,changed\n");
    let keep = "create function keep() returns trigger language plpgsql as $$ begin \
                  if old.id = 1 then return null; end if; return old; end $$; \
                create trigger keep before delete on k for each row execute function keep()";
    feed.bench.client().batch_execute(keep).unwrap();
    let error = feed.load(&["--verify"]).fails(4);
    assert!(error.contains("a trigger or a rule of the table keeps 1 row to delete"), "{error}");
    assert_eq!(feed.rows(), BEFORE);
    let ran = feed.load(&[]).ok();
    assert!(ran.out.contains("skipped or changed 1 row"), "{}", ran.out);
    assert_eq!(feed.rows(), "0there5 1there5 3changed6 4there5");
}

#[test]
fn deletions_of_a_killed_load_happen_once_with_its_other_rows() {
    let feed = Feed::new("D,1,,\nU,2,6,changed\nI,9,1,new\n");
    let mut holder = feed.bench.client();
    holder.batch_execute("begin; select from k where id = 2 for update").unwrap();
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                   and datname = current_database()";
    let killed = start(feed.words(&[]));
    until("the merge waits", || feed.bench.count(waiting) == 1);
    assert_eq!(feed.rows(), BEFORE);
    signal(&killed, "KILL");
    wait(killed);
    holder.batch_execute("rollback").unwrap();
    until("its session ends", || feed.bench.count(ADVISORY_LOCKS) == 0);
    assert_eq!(feed.rows(), BEFORE);
    feed.load(&["--verify"]).ok();
    assert_eq!(feed.rows(), "0there5 2changed6 3there5 4there5 9new1");
}

#[test]
fn in_mode_history_a_deletion_closes_the_current_version() {
    let feed = Feed::new("I,1,1,first\nI,2,1,first\n");
    feed.bench.client().batch_execute("drop table k").unwrap();
    let load = |more: &[&str]| {
        let history = ["--mode", "history", "--key", "id", "--delete-where", "op = 'D'"];
        let load = feed.bench.args("load", &feed.file, "k", &[&history, more].concat());
        sawmill(load)
    };
    load(&[]).ok();
    feed.write("D,1,,\nU,2,2,second\nU,3,1,third\n");
    let ran = load(&["--verify"]).ok();
    assert!(ran.out.contains("1 marked row closed 1 version"), "{}", ran.out);
    assert_eq!(feed.rows(), "1first1 2first1 2second2 3third1");
    // The new table has no column for the marker, so that the same values under another marker are the same row.
    feed.write("X,3,1,third\n");
    load(&["--verify"]).ok();
    assert_eq!(feed.bench.count("select count(*) from k where current and id in (2, 3)"), 2);
    assert_eq!(feed.bench.count("select count(*) from k"), 4);
    assert_eq!(feed.bench.count("select count(*) from k where id = 1 and valid_to is not null"), 1);
}

#[test]
fn in_mode_history_the_newest_row_of_a_key_becomes_the_current_version() {
    let feed = Feed::new("I,1,1,first\nI,1,2,second\nI,2,5,first\n");
    feed.bench.client().batch_execute("drop table k").unwrap();
    let load = |more: &[&str]| {
        let history = ["--mode", "history", "--key", "id"];
        sawmill(feed.bench.args("load", &feed.file, "k", &[&history, more].concat()))
    };
    let error = load(&[]).fails(1);
    assert!(error.contains("have the same key") && error.contains("--newest"), "{error}");
    // The load has made the table, which is empty.
    assert!(feed.bench.exists("k"));
    sawmill(["load", "forget", "--to", &feed.bench.server.url(), "--table", "k"]).ok();
    assert!(!feed.bench.exists("k") && !feed.bench.exists("k__sawmill_loading"));
    let newest = ["--newest", "version", "--verify"];
    load(&newest).ok();
    assert_eq!(feed.rows(), "1second2 2first5");
    // Rows of later loads are compared with the current versions.
    feed.write("U,1,1,older\nU,1,3,third\nU,2,4,older\n");
    let ran = load(&newest).ok();
    assert!(ran.out.contains("or are not newer, by version"), "{}", ran.out);
    assert_eq!(feed.rows(), "1second2 1third3 2first5");
    feed.write("D,1,2,\nD,2,6,\n");
    let ran = load(&[&newest[..], &["--delete-where", "op = 'D'"]].concat()).ok();
    assert!(ran.out.contains("1 marked row closed 1 version"), "{}", ran.out);
    assert_eq!(feed.bench.count("select count(*) from k where current and id = 1"), 1);
    assert_eq!(feed.bench.count("select count(*) from k where current"), 1);
    feed.write("U,1,4,fourth\n");
    let error = load(&["--newest", "at"]).fails(1);
    assert!(error.contains("the source has no column \"at\", which says which row is the newest"), "{error}");
}

#[test]
fn other_modes_have_no_deletions() {
    for (mode, part) in [
        (&["--mode", "insert", "--key", "id"][..], "mode insert leaves"),
        (&["--mode", "upsert", "--key", "id", "--map", "position"], "--map position"),
        (&["--mode", "append", "--key", "id"], "--key without --mode upsert"),
        (&["--mode", "upsert"], "--key"),
    ] {
        let words = ["load", "x", "--to", "postgres://127.0.0.1:1/x", "--table", "k", "--delete-where", "a"];
        let error = sawmill([&words[..], mode].concat()).fails(2);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_load_that_deleted_all_rows_is_complete_when_it_is_repeated() {
    let feed = Feed::new("D,0,,\nD,1,,\nD,2,,\nD,3,,\nD,4,,\n");
    feed.load(&["--verify"]).ok();
    let repeated = feed.load(&["--verify"]).ok().out;
    assert!(repeated.contains("complete already"), "{repeated}");
    let count: i64 = feed.bench.client().query_one("select count(*) from k", &[]).unwrap().get(0);
    assert_eq!(count, 0);
}
