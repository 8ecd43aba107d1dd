//! Reads a source once more, and checks that it still holds the loaded rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use sawmill_profile::{format_counted, on_threads};
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit, UnitKey};

use crate::engine::load::LoadOptions;
use crate::engine::schedule::Schedule;
use crate::engine::target::{BatchEncoder, Block, LoadState, Session};
use crate::engine::verification::Tally;
use crate::engine::worker::refusal_error;

/// Compares the content of the committed units with the source's present content, and records the stamps of
/// files that are unchanged. A load that will be verified compares all of these units, other loads only the
/// units of untrusted files ([`RecordedFiles::untrusted`](super::RecordedFiles::untrusted)). Returns whether
/// every such unit could be compared.
///
/// # Errors
/// A file whose content has changed since it was loaded, with its row group; a file that cannot be read.
pub(crate) fn recheck(
    source: &dyn Source,
    session: &dyn Session,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<bool> {
    let done = session.done();
    let files = session.recorded_files();
    let untrusted = match session.state() {
        LoadState::New => BTreeSet::new(),
        LoadState::Resumed | LoadState::Complete => files.untrusted(source.files()),
    };
    let complete = session.state() == LoadState::Complete;
    let facts = source.facts();
    let is_whole = complete && session.rejected() == 0;
    if facts.hashes_content && is_whole && files.changed(source.files()).is_empty() {
        // The rows on record are of the same bytes, even if their text is read otherwise now.
        return Ok(true);
    }
    let is_mixed = !facts.order.is_empty();
    let looked_at =
        |file: u32| options.verify || untrusted.contains(&file) || is_mixed && !untrusted.is_empty();
    let mut runs = source.plan(session.unit_rows());
    for run in &mut runs {
        // Another version may have divided a complete load into different units.
        run.retain(|unit| looked_at(unit.key.file) && (complete || done.contains_key(&unit.key)));
    }
    runs.retain(|run| !run.is_empty());
    // The stamps are those of the content that was compared, or that is loaded from here on.
    let record_stamps = || {
        if untrusted.is_empty() {
            return Ok(());
        }
        source.check_unchanged()?;
        session.record_stamps(&files.with_stamps_of(source.files()), control)
    };
    if runs.is_empty() {
        return record_stamps().map(|()| true);
    }
    let phase = control.phase().phase("source");
    let Some(encoders) = session.summing_encoders(source, control)? else { return Ok(false) };
    let now = unit_sums(source, runs, &encoders, options, control)?;
    let planned: BTreeSet<UnitKey> = now.keys().copied().collect();
    let recorded = done.iter().filter(|(key, _)| looked_at(key.file) && (complete || planned.contains(key)));
    phase.add_rows(now.values().map(|tally| tally.rows).sum());
    phase.finish();
    compare(source, (recorded, now.iter()), session.columns(), session.state())?;
    record_stamps().map(|()| true)
}

/// The totals of each unit, computed on as many threads as there are connections.
pub(crate) fn unit_sums(
    source: &dyn Source,
    runs: Vec<Vec<Unit>>,
    encoders: &Encoders<'_>,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<HashMap<UnitKey, Tally>> {
    let read = Read { broken_text: true, ..Read::default() };
    let sums =
        Reading { source, runs, read, encoders, options, control }.run(HashMap::new, |sums, item| {
            if let Reread::End(unit, tally) = item {
                sums.insert(unit.key, tally);
            }
            Ok(())
        })?;
    Ok(sums.into_iter().flatten().collect())
}

/// Compares the totals of each row group of the units as they were loaded and as they are now.
///
/// # Errors
/// A row group that has changed.
pub(crate) fn compare<'t>(
    source: &dyn Source,
    (was, is): (
        impl Iterator<Item = (&'t UnitKey, &'t Tally)>,
        impl Iterator<Item = (&'t UnitKey, &'t Tally)>,
    ),
    columns: usize,
    state: LoadState,
) -> Result<()> {
    let mut groups: BTreeMap<(u32, u32), [Tally; 2]> = BTreeMap::new();
    for (side, (key, tally)) in was.map(|unit| (0, unit)).chain(is.map(|unit| (1, unit))) {
        let both = groups.entry((key.file, key.row_group));
        both.or_insert_with(|| [(); 2].map(|()| Tally::empty(columns)))[side].add(tally);
    }
    match groups.iter().find(|(_, [was, is])| was != is) {
        Some((group, [was, is])) => Err(changed(source, *group, was, is, state)),
        None => Ok(()),
    }
}

/// The error for a file whose content has changed since it was loaded.
pub(crate) fn changed(
    source: &dyn Source,
    (file, row_group): (u32, u32),
    was: &Tally,
    is: &Tally,
    state: LoadState,
) -> Error {
    let name = source.name_of(file);
    let advice = match state {
        LoadState::Complete => {
            "restore the file, replace its rows by --changed replace (with --file-column), or load everything from the beginning \
             with --mode replace; --again, or an append after sawmill load forget, adds its rows as they are now beside the \
             earlier ones"
        }
        LoadState::New | LoadState::Resumed => {
            "restore the file and run the same command again to continue, or forget the load \
             (sawmill load forget) and start afresh"
        }
    };
    Error::new(
        Kind::Changed,
        format!(
            "the file's content is no longer what was loaded: {} with content sum {} now, {} with content \
             sum {} in the load's records (if the file is the same, the type of a column of the table was changed)",
            format_counted(is.rows, "row"),
            is.content_sum,
            format_counted(was.rows, "row"),
            was.content_sum
        ),
    )
    .at(format!("{name}, row group {row_group}"))
    .advise(advice)
}

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
