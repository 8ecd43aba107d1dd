//! Files of a folder that get other columns from night to night: the table follows them as far as the options allow.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use parquet::arrow::ArrowWriter;
use postgres::Client;

use crate::harness::{Ran, sawmill, signal, start, until, wait};
use crate::load::Bench;

/// A folder of Parquet files and the table that follows it.
struct Nights {
    bench: Bench,
    folder: PathBuf,
}

impl Nights {
    fn new() -> Self {
        let bench = Bench::new();
        let folder = bench.dir.path().join("days");
        std::fs::create_dir(&folder).unwrap();
        Self { bench, folder }
    }

    /// Writes the file of a night.
    fn file(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let path = self.folder.join(name);
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        );
        let batch = batch.unwrap();
        let mut writer =
            ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    /// The words of a load of a path.
    fn words(&self, path: &Path, more: &[&str]) -> Vec<String> {
        let url = self.bench.server.url();
        let (server, query) = url.split_once('?').unwrap_or((&url, ""));
        let address = format!("{server}/days?{query}");
        [&["load", path.to_str().unwrap(), &address][..], more]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// Loads the folder.
    fn night(&self, more: &[&str]) -> Ran {
        sawmill(self.words(&self.folder, more))
    }

    fn verified(&self, more: &[&str]) -> Ran {
        let ran = self.night(&[more, &["--verify"]].concat()).ok();
        let is_verified = ["verified: the table holds", "verified what this run loaded"]
            .iter()
            .any(|line| ran.out.contains(line));
        assert!(is_verified, "{}", ran.out);
        ran
    }

    fn verify(&self) -> Ran {
        sawmill(self.bench.args("verify", &self.folder, "days", &[]))
    }

    fn text(&self, query: &str) -> String {
        let query = format!("select coalesce(({query})::text, 'null')");
        self.bench.client().query_one(&query, &[]).unwrap().get(0)
    }

    /// `name type` of the table's columns.
    fn columns(&self) -> String {
        self.text(
            "select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum) \
             from pg_attribute where attrelid = 'days'::regclass and attnum > 0 and not attisdropped",
        )
    }

    /// Makes each insertion into a table of records wait until the returned session ends, if `when` holds.
    fn hold(&self, records: &str, when: &str) -> Client {
        let mut holder = self.bench.client();
        holder
            .batch_execute(&format!(
                "create function hold() returns trigger language plpgsql as $$ begin \
                   if {when} then perform pg_advisory_lock_shared(42); perform pg_advisory_unlock_shared(42); end if; \
                   return new; end $$; \
                 create trigger hold before insert on _sawmill.{records} for each row execute function hold(); \
                 select pg_advisory_lock(42)"
            ))
            .unwrap();
        holder
    }

    /// Lets go what [`hold`](Self::hold) has kept.
    fn release(&self, mut holder: Client, records: &str) {
        holder.batch_execute("select pg_advisory_unlock(42)").unwrap();
        // The sessions that waited end before the trigger can be dropped.
        holder
            .batch_execute(&format!("drop trigger hold on _sawmill.{records}; drop function hold()"))
            .unwrap();
    }

    fn is_held(&self) -> bool {
        self.bench.count(
            "select count(*) from pg_stat_activity where wait_event = 'advisory' and datname = current_database()",
        ) > 0
    }
}

fn ints(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts(values: impl IntoIterator<Item = &'static str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Night 1: `id` and `v`; night 2: another column.
fn two_nights() -> Nights {
    let nights = Nights::new();
    nights.file("1.parquet", vec![("id", ints(0..100)), ("v", ints(0..100))]);
    nights.night(&[]).ok();
    // The new column is not the last one of its file.
    nights.file("2.parquet", vec![("id", ints(100..200)), ("x", longs(0..100)), ("v", ints(0..100))]);
    nights
}

#[test]
fn a_table_follows_its_files_from_night_to_night() {
    let nights = two_nights();
    let second = nights.verified(&["--evolve"]);
    assert!(second.out.contains("adds column \"x\" bigint"), "{}", second.out);
    assert_eq!(nights.columns(), "id integer, v integer, x bigint");
    assert_eq!(nights.text("select count(*) || ' ' || count(x) || ' ' || sum(x) from days"), "200 100 4950");

    nights.file("3.parquet", vec![("id", longs([1 << 40])), ("v", longs([1 << 41])), ("x", longs([7]))]);
    let error = nights.night(&["--evolve"]).fails(1);
    assert!(error.contains("rewrite") && error.contains("3.parquet") && error.contains("bigint"), "{error}");
    assert_eq!(nights.columns(), "id integer, v integer, x bigint");
    let third = nights.night(&["--evolve", "--rewrite", "--verify", "--json"]).ok().json();
    assert!(
        third["report"]["verified"].is_object()
            || third.to_string().contains("verified what this run loaded"),
        "{third}"
    );
    let widened = &third["report"]["columns"]["widened"];
    assert_eq!(
        (&widened[0]["name"], &widened[0]["from"], &widened[0]["to"]),
        (&"id".into(), &"integer".into(), &"bigint".into())
    );
    assert_eq!(widened[0]["rewritten"], true);
    assert_eq!(nights.columns(), "id bigint, v bigint, x bigint");

    nights.file("4.parquet", vec![("id", ints(300..400)), ("x", longs(0..100))]);
    let fourth = nights.verified(&["--evolve", "--rewrite"]);
    assert!(fourth.out.contains("NULL in rows of files that lack it: column \"v\""), "{}", fourth.out);
    assert_eq!(nights.text("select count(*) || ' ' || count(v) from days"), "301 201");

    let again = nights.night(&["--evolve"]).ok();
    assert!(again.out.contains("nothing to do"), "{}", again.out);
    let compared = nights.night(&["--evolve", "--verify"]).ok();
    assert!(compared.out.contains("whose columns have changed since"), "{}", compared.out);
    nights.verify().ok();
    // A value that is not what the files have, in an added column and in one that a file lacks.
    for (change, back) in [
        ("set x = 1 where id = 0", "set x = null where id = 0"),
        ("set v = 1 where id = 300", "set v = null where id = 300"),
    ] {
        nights.bench.client().batch_execute(&format!("update days {change}")).unwrap();
        assert!(nights.verify().fails(4).contains("does not hold what the files hold"));
        nights.bench.client().batch_execute(&format!("update days {back}")).unwrap();
    }
    nights.verify().ok();
}

#[test]
fn by_default_a_difference_is_an_error_that_names_the_way_out() {
    let nights = two_nights();
    let error = nights.night(&[]).fails(1);
    for part in ["\"x\" (Int64)", "2.parquet", "1.parquet", "--evolve", "--schema-change ignore"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A file alone, which the table does not fit.
    let alone = sawmill(nights.words(&nights.folder.join("2.parquet"), &["--mode", "append"])).fails(1);
    for part in ["\"x\"", "Int64", "2.parquet", "--schema-change add", "bigint"] {
        assert!(alone.contains(part), "{part}: {alone}");
    }
    let refused = nights.night(&["--schema-change", "widen"]).fails(1);
    assert!(refused.contains("--schema-change add adds it as bigint"), "{refused}");
    assert_eq!(nights.columns(), "id integer, v integer");
    std::fs::remove_file(nights.folder.join("2.parquet")).unwrap();
    nights.file("3.parquet", vec![("id", ints([1])), ("v", longs([1]))]);
    let wider = nights.night(&[]).fails(1);
    for part in ["column \"v\" is Int64 and not Int32", "3.parquet", "--evolve"] {
        assert!(wider.contains(part), "{part}: {wider}");
    }
    nights.file("3.parquet", vec![("id", ints([1])), ("v", texts(["one"]))]);
    let neither = nights.night(&["--evolve"]).fails(1);
    assert!(neither.contains("such types are not united"), "{neither}");
}

#[test]
fn files_whose_types_are_not_united_are_loaded_one_after_the_other_into_text() {
    let nights = Nights::new();
    nights.bench.client().batch_execute("create table days (id integer, v text)").unwrap();
    let first = nights.file("1.parquet", vec![("id", ints([1])), ("v", ints([5]))]);
    let second = nights.file("2.parquet", vec![("id", ints([2])), ("v", texts(["six"]))]);
    let append = ["--mode", "append", "--evolve"];
    for error in [sawmill(nights.words(&nights.folder, &append)), nights.verify()].map(|ran| ran.fails(1)) {
        assert!(error.contains("column \"v\" is Utf8View and not Int32"), "{error}");
        assert!(error.contains("one after the other into a column that takes the values of both"), "{error}");
    }
    assert_eq!(nights.bench.count("select count(*) from days"), 0);
    for file in [first, second] {
        sawmill(nights.words(&file, &append)).ok();
    }
    assert_eq!(nights.text("select string_agg(v, ' ' order by id) from days"), "5 six");
}

#[test]
fn files_on_record_do_not_block_others_whose_types_are_not_united_with_theirs() {
    let nights = Nights::new();
    nights.bench.client().batch_execute("create table days (id integer, v text)").unwrap();
    let append = ["--mode", "append", "--evolve"];
    let night = |more: &[&str]| sawmill(nights.words(&nights.folder, &[&append[..], more].concat()));
    let files = [
        nights.file("0.parquet", vec![("id", ints([0]))]),
        nights.file("1.parquet", vec![("id", ints([1])), ("v", ints([5]))]),
        nights.file("2.parquet", vec![("id", ints([2])), ("v", texts(["six"]))]),
    ];
    // The error names the file that has the column.
    let error = night(&[]).fails(1);
    assert!(error.contains("differ from those of") && error.contains("1.parquet: column"), "{error}");
    files.iter().for_each(|file| drop(sawmill(nights.words(file, &append)).ok()));
    // With or without the option, a file on record is not compared again.
    for options in [&append[..], &append[..2]] {
        let known = sawmill(nights.words(&nights.folder, options)).ok();
        assert!(known.out.contains("nothing to do"), "{}", known.out);
        assert!(known.err.contains("loaded already"), "{}", known.err);
    }
    nights.file("3.parquet", vec![("id", ints([3])), ("v", texts(["seven"]))]);
    let third = night(&["--verify"]).ok();
    assert!(third.out.contains("1 new file"), "{}", third.out);
    assert!(third.err.contains("1.parquet: loaded already"), "{}", third.err);
    // Other options may take other rows of it.
    let error = night(&["--where", "id < 2"]).fails(1);
    assert!(error.contains("2.parquet") && error.contains("other options"), "{error}");
    nights.file("4.parquet", vec![("id", ints([4])), ("v", texts(["eight"]))]);
    nights.file("5.parquet", vec![("id", ints([5])), ("v", ints([9]))]);
    let error = night(&[]).fails(1);
    assert!(error.contains("such types are not united"), "{error}");
    assert_eq!(nights.text("select string_agg(v, ' ' order by id) from days"), "5 six seven");
}

#[test]
fn a_corrected_file_with_the_same_footer_is_replaced() {
    let nights = Nights::new();
    let correct = |path: &Path, from: i32, to: i32| {
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes.windows(4).position(|value| value == from.to_le_bytes()).unwrap();
        bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
        std::fs::write(path, bytes).unwrap();
    };
    let first = nights.file("1.parquet", vec![("id", ints([1, 0x1234_5678, i32::MAX]))]);
    nights.file("2.parquet", vec![("id", ints([5]))]);
    let options = ["--file-column", "f", "--changed", "replace"];
    nights.night(&options).ok();
    let ids = || nights.text("select string_agg(id::text, ' ' order by id) from days");
    let of = |value: i32| format!("1 5 {value} {}", i32::MAX);
    assert_eq!(ids(), of(0x1234_5678));
    let mut before = 0x1234_5678;
    // The second time it is the load of the first correction that has other content.
    for (value, more) in [(0x1111_2222, 3), (0x1111_3333, 4), (0x1111_4444, 4)] {
        correct(&first, before, value);
        nights.file(&format!("{more}.parquet"), vec![("id", ints([5]))]);
        let error = nights.night(&options[..2]).fails(1);
        assert!(
            error.contains("no longer what was loaded") && error.contains("--changed replace"),
            "{error}"
        );
        let ran = nights.night(&options).ok();
        assert!(ran.out.contains("replaced 3 rows that it had"), "{}", ran.out);
        assert_eq!(nights.text(&format!("select count(*) from days where id = {value}")), "1");
        assert_eq!(nights.text(&format!("select count(*) from days where id = {before}")), "0");
        before = value;
    }
    assert_eq!(nights.text("select count(*) from days"), "6");
    let again = nights.night(&[&options[..], &["--verify"]].concat()).ok();
    assert!(again.out.contains("nothing to do") && again.out.contains("verified"), "{}", again.out);
}

#[test]
fn a_table_is_made_from_files_that_differ() {
    let nights = two_nights();
    nights.night(&["--evolve"]).ok();
    let error = nights.night(&["--mode", "replace"]).fails(1);
    assert!(error.contains("--evolve"), "{error}");
    nights.night(&["--mode", "replace", "--evolve", "--verify"]).ok();
    assert_eq!(nights.columns(), "id integer, v integer, x bigint");
    nights.bench.client().batch_execute("drop table days").unwrap();
    nights.night(&["--mode", "create", "--evolve", "--verify"]).ok();
    assert_eq!(nights.text("select count(*) || ' ' || count(x) from days"), "200 100");
}

#[test]
fn columns_that_the_table_lacks_are_left_out_on_request() {
    let nights = two_nights();
    let report = nights.night(&["--schema-change", "ignore", "--verify", "--json"]).ok().json();
    assert_eq!(report["report"]["columns"]["left_out"][0], "x");
    assert!(report["report"]["verified"].is_object(), "{report}");
    assert_eq!(nights.columns(), "id integer, v integer");
    assert_eq!(nights.bench.count("select count(*) from days"), 200);
    nights.file("3.parquet", vec![("id", ints([1])), ("y", ints([1]))]);
    let third = nights.verified(&["--schema-change", "ignore"]);
    assert!(third.out.contains("leaves out columns that the table lacks: \"y\""), "{}", third.out);
}

#[test]
fn a_file_on_record_is_not_taken_again_with_other_options() {
    let nights = Nights::new();
    let columns = |ids: Vec<i32>, names: Vec<&'static str>| {
        let more = ints(ids.clone());
        vec![("id", ints(ids)), ("v", texts(names)), ("x", more)]
    };
    nights.file("a.parquet", columns(vec![1, 20], vec!["a", "b"]));
    nights.night(&["--columns", "id,v"]).ok();
    nights.file("b.parquet", columns(vec![3], vec!["c"]));
    let others: [&[&str]; 5] = [
        &["--columns", "id,v,x", "--evolve"],
        &["--columns", "v,id"],
        &["--columns", "id,v", "--file-column", "source", "--evolve"],
        &["--columns", "id,v", "--where", "id > 0"],
        &["--rename", "v=w", "--evolve"],
    ];
    for more in others {
        let error = nights.night(&[more, &["--mode", "append"]].concat()).fails(1);
        assert!(error.contains("a.parquet is in the table already") && error.contains("--again"), "{error}");
        assert_eq!(nights.text("select count(*) from days"), "2");
    }
    nights.verified(&["--columns", "id,v"]);
    assert_eq!(nights.text("select count(*) from days"), "3");
    // Two conditions take the parts of a file.
    nights.file("c.parquet", columns(vec![7, 70], vec!["d", "e"]));
    let part = |condition: &str| {
        let path = nights.folder.join("c.parquet");
        sawmill(nights.words(&path, &["--columns", "id,v", "--mode", "append", "--where", condition]))
    };
    part("id < 10").ok();
    part("id >= 10").ok();
    part("id < 10").ok();
    assert_eq!(nights.text("select count(*) from days"), "5");
    let path = nights.folder.join("c.parquet");
    let whole = sawmill(nights.words(&path, &["--columns", "id,v", "--mode", "append"])).fails(1);
    assert!(whole.contains("c.parquet is in the table already"), "{whole}");
}

#[test]
fn a_night_that_failed_goes_on_with_other_rules_for_columns() {
    let nights = Nights::new();
    nights.file("a.parquet", vec![("id", ints([1]))]);
    nights.night(&[]).ok();
    nights.bench.client().batch_execute("alter table days add constraint c check (id < 100)").unwrap();
    nights.file("b.parquet", vec![("id", ints([2, 200])), ("z", texts(["x", "y"]))]);
    nights.night(&["--schema-change", "ignore", "--verify"]).fails(1);
    nights.bench.client().batch_execute("alter table days drop constraint c").unwrap();
    nights.verified(&["--evolve"]);
    nights.night(&["--evolve", "--verify"]).ok();
    nights.verify().ok();
    assert_eq!(
        nights.text("select string_agg(id || coalesce(z, '-'), ' ' order by id) from days"),
        "1- 2x 200y"
    );
}

#[test]
fn a_column_that_an_earlier_night_left_out_is_not_called_verified() {
    let nights = Nights::new();
    nights.file("a.parquet", vec![("id", ints([1]))]);
    nights.night(&[]).ok();
    nights.file("b.parquet", vec![("id", ints([2])), ("x", ints([5]))]);
    nights.night(&["--schema-change", "ignore"]).ok();
    let ran = nights.night(&["--evolve", "--verify"]).ok();
    assert!(ran.out.contains("not verified: the table lacks \"x\" of the files"), "{}", ran.out);
    assert!(!ran.out.contains("holds what the files hold"), "{}", ran.out);
}

#[test]
fn a_column_that_the_files_lack_must_be_nullable() {
    let nights = Nights::new();
    nights
        .bench
        .client()
        .batch_execute("create table days (id int, v int not null, n int default 7)")
        .unwrap();
    let file = nights.file("1.parquet", vec![("id", ints(0..10))]);
    let load =
        |more: &[&str]| sawmill(nights.words(&file, &[&["--mode", "append", "--evolve"], more].concat()));
    let error = load(&[]).fails(1);
    assert!(error.contains("column \"v\" of the table is not in") && error.contains("NOT NULL"), "{error}");
    nights.bench.client().batch_execute("alter table days alter v drop not null").unwrap();
    load(&["--verify"]).ok();
    assert_eq!(nights.text("select count(*) || ' ' || count(v) || ' ' || sum(n) from days"), "10 0 70");
}

#[test]
fn the_first_night_unites_files_that_differ() {
    let nights = Nights::new();
    nights.file("1.parquet", vec![("id", ints(0..100)), ("a", ints(0..100))]);
    nights.file("2.parquet", vec![("b", texts(["b"])), ("id", longs([1 << 40]))]);
    let plan = nights.night(&["--evolve", "--explain"]).ok();
    assert!(plan.out.contains("\"id\" bigint") && plan.out.contains("\"b\" text"), "{}", plan.out);
    let first = nights.verified(&["--evolve"]);
    assert!(first.out.contains("column \"b\" (") && first.out.contains("1.parquet)"), "{}", first.out);
    assert_eq!(nights.columns(), "id bigint, a integer, b text");
    assert_eq!(
        nights.text("select count(a) || ' ' || count(b) || ' ' || max(id) from days"),
        format!("100 1 {}", 1u64 << 40)
    );
    nights.verify().ok();
    assert!(nights.night(&["--evolve"]).ok().out.contains("nothing to do"));
    let where_absent =
        nights.bench.load(&nights.folder, "filtered", &["--evolve", "--where", "a is null and id > 5"]).ok();
    assert!(where_absent.out.contains("1 row"), "{}", where_absent.out);
}

#[test]
fn wider_types_keep_all_digits_and_rewrite_only_on_request() {
    let nights = Nights::new();
    let create = "create table days (small smallint, f real, n numeric(6,2), s varchar(3), at timestamp(3)); \
                  create table old as select 'days'::regclass::oid, pg_relation_filenode('days') as file";
    nights.bench.client().batch_execute(create).unwrap();
    let at = || -> ArrayRef {
        Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![1_700_000_000_123_456]))
    };
    let n = |scale| -> ArrayRef {
        let value = Decimal128Array::from(vec![12_345_678]).with_precision_and_scale(10, scale).unwrap();
        Arc::new(value)
    };
    let small: ArrayRef = Arc::new(Int16Array::from(vec![1]));
    let f: ArrayRef = Arc::new(Float32Array::from(vec![1.5]));
    let columns =
        |small, f, n| vec![("small", small), ("f", f), ("n", n), ("s", texts(["longer"])), ("at", at())];
    let file = nights.file("1.parquet", columns(small, f, n(2)));
    let load = |file: &Path, more: &[&str]| {
        sawmill(nights.words(file, &[&["--mode", "append", "--verify"], more].concat()))
    };
    load(&file, &["--schema-change", "widen"]).ok();
    assert_eq!(
        nights.columns(),
        "small smallint, f real, n numeric(10,2), s text, at timestamp without time zone"
    );
    assert_eq!(nights.text("select pg_relation_filenode('days') = file from old"), "true");
    let wide_f: ArrayRef = Arc::new(Float64Array::from(vec![0.1]));
    let file = nights.file("2.parquet", columns(ints([70_000]), wide_f, n(4)));
    let error = load(&file, &["--schema-change", "widen"]).fails(1);
    for part in
        ["\"small\" is smallint", "\"f\" is real", "\"n\" is numeric(10,2)", "numeric(12,4)", "--rewrite"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    load(&file, &["--evolve", "--rewrite"]).ok();
    assert_eq!(
        nights.columns(),
        "small integer, f double precision, n numeric(12,4), s text, at timestamp without time zone"
    );
    assert_eq!(
        nights.text("select string_agg(n::text || ' ' || at::text, ',' order by n) from days"),
        "1234.5678 2023-11-14 22:13:20.123456,123456.7800 2023-11-14 22:13:20.123456"
    );
    nights.verify().ok();
}

#[test]
fn a_column_of_short_text_becomes_text_for_numbers_that_may_be_longer() {
    let nights = Nights::new();
    let create = "create table days (id int, code varchar(3), flag varchar(3), wide varchar(20))";
    nights.bench.client().batch_execute(create).unwrap();
    let longest = longs([i64::MIN, 5]);
    let numbers =
        nights.file("1.parquet", vec![("id", ints([1, 2])), ("code", ints([7, 1234])), ("wide", longest)]);
    let flag: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![true]));
    let flags = nights.file("2.parquet", vec![("id", ints([3])), ("flag", flag)]);
    let append = |file: &Path, more: &[&str]| {
        sawmill(nights.words(file, &[&["--mode", "append", "--verify"], more].concat()))
    };
    let short = "is character varying(3) in the table";
    // Statistics show numbers before a row is sent.
    for (file, parts) in
        [(&numbers, ["\"code\"", "Int32", "has the value 1234"]), (&flags, ["\"flag\"", "Boolean", "true"])]
    {
        let error = append(file, &[]).fails(1);
        for part in parts.into_iter().chain([short, "--schema-change widen makes it text"]) {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    assert_eq!(nights.bench.count("select count(*) from days"), 0);
    let widened = append(&numbers, &["--evolve"]).ok();
    let line = "widens column \"code\" from character varying(3) to text";
    assert!(widened.out.contains(line), "{}", widened.out);
    append(&flags, &["--evolve"]).ok();
    assert_eq!(nights.columns(), "id integer, code text, flag text, wide character varying(20)");
    let rows = "select string_agg(concat_ws(' ', id, code, flag, wide), ',' order by id) from days";
    assert_eq!(nights.text(rows), "1 7 -9223372036854775808,2 1234 5,3 true");
}

#[test]
fn the_plan_says_what_would_change_and_changes_nothing() {
    let nights = two_nights();
    nights.file("3.parquet", vec![("id", ints([1])), ("v", longs([1]))]);
    for how in ["--explain", "--dry-run"] {
        let plan = nights.night(&["--evolve", "--rewrite", how]).ok();
        for part in
            ["adds column \"x\" bigint", "widens column \"v\" from integer to bigint", "(", "3.parquet"]
        {
            assert!(plan.out.contains(part), "{how} {part}: {}", plan.out);
        }
    }
    let json = nights.night(&["--evolve", "--rewrite", "--explain", "--json"]).ok().json();
    assert_eq!(json["columns"]["added"][0]["type"], "bigint");
    assert!(json["ddl"].as_str().unwrap().starts_with("ALTER TABLE"), "{json}");
    assert_eq!(nights.columns(), "id integer, v integer");
}

#[test]
fn a_load_that_was_killed_behind_its_change_is_finished_by_the_same_command() {
    let nights = two_nights();
    // Killed between the change of the table and the load's record.
    let holder = nights.hold("loads", "true");
    let child = start(nights.words(&nights.folder, &["--evolve", "--verify"]));
    until("the load waits", || nights.is_held());
    assert_eq!(nights.columns(), "id integer, v integer, x bigint");
    signal(&child, "KILL");
    wait(child);
    nights.release(holder, "loads");
    // Killed with a part of its rows.
    let options = ["--evolve", "--connections", "1", "--unit-rows", "20"];
    let holder =
        nights.hold("units", "(select count(*) from _sawmill.units where load_id = new.load_id) > 1");
    let child = start(nights.words(&nights.folder, &[&options[..], &["--verify"]].concat()));
    until("the load waits", || nights.is_held());
    signal(&child, "KILL");
    wait(child);
    nights.release(holder, "units");
    let rows = nights.bench.count("select count(*) from days");
    assert!(rows > 100 && rows < 200, "{rows}");
    // The next file has come, with another column.
    nights.file("3.parquet", vec![("id", ints([7])), ("v", longs([1 << 40])), ("y", ints([7]))]);
    let finished = nights.verified(&[&options[..], &["--rewrite"]].concat());
    assert!(
        finished.out.contains("adds column \"y\" integer") && !finished.out.contains("\"x\" bigint"),
        "{}",
        finished.out
    );
    assert_eq!(
        nights.text("select count(*) || ' ' || count(distinct id) || ' ' || count(x) from days"),
        "201 200 100"
    );
    nights.verify().ok();
}

#[test]
fn of_two_loads_at_once_both_find_the_columns_that_they_need() {
    let nights = two_nights();
    let third =
        nights.file("3.parquet", vec![("id", ints(200..300)), ("v", ints(0..100)), ("x", longs(0..100))]);
    let mut reader = nights.bench.client();
    reader.batch_execute("begin; lock table days in access share mode").unwrap();
    let options = ["--mode", "append", "--evolve"];
    let loads = [nights.folder.join("2.parquet"), third].map(|file| start(nights.words(&file, &options)));
    let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    until("both loads wait", || nights.bench.count(waiting) == 2);
    reader.batch_execute("commit").unwrap();
    let added = loads.map(|load| wait(load).ok().out.contains("adds column"));
    assert_ne!(added[0], added[1]);
    assert_eq!(
        nights.text("select count(*) || ' ' || count(distinct id) || ' ' || count(x) from days"),
        "300 300 200"
    );
    nights.verify().ok();
}

#[test]
fn a_type_does_not_change_under_a_load_that_runs() {
    let nights = two_nights();
    let wide = nights.bench.dir.path().join("wide.parquet");
    std::fs::rename(nights.file("3.parquet", vec![("id", ints([300])), ("v", longs([1 << 40]))]), &wide)
        .unwrap();
    let holder = nights.hold("units", "true");
    let running = start(nights.words(&nights.folder, &["--evolve"]));
    until("the load waits", || nights.is_held());
    let options = ["--mode", "append", "--evolve", "--rewrite"];
    let error = sawmill(nights.words(&wide, &options)).fails(1);
    assert!(error.contains("another load into the table is running") && error.contains("\"v\""), "{error}");
    nights.release(holder, "units");
    wait(running).ok();
    sawmill(nights.words(&wide, &options)).ok();
    assert_eq!(nights.text("select count(*) || ' ' || max(v) from days"), format!("201 {}", 1u64 << 40));
}

#[test]
fn options_that_do_not_fit_together_are_refused() {
    let nights = two_nights();
    for (options, part) in [
        (&["--schema-change", "add,ignore"][..], "exclude each other"),
        (&["--rewrite"], "without widening"),
        (&["--evolve", "--mode", "truncate"], "mode"),
        (&["--evolve", "--map", "position", "--mode", "append"], "--map position"),
        (&["--evolve", "--part", "1/2"], "in parts"),
    ] {
        let error = nights.night(options).fails(2);
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_file_that_is_wider_than_the_table_is_refused_with_the_way_out() {
    let nights = two_nights();
    let wide = nights.bench.dir.path().join("wide.parquet");
    std::fs::rename(nights.file("3.parquet", vec![("id", ints(0..3)), ("v", longs([1, 2, 1 << 40]))]), &wide)
        .unwrap();
    let append = |more: &[&str]| sawmill(nights.words(&wide, &[&["--mode", "append"], more].concat()));
    let error = append(&["--unit-rows", "1"]).fails(1);
    for part in [
        "\"v\" is integer in the table and Int64 in",
        "wide.parquet",
        "--schema-change widen with --rewrite makes it bigint",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // Not one of its rows was loaded.
    assert_eq!(nights.bench.count("select count(*) from days"), 100);
    append(&["--schema-change", "widen", "--rewrite", "--verify"]).ok();
    // What no statistics show is found when the value comes.
    let real =
        nights.file("4.parquet", vec![("id", ints([1])), ("v", Arc::new(Float64Array::from(vec![0.5])))]);
    let error = sawmill(nights.words(&real, &["--mode", "append"])).fails(1);
    assert!(error.contains("0.5") && !error.contains("--schema-change"), "{error}");
    // Values that fit are loaded.
    nights.bench.client().batch_execute("alter table days alter id type smallint").unwrap();
    let fitting = nights.file("5.parquet", vec![("id", longs([7])), ("v", longs([7]))]);
    sawmill(nights.words(&fitting, &["--mode", "append"])).ok();
}

#[test]
fn headers_of_text_may_differ_under_the_same_contract() {
    let nights = Nights::new();
    let day = |name: &str, text: &str| std::fs::write(nights.folder.join(name), text).unwrap();
    day("1.csv", "id,v\n1,a\n");
    day("2.csv", "w,id\n5,2\n6,3\n");
    let error = nights.night(&[]).fails(1);
    for part in ["[\"v\"] are missing", "[\"w\"] are only in this file", "2.csv", "--evolve"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let first = nights.verified(&["--evolve"]);
    assert!(first.out.contains("column \"v\" (") && first.out.contains("2.csv)"), "{}", first.out);
    assert_eq!(nights.columns(), "id bigint, v text, w bigint");
    day("3.csv", "x,id\n0.5,4\n");
    let third = nights.verified(&["--evolve"]);
    assert!(third.out.contains("adds column \"x\" double precision"), "{}", third.out);
    let rows = "select string_agg(concat_ws(' ', id, v, w, x), ',' order by id) from days";
    assert_eq!(nights.text(rows), "1 a,2 5,3 6,4 0.5");
    assert!(nights.night(&["--evolve"]).ok().out.contains("nothing to do"));
    nights.verify().ok();
    // Columns may be chosen, whatever file has them.
    nights.bench.load(&nights.folder, "chosen", &["--evolve", "--columns", "w,id"]).ok();
    assert_eq!(
        nights.text("select string_agg(coalesce(w, 0)::text, ',' order by id) from chosen"),
        "0,5,6,0"
    );
}
