//! A validated dataset: the tree of its fields, each with the tables for drawing its values.
//!
//! [`Dataset::from_toml`] and [`Dataset::from_file`] create one; [`crate::spec::reader`] reads the spec. The
//! reader also checks all that later stages rely on: levels fit, weights are distributions, and the number
//! of elements in a record is bounded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::distr::Distribution;

use crate::benchmark::Benchmark;
use crate::draw::choice::Dictionary;
use crate::draw::copula::{Copula, Ranked};
use crate::draw::expression::{Expression, Operand};
use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::text::template::Template;
use crate::draw::value_spec::other_rows::changes::{Changes, Operation};
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::own::{DrawnNumber, OwnDistribution};
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::{Error, Result};
use crate::random::weights::Weights;
use crate::shred::row_maker::RowMaker;
use crate::spec::reader;
use crate::spec_file::folder::SpecFolder;
use crate::types::logical_type::{LogicalType, Physical};

/// The deepest nesting of structs, lists and maps.
pub(crate) const MAX_DEPTH: usize = 32;

/// The built-in specs, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("contacts", include_str!("../../datasets/contacts.toml")),
    ("orders", include_str!("../../datasets/orders.toml")),
    ("events", include_str!("../../datasets/events.toml")),
    ("devices", include_str!("../../datasets/devices.toml")),
    ("deep", include_str!("../../datasets/deep.toml")),
    ("hits", include_str!("../../datasets/hits.toml")),
];

/// A validated dataset, ready to generate.
#[derive(Debug, Default)]
pub struct Dataset {
    pub(crate) name: String,
    pub(crate) rows: Option<u64>,
    pub(crate) fields: Vec<Field>,
    /// Fields of the record that others use, and that no file has.
    pub(crate) hidden: Vec<Field>,
    /// The order in which fields are drawn: the places of `fields`, then the places of `hidden`.
    pub(crate) order: Vec<usize>,
    /// Whose rows its rows are, if a formula needs the row before of the same parent.
    pub(crate) chain: Option<Arc<FanOut>>,
    /// Which optional fields of the record are present together.
    pub(crate) present: Option<Present>,
    /// The ranks of fields that depend on one another, and the member that `present` follows.
    pub(crate) copula: Option<Copula>,
    pub(crate) present_ranked: Option<Ranked>,
    pub(crate) leaves: usize,
    pub(crate) text_hash: u128,
    /// The files that the spec names.
    pub(crate) files: Vec<PathBuf>,
    /// Distinguishes the draws of a table from the draws of other tables of its spec; 0 for a single dataset.
    pub(crate) salt: u64,
    /// The rows that the spec declares at most.
    pub(crate) most_rows: Option<u64>,
    /// The changes that its rows are, which say whether a row has `before` and `after`.
    pub(crate) changes: Option<Arc<Changes>>,
    /// Computes the rows, if the fields do not draw their values.
    pub(crate) maker: Option<Box<dyn RowMaker>>,
}

/// A field of the record or of another field.
#[derive(Debug)]
pub(crate) struct Field {
    pub name: String,
    /// The names from the root, joined with dots, like the paths of Parquet columns.
    pub path: String,
    pub nulls: Nulls,
    /// The condition of [`Nulls::Where`].
    pub null_where: Option<Box<Expression>>,
    /// The levels of an entry in which this field is present.
    pub levels: Levels,
    pub kind: Kind,
    /// The random streams of its nulls, and of its values or lengths.
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
        /// Its number among the lists of the dataset.
        number: usize,
        lengths: Lengths,
        style: ListStyle,
        /// The element, or the key and the value of a map.
        children: Vec<Field>,
    },
}

/// The Parquet structure of a repeated field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStyle {
    /// Three levels: `group f (LIST) { repeated group list { element } }`.
    Standard,
    /// Two levels: `group f (LIST) { repeated array }`.
    Legacy,
    /// As `Standard`, with this many elements in each list that is not null.
    Fixed(u32),
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
    /// The most values in one record.
    pub most_in_record: u64,
    /// The member of the copula that its values follow, and the one that its nulls follow.
    pub ranked: Option<Box<Ranked>>,
    pub null_member: Option<usize>,
    /// Whether expressions of later fields use it.
    pub is_operand: bool,
    /// Whether it is the key of a map. Keys drawn from a list or a range are made distinct within each map.
    pub distinct: bool,
}

/// Which optional fields of a struct are present together.
#[derive(Debug)]
pub(crate) struct Present {
    pub table: Weights,
    /// The bits of the present fields, for each combination.
    pub masks: Vec<u32>,
}

/// The bits of the fields `before` and `after` that a change of a stream has.
pub(crate) fn images(operation: Operation) -> u32 {
    let (before, after) = operation.images();
    u32::from(before) | u32::from(after) << 1
}

