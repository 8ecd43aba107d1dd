//! Looks up the files of a source in the records of loads.

use std::collections::{BTreeSet, HashMap};

use sawmill_profile::format_counted;
use sawmill_source::{Error, Kind, Mapping, Result, Source, SourceFile};

use crate::engine::load::LoadOptions;
use crate::engine::note::Note;
use crate::history::portion::Portion;
use crate::history::record::{LoadRecord, Loads, Remembered};
use crate::identity::REPLACED;
use crate::table::mode::Mode;
use crate::table::schema_change::and_more_files;

/// A file of the source that an earlier load contains.
pub struct Found<'l> {
    /// Its position in the source.
    pub file: u32,
    /// The load.
    pub load: &'l LoadRecord,
    /// Its position in that load.
    pub place: u32,
}

/// The files at these places of which one of the loads took the same rows, or others that may overlap.
pub fn taken<'s>(
    source: &'s dyn Source,
    places: &[u32],
    loads: &[&LoadRecord],
    mapping: &Mapping,
) -> Vec<&'s SourceFile> {
    let loads = loads.iter().filter(|load| !load.may_be_part_beside(mapping));
    let taken: BTreeSet<(&String, &String)> =
        loads.flat_map(|load| load.files.names.iter().zip(&load.files.fingerprints)).collect();
    let files = places.iter().filter_map(|place| source.files().get(*place as usize));
    files.filter(|file| taken.contains(&(&file.name, &file.fingerprint))).collect()
}

/// Refuses a new file whose rows are in the table by one of the loads `otherwise`, which took other columns of it or
/// other rows: they would be there twice.
///
/// # Errors
/// There is such a file.
pub(super) fn refuse_taken_otherwise(
    source: &dyn Source,
    new: &[u32],
    otherwise: &[&LoadRecord],
    mapping: &Mapping,
) -> Result<()> {
    let Some(file) = taken(source, new, otherwise, mapping).into_iter().next() else { return Ok(()) };
    let what = format!("{} is in the table already, by a load with {OTHER_OPTIONS}", file.name);
    Err(Error::new(Kind::Exists, what).advise(
        "leave the file out, or give the options of that load; --mode replace loads everything from the beginning; \
         --again adds its rows a second time",
    ))
}

/// The remark on files that were read by other options for text when they were loaded: they are not read again.
pub(super) fn read_otherwise(found: &[Found<'_>], mapping: &Mapping) -> Option<Note> {
    let is_other = |found: &&Found<'_>| found.load.mapping.as_ref().is_some_and(|of_load| of_load != mapping);
    let count = found.iter().filter(is_other).count() as u64;
    (count > 0).then(|| {
        let files = format_counted(count, "file");
        Note::from(format!(
            "{files} on record, read by other options for text; --again adds the rows as read now"
        ))
    })
}

/// The rest of the work if all files of a source are loaded again: interrupted loads are finished first.
/// `None` if there are none, or if one of them is the load of ID `own`, which resumes anyway.
pub(super) fn loaded_again(
    source: &dyn Source,
    here: &[&LoadRecord],
    own: &str,
    unfinished: Vec<Vec<u32>>,
) -> Option<Remembered> {
    let resumes = here.iter().any(|load| load.id == own && !load.complete);
    (!resumes && !unfinished.is_empty())
        .then(|| Remembered::with_the_rest(source, unfinished, &BTreeSet::new()))
}

/// The loads without interrupted ones that have committed nothing, and of which other loads have a file, as it was or is
/// now; or that began for other content, if it is the load of ID `own`. Such a record says nothing about the files as they
/// are now.
///
/// # Errors
/// Errors of `holds_nothing`.
pub(super) fn without_void<'l>(
    source: &dyn Source,
    here: Vec<&'l LoadRecord>,
    own: &str,
    holds_nothing: impl Fn(&LoadRecord) -> Result<bool>,
) -> Result<Vec<&'l LoadRecord>> {
    let files = |load: &&'l LoadRecord| load.files.names.iter().zip(&load.files.fingerprints);
    let known: BTreeSet<_> = here.iter().filter(|load| load.complete).flat_map(files).collect();
    let names = |of: &mut dyn Iterator<Item = &SourceFile>| -> BTreeSet<String> {
        of.map(|file| file.name.clone()).collect()
    };
    let given = names(&mut source.files().iter());
    let on_record =
        names(&mut source.files().iter().filter(|file| known.contains(&(&file.name, &file.fingerprint))));
    let begun_twice = |load: &LoadRecord, name: &String| {
        let mut others = here.iter().filter(|other| !other.complete && other.id != load.id);
        given.contains(name) && others.any(|other| other.files.names.contains(name))
    };
    let is_over = |load: &&'l LoadRecord| {
        files(load).any(|file| known.contains(&file))
            || load.files.names.iter().any(|name| on_record.contains(name) || begun_twice(load, name))
            || load.id == own && !load.files.changed(source.files()).is_empty()
    };
    let kept = here.iter().map(|load| {
        let is_void = !load.complete && is_over(load) && holds_nothing(load)?;
        Ok((!is_void).then_some(*load))
    });
    kept.filter_map(Result::transpose).collect()
}

