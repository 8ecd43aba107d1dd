//! Files of earlier loads, looked up in the server's records.

use std::collections::{BTreeMap, HashMap};

use sawmill_loader::{
    BatchEncoder, Encoding, Found, History, LoadOptions, LoadRecord, Loads, Note, Portion, Presence,
    RecordedFiles, RecordedUnit, Remembered, Share, Tally, Verification, remember,
};
use sawmill_source::{Control, Mapping, Result, Source, UnitKey};

use super::connection::Connection;
use super::fault::Step;
use super::server::{Change, TABLE};
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
    let loads: Vec<LoadRecord> = connection.request(Step::Remember, |server, _| {
        let mut loads: Vec<_> = server.data.loads.values().collect();
        loads.sort_by_key(|row| row.begun);
        Ok(loads.into_iter().map(|row| row.record.clone()).collect())
    })?;
    let (here, elsewhere): (Vec<_>, Vec<_>) = loads.iter().partition(|load| load.table_oid == table.oid);
    let loads = Loads { here, elsewhere, otherwise: Vec::new() };
    let history = SimulatedHistory { target, options, connection: &connection, table };
    remember(&history, loads, &Mapping::default(), source, options, control)
}

struct SimulatedHistory<'r> {
    target: &'r SimulatedTarget,
    options: &'r LoadOptions,
    connection: &'r Connection,
    table: FoundTable,
}

impl SimulatedHistory<'_> {
    fn presence(&self) -> Result<Presence> {
        presence(self.connection, self.table, None)
    }
}

impl History for SimulatedHistory<'_> {
    fn id_of(&self, files: &dyn Source) -> String {
        self.target.id_of(files)
    }

    fn place(&self) -> String {
        TABLE.to_owned()
    }

    fn holds_nothing(&self, load: &LoadRecord) -> Result<bool> {
        Ok(self.options.share == Share::Whole
            && units(self.connection, &load.id, Step::ReadUnits)?.is_empty())
    }

    fn refuse_unknown(&self, file: &str) -> Result<()> {
        self.presence()?.refuse_unknown(&format!("{file} was"), self.place())
    }

    fn check(&self, _found: &[Found<'_>], remembered: &mut Remembered) -> Result<()> {
        self.presence()?.check(remembered, self.place())
    }

    fn units(&self, load: &LoadRecord) -> Result<HashMap<UnitKey, RecordedUnit>> {
        let units = units(self.connection, &load.id, Step::ReadUnits)?.into_iter();
        Ok(units.map(|(key, tally)| (key, RecordedUnit { tally, ..RecordedUnit::default() })).collect())
    }

    fn encoding<'e>(
        &'e self,
        _load: &LoadRecord,
        _portion: &Portion<'_>,
        _units: &BTreeMap<UnitKey, RecordedUnit>,
    ) -> Result<Option<Encoding<'e>>> {
        let bytes = self.options.batch_bytes;
        let encoder = move || -> Result<Box<dyn BatchEncoder>> { Ok(Box::new(Encoder::new(bytes))) };
        Ok(Some(Encoding { columns: 1, encoders: Box::new(encoder) }))
    }

    fn set_stamps(&self, load: &LoadRecord, stamped: &RecordedFiles) -> Result<()> {
        self.connection.request(Step::RecordStamps, |server, id| {
            server.change(id, [Change::Stamps(load.id.clone(), stamped.clone())]);
            server.commit(id, false)
        })
    }

    fn compare(&self, _remembered: &Remembered) -> Result<std::result::Result<Verification, Note>> {
        if !self.presence()?.is_known_whole() {
            return Ok(Err(Note::other_rows()));
        }
        let (number, oid) = (self.target.process.number, self.table.oid);
        let (recorded, rows) = self.connection.request(Step::ReadTable, |server, _| {
            let mut recorded = Tally::empty(1);
            let loads = server.data.loads.iter().filter(|(_, row)| row.record.table_oid == oid);
            let of_loads = loads.flat_map(|(id, _)| server.data.units_of(id));
            of_loads.for_each(|(_, tally)| recorded.add(tally));
            let rows = server.data.tables.get(&oid).map(|table| table.rows.clone()).unwrap_or_default();
            server.audit.verified[number] = Some((oid, rows.clone()));
            Ok((recorded, rows))
        })?;
        Ok(Ok(Verification::new(vec!["value".to_owned()], recorded, sum_of(&rows))))
    }
}
