//! Messages, and the fields in them.

use std::io::{self, Read};

/// The longest message in bytes; the beginning of an HTTP request reads as a larger length.
const MAX_LENGTH: u32 = 1 << 30;

pub(super) fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Reads a length and that many bytes.
pub(super) fn body(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    if u32::from_be_bytes(length) > MAX_LENGTH {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    stream.read_exact(&mut body)?;
    Ok(body)
}

/// The fields of a message that are not yet read.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(ended)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self, length: usize) -> io::Result<i64> {
        let bytes = self.take(length)?;
        let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
        Ok(bytes.iter().fold(start, |number, byte| number << 8 | i64::from(*byte)))
    }

    pub(super) fn u8(&mut self) -> io::Result<u8> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> io::Result<u16> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> io::Result<u32> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn text(&mut self) -> io::Result<String> {
        let end = self.bytes.iter().position(|byte| *byte == 0).ok_or_else(ended)?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(text)
    }
}
