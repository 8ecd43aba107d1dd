//! The temporary files of the CPU sampler. The crate `pprof` creates one on first use and another after every
//! use, reads it by name and never removes it. This module removes them when the process ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

static LEFT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static AT_EXIT: Once = Once::new();

/// The temporary files that this process has open, by the names that the crate `tempfile` generates.
pub(crate) fn open_now() -> BTreeSet<PathBuf> {
    let folder = std::env::temp_dir();
    let folder = folder.canonicalize().unwrap_or(folder);
    let links = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let files = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    let temporary = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.parent() == Some(&folder) && name.starts_with(".tmp") && Path::exists(path)
    };
    files.filter(temporary).collect()
}

/// Registers the files open now but not `before` for removal when the process ends.
pub(crate) fn remove_at_exit(before: &BTreeSet<PathBuf>) {
    let new: Vec<PathBuf> = open_now().difference(before).cloned().collect();
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
    AT_EXIT.call_once(|| {
        // SAFETY: `remove` is a plain function that lives as long as the program and does not unwind: nothing
        // in it panics.
        unsafe { libc::atexit(remove) };
    });
}

extern "C" fn remove() {
    let files = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    for file in files {
        // The file may already be gone.
        let _ = std::fs::remove_file(file);
    }
}
