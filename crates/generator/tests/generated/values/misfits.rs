//! A value that its column cannot hold is an error with the field and the row, if the row was requested. It
//! never becomes another value.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use sawmill_generator::{Dataset, Error, ErrorKind, FileOptions, Job, Layout, Output, Part, RowSize, write};
use sawmill_profile::Profile;

/// Rows numbered by `n`, and a field `x`.
fn dataset(x: &str) -> Dataset {
    let spec = format!(
        "name = \"d\"\nfields = [\n{{ name = \"n\", type = \"int64\", values = {{ sequence = {{}} }} }},\n{{ name = \"x\", {x} }},\n]"
    );
    Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"))
}

fn drawn(dataset: &Dataset, rows: std::ops::Range<u64>, batch_rows: usize) -> Result<u64, Error> {
    dataset.batches(rows, 7, batch_rows).map(|batch| batch.map(|b| b.num_rows() as u64)).sum()
}

#[test]
fn a_value_that_does_not_fit_its_column_is_an_error_with_field_and_row() {
    let cases = [
        (
            "type = \"int32\", values = { expression = \"n * 1_000_000\" }",
            2148,
            "the value 2148000000 does not fit int32",
        ),
        ("type = \"int8\", values = { expression = \"200.5 - n\" }", 0, "the value 200.5 does not fit int8"),
        ("type = \"uint16\", values = { expression = \"100 - n\" }", 101, "the value -1 does not fit uint16"),
        ("type = \"int64\", values = { expression = \"1000 / (n - 2900)\" }", 2900, "divides by zero"),
        ("type = \"double\", values = { expression = \"1 / (n - 5)\" }", 5, "divides by zero"),
        ("type = \"double\", values = { expression = \"n % (n - 5)\" }", 5, "divides by zero"),
        ("type = \"double\", values = { expression = \"sqrt(1500 - n)\" }", 1501, "sqrt(-1) is undefined"),
        ("type = \"double\", values = { expression = \"ln(n - 1)\" }", 0, "ln(-1) is undefined"),
        ("type = \"double\", values = { expression = \"exp(n)\" }", 710, "the value inf does not fit double"),
        ("type = \"float\", values = { expression = \"exp(n)\" }", 89, "does not fit float"),
        (
            "type = \"float16\", values = { expression = \"n * 64\" }",
            1024,
            "the value 65536 does not fit float16",
        ),
        (
            "type = \"decimal\", precision = 4, scale = 2, values = { expression = \"n / 10\" }",
            1000,
            "the value 100 does not fit decimal(4, 2)",
        ),
        (
            "type = \"int64\", values = { expression = \"n * n * n * n * n * n * n\" }",
            512,
            "does not fit int64",
        ),
        (
            "type = \"int8\", values = { walk = { start = 0, step = 1 } }",
            128,
            "the value 128 does not fit int8",
        ),
        (
            "type = \"uint8\", values = { walk = { start = 9, step = -1 } }",
            10,
            "the value -1 does not fit uint8",
        ),
        (
            "type = \"time\", values = { walk = { start = 23:00:00, step = \"1s\" } }",
            3600,
            "does not fit time(us)",
        ),
        (
            "type = \"timestamp\", values = { walk = { start = 2024-01-01T00:00:00, step = 1e15 } }",
            9222,
            "does not fit",
        ),
    ];
    for (x, row, what) in cases {
        let dataset = dataset(x);
        for batch_rows in [100, 1024, 1500, 20_000] {
            let error = drawn(&dataset, 0..10_000, batch_rows).expect_err(x);
            assert_eq!(error.kind(), ErrorKind::Spec);
            assert_eq!(error.place(), format!("field x, row {row}"), "{x}, batches of {batch_rows}: {error}");
            assert!(error.what().contains(what), "{x}: {error}");
        }
        assert_eq!(drawn(&dataset, 0..row, 1000).unwrap(), row, "{x}");
    }
}

#[test]
fn distributions_without_bounds_do_not_pile_up_at_the_end_of_a_type() {
    for x in [
        "type = \"int8\", values = { normal = { mean = 100, stddev = 20 } }",
        "type = \"uint8\", values = { normal = { mean = 10, stddev = 10 } }",
        "type = \"int16\", values = { lognormal = { median = 9000, sigma = 1 } }",
        "type = \"float16\", values = { exponential = { mean = 20000 } }",
        "type = \"double\", values = { lognormal = { median = 1, sigma = 1000 } }",
    ] {
        let error = drawn(&dataset(x), 0..10_000, 1000).expect_err(x);
        assert!(
            error.place().starts_with("field x, row ") && error.advice().contains("`min` and `max`"),
            "{error}"
        );
    }
    let x = "type = \"uint8\", values = { normal = { mean = 10, stddev = 10, min = 0, max = 30 } }";
    assert_eq!(drawn(&dataset(x), 0..10_000, 1000).unwrap(), 10_000);
    let x = "type = \"int64\", values = { exponential = { mean = 9e18, max = 9223372036854775807 } }";
    let batch = dataset(x).batches(0..2000, 7, 2000).next().unwrap().unwrap();
    assert!(batch.column(1).as_primitive::<Int64Type>().values().contains(&i64::MAX));
}

