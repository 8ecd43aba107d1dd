//! Folders such as `year=2020`: columns of the files in them, in loads and comparisons.
//!
//! `fixtures/hive` was written by pyarrow: 60 rows, `id` in the files, `year`, `month`, `region` and `day` in
//! folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use sawmill_cratedb_standin::StandIn;

use crate::harness::{sawmill, signal, start, until, wait};
use crate::load::Bench;

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hive")
}

/// The rows of `fixtures/hive`, as its writer had them.
const ROWS: &str = "select i as id, (2019 + i % 2)::bigint as year, (array['01', '12'])[i / 2 % 2 + 1] as month, \
    (array['Île/de France=1 %', 'north', null])[i % 3 + 1] as region, date '2024-02-28' + (i % 2)::int as day \
    from generate_series(0::bigint, 59) as i";

/// How many rows two queries do not share.
fn differing(bench: &Bench, one: &str, other: &str) -> i64 {
    let without = |one: &str, other: &str| format!("(({one}) except all ({other}))");
    bench.count(&format!(
        "select count(*) from ({} union all {}) as d",
        without(one, other),
        without(other, one)
    ))
}

/// A file of orders in a folder below the bench's directory.
fn orders(bench: &Bench, place: &str, rows: &str) -> PathBuf {
    let path = bench.dir.path().join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let args = ["gen", "orders", "--rows", rows, "--row-group-rows", "50k", "--out", path.to_str().unwrap()];
    sawmill(args).ok();
    path
}

#[test]
fn folders_that_pyarrow_wrote_are_columns_of_the_rows() {
    let bench = Bench::new();
    let ran = bench.load(&tree(), "t", &["--verify"]).ok();
    let named = "columns from folders: year (bigint), month (text), region (text), day (date)";
    assert!(ran.err.contains(named), "{}", ran.err);
    assert_eq!(differing(&bench, "select id, year, month, region, day from t", ROWS), 0);
    let types = "select string_agg(column_name || ' ' || data_type, ', ' order by ordinal_position) \
        from information_schema.columns where table_name = 't'";
    let types: String = bench.client().query_one(types, &[]).unwrap().get(0);
    assert_eq!(types, "id bigint, year bigint, month text, region text, day date");
    let ran = sawmill(bench.args("verify", &tree(), "t", &["--json"])).ok();
    assert!(ran.err.contains(named), "{}", ran.err);
    assert_eq!(ran.json()["target"]["rows"], 60);
    assert_eq!(ran.json()["folders"][0]["name"], "year");
    assert!(bench.load(&tree(), "t", &[]).ok().out.contains("nothing to do"));
    let json = bench.load(&tree(), "other", &["--explain", "--json"]).ok().json();
    assert_eq!(json["folders"][3]["name"], "day");
    assert_eq!(json["folders"][3]["kind"], "date");
    assert!(bench.load(&tree(), "other", &["--explain"]).ok().out.contains(named));
    assert!(bench.load(&tree(), "other", &["--dry-run"]).ok().out.contains("\"month\", \"region\", \"day\""));
    let footers = sawmill(["footer", tree().to_str().unwrap(), "--json"]).ok().out;
    assert!(!footers.contains("\"region\""), "footers are what the files hold: {footers}");
}

#[test]
fn folders_are_not_columns_if_not_wanted() {
    let bench = Bench::new();
    let ran = bench.load(&tree(), "t", &["--hive", "no", "--verify"]).ok();
    assert!(!ran.err.contains("folders"), "{}", ran.err);
    let columns = "select count(*) from information_schema.columns where table_name = 't'";
    assert_eq!((bench.count(columns), bench.count("select count(*) from t")), (1, 60));
    let error = bench.load(&tree(), "t", &[]).fails(1);
    assert!(error.contains("exists"), "with other columns it is another load: {error}");
    sawmill(bench.args("verify", &tree(), "t", &["--hive", "no"])).ok();
}

#[test]
fn columns_of_folders_are_chosen_renamed_and_limited_like_others() {
    let bench = Bench::new();
    let chosen = ["--columns", "day,id,year", "--rename", "year=y", "--verify"];
    bench.load(&tree(), "chosen", &chosen).ok();
    let expected = format!("select day, id, year as y from ({ROWS}) as r");
    assert_eq!(differing(&bench, "table chosen", &expected), 0);
    // Nothing is read of the files then.
    bench.load(&tree(), "folders", &["--columns", "region,year", "--verify"]).ok();
    assert_eq!(differing(&bench, "table folders", &format!("select region, year from ({ROWS}) as r")), 0);
    bench.load(&tree(), "few", &["--rows", "7", "--verify"]).ok();
    assert_eq!(bench.count("select count(*) from few where year = 2019 and month = '01'"), 7);
    bench.load(&tree(), "parts", &["--partition-by", "list(year)", "--verify"]).ok();
    assert_eq!(differing(&bench, "select id, year, month, region, day from parts", ROWS), 0);
    assert_eq!(bench.count("select count(distinct tableoid) from parts"), 2);
}

