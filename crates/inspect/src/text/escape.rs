//! Text from a file's content on a terminal: escaped and clipped.
//!
//! Anyone may have written the names, values and paths in a file. Whatever reaches the screen passes through
//! [`escaped`] or, in JSON, through [`JsonSafe`](crate::JsonSafe).

use std::borrow::Cow;

/// Whether a terminal would act on a character or show later ones elsewhere: control characters
/// (C0, DEL, C1), line and paragraph separators, bidirectional controls, byte-order marks.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Escapes the characters that would control a terminal: `\n`, `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// The text in quotes, escaped, so that empty text and spaces at its ends can be seen.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_unsafe(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The first `limit` characters of a text, and whether there are more.
pub(crate) fn clipped(text: &str, limit: usize) -> (&str, bool) {
    text.char_indices().nth(limit).map_or((text, false), |(at, _)| (&text[..at], true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        assert_eq!(escaped("name"), "name");
        assert_eq!(escaped("é名\u{1f600}"), "é名\u{1f600}");
        assert_eq!(escaped("a\u{1b}[2J\n\u{9b}x\u{202e}"), "a\\u{1b}[2J\\n\\u{9b}x\\u{202e}");
        assert_eq!(quoted(" a\"b\\\t"), "\" a\\\"b\\\\\\t\"");
    }
}
