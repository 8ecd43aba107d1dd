//! Statements that make, rename, exchange and remove tables.

use super::table::{Table, columns_of, too_many_columns};
use super::{Answer, Engine, Error, error, unknown_table};
use crate::sql::{CreateTable, Name};

impl Engine {
    pub(super) fn create(&self, create: CreateTable) -> Result<Answer, Error> {
        let name = create.name.clone();
        check_length(&name)?;
        let mut tables = self.lock();
        if tables.contains_key(&name) {
            if create.if_not_exists {
                return Answer::done(0);
            }
            let what = format!("RelationAlreadyExists[Relation '{}.{}' already exists.]", name.0, name.1);
            return Err(error(409, 4093, what));
        }
        if let Some(bad) = create.columns.iter().find(|c| c.name.contains(['.', '[']) || c.name == "_id") {
            let what = format!("InvalidColumnNameException[\"{}\" is no valid column name]", bad.name);
            return Err(error(400, 4008, what));
        }
        if columns_of(&create.columns) > create.most_columns {
            return Err(error(400, 4000, too_many_columns(create.most_columns, &name)));
        }
        tables.insert(name, Table::new(create)?);
        Answer::done(1)
    }

    pub(super) fn drop_table(&self, name: &Name, if_exists: bool) -> Result<Answer, Error> {
        match self.lock().remove(name) {
            Some(_) => Answer::done(1),
            None if if_exists => Answer::done(0),
            None => Err(unknown_table(name)),
        }
    }

    pub(super) fn rename(&self, name: Name, to: String) -> Result<Answer, Error> {
        let mut tables = self.lock();
        let target = (name.0.clone(), to);
        check_length(&target)?;
        if tables.contains_key(&target) {
            return Err(error(400, 4093, "Cannot rename table, it exists already"));
        }
        let table = tables.remove(&name).ok_or_else(|| unknown_table(&name))?;
        tables.insert(target, table);
        Answer::done(-1)
    }

    pub(super) fn swap(&self, source: Name, target: Name, drop_source: bool) -> Result<Answer, Error> {
        let mut tables = self.lock();
        if let Some(unknown) = [&source, &target].into_iter().find(|name| !tables.contains_key(name)) {
            return Err(unknown_table(unknown));
        }
        let (Some(new), Some(old)) = (tables.remove(&source), tables.remove(&target)) else {
            // A table in exchange with itself.
            return Answer::done(0);
        };
        tables.insert(target, new);
        if !drop_source {
            tables.insert(source, old);
        }
        Answer::done(1)
    }
}

/// Names have at most 255 bytes, with the schema and a dot unless that is `doc`.
fn check_length((schema, name): &Name) -> Result<(), Error> {
    let bytes = if schema == "doc" { name.len() } else { schema.len() + 1 + name.len() };
    if bytes <= 255 {
        return Ok(());
    }
    let why = format!("Index name is too long, ({bytes} > 255)");
    Err(error(400, 4002, format!("InvalidRelationName[Relation name '{name}' is invalid. {why}]")))
}
