//! Matches patterns against column paths.

/// Whether a path of `names` matches `pattern`: `?` matches one character of a name, `*` any number of
/// characters of a name, `**` any number of characters, and `\` escapes the next character. A dot matches
/// both a dot within a name and the boundary between two names.
///
/// Runs in at most the product of the two lengths: one row of a table, no backtracking.
pub(crate) fn matches(pattern: &str, names: &[&str]) -> bool {
    let text = characters(names);
    // reach[i]: the pattern so far matches the first i characters of the text.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    let mut pattern = pattern.chars().peekable();
    while let Some(symbol) = pattern.next() {
        match symbol {
            '*' => {
                let all = pattern.next_if_eq(&'*').is_some();
                for i in 0..text.len() {
                    reach[i + 1] |= reach[i] && (all || text[i].is_some());
                }
            }
            symbol => {
                let any = symbol == '?';
                let symbol = if symbol == '\\' { pattern.next().unwrap_or(symbol) } else { symbol };
                for i in (0..text.len()).rev() {
                    let alike = if any { text[i].is_some() } else { text[i].unwrap_or('.') == symbol };
                    reach[i + 1] = reach[i] && alike;
                }
                reach[0] = false;
            }
        }
    }
    reach[text.len()]
}

/// The characters of the names, with a `None` between two names.
fn characters(names: &[&str]) -> Vec<Option<char>> {
    let mut text = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            text.push(None);
        }
        text.extend(name.chars().map(Some));
    }
    text
}

#[cfg(test)]
mod tests {
    fn matches(pattern: &str, names: &[&str]) -> bool {
        super::matches(pattern, names)
    }

    #[test]
    fn a_star_stays_within_a_name_and_two_stars_do_not() {
        assert!(matches("a*", &["abc"]));
        assert!(!matches("a*", &["a", "b"]));
        assert!(matches("a**", &["a", "b", "c"]));
        assert!(matches("*.list.*", &["tags", "list", "element"]));
        assert!(matches("**.id", &["a", "b", "id"]));
        assert!(matches("c?", &["c1"]) && !matches("c?", &["c"]) && !matches("c?", &["c", ""]));
        assert!(matches("", &[""]) && matches("**", &[""]) && !matches("", &["a"]));
    }

    #[test]
    fn names_may_contain_dots_and_stars() {
        assert!(matches("*", &["a.b"]) && matches("a?b", &["a.b"]) && !matches("a?b", &["a", "b"]));
        assert!(matches("a.b", &["a.b"]) && matches("a.b", &["a", "b"]));
        assert!(matches("*.c", &["a.b", "c"]) && matches("*.c", &["a.b.c"]));
        assert!(matches("\\*", &["*"]) && !matches("\\*", &["a"]));
        assert!(matches("\\\\*", &["\\a"]) && matches("a\\", &["a\\"]));
    }
}
