//! Parses the statements that the stand-in knows; everything else is a syntax error.

use crate::tokens::{Token, tokens};
use crate::value::{Policy, Type};

/// Schema and name.
pub type Name = (String, String);

/// A column of CREATE TABLE.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type; a generated column is a timestamp.
    pub data_type: Type,
    /// Rejects NULL.
    pub not_null: bool,
    /// Neither indexed nor in the column store.
    pub plain: bool,
    /// The `date_trunc` unit and source column of a generated column.
    pub generated: Option<(String, String)>,
}

/// A value in a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A column.
    Column(String),
    /// A literal, as JSON text.
    Literal(String),
    /// The argument with this index.
    Parameter(usize),
}

/// A condition.
#[derive(Clone, Debug)]
pub enum Condition {
    /// All are true.
    And(Vec<Condition>),
    /// At least one is true.
    Or(Vec<Condition>),
    /// `=`, `<` or `>`.
    Compare(Expression, char, Expression),
    /// The column's value is in the list.
    In(Expression, Vec<Expression>),
}

/// How a statement converts a value passed by column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cast {
    /// Unchanged.
    Plain,
    /// `c::type`
    Direct(Type),
    /// `(('{"a":' || c || '}')::object(ignored))['a']::type`
    OfField(Type),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// CREATE TABLE
    Create {
        name: Name,
        if_not_exists: bool,
        columns: Vec<Column>,
        key: Vec<String>,
        shards: usize,
        partitioned: Option<String>,
        /// The most columns and fields that the table may have.
        most_columns: usize,
        /// `translog.durability` is `ASYNC`: a crash loses acknowledged rows.
        asynchronous: bool,
    },
    /// DROP TABLE
    Drop { name: Name, if_exists: bool },
    /// ALTER TABLE ... RENAME TO
    Rename { name: Name, to: String },
    /// ALTER TABLE ... ADD COLUMN
    AddColumn { name: Name, column: Column },
    /// ALTER CLUSTER SWAP TABLE
    Swap { source: Name, target: Name, drop_source: bool },
    /// REFRESH TABLE
    Refresh(Name),
    /// OPTIMIZE TABLE
    Optimize { name: Name, flush: bool },
    /// INSERT ... VALUES
    Insert { name: Name, columns: Vec<String>, rows: Vec<Vec<Expression>>, ignore: bool },
    /// INSERT ... SELECT FROM UNNEST: the parameter and the cast for each column.
    Unnest { name: Name, columns: Vec<String>, sources: Vec<(usize, Cast)>, ignore: bool },
    /// SELECT; an empty list of columns is `count(*)`.
    Select {
        name: Name,
        columns: Vec<String>,
        condition: Option<Condition>,
        order: Vec<String>,
        limit: Option<usize>,
    },
    /// UPDATE
    Update { name: Name, set: Vec<(String, Expression)>, condition: Option<Condition> },
    /// DELETE
    Delete { name: Name, condition: Option<Condition> },
    /// SHOW CREATE TABLE
    ShowCreate(Name),
    /// SET, BEGIN and COMMIT
    Nothing(String),
}

