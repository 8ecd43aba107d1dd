//! What an append does with files that are on record: it skips complete ones, and finishes interrupted loads first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sawmill_source::{Control, Error, Kind, Mapping, Result, Source, UnitKey};

use crate::engine::load::LoadOptions;
use crate::engine::note::Note;
use crate::engine::target::LoadState;
use crate::engine::verification::{Tally, Verification};
use crate::history::lookup::{self, Found};
use crate::history::portion::Portion;
use crate::history::record::{AlreadyLoaded, LoadRecord, Loads, RecordedUnit, Remembered};
use crate::identity::recheck::{Encoders, changed, compare, unit_sums};
use crate::identity::{REPLACED, RecordedFiles};
use crate::table::schema_change::and_more_files;

/// The table of an append and its records, as the target's server has them.
pub trait History {
    /// The ID of a load that appends these files.
    fn id_of(&self, files: &dyn Source) -> String;

    /// The table and the server, for messages.
    fn place(&self) -> String;

    /// Whether an interrupted load has to be finished before other rows are appended.
    fn comes_first(&self, _load: &LoadRecord) -> bool {
        true
    }

    /// Whether the rows of an interrupted load can be replaced, file by file, by those that its files have now.
    fn replaces_unfinished(&self) -> bool {
        false
    }

    /// Whether a row has the same key by whatever options it is loaded, so that the table has it once.
    fn stores_rows_once(&self) -> bool {
        false
    }

    /// Whether rows can be updated by their keys.
    fn updates_rows(&self) -> bool {
        false
    }

    /// Whether a load has committed nothing, and other processes can no longer commit for it.
    ///
    /// # Errors
    /// No connection.
    fn holds_nothing(&self, _load: &LoadRecord) -> Result<bool> {
        Ok(false)
    }

    /// Refuses a file that was loaded into another table of this name, if its rows may be in this one.
    ///
    /// # Errors
    /// No connection; rows of unknown origin.
    fn refuse_unknown(&self, _file: &str) -> Result<()> {
        Ok(())
    }

    /// Checks that the table may have the rows of `found`, files that loads on record contain. Adds notes.
    ///
    /// # Errors
    /// No connection; rows are missing, or are there in another form.
    fn check(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()>;

    /// The committed units of a load.
    ///
    /// # Errors
    /// No connection.
    fn units(&self, load: &LoadRecord) -> Result<HashMap<UnitKey, RecordedUnit>>;

    /// How a load encoded the files of a portion, whose units are given. `None` if the table or the source has other
    /// columns now.
    ///
    /// # Errors
    /// No connection.
    fn encoding<'e>(
        &'e self,
        load: &LoadRecord,
        portion: &Portion<'_>,
        units: &BTreeMap<UnitKey, RecordedUnit>,
    ) -> Result<Option<Encoding<'e>>>;

    /// Records the current stamps of a load's files.
    ///
    /// # Errors
    /// No connection.
    fn set_stamps(&self, load: &LoadRecord, stamped: &RecordedFiles) -> Result<()>;

    /// Compares the table with the rows that its loads have recorded. The inner error says why that cannot be.
    ///
    /// # Errors
    /// No connection.
    fn compare(&self, remembered: &Remembered) -> Result<std::result::Result<Verification, Note>>;
}

/// How the rows of a load are encoded.
pub struct Encoding<'e> {
    /// Number of loaded columns.
    pub columns: usize,
    /// Encoders of rows that are in the table.
    pub encoders: Box<Encoders<'e>>,
}

