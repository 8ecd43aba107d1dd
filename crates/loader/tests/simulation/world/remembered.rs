//! Files of earlier loads, as `sawmill-postgres` recognises them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sawmill_loader::{
    AlreadyLoaded, BatchEncoder, EarlierLoad, Found, LoadOptions, Portion, Remembered, Tally, Verification,
    earlier,
};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey};

use super::connection::Connection;
use super::fault::Step;
use super::server::{Change, LoadRow, TABLE};
use super::target::{FoundTable, SimulatedTarget, find, presence, units};
use super::writer::{Encoder, sum_of};

/// Looks up the source's files in the records.
pub fn remembered(
    target: &SimulatedTarget,
    source: &dyn Source,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<Option<Remembered>> {
    let connection = Connection::open(&target.process)?;
    let Some(table) = find(&connection, TABLE)? else { return Ok(None) };
    let loads: Vec<EarlierLoad> = connection.request(Step::Remember, |server, _| {
        let mut loads: Vec<(&String, &LoadRow)> = server.data.loads.iter().collect();
        loads.sort_by_key(|(_, row)| row.begun);
        Ok(loads.into_iter().map(|(id, row)| earlier_load(id, row)).collect())
    })?;
    let remembering = Remembering { target, source, options, control, connection: &connection, table };
    remembering.run(&loads)
}

fn earlier_load(id: &str, row: &LoadRow) -> EarlierLoad {
    EarlierLoad {
        id: id.to_owned(),
        mode: row.mode.to_owned(),
        table: Some(row.oid),
        unit_rows: row.unit_rows,
        files: row.files.clone(),
        complete: row.complete,
        mapping: row.mapping.clone(),
    }
}

struct Remembering<'r> {
    target: &'r SimulatedTarget,
    source: &'r dyn Source,
    options: &'r LoadOptions,
    control: &'r Control<'r>,
    connection: &'r Connection,
    table: FoundTable,
}

impl Remembering<'_> {
    fn run(&self, loads: &[EarlierLoad]) -> Result<Option<Remembered>> {
        let (here, elsewhere): (Vec<&EarlierLoad>, Vec<&EarlierLoad>) =
            loads.iter().partition(|load| load.table == Some(self.table.oid));
        let own = self.target.id_of(self.source);
        let here = earlier::without_void(self.source, here, &own, |load| {
            Ok(units(self.connection, &load.id, Step::ReadUnits)?.is_empty())
        })?;
        let same = |portion: &Portion<'_>, load: &EarlierLoad| self.target.id_of(portion) == load.id;
        let unfinished = earlier::broken_off(self.source, &here, same)?;
        if self.options.again {
            return Ok(earlier::loaded_again(self.source, &here, &own, unfinished));
        }
        let found = earlier::found(self.source, &here);
        let in_found: BTreeSet<u32> = found.iter().map(|found| found.file).collect();
        if elsewhere.iter().any(|load| !load.files.names.is_empty())
            && self.table.rows > 0
            && in_found.is_empty()
        {
            let what = "files were loaded into a table of this name that no longer exists";
            return Err(Error::new(Kind::Mismatch, what));
        }
        if earlier::is_known_list(self.source, &here, &own) {
            return Ok(None);
        }
        let mut remembered = Remembered::with_the_rest(self.source, unfinished, in_found);
        earlier::of_another_content(self.source, &here, &mut remembered, self.options)?;
        if found.is_empty() && remembered.unfinished.is_empty() && remembered.notes.is_empty() {
            return Ok(None);
        }
        if !found.is_empty() {
            self.look_at(&found, &mut remembered)?;
        }
        Ok(Some(remembered))
    }

    /// Checks that the files' rows are in the table, and that the files still hold them.
    fn look_at(&self, found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        let presence = presence(self.connection, self.table, None)?;
        let nothing_to_do = remembered.new.is_empty() && remembered.unfinished.is_empty();
        if presence.lacks_rows() && (nothing_to_do || presence.rows == 0) {
            return Err(Error::new(Kind::Mismatch, "the table lacks rows"));
        }
        let ids: BTreeSet<&str> = found.iter().map(|found| found.load.id.as_str()).collect();
        for id in ids {
            let of_load: Vec<&Found<'_>> = found.iter().filter(|found| found.load.id == *id).collect();
            remembered.already.extend(self.of_load(&of_load)?);
        }
        remembered.already.sort_unstable_by_key(|already| already.file);
        if self.options.verify {
            self.verify(remembered)?;
        }
        Ok(())
    }

    fn of_load(&self, found: &[&Found<'_>]) -> Result<Vec<AlreadyLoaded>> {
        let Some(load) = found.first().map(|found| found.load) else { return Ok(Vec::new()) };
        let units = units(self.connection, &load.id, Step::ReadUnits)?;
        let portion = Portion::new(self.source, found.iter().map(|found| found.file).collect());
        let places: HashMap<u32, u32> = (0..).zip(found).map(|(at, found)| (found.place, at)).collect();
        let in_portion = |key: &UnitKey| places.get(&key.file).map(|at| UnitKey { file: *at, ..*key });
        let recorded: BTreeMap<UnitKey, &Tally> =
            units.iter().filter_map(|(key, tally)| Some((in_portion(key)?, tally))).collect();
        let untrusted = load.files.untrusted(portion.files());
        let all = 0..found.len() as u32;
        let files: BTreeSet<u32> = all.filter(|at| self.options.verify || untrusted.contains(at)).collect();
        let recorded = earlier::Recorded { load, files: &files, units: recorded, columns: 1 };
        let encoder =
            || -> Result<Box<dyn BatchEncoder>> { Ok(Box::new(Encoder::new(self.options.batch_bytes))) };
        if !files.is_empty() {
            recorded.compare(&portion, &encoder, self.options, self.control)?;
        }
        if !untrusted.is_empty() {
            let now = load.files.with_stamps_of(portion.files());
            self.connection.request(Step::RecordStamps, |server, id| {
                server.change(id, [Change::Stamps(load.id.clone(), now)]);
                server.commit(id, false)
            })?;
        }
        let already = (0..).zip(found).map(|(at, found)| {
            let mut tally = Tally::empty(1);
            let of_file = || recorded.units.iter().filter(|(key, _)| key.file == at);
            of_file().for_each(|(_, unit)| tally.add(unit));
            AlreadyLoaded { file: found.file, tally, rejected: 0, units: of_file().count() as u64 }
        });
        Ok(already.collect())
    }

    /// Compares the table with the records, if it holds nothing else.
    fn verify(&self, remembered: &mut Remembered) -> Result<()> {
        let presence = presence(self.connection, self.table, None)?;
        if presence.before > 0 || presence.rows != presence.recorded {
            remembered.note_other_rows();
            return Ok(());
        }
        let (number, oid) = (self.target.process.number, self.table.oid);
        let (recorded, rows) = self.connection.request(Step::ReadTable, |server, _| {
            let mut recorded = Tally::empty(1);
            let loads = server.data.loads.iter().filter(|(_, row)| row.oid == oid);
            let of_loads = loads.flat_map(|(id, _)| server.data.units_of(id));
            of_loads.for_each(|(_, tally)| recorded.add(tally));
            let rows = server.data.tables.get(&oid).map(|table| table.rows.clone()).unwrap_or_default();
            server.audit.verified[number] = Some((oid, rows.clone()));
            Ok((recorded, rows))
        })?;
        let all = Verification::new(vec!["value".to_owned()], recorded, sum_of(&rows));
        remembered.verify(all, TABLE)
    }
}
