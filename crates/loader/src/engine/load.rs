//! Runs a load from plan to report.
//!
//! Every connection has two threads: one decodes and encodes, one sends. They are coupled by a channel
//! of [`CHANNEL`] blocks, so that the server never waits for a decoder that could have been ahead, and no
//! decoder gets further ahead than that. Memory is bounded by
//! `degree × (CHANNEL + 4) × batch_bytes` (blocks in the channel, one being filled, one being sent, and
//! the connection's write buffer, which holds up to two), plus for each connection the decoded pages of
//! one batch. With a rejects file it adds up to 4 MiB of blocks that the server has not acknowledged yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use sawmill_profile::{beside, format_counted, on_threads, turns};
use sawmill_source::{Control, Error, Kind, Result, Source, Unit, UnitKey, refuse_variants};

use crate::engine::content_sum::Tally;
use crate::engine::note::Note;
use crate::engine::part::{Part, PartReport, Share};
use crate::engine::progress::Progress;
use crate::engine::report::{LoadReport, sent_again};
use crate::engine::schedule::Schedule;
use crate::engine::server_waits::ServerWaits;
use crate::engine::target::{Arrived, LoadState, Session, Target};
use crate::engine::verification::Verification;
use crate::engine::worker::{InFlight, Worker, run_worker};
use crate::history::portion::Portion;
use crate::history::remembered::Remembered;
use crate::identity::recheck::recheck;

/// Blocks between a decoding and a sending thread.
pub const CHANNEL: usize = 3;

/// Options of a load. They bound its memory; see the module's documentation.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Number of connections that send at the same time.
    pub degree: usize,
    /// Rows of a decoded batch.
    pub batch_rows: usize,
    /// Bytes of an encoded block.
    pub batch_bytes: usize,
    /// Maximum rows of a unit: one transaction commits a unit, and a lost connection makes the loader send it
    /// again.
    pub unit_rows: u64,
    /// How often to reconnect in a row without committing a unit in between.
    pub retries: u32,
    /// Minimum time to wait for a CrateDB cluster that becomes unavailable during the load, and for its answer
    /// before asking whether it still works on it. PostgreSQL's `Server` has its own limit for answers.
    pub patience: Duration,
    /// Compare the content of source and target before the load counts as complete.
    pub verify: bool,
    /// If the contents differ, find the units whose rows are missing.
    pub locate: bool,
    /// Load files again that earlier loads have completed.
    pub again: bool,
    /// Append a file whose name is on record with other content. Without this the file is an error, since
    /// its earlier rows stay in the table.
    pub append_changed: bool,
    /// Replace the rows of the changed file. Not every target can ([`Target::replacing`]).
    pub replace_changed: bool,
    /// Rows of the table to hold in memory at once while locating rows, 12 bytes each; a larger table is read several
    /// times.
    pub locate_rows: u64,
    /// The share of the load that this run does.
    pub share: Share,
    /// The command for the record of the load, without addresses and passwords.
    pub command: Option<String>,
    /// Records of text that the source has left out, by file: their numbers, where all records count.
    pub records_left_out: BTreeMap<String, Vec<u64>>,
    /// The order that [`load_in_order`] puts rows in; empty for file order.
    pub order: String,
}

/// Loads a source, or some of its files, whose rows have been put in order.
pub type LoadArranged<'l> = dyn FnMut(&dyn Source) -> Result<LoadReport> + 'l;

/// Puts the rows of a source in order, and passes them on to be loaded.
pub type Arrange<'a> = dyn Fn(&dyn Source, &mut LoadArranged<'_>) -> Result<LoadReport> + 'a;

impl Default for LoadOptions {
    /// Two connections, batches of 4096 rows, blocks of 256 KiB, units of 256 Ki rows, 8 retries,
    /// five minutes of patience, no verification.
    fn default() -> Self {
        Self {
            degree: 2,
            batch_rows: 4096,
            batch_bytes: 256 * 1024,
            unit_rows: 256 * 1024,
            retries: 8,
            patience: Duration::from_secs(300),
            verify: false,
            locate: false,
            again: false,
            append_changed: false,
            replace_changed: false,
            locate_rows: 4 << 20,
            share: Share::Whole,
            command: None,
            records_left_out: BTreeMap::new(),
            order: String::new(),
        }
    }
}

