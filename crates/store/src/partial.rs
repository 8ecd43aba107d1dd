//! The names of files that are not whole: `NAME.RUN.partial`, where RUN belongs to one process and one
//! file alone, so that two runs never write into the same file.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The suffix after the name and the run.
const SUFFIX: &str = ".partial";

/// A name for the file at `path` while it is not whole. Each call gives another.
pub fn partial_name(path: &Path) -> PathBuf {
    let mut partial = path.to_owned().into_os_string();
    partial.push(format!(".{}{SUFFIX}", unique()));
    PathBuf::from(partial)
}

/// A text that every call returns only once, on all machines.
pub(crate) fn unique() -> String {
    // The time tells apart processes of the same number on two machines that share the directory.
    static RUN: LazyLock<String> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}-{:x}", std::process::id(), now.as_nanos())
    });
    static CALLS: AtomicU64 = AtomicU64::new(0);
    format!("{}-{:x}", *RUN, CALLS.fetch_add(1, Relaxed))
}

/// The name that a partial file was to get, `None` for the name of any other file.
pub fn name_of_partial(name: &str) -> Option<&str> {
    let name = name.strip_suffix(SUFFIX)?;
    let is_run = |run: &str| {
        let mut parts = run.split('-');
        let hexadecimal =
            |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        parts.by_ref().take(3).filter(|part| hexadecimal(part)).count() == 3 && parts.next().is_none()
    };
    name.rsplit_once('.').filter(|(_, run)| is_run(run)).map(|(whole, _)| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_names_differ_and_say_what_they_were_to_become() {
        let (a, b) = (partial_name(Path::new("x.parquet")), partial_name(Path::new("x.parquet")));
        assert_ne!(a, b);
        for name in [a, b] {
            assert_eq!(name_of_partial(&name.to_string_lossy()), Some("x.parquet"), "{name:?}");
        }
        for other in ["x.parquet", "x.parquet.partial", "x.a-b.partial", "x.1-2-3-4.partial"] {
            assert_eq!(name_of_partial(other), None);
        }
    }
}
