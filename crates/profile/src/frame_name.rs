//! Names of functions as a person would write them, from what the compiler calls them.

/// A function's name as a person would write it: without the hash that the compiler adds, without
/// the crate's disambiguator, with `{closure}` once for closures in closures and without the types
/// that a generic function was made for.
pub(crate) fn readable(name: &str) -> String {
    let mut name = name.trim().to_owned();
    // Legacy mangling ends in ::h and 16 hexadecimal digits.
    if let Some((before, hash)) = name.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        name = before.to_owned();
    }
    name = name.replace("{{closure}}", "{closure}");
    // v0 mangling numbers closures and tells crates apart: {closure#0}, core[1a2b3c]::...
    let mut plain = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find(['#', '[']) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let inner = from.get(1..).unwrap_or_default();
        let digits = inner.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        let taken = inner.len() - digits.len();
        match from.as_bytes().first() {
            Some(b'#') if taken > 0 && plain.ends_with("{closure") => rest = digits,
            Some(b'[') if taken >= 6 && digits.starts_with("]::") => {
                rest = digits.get(1..).unwrap_or_default();
            }
            _ => {
                plain.push_str(from.get(..1).unwrap_or_default());
                rest = inner;
            }
        }
    }
    plain.push_str(rest);
    while plain.contains("{closure}::{closure}") {
        plain = plain.replace("{closure}::{closure}", "{closure}");
    }
    without_types(plain)
}

/// `fold<Range<u64>, u64>` is `fold`; the brackets of `<A as B>::next` are kept.
fn without_types(name: String) -> String {
    if !name.ends_with('>') || name.starts_with('<') || name.contains("operator") {
        return name;
    }
    let mut depth = 0;
    // The > of -> closes nothing.
    let arrow = |at: usize| name.get(..at).is_some_and(|before| before.ends_with('-'));
    for (at, char) in name.char_indices().rev() {
        match char {
            '>' if !arrow(at) => depth += 1,
            '<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return name.get(..at).map_or(name.clone(), |before| before.trim_end_matches("::").to_owned());
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_what_only_the_compiler_needs() {
        assert_eq!(readable("core::iter::next::h0123456789abcdef"), "core::iter::next");
        assert_eq!(readable("core[1a2b3c4d]::iter::{closure#0}::{closure#1}"), "core::iter::{closure}");
        assert_eq!(readable("<[u8] as a::B>::c"), "<[u8] as a::B>::c");
        assert_eq!(readable("a::hot::high"), "a::hot::high");
        assert_eq!(readable("fold<Range<u64>, fn(u8) -> u64>"), "fold");
        assert_eq!(readable("a::collect::<Vec<u8>>"), "a::collect");
        assert_eq!(readable("<A as Into<B>>::into"), "<A as Into<B>>::into");
    }
}
