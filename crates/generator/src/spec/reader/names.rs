//! Finds what a name in a spec means: an earlier field, a key of another table, another table.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::draw::expression::{Operand, OperandRow};
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::draw::value_spec::other_rows::of_children::Elements;
use crate::draw::value_spec::other_rows::other_column::Referring;
use crate::draw::value_spec::reader::FoundKey;
use crate::draw::value_spec::{ReferencedKey, UuidKey, ValueSpec};
use crate::error::{Complaint, Error};
use crate::spec::dataset::{Dataset, Levels};
use crate::spec::reader::needed::Only;
use crate::spec::reader::{MAX_REFERENCES, Seen, SeenList, read, read_table};
use crate::spec::tables::{CYCLE, Tables};
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::SpecTable;

/// What a name in a field's spec can mean: the fields of the record that have been read.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The field with the name in its spec.
    pub(super) path: &'a str,
    pub(super) leaves: &'a [Seen],
    pub(super) lists: &'a [SeenList],
    pub(super) groups: &'a HashMap<String, Levels>,
    /// The names that no field has.
    pub(super) missing: &'a RefCell<Vec<String>>,
}

impl Scope<'_> {
    /// Finds the field `name` for an expression: first among the siblings, then level by level further out.
    pub(super) fn operand(self, name: &str) -> Result<Operand, Complaint> {
        let operand = self.earlier(name)?;
        if !operand.kind.is_computable() {
            let what = format!("{name} is a {}", operand.kind.name());
            return Err((what, "use fields that are numbers, dates, times, booleans or strings".into()));
        }
        Ok(operand)
    }

    /// The earlier field `name` of any type.
    fn earlier(self, name: &str) -> Result<Operand, Complaint> {
        let mut group = self.path;
        loop {
            group = outer(group);
            let wanted = if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") };
            if let Some(seen) = self.leaves.iter().find(|seen| seen.path == wanted) {
                let shared = self.groups.get(group).copied().unwrap_or_default();
                if seen.levels.repetition != shared.repetition {
                    let advice = "use fields of the record or of the element that contains this field";
                    return Err((format!("{name} is inside a list"), advice.into()));
                }
                return Ok(seen.operand(shared));
            }
            if group.is_empty() {
                self.missing.borrow_mut().push(name.to_owned());
                let advice =
                    "use the name of a field defined before this one, or a dotted path from the record";
                return Err((format!("{name} is not an earlier field"), advice.into()));
            }
        }
    }

    /// Finds the field `name` as [`operand`](Self::operand) does, if its values are keys of another table.
    pub(super) fn referring(self, name: &str) -> Result<(Operand, Referring), Complaint> {
        let operand = self.earlier(name)?;
        let refers =
            self.leaves.iter().find(|seen| seen.index == operand.leaf).and_then(|seen| seen.refers.clone());
        let advice = "name an earlier field with `ref` values; for a column of the parent, write `parent = \"COLUMN\"`";
        let refers =
            refers.ok_or_else(|| (format!("{name} does not refer to a table"), advice.to_owned()))?;
        Ok((operand, refers))
    }

    /// Finds the elements of the earlier list `name` of the same record or element, if it `counts` them, or the values
    /// in it; `None` if no list has the name.
    pub(super) fn elements(self, name: &str, counts: bool) -> Result<Option<Elements>, Complaint> {
        let mut group = self.path;
        let own = self.groups.get(outer(group)).copied().unwrap_or_default();
        loop {
            group = outer(group);
            let wanted = if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") };
            let found = self.lists.iter().find_map(|list| Some((list, below(&list.path, &wanted)?)));
            if let Some((list, column)) = found {
                let shared = self.groups.get(group).copied().unwrap_or_default();
                if shared.repetition != own.repetition || list.levels.repetition != own.repetition + 1 {
                    let advice = "use a list of the record or of the element that contains this field";
                    return Err((format!("{} is not a list beside this field", list.path), advice.into()));
                }
                return self.in_list(list, column, shared, counts).map(Some);
            }
            if group.is_empty() {
                self.missing.borrow_mut().push(name.to_owned());
                return Ok(None);
            }
        }
    }

    /// The elements of a list, or the values of its `column`, which is empty for a list of values.
    fn in_list(
        self,
        list: &SeenList,
        column: &str,
        shared: Levels,
        counts: bool,
    ) -> Result<Elements, Complaint> {
        if counts && !column.is_empty() {
            let what = format!("a count of {}.{column}", list.path);
            return Err((what, "name the list: it counts elements".into()));
        }
        let path =
            if column.is_empty() { list.elements.clone() } else { format!("{}.{column}", list.elements) };
        let is_wanted = |seen: &&Seen| if counts { seen.index == list.first } else { seen.path == path };
        let Some(seen) = self.leaves.iter().find(is_wanted) else {
            let what = format!("the list {} has no values {column:?}", list.path);
            let all = self.leaves.iter().filter_map(|seen| below(&list.elements, &seen.path));
            let all: Vec<String> = all.map(|column| format!("{}.{column}", list.path)).collect();
            return Err((what, format!("name one of: {}", all.join(", "))));
        };
        let level = if counts { list.levels } else { seen.levels };
        Ok(Elements {
            operand: [Operand { nullable: false, ..seen.operand(shared) }],
            there: level.definition,
            deepest: level.repetition,
            around: shared.repetition,
            may_be_none: list.may_be_empty
                || list.levels.definition > shared.definition + 1
                || seen.levels.definition > list.levels.definition,
        })
    }
}

/// The path of the group around `path`, which is empty for the record.
fn outer(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(outer, _)| outer)
}

/// What follows `group` in `path`: nothing if it is the same.
fn below<'p>(group: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(group)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
}

