//! The commit of the measured code.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// A commit of a git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its full hash.
    pub hash: String,
    /// The first line of its message.
    #[serde(default)]
    pub title: String,
    /// Whether tracked files have changed since.
    pub changed: bool,
}

impl Commit {
    /// The commit checked out in a folder; `None` without git or a repository.
    pub fn read(folder: &Path) -> Option<Self> {
        let git = |arguments: &[&str]| {
            let output = std::process::Command::new("git").arg("-C").arg(folder).args(arguments).output();
            let output = output.ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        Some(Self {
            hash: git(&["rev-parse", "HEAD"])?,
            title: git(&["log", "-1", "--format=%s"]).unwrap_or_default(),
            changed: !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_outside_any_repository_has_no_commit() {
        assert_eq!(Commit::read(Path::new("/")), None);
        assert_eq!(Commit::read(Path::new("/no/such/folder")), None);
    }
}
