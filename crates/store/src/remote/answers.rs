//! Answers that the crate `object_store` holds whole, such as lists and errors: it makes room for as many bytes as a
//! server claims, and reads until the server stops.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use quick_xml::events::Event;
use reqwest::Method;
use tokio::time::timeout;

/// The most bytes of such an answer: a list of 1,000 objects with the longest names has less than 10 MiB.
pub(super) const MAX_ANSWER: u64 = 64 << 20;

/// The most levels of an answer.
const MAX_DEPTH: usize = 64;

/// Parts of the queries that ask for lists.
const OF_LISTS: [&str; 3] = ["list-type=", "comp=list", "uploads"];

/// A connection whose answers end, except for the bytes of objects.
#[derive(Debug)]
pub(super) struct Ending {
    pub client: HttpClient,
    /// How long an answer may take to begin, and then to end.
    pub patience: Duration,
}

/// An answer that does not end.
#[derive(Debug)]
enum Endless {
    Long,
    Deep,
    Slow(Duration),
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long => write!(f, "the answer has more than {MAX_ANSWER} bytes"),
            Self::Deep => write!(f, "the answer is nested more than {MAX_DEPTH} levels deep"),
            Self::Slow(patience) => write!(f, "there is no whole answer after {patience:?}"),
        }
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
        // Others have a body, or the store has work to do before it answers.
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let slow = |_| HttpError::new(HttpErrorKind::Timeout, Endless::Slow(self.patience));
        Box::pin(async move {
            let answer = self.client.execute(request);
            let answer = match is_read {
                true => timeout(self.patience, answer).await.map_err(slow)??,
                false => answer.await?,
            };
            if is_object && answer.status().is_success() {
                return Ok(answer);
            }
            let (parts, body) = answer.into_parts();
            let body = match is_read {
                true => timeout(self.patience, held(body)).await.map_err(slow)??,
                false => held(body).await?,
            };
            if parts.status.is_success() && is_deep(&body) {
                return Err(HttpError::new(HttpErrorKind::Decode, Endless::Deep));
            }
            Ok(HttpResponse::from_parts(parts, body.into()))
        })
    }
}

/// Whether a request asks for the bytes of an object, which their reader counts.
fn is_object(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    *request.method() == Method::GET && !OF_LISTS.iter().any(|part| query.contains(part))
}

/// The whole body. Room is made for what has arrived.
async fn held(body: HttpResponseBody) -> Result<Vec<u8>, HttpError> {
    let (mut bytes, mut parts) = (Vec::new(), body.bytes_stream());
    while let Some(part) = parts.next().await {
        let part = part?;
        if (bytes.len() + part.len()) as u64 > MAX_ANSWER {
            return Err(HttpError::new(HttpErrorKind::Decode, Endless::Long));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Whether XML is nested so deep that its parser would take minutes. Lists have a few levels.
fn is_deep(body: &[u8]) -> bool {
    let mut reader = quick_xml::Reader::from_reader(body);
    let mut depth = 0_usize;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Eof => break,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_shallow() {
        let list = format!("<?xml version=\"1.0\"?><L>{}</L>", "<C><K>a/b</K><E/></C>".repeat(1000));
        assert!(!is_deep(list.as_bytes()) && !is_deep(b"{}") && !is_deep(b""));
        for (before, element) in
            [("", "<a>"), ("\n", "<a>"), ("\u{feff}", "<a>"), ("", "<a>/>"), ("", "<a><!--</-->")]
        {
            assert!(is_deep(format!("{before}{}", element.repeat(100)).as_bytes()), "{before:?} {element}");
        }
    }
}
