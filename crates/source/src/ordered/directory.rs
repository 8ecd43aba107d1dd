//! The directory of an index: its partitions, and its sources. It is written last, so an index without one is
//! not whole.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::partition::Slot;

/// A partition's part of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub slot: Slot,
    /// Its first entry, counted from the start of the index.
    pub first: u64,
    pub rows: u64,
    /// The bytes of its rows in the source.
    pub bytes: u64,
    /// The hash of its entries.
    pub hash: u64,
}

/// A file of copies, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyFile {
    pub bytes: u64,
    pub hash: u64,
}

/// The content of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub parts: Vec<Part>,
    /// Empty if the index has places alone.
    pub copies: Vec<CopyFile>,
}

/// The name of this form of an index.
const FORM: &str = "sawmill index 3";

/// Returns the bytes of the directory: JSON, and its hash.
pub(super) fn encode(identity: &str, listed: &Listed) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(&(FORM, identity, listed)).unwrap_or_default();
    let hash = xxh3_64(&bytes);
    bytes.extend_from_slice(&hash.to_le_bytes());
    bytes
}

/// Returns the parts, if the directory is whole and of this identity.
pub(super) fn decode(bytes: &[u8], identity: &str) -> Option<Listed> {
    let (content, hash) = bytes.split_last_chunk::<8>()?;
    if xxh3_64(content) != u64::from_le_bytes(*hash) {
        return None;
    }
    let (form, of, listed): (String, String, Listed) = serde_json::from_slice(content).ok()?;
    (form == FORM && of == identity).then_some(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_as_written_and_a_damaged_one_is_none() {
        let part = |slot, first| Part { slot, first, rows: 3, bytes: 4, hash: 5 };
        let parts = [
            part(Slot::All, 0),
            part(Slot::Number(-7), 1),
            part(Slot::Bytes(b"a\0".to_vec()), u64::MAX),
            part(Slot::Null, 9),
        ];
        let copies = vec![CopyFile { bytes: 7, hash: 8 }; 2];
        let listed = Listed { parts: parts.to_vec(), copies };
        let bytes = encode("this", &listed);
        assert_eq!(decode(&bytes, "this").unwrap(), listed);
        assert_eq!(decode(&bytes, "that"), None);
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at], "this"), None);
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged, "this"), None);
        }
    }
}
