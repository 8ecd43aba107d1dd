//! How the values of a leaf are drawn, and the buffer that holds them until their page is written.
//!
//! Values stay in the smallest form that says what they are: an index into a dictionary, the code
//! of a name, the number of a unique string. Pages and statistics are made from these.

use std::collections::BTreeMap;

use crate::civil;
use crate::dataset::bad_weights;
use crate::error::Error;
use crate::person_name;
use crate::rng::{Stream, scale64, unit_interval};
use crate::spec::{TypeSpec, ValuesSpec};
use crate::template::Template;
use crate::weights::Weights;

/// Largest number of ranks of a Zipf draw, for which a table is kept (8 bytes a rank).
const MOST_RANKS: u32 = 1 << 22;

/// Where the values of a leaf come from.
#[derive(Debug)]
pub(crate) enum Values {
    /// [`person_name`] codes.
    PersonName,
    /// Numbers rendered by a template.
    Unique(Template),
    /// Indices into a dictionary of values.
    Choice { table: Weights, dictionary: Dictionary },
    /// `false` (0) or `true` (1).
    Boolean(Weights),
    /// Ranks from 1 on.
    Zipf(Weights),
    /// Integers from `min` on, `span` of them; a span of 0 means 2^64.
    Integers { min: i64, span: u64 },
    /// Doubles from `min` on.
    Reals { min: f64, width: f64 },
}

/// The distinct values of a leaf, sorted, each as PLAIN encoding has it (strings without their
/// length).
#[derive(Debug)]
pub(crate) struct Dictionary {
    pub entries: Vec<Vec<u8>>,
}

