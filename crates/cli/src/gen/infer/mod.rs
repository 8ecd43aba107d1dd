//! Infers specs from existing files: Parquet, Arrow IPC, JSON records, CSV and other text.

mod arrow_lengths;
mod copies;
mod parquet_types;
mod ranges;
pub(in crate::r#gen) mod source;
mod text;

use std::path::{Path, PathBuf};

use sawmill_generator::{Dataset, InferredSpec, InferredTables, KeyColumn, Verbatim};

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::fidelity;
use crate::r#gen::options::like_args::{Inferred, LikeArgs, Wanted};
use crate::screen::phases;
use source::Source;

/// The spec for the columns of the files that `named` names.
pub(crate) fn of_schema(named: &Path, like: &LikeArgs, stores: &StoreArgs) -> Result<Inferred> {
    let source = Source::open(named, stores)?;
    finished(&source, &mut started(&source, like)?)
}

/// The spec for data like the files that `named` names.
pub(crate) fn of_sample(
    named: &Path,
    like: &LikeArgs,
    wanted: Wanted,
    stores: &StoreArgs,
) -> Result<Inferred> {
    let source = Source::open(named, stores)?;
    let mut sample = sampled(&source, like)?;
    sample.set_most_rows(wanted.rows.unwrap_or(0));
    let mut inferred = finished(&source, &mut sample)?;
    inferred.notices.push(fidelity::summary(&sample, &Dataset::from_toml(&inferred.spec)?, wanted)?);
    Ok(inferred)
}

/// The spec for tables like the files, which may refer to one another, to make with this scale and seed.
pub(crate) fn of_tables(
    named: &[PathBuf],
    like: &LikeArgs,
    (scale, seed): (Option<f64>, u64),
    stores: &StoreArgs,
) -> Result<Inferred> {
    let open = |path: &PathBuf| Source::open(path, stores);
    let sources = named.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut notices = Vec::new();
    let mut tables = with_keys(&sources, like, &mut notices)?;
    tables.iter_mut().for_each(InferredSpec::leave_out_refused);
    let inferred = InferredTables::new(tables)?.with_scale(scale.unwrap_or(1.0));
    let spec = inferred.to_toml()?;
    for (source, table) in sources.iter().zip(inferred.tables()) {
        let name = source.name();
        notices.extend(not_kept(table, &format!("{name}.")));
        let dataset = Dataset::table_from_toml(&spec, table.name(), scale)?;
        let summary = fidelity::summary(table, &dataset, Wanted { rows: None, seed })?;
        notices.push(format!("{name}: {summary}"));
    }
    notices.extend(inferred.evidence());
    Ok(Inferred { spec, notices })
}

/// The samples of sources that may refer to one another, with all values of columns that may be keys.
pub(crate) fn with_keys(
    sources: &[Source],
    like: &LikeArgs,
    notices: &mut Vec<String>,
) -> Result<Vec<InferredSpec>> {
    let has = |source: &Source, name: &String| source.schema.fields().iter().any(|f| f.name() == name);
    if let Some(unknown) = like.exclude.iter().find(|name| !sources.iter().any(|source| has(source, name))) {
        let what = format!("no file has a column named {unknown:?}");
        return Err(Error::usage(what, "--exclude", "name a column of one of the files"));
    }
    let mut out = Vec::new();
    for source in sources {
        let exclude = like.exclude.iter().filter(|name| has(source, name)).cloned().collect();
        let like = LikeArgs { exclude, ..like.clone() };
        let started = started(source, &like)?.with_keys(&source.schema);
        let mut sample = filled(source, started, &like)?;
        let candidates = sample.may_be_keys();
        if source.rows > KeyColumn::MAX_ROWS && !candidates.is_empty() {
            let (name, most) = (source.name(), phases::thousands(KeyColumn::MAX_ROWS));
            notices.push(format!("{name} has more than {most} rows: references to it are not looked for"));
            out.push(sample);
            continue;
        }
        for column in candidates {
            let Some(mut key) = KeyColumn::new(source.schema.field(column).data_type()) else { continue };
            source.each_value(column, &mut |values| key.add(values).map_err(|error| source.wrong(&error)))?;
            sample.set_key(column, &key);
        }
        out.push(sample);
    }
    Ok(out)
}

/// The sample of a source.
pub(crate) fn sampled(source: &Source, like: &LikeArgs) -> Result<InferredSpec> {
    filled(source, started(source, like)?, like)
}

fn filled(source: &Source, mut inferred: InferredSpec, like: &LikeArgs) -> Result<InferredSpec> {
    inferred.set_rows(source.rows);
    for (column, footer) in source.footers()?.into_iter().enumerate() {
        inferred.set_footer(column, footer.nulls, &footer.bounds).map_err(|error| source.wrong(&error))?;
    }
    source.each(like.sample, &mut |first, batch| {
        inferred.add_at(batch, first).map_err(|error| source.wrong(&error))
    })?;
    Ok(inferred)
}

fn started(source: &Source, like: &LikeArgs) -> Result<InferredSpec> {
    let inferred = InferredSpec::new(&source.name(), &source.schema, &like.exclude);
    Ok(inferred.map_err(|error| source.wrong(&error))?.with_verbatim(strings(like)))
}

fn finished(source: &Source, inferred: &mut InferredSpec) -> Result<Inferred> {
    let written = |inferred: &InferredSpec| inferred.to_toml().map_err(|error| source.wrong(&error));
    let mut spec = written(inferred)?;
    if Dataset::from_toml(&spec).is_err() {
        // One column, such as lists of very long strings, must not fail the others.
        inferred.leave_out_refused();
        spec = written(inferred)?;
    }
    Dataset::from_toml(&spec).map_err(|error| source.refused(&error))?;
    Ok(Inferred { spec, notices: not_kept(inferred, "") })
}

/// Which strings a spec may copy.
fn strings(like: &LikeArgs) -> Verbatim {
    match (like.verbatim, like.no_verbatim) {
        (true, _) => Verbatim::Always,
        (_, true) => Verbatim::Never,
        _ => Verbatim::Categories,
    }
}

/// What the spec does not have of the columns, whose names follow `table`.
fn not_kept(inferred: &InferredSpec, table: &str) -> Vec<String> {
    let left_out = inferred.left_out().into_iter();
    let left_out = left_out.map(|out| format!("left out: column {table}{}: {}", out.column, out.reason));
    let lost = inferred.types_not_kept().into_iter();
    let lost = lost.map(|of| format!("type not kept: column {table}{}: {}", of.column, of.reason));
    left_out.chain(lost).collect()
}