impl Field {
    /// Calls `visit` with each of its leaves and the leaf's own field.
    pub(crate) fn each_leaf<'a>(&'a self, visit: &mut dyn FnMut(&'a Field, &'a Leaf)) {
        match &self.kind {
            Kind::Leaf(leaf) => visit(self, leaf),
            Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => {
                fields.iter().for_each(|field| field.each_leaf(visit));
            }
        }
    }

    /// The fields that its values and nulls, and its nested fields, depend on.
    pub(crate) fn each_operand<'a>(&'a self, visit: &mut dyn FnMut(&'a Operand)) {
        self.null_where.iter().flat_map(|condition| &condition.operands).for_each(&mut *visit);
        match &self.kind {
            Kind::Leaf(leaf) => leaf.values.operands().iter().for_each(visit),
            Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => {
                fields.iter().for_each(|field| field.each_operand(visit));
            }
        }
    }
}

impl Leaf {
    pub(crate) fn new(index: usize, kind: LogicalType, values: ValueSpec) -> Self {
        let physical = kind.physical();
        Leaf {
            index,
            kind,
            physical,
            values,
            most_in_record: 1,
            ranked: None,
            null_member: None,
            is_operand: false,
            distinct: false,
        }
    }

    /// The template that renders its ids.
    pub(crate) fn template(&self) -> Option<&Template> {
        match (&self.values, self.key()) {
            (ValueSpec::Unique(template), _) | (_, Some(ReferencedKey::Unique(template))) => Some(template),
            _ => None,
        }
    }

    /// How the keys that its values refer to are computed.
    pub(crate) fn key(&self) -> Option<&ReferencedKey> {
        match &self.values {
            ValueSpec::Reference(reference) => Some(&reference.key),
            _ => None,
        }
    }

    /// The values that its indices point to; empty for leaves without a dictionary.
    pub(crate) fn dictionary(&self) -> &[Vec<u8>] {
        match &self.values {
            ValueSpec::Choice { dictionary: Dictionary { entries, .. }, .. } => entries,
            _ => &[],
        }
    }
}

fn spec_text(path: &Path) -> Result<String> {
    sawmill_store::read_text(path).map_err(|error| {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        Error::spec(
            format!("cannot read the dataset spec: {error}"),
            path.display().to_string(),
            format!("name a TOML file or a built-in dataset: {}, wide", names.join(", ")),
        )
    })
}

impl Dataset {
    /// Parses and validates a dataset spec. The files that it names are read from the current directory.
    ///
    /// # Errors
    /// The spec is not valid. The error names line, column, the path of the field, and the allowed content.
    pub fn from_toml(text: &str) -> Result<Self> {
        reader::read(text, &SpecFolder::new(None, text), 0)
    }

    /// Parses the table `table` of a spec with several tables. Each table has `scale` times its rows.
    ///
    /// # Errors
    /// As [`Dataset::from_toml`], and if the spec has no such table.
    pub fn table_from_toml(text: &str, table: &str, scale: Option<f64>) -> Result<Self> {
        reader::read_one(text, &SpecFolder::new(None, text), table, scale)
    }

    /// Reads the table `table` of the spec in a file, as [`table_from_toml`](Self::table_from_toml).
    ///
    /// # Errors
    /// As [`Dataset::from_file`], and if the spec has no such table.
    pub fn table_of_file(path: &Path, table: &str, scale: Option<f64>) -> Result<Self> {
        let text = spec_text(path)?;
        let folder = SpecFolder::new(path.parent(), &text);
        reader::read_one(&text, &folder, table, scale).map_err(|error| error.in_file(path))
    }

    /// The names of the tables of the spec in a file, in its order; none if it describes a single dataset.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has a table without a name for its folder.
    pub fn tables_of_file(path: &Path) -> Result<Vec<String>> {
        reader::table_names(&spec_text(path)?).map_err(|error| error.in_file(path))
    }

