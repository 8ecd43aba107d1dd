//! Columns of a table of any type take the text that the type itself reads, and values that have such a text.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int8Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, FixedSizeListArray, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;

use crate::harness::{Ran, sawmill};
use crate::load::Bench;

/// A file of lines of JSON with these texts in column `v`.
fn texts(bench: &Bench, name: &str, texts: &[&str]) -> PathBuf {
    let path = bench.dir.path().join(name);
    let line = |(id, text): (usize, &&str)| serde_json::json!({ "id": id, "v": text }).to_string() + "\n";
    std::fs::write(&path, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    path
}

/// A Parquet file with the column `v` of these values, and `id`.
fn parquet(bench: &Bench, v: ArrayRef, extension: Option<&str>, geo: Option<&str>) -> PathBuf {
    let path = bench.dir.path().join("values.parquet");
    let name = |name: &str| [("ARROW:extension:name".to_owned(), name.to_owned())];
    let mut field = Field::new("v", v.data_type().clone(), true);
    field = field.with_metadata(extension.map(name).into_iter().flatten().collect());
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true), field]));
    let ids: Int64Array = (0..v.len() as i64).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids), v]).unwrap();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    if let Some(geo) = geo {
        writer.append_key_value_metadata(KeyValue::new("geo".to_owned(), geo.to_owned()));
    }
    writer.close().unwrap();
    path
}

/// Loads the file into a new table with `v` of this type, and returns its values.
fn loaded(bench: &Bench, of: &str, file: &std::path::Path, more: &[&str]) -> Vec<String> {
    let table = format!("drop table if exists t; create table t (id bigint, v {of})");
    bench.client().batch_execute(&table).unwrap();
    bench.load(file, "t", &[&["--mode", "append", "--verify"], more].concat()).ok();
    sawmill(bench.args("verify", file, "t", more)).ok();
    values(bench)
}

/// Creates an extension; false if the server has none of this name.
fn has_extension(bench: &Bench, name: &str) -> bool {
    let known = format!("select count(*) from pg_available_extensions where name = '{name}'");
    let is_there = bench.count(&known) > 0;
    match is_there {
        true => bench.client().batch_execute(&format!("create extension {name}")).unwrap(),
        false => eprintln!("skipped: the server has no extension {name}"),
    }
    is_there
}

#[test]
fn values_with_a_text_become_values_of_any_type() {
    let bench = Bench::new();
    let instants = || vec![Some(1_704_164_645_000_600), None, Some(-62_135_596_800_000_000 - 1)];
    let instant = || Arc::new(TimestampMicrosecondArray::from(instants()).with_timezone("UTC")) as ArrayRef;
    let texts = |texts: Vec<&str>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let list = |items: ArrayRef| {
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        Arc::new(FixedSizeListArray::new(field, items.len() as i32, items, None)) as ArrayRef
    };
    let milliseconds = || Arc::new(TimestampMillisecondArray::from(vec![1_704_164_645_123]));
    let midnight = Arc::new(TimestampMicrosecondArray::from(vec![1_704_153_600_000_000]));
    for (of, v, stored) in [
        ("text", instant(), vec!["2024-01-02 03:04:05.0006+00", "null", "0001-12-31 23:59:59.999999+00 BC"]),
        ("varchar(10)", Arc::new(Date32Array::from(vec![19_724])), vec!["2024-01-02"]),
        ("text", list(Arc::new(Int64Array::from(vec![1, 2]))), vec!["[1, 2]"]),
        ("json", list(Arc::new(Int64Array::from(vec![1, 2]))), vec!["[1, 2]"]),
        ("jsonb", Arc::new(Int64Array::from(vec![7])), vec!["7"]),
        ("date", midnight, vec!["2024-01-02"]),
        ("boolean", Arc::new(Int64Array::from(vec![1, 0])), vec!["true", "false"]),
        ("smallint", Arc::new(BooleanArray::from(vec![true, false])), vec!["1", "0"]),
        ("money", Arc::new(Int64Array::from(vec![12])), vec!["$12.00"]),
        ("oid", Arc::new(Int64Array::from(vec![12])), vec!["12"]),
        ("timestamp(3)", milliseconds(), vec!["2024-01-02 03:04:05.123"]),
        (
            "timestamptz(3)",
            Arc::new(milliseconds().as_ref().clone().with_timezone("UTC")),
            vec!["2024-01-02 03:04:05.123+00"],
        ),
        ("macaddr[]", list(texts(vec!["08:00:2b:01:02:03"])), vec!["{08:00:2b:01:02:03}"]),
        ("int4range[]", list(texts(vec!["[1,5)"])), vec!["{\"[1,5)\"}"]),
    ] {
        assert_eq!(loaded(&bench, of, &parquet(&bench, v, None, None), &[]), stored, "{of}");
    }
    let mut bools = Int8Builder::new();
    bools.append_slice(&[1, 0]);
    let file = parquet(&bench, Arc::new(bools.finish()), Some("arrow.bool8"), None);
    bench.load(&file, "bools", &["--verify"]).ok();
    assert_eq!(bench.count("select count(*) from bools where v"), 1);
    for (of, v) in [
        ("date", milliseconds() as ArrayRef),
        ("smallint[]", list(Arc::new(Int64Array::from(vec![1, 70_000])))),
        ("boolean", Arc::new(Int64Array::from(vec![2]))),
        ("timestamp(0)", milliseconds()),
        ("timestamptz(3)", milliseconds()),
        ("interval", Arc::new(Int64Array::from(vec![2]))),
        ("interval(3)", Arc::new(Int64Array::from(vec![2]))),
        ("boolean", Arc::new(Date32Array::from(vec![19_724]))),
        ("date[]", list(Arc::new(BooleanArray::from(vec![true])))),
        ("varchar(3)", list(Arc::new(Int64Array::from(vec![1, 2])))),
    ] {
        let table = format!("drop table if exists t; create table t (id bigint, v {of})");
        bench.client().batch_execute(&table).unwrap();
        let error = bench.load(&parquet(&bench, v, None, None), "t", &["--mode", "append"]).fails(1);
        assert!(error.contains("column \"v\""), "{of}: {error}");
    }
}

