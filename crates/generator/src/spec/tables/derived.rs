//! Tables derived from the rows of another table: its changes, its state after them, its arrivals.

use std::sync::Arc;

use crate::draw::lengths::Lengths;
use crate::draw::nulls::Nulls;
use crate::draw::value_spec::other_rows::arrivals::{Arrivals, Delayed};
use crate::draw::value_spec::other_rows::changes::{BLOCK, Changes};
use crate::error::Result;
use crate::random::rng::purpose;
use crate::spec::tables::{MAX_PARENTS, Tables};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};

/// The keys of tables that are derived from another one.
pub(crate) const DERIVED_KEYS: [&str; 3] = ["changes", "state_of", "arrivals"];

/// The most updates of a row.
const MAX_UPDATES: u32 = 10_000;

/// How the rows of a table follow from another table's rows.
#[derive(Clone, Debug)]
pub(crate) enum Derived {
    Changes(Arc<Changes>, Columns),
    State(Arc<Changes>, Columns),
    Arrivals(Arc<Arrivals>),
}

/// The columns that updates change, if the spec lists them.
pub(crate) type Columns = Option<Vec<String>>;

impl Derived {
    /// The table whose rows they are.
    pub(crate) fn source_name(&self) -> &str {
        match self {
            Self::Changes(changes, _) | Self::State(changes, _) => &changes.of,
            Self::Arrivals(arrivals) => &arrivals.of,
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Changes(changes, _) => changes.len(),
            Self::State(changes, _) => changes.left(),
            Self::Arrivals(arrivals) => arrivals.len(),
        }
    }

    /// The columns that updates change, if the spec lists them.
    pub(crate) fn columns(&self) -> Option<&[String]> {
        match self {
            Self::Changes(_, columns) | Self::State(_, columns) => columns.as_deref(),
            Self::Arrivals(_) => None,
        }
    }
}

impl Tables<'_> {
    /// How the rows of the table `name` follow from another table's rows, if they do.
    pub(crate) fn derived(&self, name: &str, depth: usize) -> Result<Option<Derived>> {
        let Some(table) = self.table(name) else { return Ok(None) };
        let mut given = DERIVED_KEYS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
        let Some((key, node)) = given.next() else { return Ok(None) };
        let more =
            ["rows", "per", "scale", "present", "file"].into_iter().filter(|key| table.get(key).is_some());
        if let Some(other) = given.map(|(key, _)| key).chain(more).next() {
            let what = format!("`{other}` of a table with `{key}`, which determines its rows");
            return Err(table.key_error(other, what, "remove one of them"));
        }
        if depth > MAX_PARENTS {
            let what = format!("tables that are derived from one another, such as {name}");
            return Err(node.error(what, "end the chain at a table with `rows`"));
        }
        match key {
            "changes" => self.changes(name, node, depth).map(Some),
            "arrivals" => self.arrivals(name, node, depth).map(|arrivals| Some(Derived::Arrivals(arrivals))),
            _ => {
                let stream = node.string().unwrap_or_default();
                match self.derived(stream, depth + 1)? {
                    Some(Derived::Changes(changes, columns)) => Ok(Some(Derived::State(changes, columns))),
                    _ => {
                        let what = format!("{} is not a table with `changes`", node.described());
                        Err(node.error(what, "name the change stream whose last state the table has"))
                    }
                }
            }
        }
    }

    /// The table that `table` is derived from, and its rows.
    fn source(&self, name: &str, table: SpecTable<'_>, key: &str, depth: usize) -> Result<(String, u64)> {
        let of = table.need("of", key)?;
        let text = of.string().unwrap_or_default();
        if !self.has(text) || text == name {
            return Err(of.wrong("of", format!("name another table: {}", self.names().join(", "))));
        }
        let rows = self.rows_below(text, depth + 1)?.ok_or_else(|| {
            let what = format!("the table {text} has an unknown number of rows");
            of.error(what, format!("add `rows` to {text}"))
        })?;
        Ok((text.to_owned(), rows))
    }

    fn changes(&self, name: &str, node: SpecNode<'_>, depth: usize) -> Result<Derived> {
        let table = node.table("`changes`", &["of", "updates", "deletes", "columns"])?;
        let (of, rows) = self.source(name, table, "`changes`", depth)?;
        let updates = table.need("updates", "`changes`")?;
        let updates = Lengths::read_up_to(MAX_UPDATES, updates, None, Nulls::Never)?;
        let deleted = table.read("deletes", SHARE, share)?.unwrap_or(0.0);
        let advice = format!("list columns of {of} that updates change");
        let columns = table.read("columns", advice, |node| {
            node.list(|name| name.string().map(str::to_owned)).filter(|names| !names.is_empty())
        })?;
        let changes = Changes::new(&of, rows, &updates, deleted, purpose(name, "changes"));
        Ok(Derived::Changes(Arc::new(changes), columns))
    }

    fn arrivals(&self, name: &str, node: SpecNode<'_>, depth: usize) -> Result<Arc<Arrivals>> {
        let table = node.table("`arrivals`", &["of", "late", "twice"])?;
        let (of, rows) = self.source(name, table, "`arrivals`", depth)?;
        let delayed = |key: &str| -> Result<Option<Delayed>> {
            let Some(node) = table.get(key) else { return Ok(None) };
            let table = node.table(key, &["share", "by"])?;
            let share = table.read_needed(("share", key), SHARE, share)?;
            let by = table.need("by", key)?;
            let by = Lengths::read_up_to(BLOCK as u32, by, None, Nulls::Never)?;
            Ok(Some(Delayed { share, by }))
        };
        let arrivals =
            Arrivals::new(&of, rows, delayed("late")?, delayed("twice")?, purpose(name, "arrivals"));
        Ok(Arc::new(arrivals))
    }
}

/// What to write as a share.
const SHARE: &str = "use a share from 0 to 1";

fn share(node: SpecNode<'_>) -> Option<f64> {
    node.number_in(0.0..=1.0)
}
