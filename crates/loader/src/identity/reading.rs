//! Reads a source and encodes its rows once more, as a load did, on as many threads as there are connections.

use std::sync::atomic::AtomicBool;

use sawmill_profile::on_threads;
use sawmill_source::{Control, Read, Result, Source, Unit};

use crate::engine::content_sum::Tally;
use crate::engine::load::LoadOptions;
use crate::engine::schedule::Schedule;
use crate::engine::target::{BatchEncoder, Block};
use crate::engine::worker::refusal_error;

/// Creates the encoder of a thread.
pub type Encoders<'e> = dyn Fn() -> Result<Box<dyn BatchEncoder>> + Sync + 'e;

/// Units of a source to read, and how they are encoded.
pub struct Reading<'a> {
    /// The source.
    pub source: &'a dyn Source,
    /// The units, as [`Source::plan`] returns them.
    pub runs: Vec<Vec<Unit>>,
    /// What each reader reads.
    pub read: Read<'a>,
    /// The encoders.
    pub encoders: &'a Encoders<'a>,
    /// The number of threads, and the rows of a batch.
    pub options: &'a LoadOptions,
    /// Ends the reading when it is cancelled.
    pub control: &'a Control<'a>,
}

/// An item of a thread's reading. Rows belong to the unit that began last.
pub enum Reread<'p> {
    /// A unit begins.
    Unit(&'p Unit),
    /// Encoded rows of the unit.
    Rows(&'p Block),
    /// The unit ends, with its totals.
    End(&'p Unit, Tally),
}

impl Reading<'_> {
    /// Reads all units. Each thread has a state, which `look` fills. Returns all states.
    ///
    /// # Errors
    /// A source that cannot be read, a value that cannot be encoded, errors of `look`.
    pub fn run<S: Send>(
        self,
        start: impl Fn() -> S + Sync,
        look: impl Fn(&mut S, Reread<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let Self { source, runs, read, encoders, options, control } = self;
        let (schedule, stop) = (Schedule::new(runs), AtomicBool::new(false));
        let control = control.with_stop(&stop);
        let work = |_| -> Result<S> {
            let (mut reader, mut encoder) = (source.open(read, options.batch_rows), encoders()?);
            let (mut state, mut place) = (start(), None);
            while let Some(unit) = schedule.next(&mut place) {
                let mut row = unit.key.first_row;
                look(&mut state, Reread::Unit(&unit))?;
                reader.start(&unit)?;
                encoder.begin_unit(&unit);
                while let Some(batch) = reader.next_batch()? {
                    control.check()?;
                    encoder
                        .encode(&batch, &mut |block| look(&mut state, Reread::Rows(&block)))
                        .map_err(|refusal| refusal_error(refusal, source, reader.as_ref(), unit.key, row))?;
                    row += batch.num_rows() as u64;
                }
                let tally = encoder.end_unit(&mut |block| look(&mut state, Reread::Rows(&block)))?;
                look(&mut state, Reread::End(&unit, tally))?;
            }
            Ok(state)
        };
        on_threads("source", 1..options.degree.max(1) + 1, &stop, work)
    }
}
