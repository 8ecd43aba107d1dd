//! Folders of stores that `sawmill gen` writes to.

use sawmill_generator::StoreOutput;
use sawmill_store::ObjectUrl;

use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};
use crate::r#gen::clean::{CleanArgs, Cleaned};
use crate::r#gen::destination::UploadArgs;

pub(crate) fn output(
    url: &ObjectUrl,
    _: Option<(ObjectUrl, String)>,
    _: &UploadArgs,
    _: bool,
) -> Result<StoreOutput> {
    Err(Error::not_built(url.to_string()))
}

pub(crate) fn refuse_options(args: &StoreArgs) -> Result<()> {
    match args.store.first() {
        // The value may be a secret.
        Some(_) => Err(Error::not_built("--store")),
        None => Ok(()),
    }
}

pub(crate) fn clean(url: &ObjectUrl, _: &CleanArgs) -> Result<Cleaned> {
    Err(Error::not_built(url.to_string()))
}
