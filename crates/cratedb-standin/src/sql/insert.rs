//! `INSERT` with values, and from `UNNEST` with casts.

use super::cursor::Cursor;
use super::tokens::Token;
use super::{Cast, Expression, OnConflict, Statement};
use crate::types::{Policy, Type};

/// The source of a selected column.
enum Selected {
    Column(String),
    Parameter(usize),
}

impl Cursor {
    /// The statement after `INSERT INTO`.
    pub(super) fn insert(&mut self) -> Result<Statement, String> {
        let name = self.name()?;
        let columns = self.list(Self::ident)?;
        if self.words("values") {
            let rows = self.items(|cursor| cursor.list(Self::expression))?;
            return Ok(Statement::Insert { name, columns, rows, conflict: self.on_conflict()? });
        }
        self.expect("(")?;
        self.expect("select")?;
        let selected = self.items(Self::selected)?;
        self.expect("from unnest")?;
        let parameters = self.list(Self::expression)?;
        self.expect("as")?;
        self.ident()?;
        let names = self.list(Self::ident)?;
        self.expect(")")?;
        let source = |(column, cast): (Selected, Cast)| {
            let column = match column {
                Selected::Column(column) => column,
                Selected::Parameter(number) => return Ok((number, cast)),
            };
            let at = names.iter().position(|name| *name == column).ok_or("Column unknown")?;
            match parameters.get(at) {
                Some(Expression::Parameter(number)) => Ok((*number, cast)),
                _ => Err("unnest takes parameters".to_owned()),
            }
        };
        let sources = selected.into_iter().map(source).collect::<Result<_, _>>()?;
        Ok(Statement::Unnest { name, columns, sources, conflict: self.on_conflict()? })
    }

    fn on_conflict(&mut self) -> Result<OnConflict, String> {
        if self.words("on conflict do nothing") {
            return Ok(OnConflict::Ignore);
        }
        if !self.words("on conflict") {
            return Ok(OnConflict::Refuse);
        }
        let key = self.list(Self::ident)?;
        self.expect("do update set")?;
        let set = self.items(|cursor| {
            let column = cursor.ident()?;
            cursor.expect("=")?;
            cursor.expect("excluded")?;
            cursor.expect(".")?;
            match cursor.ident()? == column {
                true => Ok(column),
                false => Err(format!("line 1: only {column} = excluded.{column} is supported")),
            }
        })?;
        Ok(OnConflict::Update { key, set })
    }

    /// A column of UNNEST with its cast.
    fn selected(&mut self) -> Result<(Selected, Cast), String> {
        if let Some(Token::Parameter(number)) = self.peek() {
            let number = *number;
            self.skip();
            return Ok((Selected::Parameter(number), Cast::Scalar));
        }
        if self.words("case when") {
            let column = self.ident()?;
            self.expect("is null then null else")?;
            if self.ident()? != column {
                return Err(format!("line 1: only {column} is supported"));
            }
            self.expect("::")?;
            let cast = Cast::UnlessNull(self.data_type()?);
            self.expect("end")?;
            return Ok((Selected::Column(column), cast));
        }
        if !self.sign("(") {
            let column = self.ident()?;
            let cast = if self.sign("::") { Cast::Direct(self.data_type()?) } else { Cast::Plain };
            return Ok((Selected::Column(column), cast));
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
        Ok((Selected::Column(column), Cast::OfField(self.data_type()?)))
    }
}
