//! A build without the feature `stores`: URLs and their options are errors that say how to get it.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sawmill_store::{Kind, ObjectReader, ObjectUrl};

use super::StoreArgs;
use crate::arguments::paths::Wanted;
use crate::error::Error;

/// No stores.
#[derive(Debug, Default)]
pub(crate) struct Objects;

impl Objects {
    pub(crate) fn of(args: &StoreArgs, url: Option<&ObjectUrl>, _: &Arc<AtomicBool>) -> Result<Self, Error> {
        match (url, args.store.first()) {
            (Some(url), _) => Err(not_built(url)),
            // The value may be a secret.
            (None, Some(_)) => Err(Error::not_built("--store".to_owned(), "stores")),
            (None, None) => Ok(Self),
        }
    }

    pub(crate) fn named(&self, url: &ObjectUrl, _: Wanted) -> Result<Vec<ObjectUrl>, Error> {
        Err(not_built(url))
    }

    #[cfg(feature = "delta")]
    pub(crate) fn table(
        &self,
        url: &ObjectUrl,
    ) -> Result<Box<dyn sawmill_delta::TableFolder>, sawmill_store::Error> {
        Err(without_stores(url))
    }

    pub(crate) fn open(&self, url: &ObjectUrl, _: u64) -> Result<ObjectReader, sawmill_store::Error> {
        Err(without_stores(url))
    }

    pub(crate) fn copy(&self, url: &ObjectUrl, _: &mut dyn Write) -> Result<(), sawmill_store::Error> {
        Err(without_stores(url))
    }

    pub(crate) fn create(
        &self,
        url: &ObjectUrl,
        _: bool,
        _: u64,
    ) -> Result<ObjectOutput, sawmill_store::Error> {
        Err(without_stores(url))
    }
}

/// No object is ever written.
#[derive(Debug)]
pub(crate) struct ObjectOutput(Infallible);

impl ObjectOutput {
    pub(crate) fn finish(self) -> Result<(), sawmill_store::Error> {
        match self.0 {}
    }
}

impl Write for ObjectOutput {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

fn without_stores(url: &ObjectUrl) -> sawmill_store::Error {
    sawmill_store::Error::new(Kind::Usage, "this build has no stores").at(url.to_string())
}

fn not_built(url: &ObjectUrl) -> Error {
    Error::not_built(url.to_string(), "stores")
}
