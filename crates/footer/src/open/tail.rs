//! The last eight bytes of a Parquet file: the footer's length and the magic.
//!
//! Source: [the file format](https://github.com/apache/parquet-format#file-format): a file is `PAR1`, data,
//! metadata, the metadata's length in four bytes little endian, `PAR1`. If the file ends in `PARE` instead,
//! the metadata is encrypted.

use crate::error::{Error, Result};

/// The length of the tail in bytes.
pub(crate) const TAIL_LEN: u64 = 8;

/// The length of the leading magic and the tail.
const MIN_FILE_SIZE: u64 = 4 + TAIL_LEN;

/// The length of the metadata before a tail, checked against the file's length.
///
/// `tail` holds the last bytes of a file of `file_len` bytes: at least eight if the file is that long.
pub(crate) fn metadata_len(tail: &[u8], file_len: u64) -> Result<u64> {
    if file_len == 0 {
        return Err(Error::new("expected a Parquet file, found an empty one")
            .with_advice("the file was created and never written: write it again"));
    }
    let too_short = || {
        Error::new(format!("expected a Parquet file of at least {MIN_FILE_SIZE} bytes, found {file_len}"))
            .with_advice("the file is cut off or not a Parquet file")
    };
    if file_len < MIN_FILE_SIZE {
        return Err(too_short());
    }
    let Some(&[a, b, c, d, ref magic @ ..]) = tail.last_chunk::<8>() else {
        return Err(too_short());
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => {
            return Err(Error::new("expected an unencrypted footer (PAR1), found an encrypted one (PARE)")
                .with_advice("decrypt the file, or write it with a plaintext footer"));
        }
        other => {
            let found = other.escape_ascii();
            return Err(Error::new(format!(
                "expected the magic `PAR1` in the last four bytes, found `{found}`"
            ))
            .with_advice("the file is cut off, still being written or not a Parquet file"));
        }
    }
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    if len == 0 {
        return Err(Error::new("expected a footer, found a length of 0")
            .with_advice("the file was not written to its end: write it again"));
    }
    let room = file_len - MIN_FILE_SIZE;
    if len > room {
        return Err(Error::new(format!(
            "expected a footer of at most {room} bytes in a file of {file_len}, found a length of {len}"
        ))
        .with_advice("the file is cut off or damaged"));
    }
    Ok(len)
}
