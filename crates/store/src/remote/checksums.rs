//! The checksums that stores state of whole objects, and whether the bytes that arrive have them.

use std::fmt;
use std::pin::Pin;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crc_fast::CrcAlgorithm;
use md5::Digest as _;
use object_store::client::{HttpClient, HttpError, HttpRequest, HttpResponse, HttpService};
use reqwest::StatusCode;
use reqwest::header::{ETAG, HeaderMap};

use crate::error::{Error, Kind};
use crate::objects::Digest;

/// The header by which S3 states checksums. Its value is `ENABLED`, and it has to be signed.
pub(super) const MODE: &str = "x-amz-checksum-mode";

/// The checksums of S3 that are computed here, the quickest first.
const OF_S3: [(&str, Algorithm); 4] = [
    ("x-amz-checksum-crc64nvme", Algorithm::Crc64Nvme),
    ("x-amz-checksum-crc32c", Algorithm::Crc32c),
    ("x-amz-checksum-crc32", Algorithm::Crc32),
    ("x-amz-checksum-sha256", Algorithm::Sha256),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Crc64Nvme,
    Crc32c,
    Crc32,
    Sha256,
    Md5,
}

/// The checksum of a whole object, as its store states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    algorithm: Algorithm,
    sum: Vec<u8>,
}

impl Stated {
    /// The checksum that an answer states. `has_md5_tags`: the entity tags of objects that the store does not encrypt
    /// are MD5 sums, unless the objects were uploaded in parts.
    fn new(status: StatusCode, headers: &HeaderMap, has_md5_tags: bool) -> Option<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let decoded = |algorithm, sum: &str| {
            let sum = BASE64_STANDARD.decode(sum.trim()).ok()?;
            Some(Self { algorithm, sum })
        };
        // A sum over the sums of parts ends with their number, which is not Base64.
        let is_whole = text("x-amz-checksum-type").is_none_or(|kind| kind == "FULL_OBJECT");
        let of_s3 = OF_S3.into_iter().filter(|_| is_whole);
        if let Some(stated) = of_s3.filter_map(|(name, of)| decoded(of, text(name)?)).next() {
            return Some(stated);
        }
        // Google's sums are of the stored bytes, which it may decompress.
        if text("x-goog-stored-content-encoding").is_none_or(|encoding| encoding == "identity") {
            let hashes = headers.get_all("x-goog-hash").iter().filter_map(|value| value.to_str().ok());
            let mut hashes = hashes.flat_map(|value| value.split(','));
            let crc = hashes.find_map(|hash| hash.trim().strip_prefix("crc32c="));
            if let Some(stated) = crc.and_then(|crc| decoded(Algorithm::Crc32c, crc)) {
                return Some(stated);
            }
        }
        // Of a range, Content-MD5 is the sum of that range.
        let of_answer = (status == StatusCode::OK).then(|| text("content-md5")).flatten();
        if let Some(md5) = text("x-ms-blob-content-md5").or(of_answer) {
            return decoded(Algorithm::Md5, md5);
        }
        let is_encrypted = text("x-amz-server-side-encryption").is_some_and(|by| by != "AES256")
            || headers.contains_key("x-amz-server-side-encryption-customer-algorithm");
        let tag = text(ETAG.as_str()).filter(|_| has_md5_tags && !is_encrypted)?;
        Some(Self { algorithm: Algorithm::Md5, sum: from_hex(tag.strip_prefix('"')?.strip_suffix('"')?)? })
    }

    /// Checks all bytes of the object.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), Damaged> {
        let mut running = Running::new(self.clone());
        running.sum.update(bytes);
        running.checked()
    }
}

/// The bytes of an MD5 sum in hexadecimal digits.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes.filter(|bytes| bytes.len() == 16 && digits.len() == 32)
}

/// The bytes that arrived are not those that were stored.
#[derive(Debug)]
pub(super) struct Damaged(Algorithm);

impl Damaged {
    pub(super) const ADVICE: &str = "something between here and the store changes bytes: try again, over https or past \
                                     the proxy; --store checksums=no reads them without a check";
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Algorithm::Crc64Nvme => "CRC-64/NVME",
            Algorithm::Crc32c => "CRC-32C",
            Algorithm::Crc32 => "CRC-32",
            Algorithm::Sha256 => "SHA-256",
            Algorithm::Md5 => "MD5",
        };
        write!(f, "the bytes that arrived do not have the {name} sum that the store states")
    }
}

impl std::error::Error for Damaged {}

/// A checksum that is computed piece by piece.
enum Sum {
    Crc(crc_fast::Digest, usize),
    Sha256(sha2::Sha256),
    Md5(md5::Md5),
}

