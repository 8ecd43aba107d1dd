//! Answers that the crate `object_store` holds whole, such as lists and errors: it makes room for as many bytes as a
//! server claims, and reads until the server stops.

use std::fmt;
use std::pin::Pin;

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::Method;

/// The most bytes of such an answer: a list of 1,000 objects with the longest names has less than 10 MiB.
pub(super) const MAX_ANSWER: u64 = 64 << 20;

/// Parts of the queries that ask for lists.
const OF_LISTS: [&str; 3] = ["list-type=", "comp=list", "uploads"];

/// A connection whose answers end, except for the bytes of objects.
#[derive(Debug)]
pub(super) struct Ending(pub HttpClient);

/// An answer that does not end.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer has more than {MAX_ANSWER} bytes")
    }
}

impl std::error::Error for Endless {}

impl HttpService for Ending {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        let is_object = is_object(&request);
        Box::pin(async move {
            let answer = self.0.execute(request).await?;
            if is_object && answer.status().is_success() {
                return Ok(answer);
            }
            let (parts, body) = answer.into_parts();
            Ok(HttpResponse::from_parts(parts, held(body).await?))
        })
    }
}

/// Whether a request asks for the bytes of an object, which their reader counts.
fn is_object(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    *request.method() == Method::GET && !OF_LISTS.iter().any(|part| query.contains(part))
}

/// The whole body. Room is made for what has arrived.
async fn held(body: HttpResponseBody) -> Result<HttpResponseBody, HttpError> {
    let (mut bytes, mut parts) = (Vec::new(), body.bytes_stream());
    while let Some(part) = parts.next().await {
        let part = part?;
        if (bytes.len() + part.len()) as u64 > MAX_ANSWER {
            return Err(HttpError::new(HttpErrorKind::Decode, Endless));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.into())
}
