//! `sawmill footer`: each view on files of the generator and of the `parquet` crate's writer.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use serde_json::Value;

use crate::harness::{Ran, command, sawmill};
use crate::parquet_files::{many_columns, many_types, of_other_schema, raw_footer, with_names};

fn footer(path: &Path) -> Ran {
    sawmill(["footer".as_ref(), path.as_os_str()])
}

/// Runs `sawmill footer` on a file.
fn view(path: &Path, args: &[&str]) -> Ran {
    let path = path.to_str().unwrap();
    sawmill(["footer", path].iter().chain(args))
}

/// The `parquet` crate's reading of a file.
fn peer(path: &Path) -> parquet::file::metadata::ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&fs::File::open(path).unwrap()).unwrap()
}

fn contacts(dir: &Path, rows: &str, files: &str) {
    sawmill(["gen", "contacts", "--rows", rows, "--files", files, "--out", dir.to_str().unwrap()]).ok();
}

#[test]
fn a_table_for_people_and_figures_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    contacts(dir.path(), "300k", "2");
    let text = sawmill(["footer", out]).ok().out;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("file") && lines[0].contains("row groups"), "{text}");
    assert!(lines[2].contains("contacts-00000.parquet") && lines[2].contains("150,000"), "{text}");
    assert!(lines[4].starts_with("2 files") && lines[4].contains("300,000"), "{text}");
    assert!(text.contains("one schema, of 3 columns"), "{text}");
    let json = sawmill(["footer", out, "--json"]).ok().json();
    assert_eq!(json["files"][1]["rows"], 150_000);
    assert_eq!(json["files"][1]["row_groups"], 2);
    assert_eq!(json["files"][1]["columns"], 3);
    let size = fs::metadata(dir.path().join("contacts-00001.parquet")).unwrap().len();
    assert_eq!(json["files"][1]["file_bytes"], size);
    let compressed = json["files"][1]["compressed_bytes"].as_u64().unwrap();
    assert!(compressed < size && compressed > size / 2);
    assert!(json["files"][1]["created_by"].as_str().unwrap().starts_with("sawmill"));
    assert_eq!(json["dataset"]["rows"], 300_000);
    assert_eq!(json["dataset"]["schemas"].as_array().unwrap().len(), 1);
    assert_eq!(json["errors"], serde_json::json!([]));
}

#[test]
fn the_schema_reads_back_as_the_parquet_crate_has_it() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "10", "1");
    let typed = dir.path().join("types.parquet");
    many_types(&typed);
    for path in [dir.path().join("contacts-00000.parquet"), typed] {
        let json = view(&path, &["--schema", "--json"]).ok().json();
        let schema = &json["files"][0]["views"]["schema"];
        let text = schema["message_type"].as_str().unwrap();
        let parsed = SchemaDescriptor::new(parse_message_type(text).unwrap().into());
        let expected = peer(&path);
        let expected = expected.file_metadata().schema_descr();
        assert_eq!(parsed.num_columns(), expected.num_columns());
        for (ours, theirs) in parsed.columns().iter().zip(expected.columns()) {
            assert_eq!(ours.path(), theirs.path());
            assert_eq!(ours.physical_type(), theirs.physical_type());
            assert_eq!(ours.logical_type_ref(), theirs.logical_type_ref(), "{}", ours.path());
            assert_eq!(
                (ours.max_def_level(), ours.max_rep_level()),
                (theirs.max_def_level(), theirs.max_rep_level())
            );
        }
        let leaves: Vec<&Value> = schema["elements"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|element| !element["column"].is_null())
            .collect();
        for (ours, theirs) in leaves.iter().zip(expected.columns()) {
            assert_eq!(ours["path"], theirs.path().string());
            assert_eq!(ours["physical_type"], theirs.physical_type().to_string());
            assert_eq!(ours["max_definition_level"], theirs.max_def_level());
        }
        // The text for people starts with the same, and has a line for each element in its tree.
        let shown = view(&path, &["--schema"]).ok().out;
        assert!(shown.starts_with(text), "{shown}");
        let tree = shown[text.len()..].lines().filter(|line| !line.is_empty()).count();
        assert_eq!(tree, schema["elements"].as_array().unwrap().len(), "{shown}");
    }
}

