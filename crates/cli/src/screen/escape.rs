//! Text of others, such as a server's message, a column's name or an argument, as a terminal may show it.
//!
//! Errors, results and progress pass through here when they are printed, and nowhere before: what is sent to a server or
//! written to a file has its own characters.

use sawmill_inspect::escaped;

/// Lines whose breaks are ours. Characters that control a terminal are escaped.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// A message, whose line breaks may be those of others: lines after the first are indented, so that none of them can be
/// taken for a message of its own.
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
