//! `sawmill convert`: CSV to Parquet and back, and to NDJSON.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, DurationSecondArray, FixedSizeBinaryArray, Int64Array, RecordBatch,
    StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ConvertedType, LogicalType};
use parquet::data_type::{Int32Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;

use crate::harness::{names, peak, sawmill, start, wait};

const TEXT: &str = "id,fare,paid,at,note\n\
1,2.5,true,2024-03-01T10:00:00,\"a,b\"\n\
2,,false,,\"two\nlines \"\"quoted\"\"\"\n\
3,-1,,2024-03-02T00:00:00.25,\n\
4,1e300,true,2024-03-03T23:59:59,\"\"\n";

fn convert(from: &Path, to: &Path, more: &[&str]) -> crate::harness::Ran {
    sawmill([&["convert", from.to_str().unwrap(), "--out", to.to_str().unwrap()], more].concat())
}

#[test]
fn csv_to_parquet_and_back_gives_the_same_text_and_other_readers_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), TEXT).unwrap();
    let told = convert(&at("a.csv"), &at("a.parquet"), &["--compression", "zstd", "--json"]).ok().json();
    assert_eq!(told["rows"], 4);
    convert(&at("a.parquet"), &at("b.csv"), &[]).ok();
    assert_eq!(
        fs::read_to_string(at("b.csv")).unwrap(),
        TEXT.replace("-1,", "-1.0,").replace(".25,", ".250,")
    );
    convert(&at("a.parquet"), &at("a.ndjson"), &[]).ok();
    let lines = fs::read_to_string(at("a.ndjson")).unwrap();
    let second: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["note"], "two\nlines \"quoted\"");
    assert_eq!(names(dir.path()), ["a.csv", "a.ndjson", "a.parquet", "b.csv"]);
    let python = std::env::var("SAWMILL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = "import sys, pyarrow.parquet as p; t = p.read_table(sys.argv[1]); \
                  print(t['note'].to_pylist(), t['fare'].to_pylist(), t['id'].type, t['note'].type)";
    let ran = Command::new(&python).args(["-c", script, at("a.parquet").to_str().unwrap()]).output().unwrap();
    if !ran.status.success() {
        println!("skipped: {python} has no pyarrow; name one that has in SAWMILL_PYTHON");
        return;
    }
    let read = String::from_utf8(ran.stdout).unwrap();
    let expected = "['a,b', 'two\\nlines \"quoted\"', None, ''] [2.5, None, -1.0, 1e+300] int64 string";
    assert_eq!(read.trim(), expected);
}

/// The annotations of the leaves of a file.
fn annotations(file: &Path) -> Vec<(ConvertedType, Option<LogicalType>)> {
    let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
    let leaves = reader.metadata().file_metadata().schema_descr_ptr();
    leaves.columns().iter().map(|leaf| (leaf.converted_type(), leaf.logical_type_ref().cloned())).collect()
}

