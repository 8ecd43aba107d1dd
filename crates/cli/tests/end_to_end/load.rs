//! `sawmill load` and `sawmill verify`, against a PostgreSQL that the test starts.

use std::fs;
use std::path::{Path, PathBuf};

use postgres::{Client, NoTls};

use crate::database::Database;
use crate::harness::{Ran, sawmill, signal, start, until, wait};

/// How many advisory locks the sessions of a database hold or wait for; other tests have them in other databases.
pub const ADVISORY_LOCKS: &str = "select count(*) from pg_locks where locktype = 'advisory' \
                                  and database = (select oid from pg_database where datname = current_database())";

/// A database, and a directory for files.
pub struct Bench {
    pub server: Database,
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Bench { server: Database::new(), dir: tempfile::tempdir().unwrap() }
    }

    /// A contacts file of this many rows.
    pub fn contacts(&self, rows: &str) -> PathBuf {
        let path = self.dir.path().join(format!("contacts-{rows}.parquet"));
        sawmill(["gen", "contacts", "--rows", rows, "--out", path.to_str().unwrap()]).ok();
        path
    }

    pub fn args<'a>(&self, verb: &'a str, file: &'a Path, table: &'a str, more: &[&'a str]) -> Vec<String> {
        let mut args = vec![verb.to_owned(), file.to_str().unwrap().to_owned()];
        args.extend(["--to", &self.server.url(), "--table", table].map(str::to_owned));
        args.extend(more.iter().map(|s| (*s).to_owned()));
        args
    }

    pub fn load(&self, file: &Path, table: &str, more: &[&str]) -> Ran {
        sawmill(self.args("load", file, table, more))
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.server.url(), NoTls).unwrap()
    }

    pub fn count(&self, query: &str) -> i64 {
        self.client().query_one(query, &[]).unwrap().get(0)
    }

    pub fn exists(&self, table: &str) -> bool {
        self.count(&format!("select count(*) from pg_tables where tablename = '{table}'")) > 0
    }
}

#[test]
fn a_file_by_another_writer_is_loaded_and_verified() {
    // Made-up taxi trips, written by pyarrow (`scripts/peers/files/fixtures.py`).
    let taxi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/taxi.parquet");
    let bench = Bench::new();
    let json = bench.load(&taxi, "taxi", &["--verify", "--json"]).ok().json();
    assert_eq!(json["report"]["rows"], 5_000);
    assert_eq!(json["report"]["verified"]["target"], json["report"]["content"]);
    assert_eq!(bench.count("select count(*) from taxi"), 5_000);
    let types = "select string_agg(distinct data_type, ',' order by data_type) \
                 from information_schema.columns where table_name = 'taxi'";
    let types: String = bench.client().query_one(types, &[]).unwrap().get(0);
    assert_eq!(types, "bigint,double precision,integer,text,timestamp without time zone");
    let text = sawmill(bench.args("verify", &taxi, "taxi", &[])).ok().out;
    assert!(text.contains("verified"), "{text}");
}

#[test]
fn the_same_load_again_has_nothing_to_do() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    bench.load(&file, "c", &[]).ok();
    let again = bench.load(&file, "c", &[]).ok().out;
    assert!(again.contains("nothing to do"), "{again}");
    assert_eq!(bench.count("select count(*) from c"), 5_000);
}

#[test]
fn appending_the_same_file_twice_does_not_double_it_but_another_file_adds_to_it() {
    let bench = Bench::new();
    let (first, second) = (bench.contacts("5k"), bench.contacts("700"));
    bench.client().batch_execute("create table c (phones jsonb, name text, extra int default 7)").unwrap();
    bench.load(&first, "c", &["--mode", "append"]).ok();
    bench.load(&first, "c", &["--mode", "append"]).ok();
    bench.load(&second, "c", &["--mode", "append"]).ok();
    assert_eq!(bench.count("select count(*) from c where extra = 7"), 5_700);
}

#[test]
fn a_changed_table_is_found_by_verify() {
    let bench = Bench::new();
    let file = bench.contacts("5k");
    bench.load(&file, "c", &[]).ok();
    for (change, expected) in [
        (
            "update c set name = 'X' || name where ctid = (select min(ctid) from c where name is not null)",
            "name",
        ),
        ("delete from c where ctid = (select min(ctid) from c)", "4,999"),
        ("insert into c select * from c limit 2", "5,001"),
    ] {
        bench.client().batch_execute(change).unwrap();
        let ran = sawmill(bench.args("verify", &file, "c", &[]));
        assert!(ran.out.contains("they differ"), "{}", ran.out);
        let error = ran.fails(4);
        assert!(error.contains(expected), "{change}: {error}");
    }
}

