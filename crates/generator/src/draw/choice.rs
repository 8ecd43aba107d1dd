//! Values drawn from a list: `constant`, `weights` and `choice`. They are stored with a dictionary.

use std::cmp::Ordering;

use crate::draw::distribution::exponent;
use crate::draw::value_spec::ValueSpec;
use crate::error::{Error, Result};
use crate::random::elementary::pow;
use crate::random::weights::{BadWeights, Weights};
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::int256::Int256;
use crate::types::literal::{Literal, entry, real, wide};
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, stored_number};

/// The most values of one list.
const MAX_VALUES: usize = 1 << 22;

/// The distinct values of a leaf in column order, PLAIN-encoded (strings without their length).
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub entries: Vec<Vec<u8>>,
    /// The number of values before NaN, which has no order and comes last.
    pub ordered: usize,
}

impl Dictionary {
    /// The dictionary of values in column order.
    pub(crate) fn new<'a>(values: impl Iterator<Item = &'a Listed> + Clone) -> Self {
        let is_ordered = |value: &&Listed| !matches!(value.key, Key::Real(r) if r.is_nan());
        let ordered = values.clone().filter(is_ordered).count();
        Dictionary { entries: values.map(|value| value.entry.clone()).collect(), ordered }
    }
}

/// The sort key of a value in its column.
#[derive(Debug, PartialEq)]
enum Key {
    Whole(Int256),
    Real(f64),
    Bytes,
}

/// One value of the list, with its weight.
#[derive(Debug)]
pub(crate) struct Listed {
    /// PLAIN-encoded, strings without their length.
    pub entry: Vec<u8>,
    key: Key,
    pub weight: f64,
}

/// The order of two values in their column.
pub(crate) fn ordered(a: &Listed, b: &Listed) -> Ordering {
    match (&a.key, &b.key) {
        (Key::Whole(a), Key::Whole(b)) => a.cmp(b),
        (Key::Real(a), Key::Real(b)) => a.total_cmp(b),
        _ => a.entry.cmp(&b.entry),
    }
}

fn listed(kind: &LogicalType, literal: &Literal<'_>, weight: f64) -> Option<Listed> {
    let mut entry = entry(kind, literal)?;
    let key = if kind.is_whole() {
        Key::Whole(wide(kind, literal)?)
    } else if kind.is_real() {
        let value = real(kind, literal)?;
        if value.is_nan() {
            // All NaNs become one positive NaN, which sorts last.
            entry = self::entry(kind, &Literal::Real("nan"))?;
        }
        // Numbers that the type stores alike are one value.
        match stored_number(kind, &entry) {
            Some(Number::Real(stored)) if !stored.is_nan() => Key::Real(stored),
            _ => Key::Real(f64::NAN.abs()),
        }
    } else {
        Key::Bytes
    };
    Some(Listed { entry, key, weight })
}

/// The value that `text` is.
pub(crate) fn of_text(kind: &LogicalType, text: &str) -> Option<Listed> {
    listed(kind, &Literal::of_key(kind, text), 1.0)
}

/// `constant = VALUE`.
pub(crate) fn constant(kind: &LogicalType, node: SpecNode<'_>) -> Result<ValueSpec> {
    let listed = of_node(kind, node, 1.0)?;
    build(kind, vec![listed], node)
}

/// Texts with equal probabilities.
pub(crate) fn of_texts<'a>(
    kind: &LogicalType,
    texts: impl Iterator<Item = &'a str>,
    node: SpecNode<'_>,
) -> Result<ValueSpec> {
    let values = texts.filter_map(|text| listed(kind, &Literal::Text(text), 1.0));
    build(kind, values.collect(), node)
}

/// `weights = { VALUE = WEIGHT, ... }`.
pub(crate) fn weighted(kind: &LogicalType, node: SpecNode<'_>) -> Result<ValueSpec> {
    build(kind, listed_weights(kind, node)?, node)
}

/// The values of `{ VALUE = WEIGHT, ... }`.
pub(crate) fn listed_weights(kind: &LogicalType, node: SpecNode<'_>) -> Result<Vec<Listed>> {
    let table = node.any_table("weights")?;
    let mut values = Vec::new();
    for (key, weight) in table.entries() {
        let Some(number) = weight.number() else {
            let what = format!("the weight of {key:?} is {}", weight.described());
            return Err(weight.error(what, "use a number of 0 or more"));
        };
        let value = listed(kind, &Literal::of_key(kind, key), number);
        values.push(value.ok_or_else(|| {
            table.key_error(key, format!("{key:?} is not {}", kind.a_name()), kind.takes())
        })?);
    }
    Ok(values)
}

