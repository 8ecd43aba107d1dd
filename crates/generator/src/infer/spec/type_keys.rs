//! The type of a leaf in a spec, and values for it without a sample.

use arrow_schema::DataType;

use crate::infer::notation::{literal, quoted, unit_name};
use crate::infer::sample::stored::Stored;
use crate::types::logical_type::is_zone;

/// The `values` of whole numbers without a sample.
pub(crate) fn alone(kind: &DataType) -> String {
    let (min, max) = match kind {
        DataType::Decimal128(p, _) | DataType::Decimal256(p, _) => {
            (literal(kind, 0), literal(kind, 10i128.pow(u32::from(*p).min(18)) - 1))
        }
        DataType::Date32 => ("2000-01-01".to_owned(), "2024-12-31".to_owned()),
        DataType::Time32(_) | DataType::Time64(_) => ("00:00:00".to_owned(), "23:59:59".to_owned()),
        DataType::Timestamp(_, zone) => {
            let zone = if zone.is_some() { "Z" } else { "" };
            (format!("2000-01-01T00:00:00{zone}"), format!("2024-12-31T23:59:59{zone}"))
        }
        DataType::Int8 | DataType::UInt8 => ("0".to_owned(), "100".to_owned()),
        DataType::Int16 | DataType::UInt16 => ("0".to_owned(), "10000".to_owned()),
        _ => ("0".to_owned(), "1000000".to_owned()),
    };
    format!("{{ uniform = {{ min = {min}, max = {max} }} }}")
}

/// The lines with the type of a leaf.
pub(crate) fn type_keys(kind: &DataType, stored: &Stored) -> String {
    let plain = |name: &str| format!("type = \"{name}\"\n");
    match stored {
        Stored::Uuid => return plain("uuid"),
        Stored::Enum => return plain("enum"),
        Stored::Json => return plain("json"),
        Stored::Int96 => return "type = \"timestamp\"\nunit = \"int96\"\n".to_owned(),
        Stored::UtcTime => return type_keys(kind, &Stored::Plain) + "utc = true\n",
        Stored::Plain | Stored::Other(_) => {}
    }
    match kind {
        DataType::Boolean => plain("boolean"),
        // Specs call them as Arrow does, in small letters.
        kind if kind.is_integer() || *kind == DataType::Float16 => plain(&format!("{kind:?}").to_lowercase()),
        DataType::Float32 => plain("float"),
        DataType::Float64 => plain("double"),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            format!("type = \"decimal\"\nprecision = {p}\nscale = {s}\n")
        }
        DataType::Date32 => plain("date"),
        DataType::Time32(_) => "type = \"time\"\nunit = \"ms\"\n".to_owned(),
        DataType::Time64(unit) => format!("type = \"time\"\nunit = \"{}\"\n", unit_name(*unit)),
        DataType::Timestamp(unit, zone) => {
            // Some writers use other names for zones; the instants are the same in any zone.
            let known = |zone: &str| if is_zone(zone) { quoted(zone) } else { quoted("UTC") };
            let zone = zone.as_ref().map_or_else(String::new, |zone| format!("zone = {}\n", known(zone)));
            format!("type = \"timestamp\"\nunit = \"{}\"\n{zone}", unit_name(*unit))
        }
        DataType::Duration(unit) => format!("type = \"duration\"\nunit = \"{}\"\n", unit_name(*unit)),
        DataType::Utf8 => plain("string"),
        DataType::Binary => plain("binary"),
        DataType::FixedSizeBinary(width) => format!("type = \"fixed_binary\"\nwidth = {width}\n"),
        _ => plain("int64"),
    }
}
