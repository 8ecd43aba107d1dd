//! The types in the statement that would make a table (`SHOW CREATE TABLE`).
//!
//! Only this statement has all types: `information_schema.columns` lacks the scale of a NUMERIC, and inside arrays
//! the precision of a NUMERIC and the length of a VARCHAR.

use std::iter::Peekable;
use std::str::Chars;

use super::{Policy, StoredType};
use crate::table::native::Native;

/// The names and types of a table's columns.
///
/// # Errors
/// The text found in a place where the statement's grammar expects something else.
pub(crate) fn declared_types(ddl: &str) -> Result<Vec<(String, StoredType)>, String> {
    let mut parser = Parser { tokens: tokens(ddl)?, at: 0 };
    while !parser.sign('(') {
        parser.advance()?;
    }
    parser.fields()
}

/// Whether a type is one that a new column has only on request, such as `geo_point` or `float_vector(768)`.
pub fn is_native_type(text: &str) -> bool {
    native_type(text).is_ok()
}

/// The type that a new column has on request.
pub(crate) fn native_type(text: &str) -> Result<Native, String> {
    let parsed = tokens(text).and_then(|tokens| {
        let mut parser = Parser { tokens, at: 0 };
        Ok((parser.data_type()?, parser.at == parser.tokens.len()))
    });
    match parsed {
        Ok((StoredType::Native(native), true)) => Ok(native),
        _ => Err(format!(
            "{text:?} is not one of geo_point, geo_shape, float_vector(N), ip, bit(N), char(N); all others follow from the source"
        )),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name in quotation marks.
    Name(String),
    /// A keyword, in lower case.
    Word(String),
    Number(String),
    Text,
    Sign(char),
}

fn tokens(ddl: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut characters = ddl.chars().peekable();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            c if c.is_whitespace() => continue,
            '"' => Token::Name(enclosed(&mut characters, '"')?),
            '\'' => {
                enclosed(&mut characters, '\'')?;
                Token::Text
            }
            c if c.is_ascii_digit() => Token::Number(run(c, &mut characters, |c| c.is_ascii_digit())),
            c if c.is_alphabetic() || c == '_' => {
                Token::Word(run(c, &mut characters, |c| c.is_alphanumeric() || c == '_').to_lowercase())
            }
            c => Token::Sign(c),
        });
    }
    Ok(tokens)
}

/// The text up to the closing mark; a doubled mark means the mark.
fn enclosed(characters: &mut Peekable<Chars<'_>>, mark: char) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match characters.next() {
            None => return Err(format!("{mark} is not closed")),
            Some(c) if c != mark => text.push(c),
            Some(_) if characters.next_if_eq(&mark).is_some() => text.push(mark),
            Some(_) => return Ok(text),
        }
    }
}

fn run(first: char, characters: &mut Peekable<Chars<'_>>, take: impl Fn(char) -> bool) -> String {
    let mut text = String::from(first);
    while let Some(c) = characters.next_if(|c| take(*c)) {
        text.push(c);
    }
    text
}

