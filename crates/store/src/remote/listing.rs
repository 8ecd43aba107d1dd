//! Lists the objects below a prefix.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{Error as StoreError, ListResult};

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::{Access, Object, Version};
use crate::remote::client::{Client, MAX_NAME, path_of, version_of, whole};
use crate::remote::faults::fault;

/// The most pages without an object, one after the other: some stores send a few.
const MAX_EMPTY_PAGES: usize = 1000;

/// The most memory of a list, and what an object takes besides its names.
const MAX_LIST_BYTES: usize = 256 << 20;
const OBJECT_BYTES: usize = 256;

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
    let prefix = path_of(&url.sibling(folder))?;
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
    /// The store sends the same page again and again, pages without objects, or more than memory should hold.
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
                .advise("check the endpoint; name folders below, or give a list of the objects: @LIST"),
            Self::Store(error) => fault(url, &error),
        }
    }
}

/// Finds out whether a list that a store sends page by page ends.
#[derive(Default)]
pub(super) struct Listed {
    /// Hashes of the tokens so far.
    seen: HashSet<u64>,
    empty: usize,
    bytes: usize,
}

impl Listed {
    /// Counts a page by the lengths of its names.
    pub(super) fn add(&mut self, names: impl Iterator<Item = usize>) -> Result<(), Listing> {
        let before = self.bytes;
        self.bytes = names.fold(before, |bytes, name| bytes + name + OBJECT_BYTES);
        self.empty = if self.bytes == before { self.empty + 1 } else { 0 };
        if self.bytes > MAX_LIST_BYTES { Err(Listing::Endless) } else { Ok(()) }
    }

    /// Whether the page of this token may be asked for.
    pub(super) fn next(&mut self, token: &str) -> Result<(), Listing> {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        let is_new = self.seen.insert(hasher.finish());
        let may_follow = is_new && token.len() <= MAX_NAME && self.empty < MAX_EMPTY_PAGES;
        if may_follow { Ok(()) } else { Err(Listing::Endless) }
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
    let (mut token, mut listed) = (None::<String>, Listed::default());
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
        let objects = page.result.objects.iter().map(|meta| &meta.location);
        let names = objects.chain(&page.result.common_prefixes).map(|path| path.as_ref().len());
        listed.add(names)?;
        take(page.result);
        let Some(next) = page.page_token else { return Ok(()) };
        listed.next(&next)?;
        token = Some(next);
    }
}

fn unlisted(url: &ObjectUrl) -> StoreError {
    StoreError::NotSupported { source: format!("{url} cannot be listed").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_by_its_size_by_empty_pages_and_by_a_page_that_comes_again() {
        let mut listed = Listed::default();
        let pages = (0..10_000).find(|page| {
            listed.next(&page.to_string()).is_err() || listed.add(std::iter::repeat_n(100, 1000)).is_err()
        });
        assert!(pages.is_some_and(|pages| (700..1000).contains(&pages)), "{pages:?}");
        let mut listed = Listed::default();
        let pages = (0..10_000)
            .find(|page| listed.add(std::iter::empty()).is_err() || listed.next(&page.to_string()).is_err());
        assert_eq!(pages, Some(MAX_EMPTY_PAGES - 1));
        let mut listed = Listed::default();
        assert!(listed.next("a").is_ok() && listed.next("b").is_ok() && listed.next("a").is_err());
        assert!(listed.next(&"t".repeat(MAX_NAME + 1)).is_err());
    }
}
