//! A spec with several tables: each is a dataset, and may refer to the others in any order.
//!
//! Rows are functions of their numbers, so a table needs another one's keys, its number of rows and, for columns of
//! other rows, its fields; never its files.

pub(crate) mod derived;
pub(crate) mod file_rows;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::error::{Error, Result};
use crate::random::rng::purpose;
use crate::spec::dataset::Dataset;
use crate::spec::reader::names::is_stem;
use crate::spec::reader::needed::{Only, others};
use crate::spec::reader::read_table;
use crate::spec::tables::file_rows::FileRows;
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::SpecTable;

/// The complaint about a column that depends on itself.
pub(crate) const CYCLE: &str = "tables that look one another up";

/// The most tables of a spec.
const MAX_TABLES: usize = 1000;

/// The longest chain of parents.
pub(crate) const MAX_PARENTS: usize = 32;

pub(crate) struct Tables<'a> {
    tables: Vec<(&'a str, SpecTable<'a>)>,
    folder: &'a SpecFolder<'a>,
    /// Multiplies the rows of each table that does not say otherwise.
    scale: f64,
    /// The tables that have been read for one of their columns, or as a whole.
    read: RefCell<HashMap<(String, String), Arc<Dataset>>>,
    /// The tables that are being read, each because of the one before it, and for which column.
    open: RefCell<Vec<(String, String)>>,
    /// The rows of files that have been read, by table.
    files: RefCell<HashMap<String, Arc<FileRows>>>,
}

impl<'a> Tables<'a> {
    /// The tables of a spec; `None` if it describes a single dataset.
    pub(crate) fn new(
        root: SpecTable<'a>,
        folder: &'a SpecFolder<'a>,
        scale: Option<f64>,
    ) -> Result<Option<Self>> {
        let Some(tables) = named(root)? else { return Ok(None) };
        let (read, open, files) = Default::default();
        Ok(Some(Tables { tables, folder, scale: scale.unwrap_or(1.0), read, open, files }))
    }

