//! Encodes a source again, as a load did, on as many threads as there are connections.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_loader::{BatchEncoder, Block, LoadOptions, Refusal, Schedule, Tally};
use sawmill_profile::on_threads;
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit};

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

/// An item of a thread's reading. Rows belong to the unit that began last.
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
        let work = |_| -> Result<S> {
            let read = Read { numbered: true, broken_text: true, ..Read::default() };
            let mut reader = self.source.open(read, self.options.batch_rows);
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
        on_threads("source", 1..self.options.degree.max(1) + 1, &stop, work)
    }
}