/// The values drawn for a page, nulls left out.
#[derive(Debug)]
pub(crate) enum ValueBuffer {
    Names(Vec<u32>),
    Ids(Vec<u64>),
    Indices(Vec<u32>),
    Booleans(Vec<u8>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
}

/// Runs `$body` with `$v` bound to the vector of whatever kind `$buffer` is.
macro_rules! on_each {
    ($buffer:expr, $v:ident => $body:expr) => {
        match $buffer {
            ValueBuffer::Names($v) => $body,
            ValueBuffer::Ids($v) => $body,
            ValueBuffer::Indices($v) => $body,
            ValueBuffer::Booleans($v) => $body,
            ValueBuffer::Int32($v) => $body,
            ValueBuffer::Int64($v) => $body,
            ValueBuffer::Float($v) => $body,
            ValueBuffer::Double($v) => $body,
        }
    };
}

impl ValueBuffer {
    /// An empty buffer for what `values` draws for a leaf of type `kind`.
    pub(crate) fn new(values: &Values, kind: TypeSpec) -> Self {
        match (values, kind) {
            (Values::PersonName, _) => ValueBuffer::Names(Vec::new()),
            (Values::Unique(_), _) => ValueBuffer::Ids(Vec::new()),
            (Values::Choice { .. }, _) => ValueBuffer::Indices(Vec::new()),
            (Values::Boolean(_), _) => ValueBuffer::Booleans(Vec::new()),
            (_, TypeSpec::Int32 | TypeSpec::Date) => ValueBuffer::Int32(Vec::new()),
            (_, TypeSpec::Float) => ValueBuffer::Float(Vec::new()),
            (_, TypeSpec::Double) => ValueBuffer::Double(Vec::new()),
            _ => ValueBuffer::Int64(Vec::new()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        on_each!(self, v => v.len())
    }

    pub(crate) fn clear(&mut self) {
        on_each!(self, v => v.clear());
    }

    /// Keeps, of the values from `from` on, only `keep`, counted from there.
    pub(crate) fn retain(&mut self, from: usize, keep: std::ops::Range<usize>) {
        on_each!(self, v => {
            v.truncate(from + keep.end);
            v.drain(from..from + keep.start);
        });
    }
}

impl Values {
    /// Checks a spec of values for a leaf of type `kind`.
    pub(crate) fn new(kind: TypeSpec, spec: &ValuesSpec, path: &str) -> Result<Self, Error> {
        let place = || format!("field {path}, `values`");
        let string_only = |what: &str| match kind {
            TypeSpec::String => Ok(()),
            _ => Err(Error::spec(
                format!("{what} makes strings, not {}", kind.name()),
                place(),
                "make the field a string or draw its values otherwise",
            )),
        };
        Ok(match spec {
            ValuesSpec::PersonName => {
                string_only("person_name")?;
                Values::PersonName
            }
            ValuesSpec::Unique(template) => {
                string_only("unique")?;
                let template = Template::parse(template)
                    .map_err(|what| Error::spec(what, place(), "for example \"+91-{id:010}\""))?;
                Values::Unique(template)
            }
            ValuesSpec::Constant(value) => {
                let entry =
                    plain(kind, value).map_err(|(what, advice)| Error::spec(what, place(), advice))?;
                choice(kind, vec![(entry, 1.0)], place)?
            }
            ValuesSpec::Weights(weights) => choice(kind, parse_keys(kind, weights, place)?, place)?,
            ValuesSpec::Zipf { n, s } => {
                if !matches!(kind, TypeSpec::Int32 | TypeSpec::Int64) {
                    let what = format!("zipf makes int32 or int64, not {}", kind.name());
                    return Err(Error::spec(what, place(), "change the type of the field"));
                }
                if !(1..=MOST_RANKS).contains(n) || !s.is_finite() {
                    let what = format!("zipf with n = {n}, s = {s}");
                    return Err(Error::spec(
                        what,
                        place(),
                        format!("give 1 to {MOST_RANKS} ranks, a finite s"),
                    ));
                }
                let weights: Vec<f64> = (1..=*n).map(|k| f64::from(k).powf(-s)).collect();
                Values::Zipf(Weights::new(&weights).map_err(|bad| bad_weights(&bad, place()))?)
            }
            ValuesSpec::Uniform { min, max } => {
                let bound =
                    |value| plain(kind, value).map_err(|(what, advice)| Error::spec(what, place(), advice));
                let (low, high) = (bound(min)?, bound(max)?);
                let above = || Error::spec(format!("min {min} above max {max}"), place(), "swap them");
                match kind {
                    TypeSpec::Float | TypeSpec::Double => {
                        let (low, high) = (real(kind, &low), real(kind, &high));
                        if !(low.is_finite() && high.is_finite() && (high - low).is_finite()) {
                            return Err(Error::spec("infinite bounds", place(), "give finite ones"));
                        }
                        if low > high {
                            return Err(above());
                        }
                        Values::Reals { min: low, width: high - low }
                    }
                    TypeSpec::String | TypeSpec::Boolean => {
                        let what = format!("uniform makes numbers, not {}", kind.name());
                        return Err(Error::spec(what, place(), "use weights = { ... }"));
                    }
                    _ => {
                        let (low, high) = (integer(&low), integer(&high));
                        if low > high {
                            return Err(above());
                        }
                        Values::Integers { min: low, span: (high.wrapping_sub(low) as u64).wrapping_add(1) }
                    }
                }
            }
        })
    }

    /// Appends `n` values to `out`. `first_id` is the number of the first unique value.
    pub(crate) fn draw(&self, stream: Stream, n: usize, first_id: u64, out: &mut ValueBuffer) {
        /// Appends `n` values, value `i` made from draw `i`.
        fn each<T: Clone + Default>(out: &mut Vec<T>, stream: Stream, n: usize, value: impl Fn(u64) -> T) {
            let at = out.len();
            out.resize(at + n, T::default());
            for (i, out) in out[at..].iter_mut().enumerate() {
                *out = value(stream.draw(i as u64));
            }
        }
        let integer = |min: i64, span: u64, draw: u64| match span {
            0 => draw as i64,
            span => min.wrapping_add(scale64(draw, span) as i64),
        };
        match (self, out) {
            (Values::PersonName, ValueBuffer::Names(out)) => {
                let at = out.len();
                out.resize(at + n, 0);
                person_name::draw(stream, &mut out[at..]);
            }
            (Values::Unique(_), ValueBuffer::Ids(out)) => out.extend(first_id..first_id + n as u64),
            (Values::Choice { table, .. }, ValueBuffer::Indices(out)) => {
                let at = out.len();
                out.resize(at + n, 0);
                stream.fill32(&mut out[at..]);
                for out in &mut out[at..] {
                    *out = table.pick(*out);
                }
            }
            (Values::Boolean(table), ValueBuffer::Booleans(out)) => {
                each(out, stream, n, |draw| table.pick(draw as u32) as u8);
            }
            (Values::Zipf(table), ValueBuffer::Int32(out)) => {
                each(out, stream, n, |draw| table.pick(draw as u32) as i32 + 1);
            }
            (Values::Zipf(table), ValueBuffer::Int64(out)) => {
                each(out, stream, n, |draw| i64::from(table.pick(draw as u32)) + 1);
            }
            (Values::Integers { min, span }, ValueBuffer::Int32(out)) => {
                each(out, stream, n, |draw| integer(*min, *span, draw) as i32);
            }
            (Values::Integers { min, span }, ValueBuffer::Int64(out)) => {
                each(out, stream, n, |draw| integer(*min, *span, draw));
            }
            (Values::Reals { min, width }, ValueBuffer::Float(out)) => {
                each(out, stream, n, |draw| (min + width * unit_interval(draw)) as f32);
            }
            (Values::Reals { min, width }, ValueBuffer::Double(out)) => {
                each(out, stream, n, |draw| min + width * unit_interval(draw));
            }
            // `ValueBuffer::new` pairs each kind of values with its buffer.
            (values, out) => debug_assert!(false, "{values:?} drawn into {out:?}"),
        }
    }
}

/// The keys of a table of weights as values of the leaf's type.
fn parse_keys(
    kind: TypeSpec,
    weights: &BTreeMap<String, f64>,
    place: impl Fn() -> String,
) -> Result<Vec<(Vec<u8>, f64)>, Error> {
    let value = |key: &str| match kind {
        TypeSpec::String => toml::Value::String(key.to_owned()),
        TypeSpec::Float | TypeSpec::Double => key.parse().map_or_else(|_| key.into(), toml::Value::Float),
        TypeSpec::Boolean => key.parse().map_or_else(|_| key.into(), toml::Value::Boolean),
        TypeSpec::Date | TypeSpec::Timestamp => {
            key.parse().map_or_else(|_| key.into(), toml::Value::Datetime)
        }
        _ => key.parse().map_or_else(|_| key.into(), toml::Value::Integer),
    };
    weights
        .iter()
        .map(|(key, weight)| match plain(kind, &value(key)) {
            Ok(entry) => Ok((entry, *weight)),
            Err((what, advice)) => Err(Error::spec(what, place(), advice)),
        })
        .collect()
}

/// A draw from listed values.
fn choice(
    kind: TypeSpec,
    mut entries: Vec<(Vec<u8>, f64)>,
    place: impl Fn() -> String,
) -> Result<Values, Error> {
    // In the order of the values, so that the least index of a page is its least value.
    match kind {
        TypeSpec::Float | TypeSpec::Double => {
            entries.sort_by(|a, b| real(kind, &a.0).total_cmp(&real(kind, &b.0)));
        }
        TypeSpec::String | TypeSpec::Boolean => entries.sort_by(|a, b| a.0.cmp(&b.0)),
        _ => entries.sort_by_key(|e| integer(&e.0)),
    }
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("the same value twice ({:?})", String::from_utf8_lossy(&pair[0].0));
        return Err(Error::spec(what, place(), "give each value once"));
    }
    let weights: Vec<f64> = entries.iter().map(|(_, w)| *w).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, place()))?;
    if kind == TypeSpec::Boolean {
        let share = |value: u8| {
            let at = entries.iter().position(|(e, _)| e == &[value]);
            at.map_or(0.0, |i| table.probabilities()[i])
        };
        let table = Weights::new(&[share(0), share(1)]).map_err(|bad| bad_weights(&bad, place()))?;
        return Ok(Values::Boolean(table));
    }
    Ok(Values::Choice {
        table,
        dictionary: Dictionary { entries: entries.into_iter().map(|e| e.0).collect() },
    })
}

