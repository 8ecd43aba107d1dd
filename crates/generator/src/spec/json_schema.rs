//! The JSON schema of dataset specs, for editors that check and complete TOML files.
//!
//! It is built from the tables that the reader uses to check keys and names.

use serde_json::{Map, Value, json};

use crate::draw::copula::MAX_BEFORE;
use crate::draw::lengths::{LENGTHS, MAX_ELEMENTS};
use crate::draw::text::localized::KINDS;
use crate::draw::value_spec::reader::VALUES;
use crate::spec::reader::{DATASET_KEYS, GROUP_KEYS, PER, SCALE};
use crate::spec::tables::derived::DERIVED_KEYS;
use crate::spec::tables::file_rows::FILE;
use crate::spec::tables::{SCALES, SCHEMA_KEYS};
use crate::types::logical_type::{LEAF_TYPES, LogicalType, MAX_DIGITS, MAX_WIDTH};

/// The JSON schema (draft 2020-12) of dataset specs.
pub fn json_schema() -> Value {
    let types: Vec<Value> = LEAF_TYPES
        .iter()
        .map(|(name, _)| leaf(name))
        .chain(GROUP_KEYS.iter().map(|(name, keys)| group(name, keys)))
        .collect();
    let name = json!({
        "type": "string", "pattern": "^[A-Za-z0-9_-]+$", "description": about(DATASET_KEYS, "name"),
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sawmill dataset spec",
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "oneOf": [{ "required": ["fields"] }, { "required": ["tables"] }],
        "properties": {
            "name": name,
            "rows": json!({ "type": "integer", "minimum": 0, "description": about(DATASET_KEYS, "rows") }),
            "fields": fields(),
            "present": { "$ref": "#/$defs/present", "description": about(DATASET_KEYS, "present") },
            "copula": copula(),
            "tables": {
                "type": "array", "minItems": 1, "description": about(SCHEMA_KEYS, "tables"), "items": table(&name),
            },
        },
        "$defs": {
            "field": { "type": "object", "required": ["type"], "oneOf": types },
            "present": {
                "type": "array",
                "items": {
                    "type": "object", "additionalProperties": false, "required": ["fields", "weight"],
                    "properties": {
                        "fields": { "type": "array", "items": { "type": "string" } },
                        "weight": { "type": "number", "minimum": 0 },
                    },
                },
            },
            "nulls": {
                "description": "probability of null; without it the field is required",
                "oneOf": [
                    { "type": "number", "minimum": 0, "maximum": 1 },
                    keys("expression!:text"),
                    object(&[("weights", keys("null!:weight value!:weight"))], &["weights"]),
                ],
            },
            "length": { "oneOf": LENGTHS.iter().map(|name| object(&[(name, parameters(name, true))], &[name])).collect::<Vec<_>>() },
            "values": values(),
        },
    })
}

fn rows() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": about(DATASET_KEYS, "rows") })
}

fn fields() -> Value {
    json!({
        "type": "array", "minItems": 1, "description": about(DATASET_KEYS, "fields"),
        "items": { "allOf": [{ "$ref": "#/$defs/field" }, { "required": ["name"] }] },
    })
}

fn copula() -> Value {
    let own = "field:text nulls:text present:yes rows:yes order:any_list with:correlations autocorrelation:before by:by";
    json!({ "type": "array", "minItems": 1, "description": about(DATASET_KEYS, "copula"), "items": keys(own) })
}

/// One of several tables.
fn table(name: &Value) -> Value {
    let mut per = keys("table!:text rows!:length");
    per["description"] = json!(PER.1);
    let present = json!({ "$ref": "#/$defs/present", "description": about(DATASET_KEYS, "present") });
    let mut properties = vec![
        ("name", name.clone()),
        ("rows", rows()),
        (PER.0, per),
        (FILE.0, json!({ "type": "string", "description": FILE.1 })),
        (SCALE.0, json!({ "enum": SCALES, "description": SCALE.1 })),
        ("fields", fields()),
        ("present", present),
        ("copula", copula()),
    ];
    properties.extend(DERIVED_KEYS.iter().map(|(key, about)| {
        let mut schema = derived(key);
        schema["description"] = json!(about);
        (*key, schema)
    }));
    let mut table = object(&properties, &["name"]);
    // Derived tables have the columns of another one.
    let need = |key: &str| json!({ "required": [key] });
    table["anyOf"] =
        std::iter::once("fields").chain(DERIVED_KEYS.iter().map(|(key, _)| *key)).map(need).collect();
    table
}

/// A key of tables that are derived from another one.
fn derived(key: &str) -> Value {
    match key {
        "changes" => keys("of!:text updates!:length deletes:share columns:names"),
        "arrivals" => keys("of!:text late:delayed twice:delayed"),
        _ => shape("text"),
    }
}

fn about(keys: &[(&str, &str)], key: &str) -> String {
    keys.iter().find(|(known, _)| *known == key).map_or_else(String::new, |(_, text)| (*text).to_owned())
}

