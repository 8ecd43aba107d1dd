//! A folder that grows is loaded by one command every night.

use std::path::Path;

use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::{ADVISORY_LOCKS, Bench};

/// Loads the folder by an address alone, without a mode.
fn night(bench: &Bench, folder: &Path, table: &str, more: &[&str]) -> Ran {
    let url = bench.server.url();
    let (server, query) = url.split_once('?').unwrap_or((&url, ""));
    let address = format!("{server}/{table}?{query}");
    sawmill([&["load", folder.to_str().unwrap(), &address][..], more].concat())
}

fn day(folder: &Path, name: &str, ids: std::ops::Range<u32>) {
    let rows: String = ids.map(|id| format!("{id},note {id}\n")).collect();
    std::fs::write(folder.join(name), format!("id,note\n{rows}")).unwrap();
}

#[test]
fn one_command_creates_the_table_on_the_first_night_and_adds_new_files_on_all_others() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..1000);
    // Only the first night makes keys and indexes.
    let options = ["--primary-key", "id", "--index", "note"];
    night(&bench, &folder, "public.days", &options).ok();
    assert!(night(&bench, &folder, "public.days", &options).ok().out.contains("nothing to do"));
    day(&folder, "2.csv", 1000..1500);
    let second = night(&bench, &folder, "public.days", &options).ok();
    assert!(second.out.contains("1 new file"), "{}", second.out);
    day(&folder, "3.csv", 1500..1600);
    let third = night(&bench, &folder, "public.days", &[&options[..], &["--verify"]].concat()).ok();
    assert!(third.out.contains("verified"), "{}", third.out);
    night(&bench, &folder, "public.days", &options).ok();
    assert_eq!(bench.count("select count(*) from days"), 1600);
    assert_eq!(bench.count("select count(distinct id) from days"), 1600);
    let keys = "select count(*) from pg_index where indrelid = 'days'::regclass";
    assert_eq!(bench.count(keys), 2);
}

#[test]
fn a_night_after_a_replacement_finds_its_files_and_adds_new_ones() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..100);
    night(&bench, &folder, "days", &[]).ok();
    night(&bench, &folder, "days", &["--mode", "replace"]).ok();
    let same = night(&bench, &folder, "days", &[]).ok();
    assert!(same.out.contains("nothing to do"), "{}", same.out);
    day(&folder, "2.csv", 100..150);
    night(&bench, &folder, "days", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from days"), 150);
}

#[test]
fn a_file_that_was_corrected_is_named_and_appended_only_on_request() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..100);
    night(&bench, &folder, "days", &[]).ok();
    day(&folder, "1.csv", 100..150);
    day(&folder, "2.csv", 200..300);
    let error = night(&bench, &folder, "days", &[]).fails(1);
    assert!(error.contains("1.csv") && error.contains("--changed append"), "{error}");
    assert_eq!(bench.count("select count(*) from days"), 100);
    night(&bench, &folder, "days", &["--changed", "append"]).ok();
    assert_eq!(bench.count("select count(*) from days"), 250);
}

#[test]
fn tables_of_others_and_of_other_files_need_mode_append() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..10);
    bench.client().batch_execute("create table others (id bigint, note text)").unwrap();
    let error = night(&bench, &folder, "others", &[]).fails(1);
    assert!(error.contains("already exists") && error.contains("append"), "{error}");
    night(&bench, &folder.join("1.csv"), "days", &[]).ok();
    day(&folder, "2.csv", 10..20);
    let error = night(&bench, &folder.join("2.csv"), "days", &[]).fails(1);
    assert!(error.contains("already exists"), "{error}");
    // Loads of other columns did not make this table.
    let error = night(&bench, &folder, "days", &["--columns", "id"]).fails(1);
    assert!(error.contains("already exists"), "{error}");
    assert_eq!(bench.count("select count(*) from days"), 10);
}

/// Creates a table with a key and the rows 0 to 9, all of version 5.
fn keyed(bench: &Bench) {
    let rows = "select id, 5, 'there' from generate_series(0, 9) id";
    let table =
        format!("create table k (id bigint primary key, version int, note text); insert into k {rows}");
    bench.client().batch_execute(&table).unwrap();
}

