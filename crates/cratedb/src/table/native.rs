//! Types that no Arrow type means by itself: a new column has one of them only on request.

use std::fmt::{self, Display, Formatter};

use arrow_schema::{DataType, Fields};

/// A type of CrateDB's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Native {
    /// Longitude and latitude.
    GeoPoint,
    /// Any shape with longitudes and latitudes, as GeoJSON.
    GeoShape,
    /// This number of floats.
    FloatVector(u32),
    /// An IPv4 or IPv6 address.
    Ip,
    /// This number of bits.
    Bit(u32),
    /// Text of this number of UTF-16 code units, filled up with blanks.
    Char(u32),
}

impl Native {
    /// The type of this name in the catalogue. Without a length, it is 1, as in CrateDB.
    pub(crate) fn new(name: &str, length: Option<u32>) -> Option<Self> {
        let length = length.unwrap_or(1);
        Some(match name {
            "geo_point" => Self::GeoPoint,
            "geo_shape" => Self::GeoShape,
            "float_vector" => Self::FloatVector(length),
            "ip" => Self::Ip,
            "bit" => Self::Bit(length),
            "character" | "char" => Self::Char(length),
            _ => return None,
        })
    }

    /// The name in `information_schema.columns.data_type`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GeoPoint => "geo_point",
            Self::GeoShape => "geo_shape",
            Self::FloatVector(_) => "float_vector",
            Self::Ip => "ip",
            Self::Bit(_) => "bit",
            Self::Char(_) => "character",
        }
    }

    /// Whether values of an Arrow type can be values of this one.
    pub(crate) fn takes(self, arrow: &DataType) -> bool {
        match (self, arrow) {
            (Self::GeoPoint, DataType::FixedSizeList(item, length)) => {
                item.data_type().is_floating() && *length == 2
            }
            (Self::FloatVector(length), DataType::FixedSizeList(item, items)) => {
                item.data_type().is_floating() && u32::try_from(*items) == Ok(length)
            }
            (Self::GeoPoint | Self::FloatVector(_), DataType::List(item) | DataType::LargeList(item)) => {
                item.data_type().is_floating()
            }
            (Self::GeoPoint, DataType::Struct(fields)) => coordinates(fields).is_some(),
            (Self::GeoPoint | Self::GeoShape, other) => is_text(other) || is_binary(other),
            (Self::FloatVector(_), _) => false,
            (Self::Bit(length), DataType::FixedSizeBinary(bytes)) => {
                u32::try_from(*bytes).is_ok_and(|bytes| bytes * 8 == length)
            }
            (Self::Bit(length), other) => is_text(other) || is_binary(other) && length.is_multiple_of(8),
            (Self::Ip | Self::Char(_), other) => is_text(other),
        }
    }
}

/// As SQL writes it.
impl Display for Native {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.name().to_uppercase();
        match self {
            Self::GeoPoint | Self::GeoShape | Self::Ip => f.write_str(&name),
            Self::FloatVector(length) | Self::Bit(length) | Self::Char(length) => {
                write!(f, "{name}({length})")
            }
        }
    }
}

/// The positions of longitude and latitude among the fields of a struct.
pub(crate) fn coordinates(fields: &Fields) -> Option<[usize; 2]> {
    let find = |names: [&str; 3]| {
        fields.iter().position(|field| {
            names.iter().any(|name| field.name().eq_ignore_ascii_case(name))
                && field.data_type().is_floating()
        })
    };
    match fields.len() {
        2 => Some([find(["x", "lon", "longitude"])?, find(["y", "lat", "latitude"])?]),
        _ => None,
    }
}

pub(crate) fn is_text(arrow: &DataType) -> bool {
    matches!(arrow, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_binary(arrow: &DataType) -> bool {
    matches!(
        arrow,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    #[test]
    fn a_type_takes_the_arrow_types_that_have_its_values() {
        let item = |of| Arc::new(Field::new("item", of, true));
        let floats = DataType::List(item(DataType::Float32));
        let three = DataType::FixedSizeList(item(DataType::Float64), 3);
        assert!(Native::FloatVector(3).takes(&floats) && Native::FloatVector(3).takes(&three));
        assert!(!Native::FloatVector(4).takes(&three) && !Native::GeoPoint.takes(&three));
        assert!(Native::GeoPoint.takes(&floats) && Native::GeoPoint.takes(&DataType::Binary));
        assert!(!Native::GeoPoint.takes(&DataType::List(item(DataType::Int64))));
        let named = |first: &str, second: &str| {
            Fields::from(vec![
                Field::new(first, DataType::Float64, true),
                Field::new(second, DataType::Float64, true),
            ])
        };
        assert!(
            Native::GeoShape.takes(&DataType::LargeUtf8) && Native::GeoShape.takes(&DataType::BinaryView)
        );
        assert!(!Native::GeoShape.takes(&floats));
        assert_eq!(coordinates(&named("lat", "lon")), Some([1, 0]));
        assert_eq!(coordinates(&named("X", "y")), Some([0, 1]));
        assert_eq!(coordinates(&named("a", "b")), None);
        assert!(Native::Ip.takes(&DataType::Utf8View) && !Native::Ip.takes(&DataType::Binary));
        assert!(Native::Bit(16).takes(&DataType::FixedSizeBinary(2)));
        assert!(!Native::Bit(12).takes(&DataType::Binary) && Native::Bit(12).takes(&DataType::Utf8));
    }
}
