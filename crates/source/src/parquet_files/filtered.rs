//! The rows of Parquet files for which a condition is true, as a source.
//!
//! ```text
//! footers ─▶ row groups: none passes │ all pass │ some may ─page indexes─▶ rows that may pass
//!                                                              └─ the condition's columns, read once ─▶ counts
//! ```
//!
//! The passing rows of each row group are counted before anything is loaded, so that the plan, its units and
//! the check at the end are exact. One count is stored per [`WINDOW_ROWS`] rows, and the blocks of
//! [`BLOCK_ROWS`] rows in which some pass: no others are read again. Readers also filter a window at once, so
//! that no state per row outlives it.

mod group;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::BooleanArray;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
};
use sawmill_profile::{Control, Error, Result};
use sawmill_store::RequestPlan;
use serde::Serialize;

use crate::columns::mapping::Mapping;
use crate::condition::Condition;
use crate::condition::pruning::{Known, intersection, outlook, outlook_of_folders, pages};
use crate::condition::rows::RowTest;
use crate::parquet_files::files::{ParquetFiles, map_where_they_are};
use crate::parquet_files::filtered::group::{FilteredGroup, PassingPlaces, Reading, WINDOW_ROWS};
use crate::parquet_files::guarded::{fault_of_page, guarded};
use crate::parquet_files::opened_file::OpenedFile;
use crate::parquet_files::reader::ParquetReader;
use crate::units::{
    Facts, Read, RowPlace, Source, SourceFile, Unit, UnitKey, UnitReader, counted_places, recut,
};

/// Rows of a batch of the condition's columns.
const BATCH_ROWS: usize = 8192;

/// The rows of files for which a condition is true; [`ParquetFiles::filtered`] returns it.
pub struct Filtered<'a> {
    pub(crate) files: &'a ParquetFiles,
    /// `None`: all rows that are not deleted.
    condition: Option<Condition>,
    /// The condition, resolved against each file's columns.
    tests: Vec<Arc<RowTest>>,
    /// The passing rows of each file's row groups.
    groups: Vec<Vec<FilteredGroup>>,
    named: Vec<SourceFile>,
    pruned: Pruned,
}

/// The reading that statistics and page indexes saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Number of files.
    pub files: u64,
    /// Files without a row that passes, by the names of their folders.
    pub files_pruned: u64,
    /// Files in which all rows pass, by the names of their folders.
    pub files_whole: u64,
    /// Number of row groups of all other files.
    pub row_groups: u64,
    /// Row groups in which no row passes, by their statistics.
    pub row_groups_pruned: u64,
    /// Row groups in which all rows pass, by their statistics.
    pub row_groups_whole: u64,
    /// Number of data pages of the condition's columns in the other row groups, if they have indexes.
    pub pages: u64,
    /// Data pages in which no row passes, by those indexes.
    pub pages_pruned: u64,
}