#[test]
fn row_groups_columns_and_statistics_are_as_the_parquet_crate_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let typed = dir.path().join("types.parquet");
    many_types(&typed);
    for path in [dir.path().join("contacts-00000.parquet"), typed] {
        let json =
            view(&path, &["--row-groups", "--columns", "--statistics", "--key-value", "--json"]).ok().json();
        let views = &json["files"][0]["views"];
        let expected = peer(&path);
        let file = expected.file_metadata();
        assert_eq!(json["files"][0]["version"], file.version());
        for (i, pair) in file.key_value_metadata().into_iter().flatten().enumerate() {
            assert_eq!(views["key_value"][i]["key"], pair.key.as_str());
            assert_eq!(views["key_value"][i]["value"].as_str(), pair.value.as_deref());
        }
        let mut at = 0;
        for (g, group) in expected.row_groups().iter().enumerate() {
            let ours = &views["row_groups"][g];
            assert_eq!(ours["rows"], group.num_rows());
            assert_eq!(ours["total_byte_size"], group.total_byte_size());
            assert_eq!(ours["compressed_bytes"], group.compressed_size());
            for (c, theirs) in group.columns().iter().enumerate() {
                let ours = &views["columns"][at];
                assert_eq!((&ours["row_group"], &ours["column"]), (&Value::from(g), &Value::from(c)));
                assert_eq!(ours["path"], theirs.column_path().string());
                assert_eq!(ours["num_values"], theirs.num_values());
                assert_eq!(ours["compressed_bytes"], theirs.compressed_size());
                assert_eq!(ours["uncompressed_bytes"], theirs.uncompressed_size());
                assert_eq!(ours["data_page_offset"], theirs.data_page_offset());
                assert_eq!(ours["dictionary_page_offset"].as_i64(), theirs.dictionary_page_offset());
                assert_eq!(ours["column_index_offset"].as_i64(), theirs.column_index_offset());
                assert_eq!(ours["offset_index_offset"].as_i64(), theirs.offset_index_offset());
                assert_eq!(ours["bloom_filter_offset"].as_i64(), theirs.bloom_filter_offset());
                let encodings: Vec<&str> =
                    ours["encodings"].as_array().unwrap().iter().map(|e| e.as_str().unwrap()).collect();
                assert_eq!(encodings.len(), theirs.encodings().count());
                for encoding in theirs.encodings() {
                    assert!(encodings.contains(&encoding.to_string().as_str()), "{encoding} {encodings:?}");
                }
                let ours = &views["statistics"][at]["statistics"];
                let theirs = theirs.statistics();
                assert_eq!(ours["null_count"].as_u64(), theirs.and_then(|s| s.null_count_opt()));
                assert_eq!(ours["min"].is_null(), theirs.and_then(|s| s.min_bytes_opt()).is_none());
                at += 1;
            }
        }
        assert_eq!(views["columns"].as_array().unwrap().len(), at);
        assert_eq!(views["statistics"].as_array().unwrap().len(), at);
    }
}

