//! Makes foreign text safe for a terminal: a server's message, a column's name, an argument.
//!
//! Errors, results and progress pass through here only when they are printed. Text for a server or a file keeps its
//! characters.

use std::borrow::Cow;

use sawmill_inspect::escaped;

/// The most characters of a part of an error. Names, conditions and values may have a million.
const MAX_CHARACTERS: usize = 4000;

/// A part of an error, or the two ends of a long one.
pub(crate) fn short(text: &str) -> Cow<'_, str> {
    let characters = if text.len() > MAX_CHARACTERS { text.chars().count() } else { 0 };
    let Some(left_out) = characters.checked_sub(MAX_CHARACTERS).filter(|more| *more > 0) else {
        return Cow::Borrowed(text);
    };
    let end = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (start, rest) = (end(MAX_CHARACTERS / 2), end(characters - MAX_CHARACTERS / 2));
    Cow::Owned(format!("{} … {left_out} characters … {}", &text[..start], &text[rest..]))
}

/// Lines whose breaks are ours. Characters that control a terminal are escaped.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// A message that may contain foreign line breaks: lines after the first are indented, so that they cannot pass for
/// another message.
pub(crate) fn message(text: &str) -> String {
    lines(text.trim_end_matches('\n')).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_long_text_are_kept() {
        let exact = "é".repeat(MAX_CHARACTERS);
        assert_eq!(short(&exact), exact);
        let long = format!("begin{}end", "é".repeat(1_000_000));
        let short = short(&long);
        assert!(short.starts_with("beginé") && short.ends_with("éend"));
        assert!(short.contains("é … 996008 characters … é"), "{short}");
    }

    #[test]
    fn what_controls_a_terminal_is_escaped_and_no_line_of_a_message_begins_as_ours_do() {
        let hostile = "a\u{1b}[2J\u{7}\u{202e}\r\u{9b}b\nerror: c";
        assert_eq!(lines(hostile), "a\\u{1b}[2J\\u{7}\\u{202e}\\r\\u{9b}b\nerror: c");
        assert_eq!(message(hostile), "a\\u{1b}[2J\\u{7}\\u{202e}\\r\\u{9b}b\n    error: c");
        assert_eq!(message("the log:\nx\n"), "the log:\n    x");
    }
}
