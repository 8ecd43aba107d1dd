//! `POST /_sql` over HTTP/1.1.
//!
//! Its own server, because faults break a connection at a chosen byte of the exchange, which HTTP libraries
//! prevent.

mod bulk;
mod request;
mod response;

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::cluster::{End, Recovery, Shared};
use crate::json::Json;
use crate::store::{Error, error};

use request::{Request, Unread, read};
use response::write;
pub(crate) use response::{answered, refused, results};

/// Serves one connection until it ends.
pub(crate) fn serve<S: Read + Write>(stream: S, shared: &Shared, node: usize) {
    let mut stream = BufReader::with_capacity(256 * 1024, stream);
    // No HTTP request begins like this, but the PostgreSQL protocol does.
    if stream.fill_buf().is_ok_and(|bytes| bytes.first() == Some(&0)) {
        let answer =
            "HTTP/1.1 404 Not Found\r\ncontent-length: 42\r\n\r\nRequested file [bad-request] was not found";
        // If the client is gone, the response does not matter.
        let _ = stream.get_mut().write_all(answer.as_bytes());
        return;
    }
    while shared.alive(node) {
        let request = match read(&mut stream, shared) {
            Ok(request) => request,
            Err(Unread::Ended) => return,
            Err(Unread::TooLarge) => {
                // If the client is gone, the response does not matter.
                let _ = write(stream.get_mut(), 413, "", true);
                return;
            }
        };
        let (status, body) = match respond(shared, node, &request) {
            Ok(answer) => answer,
            Err(End::Cut) => return,
            Err(End::Silent) => {
                // Until the client has gone.
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
                return;
            }
        };
        if write(stream.get_mut(), status, &body, request.close).is_err() || request.close {
            return;
        }
    }
}

/// Status and body of the response to a request.
fn respond(shared: &Shared, node: usize, request: &Request) -> Result<(u16, String), End> {
    if let Some((user, password)) = shared.credentials() {
        let given = request.authorization.as_deref().and_then(credentials_of);
        if given.as_ref() != Some(&(user.clone(), password)) {
            return Ok((401, format!("password authentication failed for user \"{user}\"\n")));
        }
    }
    if request.target.split('?').next() != Some("/_sql") {
        return Ok((404, String::new()));
    }
    let payload = match payload(&request.body) {
        Ok(payload) => payload,
        Err(error) => return Ok(refused(&error)),
    };
    let statement = &payload.statement;
    if shared.restarts_before(node, statement) {
        return Err(End::Cut);
    }
    if let Some(error) = shared.not_recovered(statement) {
        return Ok(refused(&error));
    }
    if statement.contains("information_schema") && shared.recovery() == Recovery::NoTables {
        let rows = if statement.contains("count(*)") { "[[0]]" } else { "[]" };
        return Ok((200, format!("{{\"cols\":[],\"rows\":{rows},\"rowcount\":0,\"duration\":0.5}}")));
    }
    if let Some(time) = shared.orphans(statement) {
        let (statement, schema, arguments) = (statement.clone(), request.schema.clone(), payload.arguments);
        shared.later(move |shared| {
            if !shared.engine.jobs().run_for(&statement, time) {
                // The client is gone.
                let _ = shared.engine.run(&statement, &schema, &arguments);
            }
        });
        return Err(End::Cut);
    }
    let _job = shared.engine.jobs().begin(statement);
    match payload.rows {
        Some(rows) => bulk::respond(shared, node, request, statement, &rows),
        None => {
            shared.statements.fetch_add(1, Relaxed);
            Ok(answered(shared.engine.run(statement, &request.schema, &payload.arguments)))
        }
    }
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) statement: String,
    pub(crate) arguments: Vec<Json>,
    /// The rows of `bulk_args`.
    pub(crate) rows: Option<Vec<Vec<Json>>>,
}

/// Reads the body as strictly as the real server, which rejects unknown and repeated fields.
pub(crate) fn payload(body: &[u8]) -> Result<Payload, Error> {
    let text = String::from_utf8_lossy(body);
    let unreadable = || {
        let what = "Expecting payload with `stmt` string and `args` or `bulk_args` arrays";
        error(400, 4000, format!("SQLParseException[Can't parse [{text}]. {what}]"))
    };
    let missing = |what: &str| error(500, 5000, format!("SQLParseSourceException[{what}]"));
    let Ok(Json::Object(fields)) = Json::parse(&text) else { return Err(unreadable()) };
    let (mut statement, mut arguments, mut rows) = (None, Vec::new(), None);
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("stmt", Json::Text(text)) => statement = Some(text),
            ("args", Json::Array(values)) => arguments = values,
            ("args", _) => return Err(missing("`args` must start with an array")),
            ("bulk_args", Json::Array(values)) => rows = Some(rows_of(values)?),
            ("stmt" | "bulk_args", _) => {
                return Err(missing(&format!("Field [{name}] has an invalid value")));
            }
            _ => return Err(unreadable()),
        }
    }
    let statement = statement.ok_or_else(|| missing("Field [stmt] is missing"))?;
    if rows.is_some() && statement.to_lowercase().contains(" returning ") {
        return Err(error(400, 4000, "SQLParseException[RETURNING is not supported with bulk_args]"));
    }
    Ok(Payload { statement, arguments, rows })
}

fn rows_of(values: Vec<Json>) -> Result<Vec<Vec<Json>>, Error> {
    let row = |value| match value {
        Json::Array(row) => Ok(row),
        _ => {
            let what = "`bulk_args` must contain a list of `args` (values list)";
            Err(error(500, 5000, format!("SQLParseSourceException[{what}]")))
        }
    };
    values.into_iter().map(row).collect()
}

/// The user and password in an `Authorization` header.
fn credentials_of(header: &str) -> Option<(String, String)> {
    let decoded = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_strictly_as_by_the_real_server() {
        for (body, status) in [
            (r#"{"stmt":"select 1","stmt":"select 2"}"#, 400),
            (r#"{"stmt":"select 1","foo":3}"#, 400),
            (r#"{"stmt":"select 1""#, 400),
            ("", 400),
            (r#"{"args":[1]}"#, 500),
            (r#"{"stmt":null}"#, 500),
            (r#"{"stmt":"select 1","args":null}"#, 500),
            (r#"{"stmt":"select 1","args":{"a":1}}"#, 500),
            (r#"{"stmt":"insert","bulk_args":{"a":1}}"#, 500),
            (r#"{"stmt":"insert","bulk_args":[1]}"#, 500),
        ] {
            let rejected = payload(body.as_bytes()).map(|payload| payload.statement);
            assert_eq!(rejected.map_err(|error| error.status), Err(status), "{body}");
        }
        assert!(payload(br#"{"bulk_args":[[1],[2]],"stmt":"insert"}"#).is_ok());
    }

    #[test]
    fn credentials_are_read_from_their_header() {
        let expected = ("crate".to_owned(), "a:b".to_owned());
        assert_eq!(credentials_of("Basic Y3JhdGU6YTpi"), Some(expected));
        assert_eq!(credentials_of("Basic !"), None);
        assert_eq!(credentials_of("Bearer Y3JhdGU6YTpi"), None);
    }
}
