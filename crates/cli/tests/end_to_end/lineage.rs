//! Rows that say which file they come from, and corrected files whose rows take the place of the earlier ones.

use std::path::PathBuf;

use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::{ADVISORY_LOCKS, Bench};

struct Nights {
    bench: Bench,
    folder: PathBuf,
}

const LINEAGE: [&str; 6] =
    ["--file-column", "source", "--row-column", "line", "--loaded-at-column", "loaded_at"];

impl Nights {
    /// Two files of two rows are in the table.
    fn new() -> Self {
        let bench = Bench::new();
        let folder = bench.dir.path().join("days");
        std::fs::create_dir(&folder).unwrap();
        let nights = Self { bench, folder };
        nights.day("1.csv", &[1, 2]);
        nights.day("2.csv", &[3, 4]);
        nights.night(&["--verify"]).ok();
        nights
    }

    fn day(&self, name: &str, ids: &[u32]) {
        let rows: String = ids.iter().map(|id| format!("{id}\n")).collect();
        std::fs::write(self.folder.join(name), format!("id\n{rows}")).unwrap();
    }

    fn words(&self, more: &[&str]) -> Vec<String> {
        self.bench.args("load", &self.folder, "days", &[&LINEAGE, more].concat())
    }

    fn night(&self, more: &[&str]) -> Ran {
        sawmill(self.words(more))
    }

    fn rows(&self) -> String {
        let rows = "select string_agg(concat_ws(' ', id, right(source, 5), line), ',' order by id) from days";
        self.bench.client().query_one(rows, &[]).unwrap().get(0)
    }
}

#[test]
fn rows_carry_file_number_and_time() {
    let nights = Nights::new();
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,3 2.csv 0,4 2.csv 1");
    let recent = "select count(*) from days where loaded_at between now() - interval '1 hour' and now()";
    assert_eq!(nights.bench.count(recent), 4);
    assert!(nights.night(&["--verify"]).ok().out.contains("nothing to do"));
    nights.day("3.csv", &[5]);
    assert!(nights.night(&["--verify"]).ok().out.contains("1 new file"));
    // Tables of others need the columns, of fitting types.
    let mut client = nights.bench.client();
    client.batch_execute("create table others (id bigint, source text, line bigint)").unwrap();
    let append = || {
        let more = [&LINEAGE[..], &["--mode", "append"]].concat();
        nights.bench.load(&nights.folder, "others", &more)
    };
    let error = append().fails(1);
    assert!(error.contains("'loaded_at'") && error.contains("DEFAULT now()"), "{error}");
    client
        .batch_execute(
            "alter table others add loaded_at timestamptz default now(), alter source type int using 0",
        )
        .unwrap();
    let error = append().fails(1);
    assert!(error.contains("\"source\"") && error.contains("cannot be read as integer"), "{error}");
    client.batch_execute("alter table others alter source type text").unwrap();
    append().ok();
    assert_eq!(nights.bench.count("select count(*) from others where loaded_at is not null"), 5);
    nights.bench.load(&nights.folder, "taken", &["--file-column", "id"]).fails(2);
}

#[test]
fn the_rows_of_a_corrected_file_replace_those_that_it_had() {
    let nights = Nights::new();
    nights.day("1.csv", &[7, 8, 9]);
    nights.day("3.csv", &[5]);
    let error = nights.night(&[]).fails(1);
    assert!(error.contains("1.csv") && error.contains("--changed replace"), "{error}");
    let ran = nights.night(&["--changed", "replace", "--verify"]).ok();
    assert!(ran.out.contains("replaced 2 rows"), "{}", ran.out);
    let now = "3 2.csv 0,4 2.csv 1,5 3.csv 0,7 1.csv 0,8 1.csv 1,9 1.csv 2";
    assert_eq!(nights.rows(), now);
    let url = nights.bench.server.url();
    let history = sawmill(["load", "status", "--to", &url, "--history", "--json"]).ok().json();
    let first = history.as_array().unwrap().last().unwrap();
    assert_eq!((&first["files"][0]["bytes"], &first["files"][0]["rows"]), (&7.into(), &0.into()));
    assert!(first["files"][0]["hash"].as_str().unwrap().ends_with(" replaced"), "{first}");
    // The files are on record with the content that they have now.
    for more in [&["--changed", "replace"][..], &[], &["--verify"]] {
        assert!(nights.night(more).ok().out.contains("nothing to do"));
    }
    // The earlier content is another correction.
    nights.day("1.csv", &[1, 2]);
    assert!(nights.night(&[]).fails(1).contains("1.csv"));
    nights.night(&["--changed", "replace", "--verify"]).ok();
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,3 2.csv 0,4 2.csv 1,5 3.csv 0");
    assert!(nights.night(&["--verify"]).ok().out.contains("nothing to do"));
    sawmill(nights.bench.args("load", &nights.folder, "days", &["--changed", "replace"])).fails(2);
}