/// An object that allows only these keys.
fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    json!({
        "type": "object", "additionalProperties": false, "required": required, "properties": properties,
    })
}

/// A field of the leaf type `name`.
fn leaf(name: &str) -> Value {
    let mut properties = shared(name);
    properties.insert("values".into(), json!({ "$ref": "#/$defs/values" }));
    let mut required = vec!["type", "values"];
    for key in LogicalType::keys(name).unwrap_or_default() {
        let schema = match *key {
            "precision" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_DIGITS }),
            "scale" => json!({ "type": "integer", "minimum": 0, "maximum": MAX_DIGITS }),
            "storage" => json!({ "enum": ["int32", "int64", "fixed"] }),
            "unit" if name == "timestamp" => json!({ "enum": ["ms", "us", "ns", "int96"] }),
            "unit" => json!({ "enum": ["ms", "us", "ns"] }),
            "utc" => json!({ "type": "boolean" }),
            "width" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_WIDTH }),
            _ => json!({ "type": "string" }),
        };
        properties.insert((*key).to_owned(), schema);
        if matches!(*key, "precision" | "width") {
            required.push(key);
        }
    }
    json!({
        "description": about(LEAF_TYPES, name), "additionalProperties": false,
        "required": required, "properties": properties,
    })
}

/// A field of the type `name`, which has nested fields.
fn group(name: &str, keys: &[&str]) -> Value {
    let mut properties = shared(name);
    let mut required = vec!["type"];
    for key in keys {
        let schema = match *key {
            "fields" => json!({
                "type": "array", "minItems": 1,
                "items": { "allOf": [{ "$ref": "#/$defs/field" }, { "required": ["name"] }] },
            }),
            "present" => json!({ "$ref": "#/$defs/present" }),
            "length" => json!({ "$ref": "#/$defs/length" }),
            "empty" => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            "legacy" => json!({ "type": "boolean" }),
            "size" => json!({ "type": "integer", "minimum": 1, "maximum": MAX_ELEMENTS }),
            _ => json!({ "$ref": "#/$defs/field" }),
        };
        properties.insert((*key).to_owned(), schema);
        let either = keys.contains(&"size") && matches!(*key, "length" | "size");
        if !either && !matches!(*key, "present" | "empty" | "legacy") {
            required.push(key);
        }
    }
    let mut schema = json!({ "additionalProperties": false, "required": required, "properties": properties });
    if keys.contains(&"size") {
        schema["oneOf"] = json!([{ "required": ["length"] }, { "required": ["size"] }]);
    }
    schema
}

/// The keys of every field.
fn shared(name: &str) -> Map<String, Value> {
    let mut properties = Map::new();
    properties.insert("name".into(), json!({ "type": "string", "minLength": 1, "pattern": "^[^.]+$" }));
    properties.insert("type".into(), json!({ "const": name }));
    properties.insert("nulls".into(), json!({ "$ref": "#/$defs/nulls" }));
    let hidden = "the field is drawn for others to use, and no file has it; in the record alone";
    properties.insert("hidden".into(), json!({ "type": "boolean", "description": hidden }));
    properties
}

/// All forms of `values`.
fn values() -> Value {
    let alternatives: Vec<Value> = VALUES
        .iter()
        .chain(KINDS)
        .map(|(name, text)| {
            let mut schema = match *name {
                "person_name" | "uuid" | "child_number" | "column" => json!({ "const": name }),
                "words" | "bytes" | "email" => {
                    json!({ "oneOf": [{ "const": name }, object(&[(name, parameters(name, false))], &[name])] })
                }
                _ if KINDS.iter().any(|(kind, _)| kind == name) => json!({
                    "oneOf": [{ "const": name }, object(&[(name, keys("locale:text"))], &[name])],
                }),
                _ => object(&[(name, parameters(name, false))], &[name]),
            };
            schema["description"] = json!(text);
            schema
        })
        .collect();
    json!({ "oneOf": alternatives })
}

/// An object of these keys: `NAME:SHAPE`, or `NAME!:SHAPE` of a required key.
fn keys(text: &str) -> Value {
    let all: Vec<(&str, &str)> =
        text.split_whitespace().map(|word| word.split_once(':').unwrap_or((word, ""))).collect();
    let name = |key: &str| key.trim_end_matches('!').to_owned();
    let properties: Map<String, Value> = all.iter().map(|(key, kind)| (name(key), shape(kind))).collect();
    let required: Vec<String> =
        all.iter().filter(|(key, _)| key.ends_with('!')).map(|(key, _)| name(key)).collect();
    json!({
        "type": "object", "additionalProperties": false, "required": required, "properties": properties,
    })
}

