//! Inferred specs are valid, and their data has the same schema and nearly the same shape as the sample.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use sawmill_generator::{BUILT_IN, Dataset, InferredSpec};

fn sample(dataset: &Dataset) -> Vec<RecordBatch> {
    dataset.batches(0..4000, 1, 1000).map(Result::unwrap).collect()
}

fn infer(dataset: &Dataset, batches: &[RecordBatch]) -> String {
    let mut inferred = InferredSpec::new(dataset.name(), &dataset.arrow_schema(), &[]).unwrap();
    for batch in batches {
        inferred.add(batch).unwrap();
    }
    inferred.to_toml().unwrap()
}

fn parse(spec: &str) -> Dataset {
    Dataset::from_toml(spec).unwrap_or_else(|error| panic!("{error}\n{spec}"))
}

#[test]
fn a_spec_inferred_from_a_schema_has_the_same_schema() {
    for (name, _) in BUILT_IN {
        let dataset = Dataset::built_in(name).unwrap().unwrap();
        let again = parse(&infer(&dataset, &[]));
        assert_eq!(again.arrow_schema(), dataset.arrow_schema(), "{name}");
    }
}

#[test]
fn a_spec_inferred_from_a_sample_has_the_same_schema_and_nearly_the_same_sizes() {
    for (name, _) in BUILT_IN {
        let dataset = Dataset::built_in(name).unwrap().unwrap();
        let spec = infer(&dataset, &sample(&dataset));
        let again = parse(&spec);
        assert_eq!(again.arrow_schema(), dataset.arrow_schema(), "{name}\n{spec}");
        let bytes = |dataset: &Dataset| {
            sample(dataset).iter().map(RecordBatch::get_array_memory_size).sum::<usize>() as f64
        };
        let ratio = bytes(&again) / bytes(&dataset);
        assert!((0.6..1.6).contains(&ratio), "{name}: {ratio}\n{spec}");
    }
}

#[test]
fn contacts_are_recognised() {
    let dataset = Dataset::built_in("contacts").unwrap().unwrap();
    let spec = infer(&dataset, &sample(&dataset));
    for part in ["unique = \"+91-{id:010}\"", "\"Mobile\" =", "\"person_name\"", "1 = ", "5 = "] {
        assert!(spec.contains(part), "{part}\n{spec}");
    }
    let nulls: Vec<f64> =
        spec.lines().filter_map(|line| line.strip_prefix("nulls = ")?.parse().ok()).collect();
    assert!((nulls[0] - 0.2).abs() < 0.03 && (nulls[1] - 0.4).abs() < 0.03, "{spec}");
}

#[test]
fn whole_numbers_that_never_repeat_stay_so_in_more_rows() {
    let spec = "name = 'keys'\nfields = [{ name = 'id', type = 'int64', values.uniform = { min = 100_000, max = 124_999, unique = true } }]";
    let ids = |dataset: &Dataset, rows: u64| -> HashSet<i64> {
        let batches = dataset.batches(0..rows, 9, 1000).map(Result::unwrap);
        batches.flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
    };
    let dataset = parse(spec);
    assert_eq!(ids(&dataset, 20_000).len(), 20_000);
    let batches: Vec<RecordBatch> = dataset.batches(0..20_000, 9, 1000).map(Result::unwrap).collect();
    let spec = infer(&dataset, &batches);
    assert!(spec.contains("unique = true"), "{spec}");
    assert_eq!(ids(&parse(&spec), 60_000).len(), 60_000);
}

/// Dates, amounts, times to the second, clusters of numbers, names and short words: draws of such would repeat.
#[test]
fn columns_without_equal_values_stay_so() {
    let dataset = parse(
        r#"
name = "keys"
fields = [
  { name = "day", type = "date", values.uniform = { min = 1900-01-01, max = 1960-12-31, unique = true } },
  { name = "amount", type = "decimal", precision = 9, scale = 2, values.uniform = { min = 1, max = 900, unique = true } },
  { name = "at", type = "timestamp", values.quantiles = { values = [2024-01-01T00:00:00, 2024-01-02T00:00:00, 2024-03-01T00:00:00], step = "1s", unique = true } },
  { name = "id", type = "int64", values.quantiles = { values = [1, 9000, 1000000, 1006000], shares = [0, 0.5, 0.51, 1], unique = true } },
  { name = "name", type = "string", values.pattern = { unique = { "[A-Z][a-z]{3} [A-Z][a-z]{5}" = 4000 } } },
  { name = "words", type = "string", values.pattern = { unique = { "[a-f]{3} [a-f]{4}" = 4000 } } },
]
"#,
    );
    let repeats = |dataset: &Dataset| -> Vec<(String, usize)> {
        let batch = dataset.batches(0..4000, 1, 4000).next().unwrap().unwrap();
        let of = |column: &ArrayRef| {
            let shown = (0..column.len()).map(|row| format!("{:?}", column.slice(row, 1)));
            column.len() - shown.collect::<HashSet<String>>().len()
        };
        let names = batch.schema();
        names
            .fields()
            .iter()
            .zip(batch.columns())
            .map(|(field, column)| (field.name().clone(), of(column)))
            .collect()
    };
    let none = repeats(&dataset);
    assert!(none.iter().all(|(_, n)| *n == 0), "{none:?}");
    let mut inferred = InferredSpec::new("keys", &dataset.arrow_schema(), &[]).unwrap();
    sample(&dataset).iter().for_each(|batch| inferred.add(batch).unwrap());
    inferred.set_rows(4000);
    let spec = inferred.to_toml().unwrap();
    let found = repeats(&parse(&spec));
    assert_eq!(found, none, "{spec}");
}

