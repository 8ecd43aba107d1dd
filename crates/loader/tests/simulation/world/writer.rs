//! Copies units and commits them together with their records, as `sawmill-postgres` does.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use sawmill_loader::{
    Arrived, BatchEncoder, Block, Parcel, Parcels, Refusal, Share, Tally, UnitWriter, received,
};
use sawmill_source::{Control, Error, Kind, Result, Unit, UnitKey};

use super::connection::Connection;
use super::fault::Step;
use super::mistake::Mistake;
use super::server::Change;
use super::session::SimulatedSession;
use super::target::lock_of;

/// The totals of rows.
pub fn sum_of(rows: &[u64]) -> Tally {
    let mut tally = Tally::empty(1);
    rows.iter().for_each(|row| add(&mut tally, *row));
    tally
}

fn add(tally: &mut Tally, row: u64) {
    tally.rows += 1;
    tally.non_null[0] += 1;
    tally.content_sum.add(&row.to_le_bytes());
}

/// Eight bytes a row.
pub struct Encoder {
    block: Vec<u8>,
    block_bytes: usize,
    tally: Tally,
}

impl Encoder {
    pub fn new(block_bytes: usize) -> Self {
        Self { block: Vec::new(), block_bytes, tally: Tally::empty(1) }
    }

    fn emit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<()> {
        let bytes = std::mem::take(&mut self.block);
        let rows = bytes.len() as u64 / 8;
        emit(Block::new(Bytes::from(bytes), rows))
    }
}

impl BatchEncoder for Encoder {
    fn encode(
        &mut self,
        batch: &RecordBatch,
        emit: &mut dyn FnMut(Block) -> Result<()>,
    ) -> Result<(), Refusal> {
        for value in batch.column(0).as_primitive::<Int64Type>().values() {
            add(&mut self.tally, *value as u64);
            self.block.extend_from_slice(&value.to_le_bytes());
            if self.block.len() >= self.block_bytes {
                self.emit(emit).map_err(Refusal::Stopped)?;
            }
        }
        Ok(())
    }

    fn end_unit(&mut self, emit: &mut dyn FnMut(Block) -> Result<()>) -> Result<Tally> {
        if !self.block.is_empty() {
            self.emit(emit)?;
        }
        Ok(std::mem::replace(&mut self.tally, Tally::empty(1)))
    }
}

/// A connection that copies units, several in a transaction.
pub struct Writer<'s> {
    session: &'s SimulatedSession<'s>,
    connection: Connection,
    open: Option<Open>,
}

/// A transaction that takes units.
struct Open {
    oid: u32,
    units: Vec<Arrived>,
}

impl<'s> Writer<'s> {
    pub fn new(session: &'s SimulatedSession<'s>, connection: Connection) -> Self {
        Self { session, connection, open: None }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.session.target.is(mistake)
    }

    fn begin(&mut self) -> Result<()> {
        let (written, load) = (self.session.written, &self.session.id);
        let part = match self.session.options.share {
            Share::Part(part) => Some(lock_of(load, part)),
            Share::Whole | Share::Finish => None,
        };
        let oid = self.connection.request(Step::BeginUnits, |server, id| {
            server.rollback(id);
            server.writes(id, part.into_iter().chain([load.clone()]).collect());
            let found = server.data.table(written).map(|(oid, _)| oid);
            found.ok_or_else(|| Error::new(Kind::Server, "the table that is written does not exist"))
        })?;
        self.open = Some(Open { oid, units: Vec::new() });
        Ok(())
    }

    /// Sends the rows of a unit. `ended` says whether its end was received.
    fn send(&self, unit: &Unit, parcels: &mut Parcels, ended: &mut bool) -> Result<Option<Tally>> {
        let oid = self.open.as_ref().map_or(0, |open| open.oid);
        loop {
            match received(parcels) {
                Some(Parcel::Rows(block)) => {
                    let rows = block.bytes.as_chunks::<8>().0.iter().map(|row| u64::from_le_bytes(*row));
                    let rows: Vec<u64> = rows.collect();
                    self.connection.request(Step::Copy, |server, id| {
                        server.change(id, [Change::Rows(oid, rows)]);
                        Ok(())
                    })?;
                }
                Some(Parcel::End(tally)) if tally.rows != unit.rows => {
                    return Err(Error::new(Kind::Mismatch, "a unit was read with another number of rows"));
                }
                Some(Parcel::End(tally)) => {
                    *ended = true;
                    return Ok(Some(tally));
                }
                Some(Parcel::Failed(error)) => return Err(error),
                Some(Parcel::Unit(_)) => return Err(Error::new(Kind::Source, "a unit inside a unit")),
                None => return Ok(None),
            }
        }
    }

