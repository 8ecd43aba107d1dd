//! Encodes a source again, as a load did, on as many threads as there are connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Refusal, Schedule, Tally};
use sawmill_source::{Control, Error, Kind, Result, Source, Unit};

use crate::encode::bodies::Bodies;
use crate::encode::encoder::{CrateEncoder, EncodePlan};

/// A source to read, and how it is encoded.
pub(crate) struct ReadSource<'a> {
    pub source: &'a dyn Source,
    pub encode: &'a Arc<EncodePlan>,
    pub options: &'a LoadOptions,
    pub unit_rows: u64,
    pub control: &'a Control<'a>,
}

/// What a thread comes upon. Rows belong to the unit that began last.
pub(crate) enum Part<'p> {
    Unit(&'p Unit),
    Rows(&'p Block),
    End(&'p Tally),
}

impl ReadSource<'_> {
    /// Reads all units. Each thread has a state, which `look` fills; returns all states.
    pub(crate) fn run<S: Send>(
        &self,
        start: impl Fn() -> S + Sync,
        look: impl Fn(&mut S, Part<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let schedule = Schedule::new(self.source.plan(self.unit_rows));
        let stop = AtomicBool::new(false);
        let control = self.control.with_stop(&stop);
        let work = || -> Result<S> {
            let mut reader = self.source.numbering_reader(self.options.batch_rows);
            let mut encoder = CrateEncoder::new(Arc::clone(self.encode), Bodies::new(self.encode.bytes));
            let (mut state, mut place) = (start(), None);
            while let Some(unit) = schedule.next(&mut place) {
                look(&mut state, Part::Unit(&unit))?;
                reader.start(&unit)?;
                encoder.begin_unit(&unit);
                while let Some(batch) = reader.next_batch()? {
                    control.check()?;
                    let mut emit = |block: Block| look(&mut state, Part::Rows(&block));
                    encoder.encode(&batch, &mut emit).map_err(|refusal| match refusal {
                        Refusal::Stopped(error) => error,
                        Refusal::Value { column, what, .. } => {
                            Error::new(Kind::Value, what).at(format!("column {column:?}"))
                        }
                    })?;
                }
                let tally = encoder.end_unit(&mut |block| look(&mut state, Part::Rows(&block)))?;
                look(&mut state, Part::End(&tally))?;
            }
            Ok(state)
        };
        let mut states = Vec::new();
        let mut failure: Option<Error> = None;
        std::thread::scope(|scope| {
            let work = || work().inspect_err(|_| stop.store(true, Relaxed));
            let threads: Vec<_> = (0..self.options.degree.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                match thread.join() {
                    Ok(Ok(state)) => states.push(state),
                    Ok(Err(error)) => {
                        if failure.as_ref().is_none_or(|first| first.kind() == Kind::Cancelled) {
                            failure = Some(error);
                        }
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        failure.map_or(Ok(states), Err)
    }
}