/// Looks up the source's files in the records. `mapping` identifies the rows and columns that are taken of them. `None`
/// if the records do not matter: the source is loaded as a whole.
///
/// # Errors
/// An interrupted load that this source cannot finish; a file with other content, unless the options say what to
/// do; a file that was loaded with other options; missing rows; errors of `history`.
pub fn remember(
    history: &dyn History,
    Loads { here, otherwise, elsewhere }: Loads<'_>,
    mapping: &Mapping,
    source: &dyn Source,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Option<Remembered>> {
    let whole = Portion::new(source, (0..source.files().len() as u32).collect());
    let own = match options.order.is_empty() {
        true => history.id_of(source),
        false => history.id_of(&whole.in_order(&options.order)),
    };
    let here = lookup::without_void(source, here, &own, |load| history.holds_nothing(load))?;
    let first: Vec<&LoadRecord> =
        here.iter().copied().filter(|load| !load.complete && history.comes_first(load)).collect();
    let same = |portion: Portion<'_>, load: &LoadRecord| match options.order.is_empty() {
        true => history.id_of(&portion) == load.id,
        false => history.id_of(&portion.in_order(&options.order)) == load.id,
    };
    let placed = |error: Error| error.at(history.place());
    let (first, to_replace) = match options.replace_changed && history.replaces_unfinished() {
        true => lookup::with_other_content(source, first, |load| history.holds_nothing(load))?,
        false => (first, Vec::new()),
    };
    let unfinished =
        lookup::broken_off(source, &first, same, |load| history.holds_nothing(load)).map_err(placed)?;
    if options.again {
        lookup::found_again(source, &here).iter().for_each(|line| control.notice(line));
        return Ok(lookup::loaded_again(source, &here, &own, unfinished));
    }
    let found = lookup::found(source, &here);
    let mut in_found: BTreeSet<u32> = found.iter().map(|found| found.file).collect();
    in_found.extend(&to_replace);
    let mut remembered = Remembered::with_the_rest(source, unfinished, &in_found);
    let names: BTreeSet<&String> = elsewhere.iter().flat_map(|load| &load.files.names).collect();
    let new = remembered.new.iter().filter_map(|place| source.files().get(*place as usize));
    if let Some(file) = new.into_iter().find(|file| names.contains(&file.name)) {
        history.refuse_unknown(&file.name)?;
    }
    let otherwise = otherwise.into_iter().map(|load| {
        let is_void = !load.complete && history.holds_nothing(load)?;
        Ok((!is_void).then_some(load))
    });
    let otherwise: Vec<_> = otherwise.filter_map(Result::transpose).collect::<Result<_>>()?;
    if !history.stores_rows_once() {
        lookup::refuse_taken_otherwise(source, &remembered.new, &otherwise, mapping).map_err(placed)?;
    }
    // If changed files are replaced, a known list is looked at file by file.
    let compares_each = options.replace_changed && history.replaces_unfinished();
    let is_alone = to_replace.is_empty() && lookup::are_none_or_all(source, &remembered.unfinished);
    if is_alone && lookup::is_known_list(source, &here, &own, !compares_each) {
        return Ok(None);
    }
    let how = (options, history.updates_rows());
    remembered.replaced = to_replace;
    lookup::sort_out_changed(source, (&here, &otherwise), &mut remembered, how).map_err(placed)?;
    let nothing_known = found.is_empty() && remembered.unfinished.is_empty();
    if nothing_known && remembered.replaced.is_empty() && remembered.notes.is_empty() {
        return Ok(None);
    }
    if !source.facts().order.is_empty() {
        let what = "some of the files that are in order together are on record alone";
        return Err(Error::new(Kind::Exists, what)
            .at(history.place())
            .advise("load them in the order of the files"));
    }
    if !found.is_empty() {
        history.check(&found, &mut remembered)?;
        Rechecking { history, source, options, control }.run(&found, &mut remembered)?;
        lookup::refuse_to_replace(source, &remembered.replaced, &otherwise).map_err(placed)?;
    }
    remembered.count_replaced_once();
    if remembered.new.is_empty() {
        remembered.notes.extend(lookup::read_otherwise(&found, mapping));
    }
    Ok(Some(remembered))
}

/// The comparison of files with the records of the loads that contain them.
struct Rechecking<'r> {
    history: &'r dyn History,
    source: &'r dyn Source,
    options: &'r LoadOptions,
    control: &'r Control<'r>,
}

/// Files that could not be compared with their loaded rows.
#[derive(Default)]
struct NotCompared {
    /// Some of their rows were rejected.
    rejected: Vec<String>,
    /// They were loaded as columns or types that the table does not have any more.
    retyped: Vec<String>,
    /// Their rows are among those of files that are not here.
    mixed: Vec<String>,
}

impl NotCompared {
    fn add(&mut self, mut other: Self) {
        self.rejected.append(&mut other.rejected);
        self.retyped.append(&mut other.retyped);
        self.mixed.append(&mut other.mixed);
    }

    /// A note on each kind.
    fn notes(&self) -> impl Iterator<Item = Note> {
        let note = |of: fn(String) -> Note, files: &[String], why: &str| {
            let first = files.first()?;
            let more = and_more_files(files.len() - 1);
            Some(of(format!("not compared with what was loaded: {first}{more}, since {why}")))
        };
        let other_columns = "the table does not have the columns any more that they were loaded into";
        let beside = "their rows were put in order with those of files that are not here now";
        let rejected = note(Note::BesideRejected, &self.rejected, "some rows were rejected");
        let retyped = note(Note::Unverified, &self.retyped, other_columns);
        rejected.into_iter().chain(retyped).chain(note(Note::Unverified, &self.mixed, beside))
    }
}

