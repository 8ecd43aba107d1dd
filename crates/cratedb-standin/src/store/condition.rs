//! Conditions of statements, and the values in them.

use std::cmp::Ordering;

use super::{Error, error};
use crate::json::Json;
use crate::sql::{Condition, Expression};
use crate::types::{Value, to_text, untyped};

/// The value of a parameter or a literal.
pub(super) fn argument(expression: &Expression, arguments: &[Json]) -> Result<Json, Error> {
    match expression {
        Expression::Parameter(number) => arguments.get(*number).cloned().ok_or_else(|| {
            let what = format!(
                "Tried to resolve a parameter but the arguments provided with the SQLRequest don't contain a \
                 parameter at position {number}"
            );
            error(400, 4000, what)
        }),
        Expression::Literal(text) => Json::parse(text).map_err(|what| error(400, 4000, what.to_string())),
        Expression::Column(name) => {
            Err(error(404, 4043, format!("ColumnUnknownException[Column {name} unknown]")))
        }
    }
}

/// Whether a condition specifies values for every primary key column.
pub(super) fn names_key(condition: &Condition, key: &[&str]) -> bool {
    match condition {
        Condition::Or(terms) if terms.len() == 1 => names_key(&terms[0], key),
        Condition::And(terms) => {
            let given = |item: &Expression| matches!(item, Expression::Literal(_));
            let named = |name: &&str| {
                terms.iter().any(|term| match term {
                    Condition::Compare(Expression::Column(column), '=', _) => column == name,
                    // Parameters in a list are not looked up (seen: 6.4.3).
                    Condition::In(Expression::Column(column), items) => {
                        column == name && items.iter().all(given)
                    }
                    _ => false,
                })
            };
            !key.is_empty() && key.iter().all(named)
        }
        _ => false,
    }
}

/// Whether a condition is true for a row; `get` returns the values of its columns.
pub(super) fn holds(condition: &Condition, arguments: &[Json], get: &dyn Fn(&str) -> Option<Value>) -> bool {
    match condition {
        Condition::And(terms) => terms.iter().all(|term| holds(term, arguments, get)),
        Condition::Or(terms) => terms.iter().any(|term| holds(term, arguments, get)),
        Condition::IsNull(left) => value(left, None, arguments, get) == Some(Value::Null),
        Condition::In(left, items) => {
            let left = value(left, None, arguments, get);
            items.iter().any(|item| value(item, left.as_ref(), arguments, get) == left)
        }
        Condition::Compare(left, sign, right) => {
            let Some(left) = value(left, None, arguments, get) else { return false };
            let Some(right) = value(right, Some(&left), arguments, get) else { return false };
            if left == Value::Null || right == Value::Null {
                return false;
            }
            let order = compare(&left, &right);
            match sign {
                '=' => order.is_eq(),
                '<' => order.is_lt(),
                _ => order.is_gt(),
            }
        }
    }
}

/// The value of an expression; a parameter or a literal takes the type of the value that it is compared with.
fn value(
    expression: &Expression,
    like: Option<&Value>,
    arguments: &[Json],
    get: &dyn Fn(&str) -> Option<Value>,
) -> Option<Value> {
    if let Expression::Column(name) = expression {
        return get(name);
    }
    let json = argument(expression, arguments).ok()?;
    Some(match (like, &json) {
        (Some(Value::Text(_)), Json::Text(text)) => Value::Text(text.clone()),
        (Some(Value::Int(_)), Json::Number(text)) => Value::Int(text.parse().ok()?),
        (Some(Value::Numeric(_)), Json::Number(text) | Json::Text(text)) => Value::Numeric(text.clone()),
        (Some(Value::Real(_)), Json::Number(text)) => Value::Real(text.parse().ok()?),
        (Some(Value::Double(_)), Json::Number(text)) => Value::Double(text.parse().ok()?),
        (_, json) => untyped(json),
    })
}

/// The order of two values; NULL sorts last.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Real(a), Value::Real(b)) => a.total_cmp(b),
        (Value::Numeric(a), Value::Numeric(b)) => {
            let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
            number(a).total_cmp(&number(b))
        }
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (a, b) => to_text(a).cmp(&to_text(b)),
    }
}
