//! `BYTE_STREAM_SPLIT`: the first bytes of all values, then their second bytes, and so on.
//!
//! (Parquet format, `Encodings.md`.) It does not shrink pages itself, but codecs
//! compress its streams better than adjacent numbers.

use crate::encode::values::{PhysicalValues, number_bytes};

/// Appends numbers or fixed-length byte arrays. Other types, which this encoding does not support, are
/// copied.
pub(crate) fn encode(values: PhysicalValues<'_>, out: &mut Vec<u8>) {
    match values {
        PhysicalValues::Int32(v) => split(number_bytes(v), 4, out),
        PhysicalValues::Int64(v) => split(number_bytes(v), 8, out),
        PhysicalValues::Float(v) => split(number_bytes(v), 4, out),
        PhysicalValues::Double(v) => split(number_bytes(v), 8, out),
        PhysicalValues::Fixed { width, data } => split(data, width, out),
        PhysicalValues::Booleans(data) | PhysicalValues::Bytes { data, .. } => out.extend_from_slice(data),
    }
}

fn split(data: &[u8], width: usize, out: &mut Vec<u8>) {
    let Some(n) = data.len().checked_div(width).filter(|n| *n > 0) else { return };
    let at = out.len();
    out.resize(at + data.len(), 0);
    for (b, stream) in out[at..].chunks_exact_mut(n).enumerate() {
        for (value, place) in data[b..].iter().step_by(width).zip(stream) {
            *place = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_the_same_position_are_adjacent() {
        let mut out = Vec::new();
        encode(PhysicalValues::Int32(&[0x0403_0201, 0x0807_0605]), &mut out);
        assert_eq!(out, [1, 5, 2, 6, 3, 7, 4, 8]);
        out.clear();
        encode(PhysicalValues::Fixed { width: 3, data: b"abcABC" }, &mut out);
        assert_eq!(out, b"aAbBcC");
        encode(PhysicalValues::Fixed { width: 3, data: b"" }, &mut out);
        assert_eq!(out.len(), 6);
    }
}