#[test]
fn bounds_are_shown_as_people_read_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    let json = view(&path, &["--statistics", "--json"]).ok().json();
    let chunks = json["files"][0]["views"]["statistics"].as_array().unwrap();
    let bounds = |name: &str| {
        let chunk = chunks.iter().find(|chunk| chunk["path"] == name && chunk["row_group"] == 0).unwrap();
        (chunk["statistics"]["min"].clone(), chunk["statistics"]["max"].clone())
    };
    let text = |min: &str, max: &str| (Value::from(min), Value::from(max));
    assert_eq!(bounds("int"), (Value::from(-5), Value::from(7)));
    assert_eq!(bounds("unsigned"), (Value::from(0), Value::from(u64::MAX)));
    assert_eq!(bounds("double"), (Value::from(-0.25), Value::from(1e300)));
    assert_eq!(bounds("bool"), (Value::from(false), Value::from(true)));
    assert_eq!(bounds("text"), text("", "zoë"));
    assert_eq!(bounds("date"), text("1969-12-31", "2024-02-29"));
    assert_eq!(bounds("instant"), text("1969-12-31T23:59:59.999999Z", "2024-02-29T12:34:56Z"));
    assert_eq!(bounds("time"), text("00:00:00", "12:34:56.789"));
    assert_eq!(bounds("decimal"), text("-0.05", "1234567890123456789012345.67"));
    assert_eq!(bounds("binary"), text("0x00ff", "0xdeadbeef"));
    assert_eq!(bounds("nothing"), (Value::Null, Value::Null));
    let shown = view(&path, &["--statistics"]).ok().out;
    for expected in ["\"\"", "\"zoë\"", "2024-02-29T12:34:56Z", "-0.05", "0xdeadbeef", "18,446"] {
        assert_eq!(shown.contains(expected), expected != "18,446", "{expected} in {shown}");
    }
    // A long value is clipped, marked as cut short by its writer, and whole with -v.
    assert!(shown.contains("… (") && shown.contains('~'), "{shown}");
    assert!(!view(&path, &["--statistics", "-v"]).ok().out.contains('…'));
}

#[test]
fn page_indexes_are_as_the_parquet_crate_reads_them() {
    use parquet::file::metadata::PageIndexPolicy;
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let expected = reader.parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    let json = view(&path, &["--page-index", "--json"]).ok().json();
    let chunks = json["files"][0]["views"]["page_index"].as_array().unwrap();
    assert_eq!(chunks.len(), 2 * 3);
    for chunk in chunks {
        let (g, c) =
            (chunk["row_group"].as_u64().unwrap() as usize, chunk["column"].as_u64().unwrap() as usize);
        let places = expected.offset_index().unwrap()[g][c].page_locations();
        let pages = chunk["pages"].as_array().unwrap();
        assert_eq!(pages.len(), places.len());
        for (page, place) in pages.iter().zip(places) {
            assert_eq!(page["offset"], place.offset);
            assert_eq!(page["compressed_bytes"], place.compressed_page_size);
            assert_eq!(page["first_row"], place.first_row_index);
            assert!(page["min"].as_str().unwrap() <= page["max"].as_str().unwrap());
        }
        let rows: i64 = pages.iter().map(|page| page["rows"].as_i64().unwrap()).sum();
        assert_eq!(rows, expected.row_group(g).num_rows());
    }
    let shown = view(&path, &["--page-index", "--column", "name"]).ok().out;
    assert!(shown.contains("first row") && shown.contains("row group 1"), "{shown}");
}

#[test]
fn sizes_add_up_to_the_file_and_the_footer() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let typed = dir.path().join("types.parquet");
    many_types(&typed);
    for path in [dir.path().join("contacts-00000.parquet"), typed] {
        let json = view(&path, &["--sizes", "--json"]).ok().json();
        let sizes = &json["files"][0]["views"]["sizes"];
        let of = |name: &str| sizes["file"][name].as_u64().unwrap();
        assert_eq!(of("total"), fs::metadata(&path).unwrap().len());
        let parts = ["pages", "column_indexes", "offset_indexes", "bloom_filters", "footer", "frame", "rest"];
        assert_eq!(parts.map(of).iter().sum::<u64>(), of("total"));
        assert_eq!(of("rest"), 0, "{sizes}");
        let fields = sizes["footer"].as_array().unwrap();
        let bytes = |field: &Value| field["bytes"].as_u64().unwrap();
        assert_eq!(fields.iter().map(bytes).sum::<u64>(), of("footer"));
        let columns = sizes["columns"].as_array().unwrap();
        let sum = |name: &str| columns.iter().map(|column| column[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("compressed"), of("pages"));
        assert_eq!(sum("indexes"), of("column_indexes") + of("offset_indexes"));
        let chunks: u64 = fields
            .iter()
            .filter(|field| field["field"].as_str().unwrap().starts_with("row_groups.columns."))
            .map(bytes)
            .sum();
        assert!(sum("footer") >= chunks && sum("footer") < of("footer"), "{sizes}");
        let shown = view(&path, &["--sizes"]).ok().out;
        assert!(shown.contains('█') && shown.contains("statistics"), "{shown}");
    }
}