/// Parses one statement; tables without a schema belong to `schema`.
pub fn parse(sql: &str, schema: &str) -> Result<Statement, String> {
    let mut parser = Parser { tokens: tokens(sql)?, at: 0, schema: schema.to_owned() };
    let statement = parser.statement()?;
    parser.sign(";");
    match parser.at == parser.tokens.len() {
        true => Ok(statement),
        false => Err(format!("line 1: mismatched input {:?}", parser.tokens[parser.at])),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    schema: String,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Consumes these words if all of them come next.
    fn words(&mut self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split(' ').collect();
        let found = wanted
            .iter()
            .enumerate()
            .all(|(i, word)| matches!(self.tokens.get(self.at + i), Some(Token::Word(w)) if w == word));
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(s)) if s == sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, what: &str) -> Result<(), String> {
        let found = if what.chars().all(|c| c.is_alphabetic() || c == ' ') {
            self.words(what)
        } else {
            self.sign(what)
        };
        if found { Ok(()) } else { Err(format!("line 1: expected {what}, not {:?}", self.peek())) }
    }

    fn ident(&mut self) -> Result<String, String> {
        let name = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => name.clone(),
            other => return Err(format!("line 1: expected a name, not {other:?}")),
        };
        self.at += 1;
        Ok(name)
    }

    fn name(&mut self) -> Result<Name, String> {
        let first = self.ident()?;
        match self.sign(".") {
            true => Ok((first, self.ident()?)),
            false => Ok((self.schema.clone(), first)),
        }
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        self.expect("(")?;
        let mut items = vec![item(self)?];
        while self.sign(",") {
            items.push(item(self)?);
        }
        self.expect(")")?;
        Ok(items)
    }

    fn number(&mut self) -> Result<usize, String> {
        let Some(Token::Number(text)) = self.peek() else { return Err("line 1: expected a number".into()) };
        let number = text.parse().map_err(|_| "line 1: expected a whole number")?;
        self.at += 1;
        Ok(number)
    }

    fn statement(&mut self) -> Result<Statement, String> {
        if self.words("create table") {
            return self.create();
        }
        if self.words("drop table") {
            let if_exists = self.words("if exists");
            return Ok(Statement::Drop { name: self.name()?, if_exists });
        }
        if self.words("alter cluster swap table") {
            let source = self.name()?;
            self.expect("to")?;
            let target = self.name()?;
            let drop_source = self.words("with") && {
                self.expect("(")?;
                if !self.words("drop_source") {
                    return Err("line 1: unknown option".to_owned());
                }
                self.expect("=")?;
                let value = self.words("true");
                self.expect(")")?;
                value
            };
            return Ok(Statement::Swap { source, target, drop_source });
        }
        if self.words("alter table") {
            let name = self.name()?;
            if self.words("add column") {
                return Ok(Statement::AddColumn { name, column: self.column()?.0 });
            }
            self.expect("rename to")?;
            return Ok(Statement::Rename { name, to: self.ident()? });
        }
        if self.words("refresh table") {
            return Ok(Statement::Refresh(self.name()?));
        }
        if self.words("optimize table") {
            let name = self.name()?;
            let mut flush = true;
            if self.words("with") {
                for (parameter, value) in self.list(Self::parameter)? {
                    match parameter.as_str() {
                        "flush" => flush = value == "true",
                        "only_expunge_deletes" | "max_num_segments" => {}
                        _ => return Err(format!("Setting '{parameter}' is not supported")),
                    }
                }
            }
            return Ok(Statement::Optimize { name, flush });
        }
        if self.words("show create table") {
            return Ok(Statement::ShowCreate(self.name()?));
        }
        if self.words("insert into") {
            return self.insert();
        }
        if self.words("select") {
            return self.select();
        }
        if self.words("update") {
            let name = self.name()?;
            self.expect("set")?;
            let mut set = Vec::new();
            loop {
                let column = self.ident()?;
                self.expect("=")?;
                set.push((column, self.expression()?));
                if !self.sign(",") {
                    break;
                }
            }
            return Ok(Statement::Update { name, set, condition: self.condition_if_any()? });
        }
        if self.words("delete from") {
            return Ok(Statement::Delete { name: self.name()?, condition: self.condition_if_any()? });
        }
        if self.words("begin") || self.words("commit") {
            return Ok(Statement::Nothing("BEGIN".into()));
        }
        if self.words("set session insert_select_fail_fast") {
            self.expect("=")?;
            self.expect("true")?;
            return Ok(Statement::Nothing("SET".into()));
        }
        Err(format!("line 1: mismatched input {:?}", self.peek()))
    }

    fn create(&mut self) -> Result<Statement, String> {
        let if_not_exists = self.words("if not exists");
        let name = self.name()?;
        let mut columns = Vec::new();
        let mut key = Vec::new();
        self.expect("(")?;
        loop {
            if self.words("primary key") {
                key = self.list(Self::ident)?;
            } else {
                let (column, primary) = self.column()?;
                if primary {
                    key.push(column.name.clone());
                }
                columns.push(column);
            }
            if !self.sign(",") {
                break;
            }
        }
        self.expect(")")?;
        let mut shards = 4;
        let mut partitioned = None;
        let mut most_columns = 1000;
        let mut asynchronous = false;
        loop {
            if self.words("partitioned by") {
                partitioned = self.list(Self::ident)?.pop();
            } else if self.words("clustered") {
                self.expect("into")?;
                shards = self.number()?;
                self.expect("shards")?;
            } else if self.words("with") {
                for (name, value) in self.list(Self::parameter)? {
                    match name.as_str() {
                        "number_of_replicas" | "refresh_interval" => {}
                        "translog.durability" => match value.to_uppercase().as_str() {
                            "ASYNC" => asynchronous = true,
                            "REQUEST" => asynchronous = false,
                            _ => return Err(format!("Unknown value [{value}] for setting [{name}]")),
                        },
                        "mapping.total_fields.limit" => {
                            most_columns = value.parse().map_err(|_| {
                                format!("Failed to parse value [{value}] for setting [index.{name}]")
                            })?;
                        }
                        _ => {
                            return Err(format!(
                                "Invalid property \"{name}\" passed to [ALTER | CREATE] TABLE statement"
                            ));
                        }
                    }
                }
            } else {
                break;
            }
        }
        if let Some(partition) = &partitioned
            && !key.is_empty()
            && !key.contains(partition)
        {
            return Err(format!(
                "Cannot use non primary key column '{partition}' in PARTITIONED BY clause if primary key is set on table"
            ));
        }
        Ok(Statement::Create {
            name,
            if_not_exists,
            columns,
            key,
            shards,
            partitioned,
            most_columns,
            asynchronous,
        })
    }

    /// `name = value` of a table, with the value as text.
    fn parameter(&mut self) -> Result<(String, String), String> {
        let name = self.ident()?;
        self.expect("=")?;
        let value = match self.peek() {
            Some(Token::Text(text) | Token::Number(text) | Token::Word(text)) => text.clone(),
            other => return Err(format!("line 1: expected a value, not {other:?}")),
        };
        self.at += 1;
        Ok((name, value))
    }

    fn column(&mut self) -> Result<(Column, bool), String> {
        let name = self.ident()?;
        let mut column =
            Column { name, data_type: Type::Timestamp(true), not_null: false, plain: false, generated: None };
        let generated = matches!(self.peek(), Some(Token::Word(word)) if word == "generated");
        if !generated {
            column.data_type = self.data_type()?;
        }
        let mut primary = false;
        let mut unindexed = false;
        loop {
            if self.words("not null") {
                column.not_null = true;
            } else if self.words("primary key") {
                primary = true;
            } else if self.words("index off") {
                unindexed = true;
            } else if self.words("storage with") {
                self.expect("(")?;
                if !self.words("columnstore") {
                    return Err("Invalid storage option".into());
                }
                self.expect("=")?;
                self.expect("false")?;
                self.expect(")")?;
                if matches!(column.data_type, Type::Boolean | Type::Object(..)) {
                    return Err("Invalid storage option \"columnstore\"".into());
                }
                column.plain = unindexed;
            } else if self.words("generated always as date_trunc") {
                self.expect("(")?;
                let Some(Token::Text(part)) = self.peek().cloned() else {
                    return Err("line 1: expected a part".into());
                };
                self.at += 1;
                self.expect(",")?;
                column.generated = Some((part, self.ident()?));
                self.expect(")")?;
            } else {
                return Ok((column, primary));
            }
        }
    }

    fn data_type(&mut self) -> Result<Type, String> {
        let word = self.ident()?;
        Ok(match word.as_str() {
            "boolean" => Type::Boolean,
            "smallint" => Type::Integer(16),
            "integer" | "int" => Type::Integer(32),
            "bigint" | "long" => Type::Integer(64),
            "real" => Type::Real,
            "double" => {
                self.expect("precision")?;
                Type::Double
            }
            "numeric" => match matches!(self.peek(), Some(Token::Sign(s)) if s == "(") {
                true => match self.list(Self::number)?.as_slice() {
                    [precision, scale] if *precision <= 38 => {
                        Type::Numeric(Some((*precision as u32, *scale as u32)))
                    }
                    _ => return Err("Precision and scale of NUMERIC are out of range".into()),
                },
                false => Type::Numeric(None),
            },
            "text" | "string" => Type::Text(None),
            "varchar" => Type::Text(self.list(Self::number)?.first().copied()),
            "timestamp" => {
                let zone = self.words("with time zone");
                if !zone {
                    self.expect("without time zone")?;
                }
                Type::Timestamp(zone)
            }
            "object" => {
                let mut policy = Policy::Dynamic;
                if matches!(self.peek(), Some(Token::Sign(s)) if s == "(") {
                    policy = match self.list(Self::ident)?.first().map(String::as_str) {
                        Some("strict") => Policy::Strict,
                        Some("ignored") => Policy::Ignored,
                        Some("dynamic") => Policy::Dynamic,
                        _ => return Err("line 1: unknown column policy".into()),
                    };
                }
                let fields = match self.words("as") {
                    true => self
                        .list(|parser| parser.column().map(|(column, _)| (column.name, column.data_type)))?,
                    false => Vec::new(),
                };
                Type::Object(policy, fields)
            }
            "array" => {
                self.expect("(")?;
                let item = self.data_type()?;
                self.expect(")")?;
                Type::Array(Box::new(item))
            }
            other => return Err(format!("Cannot find data type: {other}")),
        })
    }

    fn insert(&mut self) -> Result<Statement, String> {
        let name = self.name()?;
        let columns = self.list(Self::ident)?;
        if self.words("values") {
            let mut rows = vec![self.list(Self::expression)?];
            while self.sign(",") {
                rows.push(self.list(Self::expression)?);
            }
            return Ok(Statement::Insert {
                name,
                columns,
                rows,
                ignore: self.words("on conflict do nothing"),
            });
        }
        self.expect("(")?;
        self.expect("select")?;
        let mut selected = Vec::new();
        loop {
            selected.push(self.selected()?);
            if !self.sign(",") {
                break;
            }
        }
        self.expect("from unnest")?;
        let parameters = self.list(Self::expression)?;
        self.expect("as")?;
        self.ident()?;
        let names = self.list(Self::ident)?;
        self.expect(")")?;
        let source = |(column, cast): (String, Cast)| {
            let at = names.iter().position(|name| *name == column).ok_or("Column unknown")?;
            match parameters.get(at) {
                Some(Expression::Parameter(number)) => Ok((*number, cast)),
                _ => Err("unnest takes parameters".to_owned()),
            }
        };
        let sources = selected.into_iter().map(source).collect::<Result<_, _>>()?;
        Ok(Statement::Unnest { name, columns, sources, ignore: self.words("on conflict do nothing") })
    }

    /// A column of UNNEST with its cast.
    fn selected(&mut self) -> Result<(String, Cast), String> {
        if !self.sign("(") {
            let column = self.ident()?;
            let cast = if self.sign("::") { Cast::Direct(self.data_type()?) } else { Cast::Plain };
            return Ok((column, cast));
        }
        self.expect("(")?;
        self.text("{\"a\":")?;
        self.expect("|")?;
        self.expect("|")?;
        let column = self.ident()?;
        self.expect("|")?;
        self.expect("|")?;
        self.text("}")?;
        self.expect(")")?;
        self.expect("::")?;
        if self.data_type()? != Type::Object(Policy::Ignored, Vec::new()) {
            return Err("line 1: only object(ignored) is supported".to_owned());
        }
        self.expect(")")?;
        self.expect("[")?;
        self.text("a")?;
        self.expect("]")?;
        self.expect("::")?;
        Ok((column, Cast::OfField(self.data_type()?)))
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        let found = matches!(self.peek(), Some(Token::Text(t)) if t == text);
        self.at += usize::from(found);
        if found { Ok(()) } else { Err(format!("line 1: expected '{text}', not {:?}", self.peek())) }
    }

    fn select(&mut self) -> Result<Statement, String> {
        let mut columns = Vec::new();
        if self.words("count") {
            self.expect("(")?;
            self.expect("*")?;
            self.expect(")")?;
        } else if self.sign("*") {
            columns.push("*".to_owned());
        } else {
            columns.push(self.field()?);
            while self.sign(",") {
                columns.push(self.field()?);
            }
        }
        self.expect("from")?;
        let name = self.name()?;
        let condition = self.condition_if_any()?;
        let mut order = Vec::new();
        if self.words("order by") {
            order.push(self.ident()?);
            while self.sign(",") {
                order.push(self.ident()?);
            }
        }
        let limit = if self.words("limit") { Some(self.number()?) } else { None };
        Ok(Statement::Select { name, columns, condition, order, limit })
    }

    /// A column, or a field of an object column.
    fn field(&mut self) -> Result<String, String> {
        let mut name = self.ident()?;
        while self.sign("[") {
            let Some(Token::Text(field)) = self.peek().cloned() else {
                return Err("line 1: expected a field's name".into());
            };
            self.at += 1;
            self.expect("]")?;
            name += &format!("['{field}']");
        }
        Ok(name)
    }

    fn condition_if_any(&mut self) -> Result<Option<Condition>, String> {
        if self.words("where") { self.condition().map(Some) } else { Ok(None) }
    }

    fn condition(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.conjunction()?];
        while self.words("or") {
            terms.push(self.conjunction()?);
        }
        Ok(Condition::Or(terms))
    }

    fn conjunction(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.comparison()?];
        while self.words("and") {
            terms.push(self.comparison()?);
        }
        Ok(Condition::And(terms))
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        if self.sign("(") {
            let inner = self.condition()?;
            self.expect(")")?;
            return Ok(inner);
        }
        let left = self.expression()?;
        if self.words("in") {
            return Ok(Condition::In(left, self.list(Self::expression)?));
        }
        for sign in ["=", "<", ">"] {
            if self.sign(sign) {
                return Ok(Condition::Compare(left, sign.chars().next().unwrap_or('='), self.expression()?));
            }
        }
        Err(format!("line 1: expected a comparison at {:?}", self.peek()))
    }

    fn expression(&mut self) -> Result<Expression, String> {
        if self.words("concat") {
            self.expect("(")?;
            let column = self.ident()?;
            self.expect(",")?;
            self.at += 1;
            self.expect(")")?;
            return Ok(Expression::Column(column));
        }
        for word in ["null", "true", "false"] {
            if self.words(word) {
                return Ok(Expression::Literal(word.into()));
            }
        }
        if self.sign("[") {
            let mut items = Vec::new();
            while !self.sign("]") {
                match self.expression()? {
                    Expression::Literal(text) => items.push(text),
                    other => return Err(format!("line 1: {other:?} is not a literal")),
                }
                self.sign(",");
            }
            return Ok(Expression::Literal(format!("[{}]", items.join(","))));
        }
        let negative = self.sign("-");
        let expression = match self.peek().cloned() {
            Some(Token::Parameter(number)) => Expression::Parameter(number),
            Some(Token::Text(text)) => Expression::Literal(crate::json::quoted(&text)),
            Some(Token::Number(text)) => {
                Expression::Literal(format!("{}{text}", if negative { "-" } else { "" }))
            }
            Some(Token::Word(name) | Token::Quoted(name)) => Expression::Column(name),
            other => return Err(format!("line 1: expected a value at {other:?}")),
        };
        self.at += 1;
        Ok(expression)
    }
}