#[test]
fn a_corrected_file_is_neither_added_nor_replaced_beside_a_load_with_other_options() {
    let nights = Nights::new();
    nights.day("1.csv", &[7, 8, 9]);
    let append = |more: &[&str]| {
        let more = [&["--mode", "append", "--file-column", "source"], more].concat();
        nights.bench.load(&nights.folder.join("1.csv"), "days", &more)
    };
    let error = append(&[]).fails(1);
    assert!(error.contains("1.csv was loaded before with other content"), "{error}");
    let error = append(&["--changed", "replace"]).fails(1);
    assert!(error.contains("rows of") && error.contains("cannot be replaced"), "{error}");
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,3 2.csv 0,4 2.csv 1");
    // The replaced rows no longer conflict with new ones.
    nights.night(&["--changed", "replace"]).ok();
    nights.day("1.csv", &[1, 2]);
    nights.night(&["--changed", "replace", "--verify"]).ok();
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,3 2.csv 0,4 2.csv 1");
    let history = ["load", "status", "--to", &nights.bench.server.url(), "--history"];
    assert!(!sawmill(history).ok().out.contains("replaced replaced"));
}

#[test]
fn a_table_whose_files_were_corrected_is_verified_whole() {
    let nights = Nights::new();
    let verified = |rows: i64| {
        let out = nights.night(&["--changed", "replace", "--verify"]).ok().out;
        let whole = out.contains("verified: the table holds what the files hold");
        assert!(whole && !out.contains("not compared"), "{out}");
        assert_eq!(nights.bench.count("select count(*) from days"), rows);
    };
    nights.day("1.csv", &[7, 8, 9]);
    verified(5);
    // All files are corrected, and another one is new.
    nights.day("1.csv", &[1]);
    nights.day("2.csv", &[3, 4, 5]);
    nights.day("3.csv", &[6, 7]);
    verified(6);
}

#[test]
fn a_replacement_that_is_killed_or_runs_twice_happens_once() {
    let nights = Nights::new();
    nights.day("1.csv", &[7, 8, 9]);
    let mut holder = nights.bench.client();
    holder.batch_execute("begin; select from days where id = 1 for update").unwrap();
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                   and datname = current_database()";
    let killed = start(nights.words(&["--changed", "replace"]));
    until("the replacement waits", || nights.bench.count(waiting) == 1);
    // Other sessions see the replacement whole or not at all.
    assert_eq!(nights.bench.count("select count(*) from days"), 4);
    signal(&killed, "KILL");
    wait(killed);
    holder.batch_execute("rollback").unwrap();
    until("its session ends", || nights.bench.count(ADVISORY_LOCKS) == 0);
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,3 2.csv 0,4 2.csv 1");
    let both = [(); 2].map(|()| start(nights.words(&["--changed", "replace", "--verify"]))).map(wait);
    assert!(both.iter().any(|ran| ran.code == Some(0)), "{} {}", both[0].err, both[1].err);
    nights.night(&["--changed", "replace", "--verify"]).ok();
    assert_eq!(nights.rows(), "3 2.csv 0,4 2.csv 1,7 1.csv 0,8 1.csv 1,9 1.csv 2");
}

#[test]
fn the_time_of_the_load_is_the_servers_and_is_in_the_ddl() {
    let bench = Bench::new();
    let file = bench.dir.path().join("own.csv");
    std::fs::write(&file, "id,at\n1,2020-01-01 00:00:00\n").unwrap();
    let load =
        |table: &str, more: &[&str]| bench.load(&file, table, &[&["--loaded-at-column"][..], more].concat());
    let mut client = bench.client();
    client.batch_execute("create table there (id bigint, at timestamp default now())").unwrap();
    let taken: [(&str, &[&str]); 6] = [
        ("new", &["at"]),
        ("new", &["at", "--ddl"]),
        ("new", &["at", "--evolve"]),
        ("there", &["at", "--mode", "append"]),
        ("there", &["at", "--mode", "append", "--evolve"]),
        ("there", &["at", "--mode", "append", "--map", "position"]),
    ];
    for (table, more) in taken {
        let error = load(table, more).fails(2);
        assert!(error.contains("column \"at\"") && error.contains("--rename"), "{more:?}: {error}");
    }
    assert!(!bench.exists("new"));
    assert_eq!(bench.count("select count(*) from there"), 0);
    // What --ddl prints makes a table for the same options.
    for (table, mode) in
        [("added", &["--mode", "append"][..]), ("versions", &["--mode", "history", "--key", "id"])]
    {
        let options = [&["loaded"], mode].concat();
        let ddl = load(table, &[&options[..], &["--ddl"]].concat()).ok().out;
        client.batch_execute(&ddl).unwrap();
        load(table, &[&options[..], &["--verify"]].concat()).ok();
        let recent = format!("select count(*) from {table} where loaded > now() - interval '1 hour'");
        assert_eq!(bench.count(&recent), 1, "{ddl}");
    }
}

