//! Files that earlier loads added to a table, file by file: an append skips them, and first finishes loads that
//! were interrupted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sawmill_loader::{
    AlreadyLoaded, BatchEncoder, EarlierLoad, Found, LoadOptions, Mode, Portion, Remembered, Tally,
    Verification, earlier, earlier::Recorded, load_id,
};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use crate::CrateDb;
use crate::connect::client::{Client, Cluster};
use crate::encode::bodies::Bodies;
use crate::encode::encoder::{EncodePlan, file_hash, longest_row};
use crate::records::checkpoint::{Checkpoints, LoadIntoTable, UnitRecord, by_time};
use crate::records::shape::Shape;
use crate::session::existing_plan;
use crate::session::prepare::{filled, loaded_with_other_options};
use crate::table::catalogue;
use crate::table::columns::{Column, Key, Plan, Purpose};
use crate::table::names::CrateTable;
use crate::verify::read_back::{OfFiles, ReadBack, paging_key};
use crate::verify::without_refused::WithoutRefused;

impl CrateDb {
    /// The ID under which a load of this source is recorded.
    pub(crate) fn id_of(&self, source: &dyn Source, table: &CrateTable, key: &Key) -> String {
        let mapping = format!("{}{key:?}{:?}", source.facts().mapping, self.options.by_position);
        load_id(source.files(), &mapping, &table.to_string(), self.mode.name())
    }

    /// A hash that two loads of a file share if they load the same rows and columns.
    pub(crate) fn mapping_of_files(&self, source: &dyn Source) -> String {
        let mapping = earlier::mapping_of_files(source, self.options.by_position);
        format!("{:032x}", xxhash_rust::xxh3::xxh3_128(mapping.as_bytes()))
    }

    /// Whether loads of the same rows and columns have made the table and hold some of the source's files, so that its
    /// other files are to be appended.
    ///
    /// # Errors
    /// No connection, or no permission.
    pub fn adds_files(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<bool> {
        if !source.facts().whole_files {
            return Ok(false);
        }
        let table = self.table()?;
        let cluster = Cluster::new(&self.server, options.patience)?;
        let mut client = Client::new(&cluster, false);
        let checkpoints = Checkpoints::new(&self.checkpoint_schema, options.retries);
        let [exists] = catalogue::which_exist(&mut client, [&table], options.retries, control)?;
        if !exists || !checkpoints.exist(&mut client, control)? {
            return Ok(false);
        }
        let loads = checkpoints.of_table(&mut client, &table.to_string(), control)?;
        let mapping = self.mapping_of_files(source);
        let here: Vec<&EarlierLoad> =
            loads.iter().map(|into| &into.load).filter(|load| load.mapping == mapping).collect();
        Ok(earlier::adds_files(source, &here, options))
    }

    /// Looks up the source's files in the records of an append; `None` without any.
    pub(crate) fn remember(
        &self,
        source: &dyn Source,
        options: &LoadOptions,
        control: &Control<'_>,
    ) -> Result<Option<Remembered>> {
        if self.mode != Mode::Append || !source.facts().whole_files {
            return Ok(None);
        }
        let table = self.table()?;
        let cluster = Cluster::new(&self.server, options.patience)?;
        let mut client = Client::new(&cluster, false);
        let checkpoints = Checkpoints::new(&self.checkpoint_schema, options.retries);
        if !checkpoints.exist(&mut client, control)? {
            return Ok(None);
        }
        let purpose = if self.evolves() { Purpose::Follow } else { Purpose::Write };
        let (plan, primary) =
            existing_plan(self, source, &mut client, &table, options.retries, control, purpose)?;
        checkpoints.create(&mut client, control)?;
        let loads = checkpoints.of_table(&mut client, &table.to_string(), control)?;
        if loads.is_empty() {
            return Ok(None);
        }
        let remembering = Remembering {
            crate_db: self,
            source,
            options,
            control,
            cluster: &cluster,
            checkpoints: &checkpoints,
            table: &table,
            plan: &plan,
            primary: &primary,
        };
        remembering.run(&loads)
    }
}

struct Remembering<'r> {
    crate_db: &'r CrateDb,
    source: &'r dyn Source,
    options: &'r LoadOptions,
    control: &'r Control<'r>,
    cluster: &'r Arc<Cluster>,
    checkpoints: &'r Checkpoints,
    table: &'r CrateTable,
    plan: &'r Plan,
    primary: &'r [String],
}

