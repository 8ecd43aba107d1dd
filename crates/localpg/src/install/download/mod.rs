//! Downloads PostgreSQL from Maven Central to a cache if none is installed.
//!
//! Zonky's archive is downloaded and verified, extracted to a staging folder beside its final location,
//! tested, and then renamed: a version in the cache is always complete. A lock allows only one process at a
//! time to download to a cache.

#[cfg(feature = "download")]
mod archive;
#[cfg(feature = "download")]
mod cache;
#[cfg(feature = "download")]
mod maven;

use std::path::PathBuf;

#[cfg(feature = "download")]
pub(crate) use cache::into_cache;

/// A step of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownloadProgress {
    /// Querying the available versions.
    Resolving,
    /// Downloading this version and verifying its checksum.
    Downloading {
        /// The version, for example `18.4.0`.
        version: String,
    },
    /// Extracting the archive.
    Extracting {
        /// The version.
        version: String,
        /// Size of the archive in bytes.
        bytes: u64,
    },
    /// Installed in the cache and tested.
    Done {
        /// The version.
        version: String,
        /// The folder of its programs.
        bin_dir: PathBuf,
    },
}

/// Advice for a machine without PostgreSQL.
const INSTALL: &str = "install PostgreSQL (Debian, Ubuntu: apt-get install postgresql; Fedora, RHEL: dnf \
                       install postgresql-server; macOS: brew install postgresql) or set SAWMILL_PG_BIN to \
                       the folder that holds postgres and initdb";

#[cfg(not(feature = "download"))]
pub(crate) fn into_cache(
    _caches: &[PathBuf],
    _progress: &mut dyn FnMut(DownloadProgress),
) -> Result<crate::Binaries, crate::Error> {
    Err(crate::Error::new("PostgreSQL was not found, and this build cannot download it").advise(INSTALL))
}