#[test]
fn a_dump_tells_every_value_with_its_place_even_of_a_footer_that_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "10", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let shown = view(&path, &["--dump"]).ok().out;
    assert!(
        shown.contains("4 row_groups: list 1 elements") && shown.contains("7 total_compressed_size: i64")
    );
    let json = view(&path, &["--dump", "--json"]).ok().json();
    let lines = json["files"][0]["views"]["dump"].as_array().unwrap();
    assert_eq!(lines.len() + 1, shown.lines().count());
    assert!(lines.iter().any(|line| line["name"] == "num_rows" && line["value"] == 10));
    // Half of the footer, with a tail that says so.
    let file = fs::read(&path).unwrap();
    let len = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    let (start, half) = (file.len() - 8 - len, len / 2);
    let mut broken = file[..start + half].to_vec();
    broken.extend((half as u32).to_le_bytes());
    broken.extend(b"PAR1");
    fs::write(&path, broken).unwrap();
    let ran = view(&path, &["--dump"]);
    assert!(ran.out.contains("row_groups: list 1 elements"), "{}", ran.out);
    assert!(ran.fails(1).contains("contacts-00000"));
}

#[test]
fn a_chunk_a_line_as_json_and_as_csv() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("types.parquet");
    many_types(&path);
    contacts(dir.path(), "200k", "2");
    let expected = peer(&path);
    let chunks = expected.num_row_groups() * expected.row_group(0).num_columns();
    let ndjson = view(&path, &["--ndjson"]).ok().out;
    let lines: Vec<Value> = ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), chunks);
    for (line, chunk) in lines.iter().zip(expected.row_groups().iter().flat_map(|group| group.columns())) {
        assert_eq!(line["file"], path.to_str().unwrap());
        assert_eq!(line["path"], chunk.column_path().string());
        assert_eq!(line["compressed_bytes"], chunk.compressed_size());
        let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt());
        assert_eq!(line["statistics"]["null_count"].as_u64(), nulls);
    }
    let csv = view(&path, &["--csv"]).ok().out;
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    assert_eq!(csv.lines().count(), 1 + chunks);
    for (line, json) in csv.lines().skip(1).zip(&lines) {
        let cells = cells(line);
        assert_eq!(cells.len(), head.len(), "{line}");
        let cell = |name: &str| cells[head.iter().position(|head| *head == name).unwrap()].as_str();
        assert_eq!(cell("path"), json["path"].as_str().unwrap());
        assert_eq!(cell("num_values"), json["num_values"].to_string());
        assert_eq!(
            cell("min"),
            json["statistics"]["min"].as_str().map_or_else(
                || match &json["statistics"]["min"] {
                    Value::Null => String::new(),
                    Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap()),
                    value => value.to_string(),
                },
                str::to_owned
            )
        );
    }
    // Several files follow one another under one head.
    let all = sawmill(["footer", dir.path().to_str().unwrap(), "--csv"]).ok().out;
    assert_eq!(all.lines().filter(|line| line.starts_with("file,")).count(), 1);
    assert_eq!(all.lines().count(), 1 + chunks + 2 * 3);
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn a_selection_shows_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "300k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let paths = |args: &[&str]| -> Vec<(u64, String)> {
        let json = view(&path, &[&["--columns", "--json"], args].concat()).ok().json();
        let chunks = json["files"][0]["views"]["columns"].as_array().unwrap();
        let key = |chunk: &Value| {
            (chunk["row_group"].as_u64().unwrap(), chunk["path"].as_str().unwrap().to_owned())
        };
        chunks.iter().map(key).collect()
    };
    let (name, kind) = ("name".to_owned(), "phones.list.element.phone_type".to_owned());
    assert_eq!(paths(&["--column", "name", "--row-group", "1..3"]), [(1, name.clone()), (2, name.clone())]);
    assert_eq!(paths(&["--column", "**.phone_*", "--row-group", "0"]), [(0, kind)]);
    assert_eq!(paths(&["--column", "phones", "--column", "n*"]).len(), 9);
    assert_eq!(paths(&["--row-group", "7.."]), []);
    let json = view(&path, &["--row-group", "0", "--json"]).ok().json();
    assert_eq!(json["files"][0]["rows"], 131_072);
    assert!(view(&path, &["--column", "nam"]).fails(1).contains("phones"));
    assert_eq!(view(&path, &["--row-group", "2..1"]).code, Some(2));
    assert_eq!(view(&path, &["--csv", "--schema"]).code, Some(2));
    assert_eq!(view(&path, &["--csv", "--json"]).code, Some(2));
}

