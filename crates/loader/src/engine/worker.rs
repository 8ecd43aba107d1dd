//! The pair of threads of one connection, and recovery from a lost connection.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use sawmill_profile::{WaitKind, caught, joined, scope, span, spawn_scoped, turns, wait};
use sawmill_source::{Control, Error, Kind, Read, Result, RowPlace, Source, Unit, UnitKey, UnitReader};
use tokio::sync::mpsc::{self, error::TryRecvError, error::TrySendError};

use crate::engine::load::{CHANNEL, LoadOptions, backoff};
use crate::engine::progress::Progress;
use crate::engine::schedule::Schedule;
use crate::engine::target::{Arrived, Parcel, Parcels, Refusal, Session, UnitWriter};

/// The shared parts of a load that a worker needs.
pub(crate) struct Worker<'a> {
    /// The worker's number, from 1; the names of its threads end in it.
    pub number: usize,
    pub source: &'a dyn Source,
    pub session: &'a dyn Session,
    pub options: &'a LoadOptions,
    pub schedule: &'a Schedule,
    pub progress: &'a Progress,
    /// Its work in progress.
    pub in_flight: &'a InFlight,
}

/// A worker's work in progress; it outlives a lost connection.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Units that the decoder took from the schedule and that are not confirmed as committed.
    units: Mutex<VecDeque<Unit>>,
    /// The units in flight whose rows the progress already counts.
    counted: Mutex<HashSet<UnitKey>>,
    /// The worker's place in the schedule.
    place: Mutex<Option<usize>>,
}

/// Loads units until none is left. After a lost connection it waits, reconnects, and asks the target about
/// the units in flight: a commit may have happened although its answer was lost.
pub(crate) fn run_worker(worker: &Worker<'_>, control: &Control<'_>) -> Result<()> {
    let _attached = control.phase().attach(&format!("sender {}", worker.number));
    let (mut attempt, mut reconnecting) = (0, false);
    loop {
        let mut arrived = false;
        let taken_back = worker.take_back_lost(reconnecting, control);
        let tried = taken_back.and_then(|()| try_units(worker, control, &mut arrived));
        match tried {
            Ok(()) => return Ok(()),
            Err(error) => {
                if arrived {
                    attempt = 0;
                }
                if error.kind() != Kind::Connection || attempt >= worker.options.retries {
                    return Err(error);
                }
                {
                    let _lost = wait(WaitKind::Network);
                    control.sleep(backoff(attempt))?;
                }
                attempt += 1;
                reconnecting = true;
                worker.progress.retries.fetch_add(1, Relaxed);
            }
        }
    }
}

fn try_units(worker: &Worker<'_>, control: &Control<'_>, arrived: &mut bool) -> Result<()> {
    let mut writer = {
        let _connecting = wait(WaitKind::Network);
        let mut writer = worker.session.writer(control)?;
        for unit in worker.held() {
            if let Some(tally) = writer.committed(unit.key, control)? {
                worker.confirm(&Arrived { unit, tally }, control);
                *arrived = true;
            }
        }
        writer
    };
    let (parcels, mut received) = mpsc::channel(CHANNEL);
    let name = format!("encoder-{}", worker.number);
    scope(|scope| {
        let decoder = spawn_scoped(scope, &name, || {
            let _attached = control.phase().attach(&format!("encoder {}", worker.number));
            let parcels = parcels;
            if let Err(error) = caught(&name, || decode_units(worker, control, &parcels)) {
                // The receiver is gone if the connection was lost; its error is the one to report.
                let _ = send(&parcels, Parcel::Failed(error));
            }
            Ok(())
        })?;
        let sent = send_units(worker, control, writer.as_mut(), &mut received, arrived);
        drop(received);
        sent.and(joined(decoder))
    })
}

fn send_units(
    worker: &Worker<'_>,
    control: &Control<'_>,
    writer: &mut dyn UnitWriter,
    parcels: &mut Parcels,
    arrived: &mut bool,
) -> Result<()> {
    while let Some(parcel) = receive(parcels) {
        match parcel {
            Parcel::Unit(unit) => {
                let Some(committed) = writer.write(&unit, parcels, control)? else { return control.check() };
                worker.count(&unit, control);
                *arrived |= !committed.is_empty();
                committed.iter().for_each(|committed| worker.confirm(committed, control));
            }
            Parcel::Failed(error) => return Err(error),
            Parcel::Rows(_) | Parcel::End(_) => {
                return Err(Error::new(Kind::Source, "rows came outside of a unit"));
            }
        }
    }
    control.check()?;
    for committed in writer.close(control)? {
        worker.confirm(&committed, control);
        *arrived = true;
    }
    Ok(())
}

fn receive(parcels: &mut Parcels) -> Option<Parcel> {
    let _empty = wait(WaitKind::ChannelEmpty);
    received(parcels)
}

/// The next parcel; `None` when the encoder has ended. For writers that wait for nothing else.
pub fn received(parcels: &mut Parcels) -> Option<Parcel> {
    let parcels = RefCell::new(parcels);
    let attempt = || match parcels.borrow_mut().try_recv() {
        Ok(parcel) => Some(Some(parcel)),
        Err(TryRecvError::Disconnected) => Some(None),
        Err(TryRecvError::Empty) => None,
    };
    turns::wait_for(attempt, || parcels.borrow_mut().blocking_recv())
}

