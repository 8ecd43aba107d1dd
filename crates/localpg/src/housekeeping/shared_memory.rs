//! The shared memory segment of a killed server.
//!
//! A postmaster holds one small System V segment, which keeps other postmasters off its data, and records the
//! segment's id in the seventh line of `postmaster.pid` (`LOCK_FILE_LINE_SHMEM_KEY` in miscadmin.h). A killed
//! postmaster leaves both behind; the segment would stay until the machine restarts.

use std::fs;
use std::path::Path;
use std::ptr;

/// Removes the segment that a data directory's lock file names, if it belongs to this user and no process is
/// attached to it. Otherwise, or if that cannot be determined, leaves it alone.
pub(crate) fn remove_left_behind(data: &Path, owner: u32) {
    let Ok(lock_file) = fs::read_to_string(data.join("postmaster.pid")) else { return };
    if let Some(id) = segment_id(&lock_file) {
        remove_unattached(id, owner);
    }
}

/// The id in a line `KEY ID`.
fn segment_id(lock_file: &str) -> Option<i32> {
    lock_file.lines().nth(6)?.split_whitespace().nth(1)?.parse().ok()
}

fn remove_unattached(id: i32, owner: u32) {
    // SAFETY: shmid_ds consists of integers, times and (on macOS) a pointer: all-zero bytes are valid.
    let mut segment: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: IPC_STAT writes one shmid_ds to the pointer.
    if unsafe { libc::shmctl(id, libc::IPC_STAT, &mut segment) } != 0 {
        return;
    }
    if segment.shm_perm.uid == owner && segment.shm_nattch == 0 {
        // SAFETY: IPC_RMID reads and writes no memory of ours, and no process is attached to the segment. If
        // it fails, 56 bytes stay.
        unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::housekeeping::account::effective_uid;

    /// Creates a segment and returns its id.
    fn segment() -> i32 {
        // SAFETY: shmget touches no memory of ours.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, libc::IPC_CREAT | 0o600) };
        assert!(id >= 0);
        id
    }

    fn exists(id: i32) -> bool {
        // SAFETY: as in `remove_unattached`.
        let mut state: libc::shmid_ds = unsafe { std::mem::zeroed() };
        // SAFETY: as in `remove_unattached`.
        unsafe { libc::shmctl(id, libc::IPC_STAT, &mut state) == 0 }
    }

    #[test]
    fn the_segment_in_a_lock_file_is_removed_if_the_user_owns_it() {
        let data = tempfile::tempdir().unwrap();
        let id = segment();
        let lock_file = format!("1\n/d\n1700000000\n5432\n/s\n127.0.0.1\n   9962788 {id}\nready   \n");
        fs::write(data.path().join("postmaster.pid"), lock_file).unwrap();
        remove_left_behind(data.path(), effective_uid() + 1);
        assert!(exists(id));
        remove_left_behind(data.path(), effective_uid());
        assert!(!exists(id));
    }

    #[test]
    fn a_lock_file_without_a_segment_is_ignored() {
        assert_eq!(segment_id("1\n/d\n1700000000\n5432\n/s\n127.0.0.1\n"), None);
        remove_left_behind(Path::new("/no/such/place"), effective_uid());
    }
}
