//! Reads the `values` of a leaf.
//!
//! `values` is either a name (`"person_name"`) or a table with one key: the name of a distribution with its
//! parameters. The reader checks everything that drawing relies on.

use std::sync::Arc;

use crate::draw::choice::{bad_weights, choice, constant, weighted};
use crate::draw::distribution::{Counts, Curve, Ranks, quantity};
use crate::draw::expression::{Expression, NamedDraw, Operand, OperandRow};
use crate::draw::misfit::nearest_whole;
use crate::draw::monotone::Monotone;
use crate::draw::quantiles::Quantiles;
use crate::draw::text::distinct::DistinctStrings;
use crate::draw::text::pattern::Pattern;
use crate::draw::text::random_text::RandomText;
use crate::draw::text::template::Template;
use crate::draw::text::{email, localized};
use crate::draw::value_spec::cycle::cycle;
use crate::draw::value_spec::fan_out::FanOut;
use crate::draw::value_spec::geometry::Shapes;
use crate::draw::value_spec::intervals::Intervals;
use crate::draw::value_spec::of_children::of_children;
use crate::draw::value_spec::other_column::{Referring, child_number, fan_out, lookup, parent};
use crate::draw::value_spec::references::reference;
use crate::draw::value_spec::seasonal::Seasonal;
use crate::draw::value_spec::weights_by::weights_by;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::{Complaint, Error};
use crate::random::rng::purpose;
use crate::random::weights::Weights;
use crate::spec::dataset::Dataset;
use crate::spec::value_length::SHORT_BYTES;
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable, listed};
use crate::types::literal::{Literal, real, whole};
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// A key of a dataset, and the number of rows in its spec.
pub(crate) type FoundKey = (ReferencedKey, Option<u64>);

/// What the reader of `values` may need of its surroundings.
pub(crate) struct Surroundings<'a> {
    pub kind: &'a LogicalType,
    pub path: &'a str,
    /// The folder with the files that the spec names.
    pub folder: &'a SpecFolder<'a>,
    /// Finds an earlier field of the record by its name in an expression.
    pub operand: &'a mut dyn FnMut(&str) -> Result<Operand, Complaint>,
    /// Finds the key of another dataset, and the number of rows in that dataset's spec.
    pub key: &'a mut dyn FnMut(&str) -> Result<FoundKey, Complaint>,
    /// Columns of other rows.
    pub tables: OtherTables<'a>,
    /// Whether the field is inside a list.
    pub in_list: bool,
    /// The field itself, for the row before of the same parent.
    pub own: Option<Operand>,
}

/// Finds what a name means.
type Find<'a, T> = &'a dyn Fn(&str) -> Result<T, Complaint>;

/// Finds a table that has a column, by both names.
type FindTable<'a> = &'a dyn Fn(&str, &str) -> Result<Arc<Dataset>, Complaint>;

/// What a field may use of other tables.
#[derive(Clone, Copy)]
pub(crate) struct OtherTables<'a> {
    /// Finds an earlier field that refers to another table.
    pub referring: Find<'a, (Operand, Referring)>,
    /// The other table of that name, with at least the column of that name.
    pub table: FindTable<'a>,
    /// How the rows of the table of that name follow from this one's, its parent's.
    pub children: Find<'a, Arc<FanOut>>,
    /// How the rows of this table follow from its parent's rows.
    pub fan_out: Option<&'a Arc<FanOut>>,
}