/// Sends a parcel when the channel has room for it.
fn send(parcels: &mpsc::Sender<Parcel>, parcel: Parcel) -> Result<()> {
    let parcel = Cell::new(Some(parcel));
    let attempt = || match parcels.try_send(parcel.take()?) {
        Ok(()) => Some(Ok(())),
        Err(TrySendError::Closed(_)) => Some(Err(Error::cancelled())),
        Err(TrySendError::Full(back)) => {
            parcel.set(Some(back));
            None
        }
    };
    let blocking = || match parcel.take() {
        Some(parcel) => parcels.blocking_send(parcel).map_err(|_| Error::cancelled()),
        None => Ok(()),
    };
    turns::wait_for(attempt, blocking)
}

/// Decodes and encodes the units in flight, then units from the schedule.
fn decode_units(worker: &Worker<'_>, control: &Control<'_>, parcels: &mpsc::Sender<Parcel>) -> Result<()> {
    let read = Read { numbered: worker.session.numbers_rows(), broken_text: true, ..Read::default() };
    let mut reader = worker.source.open(read, worker.options.batch_rows);
    let mut encoder = worker.session.encoder()?;
    let hand_over = |parcel| {
        let _full = wait(WaitKind::ChannelFull);
        send(parcels, parcel)
    };
    let mut place = worker.in_flight.place.lock().unwrap_or_else(PoisonError::into_inner);
    let mut held = worker.held();
    loop {
        control.check()?;
        let unit = match held.pop_front() {
            Some(unit) => unit,
            None => {
                let Some(unit) = worker.schedule.next(&mut place) else { return Ok(()) };
                worker.in_flight.units.lock().unwrap_or_else(PoisonError::into_inner).push_back(unit);
                unit
            }
        };
        hand_over(Parcel::Unit(unit))?;
        reader.start(&unit)?;
        if let Some(upcoming) = worker.schedule.upcoming() {
            reader.expect(&upcoming);
        }
        encoder.begin_unit(&unit);
        let mut emit = |block: crate::engine::target::Block| {
            worker.progress.sent(block.wire_bytes(), control);
            hand_over(Parcel::Rows(block))
        };
        let mut row = unit.key.first_row;
        let decode = |reader: &mut dyn UnitReader| {
            let decoding = span("decode");
            let batch = reader.next_batch();
            if let Ok(Some(batch)) = &batch {
                decoding.add_rows(batch.num_rows() as u64);
            }
            batch
        };
        while let Some(batch) = decode(reader.as_mut())? {
            control.check()?;
            let encoding = span("encode");
            encoding.add_rows(batch.num_rows() as u64);
            encoder
                .encode(&batch, &mut emit)
                .map_err(|refusal| refusal_error(refusal, worker.source, reader.as_ref(), unit.key, row))?;
            row += batch.num_rows() as u64;
        }
        let tally = {
            let _encoding = span("encode");
            encoder.end_unit(&mut emit)?
        };
        hand_over(Parcel::End(tally))?;
    }
}

/// Turns a refusal into an error that locates the value in the source's files. `row` is the batch's first
/// row, counted as units count.
pub(crate) fn refusal_error(
    refusal: Refusal,
    source: &dyn Source,
    reader: &dyn UnitReader,
    unit: UnitKey,
    row: u64,
) -> Error {
    let (in_batch, column, what) = match refusal {
        Refusal::Stopped(error) => return error,
        Refusal::Value { row, column, what } => (row, column, what),
    };
    let file = source.name_of(unit.file);
    let row = reader.row_in_unit(in_batch).unwrap_or(row + in_batch as u64);
    let row = match source.place_of_row(unit, row) {
        Some(RowPlace { name: Some(name), .. }) => {
            return Error::new(Kind::Value, what)
                .at(format!("{name}, column {column:?}"))
                .advise("correct the value in the source, or collect such rows with --rejects");
        }
        Some(RowPlace { row, name: None }) => format!("row {row}"),
        None => format!("row {row} of the loaded rows"),
    };
    Error::new(Kind::Value, what)
        .at(format!("{file}, row group {}, {row}, column {column:?}", unit.row_group))
        .advise(
            "rows count from 0 in their row group; correct the value in the source, or collect such rows with --rejects",
        )
}

impl Worker<'_> {
    fn held(&self) -> VecDeque<Unit> {
        self.in_flight.units.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// After a lost connection: makes confirmed units that the target lost available again.
    fn take_back_lost(&self, reconnecting: bool, control: &Control<'_>) -> Result<()> {
        if reconnecting {
            let lost = self.progress.take_off_lost(self.source, self.session, control)?;
            self.schedule.put_back(lost);
        }
        Ok(())
    }

    /// Records that the unit was written; it may not be committed yet, and may have to be written again.
    fn count(&self, unit: &Unit, control: &Control<'_>) {
        let mut counted = self.in_flight.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.insert(unit.key) && !self.progress.is_sent_again(unit.key) {
            control.phase().add_rows(unit.rows);
        }
    }

    fn confirm(&self, committed: &Arrived, control: &Control<'_>) {
        self.count(&committed.unit, control);
        let key = committed.unit.key;
        self.in_flight.counted.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        self.in_flight.units.lock().unwrap_or_else(PoisonError::into_inner).retain(|held| held.key != key);
        self.progress.committed(committed);
    }
}
