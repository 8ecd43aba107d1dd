//! Lists the S3 entries that the crate `object_store` does not: unfinished uploads, which are also aborted,
//! and objects whose names it cannot read.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ClientOptions, Error as StoreError};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::objects::Version;
use crate::remote::connections::Connections;
use crate::remote::faults::{fault, refusal_of};
use crate::remote::listing::Listed;
use crate::remote::writing::simulated::SimulatedStore;

/// How often a list is requested.
const ATTEMPTS: u32 = 4;

/// An upload that was begun and neither completed nor aborted.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// The name of its object, relative to the folder; empty if the folder's URL is the object's.
    pub name: String,
    /// When it was begun, according to the store.
    pub begun: String,
    id: String,
}

/// Where a bucket is, and how requests to it are signed.
pub(in crate::remote) struct Bucket {
    url: String,
    region: String,
    signed: bool,
    request_payer: bool,
}

impl Bucket {
    /// The bucket of a client, as its builder finds it.
    pub(in crate::remote) fn new(name: &str, builder: &AmazonS3Builder) -> Self {
        let value = |key| builder.get_config_value(&key).filter(|value| !value.is_empty());
        let is_set =
            |key| value(key).is_some_and(|value| ["true", "yes", "1", "on", "y"].contains(&value.as_str()));
        let region = value(AmazonS3ConfigKey::Region)
            .or_else(|| value(AmazonS3ConfigKey::DefaultRegion))
            .unwrap_or_else(|| "us-east-1".to_owned());
        let in_host = is_set(AmazonS3ConfigKey::VirtualHostedStyleRequest);
        let url = match (value(AmazonS3ConfigKey::Endpoint), in_host) {
            (Some(endpoint), true) => endpoint,
            (Some(endpoint), false) => format!("{}/{name}", endpoint.trim_end_matches('/')),
            (None, true) => format!("https://{name}.s3.{region}.amazonaws.com"),
            (None, false) => format!("https://s3.{region}.amazonaws.com/{name}"),
        };
        Self {
            url,
            region,
            signed: !is_set(AmazonS3ConfigKey::SkipSignature),
            request_payer: is_set(AmazonS3ConfigKey::RequestPayer),
        }
    }
}

/// Lists and aborts unfinished uploads.
pub(in crate::remote) enum UploadList {
    Bucket(Uploads),
    Simulated(Arc<dyn SimulatedStore>),
}

impl UploadList {
    /// The uploads of objects whose keys start with `prefix`, by their whole keys.
    pub(super) async fn below(&self, url: &ObjectUrl, prefix: &str) -> Result<Vec<Unfinished>, Error> {
        match self {
            Self::Bucket(uploads) => uploads.below(url, prefix).await,
            Self::Simulated(store) => {
                let found = store.unfinished(prefix).map_err(|error| fault(url, &error))?;
                let begun = String::new;
                Ok(found.into_iter().map(|(name, id)| Unfinished { name, begun: begun(), id }).collect())
            }
        }
    }

    /// Aborts an upload, if it exists.
    pub(super) async fn abort(&self, url: &ObjectUrl, path: &Path, upload: &Unfinished) -> Result<(), Error> {
        let aborted = match self {
            Self::Bucket(uploads) => uploads.store.abort_multipart(path, &upload.id).await,
            Self::Simulated(store) => store.abort(path.as_ref(), &upload.id),
        };
        match aborted {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(fault(url, &error)),
        }
    }

    /// All objects below a folder, whatever their names; empty in a simulation, which has no odd names.
    pub(in crate::remote) async fn objects(
        &self,
        url: &ObjectUrl,
        folder: &str,
    ) -> Result<Vec<ListedObject>, Error> {
        match self {
            Self::Bucket(uploads) => uploads.objects(url, folder).await,
            Self::Simulated(_) => Ok(Vec::new()),
        }
    }
}

/// Lists the uploads of a bucket.
pub(in crate::remote) struct Uploads {
    store: AmazonS3,
    bucket: Bucket,
}

