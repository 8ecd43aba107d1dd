//! Reads the units of a source on a pool of threads, and takes what they hold in the order of the source.
//!
//! Memory is bounded: each thread holds a part of its unit, and a few finished parts wait for earlier ones.

use std::sync::{Mutex, PoisonError};

use sawmill_profile::Pool;
use sawmill_source::{Control, Result, Source, Unit, UnitReader};

use crate::error::Error;

/// How units are read.
pub(super) struct UnitsInOrder<'a> {
    pub source: &'a dyn Source,
    /// The threads' name, and how many there are.
    pub threads: (&'a str, usize),
    /// Rows of a unit and of a batch.
    pub unit_rows: u64,
    pub batch_rows: usize,
}

/// Maximum decoded bytes of a unit, because a unit is held whole.
const MAX_UNIT_BYTES: u64 = 64 << 20;

impl UnitsInOrder<'_> {
    /// The units. The wider the rows, the fewer of them a unit has.
    fn units(&self) -> Vec<Unit> {
        let units: Vec<Unit> = self.source.plan(self.unit_rows).concat();
        let stored = units.iter().map(|unit| unit.bytes / unit.rows.max(1)).max().unwrap_or(0);
        let rows = MAX_UNIT_BYTES / self.source.facts().row_bytes.max(stored).max(1);
        match rows < self.unit_rows {
            true => self.source.plan(rows.max(1)).concat(),
            false => units,
        }
    }

    /// Calls `make` for every unit, with a reader that has started it, and passes the results to `take` in row order.
    /// See [`Pool::parts_in_order`] for what `give` returns.
    ///
    /// # Errors
    /// The first error in row order, from the source, `make` or `take`; or a thread panics.
    pub(super) fn read<T: Send>(
        &self,
        control: &Control<'_>,
        make: impl Fn(&mut dyn UnitReader, &Unit, &mut dyn FnMut(T) -> bool) -> Result<()> + Sync,
        mut take: impl FnMut(T) -> std::result::Result<(), Error>,
    ) -> std::result::Result<(), Error> {
        let mut units = self.units();
        units.sort_unstable_by_key(|unit| unit.key);
        // Readers that no thread is using.
        let idle: Mutex<Vec<Box<dyn UnitReader + '_>>> = Mutex::default();
        let locked = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |unit: Unit, give: &mut dyn FnMut(Result<T>) -> bool| {
            let free = locked().pop();
            let mut reader = free.unwrap_or_else(|| self.source.reader(self.batch_rows));
            let made =
                reader.start(&unit).and_then(|()| make(reader.as_mut(), &unit, &mut |part| give(Ok(part))));
            match made {
                Ok(()) => locked().push(reader),
                Err(error) => _ = give(Err(error)),
            }
        };
        let (name, threads) = self.threads;
        let pool = Pool::new(name, threads.min(units.len()), Some(&control.phase().sink()));
        pool.parts_in_order(units, 2 * threads, read, |made: Result<T>| take(made?))
    }
}
