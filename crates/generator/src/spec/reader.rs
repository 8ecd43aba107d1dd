//! Reads a dataset spec: from TOML to the tree of fields, with all checks.

mod derived;
mod fields;
mod leaves;
mod lists;
pub(crate) mod names;
pub(crate) mod needed;
mod optional;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;
use xxhash_rust::xxh3::xxh3_128;

use crate::draw::copula;
use crate::draw::distribution::count;
use crate::draw::expression::Reach;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::other_column::Referring;
use crate::error::{Error, Result};
use crate::explain::MAX_ROW_BYTES;
use crate::random::rng::purpose;
use crate::spec::dataset::{Dataset, Field, Levels, Present};
use crate::spec::reader::names::is_stem;
use crate::spec::reader::needed::Only;
use crate::spec::reader::optional::present;
use crate::spec::tables::derived::{DERIVED_KEYS, Derived};
use crate::spec::tables::{self, Tables};
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable, position};
use crate::types::logical_type::LogicalType;

/// The top-level keys of a spec.
const DATASET_KEYS: [&str; 5] = ["name", "rows", "fields", "present", "copula"];

/// The keys of a table besides a dataset's keys and the ones that derive it.
const TABLE_KEYS: [&str; 3] = ["per", "scale", "file"];

/// The types with nested fields, and the keys of each.
pub(crate) const GROUP_KEYS: &[(&str, &[&str])] = &[
    ("struct", &["fields", "present"]),
    ("list", &["length", "size", "empty", "element", "legacy"]),
    ("map", &["length", "empty", "key", "value"]),
];

/// The longest chain of datasets that refer to one another.
const MAX_REFERENCES: usize = 8;

/// Reads the spec in `text`. `depth` counts the references that led here from the requested dataset.
pub(crate) fn read(text: &str, folder: &SpecFolder<'_>, depth: usize) -> Result<Dataset> {
    let parsed = parsed(text)?;
    let root = SpecTable::root(parsed.get_ref(), text);
    if let Some(tables) = Tables::new(root, folder, None)? {
        let what = "a spec with several tables, where one is needed";
        return Err(Error::spec(what, "", format!("name one: SPEC/TABLE, of {}", tables.names().join(", "))));
    }
    read_table(root, None, folder, depth, Only::All)
}

/// Reads the table `name` of a spec with several; each has `scale` times its rows.
pub(crate) fn read_one(
    text: &str,
    folder: &SpecFolder<'_>,
    name: &str,
    scale: Option<f64>,
) -> Result<Dataset> {
    if scale.is_some_and(|scale| !(scale.is_finite() && scale > 0.0)) {
        return Err(Error::spec("a scale that is not above 0", name, "give a number like 0.1 or 10"));
    }
    let parsed = parsed(text)?;
    let root = SpecTable::root(parsed.get_ref(), text);
    let Some(tables) = Tables::new(root, folder, scale)? else {
        let what = format!("no table {name:?}: the spec describes a single dataset");
        return Err(Error::spec(what, "", "name the spec alone"));
    };
    let dataset = tables.dataset(name, 0)?;
    // Other tables may also hold it, but only tables that were read for it.
    drop(tables);
    let mut dataset = Arc::try_unwrap(dataset)
        .map_err(|_| Error::spec(tables::CYCLE, name, "remove one of the look-ups"))?;
    // The spec, the table and the scale decide its rows.
    let mut parts = folder.sum().to_le_bytes().to_vec();
    parts.extend_from_slice(&scale.unwrap_or(1.0).to_le_bytes());
    parts.extend_from_slice(name.as_bytes());
    dataset.text_hash = xxh3_128(&parts);
    dataset.files = folder.files();
    Ok(dataset)
}

/// The names of the tables of the spec in `text`; none if it describes a single dataset.
pub(crate) fn table_names(text: &str) -> Result<Vec<String>> {
    let parsed = parsed(text)?;
    let tables = tables::named(SpecTable::root(parsed.get_ref(), text))?.unwrap_or_default();
    Ok(tables.into_iter().map(|(name, _)| name.to_owned()).collect())
}

