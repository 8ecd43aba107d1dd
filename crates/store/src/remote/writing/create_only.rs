//! A connection to S3 over which completing an upload never replaces an object.
//!
//! The crate `object_store` puts single objects under a condition but completes uploads without one, although
//! S3 also compares `If-None-Match` there. The header is added after the request was signed, as that crate
//! does where it uses it itself.

use std::pin::Pin;

use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use reqwest::Method;
use reqwest::header::{HeaderValue, IF_NONE_MATCH};

use crate::remote::connections::Connections;

/// Makes such connections.
#[derive(Debug)]
pub(in crate::remote) struct CreateOnly(pub Connections);

#[derive(Debug)]
struct Conditional(HttpClient);

impl HttpConnector for CreateOnly {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Conditional(self.0.connect(options)?)))
    }
}

impl HttpService for Conditional {
    fn call<'s, 'f>(
        &'s self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let query = request.uri().query().unwrap_or_default();
        // Beginning an upload is a POST with `uploads`.
        if *request.method() == Method::POST && query.split('&').any(|pair| pair.starts_with("uploadId=")) {
            request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        Box::pin(self.0.execute(request))
    }
}