impl Remembering<'_> {
    fn run(&self, loads: &[LoadIntoTable]) -> Result<Option<Remembered>> {
        let all = loads.iter().map(|into| &into.load);
        let here: Vec<&EarlierLoad> = all.filter(|load| self.is_of_same_rows(load)).collect();
        let own = self.crate_db.id_of(self.source, self.table, &self.plan.key);
        let unfinished = self.unfinished(&here)?;
        if self.options.again {
            return Ok(earlier::loaded_again(self.source, &here, &own, unfinished));
        }
        if earlier::is_known_list(self.source, &here, &own) {
            return Ok(None);
        }
        let found = earlier::found(self.source, &here);
        let in_found = found.iter().map(|found| found.file).collect();
        let mut remembered = Remembered::with_the_rest(self.source, unfinished, in_found);
        earlier::of_another_content(self.source, &here, &mut remembered, self.options)
            .map_err(|error| error.at(self.place()))?;
        if found.is_empty() && remembered.unfinished.is_empty() && remembered.notes.is_empty() {
            return Ok(None);
        }
        if !found.is_empty() {
            self.refuse_other_options(&found, loads)?;
            self.look_at(&found, loads, &mut remembered)?;
        }
        Ok(Some(remembered))
    }

    /// Refuses files whose rows are in the table in another form.
    fn refuse_other_options(&self, found: &[Found<'_>], loads: &[LoadIntoTable]) -> Result<()> {
        let shape = Shape::new(&self.crate_db.options, self.plan, None);
        for Found { file, load, .. } in found {
            let recorded = loads.iter().find(|into| into.load.id == load.id);
            let differs = recorded.and_then(|into| shape.differs_from(&into.shape));
            if let Some(differs) = differs {
                let name = self.source.files().get(*file as usize).map_or("", |file| file.name.as_str());
                return Err(loaded_with_other_options(&differs).at(format!("{name}, {}", self.place())));
            }
        }
        Ok(())
    }

    /// Whether a load covered the same rows and columns of its files.
    fn is_of_same_rows(&self, load: &EarlierLoad) -> bool {
        load.mapping == self.crate_db.mapping_of_files(self.source)
    }

    /// The files of each interrupted load that shares files with the source. With a key, a load with further files
    /// does not get in the way: the server finds the rows that it has inserted.
    fn unfinished(&self, here: &[&EarlierLoad]) -> Result<Vec<Vec<u32>>> {
        let names: BTreeSet<&String> = self.source.files().iter().map(|file| &file.name).collect();
        let is_in_the_way = |load: &&&EarlierLoad| {
            load.mode == Mode::Append.name()
                && (self.plan.key == Key::None || load.files.names.iter().all(|name| names.contains(name)))
        };
        let loads: Vec<&EarlierLoad> =
            here.iter().filter(|load| !load.complete).filter(is_in_the_way).copied().collect();
        let same = |portion: &Portion<'_>, load: &EarlierLoad| {
            self.crate_db.id_of(portion, self.table, &self.plan.key) == load.id
        };
        earlier::broken_off(self.source, &loads, same).map_err(|error| error.at(self.place()))
    }

    /// Makes sure that the files' rows are in the table, as far as the records tell, and that the files still hold
    /// them.
    fn look_at(
        &self,
        found: &[Found<'_>],
        loads: &[LoadIntoTable],
        remembered: &mut Remembered,
    ) -> Result<()> {
        let mut client = Client::new(self.cluster, false);
        let rows = self.read_back(None).count(&mut client, self.control)?;
        self.refuse_fewer(rows, loads, remembered)?;
        let ids: BTreeSet<&str> = found.iter().map(|found| found.load.id.as_str()).collect();
        for id in ids {
            let of_load: Vec<&Found<'_>> = found.iter().filter(|found| found.load.id == *id).collect();
            let columns = loads.iter().find(|into| into.load.id == id).map(|into| self.columns_of(into));
            remembered.already.extend(self.of_load(&mut client, &of_load, columns.flatten())?);
        }
        remembered.already.sort_unstable_by_key(|already| already.file);
        let are_same = loads.iter().all(|into| into.filled.is_empty() || into.filled == filled(self.plan));
        match (self.options.verify, are_same) {
            (true, true) => self.verify(&mut client, rows, loads, remembered),
            (true, false) => {
                remembered.note_other_columns();
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    /// Compares the table's count with the one at the end of the last load into it.
    fn refuse_fewer(&self, rows: u64, loads: &[LoadIntoTable], remembered: &mut Remembered) -> Result<()> {
        let last = loads
            .iter()
            .filter(|into| into.load.complete)
            .max_by_key(|into| into.completed.as_deref().map(by_time));
        let at_end = last.map_or(0, |last| last.rows);
        if rows >= at_end {
            return Ok(());
        }
        let what =
            format!("the table has {rows} rows; it had {at_end} when the last load into it was complete");
        if rows > 0 && !(remembered.new.is_empty() && remembered.unfinished.is_empty()) {
            remembered.notes.push(what.into());
            return Ok(());
        }
        Err(Error::new(Kind::Changed, what).at(self.place()).advise(
            "load the files once more with --again (rows whose key is in the table are not added), or forget the loads \
             (sawmill load forget) if the rows were deleted on purpose",
        ))
    }

    /// The columns that a load fills, as this source has them; `None` if it lacks one.
    fn columns_of(&self, into: &LoadIntoTable) -> Option<Arc<Vec<Column>>> {
        if into.filled.is_empty() {
            return Some(Arc::clone(&self.plan.columns));
        }
        let column = |name: &String| self.plan.columns.iter().find(|column| column.name == *name).cloned();
        into.filled.iter().map(column).collect::<Option<Vec<_>>>().map(Arc::new)
    }

    /// Checks the rows that a load has inserted for these files, and that the files still hold them, as far as the
    /// load's columns are known.
    fn of_load(
        &self,
        client: &mut Client,
        found: &[&Found<'_>],
        columns: Option<Arc<Vec<Column>>>,
    ) -> Result<Vec<AlreadyLoaded>> {
        let Some(load) = found.first().map(|found| found.load) else { return Ok(Vec::new()) };
        let units = self.checkpoints.units(client, &load.id, self.control)?;
        let portion = Portion::new(self.source, found.iter().map(|found| found.file).collect());
        let places: HashMap<u32, u32> = (0..).zip(found).map(|(at, found)| (found.place, at)).collect();
        let in_portion = |key: &UnitKey| places.get(&key.file).map(|at| UnitKey { file: *at, ..*key });
        let units: BTreeMap<UnitKey, UnitRecord> =
            units.into_iter().filter_map(|(key, unit)| Some((in_portion(&key)?, unit))).collect();
        let untrusted = load.files.untrusted(portion.files());
        let looked_at: BTreeSet<u32> =
            (0..found.len() as u32).filter(|at| self.options.verify || untrusted.contains(at)).collect();
        if let Some(columns) = &columns {
            self.compare(&portion, load, &units, (&looked_at, columns))?;
        }
        if !untrusted.is_empty() && columns.is_some() {
            let now = load.files.with_stamps_of(portion.files());
            self.checkpoints.set_stamps(client, &load.id, &now, self.control)?;
        }
        let already = (0..).zip(found).map(|(at, found)| {
            let mut file = AlreadyLoaded { file: found.file, tally: self.nothing(), rejected: 0, units: 0 };
            for (_, unit) in units.iter().filter(|(key, _)| key.file == at) {
                file.tally.add(&unit.tally);
                file.rejected += unit.rejected;
                file.units += 1;
            }
            file
        });
        Ok(already.collect())
    }

    fn compare(
        &self,
        portion: &Portion<'_>,
        load: &EarlierLoad,
        units: &BTreeMap<UnitKey, UnitRecord>,
        (looked_at, columns): (&BTreeSet<u32>, &Arc<Vec<Column>>),
    ) -> Result<()> {
        if looked_at.is_empty() {
            return Ok(());
        }
        let of_looked_at = || units.iter().filter(|(key, _)| looked_at.contains(&key.file));
        let refused = WithoutRefused::refused(of_looked_at());
        let encode = Arc::new(EncodePlan {
            rows: self.crate_db.options.request_rows(),
            bytes: self.options.batch_bytes.clamp(4096, CrateDb::MAX_BATCH_BYTES),
            longest_row: longest_row(0),
            columns: false,
            leave_out: of_looked_at().any(|(_, unit)| unit.rejected > 0),
            files: portion.files().iter().map(file_hash).collect(),
            plan: Plan { columns: Arc::clone(columns), ..self.plan.clone() },
        });
        let bodies = Bodies::new(encode.bytes);
        let encoder = || -> Result<Box<dyn BatchEncoder>> {
            Ok(Box::new(WithoutRefused::new(&encode, &bodies, &refused)))
        };
        let units = units.iter().map(|(key, unit)| (*key, &unit.tally)).collect();
        let recorded = Recorded { load, files: looked_at, units, columns: columns.len() };
        recorded.compare(portion, &encoder, self.options, self.control)
    }

    /// Compares the files' rows with those that the table has, where these can be distinguished from others.
    fn verify(
        &self,
        client: &mut Client,
        rows: u64,
        loads: &[LoadIntoTable],
        remembered: &mut Remembered,
    ) -> Result<()> {
        let (expected, read) = match &self.plan.key {
            Key::Row(column) => {
                let named: Vec<_> = (remembered.already.iter())
                    .filter_map(|already| self.source.files().get(already.file as usize))
                    .collect();
                let others = loads.iter().filter(|into| !self.is_of_same_rows(&into.load));
                let shared = others.flat_map(|into| into.load.files.names.iter());
                let shared: BTreeSet<&String> = shared.collect();
                match named.iter().any(|file| shared.contains(&file.name)) {
                    true => (None, self.read_back(None)),
                    false => {
                        let hashes = named.into_iter().map(file_hash);
                        let files = remembered.loaded(self.plan.columns.len());
                        (Some(files), self.read_back(Some(OfFiles::new(column, hashes))))
                    }
                }
            }
            Key::Own(_) | Key::Tags(_) | Key::None => {
                (self.all_of_table(client, rows, loads)?, self.read_back(None))
            }
        };
        let Some(expected) = expected else {
            remembered.note_other_rows();
            return Ok(());
        };
        let names = self.plan.columns.iter().map(|column| column.name.clone()).collect();
        let all = Verification::new(names, expected, read.run(self.control)?);
        remembered.verify(all, &self.place())
    }

    /// The sum of all loads into the table, if they account for all its rows.
    fn all_of_table(&self, client: &mut Client, rows: u64, loads: &[LoadIntoTable]) -> Result<Option<Tally>> {
        let mut all = self.nothing();
        for LoadIntoTable { load, .. } in loads {
            if !self.is_of_same_rows(load) {
                return Ok(None);
            }
            let units = self.checkpoints.units(client, &load.id, self.control)?;
            units.values().for_each(|unit| all.add(&unit.tally));
        }
        Ok((all.rows == rows).then_some(all))
    }

    fn nothing(&self) -> Tally {
        Tally::empty(self.plan.columns.len())
    }

    fn read_back(&self, of_files: Option<OfFiles>) -> ReadBack<'_> {
        ReadBack {
            cluster: self.cluster,
            table: self.table,
            columns: &self.plan.columns,
            of_files,
            key: paging_key(&self.plan.key, self.primary),
            retries: self.options.retries,
        }
    }

    fn place(&self) -> String {
        format!("table {}, {}", self.table, self.cluster.server)
    }
}

/// The loads with other rows or columns of the same files, which therefore share row keys with this one.
pub(crate) fn sharing_files<'l>(
    loads: &'l [LoadIntoTable],
    source: &'l dyn Source,
    mapping: &'l str,
    id: &'l str,
) -> impl Iterator<Item = &'l LoadIntoTable> {
    let named = |(name, fingerprint): (&String, &String)| {
        source.files().iter().any(|file| file.name == *name && file.fingerprint == *fingerprint)
    };
    loads.iter().filter(move |LoadIntoTable { load, .. }| {
        load.id != id
            && load.mapping != mapping
            && load.files.names.iter().zip(&load.files.fingerprints).any(named)
    })
}
