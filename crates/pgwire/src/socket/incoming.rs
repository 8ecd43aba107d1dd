//! Bytes from a server on their way to the client. Merges the rows of a `COPY TO STDOUT`, which arrive in one
//! message each, into fewer and larger messages.
//!
//! ```text
//! d 4+17 row  d 4+17 row  d 4+17 r...   ─▶   d 4+35 row row r...      ...ow  c 4   ─▶   d 4+2 ow  c 4
//! ```
//!
//! The client handles each message separately and hands it from task to task, which costs more than using the
//! row. The border of a message has no meaning to readers of a `COPY`
//! (<https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-COPY>). All other messages pass
//! unchanged, and so do encrypted ones.

use std::io;

/// A message's kind, and its length without the kind.
const HEAD: usize = 5;
/// Rows are read in pieces of up to this many bytes.
const BUFFER: usize = 64 * 1024;

// Kinds of messages (https://www.postgresql.org/docs/current/protocol-message-formats.html).
const COPY_OUT_RESPONSE: u8 = b'H';
const COPY_DATA: u8 = b'd';
const COPY_DONE: u8 = b'c';
const ERROR_RESPONSE: u8 = b'E';

/// The bytes of a connection on their way to the client.
#[derive(Default)]
pub(crate) struct Incoming {
    passing: Passing,
    /// The beginning of a head that has been read and not passed on.
    held: Vec<u8>,
    /// Bytes of a row's message that have not arrived yet.
    data_left: usize,
    /// Rows read and merged into fewer messages, after room for a head.
    buffer: Vec<u8>,
    /// The part of it that is still to be passed on.
    at: usize,
    end: usize,
    /// The last read while rows come took all that there was.
    drained: bool,
}

/// The position in the bytes that pass unchanged.
#[derive(Default)]
struct Passing {
    follows: Follows,
    /// The part of a message's head that has passed.
    head: [u8; HEAD],
    head_length: usize,
    /// Bytes of a message that are still to pass.
    left: usize,
    /// A `COPY` has begun and has not ended yet.
    copying: bool,
}

/// The next part of the stream.
#[derive(Default)]
enum Follows {
    /// The answer to the question whether there is TLS: one byte.
    TlsAnswer,
    #[default]
    Messages,
    /// Messages, among which there are rows.
    Rows,
    /// Nothing that could be followed.
    Other,
}

/// Kind of a message and length of its body; `None` if no message can have this head.
fn kind_and_length(head: [u8; HEAD]) -> Option<(u8, usize)> {
    let [kind, length @ ..] = head;
    let length = u32::from_be_bytes(length).checked_sub(4)?;
    Some((kind, length as usize))
}

impl Passing {
    fn pass(&mut self, mut bytes: &[u8]) {
        if let Follows::TlsAnswer = self.follows
            && let Some((answer, rest)) = bytes.split_first()
        {
            self.follows = if *answer == b'N' { Follows::Messages } else { Follows::Other };
            bytes = rest;
        }
        while !bytes.is_empty() && !matches!(self.follows, Follows::Other) {
            let passing = self.left.min(bytes.len());
            self.left -= passing;
            bytes = &bytes[passing..];
            let of_head = (HEAD - self.head_length).min(bytes.len());
            self.head[self.head_length..][..of_head].copy_from_slice(&bytes[..of_head]);
            self.head_length += of_head;
            bytes = &bytes[of_head..];
            if self.head_length == HEAD {
                self.head_length = 0;
                match kind_and_length(self.head) {
                    None => self.follows = Follows::Other,
                    Some((kind, length)) => {
                        self.left = length;
                        match kind {
                            COPY_OUT_RESPONSE => (self.follows, self.copying) = (Follows::Rows, true),
                            COPY_DONE | ERROR_RESPONSE => self.copying = false,
                            _ => {}
                        }
                    }
                }
            }
        }
    }
}

impl Incoming {
    /// The state at the beginning of a connection, whose first byte may answer the question for TLS.
    pub(crate) fn new(tls_is_asked_for: bool) -> Self {
        let follows = if tls_is_asked_for { Follows::TlsAnswer } else { Follows::Messages };
        Self { passing: Passing { follows, ..Passing::default() }, ..Self::default() }
    }

