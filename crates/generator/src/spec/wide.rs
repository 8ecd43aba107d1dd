//! The built-in datasets with many columns, for measuring footer decoding.

use std::fmt::Write;

use crate::error::{Error, Result};

/// Columns of `wide` without a number.
const COLUMNS: u32 = 1000;

/// The most columns.
const MAX_COLUMNS: u32 = 1_000_000;

/// The spec of `wide`, `wide:N` and `wide:N:float|string`; `None` for any other name.
pub(crate) fn spec(name: &str) -> Option<Result<String>> {
    let mut parts = name.split(':');
    if parts.next() != Some("wide") {
        return None;
    }
    let wrong = || {
        let advice =
            format!("write wide:N or wide:N:string, where N is a number of columns from 1 to {MAX_COLUMNS}");
        Some(Err(Error::spec(format!("{name:?} is not a built-in dataset"), "", advice)))
    };
    let columns = match parts.next().map(str::parse) {
        None => COLUMNS,
        Some(Ok(columns)) if (1..=MAX_COLUMNS).contains(&columns) => columns,
        Some(_) => return wrong(),
    };
    let column = match (parts.next(), parts.next()) {
        (None | Some("float"), None) => "type = \"float\"\nvalues = { uniform = { min = 0, max = 1 } }\n",
        (Some("string"), None) => "type = \"string\"\nvalues = { unique = \"value-{id:08}\" }\n",
        _ => return wrong(),
    };
    let mut text = String::from("name = \"wide\"\nrows = 20000\n");
    for i in 0..columns {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n[[fields]]\nname = \"column_{i}\"\n{column}");
    }
    Some(Ok(text))
}
