//! E-mail addresses: a name, a number below 10,000 and a domain.

use crate::draw::expression::Expression;
use crate::draw::text::person_name::{self, Addresses};
use crate::draw::text::template::DIGITS;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::Result;
use crate::random::rng::{Sequence, Stream};
use crate::spec_file::toml_reader::SpecNode;

/// The domains, all reserved for examples, padded for copies of a fixed size.
const DOMAINS: [([u8; DOMAIN], usize); 8] = [
    padded("@example.com"),
    padded("@example.org"),
    padded("@example.net"),
    padded("@mail.example.com"),
    padded("@post.example.org"),
    padded("@inbox.example.net"),
    padded("@corp.example.com"),
    padded("@uni.example.org"),
];

/// The bytes that copying a domain writes.
const DOMAIN: usize = 24;

/// The most bytes of an address with its padding.
pub(crate) const MAX_LENGTH: usize = Addresses::MAX_LENGTH + 4 + DOMAIN;

const fn padded(domain: &str) -> ([u8; DOMAIN], usize) {
    let mut bytes = [0; DOMAIN];
    let mut i = 0;
    while i < domain.len() {
        bytes[i] = domain.as_bytes()[i];
        i += 1;
    }
    (bytes, domain.len())
}

/// Writes an address and returns its length. `out` has room for [`MAX_LENGTH`].
#[inline(always)]
pub(crate) fn email(names: &Addresses, draw: u64, out: &mut [u8]) -> usize {
    let mut random = Sequence::new(draw);
    let mut code = [0];
    person_name::draw(Stream::from_draw(random.next()), &mut code);
    let mut at = names.write(code[0], out);
    let rest = random.next();
    let number = (rest % 10_000) as usize;
    // Without leading zeros.
    let digits = 1 + usize::from(number > 9) + usize::from(number > 99) + usize::from(number > 999);
    let number = u32::from_be_bytes(DIGITS[number]) << (8 * (4 - digits));
    out[at..at + 4].copy_from_slice(&number.to_be_bytes());
    at += digits;
    let (domain, length) = &DOMAINS[(rest >> 61) as usize];
    out[at..at + DOMAIN].copy_from_slice(domain);
    at + length
}

/// The domains of addresses after a name, unless the spec names others; all are reserved for examples.
const NAMED_DOMAINS: [&str; 3] = ["example.com", "example.net", "example.org"];

/// `email = { name = FIELD, domains = [...] }`: an address that begins with the name in an earlier field of the record, as a
/// formula.
pub(crate) fn of_name(parameters: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let table = parameters.table("email", &["name", "domains"])?;
    let name = table.need("name", "email")?;
    let Some(field) = name.string() else {
        return Err(name.wrong("name", "name an earlier field with names, like \"who\""));
    };
    let given = table.get("domains");
    let domains = given.map_or(Some(NAMED_DOMAINS.to_vec()), |node| node.list(SpecNode::string));
    let valid = |domain: &&str| {
        !domain.is_empty() && domain.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.'))
    };
    let domains = domains
        .filter(|domains| !domains.is_empty() && domains.iter().all(valid))
        .ok_or_else(|| given.unwrap_or(parameters).wrong("domains", "write a list like [\"example.com\"]"))?;
    // Each of the domains that are left has the same probability.
    let mut domain = String::new();
    for (i, name) in domains.iter().enumerate() {
        let left = domains.len() - i;
        domain += &match left {
            1 => format!("'{name}'{}", ")".repeat(i)),
            _ => format!("if(uniform(0, {left}) < 1, '{name}', "),
        };
    }
    let number = "if(uniform(0, 1) < 0.5, format('{}', floor(uniform(1, 100))), '')";
    let formula = format!("concat(slug(name), {number}, '@', {domain})");
    // Formulas have no names with spaces, fields may.
    let operand = &mut *around.operand;
    let expression = Expression::parse(&formula, around.kind, &[], &mut |_| operand(field));
    expression.map(ValueSpec::Expression).map_err(|complaint| name.complain(complaint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name_a_number_and_a_reserved_domain() {
        for draw in 0..20_000 {
            let mut out = [0; MAX_LENGTH];
            let length = email(Addresses::get(), draw, &mut out);
            let address = std::str::from_utf8(&out[..length]).unwrap();
            let (name, domain) = address.split_once('@').unwrap();
            assert!(name.contains('.') && name.is_ascii(), "{address}");
            assert_eq!(name, name.to_lowercase());
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            assert_eq!(number.parse::<u32>().unwrap().to_string(), number);
            assert!(domain.contains("example."), "{address}");
        }
    }
}
