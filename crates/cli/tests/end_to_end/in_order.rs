//! `--sort-by` and `--partition-by` for text and Parquet that are out of order: into folders of Parquet,
//! partitions of PostgreSQL, and CrateDB.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sawmill_cratedb_standin::StandIn;

use crate::harness::{Ran, names, sawmill, signal, start, until, wait};
use crate::load::Bench;

/// A row of text: its time, and the whole line.
type Line = (String, String);

/// Trips over five days in a mixed order; some without a time, some with the same, some with newlines.
fn trips(rows: u64) -> Vec<Line> {
    let row = |id: u64| {
        let second = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (5 * 86_400);
        let (day, second) = (second / 86_400, second % 86_400 / 7 * 7);
        let at = match id % 97 {
            0 => String::new(),
            _ => format!(
                "2024-02-{:02}T{:02}:{:02}:{:02}",
                27 + day,
                second / 3600,
                second / 60 % 60,
                second % 60
            )
            .replace("02-30", "03-01")
            .replace("02-31", "03-02"),
        };
        let note = match id % 5 {
            0 => "\"two\nlines, \"\"quoted\"\"\"".to_owned(),
            1 => String::new(),
            _ => format!("note {id}"),
        };
        (at.clone(), format!("{id},{at},{note}\n"))
    };
    (0..rows).map(row).collect()
}

const HEADER: &str = "id,at,note\n";

fn text(lines: &[Line]) -> String {
    lines.iter().fold(HEADER.to_owned(), |mut text, (_, line)| {
        text += line;
        text
    })
}

/// The text of each day, in the order of time; rows without a time under the empty name.
fn by_day(lines: &[Line]) -> BTreeMap<String, String> {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut days = BTreeMap::new();
    for (at, line) in sorted {
        let day = at.get(..10).unwrap_or_default().to_owned();
        days.entry(day).or_insert_with(|| HEADER.to_owned()).push_str(line);
    }
    days
}

fn convert(from: &Path, to: &Path, more: &[&str]) -> Ran {
    sawmill([&["convert", from.to_str().unwrap(), "--out", to.to_str().unwrap()], more].concat())
}

/// The rows in each folder `day=...` of a directory, as CSV.
fn folders(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for folder in names(directory) {
        let file = directory.join(&folder).join("part-0.parquet");
        assert_eq!(names(&directory.join(&folder)), ["part-0.parquet"]);
        let read = ["convert", file.to_str().unwrap(), "--as", "csv", "--hive", "no", "--out", "-"];
        let day = folder.strip_prefix("day=").unwrap();
        let day = if day == "__HIVE_DEFAULT_PARTITION__" { "" } else { day };
        found.insert(day.to_owned(), sawmill(read).ok().out);
    }
    found
}

const SORTED: [&str; 4] = ["--sort-by", "at", "--partition-by", "day(at)"];

#[test]
fn text_out_of_order_becomes_a_folder_for_each_day_with_its_rows_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let lines = trips(20_000);
    fs::write(at("a.csv"), text(&lines)).unwrap();
    let json = convert(&at("a.csv"), &at("out"), &[&SORTED[..], &["--json"]].concat()).ok().json();
    assert_eq!(json["rows"], 20_000);
    assert_eq!(json["partitions"], 6);
    let phases: Vec<&str> =
        json["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(phases, ["boundaries", "index", "write"]);
    assert!(folders(&at("out")) == by_day(&lines));
    assert_eq!(names(dir.path()), ["a.csv", "out"], "the index is removed");
    // On one thread and with little memory it is the same, to the last byte; several files are one input.
    let (first, second) = lines.split_at(7_000);
    fs::write(at("b1.csv"), text(first)).unwrap();
    fs::write(at("b2.csv"), text(second)).unwrap();
    let files = dir.path().join("b?.csv");
    let little = ["--threads", "1", "--index-memory", "1", "--index-dir", at("tmp").to_str().unwrap()]
        .map(str::to_owned);
    let little: Vec<&str> = little.iter().map(String::as_str).collect();
    convert(&files, &at("again"), &[&SORTED[..], &little].concat()).ok();
    for folder in names(&at("out")) {
        let read = |out: &str| fs::read(at(out).join(&folder).join("part-0.parquet")).unwrap();
        assert!(read("out") == read("again"), "{folder}");
    }
    assert!(names(&at("tmp")).is_empty());
}

#[test]
fn rows_are_sorted_into_one_file_and_parquet_is_sorted_like_text() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let lines = trips(30_000);
    fs::write(at("a.csv"), text(&lines)).unwrap();
    convert(&at("a.csv"), &at("sorted.csv"), &["--sort-by", "at"]).ok();
    let mut sorted: Vec<Line> = lines.clone();
    // A stable sort, with rows without a time at the end.
    sorted.sort_by(|a, b| (a.0.is_empty(), &a.0).cmp(&(b.0.is_empty(), &b.0)));
    assert!(fs::read_to_string(at("sorted.csv")).unwrap() == text(&sorted));
    convert(&at("a.csv"), &at("a.parquet"), &["--row-group-rows", "7000"]).ok();
    convert(&at("a.parquet"), &at("out"), &SORTED).ok();
    assert!(folders(&at("out")) == by_day(&lines));
    convert(&at("a.parquet"), &at("limited"), &[&SORTED[..], &["--rows", "5000"]].concat()).ok();
    assert!(folders(&at("limited")) == by_day(&lines[..5000]));
}

