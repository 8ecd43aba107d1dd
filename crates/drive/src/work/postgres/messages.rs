//! Messages of the protocol that operations send, and the answers that they read.

use std::io;

use sawmill_pgwire::{BlockingConnection, Message, ServerReport};

/// Appends a message.
pub(super) fn push<T>(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    out.push(tag);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    let made = body(out);
    let length = ((out.len() - at) as u32).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
    made
}

/// A query of the simple protocol.
pub(super) fn query(out: &mut Vec<u8>, sql: &str) {
    push(out, b'Q', |out| {
        out.extend_from_slice(sql.as_bytes());
        out.push(0);
    });
}

/// Parse: `name` is empty for a statement that is used once.
pub(super) fn parse(out: &mut Vec<u8>, name: &str, sql: &str, oids: &[u32]) {
    push(out, b'P', |out| {
        for text in [name, sql] {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        out.extend_from_slice(&(oids.len() as u16).to_be_bytes());
        oids.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// Bind, Execute and Sync: `values` appends `count` parameters, which are binary, as are all results. With
/// `describe`, also asks for the types of the results.
pub(super) fn bind<T>(
    out: &mut Vec<u8>,
    name: &str,
    count: u16,
    describe: bool,
    values: impl FnOnce(&mut Vec<u8>) -> T,
) -> T {
    let made = push(out, b'B', |out| {
        out.push(0);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(&[0, 0, 1, 0, 1]);
        out.extend_from_slice(&count.to_be_bytes());
        let made = values(out);
        out.extend_from_slice(&[0, 1, 0, 1]);
        made
    });
    if describe {
        push(out, b'D', |out| out.extend_from_slice(b"P\0"));
    }
    push(out, b'E', |out| out.extend_from_slice(&[0; 5]));
    push(out, b'S', |_| {});
    made
}

/// Sends a COPY and waits until the server takes rows.
pub(super) fn begin_copy(
    connection: &mut BlockingConnection,
    sql: &str,
    given_up: &mut dyn FnMut() -> bool,
) -> io::Result<Result<(), ServerReport>> {
    query(&mut connection.out, sql);
    connection.send()?;
    let mut answer = Answer::default();
    loop {
        let message = connection.message(given_up)?;
        if message.tag == b'G' {
            return Ok(Ok(()));
        }
        match answer.take(message, &mut |_, _| {}) {
            Some(Err(report)) => return Ok(Err(report)),
            Some(Ok(_)) => return Err(io::ErrorKind::InvalidData.into()),
            None => {}
        }
    }
}

/// Reads until the server is ready: whether the last command was a ROLLBACK, or the server's error.
pub(super) fn answer(
    connection: &mut BlockingConnection,
    given_up: &mut dyn FnMut() -> bool,
) -> io::Result<Result<bool, ServerReport>> {
    let mut answer = Answer::default();
    loop {
        let message = connection.message(given_up)?;
        if let Some(answered) = answer.take(message, &mut |_, _| {}) {
            return Ok(answered.map(|_| answer.rolled_back));
        }
    }
}

/// The types of the columns that a description of rows has, by their object identifiers.
pub(super) fn column_types(description: &[u8]) -> Vec<u32> {
    let mut rest = description.get(2..).unwrap_or_default();
    let mut types = Vec::new();
    // Behind its name a column has table, number, type, length, modifier and format.
    while let Some(end) = rest.iter().position(|byte| *byte == 0)
        && let Some(column) = rest.get(end + 1..end + 19)
    {
        types.push(column.get(6..10).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes));
        rest = rest.get(end + 19..).unwrap_or_default();
    }
    types
}

/// A server's answer to a statement: the number of rows that its last command names, or its error.
pub(super) type Answered = Result<Option<u64>, ServerReport>;

/// The answer to a statement as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Answer {
    count: Option<u64>,
    report: Option<ServerReport>,
    /// The last command was a ROLLBACK, whatever was sent: so a server answers the COMMIT of a failed transaction.
    pub rolled_back: bool,
}

impl Answer {
    /// Takes a message; the answer, if it was the last one.
    pub(super) fn take(&mut self, message: Message<'_>, row: &mut dyn FnMut(u8, &[u8])) -> Option<Answered> {
        match message.tag {
            b'D' | b'T' | b'1' => row(message.tag, message.body),
            b'C' => {
                let text = message.body.strip_suffix(&[0]).unwrap_or(message.body);
                let last = text.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                self.count = std::str::from_utf8(last).ok().and_then(|last| last.parse().ok());
                self.rolled_back = text == b"ROLLBACK";
            }
            b'E' => {
                let refused = ServerReport::new(message.body);
                if refused.fatal {
                    return Some(Err(refused));
                }
                self.report.get_or_insert(refused);
            }
            b'Z' => return Some(self.report.take().map_or(Ok(self.count), Err)),
            _ => {}
        }
        None
    }
}
