//! Files with a wrong number in the footer, or pages that take too much memory: as much is read as can be, and the
//! rest is named.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

use super::view;
use crate::harness::{command, sawmill};
use crate::parquet_files::{below_a_group, one_text, raw_footer};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/damaged").join(name)
}

fn rows(path: &Path) -> Vec<Value> {
    let out = sawmill(["footer", "cat", path.to_str().unwrap()]).ok().out;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A row as NDJSON has it, which leaves null fields out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// The rows after a conversion to NDJSON.
fn converted(path: &Path) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("rows.ndjson");
    sawmill(["convert", path.to_str().unwrap(), "--out", out.to_str().unwrap()]).ok();
    let text = std::fs::read_to_string(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn files_with_an_impossible_dictionary_or_an_endless_page_index_are_read() {
    for name in ["dictionary_before_the_file.parquet", "endless_offset_index.parquet"] {
        let path = fixture(name);
        let shown = rows(&path);
        assert!(!shown.is_empty(), "{name}");
        assert_eq!(shown, converted(&path), "{name}");
        view(&path, &["--check"]).fails(1);
    }
}

/// pyarrow and DuckDB read the first file, and the column `id` of the others.
#[test]
fn a_negative_size_count_or_place_hides_one_fact_and_never_the_file() {
    let expected: Vec<Value> = (0..6).map(|id| json!({"id": id, "name": format!("n{}", id % 2)})).collect();
    let sizes = fixture("negative_sizes.parquet");
    assert_eq!((rows(&sizes), converted(&sizes)), (expected.clone(), expected.clone()));
    let found = view(&sizes, &["--check"]).fails(1);
    assert!(found.contains("are wrong"), "{found}");
    // Without its data_page_offset the chunk begins at its dictionary, and all values are there.
    let place = fixture("negative_place.parquet");
    assert_eq!((rows(&place), converted(&place)), (expected.clone(), expected.clone()));
    let found = view(&place, &["--check"]).out;
    view(&place, &["--check"]).fails(1);
    assert!(found.contains("expected a `data_page_offset` of at least 0, found -"), "{found}");
    // A column outside of lists has a value for each row, and a chunk ends where the next one starts.
    for name in ["negative_values.parquet", "negative_bytes.parquet"] {
        let path = fixture(name);
        view(&path, &["--chunks", "--row-groups"]).ok();
        view(&path, &["--check"]).fails(1);
        assert_eq!((rows(&path), converted(&path)), (expected.clone(), expected.clone()), "{name}");
    }
}

#[test]
fn a_number_of_rows_that_no_file_has_is_an_error() {
    let path = fixture("endless_rows.parquet").to_str().unwrap().to_owned();
    let error = sawmill(["convert", &path, "--as", "csv", "--out", "-"]).fails(1);
    assert!(error.contains("more than any file has") && error.contains("endless_rows.parquet"), "{error}");
}

/// `nation.dict-malformed.parquet` of apache/parquet-testing: `parquet-mr` before 1.2.9 counted the headers of
/// dictionaries in no size.
#[test]
fn chunks_without_the_size_of_their_dictionary_headers_are_read_whole_and_alone() {
    let path = fixture("short_dictionary_chunks.parquet");
    let shown = rows(&path);
    assert_eq!(shown.len(), 25);
    // The bytes of UNITED STATES: no column says that it has text.
    assert_eq!(shown[24]["name"], "554e4954454420535441544553");
    assert_eq!(shown, converted(&path));
    let name = path.to_str().unwrap();
    let alone = sawmill(["footer", "cat", name, "--column", "name"]).ok().out;
    assert_eq!(alone.lines().last(), Some(r#"{"name":"554e4954454420535441544553"}"#));
    view(&path, &["--page-headers"]).ok();
    sawmill(["footer", "dictionary", name, "--column", "comment_col"]).ok();
}

/// `repeated_no_annotation.parquet` of apache/parquet-testing: the file counts no rows, its row group six.
#[test]
fn rows_are_those_of_the_row_groups_whatever_the_file_counts() {
    let path = fixture("rows_of_groups_alone.parquet");
    let shown = rows(&path);
    assert_eq!(shown.len(), 6);
    assert_eq!(shown[5]["phoneNumbers"]["phone"][2]["kind"], "mobile");
    assert_eq!(shown.into_iter().map(without_nulls).collect::<Vec<_>>(), converted(&path));
    view(&path, &["--check"]).fails(1);
}

#[test]
fn columns_that_cannot_be_read_are_named_with_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("codec.parquet");
    raw_footer(&path, 1, 2, "codec");
    let name = path.to_str().unwrap();
    let error = sawmill(["footer", "head", name]).fails(1);
    for part in ["1 column cannot be read", "`c1`", "expected a codec of the format", "--column"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    let out = dir.path().join("out.ndjson");
    let error = sawmill(["convert", name, "--out", out.to_str().unwrap()]).fails(1);
    for part in ["column \"c1\" cannot be read", "expected a codec of the format", "--columns"] {
        assert!(error.contains(part), "{part} in {error}");
    }
    sawmill(["convert", name, "--columns", "c0", "--out", out.to_str().unwrap(), "--explain"]).ok();
}

#[test]
fn enums_are_text_at_the_top_and_within_lists() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("enums.parquet");
    let schema = "message m {
        required binary priority (ENUM);
        required group tags (LIST) { repeated group list { required binary element (ENUM); } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::new());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for (values, levels) in [(["normal", "high"], None), (["a", "b"], Some([0, 0]))] {
        let mut column = group.next_column().unwrap().unwrap();
        let values = values.map(ByteArray::from);
        let defined = levels.map(|_| [1, 1]);
        let (defined, levels) = (defined.as_ref().map(|of| &of[..]), levels.as_ref().map(|of| &of[..]));
        column.typed::<ByteArrayType>().write_batch(&values, defined, levels).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let expected = [json!({"priority": "normal", "tags": ["a"]}), json!({"priority": "high", "tags": ["b"]})];
    assert_eq!(rows(&path), expected);
    assert_eq!(converted(&path), expected);
}

#[test]
fn a_value_larger_than_the_largest_page_is_read_only_if_that_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.parquet");
    one_text(&path, 3 << 20);
    let (name, out) = (path.to_str().unwrap(), dir.path().join("out.ndjson"));
    let commands: [&[&str]; 2] =
        [&["footer", "head", name], &["convert", name, "--overwrite", "--out", out.to_str().unwrap()]];
    for arguments in commands {
        sawmill(arguments).ok();
        sawmill([arguments, &["--max-page", "4MiB"]].concat()).ok();
        let error = sawmill([arguments, &["--max-page", "1MiB"]].concat()).fails(1);
        for part in ["large.parquet", "row group 0", "expected pages of at most 1048576 bytes", "--max-page"]
        {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn levels_that_are_cut_short_are_an_error_of_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("levels.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..200));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers, true)]).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let mut bytes = writer.into_inner().unwrap();
    // Three bytes of levels: a run of 200 times 1; the page takes one.
    let run = [3, 0, 0, 0, 0x90, 3, 1];
    let at = bytes.windows(run.len()).position(|bytes| bytes == run).unwrap();
    bytes[at + 4] = 0x8e;
    std::fs::write(&path, bytes).unwrap();
    let (name, out) = (path.to_str().unwrap(), dir.path().join("out.ndjson"));
    let commands: [&[&str]; 3] = [
        &["footer", "head", name],
        &["footer", "cat", name],
        &["convert", name, "--out", out.to_str().unwrap()],
    ];
    for arguments in commands {
        let error = sawmill(arguments).fails(1);
        let parts = ["levels.parquet", "row group 0", "page 0", "expected 200 definition levels, found 199"];
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let ran = sawmill(["footer", name, "--check", "--pages"]);
    let found = "expected 200 definition levels, found 199 - page 0, byte 4 of the file - row_groups[0].columns[0], pages";
    assert!(ran.out.contains(found), "{}", ran.out);
    ran.fails(1);
    sawmill(["footer", name, "--check"]).ok();
}

/// A text of 60 MiB that has six times as many bytes in JSON; and a row of 400 times a text of a megabyte, which is
/// stored once.
#[cfg(target_os = "linux")]
#[test]
fn rows_of_escapes_and_of_repeated_text_are_shown_or_refused_in_a_gigabyte_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [escapes, repeated] = ["escapes.parquet", "repeated.parquet"].map(|name| dir.path().join(name));
    let len = 60 << 20;
    let text: ArrayRef = Arc::new(StringArray::from(vec!["\u{1}".repeat(len)]));
    let batch = RecordBatch::try_from_iter([("text", text)]).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let file = File::create(&escapes).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let schema = "message m {
        required group tags (LIST) { repeated group list { required binary element (STRING); } }
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_dictionary_page_size_limit(4 << 20).build());
    let mut writer = SerializedFileWriter::new(File::create(&repeated).unwrap(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = vec![ByteArray::from(vec![b'x'; 1_000_000]); 400];
    let levels: Vec<i16> = (0..400).map(|place| i16::from(place > 0)).collect();
    column.typed::<ByteArrayType>().write_batch(&values, Some(&[1; 400]), Some(&levels)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let program = command(["footer"]).get_program().to_owned();
    let limited = |script: &str, path: &Path| {
        let script = format!("ulimit -v 1048576; {script}");
        std::process::Command::new("sh").args(["-c", &script]).arg(&program).arg(path).output().unwrap()
    };
    let ran = limited("\"$0\" footer head \"$1\" | wc -c", &escapes);
    let expected = r#"{"text":""}"#.len() + 1 + 6 * len;
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), expected.to_string(), "{ran:?}");
    for script in ["exec \"$0\" footer head \"$1\"", "exec \"$0\" footer cat \"$1\""] {
        let ran = limited(script, &repeated);
        let error = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{error}");
        let what = "expected rows of at most 134217728 bytes in a list, found one that may take 400000000";
        for part in ["repeated.parquet", "row group 0", "tags.list.element", ", row 0", what, "--max-page"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

/// Files of some kilobytes whose rows take more than a gigabyte together: NULLs in a column of wide values and in lists,
/// texts that share prefixes or come again from a dictionary; and values of two gigabytes each.
#[cfg(target_os = "linux")]
#[test]
fn rows_that_are_hardly_stored_are_read_in_a_gigabyte_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.parquet");
    let program = command(["footer"]).get_program().to_owned();
    let limited = |args: &[&str], name: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(&program).args(args);
        shell.arg(fixture(name)).output().unwrap()
    };
    for name in ["wide_nulls", "lists_of_nulls", "shared_prefixes", "repeated_text"] {
        let ran = limited(&["convert", "--parse-only"], &format!("{name}.parquet"));
        assert!(ran.status.success(), "{name}: {ran:?}");
    }
    for name in ["empty_texts", "empty_text_pages"] {
        let ran = limited(&["convert", "--parse-only"], &format!("{name}.parquet"));
        let error = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{error}");
        assert!(error.contains("largest pages of all columns") && error.contains(name), "{error}");
    }
    let ran = limited(&["convert", "--out", out.to_str().unwrap()], "repeated_text.parquet");
    assert!(ran.status.success(), "{ran:?}");
    for args in [&["footer", "head"][..], &["convert", "--parse-only"]] {
        let ran = limited(args, "endless_values.parquet");
        let error = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{error}");
        let what = "expected values of at most 67108864 bytes, found a column of 2147483647";
        for part in [what, "endless_values.parquet", "c0", "--max-page"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}

/// 100 columns whose page of zeros, each some kilobytes, takes 60 MiB.
#[cfg(target_os = "linux")]
#[test]
fn pages_that_are_hardly_stored_end_no_command_in_a_gigabyte_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bomb.parquet");
    crate::parquet_files::zeros(&path, 100, 60 << 20);
    assert!(path.metadata().unwrap().len() < 1 << 20);
    let (name, out) = (path.to_str().unwrap(), dir.path().join("out.ndjson"));
    let program = command(["footer"]).get_program().to_owned();
    let commands: [&[&str]; 2] =
        [&["footer", "head", name], &["convert", name, "--out", out.to_str().unwrap()]];
    for arguments in commands {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(&program).args(arguments);
        let ran = shell.output().unwrap();
        let error = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{error}");
        assert!(error.contains("largest pages of all columns") && error.contains("--max-page"), "{error}");
    }
}

/// 4,000 columns below a group whose name takes 350 kB: their paths take 1.4 GB.
#[cfg(target_os = "linux")]
#[test]
fn a_long_name_of_a_group_takes_no_gigabyte_of_memory_or_output() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.parquet");
    below_a_group(&path, &"g".repeat(350_000), 4_000);
    let program = command(["footer"]).get_program().to_owned();
    let ran = |args: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(&program).args(args).arg(&path);
        shell.output().unwrap()
    };
    for args in [&["footer", "check"][..], &["footer", "check", "--json"]] {
        let checked = ran(args);
        assert_eq!(checked.status.code(), Some(1), "{:?}", checked.stderr);
        assert!(checked.stdout.len() < 16 << 20, "{} bytes", checked.stdout.len());
    }
    for args in [&["footer", "head"][..], &["convert", "--parse-only"]] {
        let error = String::from_utf8_lossy(&ran(args).stderr).into_owned();
        assert!(error.contains("their groups have long names") && error.contains("long.parquet"), "{error}");
    }
}

/// Whether the file is a footer alone takes a walk over all of its chunks.
#[test]
fn the_pages_of_a_footer_alone_with_many_row_groups_are_refused_once() {
    let dir = tempfile::tempdir().unwrap();
    let (path, alone) = (dir.path().join("groups.parquet"), dir.path().join("footer.parquet"));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..12_000));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), Some(properties)).unwrap();
    for row in 0..batch.num_rows() {
        writer.write(&batch.slice(row, 1)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    sawmill(["footer", "extract", path.to_str().unwrap(), alone.to_str().unwrap()]).ok();
    let begun = std::time::Instant::now();
    for flag in ["--data-pages", "--page-headers"] {
        let error = view(&alone, &[flag, "--json"]).fails(1);
        assert!(error.contains("found a footer alone"), "{flag}: {error}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(40), "{:?}", begun.elapsed());
}

/// Specs, samples, plans and lines of JSON of less than a megabyte whose rows take gigabytes.
#[cfg(target_os = "linux")]
#[test]
fn inputs_of_a_megabyte_end_no_command_in_a_gigabyte_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let program = command(["footer"]).get_program().to_owned();
    let ran = |arguments: &[&str]| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -v 1048576; exec \"$0\" \"$@\""]).arg(&program).args(arguments);
        let ran = shell.output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let field = |name: &str, values: &str| {
        format!("[[fields]]\nname = \"{name}\"\ntype = \"string\"\nvalues = {{ {values} }}\n")
    };
    let long = field("a", &format!("choice = [\"{}\"]", "x".repeat(900_000)));
    let formula = field("b", "expression = \"upper(a)\"");
    std::fs::write(at("long.toml"), format!("name = \"t\"\n{long}")).unwrap();
    std::fs::write(at("formula.toml"), format!("name = \"t\"\n{long}{formula}")).unwrap();
    let many: String = (0..7000).map(|i| field(&format!("f{i}"), "constant = \"x\"")).collect();
    std::fs::write(at("many.toml"), format!("name = \"t\"\n{many}")).unwrap();
    for name in ["long", "many"] {
        let spec = at(&format!("{name}.toml"));
        let plan =
            format!("rate = 10\nfor = \"1s\"\n[tables.t]\nspec = {spec:?}\n[[operations]]\ninsert = \"t\"\n");
        std::fs::write(at(&format!("{name}.plan.toml")), plan).unwrap();
    }
    let operations = "[[operations]]\ninsert = \"t\"\n".repeat(30_000);
    std::fs::write(at("operations.toml"), format!("[tables.t]\nspec = \"events\"\n{operations}")).unwrap();
    let names: Vec<String> = (0..100_000).map(|i| format!("c{i}")).collect();
    std::fs::write(at("wide.csv"), format!("{}\n{}\n", names.join(","), ["1"; 100_000].join(","))).unwrap();
    let keys: Vec<String> = (0..9_999).map(|i| format!("\"k{i}\":{i}")).collect();
    std::fs::write(at("keys.ndjson"), format!("{{{}}}\n{}", keys.join(","), "{\"k1\":1}\n".repeat(4_200)))
        .unwrap();
    let many_texts: String =
        (0..1000).map(|i| field(&format!("t{i}"), "text = { length = { constant = 1_048_576 } }")).collect();
    std::fs::write(at("texts.toml"), format!("name = \"t\"\n{many_texts}")).unwrap();
    let unique = field("u", &format!("unique = \"{}{{id}}\"", "x".repeat(900_000)));
    std::fs::write(at("unique.toml"), format!("name = \"t\"\nrows = 3000\n{unique}")).unwrap();
    let patterns: Vec<String> = (0..20_000).map(|i| format!("'{i:05}[0-9]{{4}}' = 3")).collect();
    let patterns = field("p", &format!("pattern = {{ unique = {{ {} }} }}", patterns.join(", ")));
    std::fs::write(at("patterns.toml"), format!("name = \"t\"\nrows = 10\n{patterns}")).unwrap();
    let cells: Vec<String> = (0..9_000).map(|i| format!("\"k{i}\":{i}")).collect();
    std::fs::write(at("cells.ndjson"), format!("{{{}}}\n", cells.join(",")).repeat(8)).unwrap();
    for arguments in [
        &["gen", "explain", &at("unique.toml")][..],
        &["gen", &at("unique.toml"), "--rows", "20", "--out", &at("unique")],
        &["gen", "spec", "--like", &at("cells.ndjson")],
    ] {
        let (code, error) = ran(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {error}");
    }
    let done = ran(&["convert", &at("keys.ndjson"), "--parse-only"]);
    assert_eq!(done.0, Some(0), "{}", done.1);
    for (arguments, named) in [
        (&["gen", &at("formula.toml"), "--rows", "10k", "--out", &at("out")][..], "field b"),
        (&["gen", &at("texts.toml"), "--rows", "1", "--out", &at("out")], "rows of more than"),
        (&["gen", "explain", &at("texts.toml")], "rows of more than"),
        (&["gen", &at("patterns.toml"), "--out", &at("out")], "20000 unique patterns"),
        (&["gen", "--like", &at("wide.csv"), "--rows", "10", "--out", &at("out")], "c20000"),
        (&["drive", &at("long.plan.toml"), "--to", "null"], "field a"),
        (&["drive", &at("many.plan.toml"), "--to", "null"], "field f1598"),
        (&["drive", &at("operations.toml"), "--to", "null"], "30000 operations"),
    ] {
        let (code, error) = ran(arguments);
        assert!(matches!(code, Some(1 | 2)) && error.contains(named), "{arguments:?}: {code:?} {error}");
        assert!(!error.contains("memory allocation"), "{arguments:?}: {error}");
    }
}
