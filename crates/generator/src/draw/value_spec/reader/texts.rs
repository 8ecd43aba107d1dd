//! Strings, UUIDs and bytes.

use std::sync::Arc;

use crate::draw::choice::bad_weights;
use crate::draw::text::distinct::DistinctStrings;
use crate::draw::text::pattern::Pattern;
use crate::draw::text::template::Template;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::Result;
use crate::random::rng::purpose;
use crate::random::weights::Weights;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// `unique`: a template with the number of the value.
pub(super) fn template(parameters: SpecNode<'_>) -> Result<ValueSpec> {
    let template = parameters
        .string()
        .map_or_else(|| Err("the template of `unique` must be a string".to_owned()), Template::parse);
    template.map(ValueSpec::Unique).map_err(|what| parameters.error(what, "for example \"+91-{id:010}\""))
}

/// `pattern`: strings that match a regular expression.
pub(super) fn pattern(parameters: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    let advice = "for example \"[A-Z]{2}-[0-9]{4}\"";
    if parameters.is_table() {
        let table = parameters.table("pattern", &["weights", "unique"])?;
        return match (table.get("weights"), table.get("unique")) {
            (None, Some(unique)) => distinct_strings(unique, around),
            (Some(_), Some(unique)) => {
                Err(unique.error("a pattern with `weights` and `unique`", "use one of them"))
            }
            _ => weighted_patterns(table.need("weights", "pattern")?),
        };
    }
    let pattern = parameters.string().map_or_else(
        || Err("a pattern must be a string with a regular expression".to_owned()),
        Pattern::parse,
    );
    pattern.map(ValueSpec::Pattern).map_err(|what| parameters.error(what, advice))
}

/// `pattern = { unique = { PATTERN = COUNT, ... } }`.
fn distinct_strings(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    if around.in_list {
        let advice = "use `unique` patterns for fields of the record";
        return Err(node.error("unique strings inside a list", advice));
    }
    let (patterns, counts) = counted_patterns(node)?;
    let whole = |count: &f64| {
        (*count >= 0.0 && *count <= u32::MAX.into() && count.fract() == 0.0).then_some(*count as u64)
    };
    let Some(counts) = counts.iter().map(whole).collect::<Option<Vec<u64>>>() else {
        return Err(node.error("a count that is not a whole number", "write how many rows have each pattern"));
    };
    let texts = node.any_table("unique")?.entries().map(|(text, _)| text.to_owned());
    let counted = texts.zip(patterns).zip(counts).map(|((text, pattern), count)| (text, pattern, count));
    DistinctStrings::new(counted.collect(), purpose(around.path, "unique"))
        .map(|distinct| ValueSpec::Distinct(Arc::new(distinct)))
        .map_err(|complaint| node.complain(complaint))
}

/// `pattern = { weights = { PATTERN = WEIGHT, ... } }`.
fn weighted_patterns(node: SpecNode<'_>) -> Result<ValueSpec> {
    let (patterns, weights) = counted_patterns(node)?;
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, node))?;
    Ok(ValueSpec::Pattern(Pattern::weighted(patterns, table)))
}

/// Patterns, each with its number.
fn counted_patterns(node: SpecNode<'_>) -> Result<(Vec<Pattern>, Vec<f64>)> {
    let table = node.any_table("weights")?;
    let (mut patterns, mut weights) = (Vec::new(), Vec::new());
    for (key, weight) in table.entries() {
        let pattern = Pattern::parse(key);
        let advice = "write regular expressions as the keys: { \"N/A\" = 1, \"[0-9]{4}\" = 9 }";
        patterns.push(pattern.map_err(|what| table.key_error(key, what, advice))?);
        weights.push(weight.number().unwrap_or(f64::NAN));
    }
    Ok((patterns, weights))
}

/// `words`: from `min` to `max` of them.
pub(super) fn words(parameters: SpecNode<'_>) -> Result<ValueSpec> {
    let table = parameters.table("words", &["min", "max"])?;
    let (least, most) = lengths(table, 1000)?;
    Ok(ValueSpec::Words { least, most })
}

pub(super) fn text_only(name: &str, node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<()> {
    match around.kind {
        LogicalType::String | LogicalType::Enum | LogicalType::Binary => Ok(()),
        // A pattern can draw JSON. The user is responsible for its validity.
        LogicalType::Json if name == "pattern" => Ok(()),
        kind => {
            let what = format!("{name} draws strings, not {}", kind.name());
            Err(node.error(what, "change the field to a string, or use another distribution"))
        }
    }
}

pub(super) fn uuid(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    if *around.kind == LogicalType::Uuid {
        return Ok(ValueSpec::Uuid);
    }
    text_only("uuid", node, around).map(|()| ValueSpec::Uuid)
}

pub(super) fn bytes(
    parameters: Option<SpecNode<'_>>,
    node: SpecNode<'_>,
    around: &Surroundings<'_>,
) -> Result<ValueSpec> {
    match (around.kind, parameters) {
        (LogicalType::FixedBinary(width), None) => Ok(ValueSpec::Bytes { least: *width, most: *width }),
        (LogicalType::Binary, Some(parameters)) => {
            let table = parameters.table("bytes", &["min", "max"])?;
            let (least, most) = lengths(table, 1 << 20)?;
            Ok(ValueSpec::Bytes { least, most })
        }
        (LogicalType::Binary, None) => {
            Err(node.error("bytes without a length", "write { bytes = { min = 0, max = 16 } }"))
        }
        (LogicalType::FixedBinary(_), Some(_)) => {
            Err(node.error("bytes in a fixed_binary always have its width", "write `values = \"bytes\"`"))
        }
        (kind, _) => {
            let what = format!("bytes draws binary, not {}", kind.name());
            Err(node.error(what, "change the type of the field, or use another distribution"))
        }
    }
}

/// Reads `min` and `max` of a length.
fn lengths(table: SpecTable<'_>, longest: u32) -> Result<(u32, u32)> {
    let read = |key: &str| {
        let advice = format!("use a whole number from 0 to {longest}");
        table.read_needed((key, "a length"), advice, |node| node.integer_in(0..=longest))
    };
    table.need("min", "a length")?.in_order(read("min")?, read("max")?)
}
