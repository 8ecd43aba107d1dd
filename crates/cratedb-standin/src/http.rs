//! `POST /_sql` over HTTP/1.1: keep-alive, pipelining, chunked and gzip bodies, the content length limit.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::Ordering::Relaxed;

use crate::engine::{Error, RowResult};
use crate::fault::Fault;
use crate::json::{Json, quoted};
use crate::{Recovery, Shared, password_of};

/// The connection has ended.
struct End;

struct Request {
    schema: String,
    authorization: Option<String>,
    body: Vec<u8>,
    target: String,
    close: bool,
}

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
        let Some(request) = read(&mut stream, shared) else { return };
        let request = match request {
            Ok(request) => request,
            Err(status) => {
                let _ = write(stream.get_mut(), status, "", true);
                return;
            }
        };
        if handle(&mut stream, shared, node, &request).is_err() || request.close {
            return;
        }
    }
}

/// The next request; `Err` with a status if it is rejected unread, `None` at the end.
fn read<S: Read>(stream: &mut BufReader<S>, shared: &Shared) -> Option<Result<Request, u16>> {
    let mut line = String::new();
    if stream.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (_, target) = (words.next()?, words.next()?.to_owned());
    let mut request =
        Request { schema: "doc".into(), authorization: None, body: Vec::new(), target, close: false };
    let (mut length, mut chunked, mut gzip) = (0, false, false);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse::<usize>().ok()?,
            "transfer-encoding" => chunked = value == "chunked",
            "content-encoding" => gzip = value == "gzip",
            "default-schema" => request.schema = value.to_owned(),
            "authorization" => request.authorization = Some(value.to_owned()),
            "connection" => request.close = value == "close",
            _ => {}
        }
    }
    let most = shared.max_content_length.load(Relaxed);
    if length > most {
        return Some(Err(413));
    }
    if chunked {
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let start = request.body.len();
            if start + size > most {
                return Some(Err(413));
            }
            request.body.resize(start + size, 0);
            stream.read_exact(&mut request.body[start..]).ok()?;
            stream.read_line(&mut line).ok()?;
            if size == 0 {
                break;
            }
        }
    } else {
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
    }
    if gzip {
        let mut body = Vec::new();
        let limited = flate2::read::GzDecoder::new(request.body.as_slice());
        limited.take(most as u64 + 1).read_to_end(&mut body).ok()?;
        if body.len() > most {
            return Some(Err(413));
        }
        shared.compressed.fetch_add(1, Relaxed);
        request.body = body;
    }
    Some(Ok(request))
}

