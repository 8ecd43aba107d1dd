//! Splits a command line into words like a shell, but without a shell: quotes and backslashes, no variables,
//! no patterns, no pipes.

use crate::error::{Error, Result};

/// Splits a command line into its words.
///
/// ```
/// let words = sawmill_profile::split_command(r#"psql -c "copy t from stdin" 'a b'"#).unwrap();
/// assert_eq!(words, ["psql", "-c", "copy t from stdin", "a b"]);
/// ```
///
/// # Errors
/// A quote is not closed, the text ends in a backslash, or the text has no words.
pub fn split_command(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    let unfinished = |what: &str| Error::new(what, text, "write sh -c '...' for anything that needs a shell");
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(char) => word.push(char),
                        None => return Err(unfinished("a single quote is not closed")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err(unfinished("a double quote is not closed")),
                        },
                        Some(char) => word.push(char),
                        None => return Err(unfinished("a double quote is not closed")),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err(unfinished("the command ends in a backslash")),
            },
            char => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(unfinished("the command is empty")) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_join_and_keep_what_is_in_them() {
        assert_eq!(split_command(r#"a'b c'd "" \ e"#).unwrap(), ["ab cd", "", " e"]);
        assert_eq!(split_command(r#""a\"b\n""#).unwrap(), [r#"a"b\n"#]);
    }

    #[test]
    fn unclosed_quotes_are_errors() {
        for text in ["a 'b", "a \"b", "a\\", "  ", ""] {
            assert!(split_command(text).is_err(), "{text:?}");
        }
    }
}
