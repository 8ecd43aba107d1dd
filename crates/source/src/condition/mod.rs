//! Conditions that select rows, as trees of comparisons.
//!
//! ```text
//! text ─parser─▶ Condition ─rows (a file's columns)─▶ RowTest ─▶ rows of a batch
//!                                                       └─pruning─▶ row groups and pages that need not be read
//! ```
//!
//! SQL's rules apply: a comparison with null is neither true nor false, and only rows for which the condition
//! is true pass. NaN is greater than all other numbers and equal to itself, as in PostgreSQL.

mod literal;
mod moment;
mod parser;
pub(crate) mod pruning;
pub(crate) mod rows;
mod value_set;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use arrow_schema::{DataType, TimeUnit};
use sawmill_profile::{Error, Result};

pub(crate) use literal::Literal;
pub(crate) use moment::days as days_of;
#[cfg(feature = "csv")]
pub(crate) use moment::{plain_timestamp, time as time_of, timestamp as timestamp_of};

/// A condition on the columns of a source, by their names in the files.
///
/// ```
/// use sawmill_source::Condition;
/// let parsed: Condition = "vendor in (1, 2) and pickup >= 2024-01-01 and not tip is null".parse()?;
/// assert_eq!(parsed.to_string(), r#""vendor" in (1, 2) and "pickup" >= '2024-01-01' and not ("tip" is null)"#);
/// # Ok::<(), sawmill_source::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(pub(crate) Node);

/// How a column is compared with a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Operator {
    /// The signs of all, a longer one before its beginning.
    const SIGNS: [(&str, Self); 7] = [
        ("=", Self::Equal),
        ("<>", Self::NotEqual),
        ("!=", Self::NotEqual),
        ("<=", Self::AtMost),
        ("<", Self::Less),
        (">=", Self::AtLeast),
        (">", Self::Greater),
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Compare { column: String, operator: Operator, literal: Literal },
    OneOf { column: String, literals: Vec<Literal> },
    Like { column: String, pattern: String },
    IsNull { column: String },
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl Node {
    /// The column of a comparison; `None` for conditions of conditions.
    fn column(&self) -> Option<&str> {
        match self {
            Self::Compare { column, .. }
            | Self::OneOf { column, .. }
            | Self::Like { column, .. }
            | Self::IsNull { column } => Some(column),
            Self::Not(_) | Self::And(_) | Self::Or(_) => None,
        }
    }

    /// Whether one of its comparisons with this column is of a kind.
    fn compares(&self, name: &str, is: &dyn Fn(&Self) -> bool) -> bool {
        match self {
            Self::Not(inner) => inner.compares(name, is),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.compares(name, is)),
            comparison => comparison.column() == Some(name) && is(comparison),
        }
    }

    /// Adds the columns of its comparisons.
    fn add_columns<'n>(&'n self, columns: &mut BTreeSet<&'n str>) {
        match self {
            Self::Not(inner) => inner.add_columns(columns),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().for_each(|node| node.add_columns(columns)),
            comparison => columns.extend(comparison.column()),
        }
    }
}

impl Condition {
    /// Whether it tests this column.
    pub(crate) fn names(&self, column: &str) -> bool {
        self.0.compares(column, &|_| true)
    }

    /// Whether it compares this column with a value that is not text, such as a number.
    pub fn refuses_text(&self, column: &str) -> bool {
        self.refuses(column, &DataType::Utf8View)
    }

    fn refuses(&self, column: &str, data_type: &DataType) -> bool {
        self.0.compares(column, &|node| rows::value_test(node, data_type, false).is_err())
    }

    /// The columns that it compares with values other than text, each with the name of a type that has such values: for
    /// files of text without a value there.
    pub fn types_beside_text(&self) -> Vec<(String, &'static str)> {
        let types = [
            ("int64", DataType::Int64),
            ("bool", DataType::Boolean),
            ("date", DataType::Date32),
            ("timestamp", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ];
        let mut columns = BTreeSet::new();
        self.0.add_columns(&mut columns);
        let typed = columns.into_iter().filter(|column| self.refuses_text(column)).filter_map(|column| {
            let (name, _) = types.iter().find(|(_, of)| !self.refuses(column, of))?;
            Some((column.to_owned(), *name))
        });
        typed.collect()
    }
}

impl FromStr for Condition {
    type Err = Error;

    /// Parses a condition.
    ///
    /// # Errors
    /// Names the expected text and the position of the fault.
    fn from_str(text: &str) -> Result<Self> {
        parser::parse(text).map(Self)
    }
}

impl fmt::Display for Condition {
    /// Writes the condition in its canonical form, a part of a load's identity.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Self::SIGNS.iter().find(|(_, operator)| operator == self);
        f.write_str(sign.map_or("", |(sign, _)| sign))
    }
}

/// Returns a name as written in a condition.
fn quoted(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, nodes: &[Node], word: &str| {
            for (i, node) in nodes.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match node {
                    Node::And(_) | Node::Or(_) => write!(f, "({node})")?,
                    _ => write!(f, "{node}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Compare { column, operator, literal } => {
                write!(f, "{} {operator} {literal}", quoted(column))
            }
            Self::OneOf { column, literals } => {
                write!(f, "{} in (", quoted(column))?;
                for (i, literal) in literals.iter().enumerate() {
                    write!(f, "{}{literal}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Self::Like { column, pattern } => {
                write!(f, "{} like {}", quoted(column), Literal::Text(pattern.clone()))
            }
            Self::IsNull { column } => write!(f, "{} is null", quoted(column)),
            Self::Not(node) => write!(f, "not ({node})"),
            Self::And(nodes) => joined(f, nodes, "and"),
            Self::Or(nodes) => joined(f, nodes, "or"),
        }
    }
}