/// The names of distributions and what they draw, for error messages and the JSON schema.
pub(crate) const VALUES: &[(&str, &str)] = &[
    ("constant", "always the same value"),
    (
        "uniform",
        "every value from `min` to `max` with the same probability; whole numbers, dates and times include `max`",
    ),
    ("zipf", "the ranks 1 to `n`, rank k with a probability proportional to k^-s"),
    ("weights", "one of the keys, with a probability proportional to its weight"),
    (
        "weights_by",
        "one of several values, with weights for each value (`given`) of an earlier `field`, and those `otherwise`",
    ),
    ("choice", "one of a list of values or of the lines of a `file`, uniformly or with Zipfian skew `s`"),
    ("cycle", "the values of a list one after the other, as many rows `each`, again and again"),
    ("normal", "the normal distribution of `mean` and standard deviation `stddev`"),
    (
        "lognormal",
        "exp of a normal distribution of mean `mu` (or ln(`median`)) and standard deviation `sigma`",
    ),
    ("exponential", "waiting times with this `mean`"),
    (
        "quantiles",
        "the distribution whose quantiles are `values`, with single values (`atoms`) that have shares of their own",
    ),
    (
        "seasonal",
        "dates and timestamps of the days `from` to `to`, by weights of `hours`, `weekdays`, `months` and `years`",
    ),
    ("poisson", "counts with this `mean`"),
    ("geometric", "the number of failures before the first success, with success probability `p`"),
    ("sequence", "`start`, `start + step`, ...: by row or, inside a list, by the position of the element"),
    ("walk", "from `start`, increasing by `step` each row, with `jitter`; some values are `late`"),
    ("expression", "a formula over earlier fields of the record"),
    ("ref", "the key of a row of another dataset; rows are drawn with Zipfian skew"),
    ("lookup", "a `column` of the row that an earlier field refers to (`by`)"),
    ("parent", "a column of the row of the parent table to which this row belongs"),
    ("sum", "the sum of a column `of` the rows whose parent the row is"),
    ("count", "how many rows `of` another table have the row as their parent"),
    ("min", "the least value of a column `of` the rows whose parent the row is"),
    ("max", "the greatest value of a column `of` the rows whose parent the row is"),
    ("child_number", "1, 2, ... for the rows of each row of the parent table"),
    ("column", "the column of this name in the `file` of the table"),
    ("unique", "a template with a number that is unique in the dataset"),
    ("pattern", "strings that match a regular expression, or one of several by their `weights`"),
    ("person_name", "\"First Last\""),
    (
        "email",
        "an e-mail address, after the `name` in another field if there is one, at one of some `domains`",
    ),
    ("words", "from `min` to `max` words of a small dictionary, with realistic frequencies"),
    ("text", "words, or letters from `letters`, of a `length` in characters"),
    ("point", "a point between the ends of `x` and `y`"),
    (
        "polygon",
        "a polygon of some `corners`, within a `radius` around a point between the ends of `x` and `y`",
    ),
    ("uuid", "a random UUID of version 4"),
    ("bytes", "from `min` to `max` random bytes"),
];

