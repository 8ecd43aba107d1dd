//! Text in Parquet that is not UTF-8: the row is named, and `--rejects` leaves out that row alone. VARIANT is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, MapBuilder};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::file::properties::WriterProperties;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescriptor, Type};
use sawmill_cratedb_standin::StandIn;

use crate::harness::sawmill;
use crate::load::Bench;

const ROWS: usize = 3000;
/// Of row group 2, whose rows begin with 2000.
const BROKEN: usize = 2017;

fn texts(rows: usize, dictionary: bool) -> Vec<Vec<u8>> {
    let value = |row: usize| match row {
        BROKEN => b"caf\xe9".to_vec(),
        _ if dictionary => format!("word {}", row % 7).into_bytes(),
        _ => format!("a text that is too long for a view, of row {row}").into_bytes(),
    };
    (0..rows).map(value).collect()
}

/// Writes columns `id` and `c`. `c` is text with one value that is not UTF-8.
fn broken(path: &Path, dictionary: bool, nested: bool) {
    let texts = texts(ROWS, dictionary);
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(&texts));
    let text = |name: &str, repetition| {
        let made = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY).with_repetition(repetition);
        Arc::new(made.with_logical_type(Some(LogicalType::String)).build().unwrap())
    };
    let (array, column): (ArrayRef, _) = match nested {
        false => (values, text("c", Repetition::REQUIRED)),
        true => {
            let item = Field::new("element", DataType::Binary, false);
            let mut lists = ListBuilder::new(BinaryBuilder::new()).with_field(item);
            texts.iter().for_each(|text| lists.append_value([Some(text)]));
            let lists = lists.finish();
            let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
            let list = list.with_fields(vec![text("element", Repetition::REQUIRED)]).build().unwrap();
            let column = Type::group_type_builder("c").with_repetition(Repetition::REQUIRED);
            let column = column.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(list)]);
            (Arc::new(lists), Arc::new(column.build().unwrap()))
        }
    };
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let batch = RecordBatch::try_from_iter([("id", ids), ("c", array)]).unwrap();
    let id = Type::primitive_type_builder("id", PhysicalType::INT64).with_repetition(Repetition::REQUIRED);
    let root = Type::group_type_builder("schema").with_fields(vec![Arc::new(id.build().unwrap()), column]);
    write(path, &batch, root.build().unwrap(), dictionary);
}

fn write(path: &Path, batch: &RecordBatch, schema: Type, dictionary: bool) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1000))
        .set_dictionary_enabled(dictionary)
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true)
        .with_parquet_schema(SchemaDescriptor::new(Arc::new(schema)));
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn file(bench: &Bench, name: &str) -> PathBuf {
    bench.dir.path().join(name)
}

#[test]
fn a_text_that_is_not_utf8_is_named_and_rejects_leave_out_its_row_alone() {
    let bench = Bench::new();
    for dictionary in [false, true] {
        let path = file(&bench, "broken.parquet");
        broken(&path, dictionary, false);
        // Into a separate table: a second load would first finish the units committed before the error.
        let error = bench.load(&path, &format!("refused_{dictionary}"), &[]).fails(1);
        assert!(error.contains("is not UTF-8: byte 0xe9 at 3"), "{error}");
        assert!(error.contains("broken.parquet, row group 2, row 17, column \"c\""), "{error}");
        assert!(error.contains("--rejects"), "{error}");

        let rejects = file(&bench, &format!("rejects_{dictionary}.parquet"));
        let more = ["--mode", "replace", "--rejects", rejects.to_str().unwrap(), "--verify", "--json"];
        for strategy in ["direct", "staged"] {
            let more = [&more[..], &["--strategy", strategy, "--partition-by", "hash(id, 3)"]].concat();
            let report = bench.load(&path, "t", &more).json();
            assert_eq!(report["report"]["rows_rejected"], 1, "{report}");
            let rows = format!("select count(*) from t where id <> {BROKEN}");
            assert_eq!(bench.count(&rows), ROWS as i64 - 1);
            assert_eq!(bench.count("select count(*) from t"), ROWS as i64 - 1);
        }
        let rejected = sawmill(["footer", "head", rejects.to_str().unwrap()]).ok().out;
        assert!(rejected.contains("\"id\":2017") && rejected.contains("is not UTF-8"), "{rejected}");
        // The rows of one batch before, and those after.
        assert_eq!(bench.count("select count(*) from t where id between 2010 and 2020"), 10);
    }
}

#[test]
fn other_commands_name_the_row_of_a_text_that_is_not_utf8_too() {
    let bench = Bench::new();
    let (flat, nested) = (file(&bench, "flat.parquet"), file(&bench, "nested.parquet"));
    broken(&flat, true, false);
    broken(&nested, true, true);
    let out = file(&bench, "out.ndjson");
    let convert =
        |path: &Path| sawmill(["convert", path.to_str().unwrap(), "--out", out.to_str().unwrap()]).fails(1);
    for error in [convert(&flat), convert(&nested), bench.load(&nested, "n", &[]).fails(1)] {
        assert!(error.contains("is not UTF-8: byte 0xe9 at 3"), "{error}");
        assert!(error.contains("row group 2, row 17, column \"c"), "{error}");
    }
}

