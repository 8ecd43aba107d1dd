//! Text that comes as bytes, because some of it may not be UTF-8.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};

use super::fault::{Fault, shown};

/// Returns bytes as text.
pub(crate) fn checked_text(bytes: &BinaryViewArray) -> Result<ArrayRef, Fault> {
    let rows = (0..bytes.len()).map(|row| bytes.is_valid(row).then(|| bytes.value(row)));
    let texts = rows.enumerate().map(|(row, value)| value.map(|value| utf8(value, row)).transpose());
    Ok(Arc::new(texts.collect::<Result<StringViewArray, Fault>>()?))
}

/// Returns the value of a row as text.
///
/// # Errors
/// It is not UTF-8.
pub fn utf8(value: &[u8], row: usize) -> Result<&str, Fault> {
    std::str::from_utf8(value).map_err(|error| {
        let at = error.valid_up_to();
        let byte = value.get(at).copied().unwrap_or_default();
        let text = shown(&String::from_utf8_lossy(value));
        Fault::new(row, format!("the text {text} is not UTF-8: byte 0x{byte:02x} at {at}"))
    })
}
