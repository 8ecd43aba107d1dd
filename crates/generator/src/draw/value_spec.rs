//! How the values of a leaf are drawn, as a spec says it.
//!
//! `values` is either a name (`"person_name"`) or a table of one key, the distribution's name, whose
//! value holds the parameters. Reading it checks everything that drawing relies on.

use crate::draw::choice::{Dictionary, choice, constant, weighted};
use crate::draw::distribution::{Counts, Curve, Ranks, count, exponent, quantity};
use crate::draw::expression::{Expression, Operand, Reach};
use crate::draw::misfit::nearest_whole;
use crate::draw::monotone::Monotone;
use crate::error::{Complaint, Error};
use crate::random::weights::Weights;
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable, listed};
use crate::text::pattern::Pattern;
use crate::text::template::Template;
use crate::types::literal::{Literal, real, whole};
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;
use crate::types::number::stored_number;

/// Where the values of a leaf come from.
#[derive(Debug)]
pub(crate) enum ValueSpec {
    /// [`crate::text::person_name`] codes.
    PersonName,
    /// Numbers rendered by a template.
    Unique(Template),
    /// Indices into a dictionary of values.
    Choice {
        table: Weights,
        dictionary: Dictionary,
    },
    /// `false` (0) or `true` (1).
    Boolean(Weights),
    /// Ranks from 1 on.
    Zipf(Ranks),
    /// Whole numbers from `min` on, `span` of them; a span of 0 means 2^64.
    Integers {
        min: i64,
        span: u64,
    },
    /// Whole numbers of more than 64 bits.
    Wide {
        min: i128,
        span: u128,
    },
    /// Doubles from `min` on.
    Reals {
        min: f64,
        width: f64,
    },
    /// A continuous distribution; what falls outside of the bounds becomes the bound.
    Curve {
        curve: Curve,
        low: f64,
        high: f64,
    },
    /// Poisson or geometric.
    Counts(Counts),
    /// `start + step * number`, the number of the row or of the element in its list.
    Sequence {
        start: i128,
        step: i128,
    },
    Monotone(Monotone),
    Expression(Expression),
    /// A key of another dataset.
    Reference(Reference),
    /// From `least` to `most` words.
    Words {
        least: u32,
        most: u32,
    },
    Email,
    /// Random UUIDs of version 4.
    Uuid,
    Pattern(Pattern),
    /// Random bytes, from `least` to `most` of them.
    Bytes {
        least: u32,
        most: u32,
    },
}

/// The key of row `k` of another dataset, row k drawn with Zipfian skew.
#[derive(Debug)]
pub(crate) struct Reference {
    pub ranks: Ranks,
    pub key: ReferencedKey,
}

/// What the key of row `k`, from 0 on, is.
#[derive(Clone, Debug)]
pub(crate) enum ReferencedKey {
    Sequence { start: i128, step: i128 },
    Unique(Template),
}

impl ReferencedKey {
    /// The key that a required field of the record with these values is.
    pub(crate) fn of(values: &ValueSpec) -> Option<Self> {
        match values {
            ValueSpec::Sequence { start, step } => {
                Some(ReferencedKey::Sequence { start: *start, step: *step })
            }
            ValueSpec::Unique(template) => Some(ReferencedKey::Unique(template.clone())),
            _ => None,
        }
    }
}

/// A key of another dataset, and the rows that it is said to have.
pub(crate) type FoundKey = (ReferencedKey, Option<u64>);

/// What reading the values of one leaf may need from around it.
pub(crate) struct Surroundings<'a> {
    pub kind: &'a LogicalType,
    pub path: &'a str,
    /// Where files that the spec names are looked for.
    pub folder: &'a SpecFolder<'a>,
    /// Finds an earlier field of the record by the name that an expression uses.
    pub operand: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    /// Finds the key of another dataset, and the rows that it is said to have.
    pub key: &'a mut dyn FnMut(&str) -> Result<FoundKey, Complaint>,
}

