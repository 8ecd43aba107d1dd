//! Lists the objects below a prefix.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{Error as StoreError, ListResult};

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::{Access, Object, Version};
use crate::remote::client::{Client, version_of, whole};
use crate::remote::faults::fault;

/// The most pages without an object, one after the other: some stores send a few.
const MAX_EMPTY_PAGES: usize = 1000;

/// The objects whose names start with the URL's key as a folder, in the order of their names.
///
/// Names with an empty part, `.` or `..`, which the client cannot read, are among them if the store is S3, so
/// that they neither hide the others nor are left out unnoticed.
pub(super) fn list(client: &Client, url: &ObjectUrl) -> Result<Vec<Object>, Error> {
    if url.scheme().is_web() {
        return Err(Error::new(Kind::Usage, "a web server does not list its files")
            .at(url.to_string())
            .advise("name the files, or give a list of them: @LIST"));
    }
    let folder = url.key().trim_end_matches('/');
    let prefix = Path::parse(folder).map_err(|source| fault(url, &source.into()))?;
    let (client, place) = (client.clone(), url.clone());
    let (found, listed) = crossbeam_channel::bounded(1);
    let access: Arc<dyn Access> = Arc::new(client.clone());
    let owner = client.clone();
    let pending = owner.spawn(async move {
        let object = |key: &str, bytes: u64, version: Version| {
            Object::new(place.sibling(key), bytes, version, Arc::clone(&access))
        };
        let mut objects = Vec::new();
        let take = |page: ListResult| {
            let of_page = page.objects.iter();
            objects.extend(of_page.map(|meta| object(meta.location.as_ref(), meta.size, version_of(meta))));
        };
        match (pages(&client, &place, &prefix, false, take).await, &client.uploads) {
            (Err(Listing::OddName), Some(bucket)) => {
                let all = bucket.objects(&place, prefix.as_ref()).await?;
                let all = all.into_iter().filter(|listed| !listed.key.ends_with('/'));
                objects = all.map(|listed| object(&listed.key, listed.size, listed.version())).collect();
            }
            (listed, _) => listed.map_err(|error| error.at(&place))?,
        }
        objects.sort_by(|a, b| a.url().cmp(b.url()));
        let _ = found.send(objects);
        Ok(Vec::new())
    });
    pending.wait()?;
    listed.try_recv().map_err(|_| Error::new(Kind::Cancelled, "cancelled"))
}

/// The error that ends a list.
pub(super) enum Listing {
    /// A name on a page is not valid, and the client does not say which.
    OddName,
    /// The store sends the same page again and again, or pages without objects.
    Endless,
    Store(StoreError),
}

impl Listing {
    pub(super) fn at(self, url: &ObjectUrl) -> Error {
        match self {
            Self::OddName => {
                Error::new(Kind::Usage, "an object below has a name with an empty part, . or ..")
                    .at(url.to_string())
                    .advise("name the objects or their folders themselves, or give a list of them: @LIST")
            }
            Self::Endless => Error::new(Kind::Unavailable, "the store's list of objects does not end")
                .at(url.to_string())
                .advise("check the endpoint; give a list of the objects instead: @LIST"),
            Self::Store(error) => fault(url, &error),
        }
    }
}

/// Passes each page of the objects below a folder to `take`: of all of them, or of those directly in it.
pub(super) async fn pages(
    client: &Client,
    url: &ObjectUrl,
    folder: &Path,
    directly: bool,
    mut take: impl FnMut(ListResult),
) -> Result<(), Listing> {
    // Only a web server has none, which is refused before.
    let Some(pages) = &client.pages else { return Err(Listing::Store(unlisted(url))) };
    let prefix = Some(format!("{folder}/")).filter(|_| !folder.as_ref().is_empty());
    let delimiter = directly.then_some(Cow::Borrowed("/"));
    let (mut token, mut seen, mut empty) = (None::<String>, HashSet::new(), 0);
    loop {
        let page = whole(|| {
            let (delimiter, page_token) = (delimiter.clone(), token.clone());
            let options = PaginatedListOptions { delimiter, page_token, ..PaginatedListOptions::default() };
            pages.list_paginated(prefix.as_deref(), options)
        });
        let page = page.await.map_err(|error| match error {
            StoreError::InvalidPath { .. } => Listing::OddName,
            error => Listing::Store(error),
        })?;
        let is_empty = page.result.objects.is_empty() && page.result.common_prefixes.is_empty();
        empty = if is_empty { empty + 1 } else { 0 };
        take(page.result);
        match page.page_token {
            None => return Ok(()),
            Some(next) if empty < MAX_EMPTY_PAGES && seen.insert(next.clone()) => token = Some(next),
            Some(_) => return Err(Listing::Endless),
        }
    }
}

fn unlisted(url: &ObjectUrl) -> StoreError {
    StoreError::NotSupported { source: format!("{url} cannot be listed").into() }
}