    /// The names of the tables, in the order of the spec.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tables.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn table(&self, name: &str) -> Option<SpecTable<'a>> {
        self.tables.iter().find(|(other, _)| *other == name).map(|(_, table)| *table)
    }

    /// Whether the spec has a table of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.table(name).is_some()
    }

    pub(crate) fn dataset(&self, name: &str, depth: usize) -> Result<Arc<Dataset>> {
        self.with_column(name, "", depth)
    }

    /// The table `name` with the fields on which the values of `column` depend, or with all fields if `column` is
    /// empty. Values depend on the names of their fields, not on the other fields.
    pub(crate) fn with_column(&self, name: &str, column: &str, depth: usize) -> Result<Arc<Dataset>> {
        let key = (name.to_owned(), column.to_owned());
        if let Some(read) = self.read.borrow().get(&key) {
            return Ok(read.clone());
        }
        let Some(table) = self.table(name) else {
            let advice = format!("its tables are {}", self.names().join(", "));
            return Err(Error::spec(format!("the spec has no table {name:?}"), "", advice));
        };
        if self.open.borrow().contains(&key) {
            let open = self.open.borrow();
            let shown = |(name, column): &(String, String)| match column.as_str() {
                "" => name.clone(),
                column => format!("{name}.{column}"),
            };
            let chain: Vec<String> = open.iter().chain([&key]).map(shown).collect();
            let what = format!("{CYCLE}: {}", chain.join(", "));
            return Err(table.error(what, "use a column that does not depend on this one"));
        }
        let only = match column {
            "" => Only::All,
            // Other tables have it.
            _ if others(table, column).is_some() => return self.dataset(name, depth),
            _ => Only::Column(column),
        };
        self.open.borrow_mut().push(key.clone());
        let dataset = read_table(table, Some(self), self.folder, depth, only);
        self.open.borrow_mut().pop();
        let dataset = Arc::new(dataset?);
        self.read.borrow_mut().insert(key, dataset.clone());
        Ok(dataset)
    }

    /// The columns of the table `name`, if `column` is not among them and the table does not follow from another one.
    pub(crate) fn columns_without(&self, name: &str, column: &str) -> Option<Vec<String>> {
        let table = self.table(name)?;
        let is_derived = derived::DERIVED_KEYS.iter().any(|key| table.get(key).is_some());
        others(table, column).filter(|_| !is_derived)
    }

    /// The table `name` with its key `field` alone.
    pub(crate) fn with_key(&self, name: &str, field: &str, depth: usize) -> Result<Dataset> {
        let table = self.table(name).filter(|_| depth <= MAX_PARENTS);
        let what = "a reference to a reference, and so on";
        let table = table.ok_or_else(|| Error::spec(what, name, "end the chain at a key"))?;
        read_table(table, Some(self), self.folder, depth, Only::Key(field))
    }

    /// The rows of the file of the table `name`, if it has one.
    pub(crate) fn file(&self, name: &str) -> Result<Option<Arc<FileRows>>> {
        let named = self.table(name).and_then(|table| Some((table, table.get("file")?)));
        let Some((table, node)) = named else { return Ok(None) };
        if let Some(read) = self.files.borrow().get(name) {
            return Ok(Some(read.clone()));
        }
        let rows = Arc::new(FileRows::read(table, node, self.folder)?);
        self.files.borrow_mut().insert(name.to_owned(), rows.clone());
        Ok(Some(rows))
    }

    /// The number of rows of the table `name`, if the spec says it.
    pub(crate) fn rows(&self, name: &str) -> Result<Option<u64>> {
        self.rows_below(name, 0)
    }

    fn rows_below(&self, name: &str, depth: usize) -> Result<Option<u64>> {
        let Some(table) = self.table(name) else { return Ok(None) };
        if let Some(derived) = self.derived(name, depth)? {
            return Ok(Some(derived.rows()));
        }
        if let Some(file) = self.file(name)? {
            return Ok(Some(file.rows.len() as u64));
        }
        match (table.get("rows"), self.fan_out_below(name, depth)?) {
            (Some(node), Some(_)) => {
                Err(node.error("`rows` of a table with `per`", "remove one: `per` determines the rows"))
            }
            (None, Some(_)) if table.get("scale").is_some() => {
                let what = "`scale` of a table with `per`, which determines its rows";
                Err(table.key_error("scale", what, "give it to the parent"))
            }
            (None, Some(fan_out)) => Ok(Some(fan_out.rows)),
            (Some(node), None) => {
                let rows = node.integer().and_then(|rows| u64::try_from(rows).ok());
                let rows = rows.filter(|rows| (1..=i64::MAX as u64).contains(rows)).ok_or_else(|| {
                    let what = format!("`rows = {}` of the table {name}", node.described());
                    node.error(what, "write a whole number of at least 1, or leave the table out")
                })?;
                Ok(Some(((rows as f64 * self.factor(table)?).round() as u64).max(1)))
            }
            (None, None) => Ok(None),
        }
    }

    /// What multiplies the `rows` of a table.
    fn factor(&self, table: SpecTable<'_>) -> Result<f64> {
        let Some(node) = table.get("scale") else { return Ok(self.scale) };
        match node.string() {
            Some("linear") => Ok(self.scale),
            Some("sqrt") => Ok(self.scale.sqrt()),
            Some("fixed") => Ok(1.0),
            _ => Err(node.wrong("scale", "write one of: linear, sqrt, fixed")),
        }
    }

    /// How the rows of the table `name` follow from its parent's rows.
    pub(crate) fn fan_out(&self, name: &str) -> Result<Option<Arc<FanOut>>> {
        self.fan_out_below(name, 0)
    }

    fn fan_out_below(&self, name: &str, depth: usize) -> Result<Option<Arc<FanOut>>> {
        let Some(node) = self.table(name).and_then(|table| table.get("per")) else { return Ok(None) };
        let per = node.table("`per`", &["table", "rows"])?;
        let parent = per.need("table", "`per`")?;
        let parent_name = parent.string().unwrap_or_default();
        if depth > MAX_PARENTS || parent_name == name {
            let what = "tables that are one another's parents";
            return Err(parent.error(what, "end the chain at a table with `rows`"));
        }
        if !self.has(parent_name) {
            let advice = format!("the tables are {}", self.names().join(", "));
            return Err(parent.unfit("no table is named {}", advice));
        }
        let Some(parents) = self.rows_below(parent_name, depth + 1)? else {
            let what = format!("the table {parent_name} has an unknown number of rows");
            return Err(parent.error(what, format!("add `rows` to {parent_name}")));
        };
        let counts = Lengths::read(per.need("rows", "`per`")?, None, Nulls::Never)?;
        let fan_out = FanOut::new(parent_name, parents, &counts, purpose(name, "children"));
        if fan_out.rows == 0 {
            let what = format!("{parents} rows of {parent_name} have no rows of {name}");
            return Err(node.error(what, "declare more rows for each"));
        }
        Ok(Some(Arc::new(fan_out)))
    }
}

/// The complaint about two tables that would share a folder.
pub(crate) fn one_folder(other: &str, name: &str) -> Option<String> {
    other.eq_ignore_ascii_case(name).then(|| match other == name {
        true => format!("two tables are named {name:?}"),
        false => format!("tables named {other:?} and {name:?}, one folder where case is ignored"),
    })
}

/// The tables of a spec with their names, in its order; `None` if it describes a single dataset.
///
/// # Errors
/// A table has no name, or its name cannot name its folder beside the other tables' folders.
pub(crate) fn named(root: SpecTable<'_>) -> Result<Option<Vec<(&str, SpecTable<'_>)>>> {
    let Some(node) = root.get("tables") else { return Ok(None) };
    root.check("a spec with several tables", &["name", "tables"])?;
    let Some(array) = node.array().filter(|array| (1..=MAX_TABLES).contains(&array.len())) else {
        let advice = format!("write 1 to {MAX_TABLES} tables, each under [[tables]]");
        return Err(node.unfit("`tables` is {}", advice));
    };
    let mut tables: Vec<(&str, SpecTable<'_>)> = Vec::new();
    for table in array {
        let table = table.any_table("a table")?;
        let node = table.need("name", "a table")?;
        let Some(name) = node.string().filter(|name| is_stem(name)) else {
            let what = "{} cannot be the name of a table and of its folder";
            return Err(node.unfit(what, "use letters, digits, - and _"));
        };
        if let Some(what) = tables.iter().find_map(|(other, _)| one_folder(other, name)) {
            return Err(node.error(what, "rename one of them"));
        }
        tables.push((name, table));
    }
    Ok(Some(tables))
}

#[cfg(test)]
mod tests;
