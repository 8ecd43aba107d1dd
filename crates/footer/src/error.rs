//! What went wrong, where, and what to do about it.
//!
//! The walk over the bytes reports a [`Fault`]: an offset and the kind of fault, small enough to pass up cheaply. At
//! the edge of the crate a fault becomes an [`Error`], which adds the file and the Thrift path of the offset (found by
//! a second, slower walk).

use std::fmt;
use std::path::Path;

use crate::memory::allocate;

/// An error of this crate: the problem, the place, and the advice.
///
/// Owns its text: allocates when it is made, not before.
#[derive(Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    what: String,
    file: Option<String>,
    offset: Option<u64>,
    /// Where the footer's metadata starts in the file, if both are known.
    footer_start: Option<u64>,
    path: String,
    advice: String,
}

/// The result of fallible functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error with this problem, such as `expected 8 bytes, found 3`.
    pub fn new(what: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { what: what.into(), ..Inner::default() }) }
    }

    /// Returns the same error with this advice.
    pub fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.inner.advice = advice.into();
        self
    }

    /// Returns the same error with the file's name, unless it already has one.
    pub fn in_file(mut self, name: impl Into<String>) -> Self {
        self.inner.file.get_or_insert_with(|| name.into());
        self
    }

    pub(crate) fn in_path(self, path: &Path) -> Self {
        self.in_file(path.display().to_string())
    }

    pub(crate) fn at_offset(mut self, offset: u64) -> Self {
        self.inner.offset = Some(offset);
        self
    }

    /// Sets where the footer starts in its file, so that the error can also give the offset in the file.
    pub(crate) fn in_footer_at(mut self, footer_start: Option<u64>) -> Self {
        self.inner.footer_start = self.inner.footer_start.or(footer_start);
        self
    }

    /// Returns the same error at this place in the footer or file.
    pub fn at_path(mut self, path: String) -> Self {
        self.inner.path = path;
        self
    }

    pub(crate) fn io(doing: &str, error: &std::io::Error) -> Self {
        let advice = match error.kind() {
            std::io::ErrorKind::NotFound => "check the name of the file",
            std::io::ErrorKind::PermissionDenied => "check the file's permissions",
            _ => "",
        };
        Self::new(format!("{doing} failed: {error}")).with_advice(advice)
    }

    /// The problem, such as `expected 8 bytes, found 3`.
    pub fn what(&self) -> String {
        self.inner.what.clone()
    }

    /// Where: the file, the Thrift path, such as `row_groups[3].columns[17].meta_data.statistics`, and
    /// the byte offset within the footer's metadata and, if known, within the file.
    pub fn place(&self) -> String {
        let Inner { file, offset, footer_start, path, .. } = &*self.inner;
        let mut parts = Vec::new();
        if let Some(file) = file {
            parts.push(file.clone());
        }
        if !path.is_empty() {
            parts.push(path.clone());
        }
        if let Some(offset) = offset {
            parts.push(format!("byte {offset} of the footer"));
            if let Some(start) = footer_start {
                parts.push(format!("byte {} of the file", start.saturating_add(*offset)));
            }
        }
        parts.join(", ")
    }

    /// What the caller can do about it; may be empty.
    pub fn advice(&self) -> String {
        self.inner.advice.clone()
    }

    /// The byte offset of the fault in the footer's metadata, if known.
    pub fn offset(&self) -> Option<u64> {
        self.inner.offset
    }

    /// The Thrift path of the fault; empty if none.
    pub fn path(&self) -> &str {
        &self.inner.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.what(), self.place(), self.advice()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(" - "))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

impl std::error::Error for Error {}

/// A fault in the bytes, as the walk finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Offset of the first byte of the value that could not be read.
    pub at: usize,
    pub kind: FaultKind,
}

/// What a [`Fault`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The bytes end inside a value that needs `needed` of them.
    End { needed: u64, left: u64 },
    /// A list, set or map claims more elements than there are bytes.
    Count { count: u64, left: u64 },
    /// A varint of more than ten bytes or 64 bits.
    Varint,
    /// An integer outside its field's range.
    Range { value: i64, expected: &'static str },
    /// A value whose wire type differs from the field's type in the format.
    Wire { found: u8, expected: &'static str },
    /// A wire type unknown to the compact protocol.
    UnknownWire { found: u8 },
    /// A missing required field.
    Missing { field: &'static str },
    /// Text that is not UTF-8.
    Utf8,
    /// Values nested more deeply than the walk follows.
    Depth { limit: u32 },
    /// Two counts that must be equal.
    Mismatch { what: &'static str, expected: u64, found: u64 },
    /// Not enough memory for the size that the bytes state.
    Memory { bytes: u64 },
    /// A schema that does not form one tree.
    Tree { what: &'static str, expected: u64, found: u64 },
}

impl Fault {
    pub fn new(at: usize, kind: FaultKind) -> Self {
        Self { at, kind }
    }

    /// The fault of a struct at `at` without a required field.
    pub fn missing(at: usize, field: &'static str) -> Self {
        Self::new(at, FaultKind::Missing { field })
    }
}

impl FaultKind {
    /// What to do about a fault in a part of a footer.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Memory { .. } => allocate::ADVICE,
            _ => "the footer is cut off or damaged: write the file again, or take a copy of it",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::End { needed, left } => write!(f, "expected {needed} more bytes, found {left}"),
            Self::Count { count, left } => {
                write!(
                    f,
                    "expected a list that fits into the {left} bytes left, found one of {count} elements"
                )
            }
            Self::Varint => {
                f.write_str("expected a varint of at most 10 bytes and 64 bits, found a longer one")
            }
            Self::Range { value, expected } => write!(f, "expected {expected}, found {value}"),
            Self::Wire { found, expected } => {
                write!(f, "expected {expected}, found {}", crate::thrift::cursor::wire_name(found))
            }
            Self::UnknownWire { found } => {
                write!(f, "expected a wire type of the compact protocol (0 to 13), found {found}")
            }
            Self::Missing { field } => write!(f, "expected the required field `{field}`, found none"),
            Self::Utf8 => f.write_str("expected text in UTF-8, found other bytes"),
            Self::Depth { limit } => write!(f, "expected at most {limit} levels of nesting, found more"),
            Self::Mismatch { what, expected, found } => {
                write!(f, "expected {expected} {what}, found {found}")
            }
            Self::Memory { bytes } => write!(f, "expected memory for {bytes} bytes, found too little"),
            Self::Tree { what, expected, found } => write!(f, "expected {expected} {what}, found {found}"),
        }
    }
}