impl Rechecking<'_> {
    /// Compares the files as far as needed, and verifies the table on request.
    fn run(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        let mut not_compared = NotCompared::default();
        let ids: BTreeSet<&str> = found.iter().map(|found| found.load.id.as_str()).collect();
        for id in ids {
            let of_load: Vec<&Found<'_>> = found.iter().filter(|found| found.load.id == *id).collect();
            let mut of_this = NotCompared::default();
            match self.already(&of_load, &mut of_this) {
                Err(error) if error.kind() == Kind::Changed && self.replaces() => {
                    self.take_out_changed(&of_load, remembered, &mut not_compared)?;
                }
                already => {
                    remembered.already.extend(already?);
                    not_compared.add(of_this);
                }
            }
        }
        remembered.already.sort_unstable_by_key(|already| already.file);
        remembered.notes.extend(not_compared.notes());
        if self.options.verify && not_compared.retyped.is_empty() {
            match self.history.compare(remembered)? {
                Ok(all) => remembered.verify(all, &self.history.place())?,
                Err(note) => remembered.notes.push(note),
            }
            // The table holds what is on record. That verifies no file that was not compared.
            let compared_all = not_compared.rejected.is_empty() && not_compared.mixed.is_empty();
            remembered.verified.take_if(|_| !compared_all);
        }
        Ok(())
    }

    /// Whether the rows of a file are replaced whose content has changed.
    fn replaces(&self) -> bool {
        self.options.replace_changed && self.history.replaces_unfinished()
    }

    /// Looks at the files of a load one by one, of which some have changed: the rows of these are replaced. If its units have
    /// rows of any of its files, all are replaced.
    fn take_out_changed(
        &self,
        found: &[&Found<'_>],
        remembered: &mut Remembered,
        not_compared: &mut NotCompared,
    ) -> Result<()> {
        for file in found {
            let mut of_this = NotCompared::default();
            let already = match file.load.mixes_files() {
                true => None,
                false => match self.already(&[*file], &mut of_this) {
                    Err(error) if error.kind() == Kind::Changed => None,
                    already => Some(already?),
                },
            };
            match already {
                None => remembered.replaced.push(file.file),
                Some(already) => remembered.already.extend(already),
            }
            not_compared.add(of_this);
        }
        Ok(())
    }

    /// The rows that a load added from these files, which are unchanged.
    fn already(&self, found: &[&Found<'_>], not_compared: &mut NotCompared) -> Result<Vec<AlreadyLoaded>> {
        let Some(load) = found.first().map(|found| found.load) else { return Ok(Vec::new()) };
        if load.mixes_files() {
            return self.already_in_order(load, found, not_compared);
        }
        let portion = Portion::new(self.source, found.iter().map(|found| found.file).collect());
        let places: HashMap<u32, u32> = (0..).zip(found).map(|(at, found)| (found.place, at)).collect();
        let in_portion = |key: UnitKey| places.get(&key.file).map(|at| UnitKey { file: *at, ..key });
        let units = self.history.units(load)?.into_iter();
        let mut units: BTreeMap<UnitKey, RecordedUnit> =
            units.filter_map(|(key, unit)| Some((in_portion(key)?, unit))).collect();
        let mut already: Vec<AlreadyLoaded> = found
            .iter()
            .map(|found| AlreadyLoaded { file: found.file, tally: Tally::default(), rejected: 0, units: 0 })
            .collect();
        let (mut unknown, untrusted) = (BTreeSet::new(), load.files.untrusted(portion.files()));
        for (key, unit) in &units {
            if unit.rejected > 0 && unit.refused.is_none() {
                unknown.insert(key.file);
            }
            if let Some(file) = already.get_mut(key.file as usize) {
                file.tally.add(&unit.tally);
                file.rejected += unit.rejected;
                file.units += 1;
            }
        }
        let (skipped, mut compared): (BTreeSet<u32>, BTreeSet<u32>) = (0..found.len() as u32)
            .filter(|at| self.options.verify || untrusted.contains(at))
            .partition(|at| unknown.contains(at));
        if self.source.facts().hashes_content {
            // Files of the same bytes need not be read again, and may be read otherwise now.
            compared.clear();
        }
        let name = |at: &u32| portion.files().get(*at as usize).map(|file| file.name.clone());
        not_compared.rejected.extend(skipped.iter().filter_map(name));
        units.retain(|key, _| compared.contains(&key.file));
        match self.history.encoding(load, &portion, &units)? {
            None => not_compared.retyped.extend(compared.iter().filter_map(name)),
            Some(encoding) => {
                let none = Tally::empty(encoding.columns);
                already.iter_mut().for_each(|file| file.tally.add(&none));
                self.compare(load, &portion, (&compared, &units), &encoding)?;
                if !untrusted.is_empty() && skipped.is_empty() {
                    self.trust(load, &portion)?;
                }
            }
        }
        Ok(already)
    }

    /// The same for a load whose units have rows of any of its files: only all of them can be compared.
    fn already_in_order(
        &self,
        load: &LoadRecord,
        found: &[&Found<'_>],
        not_compared: &mut NotCompared,
    ) -> Result<Vec<AlreadyLoaded>> {
        let portion = Portion::new(self.source, found.iter().map(|found| found.file).collect());
        let units = self.history.units(load)?;
        // Rows that other loads have replaced were taken from the units, or all units are gone.
        let kept = load.files.fingerprints.iter().filter(|print| !print.ends_with(REPLACED)).count();
        let is_whole = kept == found.len() && (!units.is_empty() || portion.rows() == 0);
        let files = portion.files().iter().zip(found);
        let mut already: Vec<AlreadyLoaded> = files
            .map(|(file, found)| {
                let tally = Tally { rows: if is_whole { 0 } else { file.rows }, ..Tally::default() };
                AlreadyLoaded { file: found.file, tally, rejected: 0, units: 0 }
            })
            .collect();
        // Which rows are whose is unknown: those of all files count with the first.
        if let Some(first) = already.first_mut().filter(|_| is_whole) {
            units.values().for_each(|unit| first.tally.add(&unit.tally));
            first.rejected = units.values().map(|unit| unit.rejected).sum();
            first.units = units.len() as u64;
        }
        let untrusted = load.files.untrusted(portion.files());
        if !self.options.verify && untrusted.is_empty() {
            return Ok(already);
        }
        let names = portion.files().iter().map(|file| file.name.clone());
        let is_unknown = units.values().any(|unit| unit.rejected > 0);
        let none_rejected: BTreeMap<UnitKey, RecordedUnit> = BTreeMap::new();
        match self.history.encoding(load, &portion, &none_rejected)? {
            _ if !is_whole => not_compared.mixed.extend(names),
            _ if is_unknown => not_compared.rejected.extend(names),
            _ if self.source.facts().hashes_content => {}
            None => not_compared.retyped.extend(names),
            Some(encoding) => {
                let mut was = Tally::empty(encoding.columns);
                units.values().for_each(|unit| was.add(&unit.tally));
                let runs = portion.plan(load.unit_rows);
                let now = unit_sums(&portion, runs, &*encoding.encoders, self.options, self.control)?;
                let mut is = Tally::empty(encoding.columns);
                now.values().for_each(|tally| is.add(tally));
                if was != is {
                    let all = portion.in_order(&load.facts.order);
                    return Err(changed(&all, (0, 0), &was, &is, LoadState::Complete));
                }
                if !untrusted.is_empty() {
                    self.trust(load, &portion)?;
                }
            }
        }
        Ok(already)
    }

    /// Records the stamps that the files had when they were opened, if they are those of the content that was compared.
    fn trust(&self, load: &LoadRecord, portion: &Portion<'_>) -> Result<()> {
        portion.check_unchanged()?;
        self.history.set_stamps(load, &load.files.with_stamps_of(portion.files()))
    }

    /// Compares files of a portion with their recorded units.
    fn compare(
        &self,
        load: &LoadRecord,
        portion: &Portion<'_>,
        (files, units): (&BTreeSet<u32>, &BTreeMap<UnitKey, RecordedUnit>),
        encoding: &Encoding<'_>,
    ) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut runs = portion.plan(load.unit_rows);
        runs.retain(|run| run.first().is_some_and(|unit| files.contains(&unit.key.file)));
        let now = unit_sums(portion, runs, &*encoding.encoders, self.options, self.control)?;
        let was = units.iter().map(|(key, unit)| (key, &unit.tally));
        compare(portion, (was, now.iter()), encoding.columns, LoadState::Complete)
    }
}
