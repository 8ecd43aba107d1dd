//! A writer's client of the bucket, in the place of the one that speaks HTTP.

use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use sawmill_store::simulated::SimulatedStore;
use sawmill_store::simulated::futures_util::StreamExt;
use sawmill_store::simulated::futures_util::stream::{BoxStream, once};
use sawmill_store::simulated::object_store::list::{
    PaginatedListOptions, PaginatedListResult, PaginatedListStore,
};
use sawmill_store::simulated::object_store::path::Path;
use sawmill_store::simulated::object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::bucket::Object;
use super::fault::Step;
use super::process::Process;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

#[derive(Clone)]
pub struct Client {
    pub process: Arc<Process>,
    /// Completed uploads replace no object.
    pub create_only: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.process.number)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

fn bytes_of(payload: &PutPayload) -> Vec<u8> {
    payload.iter().flat_map(|piece| piece.to_vec()).collect()
}

fn written(tag: String) -> PutResult {
    PutResult { e_tag: Some(tag), version: None, extensions: Default::default() }
}

fn described(key: &str, object: &Object) -> ObjectMeta {
    ObjectMeta {
        location: Path::from(key),
        last_modified: Default::default(),
        size: object.bytes.len() as u64,
        e_tag: Some(object.tag.clone()),
        version: None,
    }
}

fn unused<T>(operation: &str) -> Result<T> {
    Err(Error::NotImplemented { operation: operation.to_owned(), implementer: "simulation".to_owned() })
}

/// The answer to a request for an object, or for a range of it.
fn answer(key: &str, object: &Object, options: &GetOptions) -> GetResult {
    let size = object.bytes.len() as u64;
    let range = match &options.range {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.start.min(size)..range.end.min(size),
        Some(GetRange::Offset(start)) => (*start).min(size)..size,
        Some(GetRange::Suffix(bytes)) => size.saturating_sub(*bytes)..size,
    };
    let bytes = object.bytes[range.start as usize..range.end as usize].to_vec();
    GetResult {
        payload: GetResultPayload::Stream(once(ready(Ok(bytes.into()))).boxed()),
        meta: described(key, object),
        range,
        attributes: object.attributes.clone(),
        extensions: Default::default(),
    }
}

impl ObjectStore for Client {
    fn put_opts<'a, 'b, 'c>(
        &'a self,
        location: &'b Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<'c, PutResult>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let (key, writer) = (location.to_string(), self.process.number);
        let is_state = key.rsplit('/').next().is_some_and(|name| name.starts_with('_'));
        let step = if is_state { Step::WriteState } else { Step::WriteObject };
        let put = self.process.request(step, key.clone(), move |bucket| {
            let by = (&options.mode, writer);
            bucket.put(&key, bytes_of(&payload), options.attributes.clone(), by)
        });
        Box::pin(ready(put.map(written)))
    }

    fn put_multipart_opts<'a, 'b, 'c>(
        &'a self,
        location: &'b Path,
        options: PutMultipartOptions,
    ) -> Answer<'c, Box<dyn MultipartUpload>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let key = location.to_string();
        let begun = self.process.request(Step::Begin, key.clone(), {
            let key = key.clone();
            move |bucket| Ok(bucket.begin(&key, options.attributes.clone()))
        });
        let client = self.clone();
        let upload =
            begun.map(|id| Box::new(Upload { client, key, id, parts: 0 }) as Box<dyn MultipartUpload>);
        Box::pin(ready(upload))
    }

    fn get_opts<'a, 'b, 'c>(&'a self, location: &'b Path, options: GetOptions) -> Answer<'c, GetResult>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let key = location.to_string();
        let step = match (options.head, &options.range) {
            (true, _) => Step::Look,
            (false, Some(_)) => Step::ReadBack,
            (false, None) => Step::Read,
        };
        let found = self.process.request(step, key.clone(), {
            let (key, if_match) = (key.clone(), options.if_match.clone());
            move |bucket| bucket.get(&key, if_match.as_deref())
        });
        Box::pin(ready(found.map(|object| answer(&key, &object, &options))))
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let process = Arc::clone(&self.process);
        let remove = move |location: Result<Path>| -> Result<Path> {
            let location = location?;
            let key = location.to_string();
            process.request(Step::Remove, key.clone(), move |bucket| {
                bucket.remove(&key);
                Ok(())
            })?;
            Ok(location)
        };
        locations.map(remove).boxed()
    }

    fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        once(ready(unused("list"))).boxed()
    }

    fn list_with_delimiter<'a, 'b, 'c>(&'a self, _prefix: Option<&'b Path>) -> Answer<'c, ListResult>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        Box::pin(ready(unused("list_with_delimiter")))
    }

    fn copy_opts<'a, 'b, 'c, 'd>(
        &'a self,
        _from: &'b Path,
        _to: &'c Path,
        _options: CopyOptions,
    ) -> Answer<'d, ()>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        Box::pin(ready(unused("copy_opts")))
    }
}

