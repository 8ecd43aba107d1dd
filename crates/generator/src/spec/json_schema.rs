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
                    object(&[("expression", json!({ "type": "string" }))], &["expression"]),
                    object(&[("weights", object(&[("null", number(0.0)), ("value", number(0.0))], &["null", "value"]))], &["weights"]),
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
    let name = || json!({ "type": "string" });
    let whole = || json!({ "const": true });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let counts = list(list(number(0.0)));
    let by =
        [("field", name()), ("nulls", name()), ("present", whole()), ("rows", whole()), ("counts", counts)];
    let with = list(json!({ "type": "number", "minimum": -1, "maximum": 1 }));
    let own = [
        ("field", name()),
        ("nulls", name()),
        ("present", whole()),
        ("rows", whole()),
        ("order", list(json!({}))),
        ("with", with),
        ("autocorrelation", json!({ "type": "number", "minimum": 0, "maximum": MAX_BEFORE })),
    ];
    let member = [&own[..], &[("by", object(&by, &["counts"]))]].concat();
    let members = object(&member, &[]);
    json!({ "type": "array", "minItems": 1, "description": about(DATASET_KEYS, "copula"), "items": members })
}

/// One of several tables.
fn table(name: &Value) -> Value {
    let mut per = object(
        &[("table", json!({ "type": "string" })), ("rows", json!({ "$ref": "#/$defs/length" }))],
        &["table", "rows"],
    );
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
    let name = || json!({ "type": "string" });
    let share = || json!({ "type": "number", "minimum": 0, "maximum": 1 });
    let length = || json!({ "$ref": "#/$defs/length" });
    match key {
        "changes" => object(
            &[
                ("of", name()),
                ("updates", length()),
                ("deletes", share()),
                ("columns", json!({ "type": "array", "minItems": 1, "items": name() })),
            ],
            &["of", "updates"],
        ),
        "arrivals" => {
            let delayed = || object(&[("share", share()), ("by", length())], &["share", "by"]);
            object(&[("of", name()), ("late", delayed()), ("twice", delayed())], &["of"])
        }
        _ => name(),
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

fn number(least: f64) -> Value {
    json!({ "type": "number", "minimum": least })
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
                    "oneOf": [{ "const": name }, object(&[(name, object(&[("locale", json!({ "type": "string" }))], &[]))], &[name])],
                }),
                _ => object(&[(name, parameters(name, false))], &[name]),
            };
            schema["description"] = json!(text);
            schema
        })
        .collect();
    json!({ "oneOf": alternatives })
}