    fn commit(&mut self) -> Result<Vec<Arrived>> {
        let Some(open) = &self.open else { return Ok(Vec::new()) };
        if open.units.is_empty() {
            return Ok(Vec::new());
        }
        match self.commit_open(open) {
            Ok(()) => Ok(self.open.take().map_or_else(Vec::new, |open| open.units)),
            Err(error) if error.kind() == Kind::Server && self.is(Mistake::IgnoreRefusal) => {
                Ok(self.open.take().map_or_else(Vec::new, |open| open.units))
            }
            Err(error) if error.kind() == Kind::Server => self.recorded_elsewhere(None, error),
            Err(error) => Err(error),
        }
    }

    fn commit_open(&self, open: &Open) -> Result<()> {
        let session = self.session;
        let units: Vec<(UnitKey, Tally)> =
            open.units.iter().map(|arrived| (arrived.unit.key, arrived.tally.clone())).collect();
        if self.is(Mistake::CommitBeforeRecord) {
            self.connection.commit(Step::CommitUnits)?;
        }
        let (record_first, columns) = (self.is(Mistake::RecordBeforeCommit), session.columns);
        let any_table = self.is(Mistake::AnyTable);
        self.connection.request(Step::RecordUnits, |server, id| {
            let recorded =
                units.iter().any(|(key, _)| server.data.units.contains_key(&(session.id.clone(), *key)));
            if recorded
                && !session.target.is(Mistake::NoUniqueKey)
                && !session.target.is(Mistake::ForgetToAsk)
            {
                return Err(Error::new(Kind::Server, "a unit is on record"));
            }
            let named = server.data.table(session.written).map(|(oid, _)| oid);
            if named != Some(session.oid) && !any_table {
                return Err(Error::new(Kind::Server, "the table's columns changed"));
            }
            let change = Change::Units(session.id.clone(), units, open.oid, columns);
            if record_first {
                return server.commit_alone(change);
            }
            server.change(id, [change]);
            Ok(())
        })?;
        self.connection.commit(Step::CommitUnits)
    }

    /// After a refusal: the records of the open units, which a killed predecessor may have committed.
    fn recorded_elsewhere(&mut self, under_way: Option<&Unit>, error: Error) -> Result<Vec<Arrived>> {
        let Some(open) = self.open.take() else { return Err(error) };
        let rolled_back = self.connection.request(Step::Rollback, |server, id| {
            server.rollback(id);
            Ok(())
        });
        if rolled_back.is_err() {
            return Err(error);
        }
        let units: Vec<Unit> =
            open.units.iter().map(|arrived| arrived.unit).chain(under_way.copied()).collect();
        let mut known = Vec::new();
        for unit in &units {
            let tally = self.ask(unit.key)?;
            known.extend(tally.map(|tally| Arrived { unit: *unit, tally }));
        }
        match known.len() {
            0 => Err(error),
            recorded if recorded < units.len() => {
                Err(Error::new(Kind::Connection, "another run has committed some of these units"))
            }
            _ => Ok(known),
        }
    }

    fn ask(&self, key: UnitKey) -> Result<Option<Tally>> {
        let id = self.session.id.clone();
        self.connection.request(Step::AskUnit, |server, _| Ok(server.data.units.get(&(id, key)).cloned()))
    }
}

impl UnitWriter for Writer<'_> {
    fn committed(&mut self, key: UnitKey, _control: &Control<'_>) -> Result<Option<Tally>> {
        if self.is(Mistake::ForgetToAsk) { Ok(None) } else { self.ask(key) }
    }

    fn write(
        &mut self,
        unit: &Unit,
        parcels: &mut Parcels,
        _control: &Control<'_>,
    ) -> Result<Option<Vec<Arrived>>> {
        if self.open.is_none() {
            self.begin()?;
        }
        let mut ended = false;
        let sent = match self.send(unit, parcels, &mut ended) {
            Err(error) if error.kind() == Kind::Server => {
                let known = self.recorded_elsewhere(Some(unit), error)?;
                while !ended {
                    match received(parcels) {
                        Some(Parcel::End(_)) | None => ended = true,
                        Some(Parcel::Failed(error)) => return Err(error),
                        Some(_) => {}
                    }
                }
                return Ok(Some(known));
            }
            sent => sent?,
        };
        let (Some(open), Some(tally)) = (&mut self.open, sent) else { return Ok(None) };
        open.units.push(Arrived { unit: *unit, tally });
        let mut committed = match open.units.len() >= self.session.target.process.world.setting.grouped {
            true => self.commit()?,
            false => Vec::new(),
        };
        if self.is(Mistake::CountTwice) {
            committed.extend(committed.first().cloned());
        }
        Ok(Some(committed))
    }

    fn close(&mut self, _control: &Control<'_>) -> Result<Vec<Arrived>> {
        self.commit()
    }
}
