//! Splits a command line into words like a shell, but without a shell: quotes and backslashes, no variables,
//! no patterns, no pipes. A word that begins with # begins a comment.

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
    let what = match shlex::split(text) {
        Some(words) if !words.is_empty() => return Ok(words),
        Some(_) => "the command is empty",
        None => "a quote of the command is not closed, or the command ends in a backslash",
    };
    Err(Error::failed(what, text, "write sh -c '...' for anything that needs a shell"))
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