#[test]
fn lists_become_vectors_and_maps_hstore() {
    let bench = Bench::new();
    if has_extension(&bench, "hstore") {
        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for (key, value) in [("b", None), ("a \"x\"", Some("1\\"))] {
            map.keys().append_value(key);
            map.values().append_option(value);
        }
        map.append(true).unwrap();
        map.append(true).unwrap();
        let stored = ["\"b\"=>NULL, \"a \\\"x\\\"\"=>\"1\\\\\"", ""];
        assert_eq!(
            loaded(&bench, "hstore", &parquet(&bench, Arc::new(map.finish()), None, None), &[]),
            stored
        );
    }
    if !has_extension(&bench, "vector") {
        return;
    }
    let singles = |lists: Vec<Option<Vec<Option<f32>>>>| {
        Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(lists)) as ArrayRef
    };
    let good = || singles(vec![Some(vec![Some(1.5), Some(-0.0), Some(3.0)]), None]);
    for of in ["vector(3)", "vector", "halfvec(3)", "vector(3)[]"] {
        let (v, stored) = match of.ends_with("[]") {
            true => (Arc::new(StringArray::from(vec!["{\"[1,2,3]\"}"])) as ArrayRef, vec!["{\"[1,2,3]\"}"]),
            false => (good(), vec!["[1.5,-0,3]", "null"]),
        };
        assert_eq!(loaded(&bench, of, &parquet(&bench, v, None, None), &[]), stored, "{of}");
    }
    let doubles =
        || Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(0.5), Some(0.1)])]));
    for (of, stored) in [("vector(2)", "[0.5,0.1]"), ("halfvec(2)", "[0.5,0.099975586]")] {
        let file = parquet(&bench, doubles(), None, None);
        assert_eq!(loaded(&bench, of, &file, &[]), [stored]);
        let plan = bench.load(&file, "t", &["--mode", "append", "--again", "--explain"]).ok().out;
        assert!(plan.contains("each element as the nearest float"), "{plan}");
    }
    for (of, v, why) in [
        ("vector(4)", good(), "it has 3 elements"),
        ("vector", singles(vec![Some(vec![])]), "it has 0 elements"),
        ("vector(2)", singles(vec![Some(vec![Some(1.0), None])]), "an element is null"),
        ("vector(1)", singles(vec![Some(vec![Some(f32::NAN)])]), "an element is null, NaN"),
        ("halfvec(1)", singles(vec![Some(vec![Some(1e6)])]), "too large"),
    ] {
        let table = format!("drop table if exists t; create table t (id bigint, v {of})");
        bench.client().batch_execute(&table).unwrap();
        let error = bench.load(&parquet(&bench, v, None, None), "t", &["--mode", "append"]).fails(1);
        assert!(error.contains(why) && error.contains("column \"v\""), "{of}: {error}");
    }
}