fn parsed(text: &str) -> Result<Spanned<DeTable<'_>>> {
    DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or_else(String::new, |span| position(text, span.start));
        let what = error.message().trim().replace('\n', ", ");
        Error::spec(what, place, "`sawmill gen spec contacts` prints a valid one")
    })
}

/// Reads a dataset, or one of the `tables` of a spec, with `only` some fields.
pub(crate) fn read_table(
    root: SpecTable<'_>,
    tables: Option<&Tables<'_>>,
    folder: &SpecFolder<'_>,
    depth: usize,
    only: Only<'_>,
) -> Result<Dataset> {
    let name = table_name(root, tables.is_some())?;
    let (rows, fan_out) = declared_rows(root, tables, name)?;
    let mut reader = Reader { fan_out, ..Reader::new((root, name), tables, folder, depth, only) };
    let derived = tables.map_or(Ok(None), |tables| tables.derived(name, 0))?;
    let (fields, present) = match (tables, &derived) {
        (Some(tables), Some(derived)) => reader.derived(derived, tables, root)?,
        _ => {
            let specs = root.need("fields", "a dataset")?;
            let (names, present) = present(root, specs)?;
            (reader.fields(specs, Position::RECORD, names.as_deref())?, present)
        }
    };
    if fields.is_empty() && !matches!(only, Only::Key(_)) {
        return Err(root.error("a record without fields that files have", "add a field that is not hidden"));
    }
    let follows_copula = reader.follows_copula;
    let mut dataset = reader.finished(fields, present, rows, derived.as_ref());
    if follows_copula {
        copula::reader::read(root, &mut dataset)?;
        if dataset.row_bytes_in_memory() > MAX_ROW_BYTES {
            let what = format!("rows of more than {:.0} MB on average", MAX_ROW_BYTES / 1e6);
            return Err(root.error(what, "use fewer or shorter texts, or lists with fewer elements"));
        }
    }
    Ok(dataset)
}

/// Checks the keys of a dataset or table, and returns its name.
fn table_name(root: SpecTable<'_>, is_table: bool) -> Result<&str> {
    match is_table {
        true => root.check("a table", &[&DATASET_KEYS[..], &TABLE_KEYS, &DERIVED_KEYS].concat())?,
        false => root.check("a dataset", &DATASET_KEYS)?,
    }
    let node = root.need("name", "a dataset")?;
    node.string().filter(|name| is_stem(name)).ok_or_else(|| {
        let what = format!("{} cannot be the start of file names", node.described());
        node.error(what, "use letters, digits, - and _")
    })
}

/// The declared rows of a dataset or table, and how they follow from its parent's rows.
fn declared_rows(
    root: SpecTable<'_>,
    tables: Option<&Tables<'_>>,
    name: &str,
) -> Result<(Option<u64>, Option<Arc<FanOut>>)> {
    if let Some(tables) = tables {
        return Ok((tables.rows(name)?, tables.fan_out(name)?));
    }
    let count = |node: SpecNode<'_>| match node.integer() {
        // Data may be empty.
        Some(0) => Ok(0),
        _ => count(node, i64::MAX as u64),
    };
    Ok((root.get("rows").map(count).transpose()?, None))
}

/// The reader's position in the tree of fields.
#[derive(Clone, Copy)]
struct Position<'a> {
    parent: &'a str,
    levels: Levels,
    /// The most elements that one record can have at this position.
    elements: u32,
    depth: usize,
}

impl Position<'_> {
    /// The fields of the record.
    const RECORD: Self =
        Position { parent: "", levels: Levels { definition: 0, repetition: 0 }, elements: 1, depth: 1 };
}

/// A leaf that has been read.
struct Seen {
    /// Its position: the columns of files come before hidden leaves.
    index: usize,
    path: String,
    kind: LogicalType,
    levels: Levels,
    /// The range of its values.
    reach: Reach,
    /// The bytes of its longest value, if it is a string.
    longest: u64,
    /// The table that its values are keys of.
    refers: Option<Referring>,
}

