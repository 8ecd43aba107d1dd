//! Checks that the source still holds the loaded rows, by computing the sums of its units again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sawmill_profile::format_counted;
use sawmill_source::{Control, Error, Kind, Read, Result, Source, Unit, UnitKey};

use crate::engine::content_sum::Tally;
use crate::engine::load::LoadOptions;
use crate::engine::target::{LoadState, Session};
use crate::identity::reading::{Encoders, Reading, Reread};

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
