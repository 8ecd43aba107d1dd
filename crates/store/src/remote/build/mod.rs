//! Makes the client of a store from its URL, the options, and the environment of the store's own tools.

mod aws_profile;
mod options;

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::{
    BackoffConfig, ClientConfigKey, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Error, Kind};
use crate::location::{ObjectUrl, Scheme};
use crate::remote::checksums::MODE;
use crate::remote::connections::Connections;
use crate::remote::faults::fault;
use crate::remote::writing::create_only::CreateOnly;
use crate::remote::writing::simulated::SimulatedStore;
use crate::remote::writing::uploads::{Bucket, UploadList, Uploads};

pub use options::StoreOptions;

/// Settings of connections, which the user's settings override. A transfer may take as long as bytes arrive.
const CONNECTIONS: [(ClientConfigKey, &str); 5] = [
    // Whoever writes an endpoint with http:// wants it.
    (ClientConfigKey::AllowHttp, "true"),
    (ClientConfigKey::ConnectTimeout, "5 seconds"),
    (ClientConfigKey::ReadTimeout, "20 seconds"),
    (ClientConfigKey::Timeout, "30 minutes"),
    (ClientConfigKey::UserAgent, concat!("sawmill/", env!("CARGO_PKG_VERSION"))),
];

/// Repeats requests that a server throttles, refuses for now or does not answer, for at most half a minute.
fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(4),
            base: 2.0,
        },
        max_retries: 6,
        retry_timeout: Duration::from_secs(30),
    }
}

/// Sets the options that the builder knows.
macro_rules! with_options {
    ($builder:ident, $options:expr) => {
        for (key, value) in $options {
            if let Ok(key) = key.parse() {
                $builder = $builder.with_config(key, value);
            }
        }
    };
}

/// The client of a store, and what only some stores can do.
pub(super) struct Built {
    pub store: Arc<dyn ObjectStore>,
    /// Lists objects, page by page.
    pub pages: Option<Arc<dyn PaginatedListStore>>,
    /// Finds unfinished uploads.
    pub uploads: Option<Arc<UploadList>>,
}

impl Built {
    fn without_uploads(store: impl ObjectStore + PaginatedListStore) -> Self {
        let store = Arc::new(store);
        Self { pages: Some(Arc::clone(&store) as _), store, uploads: None }
    }

    pub(super) fn simulated(store: Arc<dyn SimulatedStore>) -> Self {
        let uploads = Some(Arc::new(UploadList::Simulated(Arc::clone(&store))));
        Self { pages: Some(Arc::clone(&store) as _), store, uploads }
    }
}

/// The client of the store that a URL names. With `create_only`, completing an upload fails if the object
/// exists, as far as the store can say so; that is S3.
pub(super) fn client(url: &ObjectUrl, options: &StoreOptions, create_only: bool) -> Result<Built, Error> {
    // TLS uses the same cryptography as the connections to databases.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match url.scheme() {
        Scheme::S3 => s3(url, options, create_only),
        Scheme::Gcs => gcs(url, options),
        Scheme::Azure => azure(url, options),
        Scheme::Http | Scheme::Https => web(url, options),
    }
}

