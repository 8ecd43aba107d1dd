//! The bytes of a footer: shared, immutable, and owned by any kind of buffer.

use std::fmt;
use std::sync::Arc;

/// Bytes that a [`Footer`](crate::Footer) stores and lends slices of.
///
/// Cloning shares the bytes. A `Vec`, an `Arc`, a static slice or any other owner
/// ([`FooterBytes::from_owner`]) is taken over without a copy; a borrowed slice is copied.
///
/// A clone counts a reference. Conversions from vectors, arrays and shared bytes copy nothing; those from
/// slices do.
#[derive(Clone)]
pub struct FooterBytes {
    owner: Owner,
    len: usize,
}

/// The owner of the bytes. The usual owner has its own variant: any other needs a virtual call, a
/// noticeable part of the time to read a chunk's statistics.
#[derive(Clone)]
enum Owner {
    Vec(Arc<Vec<u8>>),
    Any(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl FooterBytes {
    /// Shares the bytes of `owner`, which must return the same slice every time. If it does not, the result
    /// is an error or an empty slice, never a panic.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let len = owner.as_ref().len();
        Self { owner: Owner::Any(Arc::new(owner)), len }
    }

    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        let all = match &self.owner {
            Owner::Vec(bytes) => bytes.as_slice(),
            Owner::Any(owner) => (**owner).as_ref(),
        };
        all.get(..self.len).unwrap_or_default()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AsRef<[u8]> for FooterBytes {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<Vec<u8>> for FooterBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Arc::new(bytes))
    }
}

impl From<Arc<[u8]>> for FooterBytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::from_owner(bytes)
    }
}

impl From<Arc<Vec<u8>>> for FooterBytes {
    fn from(bytes: Arc<Vec<u8>>) -> Self {
        Self { len: bytes.len(), owner: Owner::Vec(bytes) }
    }
}

/// Copies a borrowed slice.
impl From<&[u8]> for FooterBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
    }
}

/// Copies a borrowed vector.
impl From<&Vec<u8>> for FooterBytes {
    fn from(bytes: &Vec<u8>) -> Self {
        Self::from(bytes.clone())
    }
}

impl fmt::Debug for FooterBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FooterBytes({} bytes)", self.len())
    }
}
