//! A load from plan to report.
//!
//! Every connection has two threads: one decodes and encodes, one sends. They are coupled by a channel
//! of [`CHANNEL`] blocks, so that the server never waits for a decoder that could have been ahead, and no
//! decoder gets further ahead than that. Memory is bounded by
//! `degree × (CHANNEL + 4) × batch_bytes` (blocks in the channel, one being filled, one being sent, and
//! the connection's write buffer, which holds up to two), plus for each connection the decoded pages of
//! one batch; where rows are put aside, up to 4 MiB of blocks more that the server has not taken yet.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Builder;
use std::time::{Duration, Instant};

use sawmill_source::{Control, Error, Kind, Result, Source, Unit, UnitKey};
use serde::Serialize;

use crate::engine::content_sum::Tally;
use crate::engine::progress::Progress;
use crate::engine::schedule::Schedule;
use crate::engine::server_waits::ServerWaits;
use crate::engine::target::{Arrived, Session, Standing, Target};
use crate::engine::verification::Verification;
use crate::engine::worker::{Hand, Worker, no_thread, run_worker};
use crate::identity::portion::Portion;
use crate::identity::recheck::recheck;
use crate::identity::remembered::{AlreadyLoaded, Remembered};

/// Blocks between a decoding and a sending thread.
pub const CHANNEL: usize = 3;

/// How a load is run. The numbers bound its memory; see the module's documentation.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Connections that send at the same time.
    pub degree: usize,
    /// Rows of a decoded batch.
    pub batch_rows: usize,
    /// Bytes of an encoded block.
    pub batch_bytes: usize,
    /// Rows of a unit at most: what is committed in one transaction, and sent again after a lost connection.
    pub unit_rows: u64,
    /// How often a lost connection is tried again without a unit arriving in between.
    pub retries: u32,
    /// How long a CrateDB cluster that is away during the load is waited for, at least.
    pub patience: Duration,
    /// Compare the content of the target with that of the source before the load counts as complete.
    pub verify: bool,
    /// Where the contents differ, find out which units have rows that are missing.
    pub locate: bool,
    /// Load what was loaded before once more.
    pub again: bool,
    /// Rows of the table that are held in memory for that at once, 12 bytes each; a larger table is gone through
    /// several times.
    pub locate_rows: u64,
}

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
            locate_rows: 4 << 20,
        }
    }
}

impl LoadOptions {
    /// Upper bound in bytes of what blocks take, in all connections together.
    pub fn block_memory(&self) -> u64 {
        (self.degree.max(1) * (CHANNEL + 4) * self.batch_bytes) as u64
    }
}

/// What a load did.
#[derive(Clone, Debug, Serialize)]
pub struct LoadReport {
    /// How the target was found.
    pub standing: Standing,
    /// Files that this run has loaded, or the rest of them.
    pub files_loaded: u64,
    /// Files that earlier loads had brought completely.
    pub files_already: u64,
    /// Rows of the source that are in the target now, those of earlier runs included.
    pub rows: u64,
    /// Rows of the table as it was counted in this run, others' rows included; none where it was not counted.
    pub rows_in_table: Option<u64>,
    /// Rows that this run committed.
    pub rows_loaded: u64,
    /// Rows that this run found in the target as they are in the source, brought there by an earlier load.
    pub rows_there_before: u64,
    /// Rows that the target refused and that were written aside, those of earlier runs included.
    pub rows_rejected: u64,
    /// Length of the source's files.
    pub bytes_in: u64,
    /// Stored bytes of the rows that this run read, as the footers have them.
    pub bytes_read: u64,
    /// Bytes of rows that this run sent, those of units that were sent again included.
    pub bytes_sent: u64,
    /// Units of the plan.
    pub units: u64,
    /// Units that earlier runs had committed.
    pub units_resumed: u64,
    /// Units whose commit the target had confirmed and that it lost in this run; they were sent again.
    pub units_lost: u64,
    /// Times that a lost connection was tried again.
    pub retries: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Rows, content sum and non-null values of the source's rows.
    pub content: Tally,
    /// The comparison with the target, where it was asked for.
    pub verified: Option<Verification>,
    /// What the server's side of the connections was at, where that could be seen.
    pub server_waits: Option<ServerWaits>,
    /// What else there is to say about how it went.
    pub notes: Vec<String>,
}

