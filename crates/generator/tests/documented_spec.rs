//! The spec that the documentation shows is a dataset.

use sawmill_generator::Dataset;

#[test]
fn the_example_of_the_dataset_documentation_is_valid() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dataset-spec.md"));
    let text = text.unwrap();
    let mut examples = 0;
    for block in text.split("```toml\n").skip(1) {
        let spec = block.split("```").next().unwrap();
        Dataset::from_toml(spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
        examples += 1;
    }
    assert!(examples > 0);
}