/// Writes a column `c` of maps, and `z` with whole texts behind it. A key or a value is not UTF-8.
fn broken_maps(path: &Path, in_value: bool) {
    let texts = texts(ROWS, false);
    let whole = vec![b"whole".to_vec(); ROWS];
    let (keys, values) = if in_value { (&whole, &texts) } else { (&texts, &whole) };
    let mut maps = MapBuilder::new(None, BinaryBuilder::new(), BinaryBuilder::new());
    for (key, value) in keys.iter().zip(values) {
        maps.keys().append_value(key);
        maps.values().append_value(value);
        maps.append(true).unwrap();
    }
    let (maps, texts): (ArrayRef, ArrayRef) =
        (Arc::new(maps.finish()), Arc::new(BinaryArray::from_iter_values(&whole)));
    let batch = RecordBatch::try_from_iter([("c", maps), ("z", texts)]).unwrap();
    let schema = "message schema {
        required group c (MAP) { repeated group entries {
            required binary keys (STRING); optional binary values (STRING); } }
        required binary z (STRING); }";
    write(path, &batch, parse_message_type(schema).unwrap(), false);
}

#[test]
fn a_key_or_a_value_of_a_map_that_is_not_utf8_is_named() {
    let bench = Bench::new();
    let path = file(&bench, "maps.parquet");
    for (in_value, column) in [(false, "c.entries.keys"), (true, "c.entries.values")] {
        broken_maps(&path, in_value);
        let error = bench.load(&path, &format!("t_{in_value}"), &[]).fails(1);
        assert!(error.contains("is not UTF-8: byte 0xe9 at 3"), "{error}");
        assert!(error.contains(&format!("row group 2, row 17, column {column:?}")), "{error}");
    }
}

#[test]
fn cratedb_gets_all_rows_but_that_of_a_text_that_is_not_utf8() {
    let bench = Bench::new();
    let standin = StandIn::start(1);
    for dictionary in [false, true] {
        let path = file(&bench, "broken.parquet");
        broken(&path, dictionary, false);
        let table = format!("t_{dictionary}");
        let to =
            ["load", path.to_str().unwrap(), "--to", &standin.url(), "--table", &table].map(str::to_owned);
        let error = sawmill(&to).fails(1);
        assert!(error.contains("row group 2, row 17, column \"c\""), "{error}");
        let rejects = file(&bench, &format!("rejects_{dictionary}.ndjson"));
        let more = ["--rejects", rejects.to_str().unwrap(), "--json"].map(str::to_owned);
        let report = sawmill([&to[..], &more].concat()).json();
        assert_eq!(report["report"]["rows_rejected"], 1, "{report}");
        assert_eq!(report["report"]["rows"], ROWS - 1, "{report}");
    }
}

#[test]
fn a_variant_is_refused_and_the_other_columns_load() {
    let bench = Bench::new();
    let path = file(&bench, "variant.parquet");
    let part = |name: &str| {
        let made = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY);
        Arc::new(made.with_repetition(Repetition::REQUIRED).build().unwrap())
    };
    let variant = Type::group_type_builder("v")
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::variant(Some(1))))
        .with_fields(vec![part("metadata"), part("value")])
        .build()
        .unwrap();
    let id = Type::primitive_type_builder("id", PhysicalType::INT64).with_repetition(Repetition::REQUIRED);
    let fields = vec![Arc::new(id.build().unwrap()), Arc::new(variant)];
    let schema = Type::group_type_builder("schema").with_fields(fields).build().unwrap();
    let bytes = |bytes: &[u8]| Arc::new(BinaryArray::from_iter_values([bytes, bytes])) as ArrayRef;
    let parts = ["metadata", "value"].map(|name| Arc::new(Field::new(name, DataType::Binary, false)));
    let stored = [bytes(&[1, 0, 0]), bytes(&[12, 7])];
    let stored: ArrayRef =
        Arc::new(arrow_array::StructArray::from(parts.into_iter().zip(stored).collect::<Vec<_>>()));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    write(&path, &RecordBatch::try_from_iter([("id", ids), ("v", stored)]).unwrap(), schema, false);
    let out = file(&bench, "out.ndjson");
    let convert = sawmill(["convert", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    for error in [bench.load(&path, "v", &[]).fails(1), convert.fails(1)] {
        assert!(error.contains("VARIANT cannot be decoded - column \"v\""), "{error}");
        assert!(error.contains("--columns"), "{error}");
    }
    bench.load(&path, "v", &["--columns", "id"]).ok();
    assert_eq!(bench.count("select count(*) from v"), 2);
}

#[test]
fn table_and_file_of_rejected_rows_are_proved_together_if_a_text_is_not_utf8() {
    let bench = Bench::new();
    let create = "create table t (id bigint primary key check (id <> 5), c text check (c !~ 'row 1234$'))";
    bench.client().batch_execute(create).unwrap();
    let (path, rejects) = (file(&bench, "broken.parquet"), file(&bench, "rejects.parquet"));
    broken(&path, false, false);
    let more = ["--rejects", rejects.to_str().unwrap()];
    let report = bench.load(&path, "t", &[&more[..], &["--mode", "append", "--json"]].concat()).json();
    assert_eq!(report["report"]["rows_rejected"], 3, "{report}");
    let verified = sawmill(bench.args("verify", &path, "t", &[&more[..], &["--json"]].concat())).ok().json();
    assert_eq!((&verified["put_aside"], &verified["source"]["rows"]), (&3.into(), &(ROWS - 3).into()));

    bench.client().batch_execute("delete from t where id = 7").unwrap();
    let differ = sawmill(bench.args("verify", &path, "t", &[&more[..], &["--locate", "--json"]].concat()));
    let located = &differ.json()["located"];
    assert_eq!(
        (&located["rows_of_none"], &located["units"][0]["missing"]),
        (&0.into(), &1.into()),
        "{located}"
    );
    differ.fails(4);
}
