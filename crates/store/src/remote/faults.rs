//! Errors of the client in our words. The client's own may contain URLs with signatures, so they are not
//! shown.

use std::error::Error as StdError;

use object_store::Error as StoreError;
use object_store::client::{HttpError, HttpErrorKind};

use crate::error::{Error, Kind};
use crate::location::ObjectUrl;
use crate::remote::checksums::Damaged;
use crate::remote::connections::Elsewhere;

const CREDENTIALS: &str = "check the credentials: the environment variables of the store's own tools, or --store; \
                           --store anonymous=true reads public objects without any";
const REGION: &str = "name it: --store region=..., or AWS_REGION";
const NOT_UNDERSTOOD: &str = "check the name, the endpoint and the other options of --store";
const TAKEN: &str = "make sure that no other program writes here, then run the command again";
const CHANGED: &str = "run the command again when the object no longer changes";

/// Turns a client's error into one that names the object.
pub(super) fn fault(url: &ObjectUrl, error: &StoreError) -> Error {
    let refusal = refusal(error);
    let (kind, what, advice) = match error {
        // Stores send these with several statuses.
        _ if refusal.contains("RequestTimeTooSkewed") => {
            let what = format!("the clock of this machine is not that of the store{refusal}");
            (Kind::Denied, what, "set the clock, then run the command again")
        }
        _ if ["AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraint"]
            .iter()
            .any(|code| refusal.contains(code)) =>
        {
            (Kind::Usage, format!("the bucket is in another region{refusal}"), REGION)
        }
        StoreError::NotFound { .. } => (Kind::NotFound, "there is no such object".to_owned(), not_found(url)),
        StoreError::Precondition { .. } => {
            (Kind::Changed, "the object changed while it was read".to_owned(), CHANGED)
        }
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            (Kind::Denied, format!("the store refused the request{refusal}"), CREDENTIALS)
        }
        StoreError::AlreadyExists { .. } => (Kind::Exists, "the object already exists".to_owned(), TAKEN),
        StoreError::InvalidPath { .. } => (
            Kind::Usage,
            "the name of the object is not valid".to_owned(),
            "leave out empty parts, ., .. and control characters; a pattern selects the others",
        ),
        _ => other(error, &refusal),
    };
    Error::new(kind, what).at(url.to_string()).advise(advice)
}

fn not_found(url: &ObjectUrl) -> &'static str {
    match url.scheme().is_web() {
        true => "check the address",
        false => "check bucket and name; a prefix ends with /",
    }
}

fn other(error: &StoreError, refusal: &str) -> (Kind, String, &'static str) {
    let text = error.to_string();
    if lacks_ranges(error) {
        let what = "the server does not answer requests for ranges of bytes".to_owned();
        return (Kind::NoRanges, what, "download the file first; sawmill load - takes a stream");
    }
    if text.contains("//169.254.169.254") || text.contains("//metadata") {
        let what =
            "no credentials were found, neither here nor from the machine's metadata service".to_owned();
        return (Kind::Denied, what, CREDENTIALS);
    }
    if text.contains("redirect without LOCATION") {
        return (Kind::Usage, "the bucket is in another region".to_owned(), REGION);
    }
    if let Some(elsewhere) = in_chain::<Elsewhere>(error) {
        let advice = "name the region or the endpoint of the bucket: --store region=..., --store endpoint=...; of a web \
                      server, the address that it named";
        return (Kind::Usage, format!("{elsewhere}, and that is not followed"), advice);
    }
    if let Some(damaged) = in_chain::<Damaged>(error) {
        return (Kind::Damaged, damaged.to_string(), Damaged::ADVICE);
    }
    if let Some((status, _)) = status(&text) {
        let codes = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];
        let is_denied = matches!(status, "401" | "403") || codes.iter().any(|code| refusal.contains(code));
        let (kind, what, advice) = match status {
            _ if is_denied => (Kind::Denied, "the store refused the request", CREDENTIALS),
            "416" => return (Kind::Unavailable, "the object has no bytes".to_owned(), "write it again"),
            "404" => (Kind::NotFound, "the bucket does not exist", "check its name and the endpoint"),
            "400" => (Kind::Usage, "the store does not understand the request", NOT_UNDERSTOOD),
            _ => (Kind::Unavailable, "the store does not answer as it should", "try again later"),
        };
        return (kind, format!("{what}{refusal}"), advice);
    }
    if let Some(http) = in_chain::<HttpError>(error) {
        let what = match http.kind() {
            HttpErrorKind::Connect => "the store cannot be reached",
            HttpErrorKind::Timeout => "the store did not answer in time",
            _ => "the connection to the store broke, again and again",
        };
        return (Kind::Unavailable, what.to_owned(), "check the address, the endpoint and the network");
    }
    if is_configuration(error) {
        let what = "the store's settings are incomplete or not valid".to_owned();
        return (Kind::Usage, what, "check --store and the environment variables of the store's own tools");
    }
    let what = "the answer of the store is not what was asked for".to_owned();
    (Kind::Unavailable, what, "check that a proxy or cache does not change ranges and lengths")
}

/// Whether the server answered a request for a range with the whole object.
pub(super) fn lacks_ranges(error: &StoreError) -> bool {
    let text = error.to_string();
    text.contains("non-partial response") || text.contains("Range request not supported")
}

/// Whether a store has no range of an object because it has no bytes.
pub(super) fn is_empty(error: &StoreError) -> bool {
    status(&error.to_string()).is_some_and(|(status, _)| status == "416")
}

/// Whether the client was never made.
fn is_configuration(error: &StoreError) -> bool {
    matches!(error, StoreError::UnknownConfigurationKey { .. })
        || !was_repeated(error) && error.to_string().contains("issing")
}

/// Whether the client has sent the request as often as it may. Its errors of requests are private; they begin
/// so.
pub(super) fn was_repeated(error: &StoreError) -> bool {
    error.to_string().contains("Error performing ")
}

/// The status in the text of an error, and the store's text.
fn status(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("status code: ")?;
    let status = rest.get(..3).filter(|status| status.bytes().all(|b| b.is_ascii_digit()))?;
    Some((status, rest))
}

/// The status and the store's code and message, if it sent them: ` (403 ExpiredToken: The token has
/// expired)`.
fn refusal(error: &StoreError) -> String {
    let text = error.to_string();
    status(&text).map(|(status, body)| refusal_of(status, body)).unwrap_or_default()
}

/// The same, of a status and a body.
pub(super) fn refusal_of(status: &str, body: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(text, _)| plain(text))
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!(" ({status} {code}: {message})"),
        (Some(code), None) => format!(" ({status} {code})"),
        _ => format!(" ({status})"),
    }
}

/// The start of a text without control characters.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// The first error of a type among an error and its causes.
fn in_chain<T: StdError + 'static>(error: &StoreError) -> Option<&T> {
    let mut next: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(found) = next {
        if let Some(found) = found.downcast_ref::<T>() {
            return Some(found);
        }
        next = found.source();
    }
    None
}