/// Whether the load of ID `own` is recorded: the same list of files is handled as a whole, unless some of
/// them have other contents now. A `complete` one counts only on demand.
pub(super) fn is_known_list(source: &dyn Source, here: &[&LoadRecord], own: &str, complete: bool) -> bool {
    let as_before =
        |load: &LoadRecord| !load.complete || complete && load.files.changed(source.files()).is_empty();
    here.iter().any(|load| load.id == own && as_before(load))
}

/// Whether no other load is interrupted than one of the whole list of files: its load finishes that.
pub(super) fn are_none_or_all(source: &dyn Source, unfinished: &[Vec<u32>]) -> bool {
    let all = 0..source.files().len() as u32;
    unfinished.iter().all(|files| files.iter().copied().eq(all.clone()))
}

/// Whether to append the source to its table: a load made the table, and one with some of the source's files
/// filled it. The same files as in the load in mode create that made it, with the same `mapping`, repeat that load
/// instead; with [`LoadOptions::append_changed`] only while they are unchanged, and never with
/// [`LoadOptions::replace_changed`] or while an append of one of them is unfinished.
pub(crate) fn adds_files(
    source: &dyn Source,
    loads: &[&LoadRecord],
    mapping: &Mapping,
    options: &LoadOptions,
) -> bool {
    let names: Vec<&String> = source.files().iter().map(|file| &file.name).collect();
    let complete: Vec<&LoadRecord> = loads.iter().copied().filter(|load| load.complete).collect();
    let mut makers = complete.iter().filter(|load| load.made_the_table()).peekable();
    let is_repeated = |load: &LoadRecord| {
        let unchanged = || load.files.changed(source.files()).is_empty();
        load.mode == Mode::Create.name()
            && load.mapping.as_ref() == Some(mapping)
            && load.files.names.iter().eq(names.iter().copied())
            && !options.replace_changed
            && (!options.append_changed || unchanged())
    };
    let known: BTreeSet<&String> = complete.iter().flat_map(|load| &load.files.names).collect();
    let given: BTreeSet<&String> = names.iter().copied().collect();
    let is_unfinished = |load: &LoadRecord| {
        !load.complete
            && load.mode == Mode::Append.name()
            && load.files.names.iter().any(|name| given.contains(name))
    };
    makers.peek().is_some()
        && (loads.iter().any(|load| is_unfinished(load)) || !makers.any(|load| is_repeated(load)))
        && names.iter().any(|name| known.contains(name))
}

