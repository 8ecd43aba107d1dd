//! Objects in stores.

use sawmill_store::{Kind, ObjectReader, ObjectUrl};

use crate::arguments::paths::Wanted;
use crate::arguments::stores::StoreArgs;
use crate::error::{Error, Result};

/// No stores.
#[derive(Debug, Default)]
pub(crate) struct Objects;

impl Objects {
    pub(crate) fn new(args: &StoreArgs, url: Option<&ObjectUrl>) -> Result<Self> {
        match (args.store.first(), url) {
            (None, None) => Ok(Self),
            (None, Some(url)) => Err(Error::not_built(url.to_string())),
            // The value may be a secret.
            (Some(_), _) => Err(Error::not_built("--store")),
        }
    }

    pub(crate) fn named(&self, url: &ObjectUrl, _: Wanted) -> Result<Vec<ObjectUrl>> {
        Err(Error::not_built(url.to_string()))
    }

    pub(crate) fn open(&self, url: &ObjectUrl, _: u64) -> Result<ObjectReader, sawmill_store::Error> {
        let what = "the demo's build of sawmill has no stores";
        Err(sawmill_store::Error::new(Kind::Usage, what).at(url.to_string()))
    }
}