#[test]
fn a_list_has_a_folder_for_each_value_and_other_folders_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), "k,v\nb/c,1\n,2\na,3\nb/c,4\n\"\",5\n").unwrap();
    convert(&at("a.csv"), &at("out"), &["--partition-by", "list(k)"]).ok();
    assert_eq!(names(&at("out")), ["k=__HIVE_DEFAULT_PARTITION__", "k=a", "k=b%2Fc"]);
    let read = sawmill(["convert", at("out").to_str().unwrap(), "--as", "csv", "--out", "-"]).ok().out;
    for line in ["3,a\n", "1,b/c\n4,b/c\n", "2,\n", "5,\n"] {
        assert!(read.contains(line), "{read}");
    }
    assert!(
        convert(&at("a.csv"), &at("out"), &["--partition-by", "list(k)"]).fails(2).contains("--overwrite")
    );
    fs::write(at("out/notes.txt"), "mine").unwrap();
    let overwrite = ["--partition-by", "list(k)", "--overwrite"];
    assert!(convert(&at("a.csv"), &at("out"), &overwrite).fails(2).contains("other files"));
    fs::remove_file(at("out/notes.txt")).unwrap();
    convert(&at("a.csv"), &at("out"), &overwrite).ok();
    for (options, part) in [
        (&["--sort-by", "v"][..], "neither a date nor a timestamp"),
        (&["--partition-by", "day(v)"], "neither a date nor a timestamp"),
        (&["--sort-by", "w"], "\"w\" is not among those"),
        (&["--index-dir", "x"], "without an index"),
    ] {
        let error = convert(&at("a.csv"), &at("b.parquet"), options).fails(2);
        assert!(error.contains(part), "{error}");
    }
    assert!(
        convert(&at("a.csv"), &at("c"), &["--partition-by", "week(v)"]).fails(2).contains("hour(COLUMN)")
    );
    fs::write(at("day.csv"), "day,v\n2024-01-01,1\n").unwrap();
    let error = convert(&at("day.csv"), &at("c"), &["--partition-by", "day(day)"]).fails(2);
    assert!(error.contains("--rename day=NAME"), "{error}");
    assert_eq!(names(dir.path()), ["a.csv", "day.csv", "out"]);
}

#[test]
fn explain_shows_the_phases_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), text(&trips(1000))).unwrap();
    let plan = convert(&at("a.csv"), &at("out"), &[&SORTED[..], &["--explain"]].concat()).ok().out;
    // 60 bytes a row, and the rows.
    for part in
        ["boundaries, index, write", "by day(at), sorted by at", "67.1 MB of memory", "94.0 kB", "note"]
    {
        assert!(plan.contains(part), "{plan}");
    }
    assert_eq!(names(dir.path()), ["a.csv"]);
}

#[test]
fn a_conversion_that_is_killed_leaves_neither_output_nor_index() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let lines = trips(400_000);
    fs::write(at("a.csv"), text(&lines)).unwrap();
    let paths = [at("a.csv"), at("out")].map(|path| path.to_str().unwrap().to_owned());
    let args = [&["convert", &paths[0], "--out", &paths[1], "--threads", "1"], &SORTED[..]].concat();
    let child = start(args.clone());
    let staging = || names(dir.path()).into_iter().find(|name| name.ends_with(".partial"));
    until("the first folder", || {
        staging().is_some_and(|staging| names(&at(&staging)).iter().any(|name| name.starts_with("day=")))
    });
    signal(&child, "KILL");
    wait(child);
    assert!(!at("out").exists());
    assert!(names(dir.path()).iter().all(|name| name == "a.csv" || name.starts_with(".out.")));
    sawmill(args).ok();
    assert!(folders(&at("out")) == by_day(&lines));
    assert_eq!(names(dir.path()), ["a.csv", "out"]);
}

impl Bench {
    fn trips(&self, rows: u64) -> (PathBuf, Vec<Line>) {
        let path = self.dir.path().join(format!("trips-{rows}.csv"));
        let lines = trips(rows);
        fs::write(&path, text(&lines)).unwrap();
        (path, lines)
    }

    /// How many rows of a table are before an earlier one.
    fn disorder(&self, table: &str) -> i64 {
        let before = format!("select at, lag(at) over (order by ctid) as before from {table}");
        self.count(&format!("select count(*) from ({before}) x where at < before"))
    }
}

