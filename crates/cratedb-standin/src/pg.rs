//! The part of the PostgreSQL wire protocol that `INSERT ... SELECT FROM UNNEST` with binary arrays needs
//! (<https://www.postgresql.org/docs/current/protocol-flow.html>).

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::Shared;
use crate::engine::RowResult;
use crate::fault::Fault;
use crate::json::Json;
use crate::parser::{Cast, Statement, parse};
use crate::value::Type;

const TEXTS: [u32; 2] = [25, 1043];
const PROTOCOL_3: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;

/// The transport: TCP, plain or encrypted.
trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

struct Connection<'a> {
    stream: Box<dyn Stream>,
    shared: &'a Shared,
    fail_fast: bool,
    /// SQL and parameter types by statement name.
    statements: HashMap<String, (String, Vec<u32>)>,
    /// Statement and arguments of the last bound portal.
    portal: Option<(String, Vec<Vec<Json>>)>,
    /// An error was sent: everything up to Sync is skipped.
    failed: bool,
}

/// Serves one connection until it ends.
pub(crate) fn serve(stream: TcpStream, shared: &Shared, node: usize) {
    // Small messages follow each other; without this option they are only delayed.
    let _ = stream.set_nodelay(true);
    let (Ok(plain), mut encrypted) = (stream.try_clone(), false) else { return };
    let mut plain: Box<dyn Stream> = Box::new(plain);
    // The first message requests TLS or starts the protocol.
    let startup = loop {
        let Ok(startup) = body(&mut plain) else { return };
        let code = startup.get(..4).map(|code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
        let answer = match (code, &shared.tls) {
            (Some(SSL_REQUEST), Some(config)) if !encrypted => {
                let Ok(connection) = rustls::ServerConnection::new(Arc::clone(config)) else { return };
                let Ok(socket) = stream.try_clone() else { return };
                if plain.write_all(b"S").is_err() {
                    return;
                }
                plain = Box::new(rustls::StreamOwned::new(connection, socket));
                encrypted = true;
                continue;
            }
            (Some(SSL_REQUEST | GSS_REQUEST), _) => plain.write_all(b"N"),
            _ => break code,
        };
        if answer.is_err() {
            return;
        }
    };
    if startup != Some(PROTOCOL_3) || encrypted != shared.tls.is_some() {
        // As with `ssl: on` in host-based authentication: unencrypted clients are rejected.
        return;
    }
    let mut connection = Connection {
        stream: plain,
        shared,
        fail_fast: false,
        statements: HashMap::new(),
        portal: None,
        failed: false,
    };
    // A broken connection is the client's concern.
    let _ = connection.run(node);
}

fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Connection<'_> {
    fn run(&mut self, node: usize) -> io::Result<()> {
        if let Some((_, password)) = self.shared.credentials() {
            self.send(b'R', &3u32.to_be_bytes())?;
            let (_, body) = self.message()?;
            let mut fields = Reader { bytes: &body };
            if fields.text()? != password {
                self.error("28000", "password authentication failed")?;
                return Ok(());
            }
        }
        self.send(b'R', &0u32.to_be_bytes())?;
        for (name, value) in [
            ("server_version", "14.0"),
            ("crate_version", crate::engine::VERSION),
            ("client_encoding", "UTF8"),
        ] {
            self.send(b'S', format!("{name}\0{value}\0").as_bytes())?;
        }
        self.send(b'K', &[0; 8])?;
        self.send(b'Z', b"I")?;
        while self.shared.alive(node) {
            let (kind, body) = self.message()?;
            if self.failed && kind != b'S' {
                continue;
            }
            let mut fields = Reader { bytes: &body };
            match kind {
                b'Q' => {
                    let sql = fields.text()?;
                    match parse(sql.trim_end_matches(';'), "doc") {
                        Ok(Statement::Nothing(tag)) => {
                            self.fail_fast |= sql.contains("insert_select_fail_fast");
                            self.send(b'C', format!("{tag}\0").as_bytes())?;
                        }
                        _ => self.error("42601", &format!("SQLParseException[{sql}]"))?,
                    }
                    self.send(b'Z', b"I")?;
                    self.failed = false;
                }
                b'P' => {
                    let (name, sql) = (fields.text()?, fields.text()?);
                    let types = (0..fields.u16()?).map(|_| fields.u32()).collect::<io::Result<_>>()?;
                    match parse(&sql, "doc") {
                        Ok(_) => {
                            self.statements.insert(name, (sql, types));
                            self.send(b'1', b"")?;
                        }
                        Err(what) => self.error("42601", &format!("SQLParseException[{what}]"))?,
                    }
                }
                b'D' => {
                    let (_, name) = (fields.u8()?, fields.text()?);
                    let sql = self.statements.get(&name).map(|(sql, _)| sql.clone()).unwrap_or_default();
                    if let Some(what) = impossible_cast(&sql) {
                        self.error("XX000", &what)?;
                        continue;
                    }
                    let types =
                        self.statements.get(&name).map(|(_, types)| types.clone()).unwrap_or_default();
                    let mut out = (types.len() as u16).to_be_bytes().to_vec();
                    types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
                    self.send(b't', &out)?;
                    self.send(b'n', b"")?;
                }
                b'B' => {
                    let (_, name) = (fields.text()?, fields.text()?);
                    for _ in 0..fields.u16()? {
                        fields.u16()?;
                    }
                    let mut columns = Vec::new();
                    for _ in 0..fields.u16()? {
                        let length = fields.u32()? as usize;
                        columns.push(array(fields.take(length)?)?);
                    }
                    self.portal = Some((name, columns));
                    self.send(b'2', b"")?;
                }
                b'E' => self.execute()?,
                b'C' => self.send(b'3', b"")?,
                b'S' => {
                    self.failed = false;
                    self.send(b'Z', b"I")?;
                }
                b'X' => return Ok(()),
                _ => {}
            }
        }
        Ok(())
    }

    fn execute(&mut self) -> io::Result<()> {
        let Some((name, arguments)) = self.portal.take() else { return self.error("34000", "no portal") };
        let sql = self.statements.get(&name).map(|(sql, _)| sql.clone()).unwrap_or_default();
        let Ok(Statement::Unnest { name, columns, sources, ignore }) = parse(&sql, "doc") else {
            return self.error("0A000", "only INSERT from UNNEST is supported");
        };
        if let Some(error) = self.shared.not_recovered(&sql) {
            return self.error("XX000", &error.message);
        }
        self.shared.unnests.fetch_add(1, Relaxed);
        let fault = self.shared.pg_faults.take();
        if let Some(Fault::Slow(time)) = fault {
            std::thread::sleep(time);
        }
        let mut picked: Vec<Vec<Json>> = Vec::new();
        for (number, cast) in &sources {
            let column = arguments.get(*number).cloned().unwrap_or_default();
            let column = column.into_iter().map(|json| cast_text(json, cast));
            match column.collect::<Result<Vec<Json>, String>>() {
                Ok(column) => picked.push(column),
                Err(what) => return self.error("22000", &what),
            }
        }
        let count = picked.iter().map(Vec::len).max().unwrap_or(0);
        let row =
            |i: usize| picked.iter().map(|column| column.get(i).cloned().unwrap_or(Json::Null)).collect();
        let rows: Vec<Vec<Json>> = (0..count).map(row).collect();
        let most = match fault {
            Some(Fault::DropBefore) => return Err(ended()),
            Some(Fault::DropInTheMiddle | Fault::Restart(..)) => count / 2,
            _ => usize::MAX,
        };
        self.shared.work.rows(count);
        // A failing row either ends the statement, keeping the rows before it, or disappears.
        let mut inserted = 0;
        let mut first_error = None;
        match self.shared.engine.insert(&name, &columns, &rows, ignore, most) {
            Err(error) => first_error = Some(error.message),
            Ok(results) => {
                for result in results {
                    match result {
                        RowResult::Count(rows) => inserted += rows,
                        RowResult::Refused(_, message) => {
                            first_error.get_or_insert(message);
                        }
                        RowResult::Bare => {}
                    }
                }
                first_error = first_error.filter(|_| self.fail_fast);
            }
        }
        if let Some(Fault::Restart(away, recovering)) = fault {
            self.shared.restart(0, away, recovering);
            return Err(ended());
        }
        if matches!(fault, Some(Fault::DropInTheMiddle | Fault::DropAfter)) {
            return Err(ended());
        }
        match first_error {
            Some(message) => self.error("XX000", &message),
            None => self.send(b'C', format!("INSERT 0 {inserted}\0").as_bytes()),
        }
    }

    fn error(&mut self, code: &str, message: &str) -> io::Result<()> {
        self.failed = true;
        // The context is the stack trace of the server's code.
        let stack = "io.crate.exceptions.SQLExceptions.esToCrateException(SQLExceptions.java:196)";
        self.send(b'E', format!("SERROR\0VERROR\0C{code}\0M{message}\0W{stack}\0\0").as_bytes())
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message)?;
        // TLS may buffer data.
        self.stream.flush()
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut kind = [0];
        self.stream.read_exact(&mut kind)?;
        Ok((kind[0], self.body()?))
    }

    fn body(&mut self) -> io::Result<Vec<u8>> {
        body(&mut self.stream)
    }
}