#[test]
fn parquet_to_parquet_keeps_annotations_that_arrow_has_no_types_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let schema = "message m { required fixed_len_byte_array(16) u (UUID); required binary j (JSON); \
                  required binary e (ENUM); required fixed_len_byte_array(12) i (INTERVAL); \
                  required group l (LIST) { repeated group list { optional binary element (JSON); } } \
                  required int64 t (TIME(MICROS,true)); required int64 w (TIME(MICROS,false)); }";
    let schema = SchemaDescriptor::new(Arc::new(parse_message_type(schema).unwrap()));
    let fixed = |bytes: &[u8]| FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).unwrap();
    let mut list = ListBuilder::new(BinaryBuilder::new());
    list.values().append_value("{\"a\": 1}");
    list.append(true);
    let time = || Arc::new(Time64MicrosecondArray::from(vec![1]));
    let columns: [(&str, ArrayRef); 7] = [
        ("u", Arc::new(fixed(&[7; 16]))),
        ("j", Arc::new(BinaryArray::from(vec![b"[1, 2]".as_slice()]))),
        ("e", Arc::new(BinaryArray::from(vec![b"red".as_slice()]))),
        ("i", Arc::new(fixed(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]))),
        ("l", Arc::new(list.finish())),
        ("t", time()),
        ("w", time()),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let options = ArrowWriterOptions::new().with_parquet_schema(schema).with_skip_arrow_metadata(true);
    let file = fs::File::create(at("a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut lines = Vec::new();
    for (from, to) in [("a", "b"), ("b", "c")] {
        convert(&at(&format!("{from}.parquet")), &at(&format!("{to}.parquet")), &[]).ok();
        assert_eq!(annotations(&at(&format!("{from}.parquet"))), annotations(&at(&format!("{to}.parquet"))));
        let json = at(&format!("{to}.ndjson"));
        convert(&at(&format!("{to}.parquet")), &json, &[]).ok();
        lines.push(fs::read_to_string(json).unwrap());
    }
    assert_eq!(lines[0], lines[1]);
    assert!(annotations(&at("c.parquet")).contains(&(ConvertedType::NONE, Some(LogicalType::Uuid))));
}

#[test]
fn a_delimiter_that_all_records_fit_need_not_be_given() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let as_csv = "a,b\n1,x\n2,\"y;,\"\n";
    for (name, text) in [
        ("semicolon.csv", "a;b\n1;x\n2;\"y;,\"\n"),
        ("tab.csv", "a\tb\n1\tx\n2\t\"y;,\"\n"),
        ("bar.txt", "a|b\n1|x\n2|\"y;,\"\n"),
    ] {
        fs::write(at(name), text).unwrap();
        convert(&at(name), &at("out.csv"), &["--format", "csv", "--overwrite"]).ok();
        assert_eq!(fs::read_to_string(at("out.csv")).unwrap(), as_csv, "{name}");
    }
    fs::write(at("semicolon.csv"), "a;b\n1;x\n2;y;z\n").unwrap();
    let error = convert(&at("semicolon.csv"), &at("out.csv"), &["--overwrite"]).fails(1);
    assert!(error.contains("--delimiter ';'"), "{error}");
}

#[test]
fn many_rows_keep_their_order_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut text = "id\n".to_owned();
    (0..300_000).for_each(|id| text += &format!("{id}\n"));
    fs::write(at("a.csv"), &text).unwrap();
    convert(&at("a.csv"), &at("a.parquet"), &["--row-group-rows", "100k", "--threads", "3"]).ok();
    convert(&at("a.parquet"), &at("b.csv"), &["--threads", "4"]).ok();
    assert!(fs::read_to_string(at("b.csv")).unwrap() == text, "the same rows in the same order");
    let piped =
        sawmill(["convert", at("a.parquet").to_str().unwrap(), "--as", "csv", "--out", "-", "--rows", "2"]);
    assert_eq!(piped.ok().out, "id\n0\n1\n");
}

#[test]
fn nothing_is_overwritten_or_left_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), "a,b\n1,2\n").unwrap();
    fs::write(at("there.parquet"), "mine").unwrap();
    assert!(convert(&at("a.csv"), &at("there.parquet"), &[]).fails(2).contains("--overwrite"));
    assert_eq!(fs::read_to_string(at("there.parquet")).unwrap(), "mine");
    convert(&at("a.csv"), &at("there.parquet"), &["--overwrite"]).ok();
    fs::hard_link(at("a.csv"), at("c.csv")).unwrap();
    for input in ["a.csv", "c.csv"] {
        let error = convert(&at("a.csv"), &at(input), &["--overwrite"]).fails(2);
        assert!(error.contains("one of the inputs"), "{error}");
    }
    fs::remove_file(at("c.csv")).unwrap();
    assert!(convert(&at("a.csv"), Path::new("-"), &["--as", "parquet"]).fails(2).contains("standard output"));
    assert!(convert(&at("a.csv"), &at("a.x"), &[]).fails(2).contains("--as"));
    fs::write(at("wrong.csv"), "a,b\n1,2\n3\n").unwrap();
    let error = convert(&at("wrong.csv"), &at("b.csv"), &[]).fails(1);
    assert!(error.contains("wrong.csv, line 3"), "{error}");
    assert_eq!(names(dir.path()), ["a.csv", "there.parquet", "wrong.csv"]);
}

