//! A misfit and its place.

/// An unexpected value or line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::delimited) struct Misfit {
    /// Its place in the text of the lines.
    pub at: usize,
    /// The names of the keys on the way to it, as in `user.tags[].name`; empty for a line.
    pub path: String,
    pub what: Wrong,
}

/// Why it does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::delimited) enum Wrong {
    /// The line is not a JSON object: the message of the parser.
    Syntax(String),
    /// The value is not of this type, which a sample or a user gave.
    Value { value: String, wanted: String, inferred: bool },
    /// The key has no column.
    UnknownKey,
    /// An object has the key twice.
    TwoKeys,
}

/// Returns the place of a part of a text in it.
pub(super) fn offset_in(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Returns a path with one more key.
pub(super) fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl Misfit {
    /// Returns the message and what to do about it.
    pub(in crate::delimited) fn message(&self) -> (String, String) {
        let path = &self.path;
        match &self.what {
            Wrong::Syntax(what) => (
                format!("the line is not a JSON object: {what}"),
                "correct the line; each line is one object".to_owned(),
            ),
            Wrong::Value { value, wanted, inferred } => {
                let sample =
                    if *inferred { ", or look at all lines for the types (--sample all)" } else { "" };
                (
                    format!("{value} is not of type {wanted}"),
                    format!(
                        "correct the value, or give the column another type (--types '{path}=json'){sample}"
                    ),
                )
            }
            Wrong::UnknownKey => (
                "the sample did not have this key, so there is no column for it".to_owned(),
                format!("look at all lines for the types (--sample all), or name it: --types '{path}=json'"),
            ),
            Wrong::TwoKeys => ("the object has this key twice".to_owned(), "correct the line".to_owned()),
        }
    }
}