#[test]
fn shapes_of_geoparquet_keep_their_reference_system() {
    let bench = Bench::new();
    if !has_extension(&bench, "postgis") {
        return;
    }
    let point = |order: u8| {
        let (kind, x, y) = match order {
            1 => (1u32.to_le_bytes(), 1f64.to_le_bytes(), 2f64.to_le_bytes()),
            _ => (1u32.to_be_bytes(), 1f64.to_be_bytes(), 2f64.to_be_bytes()),
        };
        [&[order][..], &kind, &x, &y].concat()
    };
    let (little, big) = (point(1), point(0));
    let points = || Arc::new(BinaryArray::from_opt_vec(vec![Some(&little), None, Some(&big)])) as ArrayRef;
    let geo = |crs: &str| format!("{{\"columns\": {{\"v\": {{\"encoding\": \"WKB\"{crs}}}}}}}");
    let web = geo(", \"crs\": {\"id\": {\"authority\": \"EPSG\", \"code\": 3857}}");
    let unknown = geo(", \"crs\": null");
    for (of, geo, system) in [
        ("geometry", None, 0),
        ("geometry(Point,4326)", None, 4326),
        ("geography", None, 4326),
        ("geography(Point,4326)", Some(geo("")), 4326),
        ("geometry", Some(geo("")), 4326),
        ("geometry", Some(web.clone()), 3857),
        ("geometry", Some(unknown), 0),
    ] {
        let there = loaded(&bench, of, &parquet(&bench, points(), None, geo.as_deref()), &[]);
        assert_eq!(there.len(), 3);
        let shapes = format!(
            "select count(*) from t where st_astext(v) = 'POINT(1 2)' and st_srid(v::geometry) = {system}"
        );
        assert_eq!(bench.count(&shapes), 2, "{of} {geo:?}");
    }
    let cut = || Arc::new(BinaryArray::from(vec![&little[..9]])) as ArrayRef;
    let line = || Arc::new(StringArray::from(vec!["LINESTRING(1 2, 3 4)"])) as ArrayRef;
    for (v, geo, why) in
        [(points(), Some(&web), "SRID"), (cut(), None, "cannot be read"), (line(), None, "Geometry type")]
    {
        let table = "drop table if exists t; create table t (id bigint, v geometry(Point,4326))";
        bench.client().batch_execute(table).unwrap();
        let file = parquet(&bench, v, None, geo.map(String::as_str));
        let error = bench.load(&file, "t", &["--mode", "append"]).fails(1);
        assert!(error.contains(why) && error.contains("column \"v\""), "{error}");
    }
    append(&bench, &texts(&bench, "text.ndjson", &["POINT(1 2)", "SRID=4326;POINT(1 2)"]), &["--verify"])
        .ok();
    assert_eq!(bench.count("select count(*) from t where st_srid(v) = 4326"), 2);
}

fn append(bench: &Bench, file: &std::path::Path, more: &[&str]) -> Ran {
    bench.load(file, "t", &[&["--mode", "append", "--types", "v=text"], more].concat())
}

/// The column's values as the server writes them.
fn values(bench: &Bench) -> Vec<String> {
    let rows = bench.client().query("select coalesce(v::text, 'null') from t order by id", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn text_becomes_a_value_of_any_type_and_is_verified() {
    let bench = Bench::new();
    let mut client = bench.client();
    client
        .batch_execute(
            "create type pair as (a int, b text); create domain small as pair check ((value).a < 10); \
             create type floats as range (subtype = float4)",
        )
        .unwrap();
    for (of, given, stored) in [
        ("int4range", "[1,5]", "[1,6)"),
        ("int4multirange", "{[1,2],[2,5)}", "{[1,5)}"),
        ("floats", "[1.5,2.5]", "[1.5,2.5]"),
        ("macaddr", "08-00-2B-01-02-03", "08:00:2b:01:02:03"),
        ("tsvector", "b a", "'a' 'b'"),
        ("tsquery", "a & b", "'a' & 'b'"),
        ("jsonpath", "$.a", "$.\"a\""),
        ("money", "1000.5", "$1,000.50"),
        ("\"char\"", "x", "x"),
        ("\"char\"[]", "{x,y}", "{x,y}"),
        ("pg_lsn", "16/B374D848", "16/B374D848"),
        ("pair", "(1,\"x y\")", "(1,\"x y\")"),
        ("pair[]", "{\"(1,x)\",NULL}", "{\"(1,x)\",NULL}"),
        ("small", "(1,x)", "(1,x)"),
        ("timestamp(3)", "2024-01-01 00:00:00.123", "2024-01-01 00:00:00.123"),
        ("macaddr[]", "{08:00:2b:01:02:03}", "{08:00:2b:01:02:03}"),
    ] {
        client.batch_execute(&format!("drop table if exists t; create table t (id int, v {of})")).unwrap();
        let file = texts(&bench, &format!("{of}.ndjson"), &[given, given]);
        append(&bench, &file, &["--verify"]).ok();
        assert_eq!(values(&bench), [stored, stored], "{of}");
        sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).ok();
        client.batch_execute("update t set v = null where id = 1").unwrap();
        sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).fails(4);
    }
}