/// Names and tables that `values` can be, with what they draw: the source of error messages and of
/// the JSON schema.
pub(crate) const VALUES: &[(&str, &str)] = &[
    ("constant", "always the same value"),
    ("uniform", "every value from `min` to `max` alike; whole numbers, dates and times include `max`"),
    ("zipf", "the ranks 1 to `n`, rank k with a probability proportional to k^-s"),
    ("weights", "the keys, each with a probability proportional to its weight"),
    ("choice", "one of a list of values or of the lines of a `file`, alike or with Zipfian skew `s`"),
    ("normal", "a bell around `mean` with deviation `stddev`"),
    ("lognormal", "e to the power of a bell around `mu` (or the log of `median`) with deviation `sigma`"),
    ("exponential", "waiting times of mean `mean`"),
    ("poisson", "counts of mean `mean`"),
    ("geometric", "failures before the first success of probability `p`"),
    ("sequence", "`start`, `start + step`, ...: by the row, inside a list by the element's position"),
    ("walk", "from `start` on by `step` from row to row, with `jitter`, some of them `late`"),
    ("expression", "a formula over earlier fields of the record"),
    ("ref", "the key of a row of another dataset, rows drawn with Zipfian skew"),
    ("unique", "a template with a number that never comes twice in the dataset"),
    ("pattern", "strings that a regular expression matches"),
    ("person_name", "\"First Last\""),
    ("email", "an address"),
    ("words", "from `min` to `max` words of a small dictionary, frequent ones more often"),
    ("uuid", "a random UUID of version 4"),
    ("bytes", "from `min` to `max` random bytes"),
];