/// The schema of a value, by the name of its shape.
fn shape(name: &str) -> Value {
    let list = |of: &str| json!({ "type": "array", "items": shape(of) });
    match name {
        "text" => json!({ "type": "string" }),
        "flag" => json!({ "type": "boolean" }),
        "yes" => json!({ "const": true }),
        "number" => json!({ "type": "number" }),
        "count" => json!({ "type": "integer", "minimum": 0 }),
        "positive" => json!({ "type": "integer", "minimum": 1 }),
        "corners" => json!({ "type": "integer", "minimum": 3 }),
        "weight" => json!({ "type": "number", "minimum": 0.0 }),
        "share" => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        "probability" => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        "used" => json!({ "type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0 }),
        "orphans" => json!({ "type": "number", "minimum": 0.0, "maximum": 0.999 }),
        "before" => json!({ "type": "number", "minimum": 0, "maximum": MAX_BEFORE }),
        "correlation" => json!({ "type": "number", "minimum": -1, "maximum": 1 }),
        "length" => json!({ "$ref": "#/$defs/length" }),
        "object" => json!({ "type": "object" }),
        "list" => json!({ "type": "array", "minItems": 1 }),
        "points" => json!({ "type": "array", "minItems": 2 }),
        "shares" => json!({ "type": "array", "minItems": 2, "items": shape("weight") }),
        "pair" => json!({ "type": "array", "items": shape("weight"), "minItems": 2, "maxItems": 2 }),
        "ends" => json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": shape("number") }),
        "names" => json!({ "type": "array", "minItems": 1, "items": shape("text") }),
        "any_list" => list("any"),
        "texts" => list("text"),
        "numbers" => list("weight"),
        "correlations" => list("correlation"),
        "pairs" => list("pair"),
        "counts" => list("numbers"),
        "weights" => json!({ "type": "object", "additionalProperties": shape("weight") }),
        "weights_of" => json!({ "type": "object", "additionalProperties": shape("weights") }),
        "calendar" => json!({ "oneOf": [shape("numbers"), shape("weights")] }),
        "late" => keys("share!:weight by!:any"),
        "delayed" => keys("share!:share by!:length"),
        "by" => keys("field:text nulls:text present:yes rows:yes counts!:counts"),
        // A number, a duration or a point in time, depending on the field's type.
        _ => json!({}),
    }
}

/// The parameters of a distribution, either of lengths or of values.
fn parameters(name: &str, lengths: bool) -> Value {
    let keys = |text: &str| match lengths {
        true => keys(&text.replace("quantity", "number").replace("bound", "count")),
        false => keys(text),
    };
    match name {
        "constant" => shape(if lengths { "count" } else { "any" }),
        "uniform" => keys("unique:flag min!:bound max!:bound"),
        "zipf" => keys("n!:positive s!:weight"),
        "weights" => json!({ "type": "object", "additionalProperties": shape("weight"), "minProperties": 1 }),
        "choice" => {
            json!({ "oneOf": [shape("list"), keys("values!:list s:weight"), keys("file!:text s:weight")] })
        }
        "cycle" => json!({ "oneOf": [shape("list"), keys("values!:list each:positive")] }),
        "normal" => keys("mean!:quantity stddev!:quantity min:bound max:bound"),
        "lognormal" => keys("mu:quantity median:quantity sigma!:weight min:bound max:bound"),
        "exponential" => keys("mean!:quantity min:bound max:bound"),
        "quantiles" => {
            keys("values:points shares:shares atoms:weights step:quantity stepped:share unique:flag")
        }
        "text" => keys("length!:length letters:text"),
        "weights_by" => keys("field!:text given!:weights_of otherwise!:weights"),
        "expression" => json!({ "oneOf": [shape("text"), keys("formula!:text draws:object")] }),
        "poisson" => keys("mean!:weight min:count max:count"),
        "geometric" => keys("p!:probability min:count max:count"),
        "sequence" => keys("start:quantity step:quantity"),
        "walk" => keys("start!:quantity step!:quantity jitter:weight late:late"),
        "ref" => {
            let all = "to!:text rows:positive s:weight shuffled:flag used:used distinct:flag frequencies:pairs orphans:orphans";
            json!({ "oneOf": [shape("text"), keys(all)] })
        }
        "seasonal" => keys(
            "from!:quantity to!:quantity hours:calendar weekdays:calendar months:calendar years:calendar",
        ),
        "email" => keys("name!:text domains:texts"),
        "point" => keys("x!:ends y!:ends"),
        "polygon" => keys("x!:ends y!:ends radius!:weight corners:corners"),
        "sum" | "count" | "min" | "max" => keys("of!:text"),
        "lookup" => keys("by!:text column!:text"),
        "pattern" => {
            let counts = json!({ "type": "object", "additionalProperties": shape("count") });
            let counts = object(&[("unique", counts)], &["unique"]);
            json!({ "anyOf": [shape("text"), keys("weights!:weights"), counts] })
        }
        "words" | "bytes" => keys("min!:count max!:count"),
        _ => shape("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_length_and_distribution_is_in_the_schema() {
        let text = json_schema().to_string();
        for (name, _) in LEAF_TYPES {
            assert!(text.contains(&format!("{{\"const\":\"{name}\"}}")), "{name}");
        }
        for name in VALUES.iter().map(|(name, _)| name).chain(&LENGTHS) {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