/// The notice that files which complete loads contain are loaded once more.
pub(super) fn found_again(source: &dyn Source, loads: &[&LoadRecord]) -> Option<String> {
    let found = found(source, loads);
    let first = source.files().get(found.first()?.file as usize)?;
    let more = and_more_files(found.len() - 1);
    Some(format!(
        "--again loads {}{more} once more: rows that the table still has will be there twice, unless a key forbids that",
        first.name
    ))
}

/// The source's files that complete loads contain. If several loads contain a file, the last one counts.
pub(super) fn found<'l>(source: &dyn Source, loads: &[&'l LoadRecord]) -> Vec<Found<'l>> {
    let mut known: HashMap<(&str, &str), (&'l LoadRecord, u32)> = HashMap::new();
    for load in loads.iter().filter(|load| load.complete) {
        let files = load.files.names.iter().zip(&load.files.fingerprints);
        for (place, (name, fingerprint)) in (0..).zip(files) {
            known.insert((name, fingerprint), (load, place));
        }
    }
    let files = (0..).zip(source.files());
    let found = files.filter_map(|(file, named)| {
        let (load, place) = known.get(&(named.name.as_str(), named.fingerprint.as_str()))?;
        Some(Found { file, load, place: *place })
    });
    found.collect()
}

/// Parts interrupted loads from those of which a file has other content now: instead of finishing these, all rows of
/// their files are replaced. Returns the others, and the places of these files.
///
/// # Errors
/// Errors of `holds_nothing`.
pub(super) fn with_other_content<'l>(
    source: &dyn Source,
    loads: Vec<&'l LoadRecord>,
    holds_nothing: impl Fn(&LoadRecord) -> Result<bool>,
) -> Result<(Vec<&'l LoadRecord>, Vec<u32>)> {
    let (mut others, mut places) = (Vec::new(), BTreeSet::new());
    for load in loads {
        let files = source.files();
        let place = |name: &String| files.iter().position(|file| file.name == *name).map(|at| at as u32);
        let of_load: Option<Vec<u32>> = load.files.to_replace(files).into_iter().map(place).collect();
        match of_load.filter(|of_load| !of_load.is_empty()) {
            Some(of_load) if !holds_nothing(load)? => places.extend(of_load),
            _ => others.push(load),
        }
    }
    Ok((others, places.into_iter().collect()))
}

/// The files of each interrupted load that includes files of the source. `is_same` says whether a load of
/// these files would now continue it.
///
/// # Errors
/// An interrupted load with rows that cannot be finished with the source's files and options; errors of `holds_nothing`.
pub(super) fn broken_off(
    source: &dyn Source,
    loads: &[&LoadRecord],
    is_same: impl Fn(Portion<'_>, &LoadRecord) -> bool,
    holds_nothing: impl Fn(&LoadRecord) -> Result<bool>,
) -> Result<Vec<Vec<u32>>> {
    let mut unfinished = Vec::new();
    for load in loads.iter().filter(|load| !load.complete) {
        let place = |name: &String| (0..).zip(source.files()).find(|(_, file)| file.name == *name);
        let places: Vec<Option<u32>> =
            load.files.names.iter().map(|name| place(name).map(|(at, _)| at)).collect();
        if places.iter().all(Option::is_none) {
            continue;
        }
        let (first, others) = (load.files.names.first(), load.files.names.len().saturating_sub(1));
        let named = first.cloned().unwrap_or_default() + &and_more_files(others);
        let lacking = load.files.names.iter().zip(&places).find(|(_, place)| place.is_none());
        let places: Vec<u32> = places.iter().flatten().copied().collect();
        let what = match lacking {
            Some((lacking, _)) => format!(
                "a load of {named} was interrupted, and its file {lacking} is not among the files of this one"
            ),
            None if is_same(Portion::new(source, places.clone()), load) => {
                unfinished.push(places);
                continue;
            }
            None => format!(
                "a load of {named} was interrupted, in mode {} and with options other than these",
                load.mode
            ),
        };
        if !holds_nothing(load)? {
            return Err(Error::new(Kind::Exists, what).advise(
                "finish that load with the files, the mode and the options that it began with, or load everything from the \
                 beginning with --mode replace: its rows are in the table, and stay there after sawmill load forget",
            ));
        }
    }
    Ok(unfinished)
}

/// The names and fingerprints of the files whose rows these loads have in the table: no other load has replaced them.
fn in_table<'l>(loads: &[&'l LoadRecord]) -> impl Iterator<Item = (&'l String, &'l String)> {
    let recorded = loads.iter().flat_map(|load| load.files.names.iter().zip(&load.files.fingerprints));
    recorded.filter(|(_, print)| !print.ends_with(REPLACED))
}

