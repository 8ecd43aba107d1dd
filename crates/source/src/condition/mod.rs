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

use std::fmt;
use std::str::FromStr;

use sawmill_profile::{Error, Result};

pub use literal::Literal;
pub(crate) use moment::days as days_of;
#[cfg(feature = "csv")]
pub(crate) use moment::{plain_timestamp, time as time_of, timestamp as timestamp_of};

/// A condition on the columns of a source, by their names in the files.
///
/// ```
/// use sawmill_source::Condition;
/// let parsed: Condition = "vendor in (1, 2) and pickup >= 2024-01-01 and not tip is null".parse()?;
/// let built = Condition::one_of("vendor", [1, 2])
///     .and(Condition::at_least("pickup", "2024-01-01"))
///     .and(Condition::is_null("tip").negated());
/// assert_eq!(parsed.to_string(), r#""vendor" in (1, 2) and "pickup" >= '2024-01-01' and not ("tip" is null)"#);
/// assert_eq!(parsed, built);
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
    /// Whether it tests this column.
    fn names(&self, name: &str) -> bool {
        match self {
            Self::Compare { column, .. }
            | Self::OneOf { column, .. }
            | Self::Like { column, .. }
            | Self::IsNull { column } => column == name,
            Self::Not(inner) => inner.names(name),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.names(name)),
        }
    }
}

impl Condition {
    /// Whether it tests this column.
    pub(crate) fn names(&self, column: &str) -> bool {
        self.0.names(column)
    }

    fn compare(column: &str, operator: Operator, literal: Literal) -> Self {
        Self(Node::Compare { column: column.to_owned(), operator, literal })
    }

    /// Returns the condition that the column's value is this one.
    pub fn equals(column: &str, literal: impl Into<Literal>) -> Self {
        Self::compare(column, Operator::Equal, literal.into())
    }

    /// Returns the condition that the column's value is this one or greater.
    pub fn at_least(column: &str, literal: impl Into<Literal>) -> Self {
        Self::compare(column, Operator::AtLeast, literal.into())
    }

    /// Returns the condition that the column's value is less than this one.
    pub fn less_than(column: &str, literal: impl Into<Literal>) -> Self {
        Self::compare(column, Operator::Less, literal.into())
    }

    /// Returns the condition that the column's value is one of these.
    pub fn one_of<L: Into<Literal>>(column: &str, literals: impl IntoIterator<Item = L>) -> Self {
        let literals = literals.into_iter().map(Into::into).collect();
        Self(Node::OneOf { column: column.to_owned(), literals })
    }

    /// Returns the condition that the column is null.
    pub fn is_null(column: &str) -> Self {
        Self(Node::IsNull { column: column.to_owned() })
    }

    /// Returns the condition that both conditions are true.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = match self.0 {
            Node::And(all) => all,
            one => vec![one],
        };
        match other.0 {
            Node::And(more) => all.extend(more),
            one => all.push(one),
        }
        Self(Node::And(all))
    }

    /// Returns the condition that at least one of both is true.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut any = match self.0 {
            Node::Or(any) => any,
            one => vec![one],
        };
        match other.0 {
            Node::Or(more) => any.extend(more),
            one => any.push(one),
        }
        Self(Node::Or(any))
    }

    /// Returns the condition that this one is false. Rows for which it is unknown pass neither.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(Node::Not(Box::new(self.0)))
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
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
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
                write!(f, "{} like {}", quoted(column), Literal::from(pattern.as_str()))
            }
            Self::IsNull { column } => write!(f, "{} is null", quoted(column)),
            Self::Not(node) => write!(f, "not ({node})"),
            Self::And(nodes) => joined(f, nodes, "and"),
            Self::Or(nodes) => joined(f, nodes, "or"),
        }
    }
}
