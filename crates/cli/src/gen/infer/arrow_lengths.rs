//! The lengths in an Arrow file: its reader makes room for as many bytes as they claim, so they are compared with the
//! file's own length first.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A file begins and ends with it; a stream does not.
const MAGIC: &[u8] = b"ARROW1";
/// What a message of a stream begins with, before its length.
const CONTINUES: [u8; 4] = [0xff; 4];

/// The bytes of a file.
struct Claims<'a> {
    file: &'a File,
    length: u64,
}

/// Compares the lengths of a file with its bytes. Returns whether it is a file, not a stream, of Arrow IPC.
pub(super) fn check(file: &File) -> Result<bool, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let claims = Claims { file, length };
    let is_file = claims.bytes("first bytes", 0, 6).is_ok_and(|first| first == MAGIC);
    let checked = match is_file {
        true => claims.blocks(),
        false => claims.messages().map_err(|what| match claims.number(0) {
            Ok(CONTINUES) => what,
            _ => "it is neither an Arrow file nor a stream".to_owned(),
        }),
    };
    checked.map(|()| is_file)
}

impl Claims<'_> {
    /// The bytes that `what` claims to have.
    fn range(&self, what: &str, at: u64, bytes: i64) -> Result<Range<u64>, String> {
        let claimed = u64::try_from(bytes).ok().and_then(|bytes| at.checked_add(bytes));
        let end = claimed.filter(|end| *end <= self.length);
        let wrong = || format!("{what} at byte {at} claims {bytes} bytes, the file has {}", self.length);
        Ok(at..end.ok_or_else(wrong)?)
    }

    fn bytes(&self, what: &str, at: u64, bytes: i64) -> Result<Vec<u8>, String> {
        let range = self.range(what, at, bytes)?;
        let mut read = vec![0; (range.end - range.start) as usize];
        self.file.read_exact_at(&mut read, at).map_err(|error| error.to_string())?;
        Ok(read)
    }

    fn number(&self, at: u64) -> Result<[u8; 4], String> {
        self.bytes("the length", at, 4)?.try_into().map_err(|_| "a length of four bytes".to_owned())
    }

    fn blocks(&self) -> Result<(), String> {
        let end = self.length.saturating_sub(10);
        let length = i32::from_le_bytes(self.number(end)?);
        if self.bytes("the end", end + 4, 6)? != MAGIC {
            return Err("the Arrow file has no end: it is cut off".to_owned());
        }
        let start = u64::try_from(length).ok().and_then(|length| end.checked_sub(length));
        let start = start.ok_or_else(|| format!("the footer claims {length} bytes"))?;
        let footer = self.bytes("the footer", start, length.into())?;
        let footer = arrow_ipc::root_as_footer(&footer).map_err(|error| format!("the footer: {error}"))?;
        let blocks = footer.recordBatches().into_iter().chain(footer.dictionaries());
        for block in blocks.flatten() {
            let at = u64::try_from(block.offset()).map_err(|_| "a block before the file's start")?;
            let body = self.range("a block", at, block.metaDataLength().into())?.end;
            self.range("the body of a block", body, block.bodyLength())?;
        }
        Ok(())
    }

    fn messages(&self) -> Result<(), String> {
        let mut at = 0;
        while at < self.length {
            let mut first = self.number(at)?;
            at += 4;
            if first == CONTINUES {
                first = self.number(at)?;
                at += 4;
            }
            let length = i32::from_le_bytes(first);
            if length == 0 {
                break;
            }
            let message = self.bytes("a message", at, length.into())?;
            let message =
                arrow_ipc::root_as_message(&message).map_err(|error| format!("a message: {error}"))?;
            let body = at + u64::from(length.unsigned_abs());
            at = self.range("the body of a message", body, message.bodyLength())?.end;
        }
        Ok(())
    }
}
