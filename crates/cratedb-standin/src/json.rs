//! JSON that keeps the text of numbers: their meaning depends on the column.

use std::fmt::{self, Write};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number's text.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of the text; no name occurs twice.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a complete text.
    pub(crate) fn parse(text: &str) -> serde_json::Result<Json> {
        serde_json::from_str(text)
    }

    /// Whether it is this text.
    pub(crate) fn is_text(&self, text: &str) -> bool {
        matches!(self, Json::Text(own) if own == text)
    }

    /// Converts text that is already known to be one JSON value.
    fn of_value(text: &str) -> serde_json::Result<Json> {
        Ok(match text.as_bytes().first() {
            Some(b'n') => Json::Null,
            Some(first @ (b't' | b'f')) => Json::Bool(*first == b't'),
            Some(b'"') => Json::Text(serde_json::from_str(text)?),
            Some(b'[') => Json::Array(serde_json::from_str(text)?),
            Some(b'{') => Json::Object(serde_json::from_str::<Members>(text)?.0),
            _ => Json::Number(text.to_owned()),
        })
    }
}

impl<'de> Deserialize<'de> for Json {
    /// Takes the text of the value first: `serde` would convert numbers to 64 bits.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Json::of_value(raw.get()).map_err(D::Error::custom)
    }
}

/// The members of an object. Like the real server, rejects a name that occurs twice.
struct Members(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Json)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Json>()? {
                    if members.iter().any(|(known, _)| *known == name) {
                        return Err(A::Error::custom(format!("duplicate field '{name}'")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

/// A string as JSON, escaped slightly differently from most clients.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            c if c < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_text_and_strings_lose_their_escapes() {
        let json = Json::parse(r#"{"a":[1.50, -2e3,"x\u00e9\ud83d\ude00\n"], "b":null}"#).unwrap();
        let items =
            vec![Json::Number("1.50".into()), Json::Number("-2e3".into()), Json::Text("xé😀\n".into())];
        let members = vec![("a".to_owned(), Json::Array(items)), ("b".to_owned(), Json::Null)];
        assert_eq!(json, Json::Object(members));
        for bad in ["", "[1,]", "{\"a\"}", "nul", "[1] 2", "\"a", "+1", "NaN"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_stand_in_rejects_the_json_that_the_real_server_rejects() {
        let rejected = [
            "[01]",
            "[1.]",
            "[.5]",
            "[\"\\x\"]",
            "[\"\u{1}\"]",
            "[Infinity]",
            "['x']",
            "{a:1}",
            "[{\"a\":1,\"a\":2}]",
        ];
        for bad in rejected {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
        let kept = ["1e999", "-0", "123456789012345678901234567890", "0.1000"];
        for text in kept {
            assert_eq!(Json::parse(text).unwrap(), Json::Number(text.into()));
        }
    }
}
