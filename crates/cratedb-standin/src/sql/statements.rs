//! The statements by their first words, and those that need no room of their own.

use super::cursor::Cursor;
use super::{Select, Statement};

impl Cursor {
    pub(super) fn statement(&mut self) -> Result<Statement, String> {
        if self.words("create table") {
            return self.create();
        }
        if self.words("drop table") {
            let if_exists = self.words("if exists");
            return Ok(Statement::Drop { name: self.name()?, if_exists });
        }
        if self.words("alter cluster swap table") {
            return self.swap();
        }
        if self.words("alter table") {
            return self.alter();
        }
        if self.words("refresh table") {
            return Ok(Statement::Refresh(self.name()?));
        }
        if self.words("optimize table") {
            return self.optimize();
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
            return self.update();
        }
        if self.words("delete from") {
            return Ok(Statement::Delete { name: self.name()?, condition: self.condition_if_any()? });
        }
        if self.words("kill") {
            return Ok(Statement::Kill(self.any_text("a job")?));
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

    fn swap(&mut self) -> Result<Statement, String> {
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
        Ok(Statement::Swap { source, target, drop_source })
    }

    fn alter(&mut self) -> Result<Statement, String> {
        let name = self.name()?;
        if self.words("add column") {
            let mut columns = vec![self.column()?.0];
            while self.sign(",") {
                self.expect("add column")?;
                columns.push(self.column()?.0);
            }
            return Ok(Statement::AddColumns { name, columns });
        }
        if self.words("drop column") {
            return Ok(Statement::DropColumn { name, column: self.ident()? });
        }
        self.expect("rename to")?;
        Ok(Statement::Rename { name, to: self.ident()? })
    }

    fn optimize(&mut self) -> Result<Statement, String> {
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
        Ok(Statement::Optimize { name, flush })
    }

    fn update(&mut self) -> Result<Statement, String> {
        let name = self.name()?;
        self.expect("set")?;
        let set = self.items(|cursor| {
            let column = cursor.ident()?;
            cursor.expect("=")?;
            Ok((column, cursor.expression()?))
        })?;
        Ok(Statement::Update { name, set, condition: self.condition_if_any()? })
    }

    fn select(&mut self) -> Result<Statement, String> {
        let mut columns = Vec::new();
        let mut counted = false;
        if self.sign("*") {
            columns.push("*".to_owned());
        } else {
            loop {
                counted = self.words("count");
                if counted {
                    self.expect("(").and_then(|()| self.expect("*")).and_then(|()| self.expect(")"))?;
                } else {
                    columns.push(self.field()?);
                }
                if counted || !self.sign(",") {
                    break;
                }
            }
        }
        self.expect("from")?;
        let name = self.name()?;
        let condition = self.condition_if_any()?;
        let group = if self.words("group by") { Some(self.ident()?) } else { None };
        let grouped: Vec<String> = group.iter().cloned().collect();
        if counted && columns != grouped || !counted && group.is_some() {
            return Err("line 1: only one column and count(*) are grouped".to_owned());
        }
        let order = if self.words("order by") { self.items(Self::ident)? } else { Vec::new() };
        let limit = if self.words("limit") { Some(self.number()?) } else { None };
        Ok(Statement::Select(Select { name, columns, group, condition, order, limit }))
    }

    /// A column, or a field of an object column.
    fn field(&mut self) -> Result<String, String> {
        let mut name = self.ident()?;
        while self.sign("[") {
            let field = self.any_text("a field's name")?;
            self.expect("]")?;
            name += &format!("['{field}']");
        }
        Ok(name)
    }
}