#[test]
fn rows_that_do_not_allow_a_key_are_corrected_as_the_error_says() {
    let bench = Bench::new();
    let file = bench.dir.path().join("rows.csv");
    fs::write(&file, "id,v\n1,a\n1,b\n2,c\n").unwrap();
    let words = ["--primary-key", "id", "--key-after"];
    let error = bench.load(&file, "t", &[&words[..], &["--verify"]].concat()).fails(1);
    for part in ["(id)=(1)", "correct the named rows in public.t__sawmill_loading", "again, without --verify"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    bench.client().batch_execute("delete from t__sawmill_loading where v = 'b'").unwrap();
    // The table no longer has the rows of the files, which ends nothing but the comparison.
    bench.load(&file, "t", &[&words[..], &["--verify"]].concat()).fails(4);
    bench.load(&file, "t", &words).ok();
    assert_eq!(bench.count("select count(*) from t"), 2);
}

#[test]
fn ctrl_c_in_mid_load_commits_nothing_half_and_the_same_command_finishes() {
    interrupted_by("INT", Some(130));
}

#[test]
fn a_killed_load_is_finished_by_the_same_command() {
    interrupted_by("KILL", None);
}

fn interrupted_by(name: &str, code: Option<i32>) {
    let bench = Bench::new();
    let file = bench.contacts("2M");
    let args = bench.args("load", &file, "c", &["--unit-rows", "20k"]);
    let child = start(&args);
    // In mid-load: some units are in, in a table that is not yet the one asked for.
    let mut client = bench.client();
    until("the first unit", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    signal(&child, name);
    assert_eq!(wait(child).code, code);
    assert!(!bench.exists("c"));
    let backends = "select count(*) from pg_stat_activity where application_name like 'sawmill%' and state <> 'idle' \
         and datname = current_database()";
    until("the end of the load's connections", || bench.count(backends) == 0);
    let json = sawmill(args.iter().map(String::as_str).chain(["--json", "--verify"])).ok().json();
    assert_eq!(json["report"]["rows"], 2_000_000);
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from c"), 2_000_000);
}

#[test]
fn a_killed_load_that_rejects_rows_ends_with_each_of_them_once() {
    let bench = Bench::new();
    let file = bench.contacts("200k");
    let refused = bench.dir.path().join("refused.parquet");
    let table = "create table c (name text check (name not like '%e'), phones jsonb)";
    bench.client().batch_execute(table).unwrap();
    // If the table held rows, only a first run with --verify records them.
    bench.client().batch_execute("insert into c values ('earlier')").unwrap();
    let more = ["--mode", "append", "--unit-rows", "5k", "--rejects", refused.to_str().unwrap()];
    let args = bench.args("load", &file, "c", &more);
    let child = start(&args);
    until("the first unit", || bench.count("select count(*) from c") > 1);
    signal(&child, "KILL");
    wait(child);
    assert!(!refused.exists());
    let json = sawmill(args.iter().map(String::as_str).chain(["--json", "--verify"])).fails(4);
    assert!(json.contains("summed up"), "an append is verified from its first run on: {json}");
    let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
    let rejected = json["report"]["rows_rejected"].as_i64().unwrap();
    assert!(rejected > 0 && json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from c"), 1 + 200_000 - rejected);
    // The file is one like any other, and has each row once.
    bench.load(&refused, "refused", &["--verify"]).ok();
    let distinct = "select count(distinct (_sawmill_file, _sawmill_row_group, _sawmill_row)) from refused";
    assert_eq!(bench.count(distinct), rejected);
    let wrong =
        "select count(*) from refused where name not like '%e' or _sawmill_reason not like '%c_name_check%'";
    assert_eq!((bench.count("select count(*) from refused"), bench.count(wrong)), (rejected, 0));
}

#[test]
fn a_value_that_cannot_be_loaded_is_located_and_nothing_is_left() {
    let bench = Bench::new();
    let good = bench.contacts("1000");
    let at = |name: &str| bench.dir.path().join(name);
    let bytes = fs::read(&good).unwrap();
    fs::write(at("truncated.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(at("text.parquet"), "id,name\n1,Ann\n").unwrap();
    for name in ["truncated.parquet", "text.parquet", "missing.parquet"] {
        let error = bench.load(&at(name), "c", &[]).fails(1);
        assert!(error.contains(name), "{error}");
    }
    // The footer is whole, a page is not.
    let mut torn = bytes.clone();
    torn[8..200].fill(0xFF);
    fs::write(at("torn.parquet"), torn).unwrap();
    let error = bench.load(&at("torn.parquet"), "c", &[]).fails(1);
    assert!(error.contains("torn.parquet") && error.contains("row group"), "{error}");
    assert!(!bench.exists("c"));
}

#[test]
fn a_table_that_does_not_fit_is_rejected_with_the_columns() {
    let bench = Bench::new();
    let file = bench.contacts("100");
    bench.client().batch_execute("create table c (name box, address text not null)").unwrap();
    let error = bench.load(&file, "c", &[]).fails(1);
    assert!(error.contains("exist"), "{error}");
    let error = bench.load(&file, "c", &["--mode", "append"]).fails(1);
    for expected in ["name", "phones"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    assert_eq!(bench.count("select count(*) from c"), 0);
    for more in [&["--mode", "append"][..], &["--mode", "append", "--explain"]] {
        let error = bench.load(&file, "nothing", more).fails(1);
        assert!(error.contains("nothing") && error.contains("does not exist"), "{error}");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", file.to_str().unwrap()]).ok();
    let file = file.to_str().unwrap();
    for (url, expected, code) in [
        ("postgres://u:secret@127.0.0.1:1/db", "127.0.0.1:1", 1),
        ("postgres://u:secret@no-such-host.invalid/db", "no-such-host.invalid", 1),
        ("mysql://u:secret@localhost/db", "postgres://", 2),
    ] {
        let error = sawmill(["load", file, "--to", url, "--table", "c"]).fails(code);
        assert!(error.contains(expected) && !error.contains("secret"), "{error}");
    }
    let bench = Bench::new();
    let wrong = bench.server.url().replacen("sawmill:", "sawmill:not", 1);
    assert_ne!(wrong, bench.server.url());
    let error = sawmill(["load", file, "--to", &wrong, "--table", "c"]).fails(1);
    assert!(error.contains("password"), "{error}");
}

#[test]
fn a_load_can_be_forgotten_and_its_ddl_looked_at() {
    let bench = Bench::new();
    let file = bench.contacts("100");
    let ddl = bench.load(&file, "sales.c", &["--ddl"]).ok().out;
    assert!(ddl.contains("CREATE TABLE") && ddl.contains("\"phones\" jsonb"), "{ddl}");
    bench.load(&file, "c", &[]).ok();
    let url = bench.server.url();
    let forgot = sawmill(["load", "forget", "--to", &url, "--table", "c"]).ok().out;
    assert!(forgot.contains("forgot 1"), "{forgot}");
    assert_eq!(bench.count("select count(*) from pg_namespace where nspname = '_sawmill'"), 0);
    assert_eq!(bench.count("select count(*) from c"), 100);
}

#[test]
fn generated_rows_arrive_without_a_file_and_are_those_of_the_files() {
    let bench = Bench::new();
    for dataset in ["contacts", "orders", "events", "devices", "deep"] {
        let file = bench.dir.path().join(format!("{dataset}.parquet"));
        sawmill(["gen", dataset, "--rows", "3000", "--seed", "7", "--out", file.to_str().unwrap()]).ok();
        let named = PathBuf::from(format!("gen:{dataset}?rows=3000&seed=7"));
        let loaded = bench.load(&named, dataset, &["--verify", "--unit-rows", "500", "--json"]).ok().json();
        assert_eq!(loaded["report"]["rows"], 3000);
        sawmill(bench.args("verify", &file, dataset, &[])).ok();
        sawmill(bench.args("verify", &named, dataset, &[])).ok();
    }
    let named = Path::new("gen:contacts?rows=2k");
    let options = ["--columns", "phones,name", "--rename", "name=who"];
    bench.load(named, "chosen", &[&options[..], &["--verify"]].concat()).ok();
    let columns = "select string_agg(column_name, ',' order by ordinal_position) \
                   from information_schema.columns where table_name = 'chosen'";
    let columns: String = bench.client().query_one(columns, &[]).unwrap().get(0);
    assert_eq!(columns, "phones,who");
    assert!(bench.load(named, "chosen", &options).ok().out.contains("nothing"), "the same load again");
    // More rows, or other ones, are another load.
    for more in ["gen:contacts?rows=1k", "gen:contacts?rows=2k&seed=8"] {
        bench.load(Path::new(more), "chosen", &[&options[..], &["--mode", "append"]].concat()).ok();
    }
    assert_eq!(bench.count("select count(*) from chosen"), 5000);
}

#[test]
fn a_killed_load_of_generated_rows_is_finished_by_the_same_command() {
    let bench = Bench::new();
    let rows = Path::new("gen:contacts?rows=400k");
    let args = bench.args("load", rows, "contacts", &["--unit-rows", "5000", "--mode", "append", "--verify"]);
    sawmill(bench.args("load", Path::new("gen:contacts?rows=0"), "contacts", &[])).ok();
    let child = start(&args);
    until("a part of the rows", || bench.count("select count(*) from contacts") > 0);
    signal(&child, "KILL");
    wait(child);
    sawmill(&args).ok();
    assert_eq!(bench.count("select count(*) from contacts"), 400_000);
}

#[test]
fn malformed_names_of_generated_rows_are_rejected() {
    let refused =
        |name: &str| sawmill(["load", name, "--to", "postgres://127.0.0.1:1/x", "--table", "t"]).fails(2);
    assert!(refused("gen:kontacts").contains("contacts"));
    assert!(refused("gen:contacts?rows=many").contains("rows=many"));
    assert!(refused("gen:contacts?row=5").contains("\"row\""));
    assert!(refused("gen:contacts?seed=-1").contains("seed=-1"));
    assert!(refused("gen:contacts?seed=1&rows=5&seed=2").contains("seed is given twice"));
    let beside = ["load", "gen:contacts", "x.parquet", "--to", "postgres://127.0.0.1:1/x", "--table", "t"];
    assert!(sawmill(beside).fails(2).contains("together with other sources"));
}

#[test]
fn the_first_rows_are_loaded_and_verified() {
    let bench = Bench::new();
    let file = bench.contacts("3000");
    let json = bench.load(&file, "few", &["--rows", "1k", "--verify", "--json"]).ok().json();
    assert_eq!(json["report"]["rows"], 1000);
    sawmill(bench.args("verify", &file, "few", &["--rows", "1000"])).ok();
    sawmill(bench.args("verify", &file, "few", &[])).fails(4);
}

#[test]
fn an_upsert_needs_its_key_and_only_an_upsert_has_one() {
    let bench = Bench::new();
    let file = bench.dir.path().join("orders.parquet");
    sawmill(["gen", "orders", "--rows", "500", "--out", file.to_str().unwrap()]).ok();
    assert!(bench.load(&file, "orders", &["--mode", "upsert"]).fails(2).contains("--key"));
    assert!(bench.load(&file, "orders", &["--key", "id"]).fails(2).contains("upsert"));
    bench.load(&file, "orders", &[]).ok();
    let upsert = ["--mode", "upsert", "--key", "id", "--verify"];
    assert!(bench.load(&file, "orders", &upsert).fails(1).contains("PRIMARY KEY (id)"));
    bench.client().batch_execute("ALTER TABLE orders ADD PRIMARY KEY (id)").unwrap();
    bench.load(&file, "orders", &upsert).ok();
    assert_eq!(bench.count("select count(*) from orders"), 500);
    let crate_db =
        ["load", file.to_str().unwrap(), "--to", "crate://127.0.0.1:1", "--table", "t", "--row-key"];
    for mode in ["truncate", "upsert", "insert", "history"] {
        let key: &[&str] = if mode == "truncate" { &[] } else { &["--key", "id"] };
        let error = sawmill([&crate_db[..], &["--mode", mode], key].concat()).fails(2);
        assert!(error.contains(&format!("mode {mode} is for PostgreSQL")), "{error}");
    }
}

#[test]
fn the_state_of_loads_is_shown() {
    let bench = Bench::new();
    let url = bench.server.url();
    let status = |more: &[&str]| sawmill(["load", "status", "--to", &url].iter().chain(more)).ok();
    assert_eq!(status(&[]).out, "no recorded loads\n");
    // Enough rows to kill the load long before its end.
    let rows = Path::new("gen:contacts?rows=20M");
    bench.load(Path::new("gen:events?rows=10"), "done", &[]).ok();
    let child = start(bench.args("load", rows, "under_way", &["--unit-rows", "5000"]));
    let of = |table: &str| status(&["--table", table, "--json"]).json();
    until("the first unit", || of("under_way")[0]["units"].as_u64().is_some_and(|units| units > 0));
    assert_eq!(of("under_way")[0]["running"], true);
    signal(&child, "KILL");
    wait(child);
    until("the server notices", || of("under_way")[0]["running"] == false);
    let text = status(&[]).out;
    assert!(text.contains("public.under_way") && text.contains("interrupted"), "{text}");
    assert!(text.contains("public.done") && text.contains("complete 20"), "{text}");
    let done = of("public.done");
    assert_eq!(
        (&done[0]["rows"], &done[0]["mode"], &done[0]["files"][0]["name"], &done[0]["files"][0]["rows"]),
        (&10.into(), &"create".into(), &"gen:events?rows=10&seed=42".into(), &10.into())
    );
    assert_eq!(of("other.done").as_array().unwrap().len(), 0);
}

#[test]
fn an_append_over_a_directory_that_grows_loads_the_new_files_and_a_truncated_table_is_not_complete() {
    let bench = Bench::new();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, seed: &str| {
        let path = directory.path().join(name);
        sawmill(["gen", "orders", "--rows", "300", "--seed", seed, "--out", path.to_str().unwrap()]).ok();
    };
    file("a.parquet", "1");
    bench.load(directory.path(), "orders", &[]).ok();
    file("b.parquet", "2");
    let append = || bench.load(directory.path(), "orders", &["--mode", "append"]);
    assert!(append().ok().out.contains("1 new file, 1 already loaded"));
    assert!(append().ok().out.contains("nothing to do"));
    assert_eq!(bench.count("select count(*) from orders"), 600);
    bench.client().batch_execute("TRUNCATE orders").unwrap();
    let error = append().fails(4);
    assert!(
        error.contains("the table has 0 rows; according to the records 600 were loaded into it")
            && error.contains("--again"),
        "{error}"
    );
}

#[test]
fn a_new_table_gets_keys_indexes_and_partitions_as_asked_for_and_a_dry_run_changes_nothing() {
    let bench = Bench::new();
    let file = bench.contacts("5000");
    let told = bench.load(&file, "t", &["--index", "name", "--dry-run"]).ok().out;
    for part in ["a new load", "5,000 rows", "COPY", "direct", "nothing was changed"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!bench.exists("t") && !bench.exists("t__sawmill_loading"));
    let ddl =
        bench.load(&file, "t", &["--unlogged", "--primary-key", "name", "--key-after", "--ddl"]).ok().out;
    assert!(ddl.contains("CREATE UNLOGGED TABLE") && ddl.ends_with("ADD PRIMARY KEY (\"name\");\n"), "{ddl}");

    let staged = ["--strategy", "staged", "--partition-by", "hash(name, 2)", "--index", "name", "--verify"];
    let told = bench.load(&file, "t", &staged).ok().out;
    assert!(told.contains("verified"), "{told}");
    assert_eq!(bench.count("select count(*) from t"), 5000);
    assert_eq!(bench.count("select count(*) from only t"), 0);
    assert!(bench.exists("t_0") && bench.exists("t_1"));
    sawmill(bench.args("verify", &file, "t", &[])).ok();

    let refused = bench.load(&file, "u", &["--strategy", "staged"]).fails(2);
    assert!(refused.contains("--partition-by") && refused.contains("one table"), "{refused}");
    let refused = bench.load(&file, "u", &["--set", "no_such_thing=1"]).fails(2);
    assert!(refused.contains("no_such_thing"), "{refused}");
}

#[test]
fn a_load_tells_its_memory_rows_and_bytes_over_time_and_their_maxima() {
    let bench = Bench::new();
    let file = bench.contacts("200k");
    let json = bench.load(&file, "c", &["--json"]).ok().json();
    let samples = json["over_time"]["samples"].as_array().unwrap();
    let last = samples.last().unwrap();
    assert_eq!(last["rows"], 200_000);
    assert!(
        last["wire_sent"].as_u64().unwrap() > 1_000_000 && last["own"]["cpu"].as_f64().unwrap() > 0.0,
        "{last}"
    );
    let most = samples.iter().filter_map(|sample| sample["own"]["resident"].as_u64()).max();
    let maxima = &json["maxima"];
    assert_eq!(maxima["memory"].as_u64(), most);
    for rate in ["processors", "rows_per_second", "sent_per_second"] {
        assert!(maxima[rate].as_f64().unwrap() > 0.0, "{rate}: {maxima}");
    }
    let nested = bench.load(&file, "n", &["--nested", "tables", "--json"]).ok().json();
    assert!(nested["maxima"]["rows_per_second"].as_f64().unwrap() > 0.0, "{}", nested["maxima"]);
}