/// The new files that were loaded before with other content.
fn changed_files(source: &dyn Source, loads: &[&LoadRecord], new: &[u32]) -> Vec<u32> {
    let known: BTreeSet<(&String, &String)> = in_table(loads).collect();
    let least = String::new();
    let had_another = |file: &SourceFile| {
        let of_name = known.range((&file.name, &least)..);
        of_name.take_while(|(name, _)| **name == file.name).any(|(_, was)| **was != file.fingerprint)
    };
    let is_changed = |place: &&u32| source.files().get(**place as usize).is_some_and(had_another);
    new.iter().filter(is_changed).copied().collect()
}

/// If their rows are to be replaced, moves the files that were loaded before with other content, here or `otherwise`, out
/// of the new ones. Otherwise adds remarks about them. The target `updates_rows` by their keys, or does not.
///
/// # Errors
/// There is such a file, and neither [`LoadOptions::append_changed`] nor [`LoadOptions::replace_changed`] is
/// set; a replacement would delete rows of a load `otherwise`.
pub(super) fn sort_out_changed(
    source: &dyn Source,
    (here, otherwise): (&[&LoadRecord], &[&LoadRecord]),
    remembered: &mut Remembered,
    (options, updates_rows): (&LoadOptions, bool),
) -> Result<()> {
    let changed = changed_files(source, &[here, otherwise].concat(), &remembered.new);
    if options.replace_changed {
        remembered.new.retain(|place| !changed.contains(place));
        remembered.replaced.extend(changed);
        return refuse_to_replace(source, &remembered.replaced, otherwise);
    }
    if !options.append_changed {
        let upsert = if updates_rows { "; rows with a key can be updated with --mode upsert" } else { "" };
        return refuse(source, &changed, &format!("{CHANGED}{upsert}"));
    }
    let files = changed.iter().filter_map(|place| source.files().get(*place as usize));
    remembered.notes.extend(files.map(|file| Note::from(format!("{} {LOADED_BEFORE}", file.name))));
    Ok(())
}

/// Refuses to replace the rows of files of which loads `otherwise` have rows in the table, too: those would be deleted.
///
/// # Errors
/// There is such a file.
pub fn refuse_to_replace(source: &dyn Source, places: &[u32], otherwise: &[&LoadRecord]) -> Result<()> {
    let theirs: BTreeSet<&String> = in_table(otherwise).map(|(name, _)| name).collect();
    let mut files = places.iter().filter_map(|place| source.files().get(*place as usize));
    let Some(file) = files.find(|file| theirs.contains(&file.name)) else { return Ok(()) };
    let what = format!(
        "the rows of {} cannot be replaced: a load with {OTHER_OPTIONS} has added some of them, which would be deleted",
        file.name
    );
    Err(Error::new(Kind::Exists, what).advise(
        "to add the new rows beside the old ones, append with --changed append; to load everything from the beginning, use \
         --mode replace with options that take the rows of both",
    ))
}

