//! TOML with positions: every error names file, line and field, and the values allowed there.

use sawmill_source::{Error, Kind, Result};
use toml::de::{DeTable, DeValue};

/// A table of the file.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    table: &'a DeTable<'a>,
    start: usize,
    file: &'a str,
    text: &'a str,
    /// The description for errors: `operation "insert"`.
    of: &'a str,
}

/// A value of the file.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    value: &'a DeValue<'a>,
    start: usize,
    node: Node<'a>,
    key: &'a str,
}

fn at(file: &str, text: &str, offset: usize) -> String {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{file}, line {line}, column {column}")
}

/// The error for a file that is not TOML.
pub(crate) fn unreadable(file: &str, text: &str, error: &toml::de::Error) -> Error {
    let offset = error.span().map_or(0, |span| span.start);
    Error::new(Kind::Config, error.message().to_owned())
        .at(at(file, text, offset))
        .advise("write a plan in TOML, as docs/drive.md describes it")
}

impl<'a> Node<'a> {
    pub(crate) fn root(table: &'a DeTable<'a>, file: &'a str, text: &'a str) -> Self {
        Self { table, start: 0, file, text, of: "the plan" }
    }

    /// The same table under another name for errors.
    pub(crate) fn named(self, of: &'a str) -> Self {
        Self { of, ..self }
    }

    pub(crate) fn error(self, what: impl Into<String>, advice: impl Into<String>) -> Error {
        let place = format!("{}, {}", at(self.file, self.text, self.start), self.of);
        Error::new(Kind::Config, what.into()).at(place).advise(advice.into())
    }

    /// Refuses other keys than these.
    pub(crate) fn allow(self, keys: &[&str]) -> Result<()> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let place = format!("{}, {}", at(self.file, self.text, key.span().start), self.of);
                return Err(Error::new(Kind::Config, format!("unknown key `{name}`"))
                    .at(place)
                    .advise(format!("allowed there: {}", keys.join(", "))));
            }
        }
        Ok(())
    }

    pub(crate) fn get(self, key: &'a str) -> Option<Item<'a>> {
        let value = self.table.get(key)?;
        Some(Item { value: value.get_ref(), start: value.span().start, node: self, key })
    }

    /// Which of the keys the table has.
    pub(crate) fn which(self, keys: &[&'static str]) -> Vec<&'static str> {
        keys.iter().copied().filter(|key| self.table.get(*key).is_some()).collect()
    }

    /// The tables in it, by name.
    pub(crate) fn tables(self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let entries = self.table.iter().map(|(key, value)| {
            let key: &str = key.get_ref();
            let item = Item { value: value.get_ref(), start: value.span().start, node: self, key };
            Ok((key, item.table()?))
        });
        entries.collect()
    }
}

impl<'a> Item<'a> {
    pub(crate) fn error(self, what: impl Into<String>, advice: impl Into<String>) -> Error {
        let place = format!(
            "{}, {}, field `{}`",
            at(self.node.file, self.node.text, self.start),
            self.node.of,
            self.key
        );
        Error::new(Kind::Config, what.into()).at(place).advise(advice.into())
    }

    fn shown(self) -> String {
        match self.value {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            other => format!("a value of type {}", other.type_str()),
        }
    }

    pub(crate) fn table(self) -> Result<Node<'a>> {
        match self.value {
            DeValue::Table(table) => Ok(Node { table, start: self.start, ..self.node }),
            _ => Err(self.error(format!("{} where a table is expected", self.shown()), "write a table")),
        }
    }

    fn expected<T>(self, value: Option<T>, what: &str, advice: &str) -> Result<T> {
        value.ok_or_else(|| self.error(format!("{} is not {what}", self.shown()), advice))
    }

    pub(crate) fn text(self) -> Result<&'a str> {
        self.expected(self.value.as_str(), "a text", "write a text in double quotes")
    }

    pub(crate) fn boolean(self) -> Result<bool> {
        self.expected(self.value.as_bool(), "true or false", "write true or false")
    }

    pub(crate) fn items(self) -> Result<Vec<Item<'a>>> {
        let array = self.expected(self.value.as_array(), "a list", "write [..., ...]")?;
        Ok(array.iter().map(|v| Item { value: v.get_ref(), start: v.span().start, ..self }).collect())
    }

    /// Text, or the text of a number.
    fn written(self) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => Some(number.to_string()),
            DeValue::Float(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A value that is read from its text, such as a rate or a time.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        self,
        parse: impl Fn(&str) -> std::result::Result<T, E>,
        advice: &str,
    ) -> Result<T> {
        let Some(text) = self.written() else {
            return Err(self.error(format!("{} cannot be read", self.shown()), advice));
        };
        parse(&text).map_err(|error| self.error(error.to_string(), advice))
    }

    /// A whole number within bounds.
    pub(crate) fn count(self, bounds: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let advice = format!("give {} to {}", bounds.start(), bounds.end());
        let number =
            self.parsed(|text| sawmill_profile::parse_count(text).map_err(|e| e.to_string()), &advice)?;
        match bounds.contains(&number) {
            true => Ok(number),
            false => Err(self.error(format!("{number} is out of bounds"), advice)),
        }
    }

    /// A number that is at least 0.
    pub(crate) fn number(self) -> Result<f64> {
        let advice = "give a number of 0 or more";
        let number = self.parsed(str::parse::<f64>, advice)?;
        match number.is_finite() && number >= 0.0 {
            true => Ok(number),
            false => Err(self.error(format!("{number} is out of bounds"), advice)),
        }
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(self, words: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(format!("{text:?} is unknown"), format!("allowed there: {}", allowed.join(", ")))
        })
    }
}