#[test]
fn a_dataset_is_told_what_is_unusual_in_it() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "20k", "2");
    fs::create_dir(dir.path().join("more")).unwrap();
    of_other_schema(&dir.path().join("more/other.parquet"));
    let shown = sawmill(["footer", dir.path().to_str().unwrap()]).ok().out;
    for expected in [
        "2 schemas:",
        "3 columns in 2 files",
        "without phones.list.element.number",
        "with id (required INT64)",
        "name (required BYTE_ARRAY (STRING) instead of optional BYTE_ARRAY (STRING))",
        "row groups too small",
        "row group 0 of",
        "columns without bounds",
        "id in 2 of 2 chunks",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
    let json = sawmill(["footer", dir.path().to_str().unwrap(), "--json"]).ok().json();
    let dataset = &json["dataset"];
    assert_eq!(dataset["files"], 3);
    assert_eq!(dataset["rows"], 20_020);
    assert_eq!(dataset["schemas"][1]["files"], 1);
    assert!(dataset["schemas"][1]["first_file"].as_str().unwrap().ends_with("other.parquet"));
    assert_eq!(dataset["schemas"][1]["difference"]["added"]["count"], 1);
    assert_eq!(dataset["row_groups_too_small"]["count"], 1);
    let bare = dataset["columns_without_bounds"].as_array().unwrap();
    assert!(bare.iter().any(|column| column["path"] == "id" && column["without"] == 2), "{bare:?}");
}

#[test]
fn patterns_in_quotes_and_directories_name_files() {
    let dir = tempfile::tempdir().unwrap();
    for sub in ["a", "a/b", "c"] {
        contacts(&dir.path().join(sub), "10", "2");
    }
    let files = |pattern: &str| {
        let json = view(&dir.path().join(pattern), &["--json"]).ok().json();
        json["files"].as_array().unwrap().len()
    };
    assert_eq!(files("a/*.parquet"), 2);
    assert_eq!(files("a"), 4);
    assert_eq!(files("**/*-00001.parquet"), 3);
    assert_eq!(files("[ac]/contacts-0000?.parquet"), 4);
    assert_eq!(files("**"), 6);
    assert!(view(&dir.path().join("*.orc"), &[]).fails(1).contains("no files match"));
}