/// A page of the store's list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUploads {
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_key_marker: String,
    #[serde(default)]
    next_upload_id_marker: String,
    #[serde(default, rename = "Upload")]
    uploads: Vec<ListedUpload>,
}

/// A page of objects.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedObjects {
    #[serde(default)]
    next_continuation_token: String,
    #[serde(default)]
    contents: Vec<ListedObject>,
}

/// An object as a list has it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::remote) struct ListedObject {
    pub key: String,
    pub size: u64,
    #[serde(default, rename = "ETag")]
    tag: String,
    #[serde(default)]
    last_modified: String,
}

impl ListedObject {
    pub(in crate::remote) fn version(&self) -> Version {
        match (self.tag.as_str(), self.last_modified.as_str()) {
            ("", "") => Version::Unknown,
            ("", modified) => Version::Modified(modified.to_owned()),
            (tag, _) => Version::ETag(tag.to_owned()),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedUpload {
    key: String,
    upload_id: String,
    #[serde(default)]
    initiated: String,
}

impl Uploads {
    pub(in crate::remote) fn new(store: AmazonS3, bucket: Bucket) -> Self {
        Self { store, bucket }
    }

    async fn below(&self, url: &ObjectUrl, prefix: &str) -> Result<Vec<Unfinished>, Error> {
        let (mut found, mut seen) = (Vec::new(), Listed::default());
        let (mut key, mut id) = (String::new(), String::new());
        loop {
            let listed: ListedUploads = self.page(url, &Self::uploads_after(prefix, &key, &id)).await?;
            // A store that does not move on has no more.
            let is_stuck = (&listed.next_key_marker, &listed.next_upload_id_marker) == (&key, &id);
            let is_last = !listed.is_truncated || listed.uploads.is_empty() || is_stuck;
            let names = listed.uploads.iter().map(|upload| upload.key.len() + upload.upload_id.len());
            seen.add(names).map_err(|error| error.at(url))?;
            found.extend(listed.uploads.into_iter().map(|upload| Unfinished {
                name: upload.key,
                begun: upload.initiated,
                id: upload.upload_id,
            }));
            if is_last {
                return Ok(found);
            }
            (key, id) = (listed.next_key_marker, listed.next_upload_id_marker);
            seen.next(&format!("{key}\n{id}")).map_err(|error| error.at(url))?;
        }
    }

    async fn objects(&self, url: &ObjectUrl, folder: &str) -> Result<Vec<ListedObject>, Error> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let (mut found, mut token, mut seen) = (Vec::new(), String::new(), Listed::default());
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", prefix.as_str())];
            query.extend(Some(("continuation-token", token.as_str())).filter(|(_, token)| !token.is_empty()));
            let mut listed: ListedObjects = self.page(url, &query).await?;
            seen.add(listed.contents.iter().map(|object| object.key.len())).map_err(|error| error.at(url))?;
            found.append(&mut listed.contents);
            token = listed.next_continuation_token;
            if token.is_empty() {
                return Ok(found);
            }
            seen.next(&token).map_err(|error| error.at(url))?;
        }
    }

    /// One page of a list.
    async fn page<T: DeserializeOwned>(&self, url: &ObjectUrl, query: &[(&str, &str)]) -> Result<T, Error> {
        let text = self.request(url, query).await?;
        quick_xml::de::from_str(&text).map_err(|_| {
            Error::new(Kind::Unavailable, "the list that the store sent is not valid").at(url.to_string())
        })
    }

    async fn request(&self, url: &ObjectUrl, query: &[(&str, &str)]) -> Result<String, Error> {
        let asked = self.address(url, query)?;
        let http = client(url)?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.uri_mut() = asked.as_str().parse().map_err(|_| invalid(url))?;
            if self.bucket.signed {
                let credential =
                    self.store.credentials().get_credential().await.map_err(|error| fault(url, &error))?;
                AwsAuthorizer::new(&credential, "s3", &self.bucket.region)
                    .with_request_payer(self.bucket.request_payer)
                    .try_authorize(&mut request, None)
                    .map_err(|error| fault(url, &error))?;
            }
            let (status, text) = match http.execute(request).await {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    let mut stream = answer.into_body().bytes_stream();
                    let mut bytes = Vec::new();
                    let mut whole = true;
                    while let Some(piece) = stream.next().await {
                        match piece {
                            Ok(piece) => bytes.extend_from_slice(&piece),
                            Err(_) => whole = false,
                        }
                    }
                    // A list that broke off is requested again.
                    (if whole { status } else { 503 }, String::from_utf8_lossy(&bytes).into_owned())
                }
                Err(_) => (503, String::new()),
            };
            match status {
                200 => return Ok(text),
                429 | 500.. if attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
                }
                _ => return Err(refused(url, status, &text)),
            }
        }
    }

    /// The query for the uploads that follow the markers.
    fn uploads_after<'a>(prefix: &'a str, key: &'a str, id: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut query = vec![("uploads", ""), ("prefix", prefix)];
        if !key.is_empty() {
            query.extend([("key-marker", key), ("upload-id-marker", id)]);
        }
        query
    }

    fn address(&self, url: &ObjectUrl, query: &[(&str, &str)]) -> Result<Url, Error> {
        let mut asked = Url::parse(&self.bucket.url).map_err(|_| invalid(url))?;
        asked.query_pairs_mut().extend_pairs(query);
        // The form of signatures.
        let query = asked.query().unwrap_or_default().replace('+', "%20");
        asked.set_query(Some(&query));
        Ok(asked)
    }
}