/// A conversion neither continues a load nor has a table.
#[test]
fn files_that_change_or_differ_are_errors_with_advice_for_a_conversion() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let lines: String = (0..500_000).map(|n| format!("{n}\n")).collect();
    fs::write(at("a.csv"), format!("id\n{lines}")).unwrap();
    let mut child = start(["convert", at("a.csv").to_str().unwrap(), "--as", "ndjson", "--out", "-"]);
    // Once its output has begun, it waits for the reader.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    fs::OpenOptions::new().append(true).open(at("a.csv")).unwrap().write_all(b"7\n").unwrap();
    let error = wait(child).fails(1);
    assert!(error.contains("changed") && error.contains("it reads the file as it is now"), "{error}");
    assert!(!error.contains("forget"), "{error}");
    fs::write(at("b.csv"), "id,name\n1,x\n").unwrap();
    fs::write(at("c.csv"), "id\n1\n").unwrap();
    let inputs = [at("c.csv"), at("b.csv")].map(|path| path.to_str().unwrap().to_owned());
    let error =
        sawmill(["convert", &inputs[0], &inputs[1], "--out", at("d.parquet").to_str().unwrap()]).fails(1);
    assert!(error.contains("convert files with different columns separately"), "{error}");
    assert!(error.contains("--no-header") && !error.contains("table"), "{error}");
}

#[test]
fn a_file_with_rows_and_no_columns_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("none.parquet"), dir.path().join("out.parquet"));
    // Version 1, a root without fields, two rows in a row group without column chunks.
    let footer = b"\x15\x02\x19\x1c\x48\x04root\x15\0\0\x16\x04\x19\x1c\x19\x0c\x16\0\x16\x04\0\0";
    fs::write(&from, [&b"PAR1"[..], footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()).unwrap();
    let error = convert(&from, &to, &[]).fails(1);
    assert!(error.contains("has rows and no columns") && error.contains("none.parquet"), "{error}");
    assert!(!to.exists());
}

#[test]
fn all_rows_are_parsed_without_writing_them() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut text = "id,fare,note\n".to_owned();
    (0..200_000).for_each(|id| text += &format!("{id},{}.5,x\n", id % 7));
    fs::write(at("a.csv"), &text).unwrap();
    let parse =
        |more: &[&str]| sawmill([&["convert", at("a.csv").to_str().unwrap(), "--parse-only"], more].concat());
    let json = parse(&["--json"]).ok().json();
    assert_eq!(json["rows"], 200_000);
    let fares: f64 = (0..200_000).map(|id| f64::from(id % 7) + 0.5).sum();
    let sums = json["sums"].as_array().unwrap();
    assert_eq!((&sums[0]["column"], &sums[0]["sum"]), (&"id".into(), &19_999_900_000_u64.into()));
    assert_eq!((&sums[1]["column"], sums[1]["sum"].as_f64()), (&"fare".into(), Some(fares)));
    assert_eq!(sums.len(), 2);
    assert!(
        parse(&["--columns", "fare", "--threads", "1"]).ok().out.contains(&format!("sum of fare: {fares}"))
    );
    fs::write(at("a.csv"), text.replace("\n199999,2.5,", "\n199999,soon,")).unwrap();
    assert!(parse(&["--types", "fare=float64"]).fails(1).contains("line 200001"));
    assert!(parse(&["--out", "b.csv"]).fails(2).contains("--out"));
    assert!(sawmill(["convert", at("a.csv").to_str().unwrap()]).fails(2).contains("--out"));
    assert_eq!(names(dir.path()), ["a.csv"]);
}

#[test]
fn lines_that_cannot_be_read_go_to_the_file_of_rejects() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), "id,fare\n1,2.5\n2,soon\n3\n4,1.5\n").unwrap();
    let types = ["--types", "fare=float64", "--rejects"];
    let bad = at("bad.csv").to_str().unwrap().to_owned();
    let told = convert(&at("a.csv"), &at("b.csv"), &[&types[..], &[&bad, "--json"]].concat()).ok().json();
    assert_eq!((&told["rows"], &told["records_left_out"]), (&2.into(), &2.into()));
    let csv = at("a.csv").to_str().unwrap().to_owned();
    let told =
        sawmill([&["convert", &csv, "--parse-only", "--json"], &types[..], &[&bad]].concat()).ok().json();
    assert_eq!((&told["rows"], &told["records_left_out"]), (&2.into(), &2.into()));
    let error = convert(&at("a.csv"), &at("c.csv"), &[types[2], "bad.parquet"]).fails(2);
    assert!(error.contains("written as text") && error.contains(".ndjson"), "{error}");
    assert_eq!(fs::read_to_string(at("b.csv")).unwrap(), "id,fare\n1,2.5\n4,1.5\n");
    let rejected = fs::read_to_string(at("bad.csv")).unwrap();
    for part in ["a.csv\",3,", "2,soon", "a.csv\",4,"] {
        assert!(rejected.contains(part), "{rejected}");
    }
    let few = [&types[..], &[&bad, "--max-rejects", "1", "--overwrite"]].concat();
    convert(&at("a.csv"), &at("b.csv"), &few).fails(1);
}

