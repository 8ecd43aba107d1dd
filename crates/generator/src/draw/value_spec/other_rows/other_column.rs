//! Columns of other rows: of the row that a reference names, or of the parent.

use std::sync::Arc;

use crate::draw::expression::{Operand, OperandRow, Reach, Values};
use crate::draw::value_spec::other_rows::arrivals::Arrivals;
use crate::draw::value_spec::other_rows::changes::Changes;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::reader::Surroundings;
use crate::draw::value_spec::{ReferencedKey, ValueSpec};
use crate::error::{Complaint, Result};
use crate::spec::dataset::{Dataset, Field, Leaf};
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// A column of a row of another table.
#[derive(Debug)]
pub(crate) struct OtherColumn {
    pub of: RowOf,
    /// The other table.
    pub dataset: Arc<Dataset>,
    /// Its column.
    pub leaf: usize,
    /// The range of its values.
    pub reach: Reach,
    /// The bytes of its longest value, if they are strings that may be long.
    pub longest: Option<u64>,
    /// `TABLE.COLUMN`.
    pub name: String,
    /// Whether updates change the values of each leaf of the other table; empty if nothing does.
    pub changing: Arc<[bool]>,
    /// Whether it can be null in rows of the other table.
    pub nullable: bool,
    /// Whether its values depend on other rows of their block: on those that are null, or on the row before.
    pub by_blocks: bool,
}

/// Which row of the other table.
#[derive(Debug)]
pub(crate) enum RowOf {
    /// The one with the key that a field of this record has.
    Key { operand: [Operand; 1], key: ReferencedKey },
    /// The parent of this row.
    Parent(Arc<FanOut>),
    /// The row that this one changes, as it was before.
    Before(Arc<Changes>),
    /// The row that this one changes, as it is after.
    After(Arc<Changes>),
    /// The row as it is after all changes.
    Left(Arc<Changes>),
    /// The row that arrives.
    Arriving(Arc<Arrivals>),
}

impl RowOf {
    /// The number of rows of the other table, where its spec determines it.
    pub(crate) fn rows(&self) -> Option<u64> {
        match self {
            RowOf::Key { .. } => None,
            RowOf::Parent(fan_out) => Some(fan_out.parents),
            RowOf::Before(changes) | RowOf::After(changes) | RowOf::Left(changes) => Some(changes.rows),
            RowOf::Arriving(arrivals) => Some(arrivals.rows),
        }
    }
}

/// A field whose values are keys of another table.
#[derive(Clone, Debug)]
pub(crate) struct Referring {
    pub table: String,
    pub key: ReferencedKey,
    /// Whether some of its values are keys of no row.
    pub has_orphans: bool,
}

impl ValueSpec {
    /// The table that its values are keys of.
    pub(crate) fn referring(&self) -> Option<Referring> {
        match self {
            ValueSpec::Reference(reference) => {
                let (table, key) = (reference.to.clone(), reference.key.clone());
                Some(Referring { table, key, has_orphans: reference.orphans.is_some() })
            }
            ValueSpec::OtherColumn(OtherColumn { of: RowOf::Parent(fan_out), dataset, leaf, .. }) => {
                let (_, leaf) = dataset.leaf(*leaf)?;
                let key = ReferencedKey::new(&leaf.values)?;
                (!matches!(key, ReferencedKey::Distinct(_))).then_some(())?;
                Some(Referring { table: fan_out.parent.clone(), key, has_orphans: false })
            }
            _ => None,
        }
    }
}

impl ReferencedKey {
    /// The row with key `i` of `keys`; `None` if no row has it.
    pub(crate) fn row(&self, keys: &Values, i: usize) -> Option<u64> {
        let whole = || match keys {
            Values::Numbers(numbers) => match numbers.get(i)? {
                Number::Whole(n) => Some(n),
                Number::Real(_) => None,
            },
            Values::Texts(_) => None,
        };
        match (self, keys) {
            (ReferencedKey::Sequence { start, step }, _) => {
                let offset = whole()?.checked_sub(*start)?;
                let row = offset.checked_div(*step)?;
                (row.checked_mul(*step)? == offset).then_some(())?;
                u64::try_from(row).ok()
            }
            (ReferencedKey::Unique(template), Values::Texts(texts)) => template.id(texts.get(i)),
            (ReferencedKey::Unique(_), _) => None,
            // Operands of these are the row numbers.
            (ReferencedKey::Uuid(_) | ReferencedKey::Distinct(_), _) => u64::try_from(whole()?).ok(),
        }
    }
}