#[test]
fn types_of_extensions_are_read_by_the_server() {
    let bench = Bench::new();
    let mut client = bench.client();
    for (of, given, stored) in [
        ("hstore", "b=>NULL, a=>1", "\"a\"=>\"1\", \"b\"=>NULL"),
        ("ltree", "a.b.c", "a.b.c"),
        ("citext", "X", "X"),
        ("cube", "(1, 2)", "(1, 2)"),
    ] {
        if !has_extension(&bench, of) {
            continue;
        }
        let create = format!("drop table if exists t; create table t (id int primary key, v {of})");
        client.batch_execute(&create).unwrap();
        append(&bench, &texts(&bench, &format!("{of}.ndjson"), &[given]), &["--verify"]).ok();
        assert_eq!(values(&bench), [stored], "{of}");
        let changed = texts(&bench, &format!("{of}2.ndjson"), &[given, given]);
        bench.load(&changed, "t", &["--mode", "upsert", "--key", "id", "--types", "v=text"]).ok();
        assert_eq!(values(&bench), [stored, stored], "{of}");
    }
}

#[test]
fn types_without_a_wire_format_are_sent_as_text() {
    let bench = Bench::new();
    let me = "(select current_user)";
    let acl: String = bench.client().query_one(&format!("select {me} || '=r/' || {me}"), &[]).unwrap().get(0);
    for (extension, of, given, stored, wrong) in [
        ("", "aclitem", &*acl, &*acl, "nobody knows"),
        ("", "aclitem[]", &*format!("{{{acl}}}"), &*format!("{{{acl}}}"), "{nobody}"),
        ("isn", "isbn13", "978-0-393-04002-9", "978-0-393-04002-9", "978-0-393-04002-8"),
        ("seg", "seg", "1 .. 2", "1 .. 2", "x"),
        ("intarray", "query_int", "1&2", "1 & 2", "1&"),
    ] {
        if !extension.is_empty() && !has_extension(&bench, extension) {
            continue;
        }
        let domain = format!("drop table if exists t; drop domain if exists d; create domain d as {of}");
        bench.client().batch_execute(&domain).unwrap();
        for of in [of, "d"] {
            let table = format!(
                "drop table if exists t; create table t (id int primary key, v {of}, w int default 7)"
            );
            bench.client().batch_execute(&table).unwrap();
            let file = texts(&bench, "all.ndjson", &vec![given; 300]);
            append(&bench, &file, &["--verify", "--unit-rows", "100"]).ok();
            assert_eq!(values(&bench), vec![stored; 300], "{of}");
            assert_eq!(bench.count("select count(*) from t where w = 7"), 300);
            sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).ok();
            bench.client().batch_execute("update t set v = null where id = 8").unwrap();
            sawmill(bench.args("verify", &file, "t", &["--types", "v=text"])).fails(4);
            let merge = ["--mode", "upsert", "--key", "id", "--types", "v=text", "--verify"];
            bench.load(&file, "t", &merge).ok();
            assert_eq!(values(&bench), vec![stored; 300], "{of}");
        }
        let table = format!("drop table t; create table t (id int primary key, v {of})");
        bench.client().batch_execute(&table).unwrap();
        let file = texts(&bench, "wrong.ndjson", &[given, wrong, given]);
        let error = append(&bench, &file, &[]).fails(1);
        assert!(error.contains("line 2") && error.contains("column \"v\""), "{of}: {error}");
        let rejects = bench.dir.path().join("rejects.parquet");
        append(&bench, &file, &["--rejects", rejects.to_str().unwrap(), "--verify"]).ok();
        assert_eq!(values(&bench), [stored, stored], "{of}");
    }
}