#[test]
fn rows_that_were_not_requested_cause_no_error() {
    let bad = dataset("type = \"int64\", values = { expression = \"1000 / (n - 1500)\" }");
    // Row 1500 is drawn with its block in all of these.
    for rows in [0..1500, 1024..1500, 1501..2048, 1501..5000] {
        for batch_rows in [10, 700, 4096] {
            assert_eq!(drawn(&bad, rows.clone(), batch_rows).unwrap(), rows.end - rows.start);
        }
    }
    for rows in [1500..1501, 1400..1600, 0..9000] {
        assert_eq!(drawn(&bad, rows, 333).unwrap_err().place(), "field x, row 1500");
    }
    // The sample that measures the row size does not fail either.
    assert!(RowSize::measure(&bad, &FileOptions::default(), 7).is_ok());
}

#[test]
fn only_the_part_with_the_row_fails_in_every_layout() {
    let bad = dataset("type = \"int64\", values = { expression = \"1000 / (n - 1500)\" }");
    let run = |part: &str, files: u32, threads: usize, partition: bool| {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(4000, files).unwrap().with_row_group_rows(300).unwrap();
        let (profile, output, cancel) = (Profile::new(), Output::Directory(dir.path().into()), false.into());
        let phase = profile.phase("generate");
        let job = Job {
            threads: NonZeroUsize::new(threads).unwrap(),
            part: part.parse::<Part>().unwrap(),
            seed: 7,
            partition_by: partition.then(|| "n".to_owned()),
            ..Job::new(&layout, &output, &phase, &cancel)
        };
        write(&bad, &job).map(|files| files.iter().map(|file| file.rows).sum::<u64>())
    };
    for threads in [1, 3] {
        for part in ["1/4", "3/4", "4/4"] {
            assert_eq!(run(part, 4, threads, false).unwrap(), 1000);
        }
        for (part, files) in [("2/4", 4), ("1/1", 4), ("1/1", 1)] {
            let error = run(part, files, threads, false).unwrap_err();
            assert!(error.to_string().contains("field x, row 1500"), "{error}");
        }
        let error = run("1/1", 1, threads, true).unwrap_err();
        assert!(error.to_string().contains("field x, row 1500"), "{error}");
    }
}

#[test]
fn errors_in_lists_name_the_row_and_nulls_cause_none() {
    // At most two elements a row, each sqrt(999.5 - row), undefined from row 1000 on.
    let in_list = |nulls: &str| {
        dataset(&format!(
            "type = \"list\", length = {{ uniform = {{ min = 0, max = 2 }} }}, empty = 0.5, element = {{ type = \"double\", {nulls} values = {{ expression = \"sqrt(999.5 - n)\" }} }}"
        ))
    };
    for batch_rows in [64, 1024, 3000] {
        let dataset = in_list("");
        let error = drawn(&dataset, 0..3000, batch_rows).unwrap_err();
        let row: u64 = error.place().strip_prefix("field x.list.element, row ").unwrap().parse().unwrap();
        assert!((1000..1050).contains(&row), "{error}");
        assert!(drawn(&dataset, 0..row, batch_rows).is_ok());
        assert!(drawn(&dataset, row..row + 1, batch_rows).is_err());
    }
    assert_eq!(drawn(&in_list("nulls = 1,"), 0..3000, 500).unwrap(), 3000);
}

#[test]
fn a_sequence_wraps_around_at_the_end_of_its_type() {
    let x = "type = \"int64\", values = { sequence = { start = 9223372036854775806, step = 1 } }";
    let batch = dataset(x).batches(0..3, 7, 3).next().unwrap().unwrap();
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().values()[..], [i64::MAX - 1, i64::MAX, i64::MIN]);
}

#[test]
fn unique_numbers_stay_within_their_bounds_or_do_not_suffice_for_the_rows() {
    for (kind, min, max) in [("int32", 1, 100), ("int64", -50, 50), ("int8", 1, 10), ("uint8", 0, 255)] {
        let values = format!("values.uniform = {{ min = {min}, max = {max}, unique = true }}");
        let dataset = dataset(&format!("type = \"{kind}\", {values}"));
        let count = (max - min + 1) as u64;
        dataset.check_unique(count).unwrap();
        let numbers = dataset.batches(0..count, 7, 64).flat_map(|batch| {
            let numbers = arrow_cast::cast(batch.unwrap().column(1), &DataType::Int64).unwrap();
            numbers.as_primitive::<Int64Type>().values().to_vec()
        });
        let mut numbers: Vec<i64> = numbers.collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (min..=max).collect::<Vec<i64>>());
        let error = dataset.check_unique(count + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Spec);
        let what = format!(
            "the field x has {count} different values, and the table {} rows - d - widen min and max, or leave unique out",
            count + 1
        );
        assert_eq!(error.to_string(), what);
    }
}

