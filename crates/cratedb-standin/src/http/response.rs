//! Responses, as bytes and as JSON.

use std::fmt::Write as _;
use std::io::Write;

use crate::cluster::End;
use crate::json::quoted;
use crate::store::{Answer, Error, RowResult};

/// The response to a rejected request.
pub(crate) fn refused(error: &Error) -> (u16, String) {
    // Like the real server, repeats the request's text.
    let body = format!("{{\"error\":{{\"message\":{},\"code\":{}}}}}", quoted(&error.message), error.code);
    (error.status, body)
}

/// The response to one statement.
pub(crate) fn answered(answer: Result<Answer, Error>) -> (u16, String) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return refused(&error),
    };
    let columns: Vec<String> = answer.columns.iter().map(|name| quoted(name)).collect();
    let rows: Vec<String> = answer.rows.iter().map(|row| format!("[{}]", row.join(","))).collect();
    let body = format!(
        "{{\"cols\":[{}],\"rows\":[{}],\"rowcount\":{},\"duration\":0.5}}",
        columns.join(","),
        rows.join(","),
        answer.count
    );
    (200, body)
}

/// The response to many rows.
pub(crate) fn results(results: &[RowResult]) -> (u16, String) {
    let mut body = String::from("{\"cols\":[],\"duration\":7.1,\"results\":[");
    for (i, result) in results.iter().enumerate() {
        if i > 0 {
            body.push(',');
        }
        // Writing to a String cannot fail.
        let _ = match result {
            RowResult::Count(count) => write!(body, "{{\"rowcount\":{count}}}"),
            RowResult::Refused(code, message) => {
                write!(
                    body,
                    "{{\"rowcount\":-2,\"error\":{{\"code\":{code},\"message\":{}}}}}",
                    quoted(message)
                )
            }
            RowResult::Bare => write!(body, "{{\"rowcount\":-2}}"),
        };
    }
    body.push_str("]}");
    (200, body)
}

pub(super) fn write(out: &mut impl Write, status: u16, body: &str, close: bool) -> Result<(), End> {
    let connection = if close { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: {connection}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // Written at once: otherwise the second of two small writes waits for the acknowledgement of the first.
    out.write_all((head + body).as_bytes()).and_then(|()| out.flush()).map_err(|_| End::Cut)
}
