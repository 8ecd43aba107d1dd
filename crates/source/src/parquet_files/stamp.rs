//! The file system's metadata of a file that shows whether it may have been written to.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file that was written to less than this ago could be written to again without a change of its time:
/// clocks of file systems may tick only every two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// Length, times, inode and device of a file. A file that is rewritten in place or replaced gets another
/// stamp, even if its length is the same and its modification time was set back: programs cannot set the time
/// of the last change (`ctime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
}

impl Stamp {
    /// Returns the stamp of a file with this metadata.
    #[cfg(unix)]
    pub(crate) fn new(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }

    /// Returns the stamp of a file with this metadata.
    #[cfg(not(unix))]
    pub(crate) fn new(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = since.map_or((0, 0), |at| (at.as_secs() as i64, i64::from(at.subsec_nanos())));
        Self { length: metadata.len(), modified, changed: modified, inode: 0, device: 0 }
    }

    /// Returns the stamp as recorded; `None` if the file was written to so shortly before `now` that another
    /// write might not change it.
    pub(crate) fn recorded(&self, now: SystemTime) -> Option<String> {
        let (seconds, nanoseconds) = self.changed.max(self.modified);
        let age = now
            .duration_since(UNIX_EPOCH)
            .ok()?
            .checked_sub(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?))?;
        let Self { length, modified, changed, inode, device } = self;
        (age > SETTLED).then(|| {
            format!(
                "{length}:{}.{:09}:{}.{:09}:{device:x}.{inode:x}",
                modified.0, modified.1, changed.0, changed.1
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_rewrite_in_place_changes_the_stamp_despite_equal_length_and_modification_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let before = path.metadata().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&path, "two").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
        let after = path.metadata().unwrap();
        assert_eq!((after.len(), after.modified().unwrap()), (before.len(), before.modified().unwrap()));
        assert_ne!(Stamp::new(&after), Stamp::new(&before));
    }

    #[test]
    fn a_file_that_was_just_written_has_no_reliable_stamp() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let stamp = Stamp::new(&path.metadata().unwrap());
        let now = SystemTime::now();
        assert_eq!(stamp.recorded(now), None);
        let later = stamp.recorded(now + Duration::from_secs(3));
        assert!(later.is_some() && later == stamp.recorded(now + Duration::from_secs(60)));
        // The clock of a file server may be ahead.
        assert_eq!(stamp.recorded(now - Duration::from_secs(60)), None);
    }
}
