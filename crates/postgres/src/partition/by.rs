//! The definition of a new table's partitions: `month(at)`, `day(at)`, `hour(at)`, `year(at)`,
//! `hash(id, 8)` or `list(country)`.

use std::fmt;
use std::str::FromStr;

use sawmill_loader::quote;
use sawmill_source::{Error, Kind, Result};

/// The most partitions of a hash: more than a server would open for a query are a mistake.
const MAX_REMAINDERS: u32 = 1000;

/// How values are assigned to partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Year,
    Month,
    Day,
    Hour,
    /// Into this many partitions, by the server's hash of the value.
    Hash(u32),
    /// A partition for each value.
    List,
}

/// A column, and how its values are assigned to partitions.
///
/// ```
/// use sawmill_postgres::PartitionBy;
/// let by: PartitionBy = "month(\"picked up\")".parse()?;
/// assert_eq!(by.to_string(), "month(\"picked up\")");
/// assert!("hash(id)".parse::<PartitionBy>().is_err());
/// # Ok::<(), sawmill_source::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBy {
    pub(crate) scheme: Scheme,
    /// The column's name in the table.
    pub(crate) column: String,
}

impl PartitionBy {
    /// The column, by its name in the table.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The strategy of PostgreSQL and its key, for `PARTITION BY`.
    pub(crate) fn clause(&self) -> String {
        let strategy = match self.scheme {
            Scheme::Year | Scheme::Month | Scheme::Day | Scheme::Hour => "RANGE",
            Scheme::Hash(_) => "HASH",
            Scheme::List => "LIST",
        };
        format!("{strategy} ({})", quote(&self.column))
    }
}

impl fmt::Display for PartitionBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = quote(&self.column);
        match self.scheme {
            Scheme::Year => write!(f, "year({column})"),
            Scheme::Month => write!(f, "month({column})"),
            Scheme::Day => write!(f, "day({column})"),
            Scheme::Hour => write!(f, "hour({column})"),
            Scheme::Hash(modulus) => write!(f, "hash({column}, {modulus})"),
            Scheme::List => write!(f, "list({column})"),
        }
    }
}

/// A name, in double quotes or not, and the text after it.
fn name_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', '"']).unwrap_or(text.len());
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, rest.trim_start())),
        }
    }
}

impl FromStr for PartitionBy {
    type Err = Error;

    /// # Errors
    /// Text of any other form; a hash without the number of its partitions, or with too many.
    fn from_str(text: &str) -> Result<Self> {
        let refused = |what: &str| {
            Error::new(Kind::Config, what)
                .at(format!("--partition-by {text}"))
                .advise("give month(COLUMN), day(COLUMN), hour(COLUMN), year(COLUMN), hash(COLUMN, N) or list(COLUMN)")
        };
        let inner = text.trim().strip_suffix(')').and_then(|inner| inner.split_once('('));
        let Some((word, inner)) = inner else { return Err(refused("it does not say how to partition")) };
        let Some((column, rest)) = name_of(inner.trim()).filter(|(column, _)| !column.is_empty()) else {
            return Err(refused("no column is between the parentheses"));
        };
        let number = rest.strip_prefix(',').map(str::trim);
        let scheme = match (word.trim().to_ascii_lowercase().as_str(), number) {
            ("hash", Some(number)) => match number.parse() {
                Ok(modulus) if (1..=MAX_REMAINDERS).contains(&modulus) => Scheme::Hash(modulus),
                _ => return Err(refused("a hash has 1 to 1000 partitions")),
            },
            ("hash", None) => return Err(refused("a hash needs the number of its partitions")),
            (_, Some(_)) => return Err(refused("it takes only a column")),
            _ if !rest.is_empty() => return Err(refused("unexpected text follows the column")),
            ("year", _) => Scheme::Year,
            ("month", _) => Scheme::Month,
            ("day", _) => Scheme::Day,
            ("hour", _) => Scheme::Hour,
            ("list", _) => Scheme::List,
            _ => return Err(refused("it does not say how to partition")),
        };
        Ok(Self { scheme, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_be_quoted_and_hashes_have_a_number() {
        let parsed = |text: &str| text.parse::<PartitionBy>().map(|by| (by.scheme, by.column)).ok();
        assert_eq!(parsed("month(at)"), Some((Scheme::Month, "at".into())));
        assert_eq!(
            parsed(" Day( \"the \"\"day\"\", (UTC)\" ) "),
            Some((Scheme::Day, "the \"day\", (UTC)".into()))
        );
        assert_eq!(parsed("hash(id, 8)"), Some((Scheme::Hash(8), "id".into())));
        assert_eq!(parsed("list(\"a,b\")"), Some((Scheme::List, "a,b".into())));
        for wrong in [
            "month",
            "month()",
            "week(at)",
            "hash(id)",
            "hash(id, 0)",
            "hash(id, x)",
            "month(a, 2)",
            "list(\"a)",
            "year(\"a\" b)",
            "",
        ] {
            assert!(parsed(wrong).is_none(), "{wrong}");
        }
        let by: PartitionBy = "hash(id,4)".parse().unwrap();
        assert_eq!((by.clause().as_str(), by.to_string().as_str()), ("HASH (\"id\")", "hash(\"id\", 4)"));
    }
}