impl LoadOptions {
    /// Upper bound on the bytes of all blocks of all connections together.
    pub fn block_memory(&self) -> u64 {
        (self.degree.max(1) * (CHANNEL + 4) * self.batch_bytes) as u64
    }
}

/// Loads all rows of the source into the target, exactly once.
///
/// Calling it again continues where an earlier call ended, however that ended.
///
/// # Errors
/// See [`Target::prepare`]; a value that cannot be represented, with its file, row group, row and column; a
/// corrupt file; a connection that cannot be restored; a failed verification; a raised cancel flag. Committed
/// units stay, in a staging table or on record, and the next run continues from there.
pub fn load(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    load_in_order(source, target, options, &|source, load| load(source), control)
}

/// Like [`load`], for rows in another order: files that are loaded together are arranged together.
///
/// # Errors
/// As for [`load`]; or `arrange` fails.
pub fn load_in_order(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    arrange: &Arrange<'_>,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let remember = || target.remembered(source, options, control);
    match retry_reached(options.retries, control, &|| target.has_answered(), remember)? {
        None => arrange(source, &mut |source| load_files(source, target, options, control)),
        Some(remembered) => load_the_rest(source, target, remembered, options, arrange, control),
    }
}

/// Finishes interrupted loads, and loads the files that are not in the target yet.
fn load_the_rest(
    source: &dyn Source,
    target: &dyn Target,
    remembered: Remembered,
    options: &LoadOptions,
    arrange: &Arrange<'_>,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let started = turns::now();
    let load = |files: Vec<u32>, target: &dyn Target| {
        let portion = Portion::new(source, files);
        arrange(&portion, &mut |source| load_files(source, target, options, control))
    };
    let Remembered { already, unfinished, replaced, new, verified, notes } = remembered;
    let mut report = LoadReport::of_already_loaded(&already, notes);
    report.verified = verified;
    let is_unverified = |report: &LoadReport| report.verified.is_none() && report.rows > 0;
    let verified_rows = |report: &LoadReport| report.verified.as_ref().map_or(0, |found| found.source.rows);
    let (earlier, mut later, mut verified) = (is_unverified(&report), false, verified_rows(&report));
    let mut add = |of_files: LoadReport| {
        later |= is_unverified(&of_files);
        verified += verified_rows(&of_files);
        report.add(of_files);
    };
    // A key may have moved from a corrected file to another one, or to a new one, which may have been begun.
    if let Some(replacing) = target.replacing() {
        let at_once = if target.replaces_together() { replaced.len().max(1) } else { 1 };
        for files in replaced.chunks(at_once) {
            let files_replaced = files.len() as u64;
            add(LoadReport { files_replaced, ..load(files.to_vec(), replacing.as_ref())? });
        }
    }
    for files in unfinished.into_iter().chain(Some(new)).filter(|files| !files.is_empty()) {
        add(load(files, target)?);
    }
    report.bytes_in = source.files().iter().map(|file| file.bytes).sum();
    if verified > 0 && (earlier || later) {
        report.verified = None;
        let rows = format_counted(verified, "row");
        let what = match later {
            true => format!(
                "verified only {rows} of the files, which the table holds; their other rows were not compared"
            ),
            false => format!(
                "verified what this run loaded: the table holds it, {rows}; rows of earlier runs were not compared"
            ),
        };
        report.notes.push(Note::PartlyVerified(what));
    }
    report.seconds = turns::now().saturating_duration_since(started).as_secs_f64();
    Ok(report)
}

