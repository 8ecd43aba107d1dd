//! Parameters taken out of a server's address, be it a URL or libpq's keywords
//! (<https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING>).

use std::collections::BTreeMap;

/// The address without the parameters called `names`, and those. What cannot be read stays where it is,
/// for whoever parses the rest to refuse.
pub(crate) fn take(address: &str, names: &[&str]) -> (String, BTreeMap<String, String>) {
    let url = address.starts_with("postgres://") || address.starts_with("postgresql://");
    if url { of_url(address, names) } else { of_keywords(address, names) }
}

fn of_url(address: &str, names: &[&str]) -> (String, BTreeMap<String, String>) {
    let mut taken = BTreeMap::new();
    let Some((before, query)) = address.split_once('?') else { return (address.to_owned(), taken) };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((name, value)) if names.contains(&name) => {
                taken.insert(name.to_owned(), percent_decoded(value));
            }
            _ => kept.push(pair),
        }
    }
    let separator = if kept.is_empty() { "" } else { "?" };
    (format!("{before}{separator}{}", kept.join("&")), taken)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = match rest {
            [b'%', digits @ ..] => digits
                .get(..2)
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &rest[3..] } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `key = value` pairs with spaces between; a value in single quotes may have spaces, and a backslash
/// takes the next character as it is.
fn of_keywords(address: &str, names: &[&str]) -> (String, BTreeMap<String, String>) {
    let (mut taken, mut kept) = (BTreeMap::new(), String::new());
    let mut rest = address;
    while let Some((pair, name, value, behind)) = next_pair(rest) {
        if names.contains(&name) {
            taken.insert(name.to_owned(), value);
        } else {
            kept.push_str(pair);
            kept.push(' ');
        }
        rest = behind;
    }
    kept.push_str(rest.trim_start());
    (kept.trim().to_owned(), taken)
}

/// The first pair as it stands there, its name and value, and what stands behind it.
fn next_pair(text: &str) -> Option<(&str, &str, String, &str)> {
    let text = text.trim_start();
    let (name, value) = text.split_once('=')?;
    let value = value.trim_start();
    let quoted = value.starts_with('\'');
    let mut decoded = String::new();
    let mut characters = value.char_indices().skip(usize::from(quoted));
    let mut end = value.len();
    let mut closed = !quoted;
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => decoded.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted => {
                (end, closed) = (at + 1, true);
                break;
            }
            space if space.is_whitespace() && !quoted => {
                end = at;
                break;
            }
            other => decoded.push(other),
        }
    }
    let length = text.len() - value.len() + end;
    closed.then(|| (&text[..length], name.trim_end(), decoded, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(address: &str) -> (String, Vec<(String, String)>) {
        let (rest, taken) = take(address, &["sslmode", "sslkey"]);
        (rest, taken.into_iter().collect())
    }

    #[test]
    fn parameters_of_a_url_are_decoded_and_others_stay() {
        let (rest, found) =
            taken("postgres://u:p%40@h:1/d?sslkey=%2Fa%20b&connect_timeout=3&sslmode=require");
        assert_eq!(rest, "postgres://u:p%40@h:1/d?connect_timeout=3");
        assert_eq!(found, [("sslkey".into(), "/a b".into()), ("sslmode".into(), "require".into())]);
        assert_eq!(taken("postgresql://h/d?sslmode=x").0, "postgresql://h/d");
        assert_eq!(
            taken("postgres://h/d?sslkey=100%"),
            ("postgres://h/d".into(), vec![("sslkey".into(), "100%".into())])
        );
    }

    #[test]
    fn keywords_may_be_quoted_and_have_spaces_around_the_sign() {
        let (rest, found) = taken(r"host=h sslkey = '/a b/it\'s' password='x sslmode=no' sslmode=require");
        assert_eq!(rest, "host=h password='x sslmode=no'");
        assert_eq!(found, [("sslkey".into(), "/a b/it's".into()), ("sslmode".into(), "require".into())]);
        assert_eq!(taken("").0, "");
        assert_eq!(taken("host=h sslkey='open").0, "host=h sslkey='open");
        assert_eq!(taken("words without a sign").0, "words without a sign");
    }
}