fn notes(bench: &Bench) -> Vec<(i64, i32, String)> {
    let rows = bench.client().query("select id, version, note from k order by id", &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[test]
fn mode_insert_adds_the_rows_whose_key_is_missing_and_leaves_the_others() {
    let bench = Bench::new();
    keyed(&bench);
    let file = bench.dir.path().join("more.csv");
    // Key 11 comes twice.
    std::fs::write(&file, "id,version,note\n8,9,file\n9,9,file\n10,9,file\n11,9,file\n11,9,file\n").unwrap();
    let insert = ["--mode", "insert", "--key", "id", "--verify"];
    let ran = bench.load(&file, "k", &insert).ok();
    assert!(ran.out.contains("5 rows, 2 of them loaded"), "{}", ran.out);
    let expected = (0..12).map(|id| match id {
        0..10 => (id, 5, "there".to_owned()),
        _ => (id, 9, "file".to_owned()),
    });
    assert_eq!(notes(&bench), expected.collect::<Vec<_>>());
    assert!(bench.load(&file, "k", &insert).ok().out.contains("nothing to do"));
    bench.load(&file, "k", &["--mode", "insert"]).fails(2);
}

#[test]
fn an_upsert_keeps_the_newest_row_of_the_table_and_of_the_files() {
    let bench = Bench::new();
    keyed(&bench);
    let file = bench.dir.path().join("changes.csv");
    let rows = "7,4,older\n8,5,same\n9,6,newer\n9,8,newest\n9,7,newer\n10,1,first\n10,,null\n";
    std::fs::write(&file, format!("id,version,note\n{rows}")).unwrap();
    let newest = ["--mode", "upsert", "--key", "id", "--newest", "version", "--verify"];
    let ran = bench.load(&file, "k", &newest).ok();
    assert!(ran.out.contains("7 rows, 2 of them loaded") && ran.out.contains("has each key"), "{}", ran.out);
    let notes = notes(&bench);
    let wanted = [(7, 5, "there"), (8, 5, "there"), (9, 8, "newest"), (10, 1, "first")];
    assert_eq!(notes[7..], wanted.map(|(id, version, note)| (id, version, note.to_owned())));
    // Columns may have the names that the statement uses itself.
    let table =
        "CREATE TABLE n (id bigint PRIMARY KEY, sawmill_place bigint, existing bigint, placed bigint)";
    bench.client().batch_execute(table).unwrap();
    std::fs::write(&file, "id,sawmill_place,existing,placed\n1,5,1,9\n1,6,2,8\n2,7,3,7\n").unwrap();
    bench.load(&file, "n", &["--mode", "upsert", "--key", "id", "--newest", "existing", "--verify"]).ok();
    let sum = "SELECT sum(sawmill_place * 100 + placed)::bigint FROM n";
    assert_eq!(bench.client().query_one(sum, &[]).unwrap().get::<_, i64>(0), 1315);
    bench.load(&file, "k", &["--mode", "upsert", "--key", "id", "--newest", "nothing"]).fails(1);
    bench.load(&file, "k", &["--mode", "insert", "--key", "id", "--newest", "version"]).fails(2);
}

#[test]
fn merges_of_rows_that_share_keys_or_are_skipped_are_complete_when_they_are_repeated() {
    let bench = Bench::new();
    let mut client = bench.client();
    let tables = "create table k (id bigint primary key, version bigint); create table alone (like k including all); \
                  create table skips (like k including all); \
                  create function skip() returns trigger language plpgsql as $$ begin \
                    if new.id = 1 then return null; end if; return new; end $$; \
                  create trigger skip before insert on skips for each row execute function skip()";
    client.batch_execute(tables).unwrap();
    let write = |name: &str, rows: &str| {
        let path = bench.dir.path().join(name);
        std::fs::write(&path, format!("id,version\n{rows}")).unwrap();
        path
    };
    let (same, others) = (write("same.csv", "1,1\n1,2\n1,3\n"), write("others.csv", "1,1\n2,2\n"));
    let merges: [(&Path, &str, &[&str]); 4] = [
        (&same, "k", &["--mode", "insert"]),
        (&same, "k", &["--mode", "upsert", "--newest", "version"]),
        (&same, "alone", &["--mode", "upsert", "--columns", "id"]),
        (&others, "skips", &["--mode", "upsert"]),
    ];
    for (file, table, options) in merges {
        let merge = || bench.load(file, table, &[options, &["--key", "id"]].concat());
        merge().ok();
        assert_eq!(bench.count(&format!("select count(*) from {table}")), 1, "{options:?}");
        assert!(merge().ok().out.contains("nothing to do"), "{options:?}");
        client.batch_execute(&format!("truncate {table}")).unwrap();
        assert!(merge().fails(4).contains("has 0 rows"), "{options:?}");
    }
}

#[test]
fn nights_without_rows_leave_a_table_that_is_verified() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    for name in ["1.csv", "2.csv"] {
        day(&folder, name, 0..0);
        night(&bench, &folder, "empty", &["--verify"]).ok();
    }
    let options = ["--file-column", "source", "--changed", "replace", "--verify"];
    day(&folder, "1.csv", 0..2);
    std::fs::remove_file(folder.join("2.csv")).unwrap();
    night(&bench, &folder, "days", &options).ok();
    day(&folder, "1.csv", 0..0);
    let replaced = night(&bench, &folder, "days", &options).ok();
    assert!(
        replaced.out.contains("0 rows of") && replaced.out.contains("replaced 2 rows"),
        "{}",
        replaced.out
    );
    assert!(night(&bench, &folder, "days", &options).ok().out.contains("nothing to do"));
    assert_eq!(bench.count("select count(*) from days"), 0);
}

#[test]
fn a_merge_that_a_check_has_ended_begins_again_with_rejects() {
    let bench = Bench::new();
    let table = "create table checked (id bigint primary key, n int not null check (n < 100))";
    bench.client().batch_execute(table).unwrap();
    let (file, rejects) = (bench.dir.path().join("n.csv"), bench.dir.path().join("rejects.parquet"));
    std::fs::write(&file, "id,n\n1,1\n2,200\n3,\n4,4\n").unwrap();
    let merge = ["--mode", "upsert", "--key", "id", "--rejects", rejects.to_str().unwrap()];
    let error = bench.load(&file, "checked", &merge[..4]).fails(1);
    assert!(error.contains("with --rejects FILE it is named"), "{error}");
    let ran = bench.load(&file, "checked", &merge).ok();
    assert!(ran.out.contains("2 rows could not be loaded"), "{}", ran.out);
    assert_eq!(bench.count("select count(*) from checked"), 2);
    assert!(bench.load(&file, "checked", &merge).ok().out.contains("nothing to do"));
}

#[test]
fn a_merge_that_failed_begins_again_with_corrected_files() {
    let bench = Bench::new();
    keyed(&bench);
    let file = bench.dir.path().join("changes.csv");
    for (mode, table) in [("upsert", "k"), ("history", "versions")] {
        let merge = |rows: &str| {
            std::fs::write(&file, format!("id,version,note\n{rows}")).unwrap();
            bench.load(&file, table, &["--mode", mode, "--key", "id", "--verify"])
        };
        let error = merge("10,1,a\n10,2,b\n").fails(1);
        assert!(error.contains("the same key") && error.contains("same command again"), "{error}");
        let corrected = "10,1,a\n11,2,b\n";
        let ran = merge(corrected).ok();
        assert!(ran.out.contains("2 rows"), "{}", ran.out);
        assert!(merge(corrected).ok().out.contains("nothing to do"));
        assert_eq!(bench.count(&format!("select count(*) from {table} where id in (10, 11)")), 2);
    }
}

#[test]
fn a_file_that_another_load_is_adding_is_refused_with_other_options() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let add = |name: &str, ids: std::ops::Range<u32>| {
        day(bench.dir.path(), "rows.csv", ids);
        let (rows, file) = (bench.dir.path().join("rows.csv"), folder.join(name));
        sawmill(["convert", rows.to_str().unwrap(), "--out", file.to_str().unwrap(), "--overwrite"]).ok();
        file
    };
    let mut client = bench.client();
    client
        .batch_execute(
            "create function wait() returns trigger language plpgsql as \
                          $$ begin perform pg_advisory_xact_lock_shared(42); return new; end $$",
        )
        .unwrap();
    for (table, more) in [("rows", &["--where", "id >= 0"][..]), ("columns", &["--columns", "id"])] {
        let _ = std::fs::remove_file(folder.join("2.parquet"));
        add("1.parquet", 0..10);
        night(&bench, &folder, table, &[]).ok();
        let second = add("2.parquet", 10..20);
        // The first load has begun, and has not committed a row yet.
        let trigger =
            format!("create trigger w before insert on {table} for each row execute function wait()");
        client.batch_execute(&format!("{trigger}; select pg_advisory_lock(42)")).unwrap();
        let first = start(bench.args("load", &folder, table, &[]));
        until("the first load waits", || {
            bench.count(&format!("{ADVISORY_LOCKS} and not granted and objid = 42")) == 1
        });
        let append = [&["--mode", "append"], more].concat();
        let error = bench.load(&second, table, &append).fails(1);
        assert!(error.contains("has begun meanwhile") || error.contains("already"), "{table}: {error}");
        client.batch_execute("select pg_advisory_unlock(42)").unwrap();
        wait(first).ok();
        let error = bench.load(&second, table, &append).fails(1);
        assert!(error.contains("already"), "{table}: {error}");
        assert_eq!(bench.count(&format!("select count(*) from {table} where id >= 10")), 10, "{table}");
    }
}

