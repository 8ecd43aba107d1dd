//! Specs with every type and distribution, nested at random: the `parquet` crate reads the same rows from the
//! files as in the Arrow batches.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use proptest::prelude::*;
use sawmill_generator::{
    BUILT_IN, Compression, Dataset, Encoding, FileOptions, Job, Layout, Output, PageVersion, StatisticsLevel,
    write,
};
use sawmill_profile::Profile;

/// Leaves of every type, with every distribution.
const LEAVES: &[&str] = &[
    "type = \"boolean\", values = { weights = { true = 2, false = 1 } }",
    "type = \"int8\", values = { uniform = { min = -128, max = 127 } }",
    "type = \"int16\", values = { normal = { mean = 0, stddev = 20000, min = -32768, max = 32767 } }",
    "type = \"int32\", values = { zipf = { n = 1000, s = 1.2 } }",
    "type = \"int64\", values = { uniform = { min = -9223372036854775808, max = 9223372036854775807 } }",
    "type = \"int64\", values = { walk = { start = 5, step = 3, jitter = 1 } }",
    "type = \"uint8\", values = { poisson = { mean = 3, max = 200 } }",
    "type = \"uint16\", values = { geometric = { p = 0.1, max = 60000 } }",
    "type = \"uint32\", values = { uniform = { min = 0, max = 4294967295 } }",
    "type = \"uint64\", values = { uniform = { min = 9223372036854775000, max = 18446744073709551615 } }",
    "type = \"uint64\", values = { choice = [0, 18446744073709551615, 7] }",
    "type = \"float16\", values = { normal = { mean = 1, stddev = 2 } }",
    "type = \"float16\", values = { choice = [0.0, -0.0, 1.5, nan, -inf] }",
    "type = \"float\", values = { exponential = { mean = 2 } }",
    "type = \"double\", values = { lognormal = { median = 3, sigma = 2 } }",
    "type = \"double\", values = { choice = { values = [nan, 1.0, -0.0, inf], s = 1 } }",
    "type = \"double\", values = { quantiles = { values = [-1.5, 0, 9], shares = [0, 0.2, 1], atoms = { nan = 0.1, 3 = 0.2 }, step = 0.5, stepped = 0.5 } }",
    "type = \"timestamp\", values = { quantiles = { values = [2024-01-01T00:00:00, 2024-02-29T00:00:00], step = \"1s\" } }",
    "type = \"decimal\", precision = 38, scale = 2, values = { quantiles = { values = [\"-1000000000000000000000000000000000.25\", \"7\"], atoms = { \"0.5\" = 0.3 } } }",
    "type = \"uint64\", values = { quantiles = { values = [0, 5, 18446744073709551615] } }",
    "type = \"string\", values = { text = { length = { weights = { 0 = 1, 5 = 2, 40 = 1 } } } }",
    "type = \"string\", values = { text = { length = { uniform = { min = 1, max = 9 } }, letters = \"A-Zäöü-\" } }",
    "type = \"decimal\", precision = 5, scale = 2, values = { uniform = { min = -999.99, max = 999.99 } }",
    "type = \"decimal\", precision = 18, values = { sequence = { start = -10, step = 7 } }",
    "type = \"decimal\", precision = 4, scale = 1, storage = \"fixed\", values = { normal = { mean = 0, stddev = 50 } }",
    "type = \"decimal\", precision = 38, scale = 10, values = { uniform = { min = \"-1234567890123456789012345678.5\", max = \"9999999999999999999999999999\" } }",
    "type = \"decimal\", precision = 60, scale = 3, values = { weights = { \"-1.5\" = 1, \"12345678901234567890.125\" = 1 } }",
    "type = \"decimal\", precision = 76, scale = 20, values = { uniform = { min = \"-1e55\", max = \"9e55\" } }",
    "type = \"decimal\", precision = 70, scale = 45, values = { normal = { mean = 0, stddev = 5 } }",
    "type = \"date\", values = { uniform = { min = 1900-01-01, max = 2100-12-31 } }",
    "type = \"time\", unit = \"ms\", values = { uniform = { min = 00:00:00, max = 23:59:59.999 } }",
    "type = \"time\", values = { constant = 12:30:00.000001 }",
    "type = \"time\", unit = \"ns\", utc = true, values = { normal = { mean = 12:00:00, stddev = \"3h\", min = 00:00:00, max = 23:59:59.999999999 } }",
    "type = \"timestamp\", unit = \"ms\", values = { walk = { start = 2024-01-01T00:00:00, step = \"1s\", late = { share = 0.1, by = \"1m\" } } }",
    "type = \"timestamp\", values = { uniform = { min = 1960-01-01T00:00:00, max = 2024-02-29T23:59:59.999999 } }",
    "type = \"timestamp\", unit = \"ns\", zone = \"UTC\", values = { choice = [2024-01-01T00:00:00Z, 2024-01-01T00:00:00.000000001+02:00] }",
    "type = \"timestamp\", unit = \"int96\", values = { uniform = { min = 1960-01-01T00:00:00, max = 2030-01-01T00:00:00 } }",
    "type = \"timestamp\", unit = \"int96\", values = { choice = [1960-01-01T00:00:00, 2030-01-01T00:00:00.5] }",
    "type = \"date\", values = { seasonal = { from = 1999-12-01, to = 2001-02-28, weekdays = { sun = 0 } } }",
    "type = \"timestamp\", unit = \"int96\", values = { seasonal = { from = 2024-01-01, to = 2024-03-31, hours = { 3 = 9 } } }",
    "type = \"duration\", values = { uniform = { min = \"-3h\", max = \"250ms\" } }",
    "type = \"duration\", unit = \"ns\", values = { weights = { \"1.5s\" = 1, \"2d\" = 2 } }",
    "type = \"duration\", unit = \"ms\", values = { quantiles = { values = [\"0s\", \"1m\", \"2h\"], step = \"1s\" } }",
    "type = \"geometry\", values = { point = { x = [-180, 180], y = [-90, 90] } }",
    "type = \"geometry\", crs = \"EPSG:4326\", values = { polygon = { x = [0, 1], y = [5, 5], radius = 0.1, corners = 3 } }",
    "type = \"geometry\", values = { constant = \"0x0101000000000000000000f03f0000000000000040\" }",
    "type = \"string\", values = \"person_name\"",
    "type = \"string\", values = \"email\"",
    "type = \"string\", values = { full_name = { locale = \"zh_CN\" } }",
    "type = \"string\", values = { street = { locale = \"de_DE\" } }",
    "type = \"enum\", values = { country = { locale = \"fr_FR\" } }",
    "type = \"string\", values = \"phone\"",
    "type = \"string\", values = { words = { min = 0, max = 5 } }",
    "type = \"string\", values = { unique = \"k{id:06}\" }",
    "type = \"string\", values = { pattern = \"(ä|[a-f]{2,4})-\\\\d+\" }",
    "type = \"string\", values = { ref = { to = \"devices.id\", rows = 100 } }",
    "type = \"int64\", values = { ref = \"orders.id\" }",
    "type = \"string\", values = { weights = { \"\" = 1, a = 2, \"Ünïcode\" = 1 } }",
    "type = \"string\", values = \"uuid\"",
    "type = \"enum\", values = { choice = [\"A\", \"B\"] }",
    "type = \"json\", values = { choice = ['{\"a\": 1}', '[]', 'null'] }",
    "type = \"binary\", values = { bytes = { min = 0, max = 9 } }",
    "type = \"binary\", values = { choice = [\"0x00ff\", \"text\"] }",
    "type = \"fixed_binary\", width = 5, values = \"bytes\"",
    "type = \"fixed_binary\", width = 3, values = { constant = \"0x0a0b0c\" }",
    "type = \"uuid\", values = \"uuid\"",
    "type = \"boolean\", values = { expression = \"uniform(0, 1) < 0.3 or exponential(1) > 2\" }",
    "type = \"string\", values = { expression = \"if(uniform(0, 1) < 0.5, format('n{:03}', uniform(0, 50)), 'ä')\" }",
    "type = \"uuid\", values = { constant = \"123e4567-e89b-12d3-a456-426614174000\" }",
];

