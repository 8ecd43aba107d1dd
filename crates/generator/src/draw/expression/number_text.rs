//! Numbers, dates and times as text: the placeholders of `format`.

use super::text::append;
use crate::draw::misfit::nearest_whole;
use crate::types::civil::date_text;
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// The most digits before the point to pad to, and after it.
pub(super) const MAX_WIDTH: usize = 64;

/// How a number is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NumberForm {
    /// Padded with zeros to `width` characters, with `decimals` digits after the point, or as many as it has.
    Digits { width: usize, decimals: Option<usize> },
    /// `2024-02-29`.
    Date,
    /// `12:30:00`, of this many units a second.
    Time(i128),
    /// `2024-02-29T12:30:00`, of this many units a second.
    Timestamp(i128),
}

impl NumberForm {
    /// The form of the values of a field, unless the formula gives one.
    pub(super) fn new(kind: &LogicalType) -> Self {
        match kind {
            LogicalType::Date => NumberForm::Date,
            LogicalType::Time { unit, .. } => NumberForm::Time(unit.per_second()),
            LogicalType::Timestamp { unit, .. } => NumberForm::Timestamp(unit.per_second()),
            LogicalType::Int96 => NumberForm::Timestamp(1_000_000_000),
            LogicalType::Decimal { scale, .. } => {
                NumberForm::Digits { width: 0, decimals: Some(usize::from(*scale)) }
            }
            _ => NumberForm::Digits { width: 0, decimals: None },
        }
    }

    /// Reads what a placeholder has between its colon and its end: `08`, `.2`, `010.3`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (width, decimals) = match text.split_once('.') {
            Some((width, decimals)) => (width, Some(decimals.parse().ok()?)),
            None => (text, None),
        };
        let width = match width {
            "" => 0,
            width => width.strip_prefix('0')?.parse().ok()?,
        };
        (width <= MAX_WIDTH && decimals.is_none_or(|n| n <= MAX_WIDTH))
            .then_some(NumberForm::Digits { width, decimals })
    }

    /// The bytes of the longest number.
    pub(super) fn longest(&self) -> u64 {
        // The largest double has 309 digits, the smallest 324 after its point.
        match self {
            NumberForm::Digits { width, decimals } => (310 + width + decimals.unwrap_or(330)) as u64,
            _ => 50,
        }
    }

    pub(super) fn write(&self, number: Number, out: &mut Vec<u8>) {
        let whole = |number: Number| match number {
            Number::Whole(n) => n,
            Number::Real(v) => nearest_whole(v).unwrap_or(0),
        };
        match self {
            NumberForm::Digits { width, decimals } => match (number, decimals) {
                (Number::Whole(n), None | Some(0)) => digits(n, *width, out),
                (Number::Whole(n), Some(decimals)) => {
                    append(
                        out,
                        format_args!(
                            "{n:0width$}.{:0decimals$}",
                            0,
                            width = width.saturating_sub(decimals + 1)
                        ),
                    );
                }
                (Number::Real(v), Some(decimals)) => append(out, format_args!("{v:0width$.decimals$}")),
                (Number::Real(v), None) => append(out, format_args!("{v:0width$}")),
            },
            NumberForm::Date => match i64::try_from(whole(number)) {
                Ok(days) if days.abs() < 1 << 40 => out.extend_from_slice(date_text(days).as_bytes()),
                _ => digits(whole(number), 0, out),
            },
            NumberForm::Time(per_second) => time(whole(number), *per_second, out),
            NumberForm::Timestamp(per_second) => {
                let (at, per_day) = (whole(number), per_second * 86_400);
                NumberForm::Date.write(Number::Whole(at.div_euclid(per_day)), out);
                out.push(b'T');
                time(at.rem_euclid(per_day), *per_second, out);
            }
        }
    }
}

/// Appends `n`, padded with zeros to `width` characters.
fn digits(n: i128, width: usize, out: &mut Vec<u8>) {
    let (Ok(mut rest), true) = (u64::try_from(n), width <= 20) else {
        return append(out, format_args!("{n:0width$}"));
    };
    let mut buffer = [b'0'; 20];
    let mut at = buffer.len();
    for digit in buffer.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        at -= 1;
        if rest == 0 {
            break;
        }
    }
    let from = at.min(buffer.len() - width);
    out.extend_from_slice(buffer.get(from..).unwrap_or_default());
}

/// Appends a time of day, with the fraction of its second if it has one.
fn time(at: i128, per_second: i128, out: &mut Vec<u8>) {
    let (seconds, fraction) = (at.div_euclid(per_second), at.rem_euclid(per_second));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    append(out, format_args!("{hour:02}:{minute:02}:{second:02}"));
    if fraction != 0 {
        let places = per_second.ilog10() as usize;
        append(out, format_args!(".{fraction:0places$}"));
    }
}
