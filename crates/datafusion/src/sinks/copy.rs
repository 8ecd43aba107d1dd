//! `COPY (SELECT ..) TO pg.orders`. DataFusion's parser takes only files as the target of COPY.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, Query, Statement};
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// A COPY of the rows of a query to a table whose name has a schema.
#[derive(Debug)]
pub(crate) struct Copied {
    pub query: Box<Query>,
    pub table: ObjectName,
    /// The named columns; empty means the first ones.
    pub columns: Vec<Ident>,
    /// Clauses beyond that, which are for files.
    pub more: Option<String>,
}

/// The statement, if it is a COPY to a table. For any other text, even if it is not SQL, DataFusion reports the
/// error.
pub(crate) fn to_table(state: &SessionState, sql: &str) -> Option<Copied> {
    let options = &state.config().options().sql_parser;
    let dialect = dialect_from_str(options.dialect.as_ref())?;
    let mut parser = Parser::new(dialect.as_ref())
        .with_recursion_limit(options.recursion_limit.into())
        .try_with_sql(sql)
        .ok()?;
    if !parser.parse_keyword(Keyword::COPY) {
        return None;
    }
    let query = source(&mut parser, dialect.as_ref())?;
    let before = text_until(&mut parser, |token| is_keyword(token, Keyword::TO));
    parser.expect_keyword(Keyword::TO).ok()?;
    let table = parser.parse_object_name(true).ok().filter(|table| table.0.len() > 1)?;
    let columns = match parser.peek_token().token {
        Token::LParen => {
            parser.next_token();
            let columns = parser.parse_comma_separated(Parser::parse_identifier).ok()?;
            parser.expect_token(&Token::RParen).ok()?;
            columns
        }
        _ => Vec::new(),
    };
    let after = text_until(&mut parser, |token| *token == Token::EOF);
    let more = [before, after].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    let more = more.trim_end_matches(';').trim();
    Some(Copied { query, table, columns, more: (!more.is_empty()).then(|| more.to_owned()) })
}

/// A query in parentheses, or all rows of a table or of a table function.
fn source(parser: &mut Parser<'_>, dialect: &dyn Dialect) -> Option<Box<Query>> {
    if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query().ok()?;
        parser.expect_token(&Token::RParen).ok()?;
        return Some(query);
    }
    let rows = parser.parse_expr().ok()?;
    match Parser::parse_sql(dialect, &format!("SELECT * FROM {rows}")).ok()?.pop()? {
        Statement::Query(query) => Some(query),
        _ => None,
    }
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}

/// The text of the tokens before the one that `ends` finds, or before the end.
fn text_until(parser: &mut Parser<'_>, ends: impl Fn(&Token) -> bool) -> String {
    let mut text: Vec<String> = Vec::new();
    loop {
        let token = parser.peek_token().token;
        if token == Token::EOF || ends(&token) {
            return text.join(" ");
        }
        text.push(parser.next_token().token.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::SessionContext;

    fn copied(sql: &str) -> Option<String> {
        let Copied { query, table, columns, more } = to_table(&SessionContext::new().state(), sql)?;
        Some(format!("{query} | {table} | {columns:?} | {more:?}").replace("quote_style: None, ", ""))
    }

    #[test]
    fn a_name_with_a_schema_is_a_table_and_everything_else_is_left_to_datafusion() {
        let found = copied("copy (SELECT 1 AS a) TO pg.t;").unwrap();
        assert_eq!(found, "SELECT 1 AS a | pg.t | [] | None");
        let found = copied("COPY (WITH x AS (SELECT 1) SELECT * FROM x) TO crate.doc.\"T\" (a, b)").unwrap();
        assert!(
            found.starts_with("WITH x AS (SELECT 1) SELECT * FROM x | crate.doc.\"T\" | [Ident"),
            "{found}"
        );
        let found = copied("COPY orders TO pg.t").unwrap();
        assert!(found.starts_with("SELECT * FROM orders | pg.t"), "{found}");
        let found = copied("COPY gen('orders', rows => 5) TO pg.t").unwrap();
        assert!(found.starts_with("SELECT * FROM gen('orders', rows => 5) | pg.t"), "{found}");
        let found = copied("COPY gen('it''s', rows => cast(5 AS int)) TO pg.t").unwrap();
        assert!(found.starts_with("SELECT * FROM gen('it''s', rows => CAST(5 AS INT)) | pg.t"), "{found}");
        let found = copied("COPY (SELECT 1) STORED AS PARQUET TO pg.t OPTIONS ('a' '1')").unwrap();
        assert!(found.ends_with("| Some(\"STORED AS PARQUET OPTIONS ( 'a' '1' )\")"), "{found}");
        for other in [
            "COPY (SELECT 1) TO 'pg.t'",
            "COPY (SELECT 1) TO t",
            "COPY (SELECT 1 TO pg.t",
            "COPY (SELECT 1)",
            "SELECT 1",
            "COPY",
            "'",
        ] {
            assert_eq!(copied(other), None, "{other}");
        }
    }
}