#[test]
fn conditions_on_folders_leave_whole_files_unread() {
    let bench = Bench::new();
    let explained = ["--where", "year = 2020 and region is null", "--explain"];
    let text = bench.load(&tree(), "t", &explained).ok().out;
    assert!(
        text.contains("folders: of 12 files, 10 without matching rows and 2 with matching rows only"),
        "{text}"
    );
    for (at, condition) in [
        "year = 2020 and region = 'north'",
        "day < 2024-02-29 or id > 40",
        "region is null and id between 10 and 50",
        "not (region like 'Î%') and month in ('12', '13')",
        "not (year > 2019 or region is not null)",
        "year > 2020",
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("t{at}");
        bench.load(&tree(), &table, &["--where", condition, "--verify"]).ok();
        let condition = condition.replace("2024-02-29", "'2024-02-29'");
        let expected = format!("select * from ({ROWS}) as r where {condition}");
        let loaded = format!("select id, year, month, region, day from {table}");
        assert_eq!(differing(&bench, &loaded, &expected), 0, "{condition}");
    }
    let error = bench.load(&tree(), "t", &["--where", "year = 'x'"]).fails(2);
    assert!(error.contains("column \"year\" is Int64: expected a number"), "{error}");
    let error = bench.load(&tree(), "t", &["--where", "yaer = 1"]).fails(2);
    assert!(error.contains("the columns are id, year, month, region, day"), "{error}");
}

