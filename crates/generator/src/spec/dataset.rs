//! A validated dataset: the tree of its fields, each with the tables that its values are drawn
//! from.
//!
//! [`Dataset::from_toml`] and [`Dataset::from_file`] are the ways in; reading is in
//! [`crate::spec::reader`]. Everything that later stages rely on (levels that fit, tables that are
//! distributions, a bounded number of elements a record) is checked there.

use std::path::Path;

use crate::draw::choice::Dictionary;
use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::Error;
use crate::random::weights::Weights;
use crate::spec::reader;
use crate::spec_file::folder::SpecFolder;
use crate::text::template::Template;
use crate::types::logical_type::{LogicalType, Physical};

/// Deepest nesting of structs, lists and maps.
pub(crate) const DEEPEST: usize = 32;

/// Specs that come with the crate, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("contacts", include_str!("../../datasets/contacts.toml")),
    ("orders", include_str!("../../datasets/orders.toml")),
    ("events", include_str!("../../datasets/events.toml")),
    ("devices", include_str!("../../datasets/devices.toml")),
    ("deep", include_str!("../../datasets/deep.toml")),
];

/// A dataset whose records can be drawn.
#[derive(Debug)]
pub struct Dataset {
    pub(crate) name: String,
    pub(crate) rows: Option<u64>,
    pub(crate) fields: Vec<Field>,
    /// Which of the record's optional fields are there together.
    pub(crate) present: Option<Present>,
    pub(crate) leaves: usize,
    pub(crate) text_hash: u128,
}

/// One node of the record's tree.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: String,
    /// Names from the root, joined with dots, as Parquet has the path of a leaf.
    pub path: String,
    pub nulls: Nulls,
    /// Levels of an entry in which this field is there.
    pub levels: Levels,
    pub kind: Kind,
    /// The streams that decide whether it is there, and that its values or lengths come from.
    pub null_draws: u64,
    pub value_draws: u64,
}

/// The levels of an entry whose value is there: how many optional or repeated, and how many
/// repeated fields lie on its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub definition: u8,
    pub repetition: u8,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Leaf(Box<Leaf>),
    Struct {
        fields: Vec<Field>,
        present: Option<Present>,
    },
    List {
        lengths: Lengths,
        style: ListStyle,
        /// The element, or the key and the value of a map.
        children: Vec<Field>,
    },
}

/// How a repeated field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStyle {
    /// Three levels: `group f (LIST) { repeated group list { element } }`.
    Standard,
    /// Two levels: `group f (LIST) { repeated array }`.
    Legacy,
    /// `group f (MAP) { repeated group key_value { key, value } }`.
    Map,
}

/// A column of the file.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// Its position among the columns.
    pub index: usize,
    pub kind: LogicalType,
    pub physical: Physical,
    pub values: ValueSpec,
    /// Most values it can have in one record.
    pub most_in_record: u64,
    /// Whether expressions of later fields use it.
    pub is_operand: bool,
    /// Whether it is the key of a map, whose values are told apart within one map where they come
    /// from a list or a range.
    pub distinct: bool,
}

/// Which optional fields of a struct are there together.
#[derive(Debug)]
pub(crate) struct Present {
    pub table: Weights,
    /// For each combination the bits of the fields that are there.
    pub masks: Vec<u32>,
}

impl Leaf {
    pub(crate) fn new(index: usize, kind: LogicalType, values: ValueSpec) -> Self {
        let physical = kind.physical();
        Leaf { index, kind, physical, values, most_in_record: 1, is_operand: false, distinct: false }
    }

    /// The template that its ids are rendered by.
    pub(crate) fn template(&self) -> Option<&Template> {
        match &self.values {
            ValueSpec::Unique(template) => Some(template),
            ValueSpec::Reference(reference) => match &reference.key {
                ReferencedKey::Unique(template) => Some(template),
                ReferencedKey::Sequence { .. } => None,
            },
            _ => None,
        }
    }

    /// The values that its indices stand for; empty where it has none.
    pub(crate) fn dictionary(&self) -> &[Vec<u8>] {
        match &self.values {
            ValueSpec::Choice { dictionary: Dictionary { entries, .. }, .. } => entries,
            _ => &[],
        }
    }
}

impl Dataset {
    /// Parses and validates a dataset spec. Files that it names are looked for in the current
    /// directory.
    ///
    /// # Errors
    /// With line, column and the path of the field, and with what is allowed there.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        reader::read(text, &SpecFolder::new(None, text), 0)
    }

    /// Reads the dataset spec in a file. Files and datasets that it names are looked for beside it.
    ///
    /// # Errors
    /// As [`Dataset::from_toml`], and when the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            Error::spec(
                format!("no dataset: {error}"),
                path.display().to_string(),
                format!("give a TOML file or a built-in dataset: {}, wide", names.join(", ")),
            )
        })?;
        reader::read(&text, &SpecFolder::new(path.parent(), &text), 0).map_err(|error| error.in_file(path))
    }

    /// The dataset of a built-in spec, `None` where there is none of that name.
    pub fn built_in(name: &str) -> Option<Result<Self, Error>> {
        Self::built_in_text(name).map(|text| Self::from_toml(&text?))
    }

    /// The spec of a built-in dataset, `None` where there is none of that name. `wide`, `wide:N`
    /// and `wide:N:string` have N columns of floats or strings.
    pub fn built_in_text(name: &str) -> Option<Result<String, Error>> {
        if let Some(text) = crate::spec::wide::spec(name) {
            return Some(text);
        }
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| Ok((*text).to_owned()))
    }

    /// Its name, the stem of its files' names.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rows that its spec says it has, where it does.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// The number of columns in its files.
    pub fn columns(&self) -> usize {
        self.leaves
    }

    /// A hash of the spec's text and of the files that it names: the same for the same spec.
    pub fn spec_hash(&self) -> u128 {
        self.text_hash
    }

    /// Calls `see` with each leaf and the field it stands in, in the order of the columns.
    pub(crate) fn each_leaf<'a>(&'a self, see: &mut dyn FnMut(&'a Field, &'a Leaf)) {
        fn walk<'a>(fields: &'a [Field], see: &mut dyn FnMut(&'a Field, &'a Leaf)) {
            for field in fields {
                match &field.kind {
                    Kind::Leaf(leaf) => see(field, leaf),
                    Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => walk(fields, see),
                }
            }
        }
        walk(&self.fields, see);
    }

    /// Calls `change` with each leaf.
    pub(crate) fn each_leaf_mut(&mut self, change: &mut dyn FnMut(&mut Leaf)) {
        fn walk(fields: &mut [Field], change: &mut dyn FnMut(&mut Leaf)) {
            for field in fields {
                match &mut field.kind {
                    Kind::Leaf(leaf) => change(leaf),
                    Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => walk(fields, change),
                }
            }
        }
        walk(&mut self.fields, change);
    }
}