/// The longest message in bytes; the beginning of an HTTP request reads as a larger length.
const LONGEST: u32 = 1 << 30;

/// Reads a length and that many bytes.
fn body(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    if u32::from_be_bytes(length) > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    stream.read_exact(&mut body)?;
    Ok(body)
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(ended)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self, length: usize) -> io::Result<i64> {
        let bytes = self.take(length)?;
        let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
        Ok(bytes.iter().fold(start, |number, byte| number << 8 | i64::from(*byte)))
    }

    fn u8(&mut self) -> io::Result<u8> {
        Ok(self.number(1)? as u8)
    }

    fn u16(&mut self) -> io::Result<u16> {
        Ok(self.number(2)? as u16)
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(self.number(4)? as u32)
    }

    fn text(&mut self) -> io::Result<String> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(ended)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(text)
    }
}

/// The elements of a binary array, as the JSON that the HTTP endpoint would receive.
fn array(bytes: &[u8]) -> io::Result<Vec<Json>> {
    let mut fields = Reader { bytes };
    let (dimensions, _, element) = (fields.u32()?, fields.u32()?, fields.u32()?);
    if dimensions != 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "one dimension is expected"));
    }
    let (count, _) = (fields.u32()?, fields.u32()?);
    (0..count)
        .map(|_| match fields.u32()? {
            u32::MAX => Ok(Json::Null),
            length => value(element, fields.take(length as usize)?),
        })
        .collect()
}

