//! The arguments of statements as CrateDB takes them, in JSON: a list, a list of rows, or a list of columns.

use std::fmt::Write as _;

use sawmill_pgcopy::PgType;
use serde_json::Value;

use crate::mix::block::fields;
use crate::work::crate_db::json;
use crate::work::step::Arguments;

/// `args`: one after the other.
pub(super) struct List<'a> {
    pub body: &'a mut String,
    /// The types of the table's columns.
    pub types: &'a [PgType],
    /// The values of the operation's variables.
    pub variables: &'a [Value],
    pub empty: bool,
}

impl List<'_> {
    fn value(&mut self, value: &Value) {
        if !std::mem::take(&mut self.empty) {
            self.body.push(',');
        }
        // Writing to a String does not fail.
        let _ = write!(self.body, "{value}");
    }
}

impl Arguments for List<'_> {
    fn row(&mut self, row: &[u8]) {
        let types = self.types;
        json::values(row, types).for_each(|value| self.value(&value));
    }

    fn key(&mut self, number: u64) {
        self.value(&number.into());
    }

    fn field(&mut self, of: PgType, field: Option<&[u8]>) {
        self.value(&json::value(field, of));
    }

    fn variable(&mut self, number: usize) {
        let variables = self.variables;
        self.value(variables.get(number).unwrap_or(&Value::Null));
    }
}

/// `bulk_args`: a list of each row.
pub(super) struct BulkRows<'a> {
    pub body: &'a mut String,
    /// The types of the table's columns.
    pub types: &'a [PgType],
    pub empty: bool,
}

impl Arguments for BulkRows<'_> {
    fn row(&mut self, row: &[u8]) {
        if !std::mem::take(&mut self.empty) {
            self.body.push(',');
        }
        json::write_row(row, self.types, self.body);
    }
}

/// `args` of UNNEST: a list of each column.
pub(super) struct Columns<'a> {
    pub columns: Vec<String>,
    /// The types of the table's columns.
    pub types: &'a [PgType],
}

impl Columns<'_> {
    /// Appends the lists.
    pub(super) fn append_to(&self, body: &mut String) {
        for (place, column) in self.columns.iter().enumerate() {
            body.push_str(if place == 0 { "[" } else { ",[" });
            body.push_str(column);
            body.push(']');
        }
    }
}

impl Arguments for Columns<'_> {
    fn row(&mut self, row: &[u8]) {
        self.columns.resize(self.types.len(), String::new());
        for ((field, of), column) in fields(row).zip(self.types).zip(&mut self.columns) {
            if !column.is_empty() {
                column.push(',');
            }
            // Writing to a String does not fail.
            let _ = write!(column, "{}", json::value(field, *of));
        }
    }
}
