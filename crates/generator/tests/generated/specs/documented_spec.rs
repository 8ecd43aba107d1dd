//! The examples of the dataset documentation are valid, and use every key, type and distribution.

use sawmill_generator::{Dataset, json_schema};

fn examples() -> Vec<String> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let text = ["dataset-spec.md", "dataset-values.md", "dataset-like.md"]
        .map(|name| std::fs::read_to_string(format!("{docs}/{name}")).unwrap())
        .concat();
    let blocks = text.split("```toml\n").skip(1);
    blocks
        .map(|block| {
            let spec = block.split("```").next().unwrap().to_owned();
            if spec.starts_with("name =") { spec } else { format!("name = \"example\"\n{spec}") }
        })
        .collect()
}

#[test]
fn every_example_makes_rows() {
    let made = |spec: &str, dataset: Result<Dataset, sawmill_generator::Error>| {
        let dataset = dataset.unwrap_or_else(|error| panic!("{error}\n{spec}"));
        let batch = dataset.batches(0..1000, 1, 1000).next().unwrap().unwrap();
        assert_eq!(batch.num_rows(), 1000);
    };
    for spec in examples() {
        let tables: Vec<&str> = spec.split("[[tables]]\nname = \"").skip(1).collect();
        for table in &tables {
            let name = table.split('"').next().unwrap();
            made(&spec, Dataset::table_from_toml(&spec, name, None));
        }
        if tables.is_empty() {
            made(&spec, Dataset::from_toml(&spec));
        }
    }
}

#[test]
fn the_specs_of_a_shop_of_telemetry_and_of_a_clinic_make_rows() {
    for name in ["shop", "telemetry", "clinic"] {
        let path = format!("{}/../../fixtures/specs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        for table in Dataset::tables_of_file(path.as_ref()).unwrap() {
            let dataset = Dataset::table_of_file(path.as_ref(), &table, None);
            let dataset = dataset.unwrap_or_else(|error| panic!("{error}"));
            let rows = dataset.most_rows().or(dataset.rows()).unwrap().min(2000);
            let made: usize = dataset.batches(0..rows, 1, 1000).map(|batch| batch.unwrap().num_rows()).sum();
            assert!(made > 0, "{name}/{table}");
        }
    }
}

#[test]
fn every_key_type_and_distribution_of_the_json_schema_has_an_example() {
    let all = examples().concat();
    let schema = json_schema();
    let mut missing = Vec::new();
    let mut need = |word: &str| {
        let there = all.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word);
        // Examples cannot name a file, because it would have to exist.
        if !there && word != "file" {
            missing.push(word.to_owned());
        }
    };
    for field in schema["$defs"]["field"]["oneOf"].as_array().unwrap() {
        need(field["properties"]["type"]["const"].as_str().unwrap());
        field["properties"].as_object().unwrap().keys().for_each(|key| need(key));
    }
    for part in ["values", "length"] {
        for one in schema["$defs"][part]["oneOf"].as_array().unwrap() {
            for one in one["oneOf"].as_array().unwrap_or(&vec![one.clone()]) {
                if let Some(name) = one["const"].as_str() {
                    need(name);
                }
                for (name, parameters) in one["properties"].as_object().into_iter().flatten() {
                    need(name);
                    parameters["properties"].as_object().into_iter().flatten().for_each(|(key, _)| need(key));
                }
            }
        }
    }
    schema["properties"].as_object().unwrap().keys().for_each(|key| need(key));
    assert!(missing.is_empty(), "no example of {missing:?}");
}
