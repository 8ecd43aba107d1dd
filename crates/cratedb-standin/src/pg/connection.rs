//! One connection: its statements, and a message at a time.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use super::Stream;
use super::arrays::array;
use super::message::{Reader, body};
use crate::cluster::Shared;
use crate::json::Json;
use crate::sql::{Cast, Statement, parse};
use crate::store::VERSION;
use crate::types::Type;

pub(super) struct Connection<'a> {
    stream: Box<dyn Stream>,
    pub(super) shared: &'a Shared,
    pub(super) fail_fast: bool,
    prepared: HashMap<String, Prepared>,
    /// The last bound portal.
    pub(super) portal: Option<Portal>,
    /// An error was sent: everything up to Sync is skipped.
    failed: bool,
}

/// The type of a parameter that is one number of eight bytes.
const INT8: u32 = 20;

/// A prepared statement.
#[derive(Clone, Default)]
struct Prepared {
    sql: String,
    /// Types of its parameters.
    types: Vec<u32>,
}

/// A statement with its arguments, column by column.
pub(super) struct Portal {
    pub(super) sql: String,
    pub(super) columns: Vec<Vec<Json>>,
}

impl<'a> Connection<'a> {
    pub(super) fn new(stream: Box<dyn Stream>, shared: &'a Shared) -> Self {
        Self { stream, shared, fail_fast: false, prepared: HashMap::new(), portal: None, failed: false }
    }

    /// Serves the connection until it ends.
    pub(super) fn run(&mut self, node: usize) -> io::Result<()> {
        if !self.greet()? {
            return Ok(());
        }
        while self.shared.alive(node) {
            let (kind, body) = self.message()?;
            if self.failed && kind != b'S' {
                continue;
            }
            let mut fields = Reader { bytes: &body };
            match kind {
                b'Q' => self.query(&fields.text()?)?,
                b'P' => self.prepare(&mut fields)?,
                b'D' => self.describe(&mut fields)?,
                b'B' => self.bind(&mut fields)?,
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

    /// Asks for the password, and sends the server's parameters; returns `false` if the password is wrong.
    fn greet(&mut self) -> io::Result<bool> {
        if let Some((_, password)) = self.shared.credentials() {
            self.send(b'R', &3u32.to_be_bytes())?;
            let (_, body) = self.message()?;
            let mut fields = Reader { bytes: &body };
            if fields.text()? != password {
                self.error("28000", "password authentication failed")?;
                return Ok(false);
            }
        }
        self.send(b'R', &0u32.to_be_bytes())?;
        for (name, value) in
            [("server_version", "14.0"), ("crate_version", VERSION), ("client_encoding", "UTF8")]
        {
            self.send(b'S', format!("{name}\0{value}\0").as_bytes())?;
        }
        self.send(b'K', &[0; 8])?;
        self.send(b'Z', b"I")?;
        Ok(true)
    }

    fn query(&mut self, sql: &str) -> io::Result<()> {
        match parse(sql.trim_end_matches(';'), "doc") {
            Ok(Statement::Nothing(tag)) => {
                self.fail_fast |= sql.contains("insert_select_fail_fast");
                self.send(b'C', format!("{tag}\0").as_bytes())?;
            }
            _ => self.error("42601", &format!("SQLParseException[{sql}]"))?,
        }
        self.send(b'Z', b"I")?;
        self.failed = false;
        Ok(())
    }

    fn prepare(&mut self, fields: &mut Reader<'_>) -> io::Result<()> {
        let (name, sql) = (fields.text()?, fields.text()?);
        let types = (0..fields.u16()?).map(|_| fields.u32()).collect::<io::Result<_>>()?;
        match parse(&sql, "doc") {
            Ok(_) => {
                self.prepared.insert(name, Prepared { sql, types });
                self.send(b'1', b"")
            }
            Err(what) => self.error("42601", &format!("SQLParseException[{what}]")),
        }
    }

    fn describe(&mut self, fields: &mut Reader<'_>) -> io::Result<()> {
        let (_, name) = (fields.u8()?, fields.text()?);
        let Prepared { sql, types } = self.prepared.get(&name).cloned().unwrap_or_default();
        if let Some(what) = impossible_cast(&sql) {
            return self.error("XX000", &what);
        }
        let mut out = (types.len() as u16).to_be_bytes().to_vec();
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        self.send(b't', &out)?;
        self.send(b'n', b"")
    }

    fn bind(&mut self, fields: &mut Reader<'_>) -> io::Result<()> {
        let (_, name) = (fields.text()?, fields.text()?);
        for _ in 0..fields.u16()? {
            fields.u16()?;
        }
        let mut columns = Vec::new();
        let Prepared { sql, types } = self.prepared.get(&name).cloned().unwrap_or_default();
        for number in 0..fields.u16()? {
            let length = fields.u32()? as usize;
            let bytes = fields.take(length)?;
            columns.push(match (types.get(usize::from(number)), bytes) {
                (Some(&INT8), bytes) if bytes.len() == 8 => {
                    let mut number = [0; 8];
                    number.copy_from_slice(bytes);
                    vec![Json::Number(i64::from_be_bytes(number).to_string())]
                }
                (_, bytes) => array(bytes)?,
            });
        }
        self.portal = Some(Portal { sql, columns });
        self.send(b'2', b"")
    }

    pub(super) fn error(&mut self, code: &str, message: &str) -> io::Result<()> {
        self.failed = true;
        // The context is the stack trace of the server's code.
        let stack = "io.crate.exceptions.SQLExceptions.esToCrateException(SQLExceptions.java:196)";
        self.send(b'E', format!("SERROR\0VERROR\0C{code}\0M{message}\0W{stack}\0\0").as_bytes())
    }

    pub(super) fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let mut message = vec![kind];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message)?;
        // TLS may buffer data.
        self.stream.flush()
    }

    pub(super) fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut kind = [0];
        self.stream.read_exact(&mut kind)?;
        Ok((kind[0], body(&mut self.stream)?))
    }
}

/// The server's message for an unsupported cast: from text to an array of anything but objects, or to a vector.
fn impossible_cast(sql: &str) -> Option<String> {
    let Ok(Statement::Unnest { sources, .. }) = parse(sql, "doc") else { return None };
    sources.iter().find_map(|(_, cast)| match cast {
        Cast::Direct(array @ Type::Array(item)) if !matches!(**item, Type::Object(..)) => {
            Some(format!("Cannot cast expressions from type `text` to type `{}`", array.catalogue_name()))
        }
        Cast::Direct(vector @ Type::FloatVector(_)) => {
            Some(format!("Cannot cast expressions from type `text` to type `{}`", vector.catalogue_name()))
        }
        _ => None,
    })
}
