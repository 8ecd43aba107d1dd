//! Checks the schema's elements.

use std::iter::successors;

use sawmill_footer::{ConvertedType, Element, LogicalType, PhysicalType};

use super::Check;

impl Check<'_, '_> {
    pub(super) fn schema(&mut self) {
        for element in self.footer.schema().elements().skip(1) {
            let path = |field: &str| format!("schema[{}].{field}", element.index());
            let name = || element.path();
            match element.repetition() {
                Some(repetition) if repetition.is_known() => {}
                found => {
                    let found = found.map_or("none".to_string(), |found| found.to_string());
                    let what = format!("expected a repetition of the format for `{}`, found {found}", name());
                    self.tell(what, path("repetition_type"), None);
                }
            }
            if let Some((expected, found)) = wrong_converted_type(element) {
                let what = format!("expected {expected} for `{}`, found {found}", name());
                self.tell(what, path("converted_type"), None);
            }
            let is_fixed = element.physical_type() == Some(PhysicalType::FixedLenByteArray);
            let length = element.type_length().or(is_fixed.then_some(0));
            if let Some(length) = length.filter(|&length| length < i32::from(is_fixed)) {
                let what =
                    format!("expected a positive length of the values of `{}`, found {length}", name());
                self.tell(what, path("type_length"), None);
            }
            for (field, what) in impossible_digits(element) {
                self.tell(format!("expected {what} of the decimal `{}`", name()), path(field), None);
            }
        }
    }
}

/// What was expected in place of a converted type that is unknown, or contradicts the logical type beside it.
pub(crate) fn wrong_converted_type(element: Element<'_>) -> Option<(String, ConvertedType)> {
    let found = element.converted_type()?;
    if !found.is_known() {
        return Some(("a converted type of the format".to_owned(), found));
    }
    let logical = element.logical_type()?;
    let name = match logical {
        LogicalType::String => "UTF8".to_owned(),
        LogicalType::Decimal { .. } => "DECIMAL".to_owned(),
        LogicalType::Time { unit, .. } => format!("TIME_{unit}"),
        LogicalType::Timestamp { unit, .. } => format!("TIMESTAMP_{unit}"),
        LogicalType::Integer { bit_width, is_signed: true } => format!("INT_{bit_width}"),
        LogicalType::Integer { bit_width, .. } => format!("UINT_{bit_width}"),
        LogicalType::Map if found == ConvertedType::MapKeyValue => return None,
        // Nothing is known of it.
        LogicalType::Unknown { .. } => return None,
        other => other.to_string(),
    };
    (name != found.to_string()).then(|| (format!("the converted type of {logical}"), found))
}

/// An element of the schema and those around it, without the root.
pub(crate) fn on_path(element: Element<'_>) -> impl Iterator<Item = Element<'_>> {
    successors(Some(element), |element| element.parent()).filter(|element| element.index() > 0)
}

/// Whether an element on the path to a column lacks a repetition of the format, so that nothing is known of its levels.
pub(crate) fn has_unknown_levels(leaf: Element<'_>) -> bool {
    on_path(leaf).any(|element| element.repetition().is_none_or(|of| !of.is_known()))
}

/// Faults of a decimal's digits: the field, and the expected and found digits.
fn impossible_digits(element: Element<'_>) -> Vec<(&'static str, String)> {
    let is_decimal = element.converted_type() == Some(ConvertedType::Decimal);
    // The format's default for a missing scale is 0.
    let of_element =
        is_decimal.then(|| (element.precision(), element.scale().unwrap_or(0), "precision", "scale"));
    let of_logical = match element.logical_type() {
        Some(LogicalType::Decimal { scale, precision }) => {
            Some((Some(*precision), *scale, "logicalType.DECIMAL.precision", "logicalType.DECIMAL.scale"))
        }
        _ => None,
    };
    let most = most_digits(element);
    let mut wrong: Vec<(&'static str, String)> = differing_digits(element).into_iter().collect();
    for (precision, scale, precision_field, scale_field) in [of_element, of_logical].into_iter().flatten() {
        if precision.is_none_or(|digits| digits < 1 || i64::from(digits) > most) {
            let found = precision.map_or("none".to_owned(), |found| found.to_string());
            wrong.push((precision_field, format!("a precision of 1 to {most}, found {found}")));
        }
        if scale < 0 || precision.is_some_and(|precision| scale > precision) {
            let precision = precision.unwrap_or_default();
            wrong.push((scale_field, format!("a scale of 0 to {precision}, found {scale}")));
        }
    }
    wrong
}

/// A scale beside the converted type that differs from the one of the logical type. The format's default is 0.
fn differing_digits(element: Element<'_>) -> Option<(&'static str, String)> {
    let is_decimal = element.converted_type() == Some(ConvertedType::Decimal);
    let Some(LogicalType::Decimal { scale, .. }) = element.logical_type() else { return None };
    if !is_decimal || element.scale().unwrap_or(0) == *scale {
        return None;
    }
    let found = element.scale().map_or("none".to_owned(), |found| found.to_string());
    Some(("scale", format!("the scale {scale} of the logical type, found {found}")))
}

/// The most decimal digits that values of the element's physical type hold.
fn most_digits(element: Element<'_>) -> i64 {
    match element.physical_type() {
        Some(PhysicalType::Int32) => 9,
        Some(PhysicalType::Int64) => 18,
        Some(PhysicalType::FixedLenByteArray) => {
            let bits = 8 * i64::from(element.type_length().unwrap_or_default()) - 1;
            (bits.max(0) as f64 * std::f64::consts::LOG10_2) as i64
        }
        _ => i32::MAX.into(),
    }
}