/// Writes one row a day, each at midnight, from the last day to the first.
fn dated(folder: &Path, name: &str, ids: std::ops::Range<u32>) {
    let at = |id: u32| format!("2024-{:02}-{:02}T00:00:00", id / 28 % 12 + 1, id % 28 + 1);
    let rows: String = ids.rev().map(|id| format!("{id},{}\n", at(id))).collect();
    std::fs::write(folder.join(name), format!("id,at\n{rows}")).unwrap();
}

/// Checks that the table has exactly the rows of these numbers.
#[track_caller]
fn holds(bench: &Bench, table: &str, ids: std::ops::Range<u32>) {
    let client = &mut bench.client();
    let sql = format!("select count(*), count(distinct id), coalesce(sum(id), 0)::bigint from {table}");
    let row = client.query_one(&sql, &[]).unwrap();
    let expected = (ids.len() as i64, ids.len() as i64, ids.map(i64::from).sum());
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), expected, "{table}");
}

/// Ways to load text whose rows do not arrive in file order.
const IN_ORDER: [(&str, &[&str]); 4] = [
    ("months", &["--partition-by", "month(at)"]),
    ("direct", &["--partition-by", "day(at)", "--strategy", "direct"]),
    ("sorted_months", &["--partition-by", "month(at)", "--sort-by", "at"]),
    ("sorted", &["--sort-by", "at"]),
];