impl ParquetFiles {
    /// Returns the rows for which `condition` is true. It uses the names of columns in the files, and may use
    /// columns that were not selected.
    ///
    /// Reads the condition's columns once, except row groups and pages that their statistics decide, with one
    /// thread per core. The phase of `control` counts rows.
    ///
    /// # Errors
    /// A column that does not exist or is nested; a literal that is not a value of its column's type; a file
    /// that cannot be read or has changed; a raised cancel flag.
    pub fn filtered(&self, condition: Condition, control: &Control<'_>) -> Result<Filtered<'_>> {
        self.filtered_by(Some(condition), control)
    }

    /// Returns the rows that a table has not deleted; `None` if these are all.
    ///
    /// # Errors
    /// A raised cancel flag.
    pub fn without_deleted(&self, control: &Control<'_>) -> Result<Option<Filtered<'_>>> {
        match self.opened.iter().all(|file| file.deleted.is_empty()) {
            true => Ok(None),
            false => self.filtered_by(None, control).map(Some),
        }
    }

    fn filtered_by(&self, condition: Option<Condition>, control: &Control<'_>) -> Result<Filtered<'_>> {
        let mut filtered = Filtered {
            files: self,
            condition,
            tests: Vec::with_capacity(self.opened.len()),
            groups: Vec::with_capacity(self.opened.len()),
            named: self.files().to_vec(),
            pruned: Pruned::default(),
        };
        let files: Vec<_> = self.opened.iter().zip(self.files()).collect();
        let condition = filtered.condition.as_ref();
        let planned = map_where_they_are(
            "planner",
            &files,
            |(file, _)| file.is_object(),
            |(file, named)| {
                control.check()?;
                let Some(condition) = condition else {
                    let groups = file.rows_of_groups().enumerate();
                    let groups = groups.map(|(group, rows)| FilteredGroup::whole(rows, file.kept(group)));
                    return Ok((RowTest::all(), groups.collect(), Pruned::default()));
                };
                // To a table, such a column is null.
                let left_out = file.left_out.iter().find(|column| condition.names(&column.name));
                let test = match left_out {
                    Some(column) => Err(column.error().at(condition.to_string())),
                    None => RowTest::new(condition, file.reader.schema(), &file.folders),
                };
                let mut test = test.map_err(|error| {
                    let place = format!("{}, {}", error.place(), named.name);
                    error.at(place)
                })?;
                for column in &mut test.columns {
                    column.name = file.name_in_file(&column.name).to_owned();
                }
                let mut pruned = Pruned::default();
                let groups = pruned.groups_of(file, named, &test, control)?;
                Ok((test, groups, pruned))
            },
        )?;
        for (test, groups, pruned) in planned {
            filtered.tests.push(Arc::new(test));
            filtered.groups.push(groups);
            filtered.pruned.add(pruned);
        }
        filtered.count(control)?;
        for (named, groups) in filtered.named.iter_mut().zip(&filtered.groups) {
            named.rows = groups.iter().map(FilteredGroup::passing).sum();
        }
        Ok(filtered)
    }
}

impl Pruned {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.files_pruned += other.files_pruned;
        self.files_whole += other.files_whole;
        self.row_groups += other.row_groups;
        self.row_groups_pruned += other.row_groups_pruned;
        self.row_groups_whole += other.row_groups_whole;
        self.pages += other.pages;
        self.pages_pruned += other.pages_pruned;
    }

    /// Returns the conclusions from the footer and the page indexes about a file's row groups.
    fn groups_of(
        &mut self,
        file: &OpenedFile,
        named: &SourceFile,
        test: &RowTest,
        control: &Control<'_>,
    ) -> Result<Vec<FilteredGroup>> {
        self.files += 1;
        let of_folders = outlook_of_folders(test);
        if !of_folders.some || of_folders.all {
            let count = if of_folders.some { &mut self.files_whole } else { &mut self.files_pruned };
            *count += 1;
            control.phase().add_rows(named.rows);
            let group = |(group, rows)| match of_folders.some {
                true => FilteredGroup::whole(rows, file.kept(group)),
                false => FilteredGroup { rows, reading: Reading::None },
            };
            return Ok(file.rows_of_groups().enumerate().map(group).collect());
        }
        let names = test.columns.iter().map(|column| column.name.as_str());
        let footer = file.footer(&file.footer_options().column_roots(names))?;
        file.check_footer(&footer, named.bytes)?;
        let opened = file.reopen()?;
        let mut groups = Vec::with_capacity(footer.num_row_groups());
        for (number, group) in footer.row_groups().enumerate() {
            let kept = file.kept(number);
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            let outlook = outlook(test, &footer, group);
            self.row_groups += 1;
            let reading = if !outlook.some || rows == 0 {
                self.row_groups_pruned += 1;
                control.phase().add_rows(rows);
                Reading::None
            } else if outlook.all {
                self.row_groups_whole += 1;
                control.phase().add_rows(rows);
                FilteredGroup::whole(rows, kept).reading
            } else {
                let plan = pages(test, &footer, group, &*opened);
                self.pages += plan.pages as u64;
                self.pages_pruned += plan.pruned as u64;
                let passing = vec![0; rows.div_ceil(WINDOW_ROWS) as usize];
                let candidates = match kept {
                    None => plan.rows,
                    Some(kept) => intersection(&plan.rows, &kept),
                };
                Reading::Some { candidates, passing }
            };
            groups.push(FilteredGroup { rows, reading });
        }
        Ok(groups)
    }
}

/// The position of the n-th passing row of a row group.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub window: usize,
    /// Number of passing rows before it in the window.
    pub before: u64,
}

impl Filtered<'_> {
    /// The reading that statistics and page indexes saved; `None` without a condition.
    pub fn pruned(&self) -> Option<Pruned> {
        self.condition.is_some().then_some(self.pruned)
    }

    fn group(&self, key: UnitKey) -> Option<&FilteredGroup> {
        self.groups.get(key.file as usize)?.get(key.row_group as usize)
    }