#[test]
fn text_that_is_no_value_of_the_type_is_named_or_rejected() {
    let bench = Bench::new();
    let made = "create type prices as range (subtype = money); create type priced as (v money, n int); \
                create type rounded as (v numeric(5,1), at timestamp(0)); create type outer_rounded as (v rounded); \
                create domain below as rounded; create domain tenth as numeric(5,1)";
    bench.client().batch_execute(made).unwrap();
    let has_hstore = has_extension(&bench, "hstore");
    for (of, wrong, why) in [
        ("int4range", "[5,1]", "lower bound must be less than or equal"),
        ("money", "1.555", "the server would store $1.56 instead"),
        ("bit(3)", "1010", "the server would store 101 instead"),
        (
            "timestamp(3)",
            "2024-01-01 00:00:00.1234",
            "the server would store 2024-01-01 00:00:00.123 instead",
        ),
        ("tsrange", "[2024-01-01 00:00:00.1234567,)", "instead"),
        ("tsvector", "'a':20000", "'a':16383 instead"),
        ("money[]", "{12.345}", "{$12.35} instead"),
        ("prices", "[1.001,2.009]", "[$1.00,$2.01] instead"),
        ("priced", "(12.345,)", "instead"),
        ("rounded", "(1.25,)", "(1.3,) instead"),
        ("rounded[]", "{\"(1.25,)\"}", "instead"),
        ("outer_rounded", "(\"(1.25,)\")", "instead"),
        ("below", "(,\"2024-01-01 00:00:00.7\")", "instead"),
        ("tenth[]", "{1.25}", "the column stores 1"),
        ("hstore", "a=>1, a=>3", "instead"),
        ("hstore[]", "{\"a=>1,a=>3\"}", "instead"),
    ] {
        if of.starts_with("hstore") && !has_hstore {
            continue;
        }
        let table = format!("drop table if exists t; create table t (id int, v {of})");
        bench.client().batch_execute(&table).unwrap();
        let mut given = vec!["empty"; 100];
        match of {
            "money" => given.fill("1"),
            "bit(3)" => given.fill("101"),
            "timestamp(3)" => given.fill("2024-01-01"),
            "tsvector" => given.fill("'a':2"),
            "hstore" => given.fill("a=>1, b=>\"=>\""),
            "outer_rounded" => given.fill("(\"(1.2,)\")"),
            "priced" | "rounded" | "below" => given.fill("(,)"),
            of if of.ends_with("[]") => given.fill("{}"),
            _ => {}
        }
        given[70] = wrong;
        let file = texts(&bench, &format!("{of}.ndjson"), &given);
        let error = append(&bench, &file, &[]).fails(1);
        assert!(error.contains(why) && error.contains("line 71") && error.contains("\"v\""), "{of}: {error}");
        assert_eq!(bench.count("select count(*) from t"), 0);
        let rejects = bench.dir.path().join(format!("{of}.parquet"));
        let ran = append(&bench, &file, &["--rejects", rejects.to_str().unwrap(), "--verify"]).ok();
        assert!(ran.out.contains("1 row"), "{}", ran.out);
        assert_eq!(bench.count("select count(*) from t where num_nulls(v) = 0"), 99);
    }
}

#[test]
fn text_without_an_offset_is_a_local_time_of_the_zone() {
    let bench = Bench::new();
    bench.client().batch_execute("create table t (id int, v timestamptz)").unwrap();
    let file = texts(&bench, "a.ndjson", &["2024-07-01T12:00:00Z", "2024-07-01 12:00"]);
    let error = append(&bench, &file, &[]).fails(1);
    assert!(error.contains("column \"v\"") && error.contains("--timezone"), "{error}");
    let zone = ["--timezone", "Europe/Vienna"];
    let plan = append(&bench, &file, &[&zone[..], &["--explain"]].concat()).ok().out;
    assert!(plan.contains("to timestamp with time zone, read from its text"), "{plan}");
    assert!(!plan.contains("CREATE TABLE"), "{plan}");
    append(&bench, &file, &[&zone[..], &["--verify"]].concat()).ok();
    let csv = bench.dir.path().join("b.csv");
    std::fs::write(&csv, "id,v\n3,2024-10-27 02:30\n").unwrap();
    bench.load(&csv, "t", &[&["--mode", "append", "--types", "table", "--verify"], &zone[..]].concat()).ok();
    let stored = ["2024-07-01 12:00:00+00", "2024-07-01 10:00:00+00", "2024-10-27 01:30:00+00"];
    assert_eq!(values(&bench), stored);
    append(&bench, &file, &["--timezone", "Europe/Wien"]).fails(2);
}
