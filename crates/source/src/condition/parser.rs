//! Parses conditions: SQL keywords, names in double quotes where necessary, and dates and timestamps with or
//! without quotes.

use sawmill_profile::{Error, Kind, Result};

use crate::condition::{Literal, Node, Operator};

/// Most levels of nested conditions, so that no text exhausts the stack.
const MAX_LEVELS: usize = 64;

/// Most characters of a condition that an error shows.
const MAX_SHOWN: usize = 400;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// An unquoted word: a name or a keyword.
    Word(String),
    /// A name in double quotes.
    Name(String),
    Literal(Literal),
    Symbol(&'static str),
}

/// Parses `text` into a tree.
pub(super) fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0 };
    let node = parser.any(0)?;
    match parser.at == parser.tokens.len() {
        true => Ok(node),
        false => Err(parser.expected("and, or, or the end")),
    }
}

fn refused(text: &str, at: usize, what: String) -> Error {
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    let shown = match text.len() > MAX_SHOWN {
        true => text.chars().skip(before.saturating_sub(MAX_SHOWN / 2)).take(MAX_SHOWN).collect(),
        false => text.to_owned(),
    };
    let character = before + 1;
    Error::new(Kind::Config, what)
        .at(format!("the condition {shown:?}, character {character}"))
        .advise("write it like: ts >= 2024-01-01 and vendor in (1, 2) and name <> 'x' and tip is not null")
}

/// Returns the tokens of the text, each with its first byte.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    const SYMBOLS: [&str; 10] = ["<=", ">=", "<>", "!=", "=", "<", ">", "(", ")", ","];
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = |more: &dyn Fn(char) -> bool| rest.find(|c: char| !more(c)).unwrap_or(rest.len());
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first == '\'' || first == '"' {
            let Some((content, length)) = between_quotes(rest, first) else {
                return Err(refused(text, at, format!("unterminated {first}")));
            };
            let token = match first {
                '"' => Token::Name(content),
                _ => Token::Literal(Literal::Text(content)),
            };
            (token, length)
        } else if (first == 'x' || first == 'X') && rest[1..].starts_with('\'') {
            let content = between_quotes(&rest[1..], '\'')
                .and_then(|(digits, length)| Some((Literal::of_hexadecimal(&digits)?, length + 1)));
            let Some((literal, length)) = content else {
                return Err(refused(text, at, "expected pairs of hexadecimal digits".into()));
            };
            (Token::Literal(literal), length)
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            (Token::Symbol(symbol), symbol.len())
        } else if first.is_alphabetic() || first == '_' {
            let length = run(&|c| c.is_alphanumeric() || c == '_' || c == '.');
            (Token::Word(rest[..length].to_owned()), length)
        } else if first.is_ascii_digit() || matches!(first, '-' | '+' | '.') {
            let mut length = run(&|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '+' | '-'));
            // A date, a space and a time form one timestamp.
            let time = rest[length..].strip_prefix(' ').filter(|time| is_time(time));
            if let Some(time) = time.filter(|_| is_date(&rest[..length])) {
                let more = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '+' | '-');
                length += 1 + time.find(|c| !more(c)).unwrap_or(time.len());
            }
            (Token::Literal(Literal::unquoted(&rest[..length])), length)
        } else {
            return Err(refused(text, at, format!("unexpected {first:?}")));
        };
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let digits =
        |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    digits(parts.next()) && digits(parts.next()) && digits(parts.next()) && parts.next().is_none()
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [a, b, b':', ..] if a.is_ascii_digit() && b.is_ascii_digit())
}

/// Returns the text between the quotes at the start of `text`, with doubled quotes resolved, and its length
/// including quotes.
fn between_quotes(text: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c != quote {
            content.push(c);
        } else if characters.peek().is_some_and(|(_, next)| *next == quote) {
            characters.next();
            content.push(quote);
        } else {
            return Some((content, at + 1));
        }
    }
    None
}