    /// Returns the position of the first row of `key`; `None` if all rows of the row group pass.
    pub(crate) fn position(&self, key: UnitKey) -> Option<Position> {
        let Reading::Some { passing, .. } = &self.group(key)?.reading else { return None };
        let mut before = key.first_row;
        for (window, passing) in passing.iter().enumerate() {
            if before < *passing {
                return Some(Position { window, before });
            }
            before -= passing;
        }
        None
    }

    /// Returns the rows of a row group that may pass, from the window on that has the first row of `key`;
    /// `None` if all rows pass.
    pub(crate) fn rows_from(&self, key: UnitKey) -> Option<Vec<Range<u64>>> {
        let position = self.position(key)?;
        let Reading::Some { candidates, .. } = &self.group(key)?.reading else { return None };
        let window = Range { start: position.window as u64 * WINDOW_ROWS, end: u64::MAX };
        Some(intersection(candidates, &[window]))
    }

    /// Returns the requests and bytes that reading the passing rows of all objects takes; `None` without
    /// objects.
    pub fn requests(&self) -> Option<(u64, u64)> {
        let mut sum = None;
        for (number, file) in (0u32..).zip(&self.files.opened).filter(|(_, file)| file.is_object()) {
            let (requests, bytes) = sum.get_or_insert((0, 0));
            for (row_group, group) in (0u32..).zip(self.groups.get(number as usize).into_iter().flatten()) {
                let key = UnitKey { file: number, row_group, first_row: 0 };
                if group.passing() > 0 {
                    let plan = self.plan_of(file, key);
                    *requests += plan.requests();
                    *bytes += plan.bytes();
                }
            }
        }
        sum
    }

    fn plan_of(&self, file: &OpenedFile, key: UnitKey) -> RequestPlan {
        let of_condition = self.fields(key);
        let rows = self.rows_from(key);
        let is_wanted = |field| file.reads(field) || (rows.is_some() && of_condition.contains(&field));
        let chunks = file.ranges(key.row_group as usize, is_wanted, rows.as_deref());
        RequestPlan::streams(&chunks, self.files.read_ahead)
    }

    /// Returns the next window after `window` in which a row passes.
    pub(crate) fn next_window(&self, key: UnitKey, window: usize) -> Option<usize> {
        let Reading::Some { passing, .. } = &self.group(key)?.reading else { return None };
        (window + 1..passing.len()).find(|window| passing[*window] > 0)
    }