impl Sum {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(crc, _) => crc.update(bytes),
            Self::Sha256(sum) => sum.update(bytes),
            Self::Md5(sum) => sum.update(bytes),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        match self {
            // The sum is in the last bytes of the number.
            Self::Crc(crc, length) => crc.finalize().to_be_bytes().into_iter().skip(8 - *length).collect(),
            Self::Sha256(sum) => sum.finalize_reset().to_vec(),
            Self::Md5(sum) => sum.finalize_reset().to_vec(),
        }
    }
}

/// The checksum of an object's bytes so far.
pub(super) struct Running {
    stated: Stated,
    sum: Sum,
    place: String,
}

impl Running {
    fn new(stated: Stated) -> Self {
        let sum = match stated.algorithm {
            Algorithm::Crc64Nvme => Sum::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme), 8),
            Algorithm::Crc32c => Sum::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi), 4),
            Algorithm::Crc32 => Sum::Crc(crc_fast::Digest::new(CrcAlgorithm::Crc32IsoHdlc), 4),
            Algorithm::Sha256 => Sum::Sha256(sha2::Sha256::default()),
            Algorithm::Md5 => Sum::Md5(md5::Md5::default()),
        };
        Self { stated, sum, place: String::new() }
    }

    /// Computes this checksum of the object at `place`.
    pub(super) fn at(stated: Stated, place: String) -> Self {
        Self { place, ..Self::new(stated) }
    }

    fn checked(&mut self) -> Result<(), Damaged> {
        if self.sum.finish() == self.stated.sum { Ok(()) } else { Err(Damaged(self.stated.algorithm)) }
    }
}

impl Digest for Running {
    fn update(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
    }

    fn check(mut self: Box<Self>) -> Result<(), Error> {
        self.checked().map_err(|damaged| {
            Error::new(Kind::Damaged, damaged.to_string()).at(&self.place).advise(Damaged::ADVICE)
        })
    }
}

/// A connection that puts the [`Stated`] checksum of each answer into its extensions.
#[derive(Debug)]
pub(super) struct Stating {
    pub client: HttpClient,
    pub has_md5_tags: bool,
}

impl HttpService for Stating {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async {
            let mut answer = self.client.execute(request).await?;
            if let Some(stated) = Stated::new(answer.status(), answer.headers(), self.has_md5_tags) {
                answer.extensions_mut().insert(stated);
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    const TEXT: &[u8] = b"123456789";

    fn stated(status: u16, headers: &[(&str, &str)]) -> Option<Stated> {
        let pairs = headers.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        });
        Stated::new(StatusCode::from_u16(status).unwrap(), &pairs.collect(), true)
    }

    #[test]
    fn each_checksum_that_a_store_states_finds_a_flipped_bit() {
        let tag = "\"25f9e794323b453885f5181f1b624d0b\"";
        for (status, header, value) in [
            (200, "x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
            (206, "x-amz-checksum-crc32c", "4waSgw=="),
            (200, "x-amz-checksum-crc32", "y/Q5Jg=="),
            (200, "x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
            (206, "x-goog-hash", "crc32c=4waSgw==,md5=JfnnlDI7RTiF9RgfG2JNCw=="),
            (200, "content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
            (206, "x-ms-blob-content-md5", "JfnnlDI7RTiF9RgfG2JNCw=="),
            (206, "etag", tag),
        ] {
            let stated = stated(status, &[(header, value)]).unwrap_or_else(|| panic!("{header}"));
            assert!(stated.check(TEXT).is_ok(), "{header}");
            assert!(stated.check(b"123456788").is_err() && stated.check(b"").is_err(), "{header}");
        }
        // The sums of parts, of ranges, and tags of encrypted objects are not sums of the object's bytes.
        for (status, headers) in [
            (200, &[("x-amz-checksum-crc32", "y/Q5Jg==-3")][..]),
            (200, &[("x-amz-checksum-crc32", "y/Q5Jg=="), ("x-amz-checksum-type", "COMPOSITE")]),
            (206, &[("content-md5", "JfnnlDI7RTiF9RgfG2JNCw==")]),
            (200, &[("etag", tag), ("x-amz-server-side-encryption", "aws:kms")]),
            (200, &[("etag", "\"25f9e794323b453885f5181f1b624d0b-2\"")]),
            (200, &[("x-goog-hash", "crc32c=4waSgw=="), ("x-goog-stored-content-encoding", "gzip")]),
        ] {
            assert_eq!(stated(status, headers), None, "{headers:?}");
        }
    }
}
