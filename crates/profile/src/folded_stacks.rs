//! CPU samples as folded stacks: one line for each stack, `thread;outer;inner count`, the form that
//! flame graph tools read (Gregg, *The Flame Graph*, ACM Queue 14(2), 2016).

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};

/// Stacks and how often each was seen. The first frame is the thread's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldedStacks {
    stacks: BTreeMap<Vec<String>, u64>,
}

impl FoldedStacks {
    /// Adds samples of a stack, given from its outermost frame.
    pub fn add(&mut self, frames: impl IntoIterator<Item = impl Into<String>>, samples: u64) {
        let frames: Vec<String> = frames.into_iter().map(|frame| clean(&frame.into())).collect();
        if !frames.is_empty() && samples > 0 {
            *self.stacks.entry(frames).or_default() += samples;
        }
    }

    /// The stacks in the order of their frames' names, with their samples.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], u64)> {
        self.stacks.iter().map(|(frames, samples)| (frames.as_slice(), *samples))
    }

    /// All samples.
    pub fn samples(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Reads folded stacks.
    ///
    /// ```
    /// let stacks = sawmill_profile::FoldedStacks::parse("main;work 3\nmain;wait 1\n").unwrap();
    /// assert_eq!(stacks.samples(), 4);
    /// ```
    ///
    /// # Errors
    /// A line does not end in a blank and a number.
    pub fn parse(text: &str) -> Result<Self> {
        let mut stacks = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (frames, samples) = line
                .rsplit_once(' ')
                .and_then(|(frames, samples)| Some((frames, samples.parse().ok()?)))
                .ok_or_else(|| {
                    Error::new(
                        "this is no folded stack",
                        format!("line {}", number + 1),
                        "write frames with ; between them, a blank and a number of samples",
                    )
                })?;
            stacks.add(frames.split(';'), samples);
        }
        Ok(stacks)
    }
}

impl fmt::Display for FoldedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (frames, samples) in self.iter() {
            writeln!(f, "{} {samples}", frames.join(";"))?;
        }
        Ok(())
    }
}

/// A frame's name without what the form needs for itself.
fn clean(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}

/// A function's name as a person would write it: without the hash that the compiler adds, without
/// the crate's disambiguator, with `{closure}` once for closures in closures and without the types
/// that a generic function was made for.
#[cfg(any(test, all(unix, feature = "flamegraph")))]
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
#[cfg(any(test, all(unix, feature = "flamegraph")))]
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
    fn stacks_survive_their_way_through_text() {
        let mut stacks = FoldedStacks::default();
        stacks.add(["writer 1", "a;b", "c d"], 2);
        stacks.add(["writer 1", "a;b", "c d"], 1);
        stacks.add(Vec::<String>::new(), 9);
        assert_eq!(stacks.to_string(), "writer 1;a,b;c d 3\n");
        assert_eq!(FoldedStacks::parse(&stacks.to_string()).unwrap(), stacks);
        assert_eq!(FoldedStacks::parse("no number").unwrap_err().place(), "line 1");
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