/// `choice = [VALUE, ...]`, or `{ values = [...], s = S }`, or `{ file = "...", s = S }`.
pub(crate) fn choice(kind: &LogicalType, node: SpecNode<'_>, folder: &SpecFolder<'_>) -> Result<ValueSpec> {
    let skewed = |rank: usize, s: f64| pow((rank + 1) as f64, -s);
    if let Some(array) = node.array() {
        let values = array.map(|value| of_node(kind, value, 1.0)).collect::<Result<_, _>>()?;
        return build(kind, values, node);
    }
    let table = node.table("choice", &["values", "file", "s"])?;
    let s = table.get("s").map_or(Ok(0.0), |node| exponent(node))?;
    let values = match (table.get("values"), table.get("file")) {
        (Some(values), None) => {
            let Some(array) = values.array() else {
                return Err(values.unfit("`values = {}` of choice", "write a list: [\"a\", \"b\"]"));
            };
            array.enumerate().map(|(i, v)| of_node(kind, v, skewed(i, s))).collect::<Result<_, _>>()?
        }
        (None, Some(file)) => {
            let Some(name) = file.string() else {
                return Err(file.wrong("file", "write the name of a text file in quotes"));
            };
            let full = folder.path(name);
            let text = folder.read(name).map_err(|error| {
                let what = format!("cannot read {}: {error}", full.display());
                file.error(what, "name a text file with one value per line, in the folder of the spec")
            })?;
            let mut values = Vec::new();
            for (i, line) in text.lines().filter(|line| !line.is_empty()).enumerate() {
                let value = listed(kind, &Literal::of_key(kind, line), skewed(i, s));
                values.push(value.ok_or_else(|| {
                    let what = format!("{line:?} in {} is not {}", full.display(), kind.a_name());
                    file.error(what, kind.takes())
                })?);
            }
            values
        }
        _ => return Err(node.error("choice takes either `values` or `file`", "use one of them")),
    };
    build(kind, values, node)
}

pub(crate) fn of_node(kind: &LogicalType, node: SpecNode<'_>, weight: f64) -> Result<Listed> {
    Literal::new(node)
        .and_then(|literal| listed(kind, &literal, weight))
        .ok_or_else(|| node.unfit(&format!("{{}} is not {}", kind.a_name()), kind.takes()))
}

fn build(kind: &LogicalType, mut values: Vec<Listed>, node: SpecNode<'_>) -> Result<ValueSpec> {
    if values.len() > MAX_VALUES {
        let what = format!("a list of {} values", values.len());
        return Err(node.error(what, format!("use at most {MAX_VALUES}")));
    }
    // In column order, so that the smallest index of a page is its smallest value.
    values.sort_by(ordered);
    if let Some(pair) = values.windows(2).find(|pair| pair[0].entry == pair[1].entry) {
        let shown = match pair[0].key {
            Key::Whole(n) => n.narrow().map_or_else(|| n.real().to_string(), |n| n.to_string()),
            // In few digits, as it is written.
            Key::Real(v) if *kind == LogicalType::Float => (v as f32).to_string(),
            Key::Real(v) => v.to_string(),
            Key::Bytes => format!("{:?}", String::from_utf8_lossy(&pair[0].entry)),
        };
        return Err(node.error(format!("the value {shown} is listed twice"), "list each value once"));
    }
    let weights: Vec<f64> = values.iter().map(|v| v.weight).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, node))?;
    if *kind == LogicalType::Boolean {
        let share = |value: u8| {
            let at = values.iter().position(|v| v.entry == [value]);
            at.map_or(0.0, |i| table.probabilities()[i])
        };
        let table = Weights::new(&[share(0), share(1)]).map_err(|bad| bad_weights(&bad, node))?;
        return Ok(ValueSpec::Boolean(table));
    }
    Ok(ValueSpec::Choice { table, dictionary: Dictionary::new(values.iter()), by: None })
}

/// The error for an invalid list of weights.
pub(crate) fn bad_weights(bad: &BadWeights, node: SpecNode<'_>) -> Error {
    let what = match bad {
        BadWeights::Empty => "no values to choose from".to_owned(),
        BadWeights::NotAWeight(w) => format!("the weight {w} is negative or not a finite number"),
        BadWeights::AllZero => "the weights sum to zero".to_owned(),
    };
    node.error(what, "use weights of 0 or more, at least one above 0")
}
