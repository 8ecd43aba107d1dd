//! What is known of every row that a run tried to write: two bytes a row, in pages of which a bounded number is
//! in memory; the others are in a temporary file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Rows of a page.
const PAGE_ROWS: u64 = 1 << 17;
const PAGE_BYTES: usize = 2 * PAGE_ROWS as usize;
/// Pages in memory: 32 MiB, 16 million rows.
const PAGES: usize = 128;
/// Versions of rows are known modulo this.
pub(crate) const VERSIONS: u16 = 1 << 12;
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
    /// Its deletion may have happened.
    MaybeDeleted = 5,
    /// One more update than is acknowledged may have happened.
    MaybeUpdated = 6,
    /// An operation is changing it.
    Changing = 7,
    /// Statements of the user's own used its number: nothing is known of it.
    Outside = 8,
    /// A statement of the user's own has written it: it is there, with values of its own.
    Own = 9,
}

impl RowState {
    fn of(bits: u16) -> Self {
        const ALL: [RowState; 10] = [
            RowState::Untouched,
            RowState::Acknowledged,
            RowState::Failed,
            RowState::Unknown,
            RowState::Deleted,
            RowState::MaybeDeleted,
            RowState::MaybeUpdated,
            RowState::Changing,
            RowState::Outside,
            RowState::Own,
        ];
        ALL.get(usize::from(bits & 15)).copied().unwrap_or_default()
    }
}

/// The state of a row, and how many of its updates were acknowledged, modulo [`VERSIONS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub state: RowState,
    pub version: u16,
}

impl From<RowState> for Known {
    fn from(state: RowState) -> Self {
        Self { state, version: 0 }
    }
}

impl Known {
    fn of(bits: u16) -> Self {
        Self { state: RowState::of(bits), version: bits >> 4 }
    }

    fn bits(self) -> u16 {
        self.version << 4 | self.state as u16
    }

    /// The same with one more acknowledged update.
    pub(crate) fn updated(self) -> Self {
        Self { state: RowState::Acknowledged, version: (self.version + 1) % VERSIONS }
    }

    /// How many updates a row of this version has more than are acknowledged: negative if some are lost.
    pub(crate) fn ahead(self, version: i64) -> i64 {
        let (versions, half) = (i64::from(VERSIONS), i64::from(VERSIONS) / 2);
        (version.wrapping_sub(self.version.into()) + half).rem_euclid(versions) - half
    }

    /// How many updates may have happened that are not acknowledged.
    pub(crate) fn pending(self) -> i64 {
        i64::from(matches!(self.state, RowState::Changing | RowState::MaybeUpdated))
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
    rows: Box<[AtomicU16]>,
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
        let rows = bytes.as_chunks().0.iter().map(|two| AtomicU16::new(u16::from_le_bytes(*two))).collect();
        self.there.insert(number, Page { rows, used: AtomicU64::new(self.loads) });
        Ok(())
    }

    /// Moves the page that was not used for longest to the file.
    fn spill(&mut self) -> std::io::Result<()> {
        let oldest = self.there.iter().min_by_key(|(_, page)| page.used.load(Relaxed));
        let Some((number, page)) = oldest.map(|(number, page)| (*number, page)) else { return Ok(()) };
        let bytes: Vec<u8> = page.rows.iter().flat_map(|row| row.load(Relaxed).to_le_bytes()).collect();
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
    pub(crate) fn get(&self, number: u64) -> Known {
        self.at(number, |row| Known::of(row.load(Relaxed))).unwrap_or_default()
    }

    /// Sets it.
    pub(crate) fn set(&self, number: u64, known: impl Into<Known>) {
        let bits = known.into().bits();
        if self.at(number, |row| row.store(bits, Relaxed)).is_some() {
            self.high.fetch_max(number + 1, Relaxed);
        }
    }

    /// Marks a row as changing if it is what it was; whether it was.
    pub(crate) fn claim(&self, number: u64, was: Known) -> bool {
        let next = Known { state: RowState::Changing, ..was };
        let claimed = self
            .at(number, |row| row.compare_exchange(was.bits(), next.bits(), Relaxed, Relaxed).is_ok())
            .unwrap_or(false);
        if claimed {
            self.high.fetch_max(number + 1, Relaxed);
        }
        claimed
    }

    /// Passes the place of what is known of a row to `work`.
    fn at<T>(&self, number: u64, work: impl FnOnce(&AtomicU16) -> T) -> Option<T> {
        let (page, row) = (number / PAGE_ROWS, number % PAGE_ROWS);
        // Another connection may push it out again before it is read.
        for _ in 0..PATIENCE {
            if let Some(page) = self.read().get(page) {
                return page.rows.get(row as usize).map(work);
            }
            if self.pages.write().unwrap_or_else(PoisonError::into_inner).load(page).is_err() {
                break;
            }
        }
        self.broken.store(true, Relaxed);
        None
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
            assert_eq!(states.get(page * PAGE_ROWS + page).state, RowState::Acknowledged);
            assert_eq!(states.get(page * PAGE_ROWS + page + 1).state, RowState::Failed);
            assert_eq!(states.get(page * PAGE_ROWS + page + 2).state, RowState::Untouched);
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
        assert!((0..40_000).all(|row| states.get(row).state == RowState::Acknowledged));
    }

    #[test]
    fn a_row_is_claimed_once() {
        let states = RowStates::default();
        let known = Known::from(RowState::Acknowledged).updated();
        states.set(7, known);
        assert!(states.claim(7, known) && !states.claim(7, known));
        assert_eq!((states.get(7).state, states.get(7).version), (RowState::Changing, 1));
        assert_eq!((states.get(6).state, states.high()), (RowState::Untouched, 8));
    }

    #[test]
    fn versions_are_compared_across_the_end_of_their_count() {
        let mut known = Known::from(RowState::Acknowledged);
        (0..i64::from(VERSIONS) + 5).for_each(|_| known = known.updated());
        assert_eq!(known.version, 5);
        let there = i64::from(VERSIONS) + 5;
        assert_eq!([there, there - 7, there + 1].map(|version| known.ahead(version)), [0, -7, 1]);
    }
}
