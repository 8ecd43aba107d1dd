//! The state of every row that a run tried to write: four bytes a row, in pages. A bounded number of pages is in
//! memory, the others are in a temporary file.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Rows of a page.
const PAGE_ROWS: u64 = 1 << 17;
const PAGE_BYTES: usize = 4 * PAGE_ROWS as usize;
/// Pages in memory: 64 MiB, 16 million rows.
const PAGES: usize = 128;
/// Versions of rows are known modulo this.
const VERSIONS: i64 = 1 << 16;
/// Updates of a row that may be under way or unknown at a time.
pub(crate) const MAX_PENDING: u16 = (1 << 11) - 1;
/// How often to load a page for one access to it.
const PATIENCE: u32 = 1000;

/// The state of a row.
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
    /// Its deletion is under way, or may have happened.
    MaybeDeleted = 5,
    /// A custom statement is changing it.
    MaybeOwn = 6,
    /// Custom statements used its number: its state is unknown.
    Outside = 7,
    /// A custom statement has written it: it exists, with other values.
    Own = 8,
    /// A custom statement may have inserted it, with other values.
    OwnUnknown = 9,
}

impl RowState {
    fn new(bits: u32) -> Self {
        use RowState::*;
        [Untouched, Acknowledged, Failed, Unknown, Deleted, MaybeDeleted, MaybeOwn, Outside, Own, OwnUnknown]
            .get((bits & 15) as usize)
            .copied()
            .unwrap_or_default()
    }
}

/// The state of a row, and of its updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub state: RowState,
    /// How many of its updates were acknowledged, modulo [`VERSIONS`].
    pub version: u16,
    /// How many more are under way, or may have happened.
    pub pending: u16,
    /// Several updates were under way at a time: the last one decides between the row's two sets of values.
    pub contended: bool,
}

impl From<RowState> for Known {
    fn from(state: RowState) -> Self {
        Self { state, ..Self::default() }
    }
}

impl Known {
    fn new(bits: u32) -> Self {
        Self {
            state: RowState::new(bits),
            version: (bits >> 16) as u16,
            pending: (bits >> 5) as u16 & MAX_PENDING,
            contended: bits & 16 != 0,
        }
    }

    fn bits(self) -> u32 {
        u32::from(self.version) << 16
            | u32::from(self.pending) << 5
            | u32::from(self.contended) << 4
            | self.state as u32
    }

    /// The row in another state.
    pub(crate) fn with(self, state: RowState) -> Self {
        Self { state, ..self }
    }

    /// The row with one more update under way; `None` if there are `max` already.
    pub(crate) fn updating(self, max: u16) -> Option<Self> {
        let contended = self.contended || self.pending > 0;
        (self.pending < max).then(|| Self { pending: self.pending + 1, contended, ..self })
    }

    /// The row after an update has ended: `done`, or without effect.
    pub(crate) fn updated(self, done: bool) -> Self {
        let version = self.version.wrapping_add(done.into());
        Self { version, pending: self.pending.saturating_sub(1), ..self }
    }

    /// How many updates a row of this version has more than are acknowledged: negative if some are lost. A multiple of
    /// [`VERSIONS`] is not seen.
    pub(crate) fn ahead(self, version: i64) -> i64 {
        let half = VERSIONS / 2;
        (version.wrapping_sub(self.version.into()) + half).rem_euclid(VERSIONS) - half
    }
}

/// The states of a table's rows. Connections read and change states in memory at the same time; they only wait
/// while a page is loaded.
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
    rows: Box<[AtomicU32]>,
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
        let rows = bytes.as_chunks().0.iter().map(|bits| AtomicU32::new(u32::from_le_bytes(*bits))).collect();
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

    /// The state of a row.
    pub(crate) fn get(&self, number: u64) -> Known {
        self.at(number, |row| Known::new(row.load(Relaxed))).unwrap_or_default()
    }

    /// Sets the state of a row.
    pub(crate) fn set(&self, number: u64, known: impl Into<Known>) {
        let bits = known.into().bits();
        if self.at(number, |row| row.store(bits, Relaxed)).is_some() {
            self.high.fetch_max(number + 1, Relaxed);
        }
    }

    /// Changes the state of a row atomically. Returns the old state, or `None` if `next` refuses the change.
    pub(crate) fn change(&self, number: u64, next: impl Fn(Known) -> Option<Known>) -> Option<Known> {
        let next = |bits| next(Known::new(bits)).map(Known::bits);
        let was = self.at(number, |row| row.fetch_update(Relaxed, Relaxed, next).ok())??;
        self.high.fetch_max(number + 1, Relaxed);
        Some(Known::new(was))
    }

    /// Passes a row's entry to `work`, and loads its page if needed.
    fn at<T>(&self, number: u64, work: impl FnOnce(&AtomicU32) -> T) -> Option<T> {
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
    fn updates_of_one_row_that_are_under_way_are_counted() {
        let states = RowStates::default();
        states.set(7, RowState::Acknowledged);
        let updating = || states.change(7, |known| known.updating(2));
        assert_eq!(updating(), Some(RowState::Acknowledged.into()));
        assert!(!states.get(7).contended && updating().is_some() && updating().is_none());
        states.change(7, |known| Some(known.updated(true)));
        states.change(7, |known| Some(known.updated(false)));
        let known = Known { state: RowState::Acknowledged, version: 1, pending: 0, contended: true };
        assert_eq!((states.get(7), states.get(6).state, states.high()), (known, RowState::Untouched, 8));
    }

    #[test]
    fn versions_are_compared_across_the_end_of_their_count() {
        let mut known = Known::from(RowState::Acknowledged);
        (0..VERSIONS + 5).for_each(|_| known = known.updated(true));
        assert_eq!(known.version, 5);
        let there = VERSIONS + 5;
        assert_eq!([there, there - 7, there + 1].map(|version| known.ahead(version)), [0, -7, 1]);
    }
}