#[test]
fn files_of_rows_in_order_are_remembered_one_by_one() {
    let bench = Bench::new();
    for (table, options) in IN_ORDER {
        let folder = bench.dir.path().join(table);
        std::fs::create_dir(&folder).unwrap();
        let verified = [options, &["--verify"]].concat();
        dated(&folder, "1.csv", 0..20);
        dated(&folder, "2.csv", 20..40);
        night(&bench, &folder, table, &verified).ok();
        assert!(night(&bench, &folder, table, options).ok().out.contains("nothing to do"), "{table}");
        dated(&folder, "3.csv", 40..70);
        dated(&folder, "4.csv", 70..90);
        let said = night(&bench, &folder, table, &verified).ok().out;
        assert!(said.contains("2 new files") && said.contains("verified"), "{table}: {said}");
        holds(&bench, table, 0..90);
        // An append recognises the files, however they are listed.
        night(&bench, &folder.join("1.csv"), table, &["--mode", "append"]).ok();
        let said = night(&bench, &folder, table, &["--mode", "append", "--verify"]).ok().out;
        assert!(said.contains("verified"), "{table}: {said}");
        holds(&bench, table, 0..90);
        let files = format!(
            "select count(*) from _sawmill.loads, unnest(files) name where target = 'public.{table}' and name like '%.csv'"
        );
        assert_eq!(bench.count(&files), 4, "{table}");
        // The load notices a changed file, even if its length is the same.
        dated(&folder, "2.csv", 30..50);
        let error = night(&bench, &folder, table, options).fails(1);
        assert!(error.contains("2.csv") && error.contains("other content"), "{table}: {error}");
    }
}

#[test]
fn other_partitions_than_those_of_the_table_are_refused() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    dated(&folder, "1.csv", 0..20);
    night(&bench, &folder, "months", &["--partition-by", "month(at)"]).ok();
    night(&bench, &folder, "parts", &["--partition-by", "hash(id, 2)"]).ok();
    night(&bench, &folder, "plain", &[]).ok();
    dated(&folder, "2.csv", 20..40);
    for (table, by, how) in [
        ("months", "day(at)", "has 1 partition by RANGE (at)"),
        ("months", "list(at)", "by RANGE (at)"),
        ("parts", "hash(id, 3)", "has 2 partitions by HASH (id)"),
        ("plain", "month(at)", "has no partitions"),
    ] {
        let error = night(&bench, &folder, table, &["--partition-by", by]).fails(1);
        assert!(error.contains(how), "{error}");
    }
    night(&bench, &folder, "parts", &["--partition-by", "hash(id, 2)"]).ok();
    night(&bench, &folder, "months", &[]).ok();
    for table in ["parts", "months"] {
        holds(&bench, table, 0..40);
    }
    holds(&bench, "plain", 0..20);
}