impl Seen {
    /// The leaf as an operand of a field that shares groups with these levels.
    fn operand(&self, shared: Levels) -> Operand {
        Operand {
            leaf: self.index,
            kind: self.kind.clone(),
            repetition: self.levels.repetition,
            // Groups on both paths are present wherever the field is.
            nullable: self.levels.definition > shared.definition,
            reach: self.reach,
            longest: self.longest,
            row: OperandRow::Own,
        }
    }
}

/// Finds the key `name`, which is a dataset and one of its fields, for the field `path` of the dataset `own`.
pub(super) fn key(
    name: &str,
    (own, root, path): (&str, SpecTable<'_>, &str),
    tables: Option<&Tables<'_>>,
    folder: &SpecFolder<'_>,
    depth: usize,
) -> Result<FoundKey, Complaint> {
    let advice = "write a dataset and a required field of its record with `sequence`, `unique` or `uuid` values, or a `unique` pattern, like \"orders.id\"";
    let Some((of, field)) = name.split_once('.') else {
        // The number of the row, which no column need have.
        let tables = tables.filter(|tables| tables.has(name) && name != own);
        let tables = tables.ok_or_else(|| (format!("{name:?} is not a key of a dataset"), advice.into()))?;
        let rows = tables.rows(name).map_err(invalid(name))?;
        return Ok((ReferencedKey::Sequence { start: 0, step: 1 }, rows));
    };
    let missing = || (format!("{of} has no key {field:?}"), advice.to_owned());
    let wrong = |error: Error| (format!("{of} has no key {field:?}: {error}"), advice.to_owned());
    let referenced = match tables.filter(|tables| tables.has(of)) {
        Some(tables) => tables.with_key(of, field, depth + 1).map_err(wrong)?,
        None if of == own && (field == path || depth >= MAX_REFERENCES) => return Err(missing()),
        None if of == own => read_table(root, None, folder, depth + 1, Only::Key(field)).map_err(wrong)?,
        None => other_dataset(of, folder, depth)?,
    };
    let mut found = None;
    referenced.each_leaf(&mut |other, leaf| {
        if other.path == field && other.levels == Levels::default() {
            let uuid = || UuidKey { salt: referenced.salt, draws: other.value_draws };
            let is_uuid = matches!(leaf.values, ValueSpec::Uuid);
            found = ReferencedKey::new(&leaf.values).or_else(|| is_uuid.then(|| ReferencedKey::Uuid(uuid())));
        }
    });
    found.map(|key| (key, referenced.rows)).ok_or_else(missing)
}

/// The table or dataset `name` with at least this `column`, which is looked up from the dataset `own`.
pub(super) fn other_table(
    (name, column): (&str, &str),
    own: &str,
    tables: Option<&Tables<'_>>,
    folder: &SpecFolder<'_>,
    depth: usize,
) -> Result<Arc<Dataset>, Complaint> {
    match tables.filter(|tables| tables.has(name)) {
        Some(tables) => match tables.columns_without(name, column) {
            Some(all) => {
                let what = format!("{name} has no column {column:?}");
                Err((what, format!("its columns are {}", all.join(", "))))
            }
            None => tables.with_column(name, column, depth + 1).map_err(invalid(name)),
        },
        None if name == own => {
            Err((format!("{name} looks up its own columns"), "look up columns of another table".into()))
        }
        None => other_dataset(name, folder, depth).map(Arc::new),
    }
}

/// How the rows of the table `name` follow from the rows of `own`, its parent.
pub(super) fn children(name: &str, own: &str, tables: Option<&Tables<'_>>) -> Result<Arc<FanOut>, Complaint> {
    let fan_out = tables.map_or(Ok(None), |tables| tables.fan_out(name)).map_err(invalid(name))?;
    fan_out.filter(|fan_out| fan_out.parent == own).ok_or_else(|| {
        let what = format!("{name:?} is not a table with rows for each row of {own}");
        (what, format!("name one with `per = {{ table = \"{own}\", rows = ... }}`"))
    })
}

/// The complaint that the table `name` is not valid, or the original error if it is about a table that `name` needs.
fn invalid(name: &str) -> impl Fn(Error) -> Complaint {
    const FIX: &str = "fix that table";
    move |error| match error.what().starts_with(CYCLE) || error.advice() == FIX {
        true => (error.what(), error.advice()),
        false => (format!("the table {name} is not valid: {error}"), FIX.to_owned()),
    }
}

/// Whether file names can start with `name`.
pub(crate) fn is_stem(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(fits)
}

/// Reads the dataset `name`: a spec in the same folder, or a built-in one.
fn other_dataset(name: &str, folder: &SpecFolder<'_>, depth: usize) -> Result<Dataset, Complaint> {
    if depth >= MAX_REFERENCES {
        let what = format!("datasets that refer to one another more than {MAX_REFERENCES} deep");
        return Err((what, "shorten the chain of references".into()));
    }
    if !is_stem(name) {
        let advice = "write a dataset and its key, like \"orders.id\"";
        return Err((format!("{name:?} is not a valid dataset name"), advice.into()));
    }
    let file = format!("{name}.toml");
    let text = match (folder.read(&file), Dataset::built_in_text(name)) {
        (Ok(text), _) => text,
        (Err(_), Some(Ok(text))) => text,
        (Err(error), _) => {
            let what = format!("cannot find the dataset {name}: {}: {error}", folder.path(&file).display());
            return Err((what, "put its spec next to this one, or use a built-in dataset".into()));
        }
    };
    read(&text, folder, depth + 1)
        .map_err(|error| (format!("the spec of {name} is not valid: {error}"), "fix that spec".to_owned()))
}
