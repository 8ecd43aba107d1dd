//! Partition values: text in the log, Arrow values of the column's type in rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringArray, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

/// Returns an array of the value alone. Timestamps without an offset are in UTC.
///
/// # Errors
/// The text is not a value of the type, or values of the type have no text.
pub(crate) fn value(text: Option<&str>, data_type: &DataType) -> Result<ArrayRef, String> {
    // In the log the empty text is null, too.
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(new_null_array(data_type, 1));
    };
    if matches!(data_type, DataType::BinaryView) {
        return Ok(Arc::new(BinaryViewArray::from_iter_values([bytes(text)?])));
    }
    if data_type.is_nested() {
        return Err(format!("partitions by {data_type} are not supported"));
    }
    let wrong = || format!("{text:?} is not a value of {data_type}");
    let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
    // An offset is parsed without a list of all zones.
    let parsed_as = match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        other => other.clone(),
    };
    let value = cast_with_options(&texts, &parsed_as, &CastOptions { safe: false, ..CastOptions::default() });
    let value = value.map_err(|_| wrong())?;
    if value.is_null(0) {
        return Err(wrong());
    }
    Ok(match (data_type, value.as_primitive_opt::<TimestampMicrosecondType>()) {
        (DataType::Timestamp(_, Some(zone)), Some(moment)) => {
            Arc::new(moment.clone().with_timezone(Arc::clone(zone)))
        }
        _ => value,
    })
}

/// Returns the bytes of a binary value: a character or an escape such as `\u0041` for each byte. Of others than ASCII,
/// some writers mean the number of the character and some its UTF-8.
fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let byte = |digits: &str| match digits.len() == 4 && digits.starts_with("00") {
        true => u8::from_str_radix(digits, 16).ok(),
        false => None,
    };
    let escaped = text.strip_prefix("\\u").and_then(|text| text.split("\\u").map(byte).collect());
    match escaped {
        Some(bytes) => Ok(bytes),
        None if text.is_ascii() && !text.starts_with("\\u") => Ok(text.into()),
        None => Err(format!(
            "{text:?} is not a binary value: writers of Delta tables write bytes beyond ASCII in different ways"
        )),
    }
}

/// Whether folders of generated files name values of a type as the log writes them.
pub(crate) fn has_plain_text(data_type: &DataType) -> bool {
    use DataType::{Boolean, Date32, Int8, Int16, Int32, Int64, LargeUtf8, Utf8, Utf8View};
    matches!(data_type, Boolean | Date32 | Int8 | Int16 | Int32 | Int64 | LargeUtf8 | Utf8 | Utf8View)
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Date32Type, Decimal128Type, Int32Type};
    use arrow_schema::TimeUnit::Microsecond;

    use super::*;

    #[test]
    fn each_type_of_partition_reads_its_text() {
        let of = |text: &str, data_type: &DataType| value(Some(text), data_type).unwrap();
        assert_eq!(of("-7", &DataType::Int32).as_primitive::<Int32Type>().value(0), -7);
        assert_eq!(of("a/ b%", &DataType::Utf8View).as_string_view().value(0), "a/ b%");
        assert_eq!(of("2024-01-31", &DataType::Date32).as_primitive::<Date32Type>().value(0), 19_753);
        assert!(of("true", &DataType::Boolean).as_boolean().value(0));
        let decimal = of("1.50", &DataType::Decimal128(10, 2));
        assert_eq!(decimal.as_primitive::<Decimal128Type>().value(0), 150);
        for (text, bytes) in [("a\u{1}", &b"a\x01"[..]), (r"\u0041", b"A"), (r"\u0001\u00fF", b"\x01\xff")] {
            assert_eq!(of(text, &DataType::BinaryView).as_binary_view().value(0), bytes, "{text}");
        }
        let utc = DataType::Timestamp(Microsecond, Some("UTC".into()));
        for text in ["1970-01-01 00:00:01.5", "1970-01-01T00:00:01.500000Z"] {
            assert_eq!(of(text, &utc).as_primitive::<TimestampMicrosecondType>().value(0), 1_500_000);
        }
    }

    #[test]
    fn empty_text_is_null_and_other_text_is_refused() {
        assert!(value(None, &DataType::Int32).unwrap().is_null(0));
        assert!(value(Some(""), &DataType::Utf8View).unwrap().is_null(0));
        for (text, data_type) in [
            ("x", DataType::Int32),
            ("1.5", DataType::Int32),
            ("300", DataType::Int8),
            ("2024-02-30", DataType::Date32),
            ("é", DataType::BinaryView),
            (r"\u0141", DataType::BinaryView),
            (r"\u0041b", DataType::BinaryView),
        ] {
            assert!(value(Some(text), &data_type).is_err(), "{text} {data_type}");
        }
    }
}
