//! The views of one file: what they show is what the `parquet` crate reads.

use std::fs;

use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::SchemaDescriptor;
use serde_json::Value;

use super::{contacts, peer, view};
use crate::harness::sawmill;
use crate::parquet_files::many_types;

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
        let json = view(&path, &["--row-groups", "--chunks", "--bounds", "--metadata", "--json"]).ok().json();
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
    let json = view(&path, &["--bounds", "--json"]).ok().json();
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
    let shown = view(&path, &["--bounds"]).ok().out;
    for expected in ["\"\"", "\"zoë\"", "2024-02-29T12:34:56Z", "-0.05", "0xdeadbeef", "18,446"] {
        assert_eq!(shown.contains(expected), expected != "18,446", "{expected} in {shown}");
    }
    // A long value is clipped, marked as cut short by its writer, and whole with -v.
    assert!(shown.contains("… (") && shown.contains('~'), "{shown}");
    assert!(!view(&path, &["--bounds", "-v"]).ok().out.contains('…'));
}

#[test]
fn page_indexes_are_as_the_parquet_crate_reads_them() {
    use parquet::file::metadata::PageIndexPolicy;
    let dir = tempfile::tempdir().unwrap();
    contacts(dir.path(), "200k", "1");
    let path = dir.path().join("contacts-00000.parquet");
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let expected = reader.parse_and_finish(&fs::File::open(&path).unwrap()).unwrap();
    let json = view(&path, &["--data-pages", "--json"]).ok().json();
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
    let shown = view(&path, &["--data-pages", "--column", "name"]).ok().out;
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
