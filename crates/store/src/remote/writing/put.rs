//! Requests that write an object only if the store still has the expected one.
//!
//! An answer can be lost after the store has written the object; the repeated request then finds its own object in the
//! way. So each upload has a mark, which the store keeps beside the bytes: an object with our mark is ours.

use object_store::path::Path;
use object_store::{
    Attribute, AttributeValue, Attributes, Error as StoreError, GetOptions, ObjectStoreExt, PutMode,
    PutOptions, PutPayload, UpdateVersion,
};

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::partial::unique;
use crate::remote::client::Client;
use crate::remote::faults::fault;

/// The name of the mark. Azure allows neither `-` nor `.` in it.
const MARK: &str = "sawmillupload";

/// How often a request is sent again that the client must not repeat on its own.
const ATTEMPTS: u32 = 4;

/// Identifies an upload among all others.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(unique())
    }

    pub(super) fn attributes(&self) -> Attributes {
        let name = Attribute::Metadata(MARK.into());
        [(name, AttributeValue::from(self.0.clone()))].into_iter().collect()
    }

    /// The version of the object at `path` if it is this upload's.
    pub(super) async fn of_ours(
        &self,
        client: &Client,
        url: &ObjectUrl,
        path: &Path,
    ) -> Result<Option<UpdateVersion>, Error> {
        let head = GetOptions { head: true, ..GetOptions::default() };
        match client.store.get_opts(path, head).await {
            Ok(found) => {
                let mark = found.attributes.get(&Attribute::Metadata(MARK.into()));
                let ours = mark.is_some_and(|mark| mark.as_ref() == self.0);
                let version =
                    UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
                Ok(ours.then_some(version))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(fault(url, &error)),
        }
    }
}

/// Writes an object with one request, under a unique mark.
pub(super) async fn put(
    client: &Client,
    url: &ObjectUrl,
    path: &Path,
    bytes: Vec<u8>,
    (mode, mark): (PutMode, &Mark),
) -> Result<UpdateVersion, Error> {
    let payload = PutPayload::from(bytes);
    let mut attempt = 0;
    loop {
        let options =
            PutOptions { mode: mode.clone(), attributes: mark.attributes(), ..PutOptions::default() };
        let error = match client.store.put_opts(path, payload.clone(), options).await {
            Ok(put) => return Ok(UpdateVersion { e_tag: put.e_tag, version: put.version }),
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => {
                return mark.of_ours(client, url, path).await?.ok_or_else(|| taken(url));
            }
            Err(error) => fault(url, &error),
        };
        attempt += 1;
        if error.kind() != Kind::Unavailable || attempt == ATTEMPTS {
            return Err(error);
        }
        client.pause(attempt).await;
    }
}

/// Removes an object.
pub(super) async fn remove(client: &Client, url: &ObjectUrl, path: &Path) -> Result<(), Error> {
    match client.store.delete(path).await {
        Err(StoreError::NotFound { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(fault(url, &error)),
    }
}

/// The error of an object that another run has written.
pub(super) fn taken(url: &ObjectUrl) -> Error {
    Error::new(Kind::Exists, "another program has written the object in the meantime")
        .at(url.to_string())
        .advise("make sure that no other program writes here, then run the same command with --overwrite")
}
