//! The JSON schema of dataset specs, for editors that check and complete TOML files.
//!
//! `datasets/spec_schema.json` holds it with abbreviations: a text that begins with `@`, or the key `@` of an object,
//! abbreviates a schema. An abbreviation is the name of a shape; or the keys of an object, each with the name of its
//! shape, as `NAME:SHAPE`, or `NAME!:SHAPE` if it is required; or `=TEXT`, for that very text; or several of these,
//! with `|` between them.

use serde_json::{Map, Value, json};

/// The JSON schema (draft 2020-12) of dataset specs.
pub fn json_schema() -> Value {
    let file: Value =
        serde_json::from_str(include_str!("../../datasets/spec_schema.json")).unwrap_or_default();
    whole(&file["schema"], &file["shapes"])
}

/// The value without abbreviations.
fn whole(value: &Value, shapes: &Value) -> Value {
    match value {
        Value::String(text) => {
            text.strip_prefix('@').map_or_else(|| value.clone(), |text| schema(text, shapes))
        }
        Value::Array(all) => all.iter().map(|value| whole(value, shapes)).collect(),
        Value::Object(all) => {
            let short = all.get("@").and_then(Value::as_str).map(|text| schema(text, shapes));
            let mut object = short.and_then(|short| short.as_object().cloned()).unwrap_or_default();
            let own = all.iter().filter(|(key, _)| *key != "@");
            object.extend(own.map(|(key, value)| (key.clone(), whole(value, shapes))));
            Value::Object(object)
        }
        other => other.clone(),
    }
}

/// Expands an abbreviation to its schema.
fn schema(text: &str, shapes: &Value) -> Value {
    if text.contains(" | ") {
        return json!({ "oneOf": text.split(" | ").map(|text| schema(text, shapes)).collect::<Vec<_>>() });
    }
    if let Some(text) = text.strip_prefix('=') {
        return json!({ "const": text });
    }
    if !text.contains(':') {
        return whole(&shapes[text], shapes);
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (key, shape) in text.split(' ').filter_map(|word| word.split_once(':')) {
        let name = key.strip_suffix('!').unwrap_or(key);
        if name != key {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema(shape, shapes));
    }
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::copula::{MAX_BEFORE, MAX_LAG};
    use crate::draw::lengths::{LENGTHS, MAX_ELEMENTS};
    use crate::draw::text::localized::kinds;
    use crate::draw::value_spec::reader::VALUES;
    use crate::spec::reader::GROUP_KEYS;
    use crate::types::logical_type::{MAX_DIGITS, MAX_WIDTH, leaf_types};

    #[test]
    fn every_type_with_its_keys_and_every_length_and_distribution_is_in_the_schema() {
        let schema = json_schema();
        let one_of = |part: &str| schema["$defs"][part]["oneOf"].as_array().unwrap().clone();
        let leaves = leaf_types().map(|(name, keys)| (name, keys, &["values"][..]));
        let groups = GROUP_KEYS.iter().map(|&(name, keys)| (name, keys, &[][..]));
        let types: Vec<_> = leaves.chain(groups).collect();
        let fields = one_of("field");
        assert_eq!(fields.len(), types.len());
        for (name, keys, values) in types {
            let field = fields.iter().find(|field| field["properties"]["type"]["const"] == name).unwrap();
            let properties = field["properties"].as_object().unwrap();
            let mut expected = [&["name", "type", "nulls", "hidden"], keys, values].concat();
            expected.sort_unstable();
            let mut found: Vec<&str> = properties.keys().map(String::as_str).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{name}");
        }
        let named = |part: &str| -> Vec<String> {
            let name = |form: &Value| match form["oneOf"].as_array() {
                Some(forms) => forms[0]["const"].as_str().map(str::to_owned),
                None => form["const"].as_str().map_or_else(
                    || form["properties"].as_object()?.keys().next().cloned(),
                    |name| Some(name.to_owned()),
                ),
            };
            one_of(part).iter().map(|form| name(form).unwrap()).collect()
        };
        assert_eq!(named("values"), VALUES.split_whitespace().chain(kinds()).collect::<Vec<_>>());
        assert_eq!(named("length"), LENGTHS);
    }

    #[test]
    fn the_limits_of_the_schema_are_those_of_the_reader() {
        let schema = json_schema();
        let most = |name: &str, key: &str| {
            let fields = schema["$defs"]["field"]["oneOf"].as_array().unwrap();
            let field = fields.iter().find(|field| field["properties"]["type"]["const"] == name).unwrap();
            field["properties"][key]["maximum"].as_u64().unwrap()
        };
        assert_eq!(most("decimal", "precision"), u64::from(MAX_DIGITS));
        assert_eq!(most("decimal", "scale"), u64::from(MAX_DIGITS));
        assert_eq!(most("fixed_binary", "width"), u64::from(MAX_WIDTH));
        assert_eq!(most("list", "size"), u64::from(MAX_ELEMENTS));
        let member = &schema["properties"]["copula"]["items"]["properties"];
        assert_eq!(member["autocorrelation"]["maximum"].as_f64(), Some(MAX_BEFORE));
        assert_eq!(member["lag"]["maximum"].as_u64(), Some(MAX_LAG));
    }
}
