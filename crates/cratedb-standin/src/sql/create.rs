//! `CREATE TABLE`: columns, keys and settings.

use super::cursor::Cursor;
use super::{Column, CreateTable, Statement};
use crate::types::Type;

/// The settings after the columns that the stand-in acts on.
struct Settings {
    shards: usize,
    partitioned: Option<String>,
    most_columns: usize,
    asynchronous: bool,
}

impl Cursor {
    /// The statement after `CREATE TABLE`.
    pub(super) fn create(&mut self) -> Result<Statement, String> {
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
        let Settings { shards, partitioned, most_columns, asynchronous } = self.settings()?;
        if let Some(partition) = &partitioned
            && !key.is_empty()
            && !key.contains(partition)
        {
            return Err(format!(
                "Cannot use non primary key column '{partition}' in PARTITIONED BY clause if primary key is set on table"
            ));
        }
        Ok(Statement::Create(CreateTable {
            name,
            if_not_exists,
            columns,
            key,
            shards,
            partitioned,
            most_columns,
            asynchronous,
        }))
    }

    /// `PARTITIONED BY`, `CLUSTERED INTO` and `WITH`, in any order.
    fn settings(&mut self) -> Result<Settings, String> {
        let mut settings = Settings { shards: 4, partitioned: None, most_columns: 1000, asynchronous: false };
        loop {
            if self.words("partitioned by") {
                settings.partitioned = self.list(Self::ident)?.pop();
            } else if self.words("clustered") {
                self.expect("into")?;
                settings.shards = self.number()?;
                self.expect("shards")?;
            } else if self.words("with") {
                for (name, value) in self.list(Self::parameter)? {
                    settings.set(&name, &value)?;
                }
            } else {
                return Ok(settings);
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

impl Settings {
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