#[test]
fn files_whose_folders_name_other_columns_are_rejected_by_name() {
    let bench = Bench::new();
    orders(&bench, "all/year=2019/a.parquet", "10");
    orders(&bench, "all/years=2020/b.parquet", "10");
    let error = bench.load(&bench.dir.path().join("all"), "t", &[]).fails(1);
    for part in ["b.parquet", "its folders name years", "a.parquet year", "--hive no"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    orders(&bench, "part/c.parquet", "10");
    orders(&bench, "part/year=2019/d.parquet", "10");
    let error = bench.load(&bench.dir.path().join("part"), "t", &[]).fails(1);
    assert!(error.contains("no column") && error.contains("d.parquet"), "{error}");
    bench.load(&bench.dir.path().join("part"), "t", &["--hive", "no", "--verify"]).ok();
    let twice = orders(&bench, "k=1/k=2/e.parquet", "10");
    let error = bench.load(&twice, "u", &[]).fails(1);
    assert!(error.contains("two folders name column \"k\"") && error.contains("e.parquet"), "{error}");
}

/// A file of twenty rows whose `id` is the same in all of them.
fn constant(path: &Path, id: i64, statistics: bool) {
    let enabled = if statistics { EnabledStatistics::Chunk } else { EnabledStatistics::None };
    let properties = WriterProperties::builder().set_statistics_enabled(enabled).build();
    let column: ArrayRef = Arc::new(Int64Array::from_value(id, 20));
    let batch = RecordBatch::try_from_iter([("id", column)]).unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_column_that_files_have_themselves_is_taken_from_them_unless_the_folder_contradicts() {
    let bench = Bench::new();
    for (place, statistics) in [("plain/id=7/a.parquet", false), ("told/id=7/a.parquet", true)] {
        let agrees = bench.dir.path().join(place);
        constant(&agrees, 7, statistics);
        let name = place.split('/').next().unwrap();
        let ran = bench.load(&agrees, name, &["--verify"]).ok();
        assert!(ran.err.contains("id (taken from the files, which have it too)"), "{}", ran.err);
        assert_eq!(bench.count(&format!("select count(*) from {name} where id = 7")), 20);
        let json = sawmill(bench.args("verify", &agrees, name, &["--json"])).ok().json();
        assert_eq!(
            (&json["folders"][0]["name"], &json["folders"][0]["in_files"]),
            (&"id".into(), &true.into())
        );
    }
    for (folder, what) in [
        (
            "id=7",
            "column \"id\" is \"7\", but the file has the column, too: row 0 of row group 0 has another",
        ),
        ("id=5000", "column \"id\" is \"5000\", but the file has the column, too: no row of row group 0"),
        ("id=x", "expected a number"),
        ("id=__HIVE_DEFAULT_PARTITION__", "column \"id\" is null"),
    ] {
        let file = orders(&bench, &format!("{folder}/b.parquet"), "20");
        let error = bench.load(&file, "u", &["--columns", "id,status"]).fails(1);
        assert!(error.contains(what) && error.contains(file.to_str().unwrap()), "{folder}: {error}");
        bench.load(&file, "u", &["--columns", "id,status", "--hive", "no", "--mode", "replace"]).ok();
    }
}

#[test]
fn a_killed_load_goes_on_with_the_same_folders_alone() {
    let bench = Bench::new();
    let stored = orders(&bench, "store/a.parquet", "300k");
    let second = orders(&bench, "store/b.parquet", "10");
    let root = bench.dir.path().join("linked");
    fs::create_dir(&root).unwrap();
    for (year, file) in [("2019", &stored), ("2020", &second)] {
        fs::create_dir(root.join(format!("year={year}"))).unwrap();
        symlink(file, root.join(format!("year={year}/part.parquet"))).unwrap();
    }
    let more = ["--columns", "id,year", "--unit-rows", "2000", "--verify"];
    let args = bench.args("load", &root, "t", &more);
    let child = start(&args);
    let mut client = bench.client();
    until("the first units", || {
        let units = client.query_one("select count(*) from _sawmill.units", &[]);
        units.is_ok_and(|row| row.get::<_, i64>(0) > 3)
    });
    signal(&child, "KILL");
    wait(child);
    // The same files in another folder hold other rows.
    fs::rename(root.join("year=2019"), root.join("year=2018")).unwrap();
    let error = sawmill(&args).fails(1);
    assert!(error.contains("forget"), "{error}");
    fs::rename(root.join("year=2018"), root.join("year=2019")).unwrap();
    let json = sawmill(args.iter().map(String::as_str).chain(["--json"])).ok().json();
    assert!(json["report"]["units_resumed"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(bench.count("select count(*) from t where year = 2019"), 300_000);
    assert_eq!(bench.count("select count(*) from t where year = 2020"), 10);
    assert_eq!(bench.count("select count(distinct id) from t where year = 2019"), 300_000);
}

#[test]
fn values_are_appended_to_columns_that_are_there() {
    let bench = Bench::new();
    bench
        .client()
        .batch_execute("create table t (year integer, month text, region text, day date, id bigint)")
        .unwrap();
    bench.load(&tree(), "t", &["--mode", "append", "--verify"]).ok();
    assert_eq!(differing(&bench, "select id, year::bigint, month, region, day from t", ROWS), 0);
    bench.client().batch_execute("create table u (id bigint, year date)").unwrap();
    let error = bench.load(&tree(), "u", &["--mode", "append", "--columns", "id,year"]).fails(1);
    assert!(error.contains("year"), "{error}");
}

#[test]
fn nested_tables_and_rejected_rows_have_the_columns_of_folders() {
    let bench = Bench::new();
    let place = bench.dir.path().join("contacts/source=web");
    fs::create_dir_all(&place).unwrap();
    fs::copy(bench.contacts("100"), place.join("c.parquet")).unwrap();
    let files = bench.dir.path().join("contacts");
    bench.load(&files, "contacts", &["--nested", "tables", "--verify"]).ok();
    assert_eq!(bench.count("select count(*) from contacts where source = 'web'"), 100);
    bench.client().batch_execute("create table taken (id bigint unique, year bigint)").unwrap();
    bench.client().batch_execute("insert into taken values (7, 1900), (8, 1900)").unwrap();
    let rejects = bench.dir.path().join("rejects.parquet");
    let more = ["--mode", "append", "--columns", "id,year", "--rejects", rejects.to_str().unwrap()];
    bench.load(&tree(), "taken", &more).ok();
    assert_eq!(bench.count("select count(*) from taken where year = 2019 + id % 2"), 58);
    bench.load(&rejects, "refused", &["--columns", "id,year"]).ok();
    assert_eq!(bench.count("select count(*) from refused where year = 2019 + id % 2"), 2);
}

#[test]
fn cratedb_gets_the_columns_of_folders() {
    let standin = StandIn::start(1);
    for transport in ["http", "pg"] {
        let args = ["--to", &standin.url(), "--table", transport, "--row-key", "--transport", transport];
        let load = |more: &[&str]| {
            sawmill(["load", tree().to_str().unwrap()].iter().chain(&args).chain(more).copied())
        };
        let json = load(&["--verify", "--json"]).ok().json();
        assert_eq!(json["report"]["rows"], 60);
        assert_eq!(json["report"]["verified"]["target"], json["report"]["content"]);
        assert_eq!(json["folders"][0]["kind"], "integer");
        assert!(load(&[]).ok().out.contains("nothing to do"));
        sawmill(["verify", tree().to_str().unwrap()].iter().chain(&args[..4]).copied()).ok();
    }
}
