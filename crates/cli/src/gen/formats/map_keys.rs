//! The keys of maps as text, which JSON needs.

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_json::writer::make_encoder;
use arrow_schema::{ArrowError, DataType, FieldRef};

use super::ndjson::WHOLE;
use super::text_form::text_of_bytes;

/// The keys as the text that shows them: structs, lists and maps as JSON, with all members, so that keys that differ
/// have different texts.
pub(super) fn key_texts(field: &FieldRef, keys: &ArrayRef) -> Result<StringArray, ArrowError> {
    if let Some(text) = text_of_bytes(field) {
        return Ok(keys.as_fixed_size_binary().iter().map(|bytes| bytes.map(text)).collect());
    }
    if *keys.data_type() == DataType::Utf8 {
        return Ok(keys.as_string().clone());
    }
    let mut texts = StringBuilder::with_capacity(keys.len(), keys.len() * 8);
    if keys.data_type().is_nested() {
        let mut encoder = make_encoder(field, keys.as_ref(), &WHOLE)?;
        let mut json = Vec::new();
        for key in 0..keys.len() {
            json.clear();
            match encoder.is_null(key) {
                true => json.extend_from_slice(b"null"),
                false => encoder.encode(key, &mut json),
            }
            texts.append_value(String::from_utf8_lossy(&json));
        }
        return Ok(texts.finish());
    }
    let formatter = ArrayFormatter::try_new(keys.as_ref(), &FormatOptions::new().with_display_error(false))?;
    for key in 0..keys.len() {
        formatter.value(key).write(&mut texts)?;
        texts.append_value("");
    }
    Ok(texts.finish())
}