#[test]
fn rows_of_a_corrected_file_are_replaced_among_those_in_order() {
    let bench = Bench::new();
    for (table, options) in IN_ORDER {
        let folder = bench.dir.path().join(table);
        std::fs::create_dir(&folder).unwrap();
        let replace = ["--file-column", "source", "--changed", "replace", "--verify"];
        let options = [options, &replace].concat();
        dated(&folder, "1.csv", 0..20);
        dated(&folder, "2.csv", 20..40);
        night(&bench, &folder, table, &options).ok();
        dated(&folder, "2.csv", 20..50);
        dated(&folder, "3.csv", 50..60);
        let said = night(&bench, &folder, table, &options).ok().out;
        assert!(said.contains("replaced 20 rows"), "{table}: {said}");
        holds(&bench, table, 0..60);
        // The records still cover the remaining rows of the first night.
        let said = night(&bench, &folder, table, &options).ok().out;
        assert!(said.contains("verified") && !said.contains("not verified"), "{table}: {said}");
        dated(&folder, "1.csv", 0..10);
        dated(&folder, "4.csv", 10..20);
        night(&bench, &folder, table, &options).ok();
        holds(&bench, table, 0..60);
        let said = night(&bench, &folder, table, &options).ok().out;
        assert!(said.contains("verified") && !said.contains("not verified"), "{table}: {said}");
    }
}

#[test]
fn parts_add_the_new_files_of_a_folder() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    for (name, ids) in [("1.csv", 0..1000), ("2.csv", 1000..1500), ("3.csv", 1500..1600)] {
        day(&folder, name, ids.clone());
        for part in ["1/2", "2/2"] {
            night(&bench, &folder, "days", &["--part", part, "--verify"]).ok();
        }
        let finish = bench.args("finish", &folder, "days", &["--verify"]);
        sawmill(["load"].into_iter().chain(finish.iter().map(String::as_str))).ok();
        holds(&bench, "days", 0..ids.end);
    }
    let said = night(&bench, &folder, "days", &["--part", "1/2"]).ok().out;
    assert!(said.contains("nothing to do"), "{said}");
    holds(&bench, "days", 0..1600);
}

#[test]
fn an_interrupted_night_whose_file_was_corrected_is_replaced() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..10);
    let file = ["--file-column", "source", "--unit-rows", "2000", "--connections", "1"];
    let options = [&file[..], &["--changed", "replace", "--verify"]].concat();
    night(&bench, &folder, "days", &options).ok();
    let slow = "create function slow() returns trigger language plpgsql as $$ begin \
                  if new.id % 200 = 0 then perform pg_sleep(0.005); end if; return new; end $$; \
                create trigger slow before insert on days for each row execute function slow()";
    bench.client().batch_execute(slow).unwrap();
    day(&folder, "2.csv", 10..100_000);
    day(&folder, "3.csv", 100_000..200_000);
    let args = bench.args("load", &folder, "days", &options);
    let child = start(&args);
    let done = "select count(*) from _sawmill.units join _sawmill.loads using (load_id) \
                where completed is null and mode = 'append'";
    until("the first units", || bench.count(done) >= 2);
    signal(&child, "KILL");
    wait(child);
    assert!(bench.count("select count(*) from days") < 200_000);
    bench.client().batch_execute("drop trigger slow on days").unwrap();
    day(&folder, "2.csv", 10..100_001);
    day(&folder, "3.csv", 100_001..150_000);
    let error = night(&bench, &folder, "days", &file).fails(1);
    assert!(error.contains("has changed") && error.contains("stay there after"), "{error}");
    let said = night(&bench, &folder, "days", &options).ok().out;
    assert!(said.contains("replaced"), "{said}");
    holds(&bench, "days", 0..150_000);
    let said = night(&bench, &folder, "days", &options).ok().out;
    assert!(said.contains("verified") && !said.contains("not verified"), "{said}");
    let status = sawmill(["load", "status", "--to", &bench.server.url()]).ok().out;
    assert!(!status.contains("interrupted"), "{status}");
}

