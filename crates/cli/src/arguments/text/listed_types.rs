//! The list that `--types` gives: names of columns and their types.

use std::path::Path;

use crate::error::{Error, Result};

/// Names and types of `a=int32,b=decimal(10,2)`, and of files of such lines.
pub(super) fn listed(given: &[String]) -> Result<Vec<(String, String)>> {
    let mut lists = Vec::new();
    for list in given {
        match list.strip_prefix('@') {
            None => lists.push(list.clone()),
            Some(file) => lists.extend(lines(Path::new(file))?),
        }
    }
    let mut types = Vec::new();
    for part in lists.iter().flat_map(|list| parts(list)).map(str::trim).filter(|part| !part.is_empty()) {
        if part == super::TABLE {
            let what = "only load and verify know the types of a table's columns";
            return Err(Error::usage(what, "--types table", "write NAME=TYPE"));
        }
        // A name may contain an equals sign, a type does not.
        let Some((name, of)) = part.rsplit_once('=') else {
            return Err(Error::usage(
                "a type without a column",
                format!("--types {part}"),
                "write NAME=TYPE",
            ));
        };
        types.push((unquoted(name.trim()).to_owned(), unquoted(of.trim()).to_owned()));
    }
    Ok(types)
}

/// The lines of a file of types. Those that are empty or start with # are left out.
fn lines(file: &Path) -> Result<Vec<String>> {
    let text = sawmill_store::read_text(file).map_err(|error| {
        let what = format!("the file of types cannot be read: {error}");
        Error::usage(what, file.display().to_string(), "give --types @FILE with NAME=TYPE on each line")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// A name or type without the quotes around it, as TOML has them.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

/// The parts of a list between the commas outside of parentheses and of quotes around names.
fn parts(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0_u32, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'"' if quoted || list[start..at].trim().is_empty() => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}
