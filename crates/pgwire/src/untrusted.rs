//! Lengths that the other side of a connection names. They are checked against a limit before any use, and
//! memory is taken only for bytes that have arrived.

use std::io;

/// A length that a server has named, and that is within its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntrustedLength(usize);

/// The least room to make at a time.
const PIECE: usize = 16 * 1024;

impl UntrustedLength {
    /// Takes a length of at most `most` bytes; `what` is it the length of, for the error.
    ///
    /// # Errors
    /// The length is beyond the limit.
    pub fn new(named: u64, most: usize, what: &str) -> io::Result<Self> {
        match usize::try_from(named) {
            Ok(length) if length <= most => Ok(Self(length)),
            _ => Err(invalid(format!(
                "the server sends {what} of {named} bytes, where at most {most} are read"
            ))),
        }
    }

    /// The number of bytes.
    pub fn get(self) -> usize {
        self.0
    }

    /// Makes room behind the filled bytes of a buffer, on the way to this length: as much as has arrived, so
    /// that the room is never more than twice the bytes that the server has sent.
    ///
    /// # Errors
    /// The allocator refused the memory.
    pub fn make_room(self, buffer: &mut Vec<u8>, filled: usize) -> io::Result<()> {
        let wanted = self.0.min(filled.saturating_mul(2)).max(filled.saturating_add(PIECE));
        if let Some(more) = wanted.checked_sub(buffer.len()).filter(|more| *more > 0) {
            buffer.try_reserve_exact(more).map_err(|_| no_memory(wanted))?;
            buffer.resize(wanted, 0);
        }
        Ok(())
    }
}

/// Appends received bytes, if there is memory for them.
///
/// # Errors
/// The allocator refused the memory.
pub fn append(buffer: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    buffer.try_reserve(bytes.len()).map_err(|_| no_memory(buffer.len() + bytes.len()))?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

fn no_memory(bytes: usize) -> io::Error {
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        format!("there is no memory for {bytes} bytes of the server's answer"),
    )
}

/// An answer that no client can read, however often it asks.
#[derive(Debug)]
struct Refusal(String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// An error about the server's answer; a retry would not help.
pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Refusal(what.into()))
}

/// Whether an error is about the server's answer.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Refusal>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_its_limit_is_refused_and_room_grows_with_what_came() {
        assert!(
            UntrustedLength::new(1 << 40, 100, "a message").unwrap_err().to_string().contains("at most 100")
        );
        let length = UntrustedLength::new(1 << 30, 1 << 30, "a message").unwrap();
        let mut buffer = Vec::new();
        length.make_room(&mut buffer, 5).unwrap();
        assert!(buffer.len() < 64 * 1024, "{}", buffer.len());
        length.make_room(&mut buffer, 1 << 20).unwrap();
        assert!(buffer.len() <= 2 << 20, "{}", buffer.len());
    }
}
