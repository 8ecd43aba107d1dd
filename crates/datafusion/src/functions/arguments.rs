//! The arguments of a call.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use crate::error::refused;

/// Arguments that were not taken yet.
#[derive(Debug)]
pub(crate) struct Arguments {
    function: &'static str,
    /// Each with its name, or its place.
    given: Vec<(Key, ScalarValue)>,
    /// The names that were asked for.
    known: Vec<&'static str>,
}

/// How an argument was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Name(String),
    Place(usize),
}

impl Arguments {
    /// The arguments of a call of `function`.
    ///
    /// # Errors
    /// An argument is not a literal, or a name is given twice.
    pub(crate) fn new(function: &'static str, given: Vec<(Option<String>, Expr)>) -> Result<Self> {
        let mut arguments = Self { function, given: Vec::with_capacity(given.len()), known: Vec::new() };
        for (place, (name, value)) in given.into_iter().enumerate() {
            let key = name.map_or(Key::Place(place), Key::Name);
            let shown = arguments.shown(&key);
            let Some(value) = literal(&value) else {
                return Err(refused(
                    "an argument is not a literal",
                    &shown,
                    "write a number or text in quotes",
                ));
            };
            if arguments.given.iter().any(|(other, _)| *other == key) {
                return Err(refused("an argument is given twice", &shown, "leave one of them out"));
            }
            arguments.given.push((key, value));
        }
        Ok(arguments)
    }

    fn shown(&self, key: &Key) -> String {
        match key {
            Key::Name(name) => format!("{}(.. {name} => ..)", self.function),
            Key::Place(place) => format!("{}, argument {}", self.function, place + 1),
        }
    }

    /// Takes the argument `name`, which may stand at `place` without its name.
    fn take(&mut self, name: &'static str, place: Option<usize>) -> Result<Option<(String, ScalarValue)>> {
        self.known.push(name);
        let keys = [Some(Key::Name(name.to_owned())), place.map(Key::Place)];
        let mut found = None;
        for key in keys.into_iter().flatten() {
            if let Some(at) = self.given.iter().position(|(given, _)| *given == key) {
                let (_, value) = self.given.swap_remove(at);
                if found.replace((self.shown(&key), value)).is_some() {
                    let place = format!("{}(.. {name} => ..)", self.function);
                    return Err(refused("an argument is given twice", &place, "leave one of them out"));
                }
            }
        }
        Ok(found)
    }

    /// Takes text.
    ///
    /// # Errors
    /// The argument is of another type.
    pub(crate) fn text(&mut self, name: &'static str, place: Option<usize>) -> Result<Option<String>> {
        let Some((shown, value)) = self.take(name, place)? else { return Ok(None) };
        match value.try_as_str().flatten() {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(refused("an argument is not text", &shown, "write it in single quotes")),
        }
    }

    /// Takes a whole number that is not negative, also written as `1e6`.
    ///
    /// # Errors
    /// The argument is of another type, negative, or has a fraction.
    pub(crate) fn number(&mut self, name: &'static str, place: Option<usize>) -> Result<Option<u64>> {
        let Some((shown, value)) = self.take(name, place)? else { return Ok(None) };
        let number = match &value {
            ScalarValue::Int64(Some(value)) => u64::try_from(*value).ok(),
            ScalarValue::UInt64(Some(value)) => Some(*value),
            // Up to 2^53, each whole number is exactly one float.
            ScalarValue::Float64(Some(value))
                if value.fract() == 0.0 && (0.0..=2f64.powi(53)).contains(value) =>
            {
                Some(*value as u64)
            }
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None if is_too_large(&value) => {
                let advice =
                    "write digits without an exponent above 2^53 (9007199254740992), and at most 2^64 - 1";
                Err(refused("an argument is too large", &shown, advice))
            }
            None => {
                Err(refused("an argument is not a whole number from 0 up", &shown, "write, for example, 1e6"))
            }
        }
    }

    /// Takes a number that may have a fraction, by its name alone.
    ///
    /// # Errors
    /// The argument is of another type.
    pub(crate) fn factor(&mut self, name: &'static str) -> Result<Option<f64>> {
        let Some((shown, value)) = self.take(name, None)? else { return Ok(None) };
        match value.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(number))) if value.data_type().is_numeric() => Ok(Some(number)),
            _ => Err(refused("an argument is not a number", &shown, "write, for example, 10 or 0.1")),
        }
    }

    /// Ends the call.
    ///
    /// # Errors
    /// An argument was not taken.
    pub(crate) fn finish(self) -> Result<()> {
        let Some((key, _)) = self.given.first() else { return Ok(()) };
        let advice = format!("the arguments of {} are: {}", self.function, self.known.join(", "));
        Err(refused("there is no such argument", &self.shown(key), &advice))
    }
}

/// Whether a number is beyond those that a whole number is read from.
fn is_too_large(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float64(Some(value)) => *value > 2f64.powi(53),
        ScalarValue::Decimal128(Some(value), _, 0) => *value > i128::from(u64::MAX),
        _ => false,
    }
}

fn literal(value: &Expr) -> Option<ScalarValue> {
    match value {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Negative(value) => literal(value)?.arithmetic_negate().ok(),
        _ => None,
    }
}