#[test]
fn a_directory_that_gen_has_not_completed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let out = at("made").to_str().unwrap().to_owned();
    sawmill(["gen", "orders", "--rows", "100", "--files", "2", "--out", &out]).ok();
    let manifest = at("made/_sawmill.orders.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"complete\": true", "\"complete\": false")).unwrap();
    let error = convert(&at("made"), &at("a.ndjson"), &[]).fails(1);
    assert!(
        error.contains("the folder is unfinished: gen of orders") && error.contains("--resume"),
        "{error}"
    );
    convert(&at("made/*.parquet"), &at("a.ndjson"), &[]).ok();
}

#[test]
fn a_text_for_null_that_would_break_the_lines_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), TEXT).unwrap();
    for text in ["n/a, unknown", "\"", "\n"] {
        let error = convert(&at("a.csv"), &at("b.csv"), &["--csv-null", text]).fails(2);
        assert!(error.contains("without commas, quotes and line breaks"), "{error}");
    }
}

#[test]
fn a_column_whose_name_has_a_comma_is_selected_in_quotes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), "\"a,b\",c,d\n1,2,3\n").unwrap();
    convert(&at("a.csv"), &at("b.csv"), &["--columns", "d,\"a,b\""]).ok();
    assert_eq!(fs::read_to_string(at("b.csv")).unwrap(), "d,\"a,b\"\n3,1\n");
    let error = convert(&at("a.csv"), &at("c.csv"), &["--columns", "a,b"]).fails(2);
    assert!(error.contains("there is no column \"a\"") && error.contains("--columns '\"a,b\"'"), "{error}");
}

#[test]
fn digits_that_are_cut_from_int96_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let schema =
        Arc::new(parse_message_type("message m { required int32 id; required int96 old; }").unwrap());
    let file = fs::File::create(at("a.parquet")).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[1], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let mut value = Int96::new();
    value.set_data(123_456_789, 0, 2_440_588);
    column.typed::<Int96Type>().write_batch(&[value], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let told = convert(&at("a.parquet"), &at("b.csv"), &[]).ok().err;
    assert!(told.contains("column \"old\": INT96 timestamps are read in microseconds"), "{told}");
    assert!(fs::read_to_string(at("b.csv")).unwrap().contains("00:00:00.123456\n"));
    let told = convert(&at("a.parquet"), &at("c.csv"), &["--columns", "id"]).ok().err;
    assert!(!told.contains("INT96"), "{told}");
}

