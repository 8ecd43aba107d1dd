//! Patterns over column paths.

/// Whether `text` matches `pattern`, in which `?` stands for one character that is no dot, `*` for any
/// number of such, and `**` for any number of any.
///
/// Runs in the product of the two lengths at most: one row of a table, no backtracking.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // reach[i]: the pattern so far matches the first i characters of the text.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    let mut pattern = pattern.chars().peekable();
    while let Some(symbol) = pattern.next() {
        match symbol {
            '*' => {
                let dots = pattern.next_if_eq(&'*').is_some();
                for i in 0..text.len() {
                    reach[i + 1] |= reach[i] && (dots || text[i] != '.');
                }
            }
            symbol => {
                for i in (0..text.len()).rev() {
                    let alike = if symbol == '?' { text[i] != '.' } else { text[i] == symbol };
                    reach[i + 1] = reach[i] && alike;
                }
                reach[0] = false;
            }
        }
    }
    reach[text.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stays_within_a_name_and_two_stars_do_not() {
        assert!(matches("a*", "abc"));
        assert!(!matches("a*", "a.b"));
        assert!(matches("a**", "a.b.c"));
        assert!(matches("*.list.*", "tags.list.element"));
        assert!(matches("**.id", "a.b.id"));
        assert!(matches("c?", "c1") && !matches("c?", "c") && !matches("c?", "c."));
        assert!(matches("", "") && matches("**", "") && !matches("", "a"));
    }
}
