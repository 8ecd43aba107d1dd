//! Makes foreign text safe for a terminal: a server's message, a column's name, an argument.
//!
//! Errors, results and progress pass through here only when they are printed. Text for a server or a file keeps its
//! characters.

use sawmill_inspect::escaped;

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
    fn what_controls_a_terminal_is_escaped_and_no_line_of_a_message_begins_as_ours_do() {
        let hostile = "a\u{1b}[2J\u{7}\u{202e}\r\u{9b}b\nerror: c";
        assert_eq!(lines(hostile), "a\\u{1b}[2J\\u{7}\\u{202e}\\r\\u{9b}b\nerror: c");
        assert_eq!(message(hostile), "a\\u{1b}[2J\\u{7}\\u{202e}\\r\\u{9b}b\n    error: c");
        assert_eq!(message("the log:\nx\n"), "the log:\n    x");
    }
}