    /// Reads the dataset spec in a file. The files and datasets that it names are read from the same folder.
    ///
    /// # Errors
    /// As [`Dataset::from_toml`], and if the file cannot be read.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = spec_text(path)?;
        reader::read(&text, &SpecFolder::new(path.parent(), &text), 0).map_err(|error| error.in_file(path))
    }

    /// The built-in dataset `name`; `None` if the name is unknown.
    pub fn built_in(name: &str) -> Option<Result<Self>> {
        Self::built_in_text(name).map(|text| Self::from_toml(&text?))
    }

    /// The spec of the built-in dataset `name`; `None` if the name is unknown. `wide`, `wide:N` and
    /// `wide:N:string` have N columns of floats or strings.
    pub(crate) fn built_in_text(name: &str) -> Option<Result<String>> {
        if let Some(text) = crate::spec::wide::spec(name) {
            return Some(text);
        }
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| Ok((*text).to_owned()))
    }

    /// Draws the numbers of the field `path` from `distribution`, one of `rand`, `rand_distr` or your own, instead of
    /// what the spec says. Row *i* still depends on the seed and *i* alone. A distribution that uses the system's C
    /// library may differ in the last bit between platforms. A value that does not fit into the field's type is an
    /// error of the run.
    ///
    /// ```
    /// use rand_distr::Triangular;
    /// use sawmill_generator::Dataset;
    ///
    /// let spec = "name = 'orders'\n[[fields]]\nname = 'total'\ntype = 'double'\nvalues = { uniform = { min = 0, max = 1 } }";
    /// let orders = Dataset::from_toml(spec)?;
    /// let orders = orders.with_distribution("total", Triangular::new(1.0, 500.0, 20.0).unwrap())?;
    /// # Ok::<(), sawmill_generator::Error>(())
    /// ```
    ///
    /// # Errors
    /// The dataset has no such field, or it does not hold numbers.
    pub fn with_distribution<T: DrawnNumber>(
        mut self,
        path: &str,
        distribution: impl Distribution<T> + Send + Sync + 'static,
    ) -> Result<Self> {
        let wrong = |what: &str| {
            Err(Error::spec(what, path, "name a field of numbers by its path, like customer.age"))
        };
        let mut found = None;
        self.each_leaf(&mut |field, leaf| {
            if field.path == path {
                found = Some((leaf.index, leaf.kind.is_real() || leaf.kind.is_whole()));
            }
        });
        let index = match (found, &self.maker) {
            (Some((index, true)), None) => index,
            (Some(_), None) => return wrong("the field does not hold numbers"),
            (Some(_), Some(_)) => return wrong("the values of this dataset are computed, not drawn"),
            (None, _) => return wrong("the dataset has no such field"),
        };
        let own = OwnDistribution::new(distribution);
        // Files with other draws must not pass for files of this dataset.
        self.text_hash ^= own.hash();
        self.each_leaf_mut(&mut |leaf| {
            if leaf.index == index {
                leaf.values = ValueSpec::Own(own.clone());
                // Its draws follow no rank of a copula.
                leaf.ranked = None;
            }
        });
        Ok(self)
    }

    /// Its name, which its file names start with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of rows in its spec, if the spec has one.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// The most rows that it has: a table of children ends with the rows of the last parent.
    pub fn most_rows(&self) -> Option<u64> {
        self.most_rows
    }

    /// The seed of its draws in a job with this `seed`.
    pub(crate) fn seeded(&self, seed: u64) -> u64 {
        seed ^ self.salt
    }

    /// The fields of the record in the order in which they are drawn, also hidden ones, each with its place.
    pub(crate) fn drawn_fields(&self) -> impl Iterator<Item = (usize, &Field)> {
        let all: Vec<&Field> = self.fields.iter().chain(&self.hidden).collect();
        self.order.iter().filter_map(move |place| Some((*place, *all.get(*place)?)))
    }

    pub(crate) fn leaf(&self, index: usize) -> Option<(&Field, &Leaf)> {
        let mut found = None;
        self.each_leaf(&mut |field, leaf| {
            if leaf.index == index {
                found = Some((field, leaf));
            }
        });
        found
    }

    /// The number of columns in its files.
    pub fn columns(&self) -> usize {
        self.leaves
    }

    /// Whether Parquet describes all of its types only together with an Arrow schema in the footer (`ARROW:schema`, see
    /// [`FileOptions::key_values`](crate::FileOptions::key_values)): durations, and lists of a fixed size.
    pub fn needs_arrow_schema(&self) -> bool {
        fn needs(field: &Field) -> bool {
            match &field.kind {
                Kind::Leaf(leaf) => matches!(leaf.kind, LogicalType::Duration { .. }),
                Kind::List { style: ListStyle::Fixed(_), .. } => true,
                Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => fields.iter().any(needs),
            }
        }
        self.fields.iter().any(needs)
    }

    /// The benchmark that defines this table; `None` for other datasets. A benchmark's table has the same rows for
    /// every seed.
    pub fn benchmark(&self) -> Option<Benchmark> {
        self.maker.as_ref().map(|maker| maker.benchmark())
    }

    /// The files that its spec names: lists of values, specs of other datasets.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A hash of the text of the spec and of the files that it names.
    pub fn spec_hash(&self) -> u128 {
        self.text_hash
    }

    /// Calls `visit` with each column of the files and its field, in order.
    pub(crate) fn each_column<'a>(&'a self, visit: &mut dyn FnMut(&'a Field, &'a Leaf)) {
        self.fields.iter().for_each(|field| field.each_leaf(visit));
    }

    /// Calls `visit` with each leaf and its field, also hidden ones, in the order in which they are drawn.
    pub(crate) fn each_leaf<'a>(&'a self, visit: &mut dyn FnMut(&'a Field, &'a Leaf)) {
        self.drawn_fields().for_each(|(_, field)| field.each_leaf(visit));
    }

    pub(crate) fn each_leaf_mut(&mut self, change: &mut dyn FnMut(&mut Leaf)) {
        fn change_fields(fields: &mut [Field], change: &mut dyn FnMut(&mut Leaf)) {
            for field in fields {
                match &mut field.kind {
                    Kind::Leaf(leaf) => change(leaf),
                    Kind::Struct { fields, .. } | Kind::List { children: fields, .. } => {
                        change_fields(fields, change)
                    }
                }
            }
        }
        change_fields(&mut self.fields, change);
        change_fields(&mut self.hidden, change);
    }
}
