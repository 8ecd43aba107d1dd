//! What is known of every row that a run tried to write: four bits a row, in pages of which a bounded number is
//! in memory; the others are in a temporary file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Rows of a page.
const PAGE_ROWS: u64 = 1 << 17;
const PAGE_BYTES: usize = (PAGE_ROWS / 2) as usize;
/// Pages in memory: 16 MiB, 32 million rows.
const PAGES: usize = 256;
/// How often a page is loaded for one look at it.
const PATIENCE: u32 = 1000;

/// What is known of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RowState {
    /// The run has not tried to write it.
    #[default]
    Untouched = 0,
    /// Its insertion was acknowledged.
    Acknowledged = 1,
    /// Its insertion was refused.
    Failed = 2,
    /// Its insertion may have happened.
    Unknown = 3,
    /// Its deletion was acknowledged.
    Deleted = 4,
    /// Its deletion may have happened; before, it was acknowledged with these values.
    MaybeDeleted = 5,
    /// The same of an updated row.
    MaybeDeletedUpdated = 6,
    /// Its update was acknowledged.
    Updated = 7,
    /// Its update may have happened.
    MaybeUpdated = 8,
    /// An operation is changing it.
    Changing = 9,
    /// Statements of the user's own used its number: nothing is known of it.
    Outside = 10,
}

impl RowState {
    fn of(bits: u8) -> Self {
        const ALL: [RowState; 11] = [
            RowState::Untouched,
            RowState::Acknowledged,
            RowState::Failed,
            RowState::Unknown,
            RowState::Deleted,
            RowState::MaybeDeleted,
            RowState::MaybeDeletedUpdated,
            RowState::Updated,
            RowState::MaybeUpdated,
            RowState::Changing,
            RowState::Outside,
        ];
        ALL.get(usize::from(bits)).copied().unwrap_or_default()
    }
}

/// The states of a table's rows. Connections read and change those in memory at the same time; only a page that is
/// not there makes them wait.
#[derive(Debug, Default)]
pub(crate) struct RowStates {
    /// One more than the greatest number of a row that has a state.
    high: AtomicU64,
    pages: RwLock<Pages>,
    /// The file could not be written: the proof is then not given.
    broken: AtomicBool,
}

#[derive(Debug, Default)]
struct Pages {
    /// By number.
    there: HashMap<u64, Page>,
    /// Pages that are in the file.
    spilled: HashSet<u64>,
    file: Option<File>,
    /// How many pages were loaded.
    loads: u64,
}

#[derive(Debug)]
struct Page {
    /// Two states each.
    bytes: Box<[AtomicU8]>,
    /// How many pages were loaded when it was last used.
    used: AtomicU64,
}

impl Pages {
    /// The page, if it is in memory.
    fn get(&self, number: u64) -> Option<&Page> {
        let page = self.there.get(&number)?;
        if page.used.load(Relaxed) != self.loads {
            page.used.store(self.loads, Relaxed);
        }
        Some(page)
    }

    /// Puts a page into memory.
    fn load(&mut self, number: u64) -> std::io::Result<()> {
        if self.there.contains_key(&number) {
            return Ok(());
        }
        if self.there.len() >= PAGES {
            self.spill()?;
        }
        let mut bytes = vec![0; PAGE_BYTES];
        if self.spilled.contains(&number)
            && let Some(file) = &self.file
        {
            file.read_exact_at(&mut bytes, number * PAGE_BYTES as u64)?;
        }
        self.loads += 1;
        let bytes = bytes.into_iter().map(AtomicU8::new).collect();
        self.there.insert(number, Page { bytes, used: AtomicU64::new(self.loads) });
        Ok(())
    }

    /// Moves the page that was not used for longest to the file.
    fn spill(&mut self) -> std::io::Result<()> {
        let oldest = self.there.iter().min_by_key(|(_, page)| page.used.load(Relaxed));
        let Some((number, page)) = oldest.map(|(number, page)| (*number, page)) else { return Ok(()) };
        let bytes: Vec<u8> = page.bytes.iter().map(|byte| byte.load(Relaxed)).collect();
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            file.write_all_at(&bytes, number * PAGE_BYTES as u64)?;
        }
        self.spilled.insert(number);
        self.there.remove(&number);
        Ok(())
    }
}