fn s3(url: &ObjectUrl, options: &StoreOptions, create_only: bool) -> Result<Built, Error> {
    // Directory buckets have other tags.
    let checks = options.checks();
    let connections = Connections::OfStore { checks, has_md5_tags: !url.authority().ends_with("--x-s3") };
    let mut builder = AmazonS3Builder::new();
    builder = match create_only {
        true => builder.with_http_connector(CreateOnly(connections)),
        false => builder.with_http_connector(connections),
    };
    if checks {
        let mode =
            HeaderMap::from_iter([(HeaderName::from_static(MODE), HeaderValue::from_static("ENABLED"))]);
        builder = builder.with_client_options(ClientOptions::new().with_default_headers(mode));
    }
    for (key, value) in CONNECTIONS {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let in_environment = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_keys = options.has(&["secret_access_key", "skip_signature"])
        || in_environment("AWS_SECRET_ACCESS_KEY")
        || in_environment("AWS_SKIP_SIGNATURE");
    let mut profile = match has_keys && !in_environment("AWS_PROFILE") {
        true => Vec::new(),
        false => aws_profile::settings()?,
    };
    // Keys from one place and a token from another do not fit together.
    profile.retain(|(key, _)| !has_keys || !key.starts_with("aws_"));
    let environment = std::env::vars().filter(|(key, _)| key.starts_with("AWS_"));
    let given = options.pairs().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let all = profile.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(environment).chain(given);
    with_options!(builder, all.map(|(key, value)| (key.to_ascii_lowercase(), value)));
    let builder = builder.with_bucket_name(url.authority()).with_retry(retry());
    let place = Bucket::new(url.authority(), &builder);
    let store = builder.build().map_err(|error| fault(url, &error))?;
    let uploads = Some(Arc::new(UploadList::Bucket(Uploads::new(store.clone(), place))));
    Ok(Built { uploads, ..Built::without_uploads(store) })
}

fn without_md5_tags(options: &StoreOptions) -> Connections {
    Connections::OfStore { checks: options.checks(), has_md5_tags: false }
}

fn gcs(url: &ObjectUrl, options: &StoreOptions) -> Result<Built, Error> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_http_connector(without_md5_tags(options));
    for (key, value) in CONNECTIONS {
        let key = GoogleConfigKey::Client(key);
        if builder.get_config_value(&key).is_none()
            || !matches!(key, GoogleConfigKey::Client(ClientConfigKey::Timeout))
        {
            builder = builder.with_config(key, value);
        }
    }
    // The variable by which Google's own tools find an emulator.
    if let Ok(emulator) = std::env::var("STORAGE_EMULATOR_HOST") {
        let base = if emulator.contains("://") { emulator } else { format!("http://{emulator}") };
        builder = builder.with_config(GoogleConfigKey::BaseUrl, base);
        // The client writes with a token even if it need not sign. An emulator takes any.
        let token = GcpCredential { bearer: "emulator".to_owned() };
        builder = builder.with_credentials(Arc::new(StaticCredentialProvider::new(token)));
    }
    with_options!(builder, options.pairs());
    let built = builder.with_bucket_name(url.authority()).with_retry(retry()).build();
    built.map(Built::without_uploads).map_err(|error| fault(url, &error))
}

fn azure(url: &ObjectUrl, options: &StoreOptions) -> Result<Built, Error> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_http_connector(without_md5_tags(options));
    for (key, value) in CONNECTIONS {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    with_options!(builder, options.pairs());
    // abfss://container@account.dfs.core.windows.net names both.
    builder = match url.authority().split_once('@') {
        None => builder.with_container_name(url.authority()),
        Some((container, host)) => {
            let account = host.split('.').next().unwrap_or_default();
            builder.with_container_name(container).with_account(account)
        }
    };
    let built = builder.with_retry(retry()).build();
    built.map(Built::without_uploads).map_err(|error| fault(url, &error))
}

fn web(url: &ObjectUrl, options: &StoreOptions) -> Result<Built, Error> {
    let mut connections = ClientOptions::new();
    for (key, value) in CONNECTIONS {
        connections = connections.with_config(key, value);
    }
    with_options!(connections, options.pairs());
    let scheme = if url.scheme() == Scheme::Https { "https" } else { "http" };
    // The query stays in the client: it may sign the request.
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let base = format!("{scheme}://{}/{query}", url.authority());
    let built = HttpBuilder::new()
        .with_url(base)
        .with_client_options(connections)
        .with_http_connector(Connections::OfWebServer)
        .with_retry(retry())
        .build();
    let wrong = |_| {
        Error::new(Kind::Usage, "the URL is not valid").at(url.to_string()).advise("check its host and port")
    };
    built.map(|store| Built { store: Arc::new(store), pages: None, uploads: None }).map_err(wrong)
}
