//! Text loses nothing silently: neither values nor records nor files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Date64Array, Int32Array, NullArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::harness::{Ran, names, sawmill};
use crate::load::Bench;

/// A directory with files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), content).unwrap();
        self
    }

    fn convert(&self, from: &str, to: &str, more: &[&str]) -> Ran {
        let (from, to) = (self.path(from), self.path(to));
        sawmill([&["convert", from.to_str().unwrap(), "--out", to.to_str().unwrap()], more].concat())
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

#[test]
fn nulls_of_a_column_without_values_are_empty_fields() {
    let files = Files::new();
    let (nulls, numbers): (ArrayRef, ArrayRef) =
        (Arc::new(NullArray::new(2)), Arc::new(Int32Array::from(vec![1, 2])));
    let rows = RecordBatch::try_from_iter([("c", nulls), ("d", numbers)]).unwrap();
    let file = fs::File::create(files.path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    files.convert("a.parquet", "a.csv", &[]).ok();
    assert_eq!(files.read("a.csv"), "c,d\n,1\n,2\n");
    files.convert("a.parquet", "b.csv", &["--csv-null", "NA"]).ok();
    assert_eq!(files.read("b.csv"), "c,d\nNA,1\nNA,2\n");
}

#[test]
fn a_value_that_no_folder_can_be_named_after_is_an_error() {
    let files = Files::new();
    let list = ["--partition-by", "list(c)"];
    files.write("a.csv", "id,c\n1,__HIVE_DEFAULT_PARTITION__\n2,\n4,x\n");
    let error = files.convert("a.csv", "a", &list).fails(1);
    assert!(error.contains("__HIVE_DEFAULT_PARTITION__") && error.contains("\"c\""), "{error}");
    files.write("b.csv", format!("id,c\n1,{}\n", "x".repeat(260)));
    let error = files.convert("b.csv", "b", &list).fails(1);
    assert!(error.contains("too long") && error.contains("\"c\""), "{error}");
    files.write("c.csv", "id,c\n1,00112233445566778899aabbccddeeff\n");
    files.convert("c.csv", "c", &["--partition-by", "list(c)", "--types", "c=uuid"]).ok();
    assert_eq!(names(&files.path("c")), ["c=00112233-4455-6677-8899-aabbccddeeff"]);
}

#[test]
fn the_end_of_a_day_is_a_time_and_never_the_text_of_an_error() {
    let files = Files::new();
    files.write("a.csv", "id,t\n1,24:00:00\n2,23:59:59.5\n3,\n");
    files.convert("a.csv", "as-written.csv", &[]).ok();
    assert_eq!(files.read("as-written.csv"), files.read("a.csv"));
    files.convert("a.csv", "a.parquet", &[]).ok();
    files.convert("a.parquet", "b.csv", &[]).ok();
    assert_eq!(files.read("b.csv"), "id,t\n1,24:00:00\n2,23:59:59.500\n3,\n");
    files.convert("a.csv", "a.ndjson", &[]).ok();
    assert!(files.read("a.ndjson").starts_with("{\"id\":1,\"t\":\"24:00:00\"}\n"));
}

#[test]
fn a_day_stays_a_day_whatever_the_arrow_schema_counts_it_in() {
    let files = Files::new();
    let days: ArrayRef = Arc::new(Date64Array::from(vec![Some(1_709_164_800_000), None]));
    let batch = RecordBatch::try_from_iter([("d", days)]).unwrap();
    let properties = WriterProperties::builder().set_coerce_types(true).build();
    let file = fs::File::create(files.path("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    files.convert("a.parquet", "a.csv", &[]).ok();
    assert_eq!(files.read("a.csv"), "d\n2024-02-29\n\n");
    files.convert("a.parquet", "b.parquet", &[]).ok();
    files.convert("b.parquet", "b.csv", &[]).ok();
    assert_eq!(files.read("b.csv"), "d\n2024-02-29\n\n");
}

#[test]
fn rejected_records_and_rows_have_files_of_their_own() {
    let files = Files::new();
    files.write("a.csv", "a\n1\n2\nx\n").write("b.csv", "a\n1\n");
    let out = files.path("out.csv");
    let rejects = ["--rejects", out.to_str().unwrap(), "--types", "a=int32"];
    let error = files.convert("a.csv", "out.csv", &rejects).fails(2);
    assert!(error.contains("--out and --rejects name the same file"), "{error}");
    let input = files.path("a.csv");
    files.convert("a.csv", "out.csv", &["--rejects", input.to_str().unwrap()]).fails(2);
    assert_eq!(names(files.0.path()), ["a.csv", "b.csv"]);
}

#[test]
fn records_that_are_not_utf8_are_rejected_with_their_bytes() {
    let files = Files::new();
    files
        .write("a.csv", b"a,b\n1,x\n2,\xff\n3,y\n")
        .write("a.ndjson", b"{\"a\":1}\n{\"a\":\"\xff\"}\n{\"a\":3}\n");
    files.write("t.csv", b"a,b\n2024-01-03,y\n2024-01-02,\xff\n2024-01-01,x\n");
    let bad = files.path("bad.csv");
    for (from, more, expected) in [
        ("a.csv", &[][..], "a,b\n1,x\n3,y\n"),
        ("t.csv", &["--sort-by", "a"][..], "a,b\n2024-01-01,x\n2024-01-03,y\n"),
        ("a.ndjson", &[][..], "a\n1\n3\n"),
    ] {
        let rejects = ["--rejects", bad.to_str().unwrap(), "--overwrite"];
        files.convert(from, "out.csv", &[&rejects, more].concat()).ok();
        assert_eq!(files.read("out.csv"), expected, "{from} {more:?}");
        assert!(fs::read(&bad).unwrap().contains(&0xff));
    }
    let only_parsed = ["convert", files.path("a.csv").to_str().unwrap(), "--parse-only"].map(str::to_owned);
    sawmill(only_parsed.iter().map(String::as_str).chain(["--rejects", bad.to_str().unwrap()])).ok();
}

#[test]
fn json_is_checked_when_it_is_read_and_written_as_it_is() {
    let files = Files::new();
    files.write("a.ndjson", "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":{\"b\": [1,\"\\n\"]}}\n");
    files.convert("a.ndjson", "b.ndjson", &["--types", "a=json"]).ok();
    assert_eq!(files.read("b.ndjson"), files.read("a.ndjson"));
    files.write("a.csv", "j\n\"{\"\"a\"\": 1}\"\nnot json\n");
    let error = files.convert("a.csv", "a.parquet", &["--types", "j=json"]).fails(1);
    assert!(error.contains("not json") && error.contains("line 3"), "{error}");
}

#[test]
fn json_in_lists_structs_and_maps_is_written_as_it_is() {
    let files = Files::new();
    let lines = concat!(
        "{\"v\":[1,\"a\"],\"w\":[[null,1],[]],\"s\":[{\"j\":1},{\"j\":\"x\"}]}\n",
        "{\"v\":[2.5,{\"b\":1},null],\"w\":[[\"\\n\"]],\"s\":[]}\n",
        "{\"v\":[],\"w\":null,\"s\":[{\"j\":[true]}]}\n"
    );
    let geo = concat!(
        "{\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[[0,1],[2.5,3]]]}}\n",
        "{\"geometry\":{\"type\":\"MultiPolygon\",\"coordinates\":[[[[0,1],[2,3]]]]}}\n"
    );
    for (name, lines) in [("a", lines.replace("\"w\":null,", "")), ("geo", geo.to_owned())] {
        files.write(&format!("{name}.ndjson"), &lines);
        files.convert(&format!("{name}.ndjson"), &format!("{name}2.ndjson"), &[]).ok();
        assert_eq!(files.read(&format!("{name}2.ndjson")), lines);
        // The mark of JSON is in the Parquet file, too.
        files.convert(&format!("{name}.ndjson"), &format!("{name}.parquet"), &[]).ok();
        files.convert(&format!("{name}.parquet"), &format!("{name}3.ndjson"), &[]).ok();
        assert_eq!(files.read(&format!("{name}3.ndjson")), lines);
    }
    let head = sawmill(["footer", "cat", files.path("geo.parquet").to_str().unwrap()]).ok().out;
    assert_eq!(head, geo);
    // In jsonb it is a part of the value, and the server's copy is the same.
    let bench = Bench::new();
    bench.load(&files.path("geo.ndjson"), "geo", &["--verify"]).ok();
    let numbers = "select count(*) from geo where jsonb_typeof(geometry #> '{coordinates,0,0,0}') in ('number', 'array')";
    assert_eq!(bench.count(numbers), 2);
}

/// Writers that do not use Arrow mark UUIDs and JSON only in the Parquet schema.
#[test]
fn uuids_and_json_of_files_without_an_arrow_schema_are_written_as_such_at_any_depth() {
    let files = Files::new();
    let schema = "message m {
        required fixed_len_byte_array(16) u (UUID);
        required binary j (JSON);
        required group us (LIST) { repeated group list { required fixed_len_byte_array(16) element (UUID); } }
        required group js (LIST) { repeated group list { required binary element (JSON); } }
        required group s { required fixed_len_byte_array(16) u (UUID); required binary j (JSON); }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(files.path("a.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let json = ByteArray::from(r#"{"a":[1.50]}"#);
    let uuid = FixedLenByteArray::from((0..16).collect::<Vec<u8>>());
    while let Some(mut column) = group.next_column().unwrap() {
        let levels: Option<&[i16]> = match column.untyped() {
            ColumnWriter::FixedLenByteArrayColumnWriter(of) if of.get_descriptor().max_rep_level() > 0 => {
                Some(&[1])
            }
            ColumnWriter::ByteArrayColumnWriter(of) if of.get_descriptor().max_rep_level() > 0 => Some(&[1]),
            _ => None,
        };
        let starts = levels.map(|_| &[0][..]);
        match column.untyped() {
            ColumnWriter::FixedLenByteArrayColumnWriter(of) => {
                of.write_batch(std::slice::from_ref(&uuid), levels, starts)
            }
            ColumnWriter::ByteArrayColumnWriter(of) => {
                of.write_batch(std::slice::from_ref(&json), levels, starts)
            }
            _ => unreachable!(),
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let (u, j) = (r#""00010203-0405-0607-0809-0a0b0c0d0e0f""#, r#"{"a":[1.50]}"#);
    let row = format!(r#"{{"u":{u},"j":{j},"us":[{u}],"js":[{j}],"s":{{"u":{u},"j":{j}}}}}"#) + "\n";
    files.convert("a.parquet", "a.ndjson", &[]).ok();
    assert_eq!(files.read("a.ndjson"), row);
    files.convert("a.parquet", "b.parquet", &[]).ok();
    for name in ["a.parquet", "b.parquet"] {
        let shown = sawmill(["footer", "head", files.path(name).to_str().unwrap()]).ok().out;
        assert_eq!(shown, row, "{name}");
    }
}

#[test]
fn intervals_have_their_months_in_every_kind_of_text() {
    let files = Files::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign/duckdb_intervals.parquet");
    fs::copy(&path, files.path("a.parquet")).unwrap();
    files.convert("a.parquet", "a.ndjson", &[]).ok();
    let second = files.read("a.ndjson").lines().nth(1).unwrap().to_owned();
    let interval = "23 mons 23 days 8 hours 31 mins 23.503 secs";
    assert_eq!(second, format!(r#"{{"id":503,"pause":"{interval}","waits":["{interval}",null]}}"#));
    let head = sawmill(["footer", "head", path.to_str().unwrap(), "-n", "2"]).ok().out;
    assert_eq!(head.lines().nth(1), Some(&*second));
    files.convert("a.parquet", "a.csv", &["--columns", "id,pause", "--rows", "2"]).ok();
    assert_eq!(files.read("a.csv"), format!("id,pause\n0,0 secs\n503,{interval}\n"));
}

#[test]
fn inferred_numbers_keep_all_their_digits() {
    let files = Files::new();
    let values = ["99999999999999.999", "999999999.12345671", "999999999.12345672", "-0.5"];
    files.write("a.csv", format!("v\n{}\n", values.join("\n")));
    files.convert("a.csv", "as-written.csv", &[]).ok();
    assert_eq!(files.read("as-written.csv"), files.read("a.csv"));
    files.convert("a.csv", "a.parquet", &[]).ok();
    files.convert("a.parquet", "b.csv", &[]).ok();
    let padded = "v\n99999999999999.99900000\n999999999.12345671\n999999999.12345672\n-0.50000000\n";
    assert_eq!(files.read("b.csv"), padded);
    // JSON numbers that no type keeps are not strings.
    let lines = "{\"v\":99999999999999.999}\n{\"v\":1e400}\n";
    files.write("c.ndjson", lines).convert("c.ndjson", "d.ndjson", &[]).ok();
    assert_eq!(files.read("d.ndjson"), lines);
}

#[test]
fn a_value_that_the_sample_has_not_is_kept_rejected_or_an_error_but_never_changed() {
    let files = Files::new();
    let rows = |plain: &str, late: &str| -> String {
        (0..20_000).map(|row| if row == 1100 { late } else { plain }).collect()
    };
    files.write("a.csv", "zip,n\n".to_owned() + &rows("80331,1.5\n", "01067,1.5\n"));
    files.write("b.csv", "zip,n\n".to_owned() + &rows("80331,1.5\n", "80331,99999999999999.999\n"));
    files.write("c.ndjson", rows("{\"zip\":80331}\n", "{\"zip\":\"01067\"}\n"));
    let bad = files.path("bad.csv");
    let rejects = ["--rejects", bad.to_str().unwrap(), "--overwrite"];
    for (name, place, value, types) in [
        ("a.csv", "line 1102", "01067", &["--types", "zip=text"]),
        ("b.csv", "line 1102", "99999999999999.999", &["--sample", "all"]),
        ("c.ndjson", "line 1101", "01067", &["--types", "zip=json"]),
    ] {
        let error = files.convert(name, "out.parquet", &[]).fails(1);
        assert!(error.contains(place) && error.contains(value) && error.contains(types[0]), "{error}");
        files.convert(name, "out.ndjson", &rejects).ok();
        assert_eq!(files.read("out.ndjson").lines().count(), 19_999, "{name}");
        assert!(files.read("bad.csv").contains(value), "{name}");
        files.convert(name, "out.ndjson", &[&types[..], &["--overwrite"]].concat()).ok();
        assert!(files.read("out.ndjson").lines().nth(1100).unwrap().contains(value), "{name}");
    }
}

#[test]
fn options_that_the_format_does_not_have_are_errors() {
    let files = Files::new();
    files.write("a.csv", "a\n1\n");
    for (to, options) in [
        ("x.csv", &["--compression", "zstd"][..]),
        ("x.csv", &["--row-group-rows", "7"]),
        ("x.parquet", &["--row-group-rows", "0"]),
        ("x.parquet", &["--csv-null", "NULL"]),
        ("x.parquet", &["--bloom", "zz"]),
    ] {
        let error = files.convert("a.csv", to, options).fails(2);
        assert!(error.contains(options[0]) || error.contains("\"zz\""), "{error}");
    }
    assert_eq!(names(files.0.path()), ["a.csv"]);
}

#[test]
fn a_load_of_which_nothing_is_committed_begins_anew_with_the_corrected_file() {
    let bench = Bench::new();
    let file = bench.dir.path().join("a.csv");
    let load = |mode: &str| {
        let changed = if mode == "append" { &["--changed", "append"][..] } else { &[] };
        bench.load(&file, "c", &[&["--mode", mode, "--types", "a=int32"], changed].concat())
    };
    for (mode, rows) in [("create", 2), ("append", 4), ("truncate", 2)] {
        fs::write(&file, "a\nx\n2\n").unwrap();
        load(mode).fails(1);
        fs::write(&file, format!("a\n1\n{rows}2\n")).unwrap();
        load(mode).ok();
        assert_eq!(bench.count("select count(*) from c"), rows, "{mode}");
    }
}

/// Where a load of two files in which one row is refused says that the row is.
fn place_of_refusal(bench: &Bench, more: &[&str]) -> String {
    let folder = bench.dir.path().join("two");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.csv"), "n,at\n5,2024-01-01\n3,2024-01-09\n").unwrap();
    fs::write(folder.join("b.csv"), "n,at\n\n4,2024-01-03\n-1,2024-01-02\n").unwrap();
    bench.load(Path::new(&folder), "c", &[&["--mode", "append", "--again"], more].concat()).fails(1)
}

#[test]
fn a_row_that_the_server_or_the_type_refuses_is_named_by_its_file_and_line() {
    let bench = Bench::new();
    let mut client = bench.client();
    for table in ["create table c (n bigint check (n > 0), at date)", "create table c (n smallint, at date)"]
    {
        client.batch_execute(&format!("drop table if exists c; {table}")).unwrap();
        let is_check = table.contains("check");
        for more in [&[][..], &["--sort-by", "at"]] {
            let error = match is_check {
                true => place_of_refusal(&bench, more),
                false => {
                    let file = bench.dir.path().join("wide.csv");
                    fs::write(&file, "n,at\n7,2024-01-03\n70000,2024-01-01\n2,2024-01-02\n").unwrap();
                    bench.load(&file, "c", &[&["--mode", "append"], more].concat()).fails(1)
                }
            };
            let place = if is_check { "b.csv, line 4" } else { "wide.csv, line 3" };
            assert!(error.contains(place), "{table} {more:?}: {error}");
            sawmill(["load", "forget", "--to", &bench.server.url(), "--table", "c"]).ok();
        }
    }
}