impl RowStates {
    fn read(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more than the greatest number with a state.
    pub(crate) fn high(&self) -> u64 {
        self.high.load(Relaxed)
    }

    /// Whether states were lost because the temporary file could not be used.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    /// What is known of a row.
    pub(crate) fn get(&self, number: u64) -> RowState {
        let state = self.at(number, |byte, shift| RowState::of(byte.load(Relaxed) >> shift & 15));
        state.unwrap_or_default()
    }

    /// Sets it.
    pub(crate) fn set(&self, number: u64, state: RowState) {
        self.exchange(number, None, state);
    }

    /// Sets it if it is what it was; whether it was.
    pub(crate) fn claim(&self, number: u64, was: RowState) -> bool {
        self.exchange(number, Some(was), RowState::Changing)
    }

    /// Passes the place of a row's state to `work`: the byte, and by how many bits it is shifted.
    fn at<T>(&self, number: u64, work: impl FnOnce(&AtomicU8, u8) -> T) -> Option<T> {
        let (page, byte, shift) = (number / PAGE_ROWS, number % PAGE_ROWS / 2, number % 2 * 4);
        // Another connection may push it out again before it is read.
        for _ in 0..PATIENCE {
            if let Some(page) = self.read().get(page) {
                return page.bytes.get(byte as usize).map(|byte| work(byte, shift as u8));
            }
            if self.pages.write().unwrap_or_else(PoisonError::into_inner).load(page).is_err() {
                break;
            }
        }
        self.broken.store(true, Relaxed);
        None
    }

    fn exchange(&self, number: u64, was: Option<RowState>, state: RowState) -> bool {
        let exchanged = self.at(number, |byte, shift| {
            let mut now = byte.load(Relaxed);
            loop {
                if was.is_some_and(|was| RowState::of(now >> shift & 15) != was) {
                    return false;
                }
                let next = now & !(15 << shift) | (state as u8) << shift;
                match byte.compare_exchange_weak(now, next, Relaxed, Relaxed) {
                    Ok(_) => return true,
                    Err(other) => now = other,
                }
            }
        });
        let done = exchanged.unwrap_or(false);
        if done {
            self.high.fetch_max(number + 1, Relaxed);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_come_back_from_the_file_they_were_moved_to() {
        let states = RowStates::default();
        let pages = PAGES as u64 * 2;
        for page in 0..pages {
            states.set(page * PAGE_ROWS + page, RowState::Acknowledged);
            states.set(page * PAGE_ROWS + page + 1, RowState::Failed);
        }
        assert!(states.read().there.len() <= PAGES && !states.read().spilled.is_empty());
        for page in 0..pages {
            assert_eq!(states.get(page * PAGE_ROWS + page), RowState::Acknowledged);
            assert_eq!(states.get(page * PAGE_ROWS + page + 1), RowState::Failed);
            assert_eq!(states.get(page * PAGE_ROWS + page + 2), RowState::Untouched);
        }
        assert!(!states.is_broken());
    }

    #[test]
    fn neighbours_that_change_at_the_same_time_do_not_lose_each_others_states() {
        let states = RowStates::default();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let states = &states;
                scope.spawn(move || {
                    (0..20_000).for_each(|i| states.set(i * 2 + thread, RowState::Acknowledged));
                });
            }
        });
        assert!((0..40_000).all(|row| states.get(row) == RowState::Acknowledged));
    }

    #[test]
    fn a_row_is_claimed_once() {
        let states = RowStates::default();
        states.set(7, RowState::Acknowledged);
        assert!(states.claim(7, RowState::Acknowledged));
        assert!(!states.claim(7, RowState::Acknowledged));
        assert_eq!(
            (states.get(7), states.get(6), states.high()),
            (RowState::Changing, RowState::Untouched, 8)
        );
    }
}
