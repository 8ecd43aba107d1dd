//! Runs a load through an open session, from the plan to the report.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sawmill_profile::{beside, format_counted, on_threads};
use sawmill_source::{Control, Error, Kind, Result, Source, Unit};

use crate::engine::load::{LoadOptions, retry_lost};
use crate::engine::note::Note;
use crate::engine::part::{PartReport, Share};
use crate::engine::progress::Progress;
use crate::engine::report::{LoadReport, sent_again};
use crate::engine::schedule::Schedule;
use crate::engine::server_waits::ServerWaits;
use crate::engine::target::{Arrived, LoadState, Session};
use crate::engine::verification::{Tally, Verification};
use crate::engine::worker::{InFlight, Worker, run_worker};

/// A load with an open session.
pub(super) struct UnderWay<'l> {
    source: &'l dyn Source,
    session: &'l dyn Session,
    options: &'l LoadOptions,
    control: &'l Control<'l>,
}

/// The results of a run.
struct Loaded {
    progress: Progress,
    bytes_read: u64,
    server_waits: Option<ServerWaits>,
    verified: Option<Verification>,
}

impl<'l> UnderWay<'l> {
    pub(super) fn new(
        source: &'l dyn Source,
        session: &'l dyn Session,
        options: &'l LoadOptions,
        control: &'l Control<'l>,
    ) -> Self {
        Self { source: session.source().unwrap_or(source), session, options, control }
    }

    /// Loads the whole source. The caller measures the time.
    pub(super) fn run(&self, notes: Vec<Note>) -> Result<LoadReport> {
        let Self { source, session, options, control } = *self;
        let mut runs = source.plan(session.unit_rows());
        let count = |runs: &[Vec<Unit>]| runs.iter().map(Vec::len).sum::<usize>() as u64;
        let planned = count(&runs);
        if let Share::Part(part) = options.share {
            runs = part.of_runs(runs, source.facts().keeps_runs);
        }
        let is_done = |unit: &&Unit| session.done().contains_key(&unit.key);
        let counted = (count(&runs), runs.iter().flatten().filter(is_done).count() as u64);
        let loaded = match session.state() {
            LoadState::Complete => self.as_it_is(),
            LoadState::New | LoadState::Resumed => self.send(runs),
        };
        let loaded = loaded.map_err(|error| {
            if error.kind() == Kind::Value {
                session.value_refused(control);
            }
            let placed = error.placed_by(|key, row| source.place_of_row(key, row)?.name);
            session.changes_so_far().named_in(placed)
        })?;
        let part = match (options.share, session.state()) {
            (Share::Whole | Share::Finish, _) | (_, LoadState::Complete) => None,
            (Share::Part(part), _) => {
                let recorded = retry_lost(options.retries, control, || session.recorded(control))?;
                let recorded = recorded.unwrap_or_default();
                let rows_recorded = recorded.values().map(|tally| tally.rows).sum();
                let units_recorded = recorded.len() as u64;
                Some(PartReport { part, units: planned, units_recorded, rows_recorded })
            }
        };
        Ok(self.report(loaded, counted, part, notes))
    }

    /// The report on a run that was to load this number of units, of which some were there.
    fn report(
        &self,
        Loaded { progress, bytes_read, server_waits, verified }: Loaded,
        (units, units_resumed): (u64, u64),
        part: Option<PartReport>,
        mut notes: Vec<Note>,
    ) -> LoadReport {
        let Self { source, session, options, .. } = *self;
        let (total, (units_lost, rows_lost)) = (progress.total(), progress.lost());
        if units_lost > 0 {
            notes.push(sent_again(units_lost, rows_lost));
        }
        let files = source.files().len() as u64;
        let complete = session.state() == LoadState::Complete;
        LoadReport {
            state: session.state(),
            files_loaded: if complete || part.is_some() { 0 } else { files },
            files_already: if complete { files } else { 0 },
            rows: total.rows,
            rows_in_table: session.counted(),
            rows_loaded: (total.rows - progress.rows_before()).saturating_sub(session.there_before()),
            rows_there_before: session.there_before(),
            rows_rejected: session.rejected(),
            bytes_in: source.files().iter().map(|file| file.bytes).sum(),
            bytes_read,
            bytes_sent: progress.bytes_sent.load(Relaxed),
            units,
            units_resumed,
            units_lost,
            retries: progress.retries.load(Relaxed),
            content: total,
            verified,
            verified_by_key: session.verifies_by_key(),
            server_waits,
            part,
            finished: options.share == Share::Finish && !complete,
            columns: session.column_changes(),
            notes: session.notes().into_iter().chain(notes).collect(),
            ..LoadReport::default()
        }
    }

    /// The result of a load that was already complete.
    fn as_it_is(&self) -> Result<Loaded> {
        let found = self.session.done().iter();
        let found = found.map(|(key, tally)| Arrived {
            unit: Unit { key: *key, rows: tally.rows, bytes: 0 },
            tally: tally.clone(),
        });
        let progress = Progress::new(self.session.columns(), found);
        let verified = self.verify(&progress.total())?;
        Ok(Loaded { progress, bytes_read: 0, server_waits: None, verified })
    }