fn client(url: &ObjectUrl) -> Result<HttpClient, Error> {
    let options = ClientOptions::new().with_allow_http(true).with_timeout(Duration::from_secs(30));
    Connections::OfStore { checks: false, has_md5_tags: false }
        .connect(&options)
        .map_err(|error| fault(url, &error))
}

fn invalid(url: &ObjectUrl) -> Error {
    Error::new(Kind::Usage, "the store's address is not valid")
        .at(url.to_string())
        .advise("check --store endpoint")
}

fn refused(url: &ObjectUrl, status: u16, text: &str) -> Error {
    let what =
        format!("the store did not list its objects or uploads{}", refusal_of(&status.to_string(), text));
    let kind = if matches!(status, 401 | 403) { Kind::Denied } else { Kind::Unavailable };
    Error::new(kind, what)
        .at(url.to_string())
        .advise("check the credentials; they need s3:ListBucket and s3:ListBucketMultipartUploads")
}

/// Parses an answer of a store: the keys of a list of objects and of one of uploads, and a refusal.
#[cfg(fuzzing)]
pub fn fuzzed_answer(text: &str) -> (Option<Vec<String>>, Option<Vec<String>>, String) {
    let objects = quick_xml::de::from_str::<ListedObjects>(text).ok();
    let uploads = quick_xml::de::from_str::<ListedUploads>(text).ok();
    (
        objects.map(|listed| listed.contents.into_iter().map(|object| object.key).collect()),
        uploads.map(|listed| listed.uploads.into_iter().map(|upload| upload.key).collect()),
        refusal_of("400", text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_uploads_is_read_with_special_characters_in_keys() {
        let listed: ListedUploads = quick_xml::de::from_str(
            "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>\
             <Upload><Key>a&amp;b/c=1/x.parquet</Key><UploadId>1</UploadId><Initiated>2026</Initiated></Upload>\
             <Owner/><Upload><Key>d</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>",
        )
        .unwrap();
        let keys: Vec<&str> = listed.uploads.iter().map(|upload| upload.key.as_str()).collect();
        assert_eq!(keys, ["a&b/c=1/x.parquet", "d"]);
        assert!(listed.is_truncated && listed.next_key_marker == "k");
        let none: ListedUploads = quick_xml::de::from_str("<ListMultipartUploadsResult/>").unwrap();
        assert!(none.uploads.is_empty() && !none.is_truncated);
    }
}