#[test]
fn keys_that_move_between_corrected_and_new_files_are_replaced_together() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    bench.client().batch_execute("create table days (id bigint primary key, note text, f text)").unwrap();
    let options = ["--mode", "append", "--file-column", "f", "--changed", "replace"];
    let files = |ranges: &[(&str, std::ops::Range<u32>)]| {
        ranges.iter().for_each(|(name, ids)| day(&folder, name, ids.clone()));
        night(&bench, &folder, "days", &options).ok().out
    };
    files(&[("1.csv", 0..2), ("2.csv", 2..5)]);
    let moved = files(&[("1.csv", 0..3), ("2.csv", 3..4), ("3.csv", 4..5)]);
    assert!(moved.contains("replaced 5 rows that they had"), "{moved}");
    assert!(moved.contains("1 new file, 2 replaced, 0 already loaded"), "{moved}");
    let of_files =
        "select count(*) from days where f like '%1.csv' and id < 3 or f like '%2.csv' and id = 3 or id = 4";
    assert_eq!((bench.count(of_files), bench.count("select count(*) from days")), (5, 5));
    let again = files(&[]);
    assert!(again.contains("nothing to do"), "{again}");
    // One of the two alone, and back again.
    files(&[("1.csv", 10..12)]);
    files(&[("1.csv", 0..3)]);
    assert_eq!((bench.count(of_files), bench.count("select count(*) from days")), (5, 5));
    let verified = night(&bench, &folder, "days", &[&options[..], &["--verify"]].concat()).ok().out;
    assert!(verified.contains("verified"), "{verified}");
}

#[test]
fn a_plan_of_a_night_is_about_the_files_that_are_left() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    day(&folder, "1.csv", 0..10);
    let plan = |more: &[&str]| night(&bench, &folder, "days", &[more, &["--explain"]].concat());
    assert!(plan(&[]).ok().out.contains("CREATE TABLE"));
    night(&bench, &folder, "days", &["--file-column", "f"]).ok();
    let options = ["--file-column", "f", "--changed", "replace"];
    let none = plan(&options[..2]).ok().out;
    assert!(none.contains("0 files, 0 rows in 0 units") && !none.contains("CREATE TABLE"), "{none}");
    day(&folder, "2.csv", 10..13);
    let new = plan(&options).ok().out;
    assert!(new.contains("1 file, 3 rows") && !new.contains("CREATE TABLE"), "{new}");
    day(&folder, "1.csv", 0..11);
    assert!(plan(&options[..2]).fails(1).contains("1.csv"));
    let both = plan(&options).ok().out;
    assert!(both.contains("2 files, 14 rows"), "{both}");
    let rehearsed = night(&bench, &folder, "days", &[&options[..], &["--dry-run"]].concat()).ok().out;
    assert!(
        rehearsed.contains("1 new file, 0 already loaded") && rehearsed.contains("14 rows"),
        "{rehearsed}"
    );
    assert_eq!(bench.count("select count(*) from days"), 10);
}

#[test]
fn a_message_names_its_mode_and_a_row_without_a_version() {
    let bench = Bench::new();
    let folder = bench.dir.path();
    day(folder, "1.csv", 0..2);
    let load = |mode: &str, more: &[&str]| {
        bench.load(&folder.join("1.csv"), "t", &[&["--mode", mode, "--key", "id"], more].concat())
    };
    assert!(load("insert", &[]).fails(1).contains("mode insert merges"));
    let key = load("history", &["--primary-key", "id"]).fails(2);
    assert!(key.contains("mode history") && !key.contains("upsert") && !key.contains("mode create"), "{key}");
    assert!(load("history", &["--changed", "append"]).fails(2).contains("--changed"));
    for rows in ["0,a\n,b\n", "0,a\n0,b\n"] {
        std::fs::write(folder.join("1.csv"), format!("id,note\n{rows}")).unwrap();
        let error = load("history", &[]).fails(1);
        assert!(error.contains("1.csv") && error.contains("line 3"), "{error}");
        sawmill(["load", "forget", "--to", &bench.server.url(), "--table", "t"]).ok();
    }
    bench.client().batch_execute("create table n (id bigint unique, note text)").unwrap();
    std::fs::write(folder.join("1.csv"), "id,note\n,b\n").unwrap();
    let insert = bench.load(&folder.join("1.csv"), "n", &["--mode", "insert", "--key", "id"]).ok().out;
    assert!(insert.contains("each insert adds them again"), "{insert}");
}