/// Leaves that can be keys of maps.
const KEYS: &[&str] = &[
    "type = \"string\", values = { choice = { values = [\"a\", \"b\", \"c\", \"d\", \"e\"], s = 1 } }",
    "type = \"int32\", values = { zipf = { n = 6, s = 2 } }",
    "type = \"int64\", values = { sequence = {} }",
    "type = \"uint64\", values = { uniform = { min = 18446744073709551610, max = 18446744073709551615 } }",
];

const LENGTHS: &[&str] = &[
    "{ constant = 2 }",
    "{ constant = 0 }",
    "{ uniform = { min = 0, max = 3 } }",
    "{ zipf = { n = 4, s = 1 } }",
    "{ weights = { 0 = 1, 1 = 2, 5 = 1 } }",
    "{ poisson = { mean = 1.5, max = 5 } }",
    "{ geometric = { p = 0.4, max = 5 } }",
    "{ normal = { mean = 2, stddev = 1, max = 5 } }",
    "{ lognormal = { median = 1, sigma = 0.5, max = 5 } }",
    "{ exponential = { mean = 1, max = 5 } }",
];

/// The body of a field as an inline table without its name, and whether it may be null.
fn body(depth: u32) -> BoxedStrategy<(String, bool)> {
    let nulls = prop_oneof![Just(None), Just(Some("0")), Just(Some("0.3")), Just(Some("1"))];
    let leaf =
        (0..LEAVES.len(), nulls.clone()).prop_map(|(i, nulls)| with_nulls(LEAVES[i].to_owned(), nulls));
    if depth == 0 {
        return leaf.boxed();
    }
    let structure =
        (proptest::collection::vec(body(depth - 1), 1..4), nulls.clone()).prop_map(|(fields, nulls)| {
            let fields: Vec<String> = fields
                .iter()
                .enumerate()
                .map(|(i, (body, _))| format!("{{ name = \"f{i}\", {body} }}"))
                .collect();
            with_nulls(format!("type = \"struct\", fields = [{}]", fields.join(", ")), nulls)
        });
    let list = (body(depth - 1), 0..LENGTHS.len(), nulls.clone(), any::<bool>()).prop_map(
        |((element, optional), length, nulls, legacy)| {
            // The `parquet` crate ignores extension types in lists of this form.
            let not_legacy = ["list", "map", "uuid", "json"].iter().any(|t| element.starts_with(&format!("type = \"{t}\"")));
            let legacy = legacy && !optional && !not_legacy;
            let length = LENGTHS[length];
            with_nulls(
                format!("type = \"list\", length = {length}, legacy = {legacy}, empty = 0.2, element = {{ {element} }}"),
                nulls,
            )
        },
    );
    let fixed = (body(depth - 1), 1..4, nulls.clone()).prop_map(|((element, _), size, nulls)| {
        with_nulls(format!("type = \"list\", size = {size}, element = {{ {element} }}"), nulls)
    });
    let map = (body(depth - 1), 0..LENGTHS.len(), 0..KEYS.len(), nulls).prop_map(
        |((value, _), length, key, nulls)| {
            let (length, key) = (LENGTHS[length], KEYS[key]);
            with_nulls(
                format!("type = \"map\", length = {length}, key = {{ {key} }}, value = {{ {value} }}"),
                nulls,
            )
        },
    );
    prop_oneof![2 => leaf, 2 => structure, 3 => list, 1 => fixed, 2 => map].boxed()
}