#[test]
fn text_out_of_order_becomes_partitions_whose_rows_are_in_order() {
    let bench = Bench::new();
    let (file, lines) = bench.trips(50_000);
    let more = ["--verify", "--unit-rows", "3k", "--json", "--index", "at", "--index", "id,at"];
    let json = bench.load(&file, "t", &[&SORTED[..], &more].concat()).ok().json();
    assert_eq!(json["report"]["rows"], 50_000);
    assert_eq!(json["report"]["verified"]["target"], json["report"]["content"]);
    let phases: Vec<&str> =
        json["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    for phase in ["boundaries", "index", "load", "copy", "attach"] {
        assert!(phases.contains(&phase), "{phases:?}");
    }
    for (day, of_day) in by_day(&lines) {
        let table =
            if day.is_empty() { "t_default".to_owned() } else { format!("t_{}", day.replace('-', "_")) };
        let rows = bench.count(&format!("select count(*) from {table}"));
        assert_eq!(
            rows as usize,
            of_day.matches(",2024-").count() + of_day.matches(",,").count() * usize::from(day.is_empty()),
            "{table}"
        );
        assert_eq!(bench.disorder(&table), 0, "{table}");
        let indexes = format!(
            "select count(*) from pg_indexes where tablename = '{table}' and indexname in ('{table}_at_idx', '{table}_id_at_idx')"
        );
        assert_eq!(bench.count(&indexes), 2);
    }
    let valid = "select count(*) from pg_index where indrelid = 't'::regclass and indisvalid";
    assert_eq!(bench.count(valid), 2);
    sawmill(bench.args("verify", &file, "t", &[])).ok();
    assert!(bench.load(&file, "t", &[&SORTED[..], &more[3..]].concat()).ok().out.contains("complete"));
}

#[test]
fn hours_are_partitions_and_keys_are_made_partition_by_partition() {
    let bench = Bench::new();
    let path = bench.dir.path().join("h.csv");
    let mut text = "id,at\n".to_owned();
    for id in 0..5_000 {
        writeln!(text, "{id},2024-02-29T{:02}:{:02}:00Z", id * 7 % 24, id % 60).unwrap();
    }
    fs::write(&path, text).unwrap();
    let more = ["--partition-by", "hour(at)", "--sort-by", "at", "--primary-key", "id,at", "--verify"];
    bench.load(&path, "h", &more).ok();
    assert_eq!(bench.count("select count(*) from pg_inherits where inhparent = 'h'::regclass"), 24);
    assert_eq!(bench.count("select count(*) from h_2024_02_29_13 where at >= '2024-02-29 13:00+00' and at < '2024-02-29 14:00+00'"), bench.count("select count(*) from h_2024_02_29_13"));
    assert_eq!(bench.count("select count(*) from pg_constraint where contype = 'p' and conrelid = 'h_2024_02_29_13'::regclass and conname = 'h_2024_02_29_13_pkey'"), 1);
    assert_eq!(bench.disorder("h_2024_02_29_13"), 0);
}

#[test]
fn a_killed_load_in_order_is_finished_by_the_same_command_with_exactly_its_rows() {
    let bench = Bench::new();
    let (file, lines) = bench.trips(300_000);
    let index = bench.dir.path().join("index");
    let more = ["--unit-rows", "5k", "--index-dir", index.to_str().unwrap()];
    let args = bench.args("load", &file, "c", &[&SORTED[..], &more].concat());
    for phase in 0..2 {
        let child = start(&args);
        let mut client = bench.client();
        match phase {
            0 => until("the index", || index.exists()),
            _ => until("the first units", || {
                let units = client.query_one("select count(*) from _sawmill.units", &[]);
                units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
            }),
        }
        signal(&child, "KILL");
        wait(child);
        assert!(!bench.exists("c"));
    }
    let json = sawmill(args.iter().map(String::as_str).chain(["--json", "--verify"])).ok().json();
    assert_eq!(json["report"]["rows"], 300_000);
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0);
    assert_eq!(bench.count("select count(*) from c"), 300_000);
    assert_eq!(bench.count("select count(distinct id) from c"), 300_000);
    for day in by_day(&lines).keys().filter(|day| !day.is_empty()) {
        assert_eq!(bench.disorder(&format!("c_{}", day.replace('-', "_"))), 0, "{day}");
    }
    assert!(names(&index).is_empty());
}

#[test]
fn text_out_of_order_is_loaded_into_partitions_of_cratedb_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trips.csv");
    fs::write(&file, text(&trips(3_000).into_iter().filter(|line| !line.0.is_empty()).collect::<Vec<_>>()))
        .unwrap();
    let standin = StandIn::start(1);
    let url = standin.url();
    let run = |verb: &str, more: &[&str]| {
        sawmill([&[verb, file.to_str().unwrap(), "--to", &url, "--table", "trips", "--json"], more].concat())
    };
    let more = ["--primary-key", "id", "--verify", "--unit-rows", "200"];
    let json = run("load", &[&SORTED[..], &more].concat()).ok().json();
    assert_eq!(json["report"]["rows"], json["report"]["verified"]["target"]["rows"]);
    assert_eq!(json["ordered"]["partitions"], 5);
    run("verify", &[]).ok();
    assert_eq!(run("load", &[&SORTED[..], &more].concat()).ok().json()["report"]["rows_loaded"], 0);
}
