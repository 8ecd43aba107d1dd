//! Reads the units of a source on several threads, and hands out their batches in the order of the source.
//!
//! Each unit has a channel that holds all of its batches, so that a thread that is ahead finishes its unit
//! without waiting. Memory is bounded: the units in work, and as many finished ones.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::RecordBatch;
use sawmill_profile::{caught, joined, spawn_scoped};
use sawmill_source::{Control, Result, Source, Unit};

/// Rows of a unit and of a batch.
const UNIT_ROWS: u64 = 32 * 1024;
const BATCH_ROWS: usize = 4096;

type Batches = Receiver<Result<RecordBatch>>;

/// Passes all batches to `each`, in order.
///
/// # Errors
/// The first error, in the order of the rows, of the source or of `each`; a raised cancel flag; a panic of a thread.
pub(super) fn read<E: From<sawmill_source::Error>>(
    source: &dyn Source,
    threads: usize,
    control: &Control<'_>,
    mut each: impl FnMut(&RecordBatch) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut units: Vec<Unit> = source.plan(UNIT_ROWS).concat();
    units.sort_unstable_by_key(|unit| unit.key);
    let units = Mutex::new(units.into_iter());
    std::thread::scope(|scope| {
        // A finished unit waits here for those before it.
        let (started, in_order) = sync_channel::<Batches>(threads);
        let mut readers = Vec::with_capacity(threads);
        for number in 0..threads {
            let started = started.clone();
            let units = &units;
            let reading = spawn_scoped(scope, &format!("reader-{number}"), move || {
                let mut reader = source.reader(BATCH_ROWS);
                loop {
                    // Channels are handed over in the order of the units.
                    let mut next = units.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(unit) = next.next() else { return Ok(()) };
                    let (batches, received) = sync_channel(UNIT_ROWS as usize / BATCH_ROWS);
                    if started.send(received).is_err() {
                        return Ok(());
                    }
                    drop(next);
                    if !read_unit(reader.as_mut(), &unit, &batches, control) {
                        return Ok(());
                    }
                }
            });
            match reading {
                Ok(reading) => readers.push(reading),
                // Fewer threads do the same work, but one is required.
                Err(failure) if number == 0 => return Err(sawmill_source::Error::from(failure).into()),
                Err(_) => break,
            }
        }
        drop(started);
        for unit in in_order {
            for batch in unit {
                control.check()?;
                each(&batch?)?;
            }
        }
        Ok(readers.into_iter().try_for_each(joined)?)
    })
}

/// Sends the batches of a unit; returns whether the reader may go on.
fn read_unit(
    reader: &mut dyn sawmill_source::UnitReader,
    unit: &Unit,
    batches: &SyncSender<Result<RecordBatch>>,
    control: &Control<'_>,
) -> bool {
    let read = || -> Result<bool> {
        reader.start(unit)?;
        while let Some(batch) = reader.next_batch()? {
            control.check()?;
            // The receiver is gone after an error of the writer.
            if batches.send(Ok(batch)).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match caught("reader", read) {
        Ok(goes_on) => goes_on,
        Err(error) => {
            let _ = batches.send(Err(error));
            false
        }
    }
}
