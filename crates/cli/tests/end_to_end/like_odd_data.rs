//! Data generated like odd data: relations of odd names, functions of many keys, text, and files that other readers
//! do not expect.

use std::sync::Arc;

use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::basic::LogicalType;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::ColumnDescPtr;
use sawmill_generator::{Dataset, InferredSpec};

use crate::harness::sawmill;

const ROWS: usize = 40_000;

/// Numbers that look random, below `most`.
fn scattered(i: usize, most: u64) -> u64 {
    ((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % most
}

fn inferred(columns: Vec<(&str, ArrayRef)>) -> (InferredSpec, RecordBatch) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut inferred = InferredSpec::new("like", &batch.schema(), &[]).unwrap();
    inferred.set_rows(ROWS as u64);
    inferred.add(&batch).unwrap();
    (inferred, batch)
}

fn generated(inferred: &InferredSpec) -> (String, RecordBatch) {
    let spec = inferred.to_toml().unwrap();
    let dataset = Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let rows = dataset.batches(0..ROWS as u64, 42, ROWS).next().unwrap().unwrap();
    (spec, rows)
}

#[test]
fn sums_hold_beside_copies_and_among_columns_whose_names_are_several_words() {
    let cents = |of: &dyn Fn(usize) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values((0..ROWS).map(|i| (of(i) * 100.0).round() / 100.0)))
    };
    let net = |i: usize| (scattered(i, 10_007) * scattered(i + 77, 31)) as f64 / 100.0;
    let vat = |i: usize| (net(i) * 20.0).round() / 100.0;
    let (inferred, _) = inferred(vec![
        ("net price", cents(&net)),
        ("amount", cents(&net)),
        ("vat", cents(&vat)),
        ("gross", cents(&|i| net(i) + vat(i))),
    ]);
    let (spec, rows) = generated(&inferred);
    assert!(spec.contains("`net price` + vat"), "{spec}");
    let column = |i: usize| rows.column(i).as_primitive::<Float64Type>().values().to_vec();
    let (net, vat, gross) = (column(0), column(2), column(3));
    let adds_up = (0..ROWS).filter(|i| (net[*i] + vat[*i] - gross[*i]).abs() < 1e-6).count();
    assert_eq!(adds_up, ROWS, "{spec}");
}

#[test]
fn a_price_is_a_function_of_its_article_and_fidelity_notices_if_it_is_not() {
    let article = |i: usize| scattered(i, 3000) as i64;
    let price = |article: i64| scattered(article as usize, 100_000) as i64;
    let whole =
        |of: &dyn Fn(usize) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..ROWS).map(of))) };
    let columns =
        |moved: usize| vec![("article", whole(&article)), ("price", whole(&|i| price(article(i + moved))))];
    let (source, _) = inferred(columns(0));
    let (_, rows) = generated(&source);
    let [articles, prices] = [0, 1].map(|i| rows.column(i).as_primitive::<Int64Type>().values().to_vec());
    assert!(articles.iter().zip(&prices).all(|(of, found)| price(*of) == *found));
    let (broken, _) = inferred(columns(1));
    let fidelity = source.compare(&broken);
    let relation =
        fidelity.relations.iter().find(|of| of.relation == "price is a function of article").unwrap();
    assert!(relation.source == 1.0 && relation.generated < 0.5, "{relation:?}");
}

#[test]
fn a_function_wins_over_a_narrow_difference_and_fidelity_notices_lost_weights_by_nulls() {
    let low = |i: usize| scattered(i, 1000) as i64;
    let high = |i: usize| low(i) + 1 + (low(i) * 7919) % 50;
    let whole =
        |of: &dyn Fn(usize) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..ROWS).map(of))) };
    let code = |i: usize| (scattered(i + 3, 10) > 2).then(|| scattered(i + 5, 3) as i64);
    let codes: ArrayRef = Arc::new((0..ROWS).map(code).collect::<Int64Array>());
    let columns = |step: usize| {
        let kinds = whole(&|i| code(i * step % ROWS).unwrap_or(3));
        vec![("low", whole(&low)), ("high", whole(&high)), ("code", codes.clone()), ("kind", kinds)]
    };
    let (source, _) = inferred(columns(1));
    let (_, rows) = generated(&source);
    let [lows, highs] = [0, 1].map(|i| rows.column(i).as_primitive::<Int64Type>().values().to_vec());
    assert!(lows.iter().zip(&highs).all(|(low, found)| low + 1 + (low * 7919) % 50 == *found));
    let by_nulls = |made: &InferredSpec| {
        let fidelity = source.compare(made);
        let pair = fidelity.pairs.iter().find(|pair| pair.columns == ["code", "kind"]).unwrap();
        let of = pair.measures.iter().find(|of| of.measure == "kind by the nulls of code").unwrap();
        (pair.is_kept, of.source, of.generated)
    };
    let mut made = InferredSpec::new("made", &rows.schema(), &[]).unwrap();
    made.add(&rows).unwrap();
    let (_, there, kept) = by_nulls(&made);
    assert!(there > 0.3 && kept > 0.3, "{there} {kept}");
    let (broken, _) = inferred(columns(7919));
    let (is_kept, _, lost) = by_nulls(&broken);
    assert!(!is_kept && lost < 0.05, "{lost}");
}

