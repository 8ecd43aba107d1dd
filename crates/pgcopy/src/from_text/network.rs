//! Addresses and networks. Wire format: family, length of the mask, whether it is a network, length, address
//! (`network_send` in src/backend/utils/adt/network.c).

use std::net::IpAddr;

/// `PGSQL_AF_INET` and the number after it (src/include/utils/inet.h).
const VERSION_4: u8 = 2;
const VERSION_6: u8 = 3;

/// Appends an address, with or without `/` and the length of its mask. A network (`cidr`) must not have bits
/// set to the right of the mask.
pub(super) fn write(text: &[u8], network: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let refused = || "expected an IPv4 or IPv6 address, with or without /BITS".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| refused())?;
    let (address, mask) = text.split_once('/').map_or((text, None), |(address, mask)| (address, Some(mask)));
    let address: IpAddr = address.parse().map_err(|_| refused())?;
    let (family, bytes, most) = match address {
        IpAddr::V4(address) => (VERSION_4, address.octets().to_vec(), 32),
        IpAddr::V6(address) => (VERSION_6, address.octets().to_vec(), 128),
    };
    let mask: u8 = match mask {
        None => most,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => digits
            .parse()
            .ok()
            .filter(|bits| *bits <= most)
            .ok_or_else(|| format!("the mask must have at most {most} bits"))?,
        Some(_) => return Err(refused()),
    };
    if network && bytes.iter().enumerate().any(|(i, byte)| byte & !ones(mask, i) != 0) {
        return Err("bits to the right of the mask are set".to_owned());
    }
    out.extend_from_slice(&[family, mask, u8::from(network), bytes.len() as u8]);
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Returns byte `i` of a mask of `bits` bits.
fn ones(bits: u8, i: usize) -> u8 {
    let here = usize::from(bits).saturating_sub(8 * i).min(8);
    (0xff00u16 >> here) as u8
}
