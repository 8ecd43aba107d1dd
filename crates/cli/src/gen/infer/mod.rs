//! Infers specs from existing files: Parquet, Arrow IPC, or JSON records.

mod ranges;
pub(in crate::r#gen) mod source;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_generator::InferredSpec;

use crate::arguments::stores::StoreArgs;
use crate::error::Error;
use crate::r#gen::fidelity;
use crate::r#gen::options::like_args::{Inferred, LikeArgs};
use source::Source;

/// The spec for the columns of the files that `named` stands for.
pub(crate) fn of_schema(
    named: &Path,
    like: &LikeArgs,
    stores: &StoreArgs,
    cancel: &Arc<AtomicBool>,
) -> Result<Inferred, Error> {
    let source = Source::open(named, stores, cancel)?;
    let inferred = started(&source, like)?;
    finished(&source, &inferred)
}

/// The spec for data like the files that `named` stands for.
pub(crate) fn of_sample(
    named: &Path,
    like: &LikeArgs,
    stores: &StoreArgs,
    cancel: &Arc<AtomicBool>,
) -> Result<Inferred, Error> {
    let source = Source::open(named, stores, cancel)?;
    let sample = sampled(&source, like)?;
    let mut inferred = finished(&source, &sample)?;
    inferred.notices.push(fidelity::summary(&sample, &inferred.spec)?);
    Ok(inferred)
}

/// The sample of a source.
pub(crate) fn sampled(source: &Source, like: &LikeArgs) -> Result<InferredSpec, Error> {
    let mut inferred = started(source, like)?;
    inferred.set_rows(source.rows());
    for (column, footer) in source.footers()?.into_iter().enumerate() {
        inferred.set_footer(column, footer.nulls, &footer.bounds).map_err(|error| source.wrong(&error))?;
    }
    source.each(like.sample, &mut |first, batch| {
        inferred.add_at(batch, first).map_err(|error| source.wrong(&error))
    })?;
    Ok(inferred)
}

fn started(source: &Source, like: &LikeArgs) -> Result<InferredSpec, Error> {
    let inferred = InferredSpec::new(source.name(), source.schema(), &like.exclude);
    Ok(inferred.map_err(|error| source.wrong(&error))?.with_verbatim(like.strings()))
}

fn finished(source: &Source, inferred: &InferredSpec) -> Result<Inferred, Error> {
    let spec = inferred.to_toml().map_err(|error| source.wrong(&error))?;
    let notices = inferred.left_out().into_iter();
    let notices = notices.map(|out| format!("left out: column {}: {}", out.column, out.reason)).collect();
    Ok(Inferred { spec, notices })
}