#[test]
fn files_with_lineage_or_lists_share_a_file_of_rejected_rows() {
    let bench = Bench::new();
    let (first, second) = (r#"{"id":1,"tags":["a"]}|{"id":100,"tags":["b"]}"#, r#"{"id":200,"tags":["c"]}"#);
    for (form, nights) in [("csv", ["id,tags|1,a|100,b", "id,tags|200,c"]), ("ndjson", [first, second])] {
        let folder = bench.dir.path().join(form);
        std::fs::create_dir(&folder).unwrap();
        let tags = if form == "csv" { "text" } else { "jsonb" };
        let table = format!("create table {form} (id bigint check (id < 100), tags {tags}, source text)");
        bench.client().batch_execute(&table).unwrap();
        let rejects = bench.dir.path().join(format!("{form}.parquet"));
        let options = ["--mode", "append", "--file-column", "source", "--rejects", rejects.to_str().unwrap()];
        for (number, rows) in nights.iter().enumerate() {
            let rows = rows.replace('|', "\n") + "\n";
            std::fs::write(folder.join(format!("{number}.{form}")), rows).unwrap();
            bench.load(&folder, form, &options).ok();
        }
        // The rejected rows of both nights, with the text that they had.
        let kept = format!("{form}_kept");
        bench.load(&rejects, &kept, &[]).ok();
        let rows = format!(
            "select string_agg(concat_ws(' ', id, regexp_replace(source, '.*/', ''), tags::text), ',' order by id) \
             from {kept}"
        );
        let rows: String = bench.client().query_one(&rows, &[]).unwrap().get(0);
        let expected = match form {
            "csv" => "100 0.csv b,200 1.csv c",
            _ => r#"100 0.ndjson ["b"],200 1.ndjson ["c"]"#,
        };
        assert_eq!(rows, expected);
    }
}

#[test]
fn merged_rows_get_the_time_of_the_merge_whatever_the_default_is() {
    let bench = Bench::new();
    let folder = bench.dir.path().join("days");
    std::fs::create_dir(&folder).unwrap();
    let night = |mode: &[&str], rows: &str| {
        std::fs::write(folder.join("1.csv"), format!("id,note\n{rows}")).unwrap();
        let lineage = ["--file-column", "source", "--loaded-at-column", "at", "--verify"];
        bench.load(&folder, mode[0], &[&mode[1..], &lineage[..]].concat())
    };
    let merges: [&[&str]; 4] = [
        &["updated", "--mode", "upsert", "--key", "id"],
        &["newest", "--mode", "upsert", "--key", "id", "--newest", "note"],
        &["inserted", "--mode", "insert", "--key", "id"],
        &["versions", "--mode", "history", "--key", "id"],
    ];
    for merge in merges {
        let table = format!(
            "create table {0} (id bigint, note text, source text, at timestamptz default '2000-01-01', \
               valid_from timestamptz, valid_to timestamptz, \"current\" boolean); \
             insert into {0} values (1, 'a', 'before', default, '2000-01-01', null, true); \
             create unique index on {0} (id{1})",
            merge[0],
            if merge[0] == "versions" { ", valid_from" } else { "" },
        );
        bench.client().batch_execute(&table).unwrap();
        night(merge, "1,b\n2,c\n").ok();
        let stamped = |rows: &str| {
            let recent = "at > now() - interval '1 hour'";
            bench.count(&format!("select count(*) from {} where {rows} and {recent}", merge[0]))
        };
        // A row that stays as it was keeps its time.
        let written = if merge[0] == "inserted" { 1 } else { 2 };
        assert_eq!(stamped("source <> 'before'"), written, "{merge:?}");
        assert_eq!(stamped("source = 'before'"), 0, "{merge:?}");
    }
    // A merge needs no default.
    let mut client = bench.client();
    let bare = "create table bare (id bigint primary key, note text, source text, at timestamptz not null)";
    client.batch_execute(bare).unwrap();
    night(&["bare", "--mode", "upsert", "--key", "id", "--explain"], "3,x\n").ok();
    let merged = night(&["bare", "--mode", "upsert", "--key", "id"], "3,x\n").ok();
    assert!(!merged.out.contains("the files lack"), "{}", merged.out);
    assert_eq!(bench.count("select count(*) from bare where at > now() - interval '1 hour'"), 1);
    // COPY cannot write it: then the default has to be the time.
    let table =
        "create table copied (id bigint, note text, source text, at timestamptz default '2000-01-01')";
    client.batch_execute(table).unwrap();
    let copied = |more: &[&str], rows: &str| night(&[&["copied", "--mode", "append"], more].concat(), rows);
    let error = copied(&[], "5,d\n").fails(1);
    assert!(error.contains("another default") && error.contains("SET DEFAULT now()"), "{error}");
    client.batch_execute("alter table copied alter at set default (now() at time zone 'utc')").unwrap();
    copied(&[], "5,d\n").ok();
    client.batch_execute("alter table copied alter at set default clock_timestamp()").unwrap();
    copied(&["--changed", "replace"], "5,e\n6,f\n").ok();
    let recent = "select count(*) from copied where at > now() - interval '1 day'";
    assert_eq!(bench.count(recent), 2);
}

#[test]
fn a_key_that_a_row_of_another_file_has_is_named_with_both() {
    let nights = Nights::new();
    nights.bench.client().batch_execute("alter table days add unique (id)").unwrap();
    let before = nights.rows();
    let rejects = nights.bench.dir.path().join("rejects.parquet");
    let rejects = ["--changed", "replace", "--rejects", rejects.to_str().unwrap()];
    for (ids, line, other) in [(&[5, 2, 6], 3, "1.csv has"), (&[5, 6, 5], 4, "2.csv has")] {
        nights.day("2.csv", ids);
        for more in [&rejects[..2], &rejects] {
            let error = nights.night(more).fails(1);
            let place = format!("2.csv, line {line}");
            for part in [other, "same key (id)", &place, "nothing was replaced", "same command again"] {
                assert!(error.contains(part), "{part}: {error}");
            }
            let why = "none whose key another row has, which shows only when the earlier rows are gone";
            assert!(error.contains(why), "{error}");
            assert_eq!(nights.rows(), before);
        }
    }
    nights.day("2.csv", &[5, 6]);
    nights.night(&["--changed", "replace", "--verify"]).ok();
    assert_eq!(nights.rows(), "1 1.csv 0,2 1.csv 1,5 2.csv 0,6 2.csv 1");
}

#[test]
fn numbers_of_files_are_kept_by_tables_that_number_their_rows() {
    let nights = Nights::new();
    let tables = "create table own (id bigint generated always as identity primary key, source text)";
    nights.bench.client().batch_execute(tables).unwrap();
    let load = |more: &[&str]| {
        let options = [&["--file-column", "source", "--verify"], more].concat();
        nights.bench.load(&nights.folder, "own", &options).ok();
    };
    let ids = || -> String {
        let ids = "select string_agg(id::text, ',' order by id) from own";
        nights.bench.client().query_one(ids, &[]).unwrap().get(0)
    };
    load(&["--mode", "append"]);
    nights.day("1.csv", &[7]);
    load(&["--mode", "append", "--changed", "replace"]);
    assert_eq!(ids(), "3,4,7");
    nights.day("2.csv", &[7, 9]);
    std::fs::remove_file(nights.folder.join("1.csv")).unwrap();
    load(&["--mode", "upsert", "--key", "id"]);
    assert_eq!(ids(), "3,4,7,9");
}

#[test]
fn a_replacement_that_failed_does_not_stand_in_the_way_of_the_next_content() {
    let nights = Nights::new();
    nights.bench.client().batch_execute("alter table days add check (id < 100)").unwrap();
    let before = nights.rows();
    let refused = |name: &str| {
        nights.day(name, &[9, 100]);
        let error = nights.night(&["--changed", "replace"]).fails(1);
        assert!(error.contains("nothing was replaced") && error.contains("same command"), "{error}");
        assert_eq!(nights.rows(), before);
    };
    // The file is corrected once more.
    refused("1.csv");
    nights.day("1.csv", &[1, 2, 5]);
    nights.night(&["--changed", "replace", "--verify"]).ok();
    nights.day("1.csv", &[1, 2]);
    nights.night(&["--changed", "replace", "--verify"]).ok();
    assert_eq!(nights.rows(), before);
    // It is the earlier one again, and another file comes corrected.
    refused("2.csv");
    nights.day("2.csv", &[3, 4]);
    nights.day("1.csv", &[6]);
    let ran = nights.night(&["--changed", "replace", "--verify"]).ok();
    assert!(!ran.out.contains("--again"), "{}", ran.out);
    assert_eq!(nights.rows(), "3 2.csv 0,4 2.csv 1,6 1.csv 0");
    let url = nights.bench.server.url();
    let listed = sawmill(["load", "status", "--to", &url, "--table", "days"]).ok().out;
    assert!(!listed.contains("interrupted") && !listed.contains("upsert"), "{listed}");
    assert!(nights.night(&["--changed", "replace", "--verify"]).ok().out.contains("nothing to do"));
}
