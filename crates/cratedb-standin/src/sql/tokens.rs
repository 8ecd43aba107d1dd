//! Splits SQL into tokens.

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A word, in lower case.
    Word(String),
    /// A quoted name, unchanged.
    Quoted(String),
    /// A single-quoted text.
    Text(String),
    /// A number.
    Number(String),
    /// `?` or `$n`: the parameter's index from 0.
    Parameter(usize),
    /// Anything else.
    Sign(String),
}

/// Splits a statement into tokens.
pub(crate) fn tokens(sql: &str) -> Result<Vec<Token>, String> {
    let characters: Vec<char> = sql.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    let mut parameters = 0;
    while let Some(c) = characters.get(at).copied() {
        let run = |mut at: usize, take: fn(char) -> bool| {
            while characters.get(at).copied().is_some_and(take) {
                at += 1;
            }
            at
        };
        match c {
            c if c.is_whitespace() => at += 1,
            '/' if characters.get(at + 1) == Some(&'*') => {
                let rest = characters.get(at + 2..).unwrap_or_default();
                let end = rest.windows(2).position(|pair| pair == ['*', '/']);
                at += end.ok_or("a comment is not closed")? + 4;
            }
            '"' => out.push(Token::Quoted(enclosed(&characters, &mut at, '"')?)),
            '\'' => out.push(Token::Text(enclosed(&characters, &mut at, '\'')?)),
            '?' => {
                out.push(Token::Parameter(parameters));
                parameters += 1;
                at += 1;
            }
            '$' => {
                let end = run(at + 1, |c| c.is_ascii_digit());
                let number: String = characters[at + 1..end].iter().collect();
                let number: usize = number.parse().map_err(|_| "a parameter has no number")?;
                out.push(Token::Parameter(number.saturating_sub(1)));
                at = end;
            }
            c if c.is_ascii_digit() => {
                let end = run(at, |c| c.is_ascii_digit() || c == '.');
                out.push(Token::Number(characters[at..end].iter().collect()));
                at = end;
            }
            c if c.is_alphabetic() || c == '_' => {
                let end = run(at, |c| c.is_alphanumeric() || c == '_');
                out.push(Token::Word(characters[at..end].iter().collect::<String>().to_lowercase()));
                at = end;
            }
            ':' if characters.get(at + 1) == Some(&':') => {
                out.push(Token::Sign("::".into()));
                at += 2;
            }
            c => {
                out.push(Token::Sign(c.to_string()));
                at += 1;
            }
        }
    }
    Ok(out)
}

/// The text up to the closing mark. A doubled mark is one mark of the text.
fn enclosed(characters: &[char], at: &mut usize, mark: char) -> Result<String, String> {
    let mut text = String::new();
    *at += 1;
    loop {
        match characters.get(*at) {
            None => return Err("a quotation mark is not closed".to_owned()),
            Some(c) if *c == mark && characters.get(*at + 1) == Some(&mark) => {
                text.push(mark);
                *at += 2;
            }
            Some(c) if *c == mark => {
                *at += 1;
                return Ok(text);
            }
            Some(c) => {
                text.push(*c);
                *at += 1;
            }
        }
    }
}
