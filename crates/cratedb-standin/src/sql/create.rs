//! `CREATE TABLE`: columns, keys and settings.

use super::cursor::Cursor;
use super::{Column, CreateTable, Statement};
use crate::types::Type;

impl Cursor {
    /// The statement after `CREATE TABLE`.
    pub(super) fn create(&mut self) -> Result<Statement, String> {
        let if_not_exists = self.words("if not exists");
        let mut table =
            CreateTable { shards: 4, most_columns: 1000, if_not_exists, ..CreateTable::default() };
        table.name = self.name()?;
        self.expect("(")?;
        loop {
            if self.words("primary key") {
                table.key = self.list(Self::ident)?;
            } else {
                let (column, primary) = self.column()?;
                if primary {
                    table.key.push(column.name.clone());
                }
                table.columns.push(column);
            }
            if !self.sign(",") {
                break;
            }
        }
        self.expect(")")?;
        self.settings(&mut table)?;
        if let Some(partition) = &table.partitioned
            && !table.key.is_empty()
            && !table.key.contains(partition)
        {
            return Err(format!(
                "Cannot use non primary key column '{partition}' in PARTITIONED BY clause if primary key is set on table"
            ));
        }
        Ok(Statement::Create(table))
    }

    /// `PARTITIONED BY`, `CLUSTERED INTO` and `WITH`, in any order.
    fn settings(&mut self, table: &mut CreateTable) -> Result<(), String> {
        loop {
            if self.words("partitioned by") {
                table.partitioned = self.list(Self::ident)?.pop();
            } else if self.words("clustered") {
                self.expect("into")?;
                table.shards = self.number()?;
                self.expect("shards")?;
            } else if self.words("with") {
                for (name, value) in self.list(Self::parameter)? {
                    table.set(&name, &value)?;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// A column, and whether it is the primary key.
    pub(super) fn column(&mut self) -> Result<(Column, bool), String> {
        let name = self.ident()?;
        let mut column = Column {
            name,
            data_type: Type::Timestamp(true),
            not_null: false,
            plain: false,
            stamped: false,
            generated: None,
        };
        if !self.is_word("generated") {
            column.data_type = self.data_type()?;
        }
        let mut primary = false;
        let mut unindexed = false;
        loop {
            if self.words("not null") {
                column.not_null = true;
            } else if self.words("default current_timestamp") {
                column.stamped = true;
            } else if self.words("primary key") {
                primary = true;
            } else if self.words("index off") {
                unindexed = true;
            } else if self.words("storage with") {
                self.no_column_store(&column.data_type)?;
                column.plain = unindexed;
            } else if self.words("generated always as date_trunc") {
                self.expect("(")?;
                let part = self.any_text("a part")?;
                self.expect(",")?;
                column.generated = Some((part, self.ident()?));
                self.expect(")")?;
            } else {
                return Ok((column, primary));
            }
        }
    }

    /// The rest of `STORAGE WITH (columnstore = false)`.
    fn no_column_store(&mut self, data_type: &Type) -> Result<(), String> {
        self.expect("(")?;
        if !self.words("columnstore") {
            return Err("Invalid storage option".into());
        }
        self.expect("=")?;
        self.expect("false")?;
        self.expect(")")?;
        match data_type {
            Type::Boolean | Type::GeoPoint | Type::GeoShape | Type::Ip | Type::Bit(_) | Type::Object(..) => {
                Err("Invalid storage option \"columnstore\"".into())
            }
            _ => Ok(()),
        }
    }
}

impl CreateTable {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "number_of_replicas" | "refresh_interval" => {}
            "translog.durability" => match value.to_uppercase().as_str() {
                "ASYNC" => self.asynchronous = true,
                "REQUEST" => self.asynchronous = false,
                _ => return Err(format!("Unknown value [{value}] for setting [{name}]")),
            },
            "mapping.total_fields.limit" => {
                self.most_columns = value
                    .parse()
                    .map_err(|_| format!("Failed to parse value [{value}] for setting [index.{name}]"))?;
            }
            _ => {
                return Err(format!(
                    "Invalid property \"{name}\" passed to [ALTER | CREATE] TABLE statement"
                ));
            }
        }
        Ok(())
    }
}