impl LoadReport {
    /// The report of a run that has found these files in the target, before it has done anything.
    fn of_already_loaded(files: &[AlreadyLoaded], notes: Vec<String>) -> Self {
        let mut content = Tally::default();
        files.iter().for_each(|file| content.add(&file.tally));
        let units = files.iter().map(|file| file.units).sum();
        Self {
            standing: Standing::Complete,
            files_loaded: 0,
            files_already: files.len() as u64,
            rows: content.rows,
            rows_in_table: None,
            rows_loaded: 0,
            rows_there_before: 0,
            rows_rejected: files.iter().map(|file| file.rejected).sum(),
            bytes_in: 0,
            bytes_read: 0,
            bytes_sent: 0,
            units,
            units_resumed: units,
            units_lost: 0,
            retries: 0,
            seconds: 0.0,
            content,
            verified: None,
            server_waits: None,
            notes,
        }
    }

    /// Adds the report of other files of the same source.
    fn add(&mut self, other: Self) {
        self.standing = match (self.standing, other.standing) {
            (Standing::Complete, other) => other,
            (own, Standing::Complete) => own,
            (Standing::New, Standing::New) => Standing::New,
            _ => Standing::Resumed,
        };
        self.files_loaded += other.files_loaded;
        self.files_already += other.files_already;
        self.rows += other.rows;
        self.rows_in_table = other.rows_in_table.or(self.rows_in_table);
        self.rows_loaded += other.rows_loaded;
        self.rows_there_before += other.rows_there_before;
        self.rows_rejected += other.rows_rejected;
        self.bytes_read += other.bytes_read;
        self.bytes_sent += other.bytes_sent;
        self.units += other.units;
        self.units_resumed += other.units_resumed;
        self.units_lost += other.units_lost;
        self.retries += other.retries;
        self.content.add(&other.content);
        self.verified = match (self.verified.take(), other.verified) {
            (Some(mut verified), Some(other)) => {
                verified.add(other);
                Some(verified)
            }
            (verified, other) => verified.or(other),
        };
        self.server_waits =
            ServerWaits::together([&self.server_waits, &other.server_waits].into_iter().flatten());
        self.notes.extend(other.notes);
    }

    /// Takes over what a later load of the same source, in the same run, found and sent again of what the target had
    /// lost.
    pub fn sent_again(&mut self, again: Self) {
        let Self { rows, content, verified, rows_rejected, mut notes, .. } = again;
        let lost = again.units.saturating_sub(again.units_resumed);
        if lost > 0 {
            notes.push(sent_again(lost, again.rows_loaded));
        }
        self.units_lost += lost;
        self.notes = notes;
        (self.rows, self.content, self.verified, self.rows_rejected) =
            (rows, content, verified, rows_rejected);
    }

    /// Says that of `planned` rows these were put aside in a file, before the load.
    ///
    /// # Errors
    /// All others are not there.
    pub fn put_aside(&mut self, rows: u64, planned: u64, file: &Path) -> Result<()> {
        self.rows_rejected = rows;
        if self.rows + rows != planned {
            let what = format!("{} rows are recorded as loaded, the source has {planned}", self.rows + rows);
            return Err(Error::new(Kind::Mismatch, what).advise("forget this load and start it again"));
        }
        if rows > 0 {
            self.notes.retain(|note| !note.contains("put aside"));
            let file = file.display();
            self.notes.push(format!("{rows} rows could not be loaded and were put aside in {file}"));
        }
        Ok(())
    }
}

/// Loads all rows of the source into the target, exactly once.
///
/// The same call again goes on where an earlier one ended, however it ended.
///
/// # Errors
/// See [`Target::prepare`]; a value that cannot be represented, with its file, row group, row and column;
/// a corrupt file; a connection that stays lost; a failed verification; a raised cancel flag. What was
/// committed before stays, out of sight or recorded, and the next run goes on from there.
pub fn load(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    match target.remembered(source, options, control)? {
        None => load_files(source, target, options, control),
        Some(remembered) => load_the_rest(source, target, remembered, options, control),
    }
}