impl ValueSpec {
    /// Reads the `values` of a leaf.
    pub(crate) fn read(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<Self, Error> {
        if let Some(name) = node.string() {
            return without_parameters(name, node, around);
        }
        let path = around.path;
        let table = node.any_table(path, "`values`")?;
        let mut entries = table.entries();
        let (Some((name, parameters)), None) = (entries.next(), entries.next()) else {
            let what = "`values` must be a table with one key, the name of a distribution";
            return Err(node.error(path, what, "for example { uniform = { min = 1, max = 9 } }"));
        };
        let kind = around.kind;
        let only = |made: &str, fits: bool| match fits {
            true => Ok(()),
            false => {
                let what = format!("{name} draws {made}, not {}", kind.name());
                let advice = "change the type of the field, or use another distribution";
                Err(table.key_error(name, path, what, advice))
            }
        };
        let numbers = || only("numbers", kind.is_whole() || kind.is_real());
        let whole_numbers = || only("whole numbers", kind.is_whole());
        let text = || text_only(name, parameters, around);
        match name {
            "constant" => constant(kind, parameters, path),
            "weights" => weighted(kind, parameters, path),
            "weights_by" => weights_by(parameters, around),
            "choice" => choice(kind, parameters, path, around.folder),
            "cycle" => cycle(parameters, around),
            "uniform" if *kind == LogicalType::Interval => {
                Intervals::read(parameters, path).map(ValueSpec::Intervals)
            }
            "point" | "polygon" => Shapes::read(name, parameters, kind, path).map(ValueSpec::Shapes),
            "uniform" => numbers().and_then(|()| uniform(parameters, kind, path)),
            "zipf" => numbers().and_then(|()| zipf(parameters, kind, path)),
            "normal" | "lognormal" | "exponential" => {
                numbers().and_then(|()| continuous(name, parameters, kind, path))
            }
            "quantiles" => {
                numbers().and_then(|()| Quantiles::read(parameters, kind, path).map(ValueSpec::Quantiles))
            }
            "seasonal" => Seasonal::read(parameters, kind, path).map(ValueSpec::Seasonal),
            "poisson" | "geometric" => numbers().and_then(|()| counts(name, parameters, kind, path)),
            "sequence" => whole_numbers().and_then(|()| sequence(parameters, kind, path)),
            "walk" => {
                whole_numbers().and_then(|()| Monotone::read(parameters, kind, path).map(ValueSpec::Monotone))
            }
            "expression" => only("numbers, texts or conditions", kind.is_computable())
                .and_then(|()| expression(parameters, around)),
            "ref" => reference(parameters, around),
            "lookup" => lookup(parameters, around),
            "parent" => parent(parameters, around),
            "sum" | "count" | "min" | "max" => of_children(name, parameters, around),
            "unique" => text().and_then(|()| template(parameters, path)),
            "pattern" => text().and_then(|()| pattern(parameters, around)),
            "words" => text().and_then(|()| words(parameters, path)),
            "text" => text().and_then(|()| RandomText::read(parameters, path).map(ValueSpec::Text)),
            "bytes" => bytes(Some(parameters), parameters, around),
            "email" => text().and_then(|()| email::of_name(parameters, around)),
            _ if is_localized(name) => {
                text().and_then(|()| localized::read(name, Some(parameters), node, around))
            }
            "person_name" | "uuid" | "child_number" | "column" => {
                let what = format!("{name} does not take parameters");
                Err(parameters.error(path, what, format!("write `values = \"{name}\"`")))
            }
            _ => Err(unknown(name, node, path)),
        }
    }
}

/// `values = "NAME"`.
fn without_parameters(
    name: &str,
    node: SpecNode<'_>,
    around: &mut Surroundings<'_>,
) -> Result<ValueSpec, Error> {
    match name {
        "person_name" | "email" => text_only(name, node, around).map(|()| match name {
            "email" => ValueSpec::Email,
            _ => ValueSpec::PersonName,
        }),
        _ if is_localized(name) => {
            text_only(name, node, around).and_then(|()| localized::read(name, None, node, around))
        }
        "uuid" => uuid(node, around),
        "child_number" => child_number(node, around),
        "words" => text_only(name, node, around).map(|()| ValueSpec::Words { least: 3, most: 8 }),
        "bytes" => bytes(None, node, around),
        _ => Err(unknown(name, node, around.path)),
    }
}

/// `zipf`: ranks up to one that fits into the type.
fn zipf(parameters: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<ValueSpec, Error> {
    let ranks = Ranks::read(parameters, path)?;
    fits(kind, i128::from(ranks.count()), parameters, path)?;
    Ok(ValueSpec::Zipf(ranks))
}

/// `normal`, `lognormal` or `exponential`, with the bounds of the values.
fn continuous(
    name: &str,
    parameters: SpecNode<'_>,
    kind: &LogicalType,
    path: &str,
) -> Result<ValueSpec, Error> {
    let curve = Curve::read(name, parameters, kind, path)?;
    let (low, high) = bounds(curve, parameters, kind, path)?;
    Ok(ValueSpec::Curve { curve, low, high })
}

/// `poisson` or `geometric`: counts up to one that fits into the type.
fn counts(name: &str, parameters: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<ValueSpec, Error> {
    let counts = Counts::read(name, parameters, path)?;
    let most = counts.outcomes().last().map_or(0, |(k, _)| k);
    fits(kind, most.into(), parameters, path)?;
    Ok(ValueSpec::Counts(counts))
}

/// `words`: from `min` to `max` of them.
fn words(parameters: SpecNode<'_>, path: &str) -> Result<ValueSpec, Error> {
    let table = parameters.table(path, "words", &["min", "max"])?;
    let (least, most) = lengths(table, path, 1000)?;
    Ok(ValueSpec::Words { least, most })
}

/// `sequence`: whole numbers from `start` in steps of `step`.
fn sequence(parameters: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<ValueSpec, Error> {
    let table = parameters.table(path, "sequence", &["start", "step"])?;
    let start = match table.get("start") {
        Some(node) => whole_of(kind, node, path)?,
        None => 0,
    };
    let step = match table.get("step") {
        None => kind.one(),
        Some(node) if kind.is_temporal() => {
            let step = quantity(kind, node, path)?;
            nearest_whole(step).filter(|whole| *whole as f64 == step).ok_or_else(|| {
                let what =
                    format!("a step of {}, which is {step} units of type {}", node.described(), kind.name());
                node.error(path, what, "use a step of whole units")
            })?
        }
        Some(node) => whole_of(kind, node, path)?,
    };
    Ok(ValueSpec::Sequence { start, step })
}

/// `expression`: a formula whose results can fit into the type.
fn expression(parameters: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec, Error> {
    let (kind, path) = (around.kind, around.path);
    let (node, draws) = match parameters.is_table() {
        false => (parameters, Vec::new()),
        true => {
            let table = parameters.table(path, "expression", &["formula", "draws"])?;
            let draws = table.get("draws").map_or(Ok(Vec::new()), |node| draws(node, kind, path))?;
            (table.need("formula", path, "expression")?, draws)
        }
    };
    let Some(text) = node.string() else {
        let what = "an expression must be a string";
        return Err(node.error(path, what, "for example \"start + lognormal(3h, 0.5)\""));
    };
    let name = path.rsplit('.').next();
    let operand = &mut *around.operand;
    let mut resolve = |wanted: &str| match (operand(wanted), &around.own) {
        (Err(_), Some(own)) if Some(wanted) == name => Ok(own.clone()),
        (found, _) => found,
    };
    let expression = Expression::parse(text, kind, &draws, &mut resolve)
        .map_err(|(what, advice)| parameters.error(path, what, advice))?;
    let mut before = expression.operands.iter().filter(|operand| operand.row != OperandRow::Own);
    if let Some(operand) = before.next() {
        fan_out(node, around)?;
        if before.chain([operand]).chain(&around.own).any(|operand| operand.nullable) {
            let what = "previous() of a field that can be null, or in one";
            return Err(node.error(path, what, "use required fields outside of optional structs"));
        }
    }
    let own = around.own.as_ref().map(|own| own.leaf);
    let repeats = expression.operands.iter().any(|operand| Some(operand.leaf) == own);
    if repeats && expression.longest().is_some_and(|longest| longest > SHORT_BYTES) {
        let what = format!("texts that can grow from row to row, beyond {SHORT_BYTES} bytes");
        return Err(node.error(path, what, "shorten them: substring(..., 1, 60)"));
    }
    can_fit(&expression, kind).map_err(|(what, advice)| parameters.error(path, what, advice))?;
    Ok(ValueSpec::Expression(expression))
}

/// The draws of an expression for a field of type `kind`. Those for dates, times and integers are whole
/// numbers.
fn draws(node: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<Vec<NamedDraw>, Error> {
    let kind = match kind {
        LogicalType::Decimal { .. } => kind.clone(),
        kind if kind.is_real() => LogicalType::Double,
        _ => LogicalType::Integer { bits: 64, signed: true },
    };
    let mut draws = Vec::new();
    for (name, node) in node.any_table(path, "`draws`")?.entries() {
        let table = node.table(path, "a draw of an expression", &["quantiles"])?;
        let parameters = table.need("quantiles", path, "a draw of an expression")?;
        let quantiles = Quantiles::read(parameters, &kind, path)?;
        draws.push(NamedDraw { name: name.to_owned(), quantiles, kind: kind.clone() });
    }
    Ok(draws)
}

fn is_localized(name: &str) -> bool {
    localized::KINDS.iter().any(|(known, _)| *known == name)
}

/// `unique`: a template with the number of the value.
fn template(parameters: SpecNode<'_>, path: &str) -> Result<ValueSpec, Error> {
    let template = parameters
        .string()
        .map_or_else(|| Err("the template of `unique` must be a string".to_owned()), Template::parse);
    template
        .map(ValueSpec::Unique)
        .map_err(|what| parameters.error(path, what, "for example \"+91-{id:010}\""))
}

/// `pattern`: strings that match a regular expression.
fn pattern(parameters: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec, Error> {
    let path = around.path;
    let advice = "for example \"[A-Z]{2}-[0-9]{4}\"";
    if parameters.is_table() {
        let table = parameters.table(path, "pattern", &["weights", "unique"])?;
        return match (table.get("weights"), table.get("unique")) {
            (None, Some(unique)) => distinct_strings(unique, around),
            (Some(_), Some(unique)) => {
                Err(unique.error(path, "a pattern with `weights` and `unique`", "use one of them"))
            }
            _ => weighted_patterns(table.need("weights", path, "pattern")?, path),
        };
    }
    let pattern = parameters.string().map_or_else(
        || Err("a pattern must be a string with a regular expression".to_owned()),
        Pattern::parse,
    );
    pattern.map(ValueSpec::Pattern).map_err(|what| parameters.error(path, what, advice))
}

/// `pattern = { unique = { PATTERN = COUNT, ... } }`.
fn distinct_strings(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec, Error> {
    let path = around.path;
    if around.in_list {
        let advice = "use `unique` patterns for fields of the record";
        return Err(node.error(path, "unique strings inside a list", advice));
    }
    let (patterns, counts) = counted_patterns(node, path)?;
    let whole = |count: &f64| {
        (*count >= 0.0 && *count <= u32::MAX.into() && count.fract() == 0.0).then_some(*count as u64)
    };
    let Some(counts) = counts.iter().map(whole).collect::<Option<Vec<u64>>>() else {
        return Err(node.error(
            path,
            "a count that is not a whole number",
            "write how many rows have each pattern",
        ));
    };
    DistinctStrings::new(patterns.into_iter().zip(counts).collect(), purpose(path, "unique"))
        .map(|distinct| ValueSpec::Distinct(Arc::new(distinct)))
        .map_err(|what| {
            node.error(path, what, "write smaller counts, or patterns such as \"[A-Z]{2}-[0-9]{4}\"")
        })
}

/// `pattern = { weights = { PATTERN = WEIGHT, ... } }`.
fn weighted_patterns(node: SpecNode<'_>, path: &str) -> Result<ValueSpec, Error> {
    let (patterns, weights) = counted_patterns(node, path)?;
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, node, path))?;
    Ok(ValueSpec::Pattern(Pattern::weighted(patterns, table)))
}

/// Patterns, each with its number.
fn counted_patterns(node: SpecNode<'_>, path: &str) -> Result<(Vec<Pattern>, Vec<f64>), Error> {
    let table = node.any_table(path, "weights")?;
    let (mut patterns, mut weights) = (Vec::new(), Vec::new());
    for (key, weight) in table.entries() {
        let pattern = Pattern::parse(key);
        let advice = "write regular expressions as the keys: { \"N/A\" = 1, \"[0-9]{4}\" = 9 }";
        patterns.push(pattern.map_err(|what| table.key_error(key, path, what, advice))?);
        weights.push(weight.number().unwrap_or(f64::NAN));
    }
    Ok((patterns, weights))
}

fn unknown(name: &str, node: SpecNode<'_>, path: &str) -> Error {
    let names: Vec<&str> = VALUES.iter().chain(localized::KINDS).map(|(name, _)| *name).collect();
    node.error(path, format!("unknown distribution {name:?}"), format!("allowed: {}", listed(&names)))
}

pub(super) fn text_only(name: &str, node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<(), Error> {
    match around.kind {
        LogicalType::String | LogicalType::Enum | LogicalType::Binary => Ok(()),
        // A pattern can draw JSON. The user is responsible for its validity.
        LogicalType::Json if name == "pattern" => Ok(()),
        kind => {
            let what = format!("{name} draws strings, not {}", kind.name());
            Err(node.error(around.path, what, "change the field to a string, or use another distribution"))
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
        (LogicalType::FixedBinary(_), Some(_)) => Err(node.error(
            path,
            "bytes in a fixed_binary always have its width",
            "write `values = \"bytes\"`",
        )),
        (kind, _) => {
            let what = format!("bytes draws binary, not {}", kind.name());
            Err(node.error(path, what, "change the type of the field, or use another distribution"))
        }
    }
}

/// Reads `min` and `max` of a length.
fn lengths(table: SpecTable<'_>, path: &str, longest: u32) -> Result<(u32, u32), Error> {
    let read = |key: &str| {
        let node = table.need(key, path, "a length")?;
        match node.integer().map(u32::try_from) {
            Some(Ok(n)) if n <= longest => Ok((n, node)),
            _ => {
                let what = format!("`{key} = {}`", node.described());
                Err(node.error(path, what, format!("use a whole number from 0 to {longest}")))
            }
        }
    };
    let ((least, node), (most, _)) = (read("min")?, read("max")?);
    if least > most {
        return Err(node.error(path, format!("min {least} is greater than max {most}"), "swap them"));
    }
    Ok((least, most))
}

/// Reads a whole number of the type `kind`.
pub(crate) fn whole_of(kind: &LogicalType, node: SpecNode<'_>, path: &str) -> Result<i128, Error> {
    Literal::new(node).and_then(|literal| whole(kind, &literal)).ok_or_else(|| {
        node.error(path, format!("{} is not {}", node.described(), kind.a_name()), kind.takes())
    })
}

/// Refuses distributions whose largest value `most` exceeds the type.
fn fits(kind: &LogicalType, most: i128, node: SpecNode<'_>, path: &str) -> Result<(), Error> {
    let high = kind.range().1;
    let too_large = match kind.is_real() {
        true => most as f64 > kind.most_real(),
        false => most.checked_mul(kind.one()).is_none_or(|most| most > high),
    };
    if too_large {
        let what = format!("values up to {most} in {}", kind.a_name());
        return Err(node.error(path, what, "use a wider type or smaller parameters"));
    }
    Ok(())
}

/// Refuses formulas whose values never fit the type.
fn can_fit(expression: &Expression, kind: &LogicalType) -> Result<(), Complaint> {
    if kind.is_text() || *kind == LogicalType::Boolean {
        return Ok(());
    }
    let Some(reach) = expression.reach() else {
        return Err(("the formula always divides by zero".into(), "use another divisor".into()));
    };
    let (least, most) = match kind.is_real() {
        true => (-kind.most_real(), kind.most_real()),
        false => (kind.range().0 as f64 / kind.one() as f64, kind.range().1 as f64 / kind.one() as f64),
    };
    // Values are rounded, so they may be half a unit outside of the range.
    let half = 0.5 / kind.one() as f64;
    let what = if reach.low - half > most {
        format!(
            "the formula's values are at least {}, too large for {}",
            Number::Real(reach.low),
            kind.a_name()
        )
    } else if reach.high + half < least {
        format!(
            "the formula's values are at most {}, too small for {}",
            Number::Real(reach.high),
            kind.a_name()
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
            format!("a time of day is the remainder of whole days: ({text}) % {here}")
        }
        (_, Some(here), Some((other, there))) if here < there => {
            let units = there / here;
            let (from, to) = (other.name(), kind.name());
            format!(
                "{units} units of a {from} are one unit of a {to}: divide, like floor(({text}) / {units})"
            )
        }
        _ => "use a wider type or another formula".to_owned(),
    };
    Err((what, advice))
}

/// Reads the optional `min` and `max` of a continuous distribution, in the units of the draw. A missing bound
/// is infinite.
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
                let what = format!("`{key} = {}` of {}", node.described(), kind.a_name());
                Err(node.error(path, what, format!("use a value from {least} to {most}")))
            }
        },
    };
    let (min, max) = (bound("min")?, bound("max")?);
    let (low, high) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
    if low > high {
        return Err(node.error(path, format!("min {low} is greater than max {high}"), "swap them"));
    }
    // Otherwise half of the values would not fit.
    let centre = curve.centre().clamp(low, high);
    if !(least..=most).contains(&centre) {
        let what = format!("values around {} in {}", Number::Real(centre), kind.a_name());
        return Err(node.error(path, what, "use a wider type, or set `min` and `max`"));
    }
    Ok((low, high))
}

fn uniform(node: SpecNode<'_>, kind: &LogicalType, path: &str) -> Result<ValueSpec, Error> {
    let table = node.table(path, "uniform", &["min", "max"])?;
    let (min, max) = (table.need("min", path, "uniform")?, table.need("max", path, "uniform")?);
    let above = || {
        let what = format!("min {} is greater than max {}", min.described(), max.described());
        min.error(path, what, "swap them")
    };
    if kind.is_real() {
        let bound = |node: SpecNode<'_>| {
            let value = Literal::new(node).and_then(|literal| real(kind, &literal)).filter(|v| v.is_finite());
            value.ok_or_else(|| {
                let what = format!("{} is not a finite {}", node.described(), kind.name());
                node.error(path, what, kind.takes())
            })
        };
        let (low, high) = (bound(min)?, bound(max)?);
        if low > high {
            return Err(above());
        }
        if !(high - low).is_finite() {
            return Err(max.error(path, "the span from min to max is not finite", "use closer bounds"));
        }
        return Ok(ValueSpec::Reals { min: low, width: high - low });
    }
    let (low, high) = (whole_of(kind, min, path)?, whole_of(kind, max, path)?);
    if low > high {
        return Err(above());
    }
    let span = high.wrapping_sub(low) as u128;
    Ok(match span < 1 << 64 && i64::try_from(low).is_ok() {
        // A span of 2^64 is stored as 0.
        true => ValueSpec::Integers { min: low as i64, span: (span as u64).wrapping_add(1) },
        false => ValueSpec::Wide { min: low, span: span.wrapping_add(1) },
    })
}