#[test]
fn maps_that_repeat_a_key_get_as_many_entries_as_there_are_keys() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for i in 0..ROWS {
        for entry in 0..2 {
            maps.keys().append_value("a");
            maps.values().append_value((i + entry) as i64);
        }
        maps.append(true).unwrap();
    }
    let (inferred, _) = inferred(vec![("map", Arc::new(maps.finish()))]);
    let (_, rows) = generated(&inferred);
    assert!((0..ROWS).all(|row| rows.column(0).as_map().value_length(row) == 1));
}

#[test]
fn few_different_bytes_keep_their_shares() {
    let value = |i: usize| if i.is_multiple_of(4) { [0u8, 255].as_slice() } else { b"k" };
    let (source, _) =
        inferred(vec![("bytes", Arc::new(BinaryArray::from_iter_values((0..ROWS).map(value))) as ArrayRef)]);
    let (spec, rows) = generated(&source);
    assert!(spec.contains("\"0x00ff\" = 10000"), "{spec}");
    let found = rows.column(0).as_binary::<i32>().iter().flatten().filter(|bytes| *bytes == [0, 255]).count();
    assert!(found.abs_diff(ROWS / 4) < ROWS / 50, "{found}");
}

#[test]
fn text_is_learned_from_and_compared_and_the_comparison_written_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let lines = (0..2000).map(|i| format!("{i},{}.25,{}\n", scattered(i, 900), ["AT", "DE"][i % 2]));
    std::fs::write(path("orders.csv"), "id,amount,country\n".to_owned() + &lines.collect::<String>())
        .unwrap();
    let spec = sawmill(["gen", "spec", "--like", &path("orders.csv")]).ok().out;
    for part in ["name = \"orders\"", "rows = 2000", "type = \"int64\"", "\"AT\" = 1000"] {
        assert!(spec.contains(part), "{part}: {spec}");
    }
    sawmill(["gen", "--like", &path("orders.csv"), "--out", &path("made.parquet")]).ok();
    let args = ["gen", "fidelity", &path("orders.csv"), &path("made.parquet"), "--html", &path("page.html")];
    sawmill(args).ok();
    let page = std::fs::read_to_string(path("page.html")).unwrap();
    assert!(
        page.contains("data-name=\"column\">country</td>")
            && page.contains("class=\"cards\"")
            && page.contains("3 of 3 columns, 3 of 3 pairs"),
        "{page}"
    );
    sawmill(["gen", "spec", "--like", &path("orders.csv"), "--sample", "0"]).fails(2);
}