    /// Restricts a reader of a row group to the passing rows of a window.
    pub(crate) fn filter<T: parquet::file::reader::ChunkReader + 'static>(
        &self,
        key: UnitKey,
        window: usize,
        reader: ParquetRecordBatchReaderBuilder<T>,
    ) -> ParquetRecordBatchReaderBuilder<T> {
        let (Some(group), Some(test)) = (self.group(key), self.tests.get(key.file as usize)) else {
            return reader;
        };
        let test = Arc::clone(test);
        let reader = reader.with_row_selection(group.selection(window));
        if test.columns.is_empty() {
            return reader;
        }
        let columns = test.columns.iter().map(|column| column.place);
        let mask = ProjectionMask::roots(reader.parquet_schema(), columns);
        let passes = move |batch| {
            let rows = test.rows(&batch).map_err(|error| ArrowError::ComputeError(error.to_string()))?;
            Ok(BooleanArray::new(rows, None))
        };
        let filter = RowFilter::new(vec![Box::new(ArrowPredicateFn::new(mask, passes))]);
        reader.with_row_filter(filter)
    }

    /// Returns the fields of a file that the condition tests.
    pub(crate) fn fields(&self, key: UnitKey) -> Vec<usize> {
        let test = self.tests.get(key.file as usize);
        test.map(|test| test.columns.iter().map(|column| column.place).collect()).unwrap_or_default()
    }

    /// Reads the condition's columns in the rows of a window that may pass.
    fn columns(&self, key: UnitKey, window: usize) -> Result<Option<ParquetRecordBatchReader>> {
        let (Some(group), Some(test)) = (self.group(key), self.tests.get(key.file as usize)) else {
            return Ok(None);
        };
        // Decodes the same bytes whose checksums it compares.
        let reader = self.reader_of_condition(key, group.candidates(window)).opening(key)?;
        reader.compare_checksums(key, &self.fields(key))?;
        let reader = reader.builder(key)?;
        let mask =
            ProjectionMask::roots(reader.parquet_schema(), test.columns.iter().map(|column| column.place));
        let reader = reader.with_projection(mask).with_row_selection(group.selection(window));
        guarded(|| reader.build()).map(Some).map_err(|error| self.corrupt(key, &fault_of_page(&error)))
    }

    fn corrupt(&self, key: UnitKey, what: &str) -> Error {
        if let Some(Err(changed)) = self.files.opened.get(key.file as usize).map(OpenedFile::check_readable) {
            return changed;
        }
        let whole = Range { start: 0, end: self.group(key).map_or(0, |group| group.rows) };
        self.reader_of_condition(key, vec![whole]).corrupt_part(key, what)
    }

    /// A reader of the condition's columns in these rows of a row group.
    fn reader_of_condition(&self, key: UnitKey, rows: Vec<Range<u64>>) -> ParquetReader<'_> {
        ParquetReader::new(self.files, None, BATCH_ROWS)
            .reading(Read { columns: Some(&[]), ..Read::default() })
            .part(rows, self.fields(key))
    }

    /// Passes the passing rows of a window's batches to `each`, until `each` ends the scan.
    fn scan(
        &self,
        key: UnitKey,
        window: usize,
        mut each: impl FnMut(&arrow_buffer::BooleanBuffer) -> Result<bool>,
    ) -> Result<()> {
        let (Some(mut batches), Some(test)) = (self.columns(key, window)?, self.tests.get(key.file as usize))
        else {
            return Ok(());
        };
        loop {
            let batch = match guarded(|| batches.next().transpose()) {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.corrupt(key, &fault_of_page(&error))),
            };
            if each(&test.rows(&batch)?)? {
                return Ok(());
            }
        }
    }

    /// Counts the passing rows of all windows whose count is unknown.
    fn count(&mut self, control: &Control<'_>) -> Result<()> {
        let mut windows = Vec::new();
        for (file, groups) in (0u32..).zip(&self.groups) {
            for (row_group, group) in (0u32..).zip(groups) {
                // Without columns to test, all rows that are not deleted pass.
                let has_test = self.tests.get(file as usize).is_some_and(|test| !test.columns.is_empty());
                if let Reading::Some { passing, .. } = &group.reading
                    && has_test
                {
                    let key = UnitKey { file, row_group, first_row: 0 };
                    windows.extend((0..passing.len()).map(|window| (key, window)));
                }
            }
        }
        let counted = Mutex::new(Vec::with_capacity(windows.len()));
        let this = &*self;
        control.on_all_cores(
            "counter",
            &windows,
            || (),
            |(), &(key, window), control| {
                let count = this.count_window(key, window, control)?;
                counted.lock().unwrap_or_else(PoisonError::into_inner).push((key, window, count));
                Ok(())
            },
        )?;
        let mut counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
        counted.sort_unstable_by_key(|(key, window, _)| (key.file, key.row_group, *window));
        for (key, window, (rows, places)) in counted {
            let group = self
                .groups
                .get_mut(key.file as usize)
                .and_then(|groups| groups.get_mut(key.row_group as usize));
            if let Some(FilteredGroup { reading: Reading::Some { passing, candidates }, .. }) = group
                && let Some(count) = passing.get_mut(window)
            {
                *count = rows;
                // Rows that did not pass need not be read again. The windows come in their order.
                if window == 0 {
                    candidates.clear();
                }
                candidates.extend(places);
            }
        }
        Ok(())
    }

    /// Returns how many rows of a window pass, and where among those that may.
    fn count_window(
        &self,
        key: UnitKey,
        window: usize,
        control: &Control<'_>,
    ) -> Result<(u64, Vec<Range<u64>>)> {
        let mut passing = 0;
        let all = self.group(key).map(|group| group.candidates(window)).unwrap_or_default();
        let mut places = PassingPlaces::default();
        let group_rows = self.group(key).map_or(0, |group| group.rows);
        let rows = WINDOW_ROWS.min(group_rows.saturating_sub(window as u64 * WINDOW_ROWS));
        let mut seen = 0;
        if all.is_empty() {
            control.phase().add_rows(rows);
            return Ok((0, all));
        }
        self.scan(key, window, |batch| {
            control.check()?;
            passing += batch.count_set_bits() as u64;
            for (from, to) in batch.set_slices() {
                places.add(&all, seen + from as u64..seen + to as u64);
            }
            seen += batch.len() as u64;
            control.phase().add_rows(batch.len() as u64);
            Ok(false)
        })?;
        let candidates: u64 = all.iter().map(|rows| rows.end - rows.start).sum();
        if seen != candidates {
            let missing = candidates.saturating_sub(seen);
            return Err(self.corrupt(key, &format!("{missing} rows are missing at its end")));
        }
        control.phase().add_rows(rows - candidates);
        Ok((passing, intersection(&all, &places.ranges)))
    }
}