#[test]
fn unique_patterns_that_do_not_suffice_for_their_share_of_the_rows_are_named() {
    let x = |patterns: &str| {
        dataset(&format!("type = \"string\", values.pattern = {{ unique = {{ {patterns} }} }}"))
    };
    let texts = |dataset: &Dataset, rows: u64| -> BTreeSet<String> {
        let batches = dataset.batches(0..rows, 7, 1024).map(Result::unwrap);
        let texts = batches.flat_map(|batch| {
            let texts = batch.column(1).as_string::<i32>().iter();
            texts.map(|text| text.unwrap().to_owned()).collect::<Vec<String>>()
        });
        texts.collect()
    };
    for (patterns, suffices, rows, what) in [
        (
            "\"X[0-9]{2}\" = 1",
            100,
            1_000,
            "\"X[0-9]{2}\" of the field x matches 100 different texts, and 1,000 of 1,000 rows",
        ),
        (
            "\"X[0-9]{2}\" = 60",
            100,
            101,
            "\"X[0-9]{2}\" of the field x matches 100 different texts, and 101 of 101 rows",
        ),
        (
            "\"X[0-9]{4}\" = 3, \"Y[0-9]{5}\" = 1",
            13_334,
            20_000,
            "\"X[0-9]{4}\" of the field x matches 10,000 different texts, and 15,000 of 20,000 rows",
        ),
        (
            "\"M[0-9]{3}\" = 15, \"N[0-9]{2}\" = 45",
            133,
            140,
            "\"N[0-9]{2}\" of the field x matches 100 different texts, and 105 of 140 rows",
        ),
        (
            "\"N[0-9]{2}\" = 7, \"O[0-9]{3}\" = 5",
            173,
            174,
            "\"N[0-9]{2}\" of the field x matches 100 different texts, and 101 of 174 rows",
        ),
    ] {
        let dataset = x(patterns);
        dataset.check_unique(suffices).unwrap();
        assert_eq!(texts(&dataset, suffices).len() as u64, suffices, "{patterns}");
        let error = dataset.check_unique(rows).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    x("\"[a-z0-9]{40}\" = 1").check_unique(1 << 40).unwrap();
    // The number of the row says the string, whether or not it is null.
    let nullable = "name = 'x'\nfields = [{ name = 'x', type = 'string', nulls = 0.5, values.pattern.unique = { '[A-Z]{3}' = 1 } }]";
    let error = Dataset::from_toml(nullable).unwrap().check_unique(20_000).unwrap_err().to_string();
    assert!(error.contains("20,000 of 20,000 rows, null ones included, need one"), "{error}");
}

#[test]
fn a_reference_needs_as_many_unique_keys_as_the_other_table_has_rows() {
    let spec = |orphans: &str| {
        format!(
            "name = \"s\"\n[[tables]]\nname = \"p\"\nrows = 100\nfields = [{{ name = \"code\", type = \"string\", values.pattern.unique = {{ \"[A-Z][0-9]\" = 1 }} }}]\n\
             [[tables]]\nname = \"c\"\nper = {{ table = \"p\", rows = {{ constant = 3 }} }}\nfields = [\n\
             {{ name = \"to\", type = \"string\", values.ref = {{ to = \"p.code\"{orphans} }} }},\n\
             {{ name = \"own\", type = \"int16\", values.uniform = {{ min = 1, max = 300, unique = true }} }}]\n\
             [[tables]]\nname = \"late\"\narrivals = {{ of = \"p\", late = {{ share = 0.1, by = {{ constant = 5 }} }} }}\n"
        )
    };
    let check = |table: &str, scale: f64, orphans: &str| {
        let dataset = Dataset::table_from_toml(&spec(orphans), table, Some(scale)).unwrap();
        dataset.check_unique(dataset.rows().unwrap()).map_err(|error| error.to_string())
    };
    assert_eq!(
        (check("p", 2.6, ""), check("c", 1.0, ""), check("c", 1.0, ", orphans = 0.1")),
        (Ok(()), Ok(()), Ok(()))
    );
    assert!(check("p", 2.61, "").unwrap_err().contains("260 different texts, and 261 of 261 rows need one"));
    // Orphans have keys of as many rows again.
    for (scale, orphans, keys) in [(2.7, "", "270 of 270"), (1.4, ", orphans = 0.1", "280 of 280")] {
        let error = check("c", scale, orphans).unwrap_err();
        assert!(error.contains("260 different texts") && error.contains(keys), "{error}");
        assert!(error.contains("keys of p to which to refers"), "{error}");
    }
    assert!(check("late", 2.61, "").unwrap_err().contains("261 of 261 rows need one - p -"));
    let error = check("c", 2.0, "").unwrap_err();
    assert!(error.contains("the field own has 300 different values, and the table 600 rows"), "{error}");
}
