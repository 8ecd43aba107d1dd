//! Lists the objects below a prefix.

use std::sync::Arc;

use futures_util::StreamExt;
use object_store::Error as StoreError;
use object_store::path::Path;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::{Access, Object};
use crate::remote::client::{Client, version_of};
use crate::remote::faults::fault;

/// The error of a listing. One name that is not valid makes it an error, and the client does not say which.
fn not_listed(url: &ObjectUrl, error: &StoreError) -> Error {
    match error {
        StoreError::InvalidPath { .. } => {
            Error::new(Kind::Usage, "an object below has a name with an empty part, . or ..")
                .at(url.to_string())
                .advise("name the objects or their folders themselves, or give a list of them: @LIST")
        }
        _ => fault(url, error),
    }
}

/// The objects whose names start with the URL's key as a folder, in the order of their names.
pub(super) fn list(client: &Client, url: &ObjectUrl) -> Result<Vec<Object>, Error> {
    if url.scheme().is_web() {
        return Err(Error::new(Kind::Usage, "a web server does not list its files")
            .at(url.to_string())
            .advise("name the files, or give a list of them: @LIST"));
    }
    let folder = url.key().trim_end_matches('/');
    let prefix = Path::parse(folder).map_err(|source| fault(url, &source.into()))?;
    let prefix = Some(prefix).filter(|prefix| !prefix.as_ref().is_empty());
    let (client, place) = (client.clone(), url.clone());
    let (found, listed) = std::sync::mpsc::sync_channel(1);
    let access: Arc<dyn Access> = Arc::new(client.clone());
    let owner = client.clone();
    let pending = owner.spawn(async move {
        let mut objects = Vec::new();
        let mut stream = client.store.list(prefix.as_ref());
        while let Some(meta) = stream.next().await {
            let meta = meta.map_err(|error| not_listed(&place, &error))?;
            let url = place.sibling(meta.location.as_ref());
            objects.push(Object::new(url, meta.size, version_of(&meta), Arc::clone(&access)));
        }
        objects.sort_by(|a, b| a.url().cmp(b.url()));
        let _ = found.send(objects);
        Ok(Vec::new())
    });
    pending.wait()?;
    listed.try_recv().map_err(|_| Error::new(Kind::Cancelled, "cancelled"))
}