fn with_nulls(body: String, nulls: Option<&str>) -> (String, bool) {
    match nulls {
        None => (body, false),
        Some(share) => (format!("{body}, nulls = {share}"), true),
    }
}

fn spec(bodies: &[(String, bool)]) -> String {
    let fields: Vec<String> = bodies
        .iter()
        .enumerate()
        .map(|(i, (body, _))| format!("  {{ name = \"c{i}\", {body} }},\n"))
        .collect();
    format!("name = \"d\"\nfields = [\n{}]\n", fields.concat())
}

/// Writes one file, unless the dataset has no column for the encoding.
fn generate(dataset: &Dataset, layout: &Layout, path: &Path, options: &FileOptions) -> bool {
    let (profile, output, cancel) = (Profile::new(), Output::from_path(path), false.into());
    let phase = profile.phase("generate");
    let job = Job {
        seed: 9,
        threads: NonZeroUsize::new(2).unwrap(),
        options: options.clone(),
        ..Job::new(layout, &output, &phase, &cancel)
    };
    match write(dataset, &job) {
        Ok(_) => true,
        Err(error) if error.what().starts_with("no column can be encoded") => false,
        Err(error) => panic!("{error}\n{options:?}"),
    }
}

/// All rows of a file, in the types of `schema`.
fn read(path: &Path, schema: SchemaRef) -> Vec<RecordBatch> {
    let options = ArrowReaderOptions::new().with_schema(schema);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path).unwrap(), options);
    builder.unwrap().with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect()
}

/// Generates `rows` of `spec`, and compares the file with the batches.
fn assert_same_rows(spec: &str, rows: u64) {
    assert_same_rows_written(spec, rows, &FileOptions::default());
}