/// Words that may follow a column's type.
const AFTER_THE_TYPE: [&str; 9] =
    ["not", "null", "default", "generated", "index", "storage", "primary", "constraint", "check"];

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn advance(&mut self) -> Result<Token, String> {
        let token = self.tokens.get(self.at).cloned().ok_or("the statement ends too early")?;
        self.at += 1;
        Ok(token)
    }

    fn next_if(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: char) -> bool {
        self.next_if(&Token::Sign(sign))
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(format!("{sign:?} is expected, not {:?}", self.tokens.get(self.at))),
        }
    }

    /// Columns or fields up to the closing parenthesis. Constraints and indexes between them have no types.
    fn fields(&mut self) -> Result<Vec<(String, StoredType)>, String> {
        let mut fields = Vec::new();
        loop {
            if let Some(Token::Name(name)) = self.tokens.get(self.at).cloned() {
                self.at += 1;
                fields.push((name, self.data_type()?));
            }
            let mut depth = 0;
            loop {
                match self.advance()? {
                    Token::Sign('(' | '[') => depth += 1,
                    Token::Sign(')') if depth == 0 => return Ok(fields),
                    Token::Sign(')' | ']') => depth -= 1,
                    Token::Sign(',') if depth == 0 => break,
                    _ => {}
                }
            }
        }
    }

    fn data_type(&mut self) -> Result<StoredType, String> {
        let mut words: Vec<String> = Vec::new();
        while let Some(Token::Word(word)) = self.tokens.get(self.at)
            && !AFTER_THE_TYPE.contains(&word.as_str())
        {
            words.push(word.clone());
            self.at += 1;
        }
        match words.join(" ").as_str() {
            "" => Err(format!("a type is expected, not {:?}", self.tokens.get(self.at))),
            "object" => self.object(),
            "array" => {
                self.expect('(')?;
                let item = self.data_type()?;
                // Fields of objects in arrays may have storage options, the items themselves have none.
                self.expect(')')?;
                Ok(StoredType::Array(Box::new(item)))
            }
            "numeric" => {
                let mut bounds = self.bounds()?.into_iter().map(|bound| u8::try_from(bound).ok());
                Ok(StoredType::Numeric { precision: bounds.next().flatten(), scale: bounds.next().flatten() })
            }
            // The catalogue calls a text with a length by the same name as one without.
            "varchar" | "character varying" => Ok(match self.bounds()?.first() {
                Some(most) => StoredType::Varchar(*most),
                None => StoredType::Scalar("text".to_owned()),
            }),
            other => Ok(StoredType::named(other, self.bounds()?.first().copied())),
        }
    }

    fn object(&mut self) -> Result<StoredType, String> {
        let mut policy = Policy::Dynamic;
        if self.sign('(') {
            policy = match self.advance()? {
                Token::Word(word) if word == "strict" => Policy::Strict,
                Token::Word(word) if word == "dynamic" => Policy::Dynamic,
                Token::Word(word) if word == "ignored" => Policy::Ignored,
                other => return Err(format!("a policy is expected, not {other:?}")),
            };
            self.expect(')')?;
        }
        let mut fields = Vec::new();
        if self.next_if(&Token::Word("as".to_owned())) {
            self.expect('(')?;
            fields = self.fields()?;
        }
        Ok(StoredType::Object(policy, fields))
    }

    /// The numbers in parentheses after a type, if there are any.
    fn bounds(&mut self) -> Result<Vec<u32>, String> {
        let mut bounds = Vec::new();
        if self.sign('(') {
            loop {
                match self.advance()? {
                    Token::Number(digits) => bounds.extend(digits.parse::<u32>()),
                    Token::Sign(',') => {}
                    Token::Sign(')') => break,
                    other => return Err(format!("a number is expected, not {other:?}")),
                }
            }
        }
        Ok(bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As CrateDB 6.4.3 writes it.
    const DDL: &str = r#"CREATE TABLE IF NOT EXISTS "doc"."x" (
   "b" BIGINT NOT NULL,
   "tz" TIMESTAMP WITH TIME ZONE DEFAULT now(),
   "d" DOUBLE PRECISION,
   "an" ARRAY(NUMERIC(20, 2)),
   "o" OBJECT(DYNAMIC) AS (
      "f" DOUBLE PRECISION NOT NULL,
      "a, ""b"")" TEXT INDEX OFF STORAGE WITH (
         columnstore = false
      ),
      "nl" ARRAY(UNDEFINED),
      "lo" ARRAY(OBJECT(STRICT) AS (
         "q" BIGINT,
         "w" ARRAY(ARRAY(VARCHAR(3)))
      )),
      "n" NUMERIC(38)
   ),
   "oo" OBJECT(IGNORED),
   "bn" BIGINT STORAGE WITH (
      columnstore = false
   ),
   "g" BIGINT GENERATED ALWAYS AS "b" + 1,
   "tx" TEXT DEFAULT 'a, b) "',
   "gs" ARRAY(GEO_SHAPE) INDEX USING QUADTREE WITH (
      precision = '1m'
   ),
   CONSTRAINT ck CHECK((("b" > - 2147483648) OR ("b" IS NULL)) OR ("b" = - 2147483648)),
   PRIMARY KEY ("b", "tz"),
   "last" VARCHAR(5)
)
CLUSTERED INTO 4 SHARDS
WITH (
   "mapping.total_fields.limit" = 3000
)"#;

    #[test]
    fn every_column_has_its_type_down_to_the_last_field() {
        let shown: Vec<String> = declared_types(DDL)
            .unwrap()
            .into_iter()
            .map(|(name, data_type)| format!("{name} {data_type}"))
            .collect();
        assert_eq!(
            shown,
            [
                "b BIGINT",
                "tz TIMESTAMP WITH TIME ZONE",
                "d DOUBLE PRECISION",
                "an ARRAY(NUMERIC(20,2))",
                "o OBJECT(DYNAMIC) AS (\"f\" DOUBLE PRECISION, \"a, \"\"b\"\")\" TEXT, \"nl\" ARRAY(UNDEFINED), \
                 \"lo\" ARRAY(OBJECT(STRICT) AS (\"q\" BIGINT, \"w\" ARRAY(ARRAY(VARCHAR(3))))), \"n\" NUMERIC(38))",
                "oo OBJECT(IGNORED)",
                "bn BIGINT",
                "g BIGINT",
                "tx TEXT",
                "gs ARRAY(GEO_SHAPE)",
                "last VARCHAR(5)",
            ]
        );
    }

    #[test]
    fn types_of_the_server_s_own_are_read_as_they_are_written() {
        for text in ["GEO_POINT", "GEO_SHAPE", "FLOAT_VECTOR(768)", "IP", "BIT(8)", "CHARACTER(3)"] {
            assert_eq!(native_type(text).unwrap().to_string(), text);
        }
        assert_eq!(native_type("char(3)"), Ok(Native::Char(3)));
        assert_eq!(native_type("float_vector"), Ok(Native::FloatVector(1)));
        for text in ["", "text", "varchar(3)", "int32", "decimal(10,2)", "date(%d.%m.%Y)", "ip(", "ip, ip"] {
            assert!(!is_native_type(text), "{text}");
        }
    }

    #[test]
    fn a_statement_that_is_cut_is_an_error_at_every_place() {
        let end = DDL.rfind("\n)\nCLUSTERED").unwrap();
        for (at, _) in DDL.char_indices().take_while(|(at, _)| *at <= end) {
            assert!(declared_types(&DDL[..at]).is_err(), "{}", &DDL[..at]);
        }
    }
}
