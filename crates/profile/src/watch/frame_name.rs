//! Makes the compiler's names of functions readable.

use std::path::Path;

/// A function's name as a person would write it: without the compiler's hash, the crate's disambiguator and
/// the types of a generic function, and with a single `{closure}` for nested closures.
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
    // v0 mangling numbers closures and disambiguates crates: {closure#0}, core[1a2b3c]::...
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

/// Turns `fold<Range<u64>, u64>` into `fold`; keeps the brackets of `<A as B>::next`.
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

/// A function's name, prefixed with the crate and module of its source file if the name has no path: line
/// tables name functions without paths, and many crates have a `write`.
///
/// `write` in `/home/me/.cargo/registry/src/index/parquet-59.3.2/src/arrow/arrow_writer/mod.rs` is
/// `parquet::arrow::arrow_writer::write`.
pub(crate) fn located(name: String, file: Option<&Path>) -> String {
    let file = file.and_then(Path::to_str).unwrap_or_default().replace('\\', "/");
    let split = file.rsplit_once("/src/").filter(|_| !name.contains("::") && file.ends_with(".rs"));
    let Some((before, module)) = split else { return name };
    let package = before.rsplit('/').next().unwrap_or_default();
    // A folder of the registry ends in the version.
    let package = match package.rsplit_once('-') {
        Some((package, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => package,
        _ => package,
    };
    let module = module.trim_end_matches(".rs");
    let parts = module.split('/').filter(|part| !["lib", "main", "mod", ""].contains(part));
    let path: Vec<&str> = std::iter::once(package).chain(parts).collect();
    format!("{}::{name}", path.join("::"))
}

/// Whether a frame starts a program or a thread.
#[cfg(all(target_os = "linux", feature = "flamegraph"))]
pub(crate) fn is_start(name: &str) -> bool {
    ["__rust_begin_short_backtrace", "lang_start", "__libc_start", "clone3", "start_thread", "thread_start"]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_gets_the_module_of_its_file() {
        let at = |name: &str, file: &str| located(name.to_owned(), Some(Path::new(file)));
        assert_eq!(at("work", "/w/crates/generator/src/write.rs"), "generator::write::work");
        let registry = "/r/registry/src/index.crates.io-1/parquet-59.3.2/src/arrow/mod.rs";
        assert_eq!(at("write", registry), "parquet::arrow::write");
        assert_eq!(
            at("fold<u8>", "/rustc/ab12/library/core/src/iter/range.rs"),
            "core::iter::range::fold<u8>"
        );
        assert_eq!(at("a::b", "/w/src/lib.rs"), "a::b");
        assert_eq!(at("main", "/w/tool/src/main.rs"), "tool::main");
        assert_eq!(at("memcpy", "/build/glibc/string/memcpy.c"), "memcpy");
        assert_eq!(located("x".into(), None), "x");
    }

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