/// A list or map that has been read.
struct SeenList {
    path: String,
    /// The path of its elements.
    elements: String,
    levels: Levels,
    /// The position of its first leaf.
    first: usize,
    /// Whether some are null or empty.
    may_be_empty: bool,
}

struct Reader<'a> {
    folder: &'a SpecFolder<'a>,
    depth: usize,
    dataset: &'a str,
    root: SpecTable<'a>,
    /// The tables of the spec, if it has several.
    tables: Option<&'a Tables<'a>>,
    /// How the rows of this table follow from its parent's rows.
    fan_out: Option<Arc<FanOut>>,
    /// The fields of the record to read.
    only: Only<'a>,
    leaves: Vec<Seen>,
    /// The columns of files among them, and the position of the first hidden leaf.
    columns: usize,
    first_hidden: usize,
    /// The lists so far.
    lists: usize,
    /// The lists whose elements have been read as well.
    whole_lists: Vec<SeenList>,
    hidden: Vec<Field>,
    /// Whether the field being read is hidden.
    is_hidden: bool,
    /// Whether each field of the record is hidden, and its place.
    order: Vec<(bool, usize)>,
    /// The leaves that expressions use.
    operands: Vec<usize>,
    /// The levels of a present group, by its path.
    groups: HashMap<String, Levels>,
    /// Names in the fields' specs that match no field read so far.
    missing: RefCell<Vec<String>>,
    /// Whether the values of the fields depend on the copula.
    follows_copula: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the dataset or table of this name.
    fn new(
        (root, dataset): (SpecTable<'a>, &'a str),
        tables: Option<&'a Tables<'a>>,
        folder: &'a SpecFolder<'a>,
        depth: usize,
        only: Only<'a>,
    ) -> Self {
        Reader {
            folder,
            depth,
            dataset,
            root,
            tables,
            fan_out: None,
            only,
            leaves: Vec::new(),
            columns: 0,
            first_hidden: 0,
            lists: 0,
            whole_lists: Vec::new(),
            hidden: Vec::new(),
            is_hidden: false,
            order: Vec::new(),
            operands: Vec::new(),
            groups: HashMap::from([(String::new(), Levels::default())]),
            missing: RefCell::default(),
            follows_copula: matches!(only, Only::All),
        }
    }

    /// The dataset with these fields, without its copula.
    fn finished(
        self,
        fields: Vec<Field>,
        present: Option<Present>,
        rows: Option<u64>,
        derived: Option<&Derived>,
    ) -> Dataset {
        let place = |(is_hidden, place): (bool, usize)| place + if is_hidden { fields.len() } else { 0 };
        let order = self.order.into_iter().map(place).collect();
        let mut dataset = Dataset {
            name: self.dataset.to_owned(),
            rows,
            fields,
            hidden: self.hidden,
            order,
            present,
            leaves: self.columns,
            text_hash: self.folder.sum(),
            files: self.folder.files(),
            salt: self.tables.map_or(0, |_| purpose(self.dataset, "table")),
            most_rows: derived
                .map(Derived::rows)
                .or(self.fan_out.as_ref().map(|fan_out| fan_out.rows))
                .or(rows.filter(|_| self.root.get("file").is_some())),
            changes: match derived {
                Some(Derived::Changes(changes, _)) => Some(changes.clone()),
                _ => None,
            },
            ..Dataset::default()
        };
        let operands: HashSet<usize> = self.operands.into_iter().collect();
        let mut is_chain = false;
        dataset.each_leaf_mut(&mut |leaf| {
            leaf.is_operand = operands.contains(&leaf.index);
            is_chain |= leaf.values.follows_rows();
        });
        dataset.chain = self.fan_out.filter(|_| is_chain);
        dataset
    }
}

#[cfg(test)]
mod tests;
