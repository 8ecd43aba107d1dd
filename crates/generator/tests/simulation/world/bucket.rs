//! A bucket in memory: objects, unfinished uploads, requests that arrive late, and a list that may lag behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use sawmill_store::simulated::object_store::{Attributes, Error, PutMode, Result};

use super::mistake::Mistake;

/// An object.
#[derive(Clone)]
pub struct Object {
    pub bytes: Arc<Vec<u8>>,
    pub tag: String,
    pub attributes: Attributes,
    /// The writer that has written it.
    pub writer: usize,
}

/// An upload that was begun and neither completed nor aborted.
struct Upload {
    key: String,
    attributes: Attributes,
    parts: BTreeMap<usize, Vec<u8>>,
}

pub type Objects = BTreeMap<String, Object>;

/// A request that arrives late.
pub type Effect = Box<dyn FnOnce(&mut Bucket) + Send>;

/// The bucket.
pub struct Bucket {
    pub objects: Objects,
    uploads: BTreeMap<String, Upload>,
    /// The objects as lists show them.
    pub listed: Objects,
    /// Changes that lists do not show yet, and when they do.
    unlisted: Vec<(u64, String)>,
    late: Vec<(u64, Effect)>,
    /// The number of requests so far.
    pub clock: u64,
    /// The requests after which lists show a change.
    lag: u64,
    next: u64,
    mistake: Option<Mistake>,
    /// Objects that have appeared and were not looked at.
    pub appeared: Vec<String>,
}

fn no_upload(id: &str) -> Error {
    Error::NotFound { path: id.to_owned(), source: "no such upload".into() }
}

impl Bucket {
    pub fn new(lag: u64, mistake: Option<Mistake>) -> Self {
        Self {
            objects: Objects::new(),
            uploads: BTreeMap::new(),
            listed: Objects::new(),
            unlisted: Vec::new(),
            late: Vec::new(),
            clock: 0,
            lag,
            next: 0,
            mistake,
            appeared: Vec::new(),
        }
    }

    fn number(&mut self) -> String {
        self.next += 1;
        format!("{:04}", self.next)
    }

    /// Lets a request arrive after `requests` others.
    pub fn arrive_after(&mut self, requests: u64, effect: Effect) {
        self.late.push((self.clock + requests, effect));
    }

    /// Lets late requests arrive, and lists show changes; all of them with `all`.
    pub fn catch_up(&mut self, all: bool) {
        let clock = self.clock;
        while let Some(due) = self.late.iter().position(|(at, _)| all || *at <= clock) {
            let (_, effect) = self.late.remove(due);
            effect(self);
        }
        let due: Vec<_> = self.unlisted.extract_if(.., |(at, _)| all || *at <= clock).collect();
        for (_, key) in due {
            match self.objects.get(&key) {
                Some(object) => drop(self.listed.insert(key, object.clone())),
                None => drop(self.listed.remove(&key)),
            }
        }
    }

    fn changed(&mut self, key: &str) {
        self.unlisted.push((self.clock + self.lag, key.to_owned()));
        if self.lag == 0 {
            self.catch_up(false);
        }
    }

    fn set(&mut self, key: &str, bytes: Vec<u8>, attributes: Attributes, writer: usize) -> String {
        let tag = format!("\"{}\"", self.number());
        let object = Object { bytes: Arc::new(bytes), tag: tag.clone(), attributes, writer };
        self.objects.insert(key.to_owned(), object);
        self.appeared.push(key.to_owned());
        self.changed(key);
        tag
    }

    /// Writes an object under a condition.
    pub fn put(
        &mut self,
        key: &str,
        bytes: Vec<u8>,
        attributes: Attributes,
        (mode, writer): (&PutMode, usize),
    ) -> Result<String> {
        let there = self.objects.get(key).map(|object| object.tag.as_str());
        let refused = match mode {
            _ if self.mistake == Some(Mistake::IgnoreConditions) => false,
            PutMode::Overwrite => false,
            PutMode::Create => there.is_some(),
            PutMode::Update(version) => there.is_none() || there != version.e_tag.as_deref(),
        };
        match (refused, mode) {
            (false, _) => Ok(self.set(key, bytes, attributes, writer)),
            (true, PutMode::Create) => {
                Err(Error::AlreadyExists { path: key.to_owned(), source: "it exists".into() })
            }
            (true, _) => Err(Error::Precondition { path: key.to_owned(), source: "another version".into() }),
        }
    }

    pub fn begin(&mut self, key: &str, attributes: Attributes) -> String {
        let id = self.number();
        let upload = Upload { key: key.to_owned(), attributes, parts: BTreeMap::new() };
        self.uploads.insert(id.clone(), upload);
        id
    }

    pub fn part(&mut self, id: &str, number: usize, bytes: Vec<u8>, writer: usize) -> Result<()> {
        let upload = self.uploads.get_mut(id).ok_or_else(|| no_upload(id))?;
        upload.parts.insert(number, bytes);
        if self.mistake == Some(Mistake::ShowParts) {
            let (key, attributes) = (upload.key.clone(), upload.attributes.clone());
            let bytes = upload.parts.values().flatten().copied().collect();
            self.set(&key, bytes, attributes, writer);
        }
        Ok(())
    }

    /// Completes an upload of `parts` parts; with `create_only`, only if the object does not exist.
    pub fn complete(
        &mut self,
        id: &str,
        parts: usize,
        (create_only, writer): (bool, usize),
    ) -> Result<String> {
        let upload = self.uploads.get(id).ok_or_else(|| no_upload(id))?;
        let key = upload.key.clone();
        let taken = create_only && self.mistake != Some(Mistake::IgnoreConditions);
        if taken && self.objects.contains_key(&key) {
            return Err(Error::Precondition { path: key, source: "it exists".into() });
        }
        if upload.parts.len() != parts {
            return Err(Error::Generic { store: "S3", source: "status code: 400 InvalidPart".into() });
        }
        let Some(mut upload) = self.uploads.remove(id) else { return Err(no_upload(id)) };
        if self.mistake == Some(Mistake::LoseLastPart) {
            upload.parts.pop_last();
        }
        let bytes = upload.parts.into_values().flatten().collect();
        Ok(self.set(&key, bytes, upload.attributes, writer))
    }

    pub fn abort(&mut self, id: &str) {
        if self.mistake != Some(Mistake::KeepUploads) {
            self.uploads.remove(id);
        }
    }

    pub fn get(&self, key: &str, if_match: Option<&str>) -> Result<Object> {
        let missing = || Error::NotFound { path: key.to_owned(), source: "no such object".into() };
        let object = self.objects.get(key).ok_or_else(missing)?;
        match if_match {
            Some(tag) if tag != object.tag => {
                Err(Error::Precondition { path: key.to_owned(), source: "another version".into() })
            }
            _ => Ok(object.clone()),
        }
    }

    pub fn remove(&mut self, key: &str) {
        if self.mistake != Some(Mistake::KeepObjects) && self.objects.remove(key).is_some() {
            self.changed(key);
        }
    }

    /// The keys and the identities of unfinished uploads.
    pub fn unfinished(&self, prefix: &str) -> Vec<(String, String)> {
        let below = self.uploads.iter().filter(|(_, upload)| upload.key.starts_with(prefix));
        below.map(|(id, upload)| (upload.key.clone(), id.clone())).collect()
    }
}
