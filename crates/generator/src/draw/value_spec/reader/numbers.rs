//! Distributions of numbers, with the checks that their values fit the type of the field.

use crate::draw::distribution::{Counts, Curve, Ranks, quantity};
use crate::draw::misfit::nearest_whole;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::distinct_numbers::DistinctNumbers;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::Result;
use crate::random::rng::purpose;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::int256::Int256;
use crate::types::literal::{Literal, real, wide};
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// `uniform`: numbers from `min` to `max`, whole ones `unique` on request.
pub(super) fn uniform(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    let (kind, path) = (around.kind, around.path);
    let table = node.table("uniform", &["min", "max", "unique"])?;
    let is_unique = is_unique(table, around)?;
    let (min, max) = (table.need("min", "uniform")?, table.need("max", "uniform")?);
    if kind.is_real() {
        let bound = |node: SpecNode<'_>| {
            let value = Literal::new(node).and_then(|literal| real(kind, &literal)).filter(|v| v.is_finite());
            value.ok_or_else(|| node.unfit(&format!("{{}} is not a finite {}", kind.name()), kind.takes()))
        };
        let (low, high) = min.in_order(bound(min)?, bound(max)?)?;
        if !(high - low).is_finite() {
            return Err(max.error("the span from min to max is not finite", "use closer bounds"));
        }
        return Ok(ValueSpec::Reals { min: low, width: high - low });
    }
    let (low, high) = (wide_of(kind, min)?, wide_of(kind, max)?);
    if low > high {
        let what = format!("min {} is greater than max {}", min.described(), max.described());
        return Err(min.error(what, "swap them"));
    }
    let numbers = high - low + Int256::from(1);
    if is_unique {
        let span = numbers.narrow().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
        let distinct = DistinctNumbers::new(low, span, purpose(path, "unique"));
        return Ok(ValueSpec::DistinctNumbers(distinct));
    }
    let (Some(min), Some(most)) = (low.narrow(), high.narrow()) else {
        return Ok(ValueSpec::Wider { min: low, span: numbers });
    };
    let span = most.wrapping_sub(min) as u128;
    Ok(match i64::try_from(min) {
        // A span of 2^64 is stored as 0.
        Ok(min) if span < 1 << 64 => ValueSpec::Integers { min, span: (span as u64).wrapping_add(1) },
        _ => ValueSpec::Wide { min, span: span.wrapping_add(1) },
    })
}

/// Whether numbers are to be `unique`, which whole ones of the record can be.
pub(crate) fn is_unique(table: SpecTable<'_>, around: &Surroundings<'_>) -> Result<bool> {
    let is_unique = table.flag("unique")?;
    match table.get("unique").filter(|_| is_unique && (around.in_list || around.kind.is_real())) {
        Some(of) => {
            Err(of.error("unique numbers that are real or in a list", "use whole numbers of the record"))
        }
        None => Ok(is_unique),
    }
}

/// `zipf`: ranks up to one that fits into the type.
pub(super) fn zipf(parameters: SpecNode<'_>, kind: &LogicalType) -> Result<ValueSpec> {
    let ranks = Ranks::read(parameters)?;
    fits(kind, i128::from(ranks.count()), parameters)?;
    Ok(ValueSpec::Zipf(ranks))
}

/// `normal`, `lognormal` or `exponential`, with the bounds of the values.
pub(super) fn continuous(name: &str, parameters: SpecNode<'_>, kind: &LogicalType) -> Result<ValueSpec> {
    let curve = Curve::read(name, parameters, kind)?;
    let (low, high) = bounds(curve, parameters, kind)?;
    Ok(ValueSpec::Curve { curve, low, high })
}

/// `poisson` or `geometric`: counts up to one that fits into the type.
pub(super) fn counts(name: &str, parameters: SpecNode<'_>, kind: &LogicalType) -> Result<ValueSpec> {
    let counts = Counts::read(name, parameters)?;
    let most = counts.outcomes().last().map_or(0, |(k, _)| k);
    fits(kind, most.into(), parameters)?;
    Ok(ValueSpec::Counts(counts))
}