/// A value of the spec as PLAIN encoding has it, or what is wrong with it and what would be right.
fn plain(kind: TypeSpec, value: &toml::Value) -> Result<Vec<u8>, (String, &'static str)> {
    use toml::Value;
    let wrong = |advice| Err((format!("{value} is no {}", kind.name()), advice));
    match (kind, value) {
        (TypeSpec::String, Value::String(s)) => Ok(s.clone().into_bytes()),
        (TypeSpec::Boolean, Value::Boolean(b)) => Ok(vec![u8::from(*b)]),
        (TypeSpec::Int32, Value::Integer(i)) => match i32::try_from(*i) {
            Ok(i) => Ok(i.to_le_bytes().to_vec()),
            Err(_) => wrong("give a whole number from -2147483648 to 2147483647"),
        },
        (TypeSpec::Int64, Value::Integer(i)) => Ok(i.to_le_bytes().to_vec()),
        (TypeSpec::Float | TypeSpec::Double, Value::Float(_) | Value::Integer(_)) => {
            let value = value.as_float().or(value.as_integer().map(|i| i as f64)).unwrap_or_default();
            Ok(match kind {
                TypeSpec::Float => (value as f32).to_le_bytes().to_vec(),
                _ => value.to_le_bytes().to_vec(),
            })
        }
        (TypeSpec::Date, Value::Datetime(d)) => match (civil::days(d), d.time) {
            (Some(days), None) => Ok(days.to_le_bytes().to_vec()),
            _ => wrong("give a date like 2024-02-29"),
        },
        (TypeSpec::Timestamp, Value::Datetime(d)) => match civil::microseconds(d) {
            Some(micros) => Ok(micros.to_le_bytes().to_vec()),
            None => wrong("give a time like 2024-02-29T12:00:00, without a zone"),
        },
        (TypeSpec::String, _) => wrong("give a string in quotes"),
        (TypeSpec::Boolean, _) => wrong("give true or false"),
        (TypeSpec::Date, _) => wrong("give a date like 2024-02-29"),
        (TypeSpec::Timestamp, _) => wrong("give a time like 2024-02-29T12:00:00"),
        _ => wrong("give a number"),
    }
}

/// The integer that `plain` made.
fn integer(entry: &[u8]) -> i64 {
    match *entry {
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// The real number that `plain` made.
fn real(kind: TypeSpec, entry: &[u8]) -> f64 {
    match (kind, entry) {
        (TypeSpec::Float, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
        (_, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0.0,
    }
}