fn handle<S: Read + Write>(
    stream: &mut BufReader<S>,
    shared: &Shared,
    node: usize,
    request: &Request,
) -> Result<(), End> {
    let out = stream.get_mut();
    let mut send = |status: u16, body: &str| write(out, status, body, request.close);
    if let Some((user, password)) = shared.credentials() {
        let given = request.authorization.as_deref().and_then(password_of);
        if given.as_ref() != Some(&(user.clone(), password)) {
            return send(401, &format!("password authentication failed for user \"{user}\"\n"));
        }
    }
    if request.target.split('?').next() != Some("/_sql") {
        return send(404, "");
    }
    let refuse = |error: &Error| {
        // Like the real server, repeats what it was sent.
        format!("{{\"error\":{{\"message\":{},\"code\":{}}}}}", quoted(&error.message), error.code)
    };
    let bad = |what: String| {
        refuse(&Error { status: 400, code: 4000, message: format!("SQLParseException[{what}]") })
    };
    let text = String::from_utf8_lossy(&request.body);
    let body = match Json::parse(&text) {
        Ok(body) => body,
        Err(what) => return send(400, &bad(what)),
    };
    let Some(Json::Text(statement)) = body.get("stmt") else {
        return send(400, &bad("Field [stmt] was not defined".into()));
    };
    if statement.to_lowercase().contains(" returning ") && body.get("bulk_args").is_some() {
        return send(400, &bad("RETURNING is not supported with bulk_args".into()));
    }
    if shared.restarts_before(node, statement) {
        return Err(End);
    }
    if let Some(error) = shared.not_recovered(statement) {
        return send(error.status, &refuse(&error));
    }
    if statement.contains("information_schema") && shared.recovery() == Recovery::NoTables {
        let rows = if statement.contains("count(*)") { "[[0]]" } else { "[]" };
        return send(200, &format!("{{\"cols\":[],\"rows\":{rows},\"rowcount\":0,\"duration\":0.5}}"));
    }
    let Some(bulk) = body.get("bulk_args") else {
        let arguments = match body.get("args") {
            None | Some(Json::Null) => &[][..],
            Some(Json::Array(arguments)) => arguments,
            Some(_) => return send(400, &bad("args is not an array".into())),
        };
        return match shared.engine.run(statement, &request.schema, arguments) {
            Ok(answer) => {
                let columns: Vec<String> = answer.columns.iter().map(|name| quoted(name)).collect();
                let rows: Vec<String> =
                    answer.rows.iter().map(|row| format!("[{}]", row.join(","))).collect();
                send(
                    200,
                    &format!(
                        "{{\"cols\":[{}],\"rows\":[{}],\"rowcount\":{},\"duration\":0.5}}",
                        columns.join(","),
                        rows.join(","),
                        answer.count
                    ),
                )
            }
            Err(error) => send(error.status, &refuse(&error)),
        };
    };
    let Json::Array(bulk) = bulk else { return send(400, &bad("bulk_args is not an array".into())) };
    let mut rows = Vec::with_capacity(bulk.len());
    for row in bulk {
        match row {
            Json::Array(row) => rows.push(row.clone()),
            _ => return send(400, &bad("a row of bulk_args is not an array".into())),
        }
    }
    shared.bulks.fetch_add(1, Relaxed);
    shared.largest.fetch_max(request.body.len(), Relaxed);
    let fault = shared.faults.take();
    let mut most = usize::MAX;
    match fault {
        Some(Fault::DropBefore) => return Err(End),
        Some(Fault::Unavailable) => {
            return send(
                503,
                &refuse(&Error { status: 503, code: 5030, message: "Cluster unavailable".into() }),
            );
        }
        Some(Fault::Busy) => {
            return send(
                429,
                &refuse(&Error { status: 429, code: 4290, message: "too many requests".into() }),
            );
        }
        Some(Fault::Slow(time)) => std::thread::sleep(time),
        Some(Fault::DropInTheMiddle | Fault::Restart(..)) => most = rows.len() / 2,
        Some(Fault::Disappear) => {
            shared.stop(node);
            return Err(End);
        }
        Some(fault @ (Fault::LostShard | Fault::Blocked)) => {
            let blocked = "{\"rowcount\":-2,\"error\":{\"code\":4037,\"message\":\"ClusterBlockException[blocked by: [RELATION_READ_DELETE_ONLY/12/index read-only / allow delete (api)];]\"}}";
            let lost = "{\"rowcount\":-2,\"error\":{\"code\":5002,\"message\":\"One or more shards are not available\"}}";
            return send(
                200,
                &format!(
                    "{{\"cols\":[],\"duration\":1.0,\"results\":[{}]}}",
                    vec![if fault == Fault::Blocked { blocked } else { lost }; rows.len()].join(",")
                ),
            );
        }
        Some(Fault::DropAfter) | None => {}
    }
    shared.work.rows(rows.len());
    let results = shared.engine.bulk(statement, &request.schema, &rows, most);
    if let Some(Fault::Restart(away, recovering)) = fault {
        shared.restart(node, away, recovering);
        return Err(End);
    }
    if matches!(fault, Some(Fault::DropAfter | Fault::DropInTheMiddle)) {
        return Err(End);
    }
    match results {
        Err(error) => send(error.status, &refuse(&error)),
        Ok(results) => {
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
            send(200, &body)
        }
    }
}

fn write(out: &mut impl Write, status: u16, body: &str, close: bool) -> Result<(), End> {
    let connection = if close { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: {connection}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // Written at once: otherwise the second of two small writes waits for the acknowledgement of the first.
    out.write_all((head + body).as_bytes()).and_then(|()| out.flush()).map_err(|_| End)
}