#[test]
fn names_and_values_cannot_drive_a_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let evil = "\u{1b}[2Jx\u{9b}31m\u{7f}\u{202e}\n";
    let path = dir.path().join("evil\u{1b}[2J.parquet");
    with_names(&path, &[evil, "", "名前", "a.b"], evil);
    for args in [
        &["--schema", "--row-groups", "--columns", "--statistics", "--key-value", "--sizes", "--page-index"]
            [..],
        &["--dump"],
        &["--dump", "-v"],
        &["--json", "--schema", "--columns", "--statistics", "--key-value", "--sizes", "--dump"],
        &["--ndjson"],
        &["--csv"],
        &[],
    ] {
        let out = view(&path, args).ok().out;
        let unsafe_char = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!out.contains(unsafe_char), "{args:?}: {out:?}");
    }
    let json = view(&path, &["--columns", "--key-value", "--json"]).ok().json();
    let views = &json["files"][0]["views"];
    // Programs get the names as they are.
    assert_eq!(views["columns"][0]["path"], evil);
    assert_eq!(views["columns"][1]["path"], "");
    assert_eq!(views["columns"][2]["path"], "名前");
    assert_eq!(views["key_value"][0]["value"], evil);
    assert_eq!(json["files"][0]["file"], path.to_str().unwrap());
    // A name that is no text at all.
    let odd = dir.path().join(PathBuf::from(std::ffi::OsString::from_vec(b"odd\xff.parquet".to_vec())));
    fs::copy(&path, &odd).unwrap();
    let ran = sawmill(["footer".as_ref(), odd.as_os_str(), "--json".as_ref()]).ok();
    assert!(ran.json()["files"][0]["file"].as_str().unwrap().contains("odd"));
    // Errors name columns of the file, too.
    assert!(!view(&path, &["--column", "missing"]).fails(1).contains('\u{1b}'));
}

#[test]
fn files_without_rows_columns_or_readable_columns_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let views = [
        &["--schema", "--row-groups", "--columns", "--statistics", "--key-value", "--sizes", "--page-index"]
            [..],
        &["--dump"],
        &["--json", "--schema", "--columns", "--statistics", "--sizes", "--page-index", "--row-groups"],
        &["--ndjson"],
        &["--csv"],
        &[],
    ];
    for (name, row_groups, columns, oddity) in [
        ("no-columns", 1, 0, ""),
        ("no-row-groups", 0, 3, ""),
        ("nothing", 0, 0, ""),
        ("encrypted", 2, 3, "encrypted"),
        ("unknown-codec", 2, 3, "codec"),
        ("unknown-type", 2, 3, "type"),
    ] {
        let path = dir.path().join(name);
        raw_footer(&path, row_groups, columns, oddity);
        for args in views {
            let ran = view(&path, args);
            assert_eq!(ran.code, Some(0), "{name} {args:?}: {}", ran.err);
        }
        let lines = view(&path, &["--ndjson"]).ok().out;
        assert_eq!(lines.lines().count(), row_groups * columns);
        let shown = view(&path, &["--columns"]).ok().out;
        match oddity {
            "encrypted" => {
                assert!(shown.contains("encrypted"), "{shown}");
                assert!(view(&path, &["--statistics"]).ok().out.contains("encrypted"));
                assert!(lines.contains("\"num_values\":null"), "{lines}");
            }
            "" => assert!(!shown.contains("unreadable")),
            _ => assert!(shown.contains("unreadable") && lines.contains("unknown (99)"), "{shown}{lines}"),
        }
    }
}

#[test]
fn tens_of_thousands_of_columns_are_shown_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.parquet");
    many_columns(&path, 20_000);
    let started = std::time::Instant::now();
    for args in [
        &["--schema", "--columns", "--statistics", "--sizes", "-v"][..],
        &["--json", "--schema", "--columns", "--statistics", "--sizes"],
        &["--ndjson"],
    ] {
        assert!(view(&path, args).ok().out.lines().count() >= 20_000, "{args:?}");
    }
    let shown = view(&path, &["--sizes"]).ok().out;
    assert!(shown.contains("19,960 others"), "{shown}");
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

#[test]
fn a_schema_of_any_depth_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep");
    crate::parquet_files::deep(&path, 50_000);
    let shown = view(&path, &["--schema"]).ok().out;
    assert!(shown.lines().count() > 150_000);
    let json = view(&path, &["--schema", "--json"]).ok().json();
    assert_eq!(json["files"][0]["views"]["schema"]["elements"].as_array().unwrap().len(), 50_001);
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let good = dir.path().join("contacts-00000.parquet");
    assert!(view(&good, &["--check"]).ok().out.contains("nothing wrong"));
    assert_eq!(
        view(&good, &["--check", "--json"]).ok().json()["files"][0]["views"]["check"],
        Value::Array(vec![])
    );
    // The chunks of these lie over one another, and there are fewer bytes than they say.
    let bad = dir.path().join("bad.parquet");
    raw_footer(&bad, 2, 3, "");
    let ran = view(&bad, &["--check"]);
    assert!(
        ran.out.lines().count() > 1 && ran.out.contains("byte") && ran.out.contains("row_groups[0]"),
        "{}",
        ran.out
    );
    let lines = ran.out.lines().count();
    assert!(ran.fails(1).contains(&format!("{lines} things are wrong")));
    let json = view(&bad, &["--check", "--json"]).json();
    let findings = json["files"][0]["views"]["check"].as_array().unwrap();
    assert_eq!(findings.len(), lines);
    assert!(findings.iter().any(|finding| finding["file_offset"].is_u64()), "{findings:?}");
}