/// Returns the lines of all files of a directory, in the order of their names.
fn lines_of(directory: &Path) -> Vec<String> {
    let text = names(directory).into_iter().map(|name| fs::read_to_string(directory.join(name)).unwrap());
    text.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_directory_has_files_of_about_the_size_asked_for_and_the_rows_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let rows = 200_000_u64;
    for (name, ids) in [("a.csv", 0..rows / 2), ("b.csv", rows / 2..rows)] {
        let lines: String = ids.map(|id| format!("{id},{}\n", id * 7919 % 1_000_003)).collect();
        fs::write(at(name), format!("id,n\n{lines}")).unwrap();
    }
    let sources = [at("a.csv"), at("b.csv")].map(|path| path.to_str().unwrap().to_owned());
    let out = at("parts");
    let run = |out: &Path, more: &[&str]| {
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        sawmill([&["convert"], &sources[..], &["--out", out.to_str().unwrap()], more].concat())
    };
    let told = run(&out, &["--file-size", "400kB", "--threads", "3", "--json"]).ok().json();
    let files = names(&out);
    assert!(files.len() > 4 && told["files_out"] == files.len(), "{files:?} {told}");
    assert_eq!(files[1], "part-00001.parquet");
    let sizes: Vec<u64> = files.iter().map(|name| fs::metadata(out.join(name)).unwrap().len()).collect();
    assert!(sizes.iter().rev().skip(1).all(|size| (300_000..600_000).contains(size)), "{sizes:?}");
    assert_eq!(told["bytes_out"], sizes.iter().sum::<u64>());
    // The same command makes the same files on any number of threads.
    run(&at("again"), &["--file-size", "400kB", "--threads", "1"]).ok();
    for name in &files {
        assert!(fs::read(out.join(name)).unwrap() == fs::read(at("again").join(name)).unwrap(), "{name}");
    }
    for format in ["csv", "ndjson"] {
        let text = at(format);
        let options = ["--as", format, "--file-size", "1MB"];
        sawmill(
            [&["convert", out.to_str().unwrap(), "--out", text.to_str().unwrap()], &options[..]].concat(),
        )
        .ok();
        assert!(names(&text).len() > 1 && names(&text)[0] == format!("part-00000.{format}"));
        let ids: Vec<u64> = lines_of(&text)
            .iter()
            .filter(|line| *line != "id,n")
            .map(|line| {
                let digits = line.trim_start_matches("{\"id\":");
                digits.split(',').next().unwrap().parse().unwrap()
            })
            .collect();
        assert!(ids.into_iter().eq(0..rows), "every row once, in the order of the inputs: {format}");
    }
}

#[test]
fn a_directory_is_whole_or_not_there_and_only_one_of_ours_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.csv"), "a,b\n1,2\n").unwrap();
    fs::write(at("empty.csv"), "a,b\n").unwrap();
    fs::write(at("wrong.csv"), format!("a,b\n{}3\n", "1,2\n".repeat(20_000))).unwrap();
    // A name with a trailing slash or without an extension is a directory; so is an existing, empty one.
    convert(&at("a.csv"), &at("x.y/"), &[]).ok();
    convert(&at("empty.csv"), &at("none"), &["--types", "a=int64,b=int64"]).ok();
    assert_eq!(names(&at("x.y")), ["part-00000.parquet"]);
    assert_eq!(names(&at("none")), ["part-00000.parquet"]);
    convert(&at("none"), &at("none.csv"), &[]).ok();
    assert_eq!(fs::read_to_string(at("none.csv")).unwrap(), "a,b\n");
    fs::create_dir(at("there.parquet")).unwrap();
    convert(&at("a.csv"), &at("there.parquet"), &["--as", "csv"]).ok();
    assert_eq!(fs::read_to_string(at("there.parquet/part-00000.csv")).unwrap(), "a,b\n1,2\n");
    // A failure leaves nothing, not even the files before it.
    let error = convert(&at("wrong.csv"), &at("bad"), &["--file-size", "1"]).fails(1);
    assert!(error.contains("wrong.csv, line 20002"), "{error}");
    assert!(!at("bad").exists());
    // An existing directory stays, unless --overwrite is given and all its files are ours.
    assert!(convert(&at("a.csv"), &at("none"), &[]).fails(2).contains("--overwrite replaces it"));
    convert(&at("a.csv"), &at("none"), &["--overwrite"]).ok();
    fs::write(at("none/mine.txt"), "mine").unwrap();
    assert!(convert(&at("a.csv"), &at("none"), &["--overwrite"]).fails(2).contains("other files"));
    assert!(convert(&at("a.csv"), Path::new("/"), &[]).fails(2).contains("no name"));
    let size = convert(&at("a.csv"), &at("one.parquet"), &["--file-size", "1MB"]).fails(2);
    assert!(size.contains("--file-size") && size.contains("ends with /"), "{size}");
    let left = ["a.csv", "empty.csv", "none", "none.csv", "there.parquet", "wrong.csv", "x.y"];
    assert_eq!(names(dir.path()), left);
}