/// Decides once more on the files of an append that begins, by the records of this moment, without loads that hold
/// nothing and do not run. `replacing` are loads that now replace rows of files; `replaces` says that this one does.
///
/// # Errors
/// A file that another load has begun with since this one read the records.
pub fn refuse_begun(
    source: &dyn Source,
    loads: &Loads<'_>,
    replacing: &[&LoadRecord],
    replaces: bool,
    mapping: &Mapping,
    options: &LoadOptions,
) -> Result<()> {
    let all: Vec<u32> = (0..source.files().len() as u32).collect();
    refuse_taken_otherwise(source, &all, &loads.otherwise, mapping)?;
    if replaces {
        refuse_to_replace(source, &all, &loads.otherwise)?;
    }
    let changed = changed_files(source, &[&loads.here[..], &loads.otherwise].concat(), &all);
    let is_changed = |at: u32| changed.contains(&at);
    let files = |loads: &[&LoadRecord]| -> BTreeSet<(String, String)> {
        let files = loads.iter().map(|load| &load.files);
        files.flat_map(|files| files.names.iter().cloned().zip(files.fingerprints.iter().cloned())).collect()
    };
    let names = |loads: &[&LoadRecord]| -> BTreeSet<String> {
        loads.iter().flat_map(|load| load.files.names.iter().cloned()).collect()
    };
    let both = loads.here.iter().chain(&loads.otherwise).copied();
    let running: Vec<&LoadRecord> = both.filter(|load| replaces && !load.complete).collect();
    let (taken, replacing, running) = (files(&loads.here), names(replacing), names(&running));
    let begun = |(at, file): &(u32, &SourceFile)| {
        let identity = (file.name.clone(), file.fingerprint.clone());
        !replaces && taken.contains(&identity)
            || replacing.contains(&file.name)
            || running.contains(&file.name)
            || options.replace_changed && !replaces && is_changed(*at)
    };
    if let Some((_, file)) = (0..).zip(source.files()).find(begun) {
        let what = format!("another load of {} has begun meanwhile", file.name);
        let advice = "run the same command again: it loads what is missing";
        return Err(Error::new(Kind::Busy, what).advise(advice));
    }
    if replaces || options.append_changed { Ok(()) } else { refuse(source, &changed, CHANGED) }
}

/// The options that decide what a load takes of its files.
const OTHER_OPTIONS: &str = "other options (columns, names, conditions, lineage, types or zone)";

/// What to do about a changed file.
const CHANGED: &str = "to replace the rows of a file by its new ones, give --changed replace (with --file-column); to add \
                       the new rows beside the old ones, append with --changed append; to load everything from the \
                       beginning, use --mode replace";

/// What is the matter with a changed file.
const LOADED_BEFORE: &str = "was loaded before with other content; those rows stay in the table";

/// Refuses the changed files, if there are any.
fn refuse(source: &dyn Source, changed: &[u32], advice: &str) -> Result<()> {
    let mut files = changed.iter().filter_map(|place| source.files().get(*place as usize));
    let Some(SourceFile { name, .. }) = files.next() else { return Ok(()) };
    let more = match files.count() {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Err(Error::new(Kind::Exists, format!("{name}{more} {LOADED_BEFORE}")).advise(advice))
}

/// Refuses files that `loads` of their table contain with other content, for a source with a part of their rows: such
/// files are not looked up one by one.
///
/// # Errors
/// There is such a file, and neither [`LoadOptions::append_changed`] nor [`LoadOptions::again`] is set.
pub fn refuse_changed(source: &dyn Source, loads: &[&LoadRecord], options: &LoadOptions) -> Result<()> {
    if options.append_changed || options.again {
        return Ok(());
    }
    let adds = |load: &&LoadRecord| load.complete && load.mode != Mode::Upsert.name();
    let loads: Vec<&LoadRecord> = loads.iter().copied().filter(adds).collect();
    let known: BTreeSet<u32> = found(source, &loads).iter().map(|found| found.file).collect();
    let new: Vec<u32> = (0..source.files().len() as u32).filter(|file| !known.contains(file)).collect();
    refuse(
        source,
        &changed_files(source, &loads, &new),
        "to add the first rows of the new content beside the old ones, append with --changed append; to load everything \
         from the beginning, use --mode replace",
    )
}
