//! Runs a load from plan to report.
//!
//! Every connection has two threads: one decodes and encodes, one sends. They are coupled by a channel
//! of [`CHANNEL`] blocks, so that the server never waits for a decoder that could have been ahead, and no
//! decoder gets further ahead than that. Memory is bounded by
//! `degree × (CHANNEL + 4) × batch_bytes` (blocks in the channel, one being filled, one being sent, and
//! the connection's write buffer, which holds up to two), plus for each connection the decoded pages of
//! one batch. With a rejects file it adds up to 4 MiB of blocks that the server has not acknowledged yet.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use sawmill_profile::{format_counted, turns};
use sawmill_source::{Control, Error, Kind, Result, Source, UnitKey, refuse_variants};

use crate::engine::note::Note;
use crate::engine::part::Share;
use crate::engine::report::LoadReport;
use crate::engine::target::{LoadState, Session, Target};
use crate::engine::under_way::UnderWay;
use crate::engine::verification::Tally;
use crate::history::portion::Portion;
use crate::history::record::Remembered;
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
    let loading = Loading { target, options, control };
    match retry_reached(options.retries, control, &|| target.has_answered(), remember)? {
        None => arrange(source, &mut |source| loading.files(source)),
        Some(remembered) => loading.the_rest(source, remembered, arrange),
    }
}

/// Where files are loaded to, and how.
#[derive(Clone, Copy)]
struct Loading<'l> {
    target: &'l dyn Target,
    options: &'l LoadOptions,
    control: &'l Control<'l>,
}

/// A session whose source was compared with the target's records of it.
enum Opened<'a> {
    /// The source still holds the loaded rows, as far as the notes say.
    Same(Box<dyn Session + 'a>, Vec<Note>),
    /// The source has changed, and the load starts over.
    Changed(Error),
}

impl<'l> Loading<'l> {
    /// Finishes interrupted loads, and loads the files that are not in the target yet.
    fn the_rest(
        self,
        source: &dyn Source,
        remembered: Remembered,
        arrange: &Arrange<'_>,
    ) -> Result<LoadReport> {
        let started = turns::now();
        let load = |files: Vec<u32>, target: &dyn Target| {
            let loading = Loading { target, ..self };
            arrange(&Portion::new(source, files), &mut |source| loading.files(source))
        };
        let Remembered { already, unfinished, replaced, new, verified, notes } = remembered;
        let mut report = LoadReport::of_already_loaded(&already, notes);
        report.verified = verified;
        let is_unverified = |report: &LoadReport| report.verified.is_none() && report.rows > 0;
        let verified_rows =
            |report: &LoadReport| report.verified.as_ref().map_or(0, |found| found.source.rows);
        let (earlier, mut later, mut verified) = (is_unverified(&report), false, verified_rows(&report));
        let mut add = |of_files: LoadReport| {
            later |= is_unverified(&of_files);
            verified += verified_rows(&of_files);
            report.add(of_files);
        };
        // A key may have moved from a corrected file to another one, or to a new one, which may have been begun.
        if let Some(replacing) = self.target.replacing() {
            let at_once = if self.target.replaces_together() { replaced.len().max(1) } else { 1 };
            for files in replaced.chunks(at_once) {
                let files_replaced = files.len() as u64;
                add(LoadReport { files_replaced, ..load(files.to_vec(), replacing.as_ref())? });
            }
        }
        for files in unfinished.into_iter().chain(Some(new)).filter(|files| !files.is_empty()) {
            add(load(files, self.target)?);
        }
        report.bytes_in = source.files().iter().map(|file| file.bytes).sum();
        if verified > 0 && (earlier || later) {
            report.verified = None;
            report.notes.push(partly_verified(verified, later));
        }
        report.seconds = turns::now().saturating_duration_since(started).as_secs_f64();
        Ok(report)
    }

    /// Loads the whole source, without looking for files of earlier loads.
    fn files(self, source: &dyn Source) -> Result<LoadReport> {
        let Self { target, options, control } = self;
        let started = turns::now();
        let anew = LoadOptions { again: true, ..options.clone() };
        let open = |options| {
            let open = || Loading { options, ..self }.open(source);
            retry_reached(anew.retries, control, &|| target.has_answered(), open)
        };
        let load = |session: &dyn Session, notes| UnderWay::new(source, session, options, control).run(notes);
        let loaded_anew = |how: Error| match open(&anew)? {
            Opened::Same(session, mut notes) => {
                notes.push(format!("loaded from the beginning: {}", how.what()).into());
                load(session.as_ref(), notes)
            }
            Opened::Changed(error) => Err(error),
        };
        let mut report = match open(options)? {
            Opened::Same(session, notes) => {
                let replaces = session.state() == LoadState::Complete && session.starts_anew();
                let loaded = load(session.as_ref(), notes);
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

    fn open<'a>(self, source: &'a dyn Source) -> Result<Opened<'a>>
    where
        'l: 'a,
    {
        let Self { target, options, control } = self;
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
                let note = "did not compare the source with the rows loaded before: some of them were rejected, or a column of \
                            the table has another type since";
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
}

/// The note on a verification of these rows alone.
fn partly_verified(rows: u64, later: bool) -> Note {
    let rows = format_counted(rows, "row");
    Note::PartlyVerified(match later {
        true => format!(
            "verified only {rows} of the files, which the table holds; their other rows were not compared"
        ),
        false => format!(
            "verified what this run loaded: the table holds it, {rows}; rows of earlier runs were not compared"
        ),
    })
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
