//! Which rows and columns a load takes from its files, and how it reads them, as its record says.
//!
//! **The rule for files on record:** a load does not read a file again whose rows a complete load has added, so other
//! options for text do not matter to it. Other columns, conditions or lineage columns would give other rows, and are
//! refused.

use serde::{Deserialize, Serialize};

/// What decides the rows of a file, a part of a load's identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mapping {
    /// The columns: their selection, new names and folders; for text, the names that options give; how the table's
    /// columns are matched.
    pub columns: String,
    /// The condition on the rows; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// What the load adds to the rows: where they come from, and whether they delete.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub added: String,
    /// How text is read, except for the names of its columns.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reading: String,
}

impl Mapping {
    /// A selection of columns.
    pub fn of_columns(columns: impl Into<String>) -> Self {
        Self { columns: columns.into(), ..Self::default() }
    }

    /// Whether both take the same rows and columns of a file, even if they read its text differently.
    pub fn takes_the_same(&self, other: &Self) -> bool {
        (&self.columns, &self.condition, &self.added) == (&other.columns, &other.condition, &other.added)
    }

    /// Whether they may take different rows of a file: both have a condition, and the same columns.
    pub fn may_be_parts(&self, other: &Self) -> bool {
        self.columns == other.columns
            && self.condition != other.condition
            && ![self, other].iter().any(|mapping| mapping.condition.is_empty())
    }

    /// The same mapping with hashes in place of its texts, which may be long.
    pub fn hashed(&self) -> Self {
        let hash = |text: &String| match text.is_empty() {
            true => String::new(),
            false => format!("{:032x}", xxhash_rust::xxh3::xxh3_128(text.as_bytes())),
        };
        let Self { columns, condition, added, reading } = self;
        Self {
            columns: hash(columns),
            condition: hash(condition),
            added: hash(added),
            reading: hash(reading),
        }
    }

    /// The text for a record.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a record's text; `None` if the record's files are not remembered one by one. A text in another form equals
    /// no mapping of a load.
    pub fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| serde_json::from_str(text).unwrap_or_else(|_| Self::of_columns(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_same_columns_and_other_conditions() {
        let of = |columns: &str, condition: &str, added: &str| Mapping {
            columns: columns.to_owned(),
            condition: condition.to_owned(),
            added: added.to_owned(),
            reading: String::new(),
        };
        for (one, other, expected) in [
            (of("c", "part = 1", ""), of("c", "part = 10", ""), true),
            (of("c", "part = 1", ""), of("d", "part = 2", ""), false),
            (of("c", "", ""), of("c", "part = 2", ""), false),
            (of("c", "part = 1", ""), of("c", "part = 1", "File"), false),
        ] {
            let hashed = (one.hashed(), other.hashed());
            for (one, other) in [(&one, &other), (&other, &one), (&hashed.0, &hashed.1)] {
                assert_eq!(one.may_be_parts(other), expected, "{one:?}; {other:?}");
            }
            assert_eq!(Mapping::from_text(&one.to_text()), Some(one));
        }
    }

    #[test]
    fn how_text_is_read_is_no_part_of_the_rows() {
        let plain = Mapping { reading: "null [\"\"]".to_owned(), ..Mapping::of_columns("a") };
        let other = Mapping { reading: "null [\"NA\"]".to_owned(), ..plain.clone() };
        assert!(plain != other && plain.takes_the_same(&other));
        for other in [
            Mapping::of_columns("b"),
            Mapping { condition: "x > 1".to_owned(), ..plain.clone() },
            Mapping { added: "File".to_owned(), ..plain.clone() },
        ] {
            assert!(!plain.takes_the_same(&other), "{other:?}");
        }
    }
}
