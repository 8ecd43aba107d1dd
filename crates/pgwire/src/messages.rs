//! Limits on the messages of a server, by their heads
//! (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use std::io;

use crate::untrusted::{UntrustedLength, invalid};

/// A message's kind, and its length, which does not count the kind.
pub(crate) const HEAD: usize = 5;

/// A row, or a piece of a COPY: no value of PostgreSQL is longer.
const MAX_ROW: usize = 1 << 30;
/// An error or a notice, which may show a row.
const MAX_REPORT: usize = 16 << 20;
/// The description of a result's columns, or of parameters.
const MAX_DESCRIPTION: usize = 1 << 20;
/// Everything else, and every message of a login, as libpq has it.
const MAX_OTHER: usize = 30_000;
/// The answer to one request, without the rows of a COPY, which are not kept.
const MAX_ANSWER: u64 = 256 << 20;
/// The cost of a message for the client beside its bytes.
pub(crate) const OVERHEAD: usize = 200;
/// Unasked messages while the connection lasts: changed parameters and notifications, which the client keeps.
const MAX_UNASKED: u64 = 4 << 20;

/// The kind of a message and the length of its body.
///
/// # Errors
/// The protocol has no such message, or the message exceeds the limit of its kind.
pub(crate) fn kind_and_length(head: [u8; HEAD]) -> io::Result<(u8, UntrustedLength)> {
    let [kind, length @ ..] = head;
    let most = match kind {
        b'D' | b'd' | b'V' => MAX_ROW,
        b'E' | b'N' | b'A' => MAX_REPORT,
        b'T' | b't' => MAX_DESCRIPTION,
        b'1' | b'2' | b'3' | b'C' | b'G' | b'H' | b'I' | b'K' | b'R' | b'S' | b'W' | b'Z' | b'c' | b'n'
        | b's' | b'v' => MAX_OTHER,
        _ => return Err(invalid(NOT_THE_PROTOCOL)),
    };
    within(length, most).map(|length| (kind, length))
}

/// The same during a login.
pub(crate) fn kind_and_length_at_login(head: [u8; HEAD]) -> io::Result<(u8, UntrustedLength)> {
    let [kind, length @ ..] = head;
    match kind {
        b'E' | b'K' | b'N' | b'R' | b'S' | b'Z' | b'v' => {
            within(length, MAX_OTHER).map(|length| (kind, length))
        }
        _ => Err(invalid(NOT_THE_PROTOCOL)),
    }
}

const NOT_THE_PROTOCOL: &str = "the server does not speak the PostgreSQL protocol";

fn within(length: [u8; 4], most: usize) -> io::Result<UntrustedLength> {
    let length = u32::from_be_bytes(length).checked_sub(4).ok_or_else(|| invalid(NOT_THE_PROTOCOL))?;
    UntrustedLength::new(length.into(), most, "a message")
}

/// Follows a server's messages after the login, and checks them against their limits.
#[derive(Default)]
pub(crate) struct Limits {
    head: [u8; HEAD],
    head_length: usize,
    /// The remaining bytes of a message.
    left: usize,
    /// Bytes of the answer to the present request.
    answer: u64,
    unasked: u64,
    /// The present messages belong to an answer.
    answering: bool,
    /// Bytes of answers.
    moved: u64,
}

impl Limits {
    /// These bytes have come.
    ///
    /// # Errors
    /// They are not the protocol, or more than is read.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let passing = self.left.min(bytes.len());
            self.left -= passing;
            self.moved += passing as u64 * u64::from(self.answering);
            bytes = bytes.get(passing..).unwrap_or_default();
            while let (true, Some((byte, rest))) =
                (self.left == 0 && self.head_length < HEAD, bytes.split_first())
            {
                if let Some(place) = self.head.get_mut(self.head_length) {
                    *place = *byte;
                }
                self.head_length += 1;
                bytes = rest;
            }
            if self.head_length == HEAD {
                self.head_length = 0;
                let (kind, length) = kind_and_length(self.head)?;
                self.left = length.get();
                self.count(kind, (HEAD + self.left) as u64)?;
            }
        }
        Ok(())
    }

    /// How many bytes of answers have come: notices and the like are none.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    fn count(&mut self, kind: u8, bytes: u64) -> io::Result<()> {
        self.answering = !matches!(kind, b'A' | b'N' | b'S');
        self.moved += u64::from(self.answering);
        match kind {
            b'Z' => self.answer = 0,
            // The client keeps neither.
            b'd' | b'N' => {}
            b'S' | b'A' => self.unasked += bytes,
            _ => self.answer += bytes + OVERHEAD as u64,
        }
        match self.answer > MAX_ANSWER || self.unasked > MAX_UNASKED {
            true => Err(invalid("the server's answer does not end")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_message_is_refused_however_it_is_cut() {
        let mut limits = Limits::default();
        for byte in b"Z\0\0\0\x05ID\0\0\0\x07abc" {
            limits.pass(&[*byte]).unwrap();
        }
        limits.pass(b"D\0\0\0\x04C\0\0\0\x04").unwrap();
        for wrong in [b"H\x7f\xff\xff\xff", b"Z\0\0\0\x03", b"?\0\0\0\x08", b"D\x7f\xff\xff\xff"] {
            assert!(Limits::default().pass(wrong).is_err(), "{wrong:?}");
        }
        assert!(kind_and_length_at_login(*b"R\x40\0\0\0").is_err());
        assert!(kind_and_length_at_login(*b"HTTP/").is_err());
    }

    #[test]
    fn parameters_and_answers_that_do_not_end_are_refused() {
        let parameter = [b"S\0\0\x10\0".as_slice(), &[b'x'; 4092]].concat();
        let mut limits = Limits::default();
        assert!((0..2000).any(|_| limits.pass(&parameter).is_err()));
    }
}