/// Loads the whole source, without looking for files of earlier loads.
fn load_files(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let started = turns::now();
    let anew = LoadOptions { again: true, ..options.clone() };
    let open = |options| {
        let open = || opened(source, target, options, control);
        retry_reached(anew.retries, control, &|| target.has_answered(), open)
    };
    let loaded_anew = |how: Error| match open(&anew)? {
        Opened::Same(session, mut notes) => {
            notes.push(format!("loaded from the beginning: {}", how.what()).into());
            load_opened(source, session.as_ref(), notes, options, control)
        }
        Opened::Changed(error) => Err(error),
    };
    let mut report = match open(options)? {
        Opened::Same(session, notes) => {
            let replaces = session.state() == LoadState::Complete && session.starts_anew();
            let loaded = load_opened(source, session.as_ref(), notes, options, control);
            drop(session);
            match loaded {
                // The mode replaces a table that holds other rows.
                Err(error) if replaces && error.kind() == Kind::Mismatch => loaded_anew(error)?,
                loaded => loaded?,
            }
        }
        Opened::Changed(how) => loaded_anew(how)?,
    };
    report.seconds = turns::now().saturating_duration_since(started).as_secs_f64();
    Ok(report)
}

/// Loads the whole source through an open session. The caller measures the time.
fn load_opened(
    source: &dyn Source,
    session: &dyn Session,
    mut notes: Vec<Note>,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let source = session.source().unwrap_or(source);
    let mut runs = source.plan(session.unit_rows());
    let count = |runs: &[Vec<Unit>]| runs.iter().map(Vec::len).sum::<usize>() as u64;
    let planned = count(&runs);
    if let Share::Part(part) = options.share {
        runs = part.of_runs(runs, source.facts().keeps_runs);
    }
    let units = count(&runs);
    let resumed = runs.iter().flatten().filter(|unit| session.done().contains_key(&unit.key)).count() as u64;
    let under_way = UnderWay { source, session, options, control };
    let loaded = match (session.state(), options.share) {
        (LoadState::Complete, _) => under_way.as_it_is(),
        (_, Share::Part(_)) => under_way.of_part(runs),
        (_, Share::Whole | Share::Finish) => under_way.to_the_end(runs),
    };
    let Loaded { progress, bytes_read, server_waits, verified } = loaded.map_err(|error| {
        if error.kind() == Kind::Value {
            session.value_refused(control);
        }
        let placed = error.placed_by(|key, row| source.place_of_row(key, row)?.name);
        session.changes_so_far().named_in(placed)
    })?;
    let part = match options.share {
        Share::Part(part) if session.state() != LoadState::Complete => {
            Some(under_way.report_part(part, planned)?)
        }
        _ => None,
    };
    let (total, rows_before) = (progress.total(), progress.rows_before());
    let (units_lost, rows_lost) = progress.lost();
    if units_lost > 0 {
        notes.push(sent_again(units_lost, rows_lost));
    }
    let files = source.files().len() as u64;
    let complete = session.state() == LoadState::Complete;
    Ok(LoadReport {
        state: session.state(),
        files_loaded: if complete || part.is_some() { 0 } else { files },
        files_already: if complete { files } else { 0 },
        rows: total.rows,
        rows_in_table: session.counted(),
        rows_loaded: (total.rows - rows_before).saturating_sub(session.there_before()),
        rows_there_before: session.there_before(),
        rows_rejected: session.rejected(),
        bytes_in: source.files().iter().map(|file| file.bytes).sum(),
        bytes_read,
        bytes_sent: progress.bytes_sent.load(Relaxed),
        units,
        units_resumed: resumed,
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
    })
}

/// A load with an open session.
struct UnderWay<'l> {
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