impl ValueSpec {
    /// Reads the `values` of a leaf.
    pub(crate) fn read(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<Self, Error> {
        let (kind, path) = (around.kind, around.path);
        if let Some(name) = node.string() {
            return match name {
                "person_name" | "email" => text_only(name, node, around).map(|()| match name {
                    "email" => ValueSpec::Email,
                    _ => ValueSpec::PersonName,
                }),
                "uuid" => uuid(node, around),
                "words" => text_only(name, node, around).map(|()| ValueSpec::Words { least: 3, most: 8 }),
                "bytes" => bytes(None, node, around),
                _ => Err(unknown(name, node, path)),
            };
        }
        let table = node.any_table(path, "`values`")?;
        let mut entries = table.entries();
        let (Some((name, parameters)), None) = (entries.next(), entries.next()) else {
            let what = "`values` is a table of one key, the name of the distribution";
            return Err(node.error(path, what, "for example { uniform = { min = 1, max = 9 } }"));
        };
        let not_for = |made: &str| {
            let what = format!("{name} makes {made}, not {}", kind.name());
            table.key_error(name, path, what, "change the type of the field or draw its values otherwise")
        };
        let numbers_only = || match kind.is_whole() || kind.is_real() {
            true => Ok(()),
            false => Err(not_for("numbers")),
        };
        match name {
            "constant" => constant(kind, parameters, path),
            "weights" => weighted(kind, parameters, path),
            "choice" => choice(kind, parameters, path, around.folder),
            "uniform" => {
                numbers_only()?;
                uniform(parameters, kind, path)
            }
            "zipf" => {
                numbers_only()?;
                let ranks = Ranks::read(parameters, path)?;
                fits(kind, i128::from(ranks.count()), parameters, path)?;
                Ok(ValueSpec::Zipf(ranks))
            }
            "normal" | "lognormal" | "exponential" => {
                numbers_only()?;
                let curve = Curve::read(name, parameters, kind, path)?;
                let (low, high) = bounds(curve, parameters, kind, path)?;
                Ok(ValueSpec::Curve { curve, low, high })
            }
            "poisson" | "geometric" => {
                numbers_only()?;
                let counts = Counts::read(name, parameters, path)?;
                let most = counts.outcomes().last().map_or(0, |(k, _)| k);
                fits(kind, most.into(), parameters, path)?;
                Ok(ValueSpec::Counts(counts))
            }
            "sequence" => {
                if !kind.is_whole() {
                    return Err(not_for("whole numbers"));
                }
                let table = parameters.table(path, name, &["start", "step"])?;
                let start = match table.get("start") {
                    Some(node) => whole_of(kind, node, path)?,
                    None => 0,
                };
                let step = match table.get("step") {
                    None => kind.one(),
                    Some(node) if kind.is_temporal() => {
                        let step = quantity(kind, node, path)?;
                        nearest_whole(step).filter(|whole| *whole as f64 == step).ok_or_else(|| {
                            let what = format!(
                                "a step of {}, which is {step} units of the {}",
                                node.described(),
                                kind.name()
                            );
                            node.error(path, what, "give a step of whole units")
                        })?
                    }
                    Some(node) => whole_of(kind, node, path)?,
                };
                Ok(ValueSpec::Sequence { start, step })
            }
            "walk" => {
                if !kind.is_whole() {
                    return Err(not_for("whole numbers"));
                }
                Monotone::read(parameters, kind, path).map(ValueSpec::Monotone)
            }
            "expression" => {
                numbers_only()?;
                let Some(text) = parameters.string() else {
                    let what = "an expression is a string";
                    return Err(parameters.error(path, what, "for example \"start + lognormal(3h, 0.5)\""));
                };
                let expression = Expression::parse(text, kind, around.operand)
                    .map_err(|(what, advice)| parameters.error(path, what, advice))?;
                can_fit(&expression, kind).map_err(|(what, advice)| parameters.error(path, what, advice))?;
                Ok(ValueSpec::Expression(expression))
            }
            "ref" => reference(parameters, around),
            "unique" => {
                text_only(name, parameters, around)?;
                let template = parameters.string().map_or_else(
                    || Err("a template of unique values is a string".to_owned()),
                    Template::parse,
                );
                template
                    .map(ValueSpec::Unique)
                    .map_err(|what| parameters.error(path, what, "for example \"+91-{id:010}\""))
            }
            "pattern" => {
                text_only(name, parameters, around)?;
                let advice = "for example \"[A-Z]{2}-[0-9]{4}\"";
                let pattern = parameters.string().map_or_else(
                    || Err("a pattern is a string with a regular expression".to_owned()),
                    Pattern::parse,
                );
                pattern.map(ValueSpec::Pattern).map_err(|what| parameters.error(path, what, advice))
            }
            "words" => {
                text_only(name, parameters, around)?;
                let table = parameters.table(path, name, &["min", "max"])?;
                let (least, most) = lengths(table, path, 1000)?;
                Ok(ValueSpec::Words { least, most })
            }
            "bytes" => bytes(Some(parameters), parameters, around),
            "person_name" | "email" | "uuid" => {
                let what = format!("{name} has no parameters");
                Err(parameters.error(path, what, format!("write `values = \"{name}\"`")))
            }
            _ => Err(unknown(name, node, path)),
        }
    }
}

impl ValueSpec {
    /// Between which numbers values of type `kind` are, in ones.
    pub(crate) fn reach(&self, kind: &LogicalType) -> Reach {
        let one = kind.one() as f64;
        let (low, high) = match kind.is_whole() {
            true => (kind.range().0 as f64, kind.range().1 as f64),
            false => (f64::NEG_INFINITY, f64::INFINITY),
        };
        // In the whole numbers that are stored.
        let stored = |reach: Reach| Reach::new(reach.low.max(low) / one, reach.high.min(high) / one);
        match self {
            ValueSpec::Zipf(ranks) => Reach::new(1.0, ranks.count() as f64),
            ValueSpec::Choice { dictionary: Dictionary { entries, ordered }, .. } => {
                let number = |entry: &Vec<u8>| stored_number(kind, entry).map(Number::real);
                let ends = (entries.first().and_then(number), entries.last().and_then(number));
                match ends {
                    (Some(low), Some(high)) if *ordered == entries.len() => Reach::new(low, high),
                    _ => Reach::ANY,
                }
            }
            ValueSpec::Integers { min, span } if *span > 0 => {
                stored(Reach::new(*min as f64, *min as f64 + (*span - 1) as f64))
            }
            ValueSpec::Reals { min, width } => Reach::new(*min, min + width),
            ValueSpec::Curve { curve, low: least, high: most } => {
                let natural = if matches!(curve, Curve::Normal { .. }) { f64::NEG_INFINITY } else { 0.0 };
                Reach::new(least.max(natural).max(low / one), most.min(high / one))
            }
            // Round at the end of the range, which comes late.
            ValueSpec::Sequence { start, step } if *step >= 0 => {
                stored(Reach::new(*start as f64, f64::INFINITY))
            }
            ValueSpec::Sequence { start, .. } => stored(Reach::new(f64::NEG_INFINITY, *start as f64)),
            ValueSpec::Monotone(walk) => stored(walk.reach()),
            ValueSpec::Expression(expression) => {
                let reach = expression.reach().unwrap_or(Reach::ANY);
                Reach::new(reach.low.max(low / one), reach.high.min(high / one))
            }
            _ => stored(Reach::ANY),
        }
    }
}

fn unknown(name: &str, node: SpecNode<'_>, path: &str) -> Error {
    let names: Vec<&str> = VALUES.iter().map(|(name, _)| *name).collect();
    node.error(path, format!("unknown distribution {name:?}"), format!("allowed: {}", listed(&names)))
}

fn text_only(name: &str, node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<(), Error> {
    match around.kind {
        LogicalType::String | LogicalType::Enum | LogicalType::Binary => Ok(()),
        // A pattern can make JSON; whether it does is the user's.
        LogicalType::Json if name == "pattern" => Ok(()),
        kind => {
            let what = format!("{name} makes strings, not {}", kind.name());
            Err(node.error(around.path, what, "make the field a string or draw its values otherwise"))
        }
    }
}

fn uuid(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec, Error> {
    if *around.kind == LogicalType::Uuid {
        return Ok(ValueSpec::Uuid);
    }
    text_only("uuid", node, around).map(|()| ValueSpec::Uuid)
}

fn bytes(
    parameters: Option<SpecNode<'_>>,
    node: SpecNode<'_>,
    around: &Surroundings<'_>,
) -> Result<ValueSpec, Error> {
    let path = around.path;
    match (around.kind, parameters) {
        (LogicalType::FixedBinary(width), None) => Ok(ValueSpec::Bytes { least: *width, most: *width }),
        (LogicalType::Binary, Some(parameters)) => {
            let table = parameters.table(path, "bytes", &["min", "max"])?;
            let (least, most) = lengths(table, path, 1 << 20)?;
            Ok(ValueSpec::Bytes { least, most })
        }
        (LogicalType::Binary, None) => {
            Err(node.error(path, "bytes without a length", "write { bytes = { min = 0, max = 16 } }"))
        }
        (LogicalType::FixedBinary(_), Some(_)) => {
            Err(node.error(path, "bytes of a fixed_binary have its width", "write `values = \"bytes\"`"))
        }
        (kind, _) => {
            let what = format!("bytes makes binary, not {}", kind.name());
            Err(node.error(path, what, "change the type of the field or draw its values otherwise"))
        }
    }
}

/// `min` and `max` of a length.
fn lengths(table: SpecTable<'_>, path: &str, longest: u32) -> Result<(u32, u32), Error> {
    let read = |key: &str| {
        let node = table.need(key, path, "a length")?;
        match node.integer().map(u32::try_from) {
            Some(Ok(n)) if n <= longest => Ok((n, node)),
            _ => {
                let what = format!("`{key} = {}`", node.described());
                Err(node.error(path, what, format!("give a whole number from 0 to {longest}")))
            }
        }
    };
    let ((least, node), (most, _)) = (read("min")?, read("max")?);
    if least > most {
        return Err(node.error(path, format!("min {least} above max {most}"), "swap them"));
    }
    Ok((least, most))
}

/// A whole number of `kind`.
pub(crate) fn whole_of(kind: &LogicalType, node: SpecNode<'_>, path: &str) -> Result<i128, Error> {
    Literal::of(node)
        .and_then(|literal| whole(kind, &literal))
        .ok_or_else(|| node.error(path, format!("{} is no {}", node.described(), kind.name()), kind.takes()))
}

/// Refuses distributions that reach further than the type.
fn fits(kind: &LogicalType, most: i128, node: SpecNode<'_>, path: &str) -> Result<(), Error> {
    let high = kind.range().1;
    let too_large = match kind.is_real() {
        true => most as f64 > kind.most_real(),
        false => most.checked_mul(kind.one()).is_none_or(|most| most > high),
    };
    if too_large {
        let what = format!("values up to {most} in a {}", kind.name());
        return Err(node.error(path, what, "take a wider type or smaller parameters"));
    }
    Ok(())
}

/// Refuses formulas of which no value fits.
fn can_fit(expression: &Expression, kind: &LogicalType) -> Result<(), Complaint> {
    let Some(reach) = expression.reach() else {
        return Err(("the formula divides by zero".into(), "divide by something else".into()));
    };
    let (least, most) = match kind.is_real() {
        true => (-kind.most_real(), kind.most_real()),
        false => (kind.range().0 as f64 / kind.one() as f64, kind.range().1 as f64 / kind.one() as f64),
    };
    // What is rounded may be half a unit past the ends.
    let half = 0.5 / kind.one() as f64;
    let what = if reach.low - half > most {
        format!(
            "the formula's values are {} and more, which no {} holds",
            Number::Real(reach.low),
            kind.name()
        )
    } else if reach.high + half < least {
        format!(
            "the formula's values are {} and less, which no {} holds",
            Number::Real(reach.high),
            kind.name()
        )
    } else {
        return Ok(());
    };
    let operand = expression.operands.iter().find_map(|o| Some((&o.kind, o.kind.ticks_per_day()?)));
    let text = expression.text.trim();
    let advice = match (kind, kind.ticks_per_day(), operand) {
        (LogicalType::Time { .. }, Some(here), Some((LogicalType::Timestamp { .. }, there)))
            if here == there =>
        {
            format!("a time of day is what is left of days: ({text}) % {here}")
        }
        (_, Some(here), Some((other, there))) if here < there => {
            let units = there / here;
            let (from, to) = (other.name(), kind.name());
            format!(
                "a {from} counts {units} units where a {to} counts one: divide, like floor(({text}) / {units})"
            )
        }
        _ => "take a wider type, or another formula".to_owned(),
    };
    Err((what, advice))
}

/// The optional `min` and `max` of a continuous distribution, in the units of the draw; infinite where they are not
/// given.
fn bounds(curve: Curve, node: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<(f64, f64), Error> {
    let table = node.any_table(path, "parameters")?;
    let one = kind.one() as f64;
    let (least, most) = match kind.is_whole() {
        true => (kind.range().0 as f64 / one, kind.range().1 as f64 / one),
        false => (-kind.most_real(), kind.most_real()),
    };
    let bound = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(node) => match quantity(kind, node, path)? {
            bound if (least..=most).contains(&bound) => Ok(Some(bound)),
            _ => {
                let what = format!("`{key} = {}` of a {}", node.described(), kind.name());
                Err(node.error(path, what, format!("give a value from {least} to {most}")))
            }
        },
    };
    let (min, max) = (bound("min")?, bound("max")?);
    let (low, high) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
    if low > high {
        return Err(node.error(path, format!("min {low} above max {high}"), "swap them"));
    }
    // Half of the values would not fit.
    let centre = curve.centre().clamp(low, high);
    if !(least..=most).contains(&centre) {
        let what = format!("values around {} in a {}", Number::Real(centre), kind.name());
        return Err(node.error(path, what, "take a wider type, or give `min` and `max`"));
    }
    Ok((low, high))
}

fn uniform(node: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<ValueSpec, Error> {
    let table = node.table(path, "uniform", &["min", "max"])?;
    let (min, max) = (table.need("min", path, "uniform")?, table.need("max", path, "uniform")?);
    let above = || {
        let what = format!("min {} above max {}", min.described(), max.described());
        min.error(path, what, "swap them")
    };
    if kind.is_real() {
        let bound = |node: SpecNode<'_>| {
            let value = Literal::of(node).and_then(|literal| real(kind, &literal)).filter(|v| v.is_finite());
            value.ok_or_else(|| {
                let what = format!("{} is no finite {}", node.described(), kind.name());
                node.error(path, what, kind.takes())
            })
        };
        let (low, high) = (bound(min)?, bound(max)?);
        if low > high {
            return Err(above());
        }
        if !(high - low).is_finite() {
            return Err(max.error(path, "a span that is no finite number", "give closer bounds"));
        }
        return Ok(ValueSpec::Reals { min: low, width: high - low });
    }
    let (low, high) = (whole_of(kind, min, path)?, whole_of(kind, max, path)?);
    if low > high {
        return Err(above());
    }
    let span = high.wrapping_sub(low) as u128;
    Ok(match span < 1 << 64 && i64::try_from(low).is_ok() {
        // A span of 2^64 wraps to 0, which means it.
        true => ValueSpec::Integers { min: low as i64, span: (span as u64).wrapping_add(1) },
        false => ValueSpec::Wide { min: low, span: span.wrapping_add(1) },
    })
}

fn reference(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec, Error> {
    let path = around.path;
    let (to, rows, s) = match node.string() {
        Some(to) => (to, None, 1.0),
        None => {
            let table = node.table(path, "ref", &["to", "rows", "s"])?;
            let to = table.need("to", path, "ref")?;
            let Some(name) = to.string() else {
                let what = format!("`to = {}`", to.described());
                return Err(to.error(path, what, "name a dataset and its key, like \"orders.id\""));
            };
            let rows = table.get("rows").map(|node| count(node, path, u64::MAX >> 11)).transpose()?;
            let s = table.get("s").map_or(Ok(1.0), |node| exponent(node, path))?;
            (name, rows, s)
        }
    };
    let (key, said) = (around.key)(to).map_err(|(what, advice)| node.error(path, what, advice))?;
    let Some(rows) = rows.or(said) else {
        let what = format!("how many rows the dataset of {to} has is not known");
        let advice =
            format!("write {{ ref = {{ to = \"{to}\", rows = ... }} }}, or `rows` in that dataset's spec");
        return Err(node.error(path, what, advice));
    };
    match &key {
        ReferencedKey::Unique(_) => text_only("a unique key", node, around)?,
        ReferencedKey::Sequence { start, step } => {
            let last = step.checked_mul(rows as i128 - 1).and_then(|n| n.checked_add(*start));
            let (low, high) = around.kind.range();
            let inside = |n: &i128| (low..=high).contains(n);
            if !(around.kind.is_whole() && inside(start) && last.as_ref().is_some_and(inside)) {
                let what = format!("the keys of {to} do not fit a {}", around.kind.name());
                return Err(node.error(path, what, "give the field the type of the key"));
            }
        }
    }
    let ranks = Ranks::new(rows, s)
        .ok_or_else(|| node.error(path, format!("a reference with s = {s}"), "give an s from 0 to 100"))?;
    Ok(ValueSpec::Reference(Reference { ranks, key }))
}