/// The parameters of a distribution, either of lengths or of values.
fn parameters(name: &str, lengths: bool) -> Value {
    let count = || json!({ "type": "integer", "minimum": 0 });
    // A number, a duration or a point in time, depending on the field's type.
    let quantity = || if lengths { json!({ "type": "number" }) } else { json!({}) };
    let bounded = |mut properties: Vec<(&str, Value)>, required: &[&str]| {
        let bound = if lengths { count() } else { quantity() };
        properties.extend([("min", bound.clone()), ("max", bound)]);
        object(&properties, required)
    };
    match name {
        "constant" => {
            if lengths {
                count()
            } else {
                json!({})
            }
        }
        "uniform" => bounded(vec![("unique", json!({ "type": "boolean" }))], &["min", "max"]),
        "zipf" => {
            object(&[("n", json!({ "type": "integer", "minimum": 1 })), ("s", number(0.0))], &["n", "s"])
        }
        "weights" => json!({ "type": "object", "additionalProperties": number(0.0), "minProperties": 1 }),
        "choice" => json!({ "oneOf": [
            { "type": "array", "minItems": 1 },
            object(&[("values", json!({ "type": "array", "minItems": 1 })), ("s", number(0.0))], &["values"]),
            object(&[("file", json!({ "type": "string" })), ("s", number(0.0))], &["file"]),
        ] }),
        "cycle" => json!({ "oneOf": [
            { "type": "array", "minItems": 1 },
            object(
                &[("values", json!({ "type": "array", "minItems": 1 })), ("each", json!({ "type": "integer", "minimum": 1 }))],
                &["values"],
            ),
        ] }),
        "normal" => bounded(vec![("mean", quantity()), ("stddev", quantity())], &["mean", "stddev"]),
        "lognormal" => {
            bounded(vec![("mu", quantity()), ("median", quantity()), ("sigma", number(0.0))], &["sigma"])
        }
        "exponential" => bounded(vec![("mean", quantity())], &["mean"]),
        "quantiles" => object(
            &[
                ("values", json!({ "type": "array", "minItems": 2 })),
                ("shares", json!({ "type": "array", "minItems": 2, "items": number(0.0) })),
                ("atoms", json!({ "type": "object", "additionalProperties": number(0.0) })),
                ("step", quantity()),
                ("stepped", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            ],
            &[],
        ),
        "text" => object(
            &[("length", json!({ "$ref": "#/$defs/length" })), ("letters", json!({ "type": "string" }))],
            &["length"],
        ),
        "weights_by" => {
            let weights = json!({ "type": "object", "additionalProperties": number(0.0) });
            object(
                &[
                    ("field", json!({ "type": "string" })),
                    ("given", json!({ "type": "object", "additionalProperties": weights.clone() })),
                    ("otherwise", weights),
                ],
                &["field", "given", "otherwise"],
            )
        }
        "expression" => json!({ "oneOf": [
            { "type": "string" },
            object(&[("formula", json!({ "type": "string" })), ("draws", json!({ "type": "object" }))], &["formula"]),
        ] }),
        "poisson" => object(&[("mean", number(0.0)), ("min", count()), ("max", count())], &["mean"]),
        "geometric" => object(
            &[
                ("p", json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })),
                ("min", count()),
                ("max", count()),
            ],
            &["p"],
        ),
        "sequence" => object(&[("start", quantity()), ("step", quantity())], &[]),
        "walk" => object(
            &[
                ("start", quantity()),
                ("step", quantity()),
                ("jitter", number(0.0)),
                ("late", object(&[("share", number(0.0)), ("by", quantity())], &["share", "by"])),
            ],
            &["start", "step"],
        ),
        "ref" => json!({ "oneOf": [
            { "type": "string" },
            object(
                &[
                    ("to", json!({ "type": "string" })),
                    ("rows", json!({ "type": "integer", "minimum": 1 })),
                    ("s", number(0.0)),
                    ("shuffled", json!({ "type": "boolean" })),
                    ("used", json!({ "type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0 })),
                    ("distinct", json!({ "type": "boolean" })),
                    (
                        "frequencies",
                        json!({ "type": "array", "items": { "type": "array", "items": number(0.0), "minItems": 2, "maxItems": 2 } }),
                    ),
                    ("orphans", json!({ "type": "number", "minimum": 0.0, "maximum": 0.999 })),
                ],
                &["to"],
            ),
        ] }),
        "seasonal" => {
            let weights = || {
                json!({ "oneOf": [
                { "type": "array", "items": number(0.0) },
                { "type": "object", "additionalProperties": number(0.0) },
            ] })
            };
            object(
                &[
                    ("from", quantity()),
                    ("to", quantity()),
                    ("hours", weights()),
                    ("weekdays", weights()),
                    ("months", weights()),
                    ("years", weights()),
                ],
                &["from", "to"],
            )
        }
        "email" => object(
            &[
                ("name", json!({ "type": "string" })),
                ("domains", json!({ "type": "array", "items": { "type": "string" } })),
            ],
            &["name"],
        ),
        "point" | "polygon" => {
            let ends =
                || json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "number" } });
            let mut properties = vec![("x", ends()), ("y", ends())];
            let mut required = vec!["x", "y"];
            if name == "polygon" {
                properties.extend([
                    ("radius", number(0.0)),
                    ("corners", json!({ "type": "integer", "minimum": 3 })),
                ]);
                required.push("radius");
            }
            object(&properties, &required)
        }
        "sum" | "count" | "min" | "max" => object(&[("of", json!({ "type": "string" }))], &["of"]),
        "lookup" => {
            let name = || json!({ "type": "string" });
            object(&[("by", name()), ("column", name())], &["by", "column"])
        }
        "pattern" => {
            let weights = json!({ "type": "object", "additionalProperties": number(0.0) });
            let counts =
                json!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } });
            json!({ "anyOf": [
                { "type": "string" },
                object(&[("weights", weights)], &["weights"]),
                object(&[("unique", counts)], &["unique"]),
            ] })
        }
        "words" | "bytes" => object(&[("min", count()), ("max", count())], &["min", "max"]),
        _ => json!({ "type": "string" }),
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