impl Source for Filtered<'_> {
    fn schema(&self) -> &SchemaRef {
        self.files.schema()
    }

    /// Returns the files, each with the number of its rows that pass.
    fn files(&self) -> &[SourceFile] {
        &self.named
    }

    fn facts(&self) -> Facts {
        let facts = self.files.facts();
        let condition = self.condition.as_ref().map_or_else(String::new, ToString::to_string);
        let mapping = Mapping { condition, ..facts.mapping };
        let rows = self.named.iter().map(|file| file.rows).sum();
        Facts { rows, mapping, counts_all_rows: false, ..facts }
    }

    fn plan(&self, unit_rows: u64) -> Vec<Vec<Unit>> {
        let mut passing_groups = Vec::new();
        for ((file, opened), groups) in (0u32..).zip(&self.files.opened).zip(&self.groups) {
            for ((row_group, stored), group) in (0u32..).zip(opened.row_groups()).zip(groups) {
                let passing = group.passing();
                let share = u128::from(stored) * u128::from(passing) / u128::from(group.rows.max(1));
                passing_groups.push(Unit::of_group(file, row_group, passing, share as u64));
            }
        }
        passing_groups.retain(|group| group.rows > 0);
        recut(passing_groups, unit_rows)
    }

    fn open(&self, read: Read<'_>, batch_rows: usize) -> Box<dyn UnitReader + '_> {
        Box::new(ParquetReader::new(self.files, Some(self), batch_rows).reading(read))
    }

    /// Whatever holds for all rows of a row group also holds for the rows that pass.
    fn known(&self, file: u32, column: usize) -> Result<Vec<Known>> {
        self.files.known(file, column)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.files.check_unchanged()
    }

    fn locate(&self, unit: UnitKey, rows: &[u64], _named: bool) -> Result<Vec<RowPlace>> {
        let mut places = Vec::with_capacity(rows.len());
        let Some(group) = self.group(unit) else { return Ok(Vec::new()) };
        while let Some(first_row) = rows.get(places.len()).copied() {
            let key = UnitKey { first_row, ..unit };
            let Some(position) = self.position(key) else {
                if matches!(group.reading, Reading::All) {
                    places.extend(&rows[places.len()..]);
                }
                break;
            };
            let found = self.places_in_window(key, position, &rows[places.len()..])?;
            if found.is_empty() {
                break;
            }
            places.extend(found);
        }
        Ok(counted_places(&places))
    }
}

impl Filtered<'_> {
    /// Returns the positions of those passing rows that are in the window of the first of them.
    fn places_in_window(&self, key: UnitKey, position: Position, rows: &[u64]) -> Result<Vec<u64>> {
        let Some(group) = self.group(key) else { return Ok(Vec::new()) };
        // Counts both the candidates and the passing rows among them.
        let window_first = key.first_row - position.before;
        let (mut passed, mut seen) = (0, 0);
        let mut candidates = Vec::new();
        self.scan(key, position.window, |batch| {
            let passing = batch.count_set_bits() as u64;
            let mut wanted =
                rows[candidates.len()..].iter().map(|row| row.saturating_sub(window_first)).peekable();
            if wanted.peek().is_some_and(|row| *row < passed + passing) {
                for (nth, at) in (passed..).zip(batch.set_indices()) {
                    if wanted.next_if_eq(&nth).is_some() {
                        candidates.push(seen + at as u64);
                    }
                }
            }
            passed += passing;
            seen += batch.len() as u64;
            Ok(candidates.len() == rows.len())
        })?;
        let mut places = Vec::with_capacity(candidates.len());
        let mut before = 0;
        for range in group.candidates(position.window) {
            let length = range.end - range.start;
            let here = candidates[places.len()..].iter().take_while(|at| **at < before + length);
            let here: Vec<u64> = here.map(|at| range.start + at - before).collect();
            places.extend(here);
            before += length;
        }
        Ok(places)
    }
}
