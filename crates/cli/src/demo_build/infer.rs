//! `sawmill gen --like` and `--schema-of`.

use std::path::{Path, PathBuf};

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::options::like_args::{Inferred, LikeArgs, Wanted};

pub(crate) fn of_schema(named: &Path, _: &LikeArgs, _: &StoreArgs) -> Result<Inferred> {
    Err(Error::not_built(format!("--schema-of {}", named.display())))
}

pub(crate) fn of_sample(named: &Path, _: &LikeArgs, _: Wanted, _: &StoreArgs) -> Result<Inferred> {
    Err(Error::not_built(format!("--like {}", named.display())))
}

pub(crate) fn of_tables(
    named: &[PathBuf],
    _: &LikeArgs,
    _: (Option<f64>, u64),
    _: &StoreArgs,
) -> Result<Inferred> {
    let first = named.first().map_or(Path::new(""), PathBuf::as_path);
    Err(Error::not_built(format!("--like {}", first.display())))
}
