//! Integers and decimals, rounded and truncated as the server does.

use super::Value;
use crate::json::Json;

/// Wraps a number above 2^63-1 silently and truncates fractions, but takes a string exactly.
pub(super) fn integer(bits: u32, json: &Json) -> Option<i64> {
    let value = match json {
        Json::Text(text) => text.parse::<i64>().ok()?,
        Json::Number(text) => match text.parse::<i128>() {
            Ok(value) => value as i64,
            Err(_) => text.parse::<f64>().ok()?.trunc() as i64,
        },
        _ => return None,
    };
    if bits == 64 {
        return Some(value);
    }
    let most = 1i64 << (bits - 1);
    (-most..most).contains(&value).then_some(value)
}

/// A decimal as plain text, rounded to its scale; `None` if it has too many digits.
pub(super) fn numeric(text: &str, bounds: Option<(u32, u32)>) -> Option<Value> {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
        || whole.len() + fraction.len() == 0
    {
        return None;
    }
    let Some((precision, scale)) = bounds else { return Some(Value::Numeric(text.to_owned())) };
    let scale = scale as usize;
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if fraction.len() > scale {
        let cut = whole.len() + scale;
        let up = digits[cut] >= b'5';
        digits.truncate(cut);
        if up {
            let mut carry = true;
            for digit in digits.iter_mut().rev() {
                if !carry {
                    break;
                }
                carry = *digit == b'9';
                *digit = if carry { b'0' } else { *digit + 1 };
            }
            if carry {
                digits.insert(0, b'1');
            }
        }
    } else {
        digits.resize(whole.len() + scale, b'0');
    }
    let significant = digits.iter().skip_while(|digit| **digit == b'0').count();
    if significant > precision as usize {
        return None;
    }
    while digits.len() < scale + 1 {
        digits.insert(0, b'0');
    }
    let digits = String::from_utf8(digits).ok()?;
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let sign = if significant == 0 { "" } else { sign };
    Some(Value::Numeric(if scale == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }))
}