impl UnderWay<'_> {
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

    /// Sends the missing units of one part. If the target loses confirmed units during this, sends them
    /// again.
    fn of_part(&self, mut runs: Vec<Vec<Unit>>) -> Result<Loaded> {
        let progress = self.resumed(&mut runs);
        let (mut bytes_read, mut waits, mut retries) = (0, Vec::new(), 0);
        while runs.iter().any(|run| !run.is_empty()) {
            bytes_read += runs.iter().flatten().map(|unit| unit.bytes).sum::<u64>();
            waits.push(self.copy(std::mem::take(&mut runs), &progress)?);
            let lost_connections = progress.retries.load(Relaxed);
            if lost_connections > std::mem::replace(&mut retries, lost_connections) {
                runs = self.take_off_lost(&progress)?;
            }
        }
        self.source.check_unchanged()?;
        let server_waits = ServerWaits::together(waits.iter().flatten());
        Ok(Loaded { progress, bytes_read, server_waits, verified: None })
    }

    /// The recorded units of all parts at this moment.
    fn report_part(&self, part: Part, units: u64) -> Result<PartReport> {
        let recorded =
            retry_lost(self.options.retries, self.control, || self.session.recorded(self.control))?;
        let recorded = recorded.unwrap_or_default();
        let rows_recorded = recorded.values().map(|tally| tally.rows).sum();
        Ok(PartReport { part, units, units_recorded: recorded.len() as u64, rows_recorded })
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

    /// Sends the missing units, verifies, and lets the session finish. If the target loses confirmed units
    /// before that, sends them again.
    fn to_the_end(&self, mut runs: Vec<Vec<Unit>>) -> Result<Loaded> {
        let options = self.options;
        let progress = self.resumed(&mut runs);
        if options.share == Share::Finish {
            self.refuse_missing(&runs)?;
        }
        let (mut bytes_read, mut waits, mut attempt) = (0, Vec::new(), 0);
        loop {
            bytes_read += runs.iter().flatten().map(|unit| unit.bytes).sum::<u64>();
            waits.push(self.copy(std::mem::take(&mut runs), &progress)?);
            if progress.retries.load(Relaxed) > 0 {
                runs = self.take_off_lost(&progress)?;
            }
            if runs.is_empty() {
                runs = self.take_back(&progress)?;
            }
            if !runs.is_empty() {
                continue;
            }
            let error = match self.end(&progress) {
                Ok(verified) => {
                    let server_waits = ServerWaits::together(waits.iter().flatten());
                    return Ok(Loaded { progress, bytes_read, server_waits, verified });
                }
                Err(error) => error,
            };
            // The contents may differ because the target lost units since we asked for them.
            if [Kind::Mismatch, Kind::Changed].contains(&error.kind()) && attempt < options.retries {
                runs = self.take_off_lost(&progress)?;
            }
            if runs.is_empty() {
                return Err(error);
            }
            attempt += 1;
        }
    }

    fn take_off_lost(&self, progress: &Progress) -> Result<Vec<Vec<Unit>>> {
        let Self { source, session, options, control } = *self;
        retry_lost(options.retries, control, || progress.take_off_lost(source, session, control))
    }

    /// The units that the session asks for once more.
    fn take_back(&self, progress: &Progress) -> Result<Vec<Vec<Unit>>> {
        let Self { source, session, control, .. } = *self;
        let units = session.to_send_again(&progress.total(), control)?;
        Ok(progress.take_back(&units, source, session.unit_rows()))
    }

    fn copy(&self, runs: Vec<Vec<Unit>>, progress: &Progress) -> Result<Option<ServerWaits>> {
        let (rows, bytes) = (progress.total().rows, progress.bytes_sent.load(Relaxed));
        let copying = self.control.phase().phase("copy");
        let waits = run_workers(self.source, self.session, self.options, self.control, runs, progress)?;
        copying.add_rows(progress.total().rows.saturating_sub(rows));
        copying.add_bytes(progress.bytes_sent.load(Relaxed) - bytes);
        copying.finish();
        Ok(waits)
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

/// A session whose source was compared with the target's records of it.
enum Opened<'a> {
    /// The source still holds the loaded rows, as far as the notes say.
    Same(Box<dyn Session + 'a>, Vec<Note>),
    /// The source has changed, and the load starts over.
    Changed(Error),
}

fn opened<'a>(
    source: &'a dyn Source,
    target: &'a dyn Target,
    options: &'a LoadOptions,
    control: &Control<'_>,
) -> Result<Opened<'a>> {
    refuse_variants(source.schema())?;
    let preparing = control.phase().phase("prepare");
    let session = target.prepare(source, options, control)?;
    preparing.finish();
    let loaded = session.source().unwrap_or(source);
    if session.state() != LoadState::Complete {
        refuse_cut_otherwise(loaded, session.unit_rows(), session.done())?;
    }
    match recheck(loaded, session.as_ref(), options, control) {
        Ok(true) => Ok(Opened::Same(session, Vec::new())),
        Ok(false) => {
            let note = "did not compare the source with the rows loaded before: some of them were rejected, or a column of the \
                        table has another type since";
            let of = if session.rejected() > 0 { Note::BesideRejected } else { Note::Unverified };
            Ok(Opened::Same(session, vec![of(note.to_owned())]))
        }
        Err(error)
            if error.kind() == Kind::Changed
                && session.state() == LoadState::Complete
                && session.starts_anew() =>
        {
            Ok(Opened::Changed(error))
        }
        Err(error) => Err(error),
    }
}