/// Ends loads that were broken off, and loads the files that are not in the target yet.
fn load_the_rest(
    source: &dyn Source,
    target: &dyn Target,
    remembered: Remembered,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let started = Instant::now();
    let Remembered { already, unfinished, new, verified, notes } = remembered;
    let mut report = LoadReport::of_already_loaded(&already, notes);
    let unverified = verified.is_none() && !already.is_empty();
    report.verified = verified;
    for files in unfinished.into_iter().chain(Some(new)).filter(|files| !files.is_empty()) {
        report.add(load_files(&Portion::new(source, files), target, options, control)?);
    }
    report.bytes_in = source.files().iter().map(|file| file.bytes).sum();
    if unverified && report.verified.take().is_some() {
        report.notes.push("what this run has loaded is verified: the table holds it".to_owned());
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Loads a source as it is.
fn load_files(
    source: &dyn Source,
    target: &dyn Target,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<LoadReport> {
    let started = Instant::now();
    let anew = LoadOptions { again: true, ..options.clone() };
    let (session, notes) = match opened(source, target, options, control)? {
        Opened::Same(session, notes) => (session, notes),
        Opened::Changed(how) => match opened(source, target, &anew, control)? {
            Opened::Same(session, mut notes) => {
                notes.push(format!("loaded anew: {how}"));
                (session, notes)
            }
            Opened::Changed(error) => return Err(error),
        },
    };
    let session = session.as_ref();
    let source = session.source().unwrap_or(source);
    let runs = source.plan(session.unit_rows());
    let units = runs.iter().map(Vec::len).sum::<usize>() as u64;
    let under_way = UnderWay { source, session, options, control };
    let Loaded { progress, bytes_read, server_waits, verified } = match session.standing() {
        Standing::Complete => under_way.as_it_is()?,
        Standing::New | Standing::Resumed => under_way.to_the_end(runs)?,
    };
    let (total, rows_before) = (progress.total(), progress.rows_before());
    let mut notes = notes;
    let (units_lost, rows_lost) = progress.lost();
    if units_lost > 0 {
        notes.push(sent_again(units_lost, rows_lost));
    }
    let files = source.files().len() as u64;
    let complete = session.standing() == Standing::Complete;
    Ok(LoadReport {
        standing: session.standing(),
        files_loaded: if complete { 0 } else { files },
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
        units_resumed: session.done().len() as u64,
        units_lost,
        retries: progress.retries.load(Relaxed),
        seconds: started.elapsed().as_secs_f64(),
        content: total,
        verified,
        server_waits,
        notes: session.notes().into_iter().chain(notes).collect(),
    })
}

/// What there is to say of units that a target has lost.
pub(crate) fn sent_again(units: u64, rows: u64) -> String {
    format!(
        "{units} units with {rows} rows whose commit the server had confirmed were gone after a lost connection, and were sent \
         again"
    )
}

/// A load whose session is open.
struct UnderWay<'l> {
    source: &'l dyn Source,
    session: &'l dyn Session,
    options: &'l LoadOptions,
    control: &'l Control<'l>,
}

/// What a run has done.
struct Loaded {
    progress: Progress,
    bytes_read: u64,
    server_waits: Option<ServerWaits>,
    verified: Option<Verification>,
}

impl UnderWay<'_> {
    /// A load that is complete already.
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

    /// Sends what is missing, compares, and has the session finish. What the target loses until then, though it had
    /// confirmed it, is sent again.
    fn to_the_end(&self, mut runs: Vec<Vec<Unit>>) -> Result<Loaded> {
        let Self { session, options, .. } = *self;
        let done = session.done();
        let found = runs.iter().flatten();
        let found =
            found.filter_map(|unit| Some(Arrived { unit: *unit, tally: done.get(&unit.key)?.clone() }));
        let progress = Progress::new(session.columns(), found);
        runs.iter_mut().for_each(|run| run.retain(|unit| !done.contains_key(&unit.key)));
        let (mut bytes_read, mut waits, mut attempt) = (0, Vec::new(), 0);
        loop {
            bytes_read += runs.iter().flatten().map(|unit| unit.bytes).sum::<u64>();
            waits.push(self.copy(std::mem::take(&mut runs), &progress)?);
            if progress.retries.load(Relaxed) > 0 {
                runs = self.take_off_lost(&progress)?;
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
            // Contents that differ may be what was lost since the units were asked for.
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

    fn copy(&self, runs: Vec<Vec<Unit>>, progress: &Progress) -> Result<Option<ServerWaits>> {
        let (rows, bytes) = (progress.total().rows, progress.bytes_sent.load(Relaxed));
        let copying = self.control.phase().phase("copy");
        let waits = run_workers(self.source, self.session, self.options, self.control, runs, progress)?;
        copying.add_rows(progress.total().rows.saturating_sub(rows));
        copying.add_bytes(progress.bytes_sent.load(Relaxed) - bytes);
        copying.finish();
        Ok(waits)
    }

    /// Everything after the last unit.
    fn end(&self, progress: &Progress) -> Result<Option<Verification>> {
        let total = progress.total();
        let verified = self.verify(&total)?;
        self.source.check_unchanged()?;
        let finishing = self.control.phase().phase("finish");
        self.session.finish(&total, self.control)?;
        finishing.finish();
        Ok(verified)
    }

    /// Compares what is in with what there is to load, and where that is asked for with what the target has.
    fn verify(&self, total: &Tally) -> Result<Option<Verification>> {
        let (planned, recorded) = (self.source.rows(), total.rows + self.session.rejected());
        if self.source.knows_rows() && recorded != planned {
            return Err(Error::new(
                Kind::Mismatch,
                format!("{recorded} rows are recorded as loaded, the source has {planned}"),
            )
            .advise("forget this load and start it again"));
        }
        if !self.options.verify || !self.session.can_verify() {
            return Ok(None);
        }
        let verifying = self.control.phase().phase("verify");
        let verification = self.session.verify(total, self.control)?;
        verifying.add_rows(total.rows);
        verifying.finish();
        Ok(Some(verification))
    }
}

/// A session of a source that was compared with what is recorded of it.
enum Opened<'a> {
    /// It holds what was loaded. What is to be said about that.
    Same(Box<dyn Session + 'a>, Vec<String>),
    /// It does not, and the load is one to be done anew.
    Changed(Error),
}

fn opened<'a>(
    source: &'a dyn Source,
    target: &'a dyn Target,
    options: &'a LoadOptions,
    control: &Control<'_>,
) -> Result<Opened<'a>> {
    let preparing = control.phase().phase("prepare");
    let session = target.prepare(source, options, control)?;
    preparing.finish();
    let loaded = session.source().unwrap_or(source);
    if session.standing() != Standing::Complete {
        refuse_cut_otherwise(loaded, session.unit_rows(), session.done())?;
    }
    match recheck(loaded, session.as_ref(), options, control) {
        Ok(true) => Ok(Opened::Same(session, Vec::new())),
        Ok(false) => {
            let note = "what the source holds of rows that were loaded before was not looked at: some of them were put aside";
            Ok(Opened::Same(session, vec![note.to_owned()]))
        }
        Err(error)
            if error.kind() == Kind::Changed
                && session.standing() == Standing::Complete
                && session.starts_anew() =>
        {
            Ok(Opened::Changed(error))
        }
        Err(error) => Err(error),
    }
}

/// Refuses to go on where units that are in are none of the plan.
pub fn refuse_cut_otherwise(
    source: &dyn Source,
    unit_rows: u64,
    done: &HashMap<UnitKey, Tally>,
) -> Result<()> {
    let (mut found, mut cut_otherwise) = (0, false);
    for unit in source.plan(unit_rows).iter().flatten() {
        if let Some(tally) = done.get(&unit.key) {
            found += 1;
            cut_otherwise |= source.knows_rows() && tally.rows > unit.rows;
        }
    }
    let known = done.len();
    match cut_otherwise || found != known {
        false => Ok(()),
        true => Err(Error::new(
            Kind::Changed,
            format!("an earlier run has loaded {known} units, and this one would cut some of them otherwise"),
        )
        .advise(
            "it was another version of sawmill: finish the load with that one, or forget it and load again",
        )),
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
    let schedule = Schedule::new(runs).of_whole_runs(source.keeps_runs());
    let stop = AtomicBool::new(false);
    let control = control.with_stop(&stop);
    let over = AtomicBool::new(false);
    let (failures, waits) = std::thread::scope(|scope| {
        // Without this thread the load goes on just the same.
        let watching = Builder::new().name("watcher".into());
        let watching = watching.spawn_scoped(scope, || session.watch(&over, &control)).ok();
        let workers: Vec<_> = (0..options.degree.max(1).min(left))
            .map(|worker| {
                let number = worker + 1;
                let (schedule, control, stop) = (&schedule, &control, &stop);
                let work = move || {
                    let hand = &Hand::default();
                    let worker = Worker { number, source, session, options, schedule, progress, hand };
                    run_worker(&worker, control).inspect_err(|_| stop.store(true, Relaxed))
                };
                let spawned = Builder::new().name(format!("sender-{number}")).spawn_scoped(scope, work);
                spawned.inspect_err(|_| stop.store(true, Relaxed))
            })
            .collect();
        let results = workers.into_iter().map(|worker| match worker.map(|worker| worker.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(no_thread(&error)),
        });
        let failures = results.filter_map(Result::err).collect::<Vec<_>>();
        over.store(true, Relaxed);
        let waits = watching.and_then(|watching| {
            watching.thread().unpark();
            watching.join().ok().flatten()
        });
        (failures, waits)
    });
    // Those that were only stopped because another failed say nothing new.
    let told = failures.iter().find(|error| error.kind() != Kind::Cancelled).or(failures.first());
    told.map_or(Ok(waits), |error| Err(error.clone()))
}

/// Does `work` again when a connection was lost, after a pause each time.
pub fn retry_lost<T>(retries: u32, control: &Control<'_>, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    for attempt in 0..retries {
        match work() {
            Err(error) if error.kind() == Kind::Connection => control.sleep(backoff(attempt))?,
            other => return other,
        }
    }
    work()
}

/// Waiting time before the n-th new attempt: 100 ms doubled each time, 5 s at most.
pub fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(6)).min(Duration::from_secs(5))
}