/// One side of a comparison.
enum Operand {
    Column(String),
    Literal(Literal),
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    /// Consumes the next token if it is this keyword.
    fn word(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Word(text)) if text.eq_ignore_ascii_case(word));
        self.at += usize::from(here);
        here
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Symbol(text)) if *text == symbol);
        self.at += usize::from(here);
        here
    }

    fn expected(&self, what: &str) -> Error {
        self.expected_at(self.at, what)
    }

    /// The error for the text at a token. It is made only on demand, because that takes as long as the text.
    fn expected_at(&self, token: usize, what: &str) -> Error {
        let (at, found) = match self.tokens.get(token) {
            None => (self.text.len(), "the end".to_owned()),
            Some((at, Token::Word(text))) => (*at, text.clone()),
            Some((at, Token::Name(name))) => (*at, format!("{name:?}")),
            Some((at, Token::Literal(literal))) => (*at, literal.to_string()),
            Some((at, Token::Symbol(symbol))) => (*at, (*symbol).to_owned()),
        };
        refused(self.text, at, format!("expected {what}, found {found}"))
    }

    fn any(&mut self, level: usize) -> Result<Node> {
        let mut nodes = vec![self.all(level)?];
        while self.word("or") {
            nodes.push(self.all(level)?);
        }
        Ok(single(nodes, Node::Or))
    }

    fn all(&mut self, level: usize) -> Result<Node> {
        let mut nodes = vec![self.one(level)?];
        while self.word("and") {
            nodes.push(self.one(level)?);
        }
        Ok(single(nodes, Node::And))
    }

    fn one(&mut self, level: usize) -> Result<Node> {
        if level == MAX_LEVELS {
            return Err(self.expected(&format!("at most {MAX_LEVELS} nested conditions")));
        }
        if self.word("not") {
            return Ok(Node::Not(Box::new(self.one(level + 1)?)));
        }
        if self.symbol("(") {
            let node = self.any(level + 1)?;
            return if self.symbol(")") { Ok(node) } else { Err(self.expected(")")) };
        }
        self.predicate()
    }

    fn predicate(&mut self) -> Result<Node> {
        match self.operand("a column")? {
            Operand::Column(column) => self.of_column(column),
            Operand::Literal(literal) => {
                let Some(operator) = self.operator() else { return Err(self.expected("a comparison")) };
                let column = self.column()?;
                Ok(Node::Compare { column, operator: operator.turned(), literal })
            }
        }
    }

    fn of_column(&mut self, column: String) -> Result<Node> {
        if let Some(operator) = self.operator() {
            let literal = self.literal()?;
            return Ok(Node::Compare { column, operator, literal });
        }
        if self.word("is") {
            let negated = self.word("not");
            if !self.word("null") {
                return Err(self.expected(if negated { "null" } else { "null or not null" }));
            }
            return Ok(negated_if(negated, Node::IsNull { column }));
        }
        let negated = self.word("not");
        if self.word("in") {
            if !self.symbol("(") {
                return Err(self.expected("("));
            }
            let mut literals = vec![self.literal()?];
            while self.symbol(",") {
                literals.push(self.literal()?);
            }
            if !self.symbol(")") {
                return Err(self.expected(", or )"));
            }
            return Ok(negated_if(negated, Node::OneOf { column, literals }));
        }
        if self.word("between") {
            let low = self.literal()?;
            if !self.word("and") {
                return Err(self.expected("and"));
            }
            let high = self.literal()?;
            let from = Node::Compare { column: column.clone(), operator: Operator::AtLeast, literal: low };
            let to = Node::Compare { column, operator: Operator::AtMost, literal: high };
            return Ok(negated_if(negated, Node::And(vec![from, to])));
        }
        if self.word("like") {
            let start = self.at;
            let Literal::Text(pattern) = self.literal()? else {
                return Err(self.expected_at(start, "a pattern in single quotes"));
            };
            return Ok(negated_if(negated, Node::Like { column, pattern }));
        }
        if negated {
            return Err(self.expected("in, between or like"));
        }
        // A boolean column is itself a condition.
        Ok(Node::Compare { column, operator: Operator::Equal, literal: Literal::Boolean(true) })
    }

    fn operator(&mut self) -> Option<Operator> {
        Operator::SIGNS.into_iter().find(|(symbol, _)| self.symbol(symbol)).map(|(_, operator)| operator)
    }

    fn column(&mut self) -> Result<String> {
        let start = self.at;
        match self.operand("a column")? {
            Operand::Column(name) => Ok(name),
            Operand::Literal(_) => Err(self.expected_at(start, "a column")),
        }
    }

    fn literal(&mut self) -> Result<Literal> {
        const EXPECTED: &str = "a number, a date, 'text', true or false";
        if matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case("null")) {
            return Err(self.expected(&format!("{EXPECTED} (write: is null)")));
        }
        let start = self.at;
        match self.operand(EXPECTED)? {
            Operand::Literal(literal) => Ok(literal),
            Operand::Column(_) => Err(self.expected_at(start, EXPECTED)),
        }
    }

    fn operand(&mut self, expected: &str) -> Result<Operand> {
        const KEYWORDS: [&str; 8] = ["and", "or", "not", "in", "is", "like", "between", "null"];
        let word = |word: &str, one: &str| word.eq_ignore_ascii_case(one);
        let operand = match self.peek() {
            Some(Token::Name(name)) => Operand::Column(name.clone()),
            Some(Token::Literal(literal)) => Operand::Literal(literal.clone()),
            Some(Token::Word(text)) if word(text, "true") => Operand::Literal(Literal::Boolean(true)),
            Some(Token::Word(text)) if word(text, "false") => Operand::Literal(Literal::Boolean(false)),
            Some(Token::Word(text)) if !KEYWORDS.iter().any(|keyword| word(text, keyword)) => {
                // SQL's syntax for a literal of one of these types.
                let typed = ["date", "time", "timestamp", "timestamptz"].iter().any(|name| word(text, name));
                match self.tokens.get(self.at + 1) {
                    Some((_, Token::Literal(literal))) if typed => {
                        let literal = Operand::Literal(literal.clone());
                        self.at += 2;
                        return Ok(literal);
                    }
                    _ => Operand::Column(text.clone()),
                }
            }
            _ => return Err(self.expected(expected)),
        };
        self.at += 1;
        Ok(operand)
    }
}