#[test]
fn a_killed_conversion_leaves_no_directory_and_the_same_command_makes_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let lines: String = (0..400_000_u64).map(|id| format!("{id},{}\n", id * 7919 % 1_000_003)).collect();
    fs::write(at("a.csv"), format!("id,n\n{lines}")).unwrap();
    let (from, out) = (at("a.csv"), at("parts"));
    let args = ["convert", from.to_str().unwrap(), "--out", out.to_str().unwrap(), "--file-size", "100kB"];
    let mut killed = Command::new(env!("CARGO_BIN_EXE_sawmill")).args(args).spawn().unwrap();
    let begun = || {
        let left = names(dir.path()).into_iter().find(|name| name.ends_with(".partial"))?;
        names(&dir.path().join(left)).iter().any(|name| name == "part-00002.parquet").then_some(())
    };
    while begun().is_none() && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    killed.kill().unwrap();
    let was_killed = !killed.wait().unwrap().success();
    assert!(was_killed && !out.exists(), "killed while the third file was there");
    assert_eq!(sawmill(args.iter().copied().chain(["--json"])).ok().json()["rows"], 400_000);
    assert_eq!(names(dir.path()), ["a.csv", "parts"], "what the killed run had left is gone");
}

#[test]
fn columns_of_one_name_keep_their_values() {
    let dir = tempfile::tempdir().unwrap();
    let (file, copy) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    let fields = vec![Field::new("a", DataType::Int64, true), Field::new("a", DataType::Utf8, true)];
    let (ids, names): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["p", "q"])));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![ids, names]).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let csv =
        |file: &Path| sawmill(["convert", file.to_str().unwrap(), "--as", "csv", "--out", "-"]).ok().out;
    assert_eq!(csv(&file), "a,a\n1,p\n2,q\n");
    sawmill(["convert", file.to_str().unwrap(), "--out", copy.to_str().unwrap()]).ok();
    assert_eq!(csv(&copy), "a,a\n1,p\n2,q\n");
    let error = sawmill(["convert", file.to_str().unwrap(), "--as", "ndjson", "--out", "-"]).fails(2);
    assert!(error.contains("two columns have the name \"a\""), "{error}");
}

#[test]
fn values_without_a_text_are_errors_that_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    let columns: [(&str, ArrayRef); 3] = [
        ("lasts", Arc::new(DurationSecondArray::from(vec![1, 1 << 62]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![1, i64::MAX]))),
        ("day", Arc::new(Date32Array::from(vec![1, i32::MAX]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let file = file.to_str().unwrap();
    for column in ["lasts", "at", "day"] {
        let error = sawmill(["footer", "cat", file, "--column", column]).fails(1);
        assert!(error.contains(&format!("column {column}, row 1")), "{error}");
        for format in ["csv", "ndjson"] {
            let error =
                sawmill(["convert", file, "--columns", column, "--as", format, "--out", "-"]).fails(1);
            assert!(error.contains("cannot be written as text"), "{error}");
        }
    }
}

#[test]
fn intervals_of_files_of_ours_keep_their_months_in_every_view() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, file) = (dir.path().join("i.toml"), dir.path().join("i.parquet"));
    let text =
        "name = \"i\"\nfields = [{ name = \"w\", type = \"interval\", values.constant = \"2y 6mo 3d\" }]\n";
    fs::write(&spec, text).unwrap();
    sawmill(["gen", spec.to_str().unwrap(), "--rows", "1", "--out", file.to_str().unwrap()]).ok();
    let shown = sawmill(["footer", "head", file.to_str().unwrap()]).ok().out;
    assert_eq!(shown, "{\"w\":\"30 mons 3 days\"}\n");
    let converted = sawmill(["convert", file.to_str().unwrap(), "--as", "ndjson", "--out", "-"]).ok().out;
    assert_eq!(converted, shown);
}

#[test]
#[cfg(target_os = "linux")]
fn memory_follows_the_width_of_a_row_and_not_the_rows_of_a_row_group() {
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("wide.parquet"), dir.path().join("wide.csv"));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["\0".repeat(16 << 20)]));
    let batch = RecordBatch::try_from_iter([("text", text)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1)
        .build();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(&file).unwrap(), batch.schema(), Some(properties)).unwrap();
    // 640 MiB in one row group of some kilobytes.
    (0..40).for_each(|_| writer.write(&batch).unwrap());
    writer.close().unwrap();
    let mut child = start(["convert", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(child.id()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
    wait(child).ok();
    assert!(most < 480 << 20, "{} MiB", most >> 20);
}