fn value(oid: u32, bytes: &[u8]) -> io::Result<Json> {
    let mut fields = Reader { bytes };
    let float = |value: f64, text: String| match value.is_finite() {
        true => Json::Number(text),
        false => Json::Text(if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        }),
    };
    Ok(match oid {
        16 => Json::Bool(bytes == [1]),
        21 | 23 | 20 => Json::Number(fields.number(bytes.len())?.to_string()),
        700 => {
            let value = f32::from_bits(fields.u32()?);
            float(value.into(), format!("{value:?}"))
        }
        701 => {
            let value = f64::from_bits(fields.number(8)? as u64);
            float(value, format!("{value:?}"))
        }
        // Microseconds since 2000.
        1114 | 1184 => Json::Number((fields.number(8)?.div_euclid(1000) + 946_684_800_000).to_string()),
        1700 => Json::Text(numeric(&mut fields)?),
        oid if TEXTS.contains(&oid) => Json::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "unknown type")),
    })
}

/// Decodes base-10,000 digits (`numeric_send` in PostgreSQL's src/backend/utils/adt/numeric.c).
fn numeric(fields: &mut Reader<'_>) -> io::Result<String> {
    let (digits, weight) = (fields.u16()?, fields.number(2)?);
    let (sign, scale) = (fields.u16()?, fields.u16()? as usize);
    let groups = (0..digits).map(|_| fields.u16()).collect::<io::Result<Vec<u16>>>()?;
    let group = |at: i64| usize::try_from(weight - at).ok().and_then(|i| groups.get(i)).copied().unwrap_or(0);
    let whole: String = (0..=weight.max(0)).rev().map(|at| format!("{:04}", group(at))).collect();
    let fraction: String = (1..=scale.div_ceil(4) as i64).map(|at| format!("{:04}", group(-at))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if scale > 0 { "." } else { "" };
    Ok(format!("{}{whole}{point}{}", if sign == 0x4000 { "-" } else { "" }, &fraction[..scale]))
}

/// The server's message for an unsupported cast: from text to an object or an array of objects.
fn impossible_cast(sql: &str) -> Option<String> {
    let Ok(Statement::Unnest { sources, .. }) = parse(sql, "doc") else { return None };
    sources.iter().find_map(|(_, cast)| match cast {
        Cast::Direct(array @ Type::Array(item)) if !matches!(**item, Type::Object(..)) => {
            Some(format!("Cannot cast expressions from type `text` to type `{}`", array.catalogue_name()))
        }
        _ => None,
    })
}

/// Converts text that the statement casts to an object or an array.
fn cast_text(json: Json, cast: &Cast) -> Result<Json, String> {
    match (json, cast) {
        (
            Json::Text(text),
            Cast::Direct(Type::Object(..) | Type::Array(_))
            | Cast::OfField(Type::Object(..) | Type::Array(_)),
        ) => Json::parse(&text).map_err(|_| format!("Cannot cast value `{text}`")),
        (json, _) => Ok(json),
    }
}
