//! How the bounds of a column compare and how long they are, by the column's type and its `ColumnOrder` in
//! the footer (see the format's `parquet.thrift`).

use std::cmp::Ordering;

use sawmill_footer::{ColumnOrder, Element, LogicalType, PhysicalType};

use crate::text::values::{half, meaning};

/// The number of bytes in a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Exactly(usize),
    /// Byte-array bounds may be truncated.
    AtMost(usize),
    Any,
}

impl Width {
    pub fn fits(self, len: usize) -> bool {
        match self {
            Self::Exactly(width) => len == width,
            Self::AtMost(width) => len <= width,
            Self::Any => true,
        }
    }
}

/// An order of PLAIN-encoded values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// An integer of four or eight bytes, little endian.
    Signed,
    Unsigned,
    /// An integer of any length, big endian: an unscaled decimal.
    BigEndianSigned,
    /// A floating-point number of two, four or eight bytes. -0 equals 0; NaN is unordered.
    Float,
    /// Like `Float`, but every bit pattern has a place in the order.
    TotalFloat,
    /// Byte by byte, without signs.
    Bytes,
    /// An INT96 timestamp: the nanoseconds of the day, then the day.
    Int96Timestamp,
}

/// How the bounds of one column compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundsOf {
    pub width: Width,
    /// The order of `min_value` and `max_value`; `None` if undefined.
    order: Option<By>,
    /// The order of the deprecated `min` and `max`, which compared signed; `None` if writers disagreed.
    old_order: Option<By>,
}

impl BoundsOf {
    /// The bounds of the column `leaf` in the order that the footer names for it.
    pub fn column(leaf: &Element<'_>, named: Option<ColumnOrder>) -> Option<Self> {
        let physical = leaf.physical_type()?;
        let meaning = Meaning::new(leaf);
        let width = match physical {
            PhysicalType::Boolean => Width::Exactly(1),
            PhysicalType::ByteArray => Width::Any,
            PhysicalType::FixedLenByteArray => match (physical.width(leaf.type_length())?, meaning) {
                // A truncated number would be another number.
                (length, Meaning::Decimal | Meaning::Half) => Width::Exactly(length),
                (length, _) => Width::AtMost(length),
            },
            other => Width::Exactly(other.width(None)?),
        };
        let by_type = by_type(physical, meaning);
        let order = match named? {
            ColumnOrder::TypeOrder => by_type,
            ColumnOrder::Ieee754TotalOrder => by_type.filter(|by| *by == By::Float).map(|_| By::TotalFloat),
            ColumnOrder::Int96TimestampOrder => {
                (physical == PhysicalType::Int96).then_some(By::Int96Timestamp)
            }
            ColumnOrder::Unknown(_) => None,
        };
        Some(Self { width, order, old_order: by_type.filter(|by| matches!(by, By::Signed | By::Float)) })
    }

    /// Like [`BoundsOf::column`], for a footer without column orders: only the deprecated bounds have an
    /// order.
    pub fn without_order(leaf: &Element<'_>) -> Option<Self> {
        Self::column(leaf, Some(ColumnOrder::TypeOrder)).map(|bounds| Self { order: None, ..bounds })
    }

    /// Whether `min_value` and `max_value` have an order, so that bounds mean something.
    pub fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// Whether the lower bound is above the upper one; false if their order is undefined.
    pub fn crossed(&self, lower: &[u8], upper: &[u8]) -> bool {
        self.greater(self.order, lower, upper)
    }

    /// Like [`BoundsOf::crossed`], for the deprecated bounds.
    pub fn old_crossed(&self, lower: &[u8], upper: &[u8]) -> bool {
        self.greater(self.old_order, lower, upper)
    }

    fn greater(&self, order: Option<By>, lower: &[u8], upper: &[u8]) -> bool {
        let fit = self.width.fits(lower.len()) && self.width.fits(upper.len());
        fit && order.and_then(|by| by.compare(lower, upper)) == Some(Ordering::Greater)
    }

    /// Formats a bound for display.
    pub fn shown(&self, bound: &[u8]) -> String {
        /// The number of bytes shown of a long bound.
        const MAX: usize = 24;
        match self.order.or(self.old_order) {
            Some(By::Signed) => integer(bound).map(|value| value.to_string()),
            Some(By::Unsigned) => unsigned(bound).map(|value| value.to_string()),
            Some(By::Float | By::TotalFloat) => float(bound).map(|value| value.to_string()),
            _ => None,
        }
        .unwrap_or_else(|| match bound.get(..MAX) {
            Some(start) if bound.len() > MAX => format!("\"{}\"...", start.escape_ascii()),
            _ => format!("\"{}\"", bound.escape_ascii()),
        })
    }
}

/// What a column's order depends on besides its physical type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Signed,
    Unsigned,
    Decimal,
    Half,
    Bytes,
    /// No annotation that affects the order.
    None,
    /// An annotation without an order, or an unknown one.
    Unordered,
}

impl Meaning {
    fn new(leaf: &Element<'_>) -> Self {
        match meaning(*leaf) {
            Some(logical) => Self::of_logical(&logical),
            None if leaf.converted_type().is_some() => Self::Unordered,
            None => Self::None,
        }
    }

    fn of_logical(logical: &LogicalType) -> Self {
        match logical {
            LogicalType::Integer { is_signed: false, .. } => Self::Unsigned,
            LogicalType::Integer { .. }
            | LogicalType::Date
            | LogicalType::Time { .. }
            | LogicalType::Timestamp { .. } => Self::Signed,
            LogicalType::Decimal { .. } => Self::Decimal,
            LogicalType::Float16 => Self::Half,
            LogicalType::String
            | LogicalType::Enum
            | LogicalType::Json
            | LogicalType::Bson
            | LogicalType::Uuid => Self::Bytes,
            _ => Self::Unordered,
        }
    }
}