impl PaginatedListStore for Client {
    fn list_paginated<'a, 'b, 'c>(
        &'a self,
        prefix: Option<&'b str>,
        options: PaginatedListOptions,
    ) -> Answer<'c, PaginatedListResult>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let prefix = prefix.unwrap_or_default().to_owned();
        let directly = options.delimiter.is_some();
        let listed = self.process.request(Step::List, prefix.clone(), move |bucket| {
            let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
            for (key, object) in bucket.listed.iter().filter(|(key, _)| key.starts_with(&prefix)) {
                match key[prefix.len()..].split_once('/') {
                    Some((folder, _)) if directly => drop(folders.insert(format!("{prefix}{folder}"))),
                    _ => objects.push(described(key, object)),
                }
            }
            let common_prefixes: Vec<Path> = folders.into_iter().map(Path::from).collect();
            Ok((objects, common_prefixes))
        });
        let page = listed.map(|(objects, common_prefixes)| PaginatedListResult {
            result: ListResult { common_prefixes, objects, extensions: Default::default() },
            page_token: None,
        });
        Box::pin(ready(page))
    }
}

impl SimulatedStore for Client {
    fn unfinished(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        let prefix = prefix.to_owned();
        self.process.request(Step::ListUploads, prefix.clone(), move |bucket| Ok(bucket.unfinished(&prefix)))
    }

    fn abort(&self, key: &str, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.process.request(Step::Abort, key.to_owned(), move |bucket| {
            bucket.abort(&id);
            Ok(())
        })
    }
}

/// An upload in parts.
#[derive(Debug)]
struct Upload {
    client: Client,
    key: String,
    id: String,
    parts: usize,
}

impl MultipartUpload for Upload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let (number, id, key) = (self.parts, self.id.clone(), self.key.clone());
        self.parts += 1;
        let process = Arc::clone(&self.client.process);
        Box::pin(async move {
            let writer = process.number;
            process
                .request(Step::Part, key, move |bucket| bucket.part(&id, number, bytes_of(&payload), writer))
        })
    }

    fn complete<'a, 'c>(&'a mut self) -> Answer<'c, PutResult>
    where
        'a: 'c,
        Self: 'c,
    {
        let (id, parts, key) = (self.id.clone(), self.parts, self.key.clone());
        let by = (self.client.create_only, self.client.process.number);
        let completed =
            self.client.process.request(Step::Complete, key, move |bucket| bucket.complete(&id, parts, by));
        Box::pin(ready(completed.map(written)))
    }

    fn abort<'a, 'c>(&'a mut self) -> Answer<'c, ()>
    where
        'a: 'c,
        Self: 'c,
    {
        let aborted = SimulatedStore::abort(&self.client, &self.key, &self.id);
        Box::pin(ready(aborted))
    }
}