    /// Follows bytes that pass unchanged.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.passing.pass(bytes);
    }

    /// Whether rows arrive, or have arrived. Then read bytes by [`read`](Self::read).
    pub(crate) fn has_rows(&self) -> bool {
        matches!(self.passing.follows, Follows::Rows)
    }

    /// Whether more rows come, and all that there were have been read.
    pub(crate) fn is_drained(&self) -> bool {
        self.passing.copying && self.drained
    }

    /// The bytes to pass on.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Counts this many pending bytes as passed on.
    pub(crate) fn passed(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Reads the bytes available now. Call it while nothing is pending. Returns their number, 0 at the end of
    /// the stream.
    ///
    /// # Errors
    /// Errors of `read`.
    pub(crate) fn read(&mut self, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        self.buffer.resize(HEAD + BUFFER, 0);
        let start = HEAD + self.held.len();
        self.buffer[HEAD..start].copy_from_slice(&self.held);
        let bytes = read(&mut self.buffer[start..])?;
        self.drained = bytes < self.buffer.len() - start;
        self.held.clear();
        self.merge(start + bytes, bytes == 0);
        Ok(bytes)
    }

    /// Merges messages in place, from a head's length up to `filled`. At the end of the stream it holds nothing
    /// back.
    fn merge(&mut self, filled: usize, ended: bool) {
        let mut from = HEAD;
        // The rest of a row's bytes needs another head.
        let mut to = if self.data_left > 0 { 0 } else { HEAD };
        self.at = to;
        while from < filled {
            if self.data_left > 0 {
                (from, to) = self.merge_rows(from, filled, to);
                continue;
            }
            let passing = match &self.passing {
                Passing { follows: Follows::Other, .. } => filled - from,
                // The rest of a head, whose beginning has passed.
                Passing { head_length: 1.., .. } => HEAD - self.passing.head_length,
                Passing { left: 1.., .. } => self.passing.left,
                _ => match self.message_at(from, filled) {
                    Some((COPY_DATA, length @ 1..)) => {
                        self.data_left = length;
                        from += HEAD;
                        continue;
                    }
                    Some(_) => HEAD,
                    None if filled - from < HEAD && !ended => {
                        self.held.extend_from_slice(&self.buffer[from..filled]);
                        break;
                    }
                    // It cannot be followed, as will be seen when it passes.
                    None => filled - from,
                },
            };
            let passing = passing.min(filled - from);
            self.buffer.copy_within(from..from + passing, to);
            self.passing.pass(&self.buffer[to..to + passing]);
            (from, to) = (from + passing, to + passing);
        }
        self.end = to;
    }

    /// Merges the rows from `from` on into one message with its head at `to`. Returns both ends.
    fn merge_rows(&mut self, mut from: usize, filled: usize, to: usize) -> (usize, usize) {
        let mut end = to + HEAD;
        while self.data_left > 0 && from < filled {
            let bytes = self.data_left.min(filled - from);
            self.buffer.copy_within(from..from + bytes, end);
            (from, end) = (from + bytes, end + bytes);
            self.data_left -= bytes;
            if self.data_left == 0
                && let Some((COPY_DATA, length)) = self.message_at(from, filled)
            {
                self.data_left = length;
                from += HEAD;
            }
        }
        let length = (end - to - 1) as u32;
        self.buffer[to] = COPY_DATA;
        self.buffer[to + 1..to + HEAD].copy_from_slice(&length.to_be_bytes());
        (from, end)
    }

    /// Kind and length of the message at a place of the buffer, if its head is there.
    fn message_at(&self, at: usize, filled: usize) -> Option<(u8, usize)> {
        kind_and_length(*self.buffer[at..filled].first_chunk()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind], (body.len() as u32 + 4).to_be_bytes().as_slice(), body].concat()
    }

    /// The bytes that the client gets if they arrive in pieces of at most these lengths.
    fn through(bytes: &[u8], pieces: &[usize], tls_is_asked_for: bool) -> Vec<u8> {
        let mut incoming = Incoming::new(tls_is_asked_for);
        let (mut rest, mut out) = (bytes, Vec::new());
        for piece in pieces.iter().cycle() {
            let mut next = |room: usize| {
                let (first, behind) = rest.split_at((*piece).min(rest.len()).min(room));
                rest = behind;
                first
            };
            if incoming.has_rows() {
                let read = incoming.read(|room| {
                    let first = next(room.len());
                    room[..first.len()].copy_from_slice(first);
                    Ok(first.len())
                });
                out.extend_from_slice(incoming.pending());
                incoming.passed(incoming.pending().len());
                if read.unwrap() == 0 {
                    break;
                }
            } else {
                let first = next(usize::MAX);
                incoming.pass(first);
                out.extend_from_slice(first);
                if first.is_empty() {
                    break;
                }
            }
        }
        out
    }

    /// The messages, rows that follow each other as one.
    fn merged(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut messages: Vec<(u8, Vec<u8>)> = Vec::new();
        while let Some(head) = bytes.first_chunk() {
            let (kind, length) = kind_and_length(*head).unwrap();
            let body = &bytes[HEAD..HEAD + length];
            bytes = &bytes[HEAD + length..];
            match messages.last_mut() {
                Some((COPY_DATA, rows)) if kind == COPY_DATA => rows.extend_from_slice(body),
                _ => messages.push((kind, body.to_vec())),
            }
        }
        assert!(bytes.is_empty());
        messages
    }

    proptest! {
        #[test]
        fn messages_come_through_with_the_same_rows_however_they_are_read(
            messages in proptest::collection::vec(
                (
                    prop_oneof![4 => Just(COPY_DATA), 1 => Just(COPY_OUT_RESPONSE), 1 => b'A'..=b'Z'],
                    proptest::collection::vec(any::<u8>(), 0..40),
                ),
                0..60,
            ),
            pieces in proptest::collection::vec(prop_oneof![1..9usize, 1..200usize], 1..20),
            answer in any::<bool>(),
        ) {
            let sent: Vec<u8> = messages.iter().flat_map(|(kind, body)| message(*kind, body)).collect();
            let with_answer = [if answer { b"N".as_slice() } else { b"" }, &sent].concat();
            let out = through(&with_answer, &pieces, answer);
            prop_assert!(out.len() <= with_answer.len() + HEAD * with_answer.len());
            let out = if answer { &out[1..] } else { &out };
            // Rows without bytes come through or not.
            let without_empty_rows = |bytes: &[u8]| {
                let mut messages = merged(bytes);
                messages.retain(|(kind, body)| *kind != COPY_DATA || !body.is_empty());
                messages
            };
            prop_assert_eq!(without_empty_rows(out), without_empty_rows(&sent));
        }

        #[test]
        fn bytes_that_are_not_messages_pass_unchanged(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..3u8], 0..300),
            pieces in proptest::collection::vec(1..50usize, 1..9),
        ) {
            let encrypted = [b"S".as_slice(), &bytes].concat();
            prop_assert_eq!(through(&encrypted, &pieces, true), encrypted);
            let broken = [message(COPY_OUT_RESPONSE, b"").as_slice(), b"Z\0\0\0\x03", &bytes].concat();
            prop_assert_eq!(through(&broken, &pieces, false), broken);
        }
    }

    #[test]
    fn more_is_waited_for_only_between_rows() {
        let mut incoming = Incoming::new(false);
        incoming.pass(&message(COPY_OUT_RESPONSE, b""));
        let mut read = |bytes: &[u8]| {
            incoming
                .read(|room| {
                    room[..bytes.len()].copy_from_slice(bytes);
                    Ok(bytes.len())
                })
                .unwrap();
            incoming.passed(incoming.pending().len());
            incoming.is_drained()
        };
        assert!(read(&message(COPY_DATA, b"row")));
        assert!(!read(&[message(COPY_DATA, b"row"), message(COPY_DONE, b"")].concat()));
        assert!(!read(&message(b'C', b"COPY 2")));
        assert!(read(&message(COPY_OUT_RESPONSE, b"")));
        assert!(!read(&message(ERROR_RESPONSE, b"")));
    }

    #[test]
    fn many_rows_become_one_message() {
        let row = message(COPY_DATA, &[7; 100]);
        let sent = [message(COPY_OUT_RESPONSE, b"\x01\0\0"), row.repeat(1000), message(b'c', b"")].concat();
        // The response comes alone, so that all rows are read behind it.
        let out = through(&sent, &[8, BUFFER], false);
        let mut heads = 0;
        let mut rest = &out[..];
        while let Some(head) = rest.first_chunk() {
            heads += 1;
            rest = &rest[HEAD + kind_and_length(*head).unwrap().1..];
        }
        assert!(heads < 10, "{heads} messages");
        assert_eq!(merged(&out), merged(&sent));
    }
}