/// A city determines its country, a rate nearly its surcharge; the weekday has nothing to do with either.
#[test]
fn categories_depend_on_one_another_as_in_the_sample() {
    let source = parse(
        r#"
name = "rides"
[[fields]]
name = "city"
type = "string"
values = { weights = { Graz = 2, Linz = 1, Bonn = 4, Kiel = 2 } }
[[fields]]
name = "weekday"
type = "int8"
values = { uniform = { min = 1, max = 7 } }
[[fields]]
name = "country"
type = "string"
values = { weights_by = { field = "city", given = { Graz = { AT = 1 }, Linz = { AT = 1 } }, otherwise = { DE = 1 } } }
[[fields]]
name = "rate"
type = "int32"
nulls = 0.1
values = { weights = { 1 = 6, 2 = 3, 99 = 1 } }
[[fields]]
name = "surcharge"
type = "double"
nulls = 0
values = { weights_by = { field = "rate", given = { 2 = { "2.5" = 9, "0.0" = 1 } }, otherwise = { "0.0" = 8, "1.0" = 1, "-1.0" = 1 } } }
"#,
    );
    let batches: Vec<RecordBatch> = source.batches(0..40_000, 1, 10_000).map(Result::unwrap).collect();
    let spec = infer(&source, &batches);
    assert!(spec.matches("weights_by").count() == 1 && spec.contains("field = \"surcharge\"\n"), "{spec}");
    let again = parse(&spec);
    let pairs = |dataset: &Dataset, a: &str, b: &str| {
        let mut pairs = std::collections::BTreeMap::<String, f64>::new();
        let batch = dataset.batches(0..40_000, 9, 40_000).next().unwrap().unwrap();
        let shown = |name: &str| {
            let column =
                arrow_cast::cast(batch.column_by_name(name).unwrap(), &arrow_schema::DataType::Utf8).unwrap();
            let column = column.as_string::<i32>().clone();
            (0..column.len()).map(move |i| column.is_valid(i).then(|| column.value(i).to_owned()))
        };
        shown(a)
            .zip(shown(b))
            .for_each(|pair| *pairs.entry(format!("{pair:?}")).or_default() += 1.0 / 40_000.0);
        pairs
    };
    for (a, b) in [("city", "country"), ("rate", "surcharge"), ("city", "weekday")] {
        let (ours, theirs) = (pairs(&source, a, b), pairs(&again, a, b));
        let keys: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        let share =
            |pairs: &std::collections::BTreeMap<String, f64>, key| pairs.get(key).copied().unwrap_or(0.0);
        let apart: f64 = keys.into_iter().map(|key| (share(&ours, key) - share(&theirs, key)).abs()).sum();
        assert!(apart / 2.0 < 0.02, "{a}, {b}: {apart}\n{spec}");
    }
}

#[test]
fn durations_and_lists_of_a_fixed_size_keep_their_types() {
    let dataset = parse(
        r#"
name = "d"
fields = [
  { name = "took", type = "duration", unit = "ms", values = { lognormal = { median = "90s", sigma = 1 } } },
  { name = "wait", type = "duration", unit = "ns", nulls = 0.1, values = { weights = { "5s" = 1, "2h" = 2 } } },
  { name = "vector", type = "list", size = 3, nulls = 0.1, element = { type = "float", values = { uniform = { min = 0, max = 1 } } } },
]
"#,
    );
    let batches = sample(&dataset);
    let spec = infer(&dataset, &batches);
    let again = parse(&spec);
    assert_eq!(again.arrow_schema(), dataset.arrow_schema(), "{spec}");
    assert!(spec.contains("size = 3") && spec.contains("5000000000"), "{spec}");
    assert_eq!(parse(&infer(&dataset, &[])).arrow_schema(), dataset.arrow_schema());
}