/// Refuses to continue if the target holds units that are not in the plan.
pub fn refuse_cut_otherwise(
    source: &dyn Source,
    unit_rows: u64,
    done: &HashMap<UnitKey, Tally>,
) -> Result<()> {
    let (mut found, mut cut_otherwise) = (0, false);
    let knows_rows = source.facts().knows_rows;
    for unit in source.plan(unit_rows).iter().flatten() {
        if let Some(tally) = done.get(&unit.key) {
            found += 1;
            cut_otherwise |= knows_rows && tally.rows > unit.rows;
        }
    }
    let known = done.len();
    match cut_otherwise || found != known {
        false => Ok(()),
        true => Err(Error::new(
            Kind::Changed,
            format!(
                "an earlier run loaded {}, and this run would divide some of them differently",
                format_counted(known as u64, "unit")
            ),
        )
        .advise("finish the load with the version of sawmill that began it, or forget it and load again")),
    }
}

fn run_workers(
    source: &dyn Source,
    session: &dyn Session,
    options: &LoadOptions,
    control: &Control<'_>,
    runs: Vec<Vec<Unit>>,
    progress: &Progress,
) -> Result<Option<ServerWaits>> {
    let left = runs.iter().map(Vec::len).sum::<usize>();
    let schedule = Schedule::new(runs).of_whole_runs(source.facts().keeps_runs);
    let stop = AtomicBool::new(false);
    let control = control.with_stop(&stop);
    let work = |number| {
        let in_flight = &InFlight::default();
        let (schedule, control) = (&schedule, &control);
        run_worker(&Worker { number, source, session, options, schedule, progress, in_flight }, control)
    };
    let workers = options.degree.max(1).min(left);
    let watch = |over: &AtomicBool| session.watch(over, &control);
    let (worked, waits) = beside("watcher", watch, || on_threads("sender", 1..workers + 1, &stop, work));
    worked.map(|_| waits.flatten())
}

/// Repeats `work` after a lost connection, with a pause before each attempt.
pub fn retry_lost<T>(retries: u32, control: &Control<'_>, work: impl FnMut() -> Result<T>) -> Result<T> {
    retry_reached(retries, control, &|| true, work)
}

/// Like [`retry_lost`], for a target that may not have answered yet: until it has, a wrong address is more likely than
/// a restart.
pub fn retry_reached<T>(
    retries: u32,
    control: &Control<'_>,
    has_answered: &dyn Fn() -> bool,
    mut work: impl FnMut() -> Result<T>,
) -> Result<T> {
    for attempt in 0..retries {
        match work() {
            Err(error) if error.kind() == Kind::Connection && has_answered() => {
                control.sleep(backoff(attempt))?;
            }
            other => return other,
        }
    }
    work()
}

/// The pause before the n-th new attempt: 100 ms, doubled each time, at most 5 s.
pub fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(6)).min(Duration::from_secs(5))
}