/// `sequence`: whole numbers from `start` in steps of `step`.
pub(super) fn sequence(parameters: SpecNode<'_>, kind: &LogicalType) -> Result<ValueSpec> {
    let table = parameters.table("sequence", &["start", "step"])?;
    let start = table.get("start").map_or(Ok(0), |node| whole_of(kind, node))?;
    let step = match table.get("step") {
        None if matches!(kind, LogicalType::Decimal { scale: 39.., .. }) => {
            let what = "a sequence with steps of 1 and more than 38 digits after the point";
            return Err(table.error(what, "set a smaller `step`"));
        }
        None => kind.one(),
        Some(node) if kind.is_temporal() => {
            let step = quantity(kind, node)?;
            nearest_whole(step).filter(|whole| *whole as f64 == step).ok_or_else(|| {
                let what =
                    format!("a step of {}, which is {step} units of type {}", node.described(), kind.name());
                node.error(what, "use a step of whole units")
            })?
        }
        Some(node) => whole_of(kind, node)?,
    };
    Ok(ValueSpec::Sequence { start, step })
}

/// What to write where a distribution computes in 128 bits.
pub(crate) const NARROW: &str = "use at most 38 digits here: only `uniform` and lists of values take more";

/// Reads a whole number of the type `kind` that has at most 128 bits.
pub(crate) fn whole_of(kind: &LogicalType, node: SpecNode<'_>) -> Result<i128> {
    wide_of(kind, node)?
        .narrow()
        .ok_or_else(|| node.error(format!("{} with more than 38 digits", node.described()), NARROW))
}

/// Reads a whole number of the type `kind`.
fn wide_of(kind: &LogicalType, node: SpecNode<'_>) -> Result<Int256> {
    Literal::new(node)
        .and_then(|literal| wide(kind, &literal))
        .ok_or_else(|| node.error(format!("{} is not {}", node.described(), kind.a_name()), kind.takes()))
}

/// Refuses distributions whose largest value `most` exceeds the type.
fn fits(kind: &LogicalType, most: i128, node: SpecNode<'_>) -> Result<()> {
    let too_large = match kind.is_real() {
        true => most as f64 > kind.most_real(),
        false => wide(kind, &Literal::Whole(most)).is_none(),
    };
    if too_large {
        let what = format!("values up to {most} in {}", kind.a_name());
        return Err(node.error(what, "use a wider type or smaller parameters"));
    }
    Ok(())
}

/// Reads the optional `min` and `max` of a continuous distribution, in the units of the draw. A missing bound
/// is infinite.
fn bounds(curve: Curve, node: SpecNode<'_>, kind: &LogicalType) -> Result<(f64, f64)> {
    let table = node.any_table("parameters")?;
    let (least, most) = match kind.is_whole() {
        true => kind.real_range(),
        false => (-kind.most_real(), kind.most_real()),
    };
    let bound = |key: &str| {
        let Some(node) = table.get(key) else { return Ok(None) };
        let bound = Some(quantity(kind, node)?).filter(|bound| (least..=most).contains(bound));
        let what = format!("`{key} = {{}}` of {}", kind.a_name());
        bound.map(Some).ok_or_else(|| node.unfit(&what, format!("use a value from {least} to {most}")))
    };
    let (min, max) = (bound("min")?, bound("max")?);
    let (low, high) = node.in_order(min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY))?;
    // Otherwise half of the values would not fit.
    let centre = curve.centre().clamp(low, high);
    if !(least..=most).contains(&centre) {
        let what = format!("values around {} in {}", Number::Real(centre), kind.a_name());
        return Err(node.error(what, "use a wider type, or set `min` and `max`"));
    }
    Ok((low, high))
}
