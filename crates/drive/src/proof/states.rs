//! What is known of every row that a run tried to write: four bits a row, in pages of which a bounded number is
//! in memory; the others are in a temporary file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows of a page.
const PAGE_ROWS: u64 = 1 << 17;
const PAGE_BYTES: usize = (PAGE_ROWS / 2) as usize;
/// Pages in memory: 16 MiB, 32 million rows.
const PAGES: usize = 256;

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

/// The states of a table's rows.
#[derive(Debug, Default)]
pub(crate) struct RowStates {
    /// One more than the greatest number of a row that has a state.
    high: AtomicU64,
    pages: Mutex<Pages>,
    /// The file could not be written: the proof is then not given.
    broken: AtomicBool,
}

#[derive(Debug, Default)]
struct Pages {
    /// Number, bytes, when it was last used.
    there: Vec<(u64, Box<[u8]>, u64)>,
    /// Pages that are in the file.
    spilled: std::collections::HashSet<u64>,
    file: Option<File>,
    clock: u64,
}

impl Pages {
    fn page(&mut self, number: u64) -> std::io::Result<&mut [u8]> {
        self.clock += 1;
        let clock = self.clock;
        let at = match self.there.iter().position(|(kept, ..)| *kept == number) {
            Some(at) => at,
            None => {
                if self.there.len() >= PAGES {
                    self.spill()?;
                }
                let mut bytes = vec![0; PAGE_BYTES].into_boxed_slice();
                if self.spilled.contains(&number)
                    && let Some(file) = &self.file
                {
                    file.read_exact_at(&mut bytes, number * PAGE_BYTES as u64)?;
                }
                self.there.push((number, bytes, clock));
                self.there.len() - 1
            }
        };
        let (_, bytes, used) = &mut self.there[at];
        *used = clock;
        Ok(bytes)
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let oldest = (0..self.there.len()).min_by_key(|at| self.there[*at].2).unwrap_or(0);
        let (number, bytes, _) = self.there.swap_remove(oldest);
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            file.write_all_at(&bytes, number * PAGE_BYTES as u64)?;
        }
        self.spilled.insert(number);
        Ok(())
    }
}

impl RowStates {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut pages = self.lock();
        let Ok(page) = pages.page(number / PAGE_ROWS) else {
            self.broken.store(true, Relaxed);
            return RowState::Untouched;
        };
        RowState::of(page[(number % PAGE_ROWS / 2) as usize] >> (number % 2 * 4) & 15)
    }

    /// Sets it.
    pub(crate) fn set(&self, number: u64, state: RowState) {
        self.exchange(number, None, state);
    }

    /// Sets it if it is what it was; whether it was.
    pub(crate) fn claim(&self, number: u64, was: RowState) -> bool {
        self.exchange(number, Some(was), RowState::Changing)
    }

    fn exchange(&self, number: u64, was: Option<RowState>, state: RowState) -> bool {
        let mut pages = self.lock();
        let Ok(page) = pages.page(number / PAGE_ROWS) else {
            self.broken.store(true, Relaxed);
            return false;
        };
        let byte = &mut page[(number % PAGE_ROWS / 2) as usize];
        let shift = number % 2 * 4;
        if was.is_some_and(|was| RowState::of(*byte >> shift & 15) != was) {
            return false;
        }
        *byte = *byte & !(15 << shift) | (state as u8) << shift;
        self.high.fetch_max(number + 1, Relaxed);
        true
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
        assert!(states.lock().there.len() <= PAGES && !states.lock().spilled.is_empty());
        for page in 0..pages {
            assert_eq!(states.get(page * PAGE_ROWS + page), RowState::Acknowledged);
            assert_eq!(states.get(page * PAGE_ROWS + page + 1), RowState::Failed);
            assert_eq!(states.get(page * PAGE_ROWS + page + 2), RowState::Untouched);
        }
        assert!(!states.is_broken());
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