#[test]
fn decoders_are_timed_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "10", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let json = view(&path, &["--bench", "--json"]).ok().json();
    let ways = json["files"][0]["views"]["bench"]["ways"].as_array().unwrap();
    assert_eq!(ways.len(), 8);
    assert!(ways.iter().all(|way| way["median_seconds"].as_f64().unwrap() > 0.0));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.parquet");
    many_columns(&path, 5_000);
    for args in [&["--dump"][..], &["--json", "--columns"], &["--ndjson"], &["--columns"]] {
        let mut child = command(["footer", path.to_str().unwrap()].iter().chain(args))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{args:?}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_is_no_whole_parquet_file_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let good = dir.path().join("good.parquet");
    sawmill(["gen", "contacts", "--rows", "10", "--out", good.to_str().unwrap()]).ok();
    let bytes = fs::read(&good).unwrap();
    for (name, content) in [
        ("empty", &[][..]),
        ("text", b"id,name\n1,Ann\n2,Bob\n"),
        ("truncated", &bytes[..bytes.len() - 5]),
        ("tail", &bytes[bytes.len() - 12..]),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        let error = footer(&path).fails(1);
        assert!(error.contains(name), "{error}");
    }
    for missing in [dir.path().join("missing"), dir.path().join("no/such/dir.parquet")] {
        assert!(footer(&missing).fails(1).contains("o such file"), "{}", missing.display());
    }
    let empty = dir.path().join("empty-directory");
    fs::create_dir(&empty).unwrap();
    assert!(footer(&empty).fails(1).contains("no .parquet files"));
    // One bad file among good ones does not hide them.
    let text = dir.path().join("text");
    for args in [&[][..], &["--schema"], &["--json"], &["--ndjson"], &["--csv"]] {
        let mixed = sawmill([&["footer", good.to_str().unwrap(), text.to_str().unwrap()], args].concat());
        assert!(mixed.out.contains("phone_type") || mixed.out.contains("good.parquet"), "{args:?}");
        assert!(mixed.fails(1).contains("text"));
    }
    // Several bad files: a line each, and how many there are.
    let mixed = sawmill([
        "footer".as_ref(),
        good.as_os_str(),
        text.as_os_str(),
        dir.path().join("empty").as_os_str(),
    ]);
    assert_eq!(mixed.code, Some(1));
    assert!(
        mixed.err.contains("/text") && mixed.err.contains("/empty") && mixed.err.contains("2 of 3 files")
    );
    let json = sawmill(["footer", good.to_str().unwrap(), text.to_str().unwrap(), "--json"]).json();
    assert_eq!(json["files"].as_array().unwrap().len(), 1);
    assert!(json["errors"][0].as_str().unwrap().contains("text"));
}

#[test]
fn thousands_of_files_come_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "2000", "1000");
    let json = sawmill(["footer", dir.path().to_str().unwrap(), "--json"]).ok().json();
    let files = json["files"].as_array().unwrap();
    assert_eq!(files.len(), 1000);
    for (i, file) in files.iter().enumerate() {
        assert!(file["file"].as_str().unwrap().ends_with(&format!("contacts-{i:05}.parquet")));
    }
    assert_eq!(json["dataset"]["row_groups_too_small"]["count"], 1000);
    assert_eq!(json["dataset"]["row_groups_too_small"]["first"].as_array().unwrap().len(), 10);
}
