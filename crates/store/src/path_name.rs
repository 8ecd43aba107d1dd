//! Names of paths as text. A path is any bytes on Unix; a name in a record, a manifest or JSON is text.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The name of a path: different paths have different names.
///
/// A path of valid UTF-8 is its own name. A byte that is not valid is written as `\xE9`; in a part of a path that has
/// has an invalid byte, or reads as if it had one, `\` is written twice.
pub fn path_name(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains("\\x") => text.to_owned(),
        _ => {
            let parts = path.as_os_str().as_bytes().split(|byte| *byte == b'/').map(part_name);
            parts.collect::<Vec<_>>().join("/")
        }
    }
}

fn part_name(part: &[u8]) -> Cow<'_, str> {
    if let Some(text) = std::str::from_utf8(part).ok().filter(|text| !text.contains("\\x")) {
        return Cow::Borrowed(text);
    }
    let mut name = String::with_capacity(part.len() + 8);
    for chunk in part.utf8_chunks() {
        name += &chunk.valid().replace('\\', "\\\\");
        chunk.invalid().iter().for_each(|byte| name += &format!("\\x{byte:02X}"));
    }
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStringExt;
    use std::path::PathBuf;

    use super::*;

    /// The path that has this name.
    fn path_of_name(name: &str) -> PathBuf {
        if !name.contains("\\x") {
            return PathBuf::from(name);
        }
        let parts =
            name.split('/').map(|part| if part.contains("\\x") { bytes_of(part) } else { part.into() });
        PathBuf::from(OsString::from_vec(parts.collect::<Vec<_>>().join(&b'/')))
    }

    /// The bytes of an escaped part of a path.
    fn bytes_of(part: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::with_capacity(part.len()), part.as_bytes());
        while let Some((first, behind)) = rest.split_first() {
            let escaped = behind.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
            let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            let (byte, taken) = match (first, behind.first(), escaped) {
                (b'\\', Some(b'\\'), _) => (b'\\', 2),
                (b'\\', Some(b'x'), Some(byte)) => (byte, 4),
                _ => (*first, 1),
            };
            bytes.push(byte);
            rest = &rest[taken..];
        }
        bytes
    }

    #[test]
    fn different_paths_have_different_names_that_lead_back_to_them() {
        let bytes: [&[u8]; 11] = [
            b"/in/caf\xe9.parquet",
            b"/in/caf\xe8.parquet",
            b"/in/caf\\xE9.parquet",
            b"/in/caf\\\\xE9.parquet",
            b"/in/a\\b/caf\xe9",
            b"/in/a\\b/caf\\",
            b"/in/a\\b\xe9/c",
            b"/in/\xff\\",
            b"\\x",
            b"\\x4",
            "/in/café.parquet".as_bytes(),
        ];
        let paths = bytes.map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)));
        let names = paths.clone().map(|path| path_name(&path));
        for (path, name) in paths.iter().zip(&names) {
            assert_eq!(path_of_name(name), *path, "{name}");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        assert_eq!(names[0], "/in/caf\\xE9.parquet");
        assert_eq!(names[5], "/in/a\\b/caf\\");
        // The name of a folder begins the names of its entries.
        assert!(Path::new(&names[6]).starts_with(path_name(Path::new(OsStr::from_bytes(b"/in/a\\b\xe9")))));
    }
}
