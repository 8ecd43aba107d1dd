//! Sizes in bytes as arguments, parsed the same way by every option.

use sawmill_profile::parse_bytes;

/// Parses a size of at least 1 byte: `65536`, `64KiB`, `1.5MB`, `8M`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(0) => Err("give 1 byte or more".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
