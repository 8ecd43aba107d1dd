//! UUIDs of version 4 (RFC 9562, 5.4).

use crate::random::rng::Sequence;

/// The length of a UUID's text.
pub(crate) const TEXT: usize = 36;

/// The two digits of each byte.
const DIGITS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = [digits[i >> 4], digits[i & 15]];
        i += 1;
    }
    table
};

#[inline(always)]
pub(crate) fn uuid(draw: u64) -> [u8; 16] {
    let mut random = Sequence::new(draw);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next().to_le_bytes());
    bytes[8..].copy_from_slice(&random.next().to_le_bytes());
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

/// Writes a UUID as text and returns its length.
#[inline(always)]
pub(crate) fn uuid_text(uuid: [u8; 16], out: &mut [u8]) -> usize {
    let mut text = [b'-'; TEXT];
    let places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    for (byte, place) in uuid.into_iter().zip(places) {
        text[place..place + 2].copy_from_slice(&DIGITS[usize::from(byte)]);
    }
    out[..TEXT].copy_from_slice(&text);
    TEXT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_contains_its_version_and_variant() {
        let uuid = uuid(3);
        let mut out = [0; TEXT];
        uuid_text(uuid, &mut out);
        let text = std::str::from_utf8(&out).unwrap();
        assert_eq!(&text[14..15], "4");
        assert!("89ab".contains(&text[19..20]));
        let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text.replace('-', ""), digits);
        assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    }
}
