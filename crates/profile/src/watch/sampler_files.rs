//! The temporary file of the CPU sampler. The crate `pprof` makes one when it is first used and another
//! after each use, reads it by its name, and never removes it: so it is removed when the process ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

static LEFT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static AT_EXIT: Once = Once::new();

/// The temporary files that this process has open now, by the names that the crate `tempfile` gives.
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

/// Has those that are open now and were not `before` removed when the process ends.
pub(crate) fn remove_at_exit(before: &BTreeSet<PathBuf>) {
    let new: Vec<PathBuf> = open_now().difference(before).cloned().collect();
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
    AT_EXIT.call_once(|| {
        // SAFETY: `remove` is a plain function that lives as long as the program and does not unwind:
        // nothing in it panics.
        unsafe { libc::atexit(remove) };
    });
}

extern "C" fn remove() {
    let files = std::mem::take(&mut *LEFT.lock().unwrap_or_else(PoisonError::into_inner));
    for file in files {
        // One that is gone already needs no removing.
        let _ = std::fs::remove_file(file);
    }
}
