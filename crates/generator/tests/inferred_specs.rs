//! Inferred specs are valid, and their data has the same schema and nearly the same shape as the sample.

use arrow_array::RecordBatch;
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
