//! Binds a password exchange to the encrypted channel: `tls-server-end-point`
//! (<https://www.rfc-editor.org/rfc/rfc5929#section-4>), the hash of the server's certificate by the hash
//! function of its signature.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// The hash of a certificate in DER. `None` if its signature uses an unknown hash function.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm SEQUENCE { algorithm, ... }, ... }
    let (inner, _) = value(certificate, 0x30)?;
    let (_, after) = value(inner, 0x30)?;
    let (algorithm, _) = value(after, 0x30)?;
    let (name, _) = value(algorithm, 0x06)?;
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let hash = match (name.strip_prefix(&RSA), name.strip_prefix(&ECDSA)) {
        // MD5 and SHA-1 are too weak: SHA-256 takes their place.
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => Sha256::digest(certificate).to_vec(),
        (Some([12]), _) | (_, Some([3])) => Sha384::digest(certificate).to_vec(),
        (Some([13]), _) | (_, Some([4])) => Sha512::digest(certificate).to_vec(),
        _ => return None,
    };
    Some(hash)
}

/// The value of an element in DER with this tag, and what follows it.
fn value(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, short], mut rest) = bytes.split_first_chunk()?;
    let mut length = usize::from(short);
    if short >= 0x80 {
        let (digits, after) = rest.split_at_checked(usize::from(short & 0x7f))?;
        length = digits
            .iter()
            .try_fold(0usize, |length, digit| length.checked_mul(256)?.checked_add(usize::from(*digit)))?;
        rest = after;
    }
    if found != tag {
        return None;
    }
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, value: &[u8]) -> Vec<u8> {
        let length = (value.len() as u16).to_be_bytes();
        [&[tag, 0x82, length[0], length[1]], value].concat()
    }

    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let algorithm = element(0x30, &element(0x06, algorithm));
        element(0x30, &[element(0x30, &[7; 300]), algorithm, element(0x03, &[1; 70])].concat())
    }

    #[test]
    fn the_hash_function_is_that_of_the_signature() {
        let rsa = |last| [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last];
        let ecdsa = |last| [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, last];
        let length = |algorithm: &[u8]| end_point(&certificate(algorithm)).map(|hash| hash.len());
        assert_eq!([5, 11, 12, 13].map(|last| length(&rsa(last))), [32, 32, 48, 64].map(Some));
        assert_eq!([2, 3, 4].map(|last| length(&ecdsa(last))), [32, 48, 64].map(Some));
        // Ed25519 has none.
        assert_eq!(length(&[0x2b, 0x65, 0x70]), None);
    }

    #[test]
    fn a_certificate_that_is_cut_has_no_hash() {
        let whole = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 2]);
        assert!((0..300).all(|end| end_point(&whole[..end]).is_none()));
    }
}