    /// The progress of earlier runs with these units; leaves the missing units in `runs`.
    fn resumed(&self, runs: &mut [Vec<Unit>]) -> Progress {
        let done = self.session.done();
        let found = runs.iter().flatten();
        let found =
            found.filter_map(|unit| Some(Arrived { unit: *unit, tally: done.get(&unit.key)?.clone() }));
        let progress = Progress::new(self.session.columns(), found);
        runs.iter_mut().for_each(|run| run.retain(|unit| !done.contains_key(&unit.key)));
        progress
    }

    /// Refuses to finish a load whose parts are not all loaded.
    fn refuse_missing(&self, runs: &[Vec<Unit>]) -> Result<()> {
        let missing = || runs.iter().flatten();
        let Some(first) = missing().map(|unit| unit.key).min() else { return Ok(()) };
        let units = format_counted(missing().count() as u64, "unit");
        let rows = format_counted(missing().map(|unit| unit.rows).sum(), "row");
        let what = format!("parts of the load are missing: the table lacks {units} with {rows}");
        Err(Error::new(Kind::Mismatch, what)
            .at(format!(
                "the first: {}, row group {}, from row {}",
                self.source.name_of(first.file),
                first.row_group,
                first.first_row
            ))
            .advise("run the parts that have not ended (--part K/N), then finish; or load without --part"))
    }

    /// Sends the missing units. If the target loses confirmed units meanwhile, sends them again. Unless the units are
    /// those of one part, verifies, and lets the session finish.
    fn send(&self, mut runs: Vec<Vec<Unit>>) -> Result<Loaded> {
        let Self { source, session, options, control } = *self;
        let progress = self.resumed(&mut runs);
        if options.share == Share::Finish {
            self.refuse_missing(&runs)?;
        }
        let take_off_lost =
            || retry_lost(options.retries, control, || progress.take_off_lost(source, session, control));
        let is_part = matches!(options.share, Share::Part(_));
        let (mut bytes_read, mut waits, mut attempt) = (0, Vec::new(), 0);
        let verified = loop {
            bytes_read += runs.iter().flatten().map(|unit| unit.bytes).sum::<u64>();
            waits.push(self.copy(std::mem::take(&mut runs), &progress)?);
            if progress.retries.load(Relaxed) > 0 {
                runs = take_off_lost()?;
            }
            if runs.is_empty() && is_part {
                source.check_unchanged()?;
                break None;
            }
            if runs.is_empty() {
                let units = session.to_send_again(&progress.total(), control)?;
                runs = progress.take_back(&units, source, session.unit_rows());
            }
            if !runs.is_empty() {
                continue;
            }
            let error = match self.end(&progress) {
                Ok(verified) => break verified,
                Err(error) => error,
            };
            // The contents may differ because the target lost units since we asked for them.
            if [Kind::Mismatch, Kind::Changed].contains(&error.kind()) && attempt < options.retries {
                runs = take_off_lost()?;
            }
            if runs.is_empty() {
                return Err(error);
            }
            attempt += 1;
        };
        let server_waits = ServerWaits::together(waits.iter().flatten());
        Ok(Loaded { progress, bytes_read, server_waits, verified })
    }

    fn copy(&self, runs: Vec<Vec<Unit>>, progress: &Progress) -> Result<Option<ServerWaits>> {
        let Self { source, session, options, control } = *self;
        let (rows, bytes) = (progress.total().rows, progress.bytes_sent.load(Relaxed));
        let copying = control.phase().phase("copy");
        let workers = options.degree.max(1).min(runs.iter().map(Vec::len).sum());
        let schedule = &Schedule::new(runs).of_whole_runs(source.facts().keeps_runs);
        let stop = AtomicBool::new(false);
        let stopped = &control.with_stop(&stop);
        let work = |number| {
            let in_flight = &InFlight::default();
            run_worker(&Worker { number, source, session, options, schedule, progress, in_flight }, stopped)
        };
        // A failed worker does not stop it: what it asked the server to cancel might be what comes after the failure.
        let watch = |over: &AtomicBool| session.watch(over, control);
        let (worked, waits) = beside("watcher", watch, || on_threads("sender", 1..workers + 1, &stop, work));
        worked?;
        copying.add_rows(progress.total().rows.saturating_sub(rows));
        copying.add_bytes(progress.bytes_sent.load(Relaxed) - bytes);
        copying.finish();
        Ok(waits.flatten())
    }

    /// The steps after the last unit.
    fn end(&self, progress: &Progress) -> Result<Option<Verification>> {
        let total = progress.total();
        let verified = self.verify(&total)?;
        self.source.check_unchanged()?;
        let finishing = self.control.phase().phase("finish");
        self.session.finish(&total, self.control)?;
        finishing.finish();
        Ok(verified)
    }

    /// Compares the recorded rows with the plan, and with the target's content if verification is requested.
    fn verify(&self, total: &Tally) -> Result<Option<Verification>> {
        let (planned, recorded) = (self.source.rows(), total.rows + self.session.rejected());
        if self.source.facts().knows_rows && recorded != planned {
            return Err(Error::new(
                Kind::Mismatch,
                format!("the records have {recorded} rows as loaded, the source has {planned}"),
            )
            .advise("forget this load and start it again"));
        }
        if !self.options.verify || !self.session.can_verify() {
            return Ok(None);
        }
        let verifying = self.control.phase().phase("verify");
        let mut verification = self.session.verify(total, self.control)?;
        verification.rejected = self.session.rejected();
        verifying.add_rows(total.rows);
        verifying.finish();
        Ok(Some(verification))
    }
}