/// The same with other file options.
fn assert_same_rows_written(spec: &str, rows: u64, options: &FileOptions) {
    assert_same_rows_in_groups(spec, rows, 1500, options);
}

/// The same with row groups of another size.
fn assert_same_rows_in_groups(spec: &str, rows: u64, group: u64, options: &FileOptions) {
    let dataset = Dataset::from_toml(spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("d.parquet");
    let layout = Layout::new(rows, 1).unwrap().with_row_group_rows(group).unwrap();
    if !generate(&dataset, &layout, &path, options) {
        return;
    }
    let read = read(&path, dataset.arrow_schema());
    let read = arrow_select::concat::concat_batches(&dataset.arrow_schema(), &read).unwrap();
    let mut made = Vec::new();
    for batch in dataset.batches(0..rows, 9, 700) {
        made.push(batch.unwrap());
    }
    let made = arrow_select::concat::concat_batches(&dataset.arrow_schema(), &made).unwrap();
    assert_eq!(read.num_rows(), made.num_rows(), "{spec}");
    for (i, (read, made)) in read.columns().iter().zip(made.columns()).enumerate() {
        assert!(same(read, made), "column {i} differs\n{spec}\n{options:?}\n{read:?}\n{made:?}");
    }
    assert_same_when_chosen(&dataset, &made, spec);
}

/// Whether two columns are equal. NaN differs from itself, so floats are compared as text.
fn same(read: &ArrayRef, made: &ArrayRef) -> bool {
    let has_floats = format!("{:?}", made.data_type()).contains("Float");
    let shown = |array: &ArrayRef, row| format!("{:?}", array.slice(row, 1));
    read == made || has_floats && (0..made.len()).all(|row| shown(read, row) == shown(made, row))
}

/// Compares each field with the same field drawn without those that it does not need, from a row within a block.
fn assert_same_when_chosen(dataset: &Dataset, made: &RecordBatch, spec: &str) {
    let rows = made.num_rows() as u64;
    for place in 0..made.num_columns() {
        let first = rows.min(3);
        let mut row = first as usize;
        for alone in dataset.batches_of(&[place], first..rows, 9, 1500).unwrap() {
            let alone = alone.unwrap();
            let expected = made.column(place).slice(row, alone.num_rows());
            assert!(alone.num_columns() == 1 && same(alone.column(0), &expected), "column {place}\n{spec}");
            row += alone.num_rows();
        }
        assert_eq!(row as u64, rows, "{spec}");
    }
}

#[test]
fn fields_are_chosen_in_any_order_and_those_that_do_not_exist_are_an_error() {
    let orders = Dataset::built_in("orders").unwrap().unwrap();
    let all = orders.batches(0..2000, 9, 2000).next().unwrap().unwrap();
    for places in [vec![], vec![2, 0], (0..all.num_columns()).rev().collect()] {
        let some = orders.batches_of(&places, 0..2000, 9, 2000).unwrap().next().unwrap().unwrap();
        assert_eq!(some, all.project(&places).unwrap());
    }
    let error = orders.batches_of(&[99], 0..1, 9, 1).unwrap_err().to_string();
    assert!(error.contains("there is no field 99"), "{error}");
}

#[test]
fn every_leaf_is_read_back_as_written() {
    for leaf in LEAVES {
        for nulls in ["", ", nulls = 0.4"] {
            assert_same_rows(&spec(&[(format!("{leaf}{nulls}"), true)]), 2600);
        }
    }
}

#[test]
fn built_in_datasets_are_read_back_as_written() {
    for (_, text) in BUILT_IN {
        assert_same_rows(text, 3000);
    }
}

#[test]
fn row_groups_with_many_names_have_a_dictionary_and_are_read_back_as_written() {
    let flat = r#"type = "string", nulls = 0.01, values = "person_name""#;
    let list = r#"type = "list", nulls = 0.1, length = { uniform = { min = 0, max = 4 } },
        element = { type = "string", nulls = 0.2, values = "person_name" }"#;
    let spec = spec(&[(flat.into(), true), (list.into(), true)]);
    let dataset = Dataset::from_toml(&spec).unwrap();
    // The last row group is too short for a dictionary. Pages of 2,000 bytes make many pages.
    let (rows, group) = (80_000, 72_000);
    for (codec, version, page_bytes) in [
        ("none", PageVersion::V1, 1 << 20),
        ("zstd", PageVersion::V2, 1 << 20),
        ("snappy", PageVersion::V1, 2000),
    ] {
        let mut options = FileOptions::default();
        options.compression = codec.parse().unwrap();
        options.page_version = version;
        options.page_bytes = page_bytes;
        assert_same_rows_in_groups(&spec, rows, group, &options);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("d.parquet");
        let layout = Layout::new(rows, 1).unwrap().with_row_group_rows(group).unwrap();
        assert!(generate(&dataset, &layout, &path, &options));
        let metadata = ArrowReaderMetadata::load(&File::open(&path).unwrap(), Default::default()).unwrap();
        let row_groups = metadata.metadata().row_groups();
        for column in 0..2 {
            let [long, short] = [0, 1].map(|group: usize| row_groups[group].column(column));
            assert!(long.dictionary_page_offset().is_some() && short.dictionary_page_offset().is_none());
            // String sizes count the bytes of the values, not of their codes.
            let of_value = |chunk: &parquet::file::metadata::ColumnChunkMetaData| {
                let nulls = chunk.statistics().unwrap().null_count_opt().unwrap() as i64;
                chunk.unencoded_byte_array_data_bytes().unwrap() as f64 / (chunk.num_values() - nulls) as f64
            };
            assert!((of_value(long) - of_value(short)).abs() < 0.2, "{} {}", of_value(long), of_value(short));
        }
    }
}

#[test]
fn types_are_those_of_the_spec() {
    let dataset = Dataset::from_toml(&spec(&[
        ("type = \"timestamp\", unit = \"ns\", zone = \"Europe/Berlin\", values = { constant = 2024-01-01 }".into(), false),
        ("type = \"decimal\", precision = 60, scale = 3, values = { constant = 1 }".into(), false),
    ]))
    .unwrap();
    let schema = dataset.arrow_schema();
    assert_eq!(schema.field(0).data_type().to_string(), "Timestamp(ns, \"Europe/Berlin\")");
    assert_eq!(*schema.field(1).data_type(), DataType::Decimal256(60, 3));
}

/// File options: every encoding, codec (another one for the first field, or not), page version and statistics level,
/// with and without a page size.
fn options() -> impl Strategy<Value = FileOptions> {
    let encoding = proptest::option::of(proptest::sample::select(Encoding::ALL.to_vec()));
    let codecs = ["none", "snappy", "lz4", "zstd", "zstd:3", "gzip", "brotli"];
    let codec = proptest::sample::select(codecs.to_vec());
    let statistics = proptest::sample::select(StatisticsLevel::ALL.to_vec());
    let page_bytes = proptest::sample::select(vec![1u64, 100, 2000, 1 << 20]);
    let of_first = proptest::option::of(codec.clone());
    (encoding, (codec, of_first), any::<bool>(), statistics, any::<bool>(), page_bytes).prop_map(
        |(encoding, (codec, of_first), second, statistics, page_index, page_bytes)| {
            let mut options = FileOptions::default();
            options.encoding = encoding;
            options.compression = codec.parse::<Compression>().unwrap();
            let of_first = of_first.map(|codec| ("c0".to_owned(), codec.parse().unwrap()));
            options.column_compressions = of_first.into_iter().collect();
            options.page_version = if second { PageVersion::V2 } else { PageVersion::V1 };
            options.statistics = statistics;
            options.page_index = page_index;
            options.page_bytes = page_bytes;
            options
        },
    )
}

#[test]
fn every_leaf_is_read_back_in_every_encoding_and_page_version() {
    for leaf in LEAVES {
        let spec = spec(&[(format!("{leaf}, nulls = 0.3"), true)]);
        for encoding in Encoding::ALL {
            for version in [PageVersion::V1, PageVersion::V2] {
                let mut options = FileOptions::default();
                options.encoding = Some(encoding);
                options.page_version = version;
                options.page_bytes = 900;
                assert_same_rows_written(&spec, 1600, &options);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]
    #[test]
    fn nested_specs_are_read_back_as_written(
        bodies in proptest::collection::vec(body(3), 1..4),
        rows in 1u64..2500,
    ) {
        assert_same_rows(&spec(&bodies), rows);
    }

    #[test]
    fn nested_specs_are_read_back_with_any_file_options(
        bodies in proptest::collection::vec(body(2), 1..4),
        options in options(),
        rows in 1u64..1700,
    ) {
        let spec = spec(&bodies);
        assert_same_rows_written(&spec, rows, &options);
    }
}
