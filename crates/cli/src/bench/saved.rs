//! Results saved under a name in the user's data directory, where they outlive builds and checkouts.

use std::path::{Path, PathBuf};

use sawmill_profile::ResultFile;

use crate::error::{Error, Result};

/// The file for a name: `$XDG_DATA_HOME/sawmill/bench/NAME.json`, by default below `~/.local/share` (XDG Base
/// Directory Specification, which ignores relative paths).
fn file_of(name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let advice = "use letters, digits, - _ . and +";
        return Err(Error::usage("not a valid name for a result", format!("{name:?}"), advice));
    }
    let absolute = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let data = data.ok_or_else(|| {
        Error::failure("no directory for results", "neither XDG_DATA_HOME nor HOME is set", "set one of them")
    })?;
    Ok(data.join("sawmill/bench").join(format!("{name}.json")))
}

/// Checks a name before any time is spent.
pub(crate) fn check(name: &str) -> Result<()> {
    file_of(name).map(drop)
}

/// Saves results, replacing earlier ones of that name.
pub(crate) fn save(name: &str, file: &ResultFile) -> Result<()> {
    let path = file_of(name)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).map_err(|error| {
        let place = directory.display().to_string();
        Error::failure(format!("creating the directory failed: {error}"), place, "set XDG_DATA_HOME")
    })?;
    Ok(file.write(&path)?)
}

/// Reads the results saved under a name.
pub(crate) fn read(name: &str) -> Result<ResultFile> {
    let path = file_of(name)?;
    if !path.exists() {
        let advice = format!("create it with --save {name}");
        return Err(Error::usage(format!("no saved result {name}"), path.display().to_string(), advice));
    }
    let file = ResultFile::read(&path)?;
    Ok(ResultFile { label: name.to_owned(), ..file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_a_path() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(file_of(name).is_err(), "{name}");
        }
        assert!(file_of("main-2026.11").unwrap().ends_with("sawmill/bench/main-2026.11.json"));
    }
}