impl Operator {
    /// Returns the same comparison with its sides exchanged.
    fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

fn single(mut nodes: Vec<Node>, several: impl FnOnce(Vec<Node>) -> Node) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => several(nodes),
    }
}

fn negated_if(negated: bool, node: Node) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}

#[cfg(test)]
mod tests {
    use crate::condition::Condition;

    fn shown(text: &str) -> String {
        text.parse::<Condition>().map_or_else(|error| error.to_string(), |condition| condition.to_string())
    }

    #[test]
    fn conditions_have_one_canonical_form() {
        for (text, form) in [
            ("ts >= 2024-01-01 AND vendor = 2", r#""ts" >= '2024-01-01' and "vendor" = 2"#),
            ("ts<2024-01-01 10:00:00.5+02:00", r#""ts" < '2024-01-01 10:00:00.5+02:00'"#),
            ("ts < timestamp '2024-01-01T10:00'", r#""ts" < '2024-01-01T10:00'"#),
            ("2 < vendor", r#""vendor" > 2"#),
            ("a=1 or b!=-2.5e3 and c", r#""a" = 1 or ("b" <> -2.5e3 and "c" = true)"#),
            ("not (a = 1 or b = 2)", r#"not ("a" = 1 or "b" = 2)"#),
            (r#""odd ""name""" is not null"#, r#"not ("odd ""name""" is null)"#),
            ("a between 1 and 3 and b", r#"("a" >= 1 and "a" <= 3) and "b" = true"#),
            ("name not in ('it''s', 'x')", r#"not ("name" in ('it''s', 'x'))"#),
            ("name like 'A%'", r#""name" like 'A%'"#),
            ("key = x'00fF'", r#""key" = x'00ff'"#),
        ] {
            assert_eq!(shown(text), form, "{text}");
            assert_eq!(shown(form), form, "the form of {text} parses to itself");
        }
    }

    #[test]
    fn errors_name_what_was_expected_and_where() {
        for (text, what) in [
            ("", "expected a column, found the end"),
            ("a", ""),
            ("a =", "expected a number, a date, 'text', true or false, found the end"),
            ("a = b", "expected a number, a date, 'text', true or false, found b"),
            ("a = null", "(write: is null), found null"),
            ("a = 1 b = 2", "expected and, or, or the end, found b"),
            ("(a = 1", "expected ), found the end"),
            ("a = 'x", "unterminated '"),
            ("a ~ 1", "unexpected '~'"),
            ("1 = 1", "expected a column, found 1"),
            ("a in ()", "found )"),
            ("a like 5", "expected a pattern in single quotes, found 5"),
        ] {
            assert!(shown(text).contains(what), "{text}: {}", shown(text));
        }
        assert!(shown("ä = 1 ~").contains("character 7"), "{}", shown("ä = 1 ~"));
        // A long text is read in one go, and an error shows the place in it alone.
        let long = format!("a in ({}) ~", "1234, ".repeat(500_000) + "1");
        let error = shown(&long);
        assert!(
            error.contains("unexpected '~'") && error.contains("1234, 1)") && error.len() < 1000,
            "{error}"
        );
        let parsed = long.trim_end_matches(" ~").parse::<Condition>().map(drop);
        assert!(parsed.is_ok());
        assert!(shown(&"(".repeat(100_000)).contains("at most 64"));
    }
}
