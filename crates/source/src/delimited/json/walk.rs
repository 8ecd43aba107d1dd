//! Walks over the keys of an object and the elements of a list.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Levels of values within values that become structs and lists; deeper ones stay JSON.
pub(super) const MAX_DEPTH: usize = 32;

/// Passes each key and the text of its value.
///
/// # Errors
/// Text that is not one JSON object, or else the first error of `each`.
pub(super) fn members<'t, E: From<serde_json::Error>>(
    text: &'t str,
    each: impl FnMut(Cow<'t, str>, &'t str) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let passed = reader.deserialize_map(Members(each))?;
    reader.end()?;
    passed
}

/// Passes the text of each element.
///
/// # Errors
/// Text that is not one JSON array, or else the first error of `each`.
pub(super) fn elements<'t, E: From<serde_json::Error>>(
    text: &'t str,
    each: impl FnMut(&'t str) -> Result<(), E>,
) -> Result<(), E> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let passed = reader.deserialize_seq(Elements(each))?;
    reader.end()?;
    passed
}

struct Members<F>(F);

impl<'t, E, F: FnMut(Cow<'t, str>, &'t str) -> Result<(), E>> Visitor<'t> for Members<F> {
    type Value = Result<(), E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut passed = Ok(());
        while let Some(key) = map.next_key_seed(Key)? {
            let value: &'t RawValue = map.next_value()?;
            passed = passed.and_then(|()| (self.0)(key, value.get()));
        }
        Ok(passed)
    }
}

struct Elements<F>(F);

impl<'t, E, F: FnMut(&'t str) -> Result<(), E>> Visitor<'t> for Elements<F> {
    type Value = Result<(), E>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'t>>(mut self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut passed = Ok(());
        while let Some(element) = list.next_element::<&'t RawValue>()? {
            passed = passed.and_then(|()| (self.0)(element.get()));
        }
        Ok(passed)
    }
}

/// A key, which is a part of the text unless it has escapes.
struct Key;

impl<'t> DeserializeSeed<'t> for Key {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for Key {
    type Value = Cow<'t, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'t str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// The kind of a value, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::delimited) enum Kind {
    Bool,
    Number,
    String,
    Object,
    List,
    Null,
}

pub(super) fn kind(value: &str) -> Kind {
    match value.as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::List,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

/// The content of a JSON string; `None` if its escapes have no meaning, such as half of a surrogate pair.
pub(super) fn content(string: &str) -> Option<Cow<'_, str>> {
    let inner = string.get(1..string.len().checked_sub(1)?)?;
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(string).ok().map(Cow::Owned),
    }
}
