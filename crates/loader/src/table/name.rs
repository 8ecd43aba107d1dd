//! Names of tables, as given and as quoted in SQL.

use std::fmt;
use std::str::FromStr;

use sawmill_source::{Error, Kind, Result};

/// Longest name in bytes (`NAMEDATALEN` - 1); PostgreSQL silently truncates longer ones.
pub const MAX_LENGTH: usize = 63;

/// Suffix of a staging table's name.
const STAGING: &str = "__sawmill_loading";
/// Precedes the number in the name of a worker's staging table.
pub const PART: &str = "__sawmill_part_";

/// A table's name, with its schema if one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    schema: Option<String>,
    name: String,
}

impl TableName {
    /// A table by the exact names of its schema and itself.
    ///
    /// # Errors
    /// Names that are empty, longer than 63 bytes, or contain 0x00.
    pub fn new(schema: Option<&str>, name: &str) -> Result<Self> {
        Self::up_to(MAX_LENGTH, schema, name)
    }

    fn up_to(longest: usize, schema: Option<&str>, name: &str) -> Result<Self> {
        for part in schema.iter().copied().chain([name]) {
            check_length(part, longest).map_err(|what| {
                Error::new(Kind::Config, what).at(format!("table {part:?}")).advise("choose another name")
            })?;
        }
        Ok(Self { schema: schema.map(str::to_owned), name: name.to_owned() })
    }

    /// Parses a name as [`FromStr`] does, for a server that keeps names of up to `longest` bytes.
    ///
    /// # Errors
    /// As [`new`](Self::new); a quotation mark that is not closed, more than two parts.
    pub fn parse_up_to(longest: usize, text: &str) -> Result<Self> {
        match parts(text)?.as_slice() {
            [name] => Self::up_to(longest, None, name),
            [schema, name] => Self::up_to(longest, Some(schema), name),
            _ => Err(refused(text, "there are more parts than schema and table")),
        }
    }

    /// The table's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The given schema.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The staging table of this table: the same schema, the name with a suffix.
    pub fn staging(&self) -> Self {
        self.with_suffix(STAGING)
    }

    /// Whether this is the name of a staging table.
    pub fn is_staging(&self) -> bool {
        self.name.ends_with(STAGING)
    }

    /// The staging table of one worker.
    pub fn part(&self, number: u32) -> Self {
        self.with_suffix(&format!("{PART}{number}"))
    }

    /// Whether `name` belongs to a [`part`](Self::part).
    pub fn has_part(&self, name: &str) -> bool {
        let number = name.rsplit_once(PART).and_then(|(_, digits)| digits.parse().ok());
        number.is_some_and(|number| self.part(number).name == name)
    }

    /// A partition of this table, by its number.
    pub fn numbered(&self, number: u32) -> Self {
        self.with_suffix(&format!("_{number}"))
    }

    /// A partition of this table, by what its rows have in common.
    pub fn partition(&self, suffix: &str) -> Self {
        self.with_suffix(&format!("_{suffix}"))
    }

    /// The same schema, and the name with a suffix.
    fn with_suffix(&self, suffix: &str) -> Self {
        Self { schema: self.schema.clone(), name: fitted(&self.name, suffix) }
    }

    /// An object that belongs to a part of this table: the same schema, both names joined by `_`.
    pub fn below(&self, part: &str) -> Self {
        let name = fitted(&format!("{}_{part}", self.name), "");
        Self { schema: self.schema.clone(), name }
    }

    /// The name with the schema that the server resolved.
    pub fn within(&self, schema: &str) -> Self {
        Self { schema: Some(schema.to_owned()), name: self.name.clone() }
    }

    /// Quoted for SQL.
    pub fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quote(schema), quote(&self.name)),
            None => quote(&self.name),
        }
    }
}

/// Appends a suffix to a name. A name that is too long is truncated between characters and made unique by a
/// hash.
pub fn fitted(name: &str, suffix: &str) -> String {
    if name.len() + suffix.len() <= MAX_LENGTH {
        return format!("{name}{suffix}");
    }
    let hash = format!("{:08x}", xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32);
    let mut keep = MAX_LENGTH.saturating_sub(suffix.len() + hash.len());
    while !name.is_char_boundary(keep) {
        keep -= 1;
    }
    format!("{}{hash}{suffix}", &name[..keep])
}

/// Refuses a name that PostgreSQL would not keep unchanged.
pub fn check_name(name: &str) -> Result<(), String> {
    check_length(name, MAX_LENGTH)
}

fn check_length(name: &str, longest: usize) -> Result<(), String> {
    match name {
        "" => Err("the name is empty".to_owned()),
        name if name.len() > longest => {
            Err(format!("the name has {} bytes, the server keeps at most {longest}", name.len()))
        }
        name if name.contains('\0') => Err("the name contains 0x00".to_owned()),
        _ => Ok(()),
    }
}

/// An identifier in quotation marks.
pub fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text literal for SQL. With a backslash it takes the form that does not depend on the server's settings.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// As [`FromStr`] reads it: records know tables by this text, so that two tables never share it.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str| if name.contains(['.', '"']) { quote(name) } else { name.to_owned() };
        match &self.schema {
            Some(schema) => write!(f, "{}.{}", shown(schema), shown(&self.name)),
            None => f.write_str(&shown(&self.name)),
        }
    }
}

impl FromStr for TableName {
    type Err = Error;

    /// Parses `table`, `schema.table`, and quoted forms such as `"My Schema"."a.b"`. Unlike in SQL,
    /// case is kept in unquoted names too.
    fn from_str(text: &str) -> Result<Self> {
        Self::parse_up_to(MAX_LENGTH, text)
    }
}

/// The parts of a name between dots that are not in quotation marks.
fn parts(text: &str) -> Result<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                parts.last_mut().into_iter().for_each(|part| part.push('"'));
            }
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => parts.last_mut().into_iter().for_each(|part| part.push(other)),
        }
    }
    if quoted { Err(refused(text, "a quotation mark is not closed")) } else { Ok(parts) }
}

fn refused(text: &str, what: &str) -> Error {
    Error::new(Kind::Config, what)
        .at(format!("table name {text:?}"))
        .advise("write table, schema.table or \"schema\".\"table\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_quoted() {
        let table: TableName = "sales.\"Big \"\"T\"\".x\"".parse().unwrap();
        assert_eq!(table.quoted(), "\"sales\".\"Big \"\"T\"\".x\"");
        assert_eq!("taxi".parse::<TableName>().unwrap().quoted(), "\"taxi\"");
        assert!("a.b.c".parse::<TableName>().is_err());
        assert!("".parse::<TableName>().is_err());
        assert!("x".repeat(64).parse::<TableName>().is_err());
        assert_eq!(TableName::parse_up_to(64, &"x".repeat(64)).unwrap().name().len(), 64);
    }

    #[test]
    fn the_staging_name_of_a_long_name_stays_distinct_and_short() {
        let [a, b] = ["a", "b"].map(|end| TableName::new(None, &format!("{}{end}", "é".repeat(30))).unwrap());
        assert!(a.staging().name().len() <= MAX_LENGTH);
        assert_ne!(a.staging(), b.staging());
        assert_eq!(TableName::new(None, "t").unwrap().staging().name(), "t__sawmill_loading");
        assert!(a.below("part").name().len() <= MAX_LENGTH);
        assert_ne!(a.below("part"), a.below("other"));
    }
}