/// `lookup = { by = "FIELD", column = "COLUMN" }`.
pub(crate) fn lookup(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let table = node.table("lookup", &["by", "column"])?;
    let (by, column) = (table.need("by", "lookup")?, table.need("column", "lookup")?);
    let name = by.string().unwrap_or_default();
    let found = (around.tables.referring)(name);
    let (operand, referring) = found.map_err(|complaint| by.complain(complaint))?;
    let column = column.string().unwrap_or_default();
    let dataset = (around.tables.table)(&referring.table, column);
    let dataset = dataset.map_err(|complaint| by.complain(complaint))?;
    if referring.has_orphans {
        let what = format!("a look-up by {name}, of whose keys some are of no row of {}", referring.table);
        return Err(by.error(what, "leave out `orphans` of the reference, or the look-up"));
    }
    if let ReferencedKey::Sequence { step: 0, .. } = referring.key {
        let what = format!("all rows of {} have the same key", referring.table);
        return Err(by.error(what, "use a sequence with another `step`"));
    }
    let row = match referring.key {
        ReferencedKey::Uuid(_) | ReferencedKey::Distinct(_) => OperandRow::Referred,
        ReferencedKey::Sequence { .. } | ReferencedKey::Unique(_) => operand.row,
    };
    let of = RowOf::Key { operand: [Operand { row, ..operand }], key: referring.key };
    let column = column_of(of, dataset, column, around.kind);
    column.map(ValueSpec::OtherColumn).map_err(|complaint| node.complain(complaint))
}

/// `parent = "COLUMN"`.
pub(crate) fn parent(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let fan_out = fan_out(node, around)?;
    let column = node.string().unwrap_or_default();
    let dataset = (around.tables.table)(&fan_out.parent, column);
    let dataset = dataset.map_err(|complaint| node.complain(complaint))?;
    let column = column_of(RowOf::Parent(fan_out), dataset, column, around.kind);
    column.map(ValueSpec::OtherColumn).map_err(|complaint| node.complain(complaint))
}

/// `"child_number"`: 1, 2, ... for the rows of each parent.
pub(crate) fn child_number(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<ValueSpec> {
    if !around.kind.is_whole() {
        let what = format!("child_number counts, and the field is {}", around.kind.a_name());
        return Err(node.error(what, "use a field of an integer type"));
    }
    fan_out(node, around).map(ValueSpec::ChildNumber)
}

/// How the rows of the table are children of its parent's rows.
pub(crate) fn fan_out(node: SpecNode<'_>, around: &Surroundings<'_>) -> Result<Arc<FanOut>> {
    let Some(fan_out) = around.tables.fan_out else {
        let advice =
            "add `per = { table = \"PARENT\", rows = { uniform = { min = 1, max = 5 } } }` to the table";
        return Err(node.error("a table without a parent", advice));
    };
    if around.in_list {
        let advice = "use it in a field of the record, and that field in a formula";
        return Err(node.error("a column of the parent inside a list", advice));
    }
    Ok(fan_out.clone())
}

/// The column `name` of the table, for a field of type `kind`.
pub(crate) fn column_of(
    of: RowOf,
    dataset: Arc<Dataset>,
    name: &str,
    kind: &LogicalType,
) -> Result<OtherColumn, Complaint> {
    let (field, leaf) = column_of_table(&dataset, name)?;
    let table = dataset.name();
    if leaf.kind != *kind {
        let what = format!("{table}.{name} is {}, and the field is {}", leaf.kind.a_name(), kind.a_name());
        return Err((what, "give the field the type of that column".into()));
    }
    Ok(OtherColumn {
        of,
        leaf: leaf.index,
        reach: leaf.values.reach(kind),
        longest: crate::spec::value_length::longest(&leaf.values),
        name: format!("{table}.{name}"),
        changing: Arc::default(),
        nullable: field.levels.definition > 0,
        by_blocks: needs_block(&dataset, field, leaf),
        dataset,
    })
}

/// The column `name` of another table.
pub(crate) fn column_of_table<'a>(
    dataset: &'a Dataset,
    name: &str,
) -> Result<(&'a Field, &'a Leaf), Complaint> {
    let mut found = None;
    let mut all = Vec::new();
    dataset.each_leaf(&mut |field, leaf| {
        all.push(field.path.clone());
        if field.path == name {
            found = Some((field, leaf));
        }
    });
    let table = dataset.name();
    match found {
        None => {
            Err((format!("{table} has no column {name:?}"), format!("its columns are {}", all.join(", "))))
        }
        Some((field, leaf)) => {
            let is_plain = field.levels.repetition == 0 && leaf.kind != LogicalType::Int96;
            if is_plain && dataset.maker.is_none() {
                return Ok((field, leaf));
            }
            let what = format!("{table}.{name} is in a list, or cannot be looked up");
            Err((what, "use a column outside of lists".into()))
        }
    }
}

/// Whether values of a leaf depend on other rows of their block.
fn needs_block(dataset: &Dataset, field: &Field, leaf: &Leaf) -> bool {
    let of_operand = |operand: &Operand| {
        dataset.leaf(operand.leaf).is_some_and(|(field, leaf)| needs_block(dataset, field, leaf))
    };
    field.levels.definition > 0
        || leaf.values.follows_rows()
        || matches!(&leaf.values, ValueSpec::OfChildren(children) if children.elements().is_some())
        || matches!(&leaf.values, ValueSpec::OtherColumn(column) if column.by_blocks)
        || leaf.values.operands().iter().any(of_operand)
}
