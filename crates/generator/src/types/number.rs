//! The numbers that formulas compute with, and stored values as such numbers.

use std::fmt;

use crate::types::int256::Int256;
use crate::types::logical_type::{LogicalType, Physical};

/// A number in an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    pub(crate) fn real(self) -> f64 {
        match self {
            Number::Whole(n) => n as f64,
            Number::Real(v) => v,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Whole(n) => n.fmt(f),
            Number::Real(v) if v.abs() >= 1e16 => write!(f, "{v:e}"),
            Number::Real(v) => v.fmt(f),
        }
    }
}

/// A decimal with its scale applied; other whole numbers unchanged.
pub(crate) fn scaled(kind: &LogicalType, whole: i128) -> Number {
    match kind {
        LogicalType::Decimal { scale: 0, .. } => Number::Whole(whole),
        LogicalType::Decimal { .. } => Number::Real(whole as f64 / kind.one_real()),
        _ => Number::Whole(whole),
    }
}

/// The number of a PLAIN-encoded value of type `kind`, decimals with their scale applied.
pub(crate) fn stored_number(kind: &LogicalType, bytes: &[u8]) -> Option<Number> {
    let unsigned = matches!(kind, LogicalType::Integer { signed: false, .. });
    Some(match kind.physical() {
        Physical::Int32 if unsigned => Number::Whole(u32::from_le_bytes(bytes.try_into().ok()?).into()),
        Physical::Int64 if unsigned => Number::Whole(u64::from_le_bytes(bytes.try_into().ok()?).into()),
        Physical::Int32 => scaled(kind, i32::from_le_bytes(bytes.try_into().ok()?).into()),
        Physical::Int64 => scaled(kind, i64::from_le_bytes(bytes.try_into().ok()?).into()),
        Physical::Float => Number::Real(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        Physical::Double => Number::Real(f64::from_le_bytes(bytes.try_into().ok()?)),
        Physical::Fixed(2) if *kind == LogicalType::Float16 => {
            Number::Real(half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64())
        }
        Physical::Fixed(_) if kind.is_wide() => {
            let wide = Int256::from_bytes(bytes);
            wide.narrow()
                .map_or_else(|| Number::Real(wide.real() / kind.one_real()), |whole| scaled(kind, whole))
        }
        Physical::Fixed(_) => {
            let negative = bytes.first()? & 0x80 != 0;
            let mut wide = [if negative { 0xFF } else { 0 }; 16];
            let n = bytes.len().min(16);
            wide[16 - n..].copy_from_slice(&bytes[bytes.len() - n..]);
            scaled(kind, i128::from_be_bytes(wide))
        }
        Physical::Int96 => {
            let nanos = i64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
            let day = u32::from_le_bytes(bytes.get(8..)?.try_into().ok()?);
            Number::Whole((i128::from(day) - 2_440_588) * 86_400_000_000_000 + i128::from(nanos))
        }
        Physical::Boolean | Physical::Bytes => return None,
    })
}