/// The order of a type; `None` if the format defines none or the annotation does not fit the type.
fn by_type(physical: PhysicalType, meaning: Meaning) -> Option<By> {
    match (physical, meaning) {
        (_, Meaning::Unordered) => None,
        (PhysicalType::Int32 | PhysicalType::Int64, Meaning::Unsigned) => Some(By::Unsigned),
        (PhysicalType::Int32 | PhysicalType::Int64, Meaning::Signed | Meaning::Decimal | Meaning::None) => {
            Some(By::Signed)
        }
        (PhysicalType::Float | PhysicalType::Double, Meaning::None) => Some(By::Float),
        (PhysicalType::FixedLenByteArray, Meaning::Half) => Some(By::Float),
        (PhysicalType::ByteArray | PhysicalType::FixedLenByteArray, Meaning::Decimal) => {
            Some(By::BigEndianSigned)
        }
        (PhysicalType::ByteArray | PhysicalType::FixedLenByteArray, Meaning::Bytes | Meaning::None)
        | (PhysicalType::Boolean, Meaning::None) => Some(By::Bytes),
        _ => None,
    }
}

impl By {
    fn compare(self, lower: &[u8], upper: &[u8]) -> Option<Ordering> {
        match self {
            Self::Signed => Some(integer(lower)?.cmp(&integer(upper)?)),
            Self::Unsigned => Some(unsigned(lower)?.cmp(&unsigned(upper)?)),
            Self::Float => float(lower)?.partial_cmp(&float(upper)?),
            // Widening a float preserves order, even of zeros, and the sign of NaN.
            Self::TotalFloat => Some(float(lower)?.total_cmp(&float(upper)?)).filter(|_| {
                // The order of two NaNs depends on payload bits, which widening moves.
                !(float(lower).is_some_and(f64::is_nan) && float(upper).is_some_and(f64::is_nan))
            }),
            Self::Bytes => Some(lower.cmp(upper)),
            Self::BigEndianSigned => big_endian(lower, upper),
            Self::Int96Timestamp => Some(int96(lower)?.cmp(&int96(upper)?)),
        }
    }
}

fn integer(bytes: &[u8]) -> Option<i64> {
    match bytes.len() {
        4 => bytes.first_chunk().map(|bytes| i32::from_le_bytes(*bytes).into()),
        8 => bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes)),
        _ => None,
    }
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into()),
        8 => bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
        _ => None,
    }
}

fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        2 => bytes.first_chunk().map(|bytes| half(u16::from_le_bytes(*bytes)).into()),
        4 => bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes).into()),
        8 => bytes.first_chunk().map(|bytes| f64::from_le_bytes(*bytes)),
        _ => None,
    }
}

/// Compares big-endian two's-complement integers of any lengths.
fn big_endian(lower: &[u8], upper: &[u8]) -> Option<Ordering> {
    let (lower_sign, upper_sign) = (sign(lower)?, sign(upper)?);
    if lower_sign != upper_sign {
        // A negative number has the sign byte 0xff.
        return Some(upper_sign.cmp(&lower_sign));
    }
    let len = lower.len().max(upper.len());
    let byte = |bytes: &[u8], at: usize| {
        let before = len - bytes.len();
        at.checked_sub(before).and_then(|at| bytes.get(at).copied()).unwrap_or(lower_sign)
    };
    Some(
        (0..len)
            .map(|at| byte(lower, at).cmp(&byte(upper, at)))
            .find(|found| found.is_ne())
            .unwrap_or(Ordering::Equal),
    )
}

/// The byte that sign-extends a number.
fn sign(bytes: &[u8]) -> Option<u8> {
    bytes.first().map(|first| if first & 0x80 == 0 { 0 } else { 0xff })
}

/// Splits an INT96 timestamp into day and nanoseconds.
fn int96(bytes: &[u8]) -> Option<(i32, u64)> {
    let (nanos, day) = bytes.split_at_checked(8)?;
    Some((i32::from_le_bytes(*day.first_chunk()?), u64::from_le_bytes(*nanos.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::By;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn big_endian_integers_of_any_length_are_compared_as_numbers() {
        for (lower, upper, found) in [
            (&[0xff][..], &[0][..], Less),
            (&[0, 0, 1], &[1], Equal),
            (&[0xff, 0xfe], &[0xfe], Equal),
            (&[0x7f], &[0, 0x80], Less),
            (&[0x80], &[0xff, 0x7f], Greater),
            (&[1, 0], &[0xff], Greater),
        ] {
            assert_eq!(By::BigEndianSigned.compare(lower, upper), Some(found), "{lower:?} {upper:?}");
        }
        assert_eq!(By::BigEndianSigned.compare(&[], &[1]), None);
    }

    #[test]
    fn zeros_are_equal_and_only_the_total_order_orders_nan() {
        let bytes = |value: f64| value.to_le_bytes();
        assert_eq!(By::Float.compare(&bytes(0.0), &bytes(-0.0)), Some(Equal));
        assert_eq!(By::Float.compare(&bytes(f64::NAN), &bytes(1.0)), None);
        assert_eq!(By::TotalFloat.compare(&bytes(0.0), &bytes(-0.0)), Some(Greater));
        assert_eq!(By::TotalFloat.compare(&bytes(f64::NAN), &bytes(1.0)), Some(Greater));
    }
}