/// Polars writes a column of 128-bit integers with an Arrow schema on which arrow-rs panics.
#[test]
fn a_column_whose_arrow_type_is_unknown_has_its_parquet_type() {
    const FILE: &str = "\
    UEFSMRUEFTAVOkwVBhUAAAAotS/9IBilAABgAQACAAMAAAAAAAAAAgBg4AFgARUAFRQVJiwVBhUQFQYVBhw2ACgIAwAAAAAAAAAY\
    CAEAAAAAAAAAAAAAKLUv/SAKUQAAAgAAAAYBAgMkABUEGTUABhAZGAFrFQwWBhawARbMASZcJggcNgAoCAMAAAAAAAAAGAgBAAAA\
    AAAAAAAAFQAVbBU6LBUGFQAVBhUGHDYAAAAAKLUv/SA2pQAAYAIAAAAGAQEAAgADAAMUAAsYcwEVDhklAAYZGAFpFQwWBhaWARZk\
    JrgCPDYAAAAZEQIZGAgBAAAAAAAAABkYCAMAAAAAAAAAFQAZFgAAGRwWXBV4FgAAABkcFrgCFWQWAAAAFQIZPEgEcm9vdBUEABUE\
    JQIYAWsAFQ4VIBUCGAFpABYGGRwZLCaoAhwVBBk1AAYQGRgBaxUMFgYWsAEWzAEmXCYIHDYAKAgDAAAAAAAAABgIAQAAAAAAAAAA\
    ABaQBBUUFtIDFT4AJpwDHBUOGSUABhkYAWkVDBYGFpYBFmQmuAI8NgAAABakBBUWABbGAhYGJggWsAIUAAAZHBgMQVJST1c6c2No\
    ZW1hGOgBLy8vLy82WUFBQUFFQUFBQTh2Ly8veFFBQUFBRUFBRUFBQUFLQUFzQUNBQUtBQVFBK1AvLy93d0FBQUFJQUFnQUFBQUVB\
    QUlBQUFBMEFBQUFCQUFBQU1ELy8vOGdBQUFBRUFBQUFBZ0FBQUFCQWdBQUFBQUFBTGovLy8rQUFBQUFBUUFBQUFFQUFBQnBBQUFB\
    N1AvLy96Z0FBQUFnQUFBQUdBQUFBQUVDQUFBUUFCSUFCQUFRQUJFQUNBQUFBQXdBQUFBQUFQVC8vLzlBQUFBQUFRQUFBQWdBQ1FB\
    RUFBZ0FBUUFBQUdzQQAYTlBvbGFycyAocHl0aG9uKSB2ZXJzaW9uIDIuMS4wIChidWlsZCA3ZjkwMmJkM2ZmZDI3ZmY4MmQxNDI3\
    OGEwOWEyOTVmZjJmN2FlZDkyKRksHAAAHAAAAO0BAABQQVIx";
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("wide.parquet"), BASE64_STANDARD.decode(FILE).unwrap()).unwrap();
    for option in ["--like", "--schema-of"] {
        let spec = sawmill(["gen", "spec", option, &path("wide.parquet")]).ok();
        assert!(spec.out.contains("name = \"i\"\ntype = \"fixed_binary\""), "{}", spec.out);
        assert!(!spec.err.contains("panicked"), "{}", spec.err);
    }
    sawmill(["gen", "fidelity", &path("wide.parquet"), &path("wide.parquet")]).ok();
    sawmill(["footer", "head", &path("wide.parquet")]).ok();
    sawmill(["convert", &path("wide.parquet"), "--out", &path("copy.parquet")]).ok();
}

#[test]
fn types_of_parquet_are_kept_or_named() {
    const SPEC: &str = "\
    name = 'stored'\nrows = 3000\n\
    [[fields]]\nname = 'kind'\ntype = 'enum'\nnulls = 0.1\nvalues = { weights = { Home = 3, Work = 1 } }\n\
    [[fields]]\nname = 'old'\ntype = 'timestamp'\nunit = 'int96'\nvalues = { uniform = { min = 2020-01-01, max = 2024-01-01 } }\n\
    [[fields]]\nname = 'noon'\ntype = 'time'\nunit = 'us'\nutc = true\nvalues = { uniform = { min = 11:00:00, max = 13:00:00 } }\n\
    [[fields]]\nname = 'id'\ntype = 'uuid'\nvalues = 'uuid'\n\
    [[fields]]\nname = 'inside'\ntype = 'struct'\n\
    [[fields.fields]]\nname = 'listed'\ntype = 'json'\nvalues = { choice = ['{\"a\": [1]}', '[]'] }\n\
    [[fields.fields]]\nname = 'many'\ntype = 'json'\nvalues = { pattern = '\\{\"a\": 1[0-9]{9}\\}' }\n";
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("stored.toml"), SPEC).unwrap();
    sawmill(["gen", &path("stored.toml"), "--out", &path("stored.parquet")]).ok();
    let made = sawmill(["gen", "--like", &path("stored.parquet"), "--out", &path("made.parquet")]).ok();
    assert!(made.err.contains("type not kept: column inside.many: "), "{}", made.err);
    assert!(!made.err.contains("inside.listed:"), "{}", made.err);
    let [stored, made] = ["stored.parquet", "made.parquet"].map(|name| {
        let file = std::fs::File::open(path(name)).unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let schema = metadata.file_metadata().schema_descr_ptr();
        let of = |column: &ColumnDescPtr| (column.physical_type(), column.logical_type_ref().cloned());
        schema.columns().iter().map(of).collect::<Vec<_>>()
    });
    assert_eq!(stored[..5], made[..5]);
    assert_eq!(made[5].1, Some(LogicalType::String));
}
