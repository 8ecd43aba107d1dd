//! `--metadata`: the file's pairs of keys and values.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::file::open_file::OpenFile;
use crate::text::escape::{clipped, escaped};
use crate::text::json::Each;

/// Most characters of a value, unless long values are written in full.
const SHOWN: usize = 100;

#[derive(Serialize)]
struct Pair<'a> {
    key: Cow<'a, str>,
    value: Option<Cow<'a, str>>,
}

/// The pairs for programs: a list, because keys may be repeated.
pub(crate) fn json(file: &OpenFile) -> impl Serialize {
    Each(move || file.footer.key_value_metadata().map(|(key, value)| Pair { key, value }))
}

/// One line for each pair.
pub(crate) fn text(file: &OpenFile, out: &mut dyn Write) -> io::Result<()> {
    let limit = file.style.at_most(SHOWN);
    let mut pairs = file.footer.key_value_metadata().peekable();
    if pairs.peek().is_none() {
        writeln!(out, "no keys and values")?;
    }
    for (key, value) in pairs {
        let (key, more) = clipped(&key, limit);
        write!(out, "{}{}", escaped(key), if more { "…" } else { "" })?;
        match value.as_deref().map(|value| (value, clipped(value, limit))) {
            None => writeln!(out, " (no value)")?,
            Some((_, (value, false))) => writeln!(out, " = {}", escaped(value))?,
            Some((value, (start, true))) => {
                writeln!(out, " = {}… ({} bytes)", escaped(start), file.style.count(value.len() as u64))?;
            }
        }
    }
    Ok(())
}
