//! Nested rows as rows of flat tables: one for the rows themselves, and one for each level of lists.
//!
//! | field | becomes |
//! |---|---|
//! | scalar | a column; inside structs the names are joined: `address_city` |
//! | struct | its fields, and `address_present boolean` if it can be NULL |
//! | list, map | `phones_count integer`, NULL if the list is NULL; its items are rows of the table `phones` |
//! | an item that is a scalar | the column `value` |
//! | an item that is a struct | its fields, and `_present` if it can be NULL |
//! | an item that is a list | `_count`; its items are rows of the table `..._item` |
//!
//! Every table begins with its key: `_row`, the number of the row in the source, from 0, and for each level
//! of lists the position in the list, from 1, as `_ordinal`, `_ordinal2` and so on. The key depends on the
//! source alone, so tables are loaded independently of each other and an interrupted load can be resumed.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
pub(crate) use rows::FlatRows;
use sawmill_pgcopy::item_of;
use sawmill_source::{Error, Kind, Result, Source, Unit, UnitKey};

mod rows;

/// A flat table of a nested schema.
pub(crate) struct FlatTable {
    /// The names of fields that lead to its lists; empty for the rows themselves.
    pub path: Vec<String>,
    /// The position of the table whose lists it holds.
    pub parent: Option<usize>,
    /// Its columns.
    pub schema: SchemaRef,
    /// The names of its key's columns.
    pub key: Vec<String>,
    /// The columns of the nested schema that it is read from.
    reads: Vec<usize>,
    /// For each level of lists, where they are below the rows or the items of the level before.
    levels: Vec<FieldPath>,
    columns: Vec<FlatColumn>,
}

/// The positions of fields from a struct downwards; empty for the starting point itself.
type FieldPath = Vec<usize>;

/// The content of a column.
enum FlatColumn {
    /// The values of a field.
    Value(FieldPath),
    /// The lengths of lists.
    Count(FieldPath),
    /// Whether structs are not NULL.
    Present(FieldPath),
}

/// The flat tables of a nested schema, each after the one that its key refers to.
///
/// # Errors
/// Two tables, or two columns of a table, that would have the same name.
pub(crate) fn flat_tables(schema: &Schema) -> Result<Vec<FlatTable>> {
    let rows = Field::new_struct("", schema.fields().clone(), false);
    let mut tables = Vec::new();
    let mut open = vec![PendingTable { path: Vec::new(), parent: None, levels: Vec::new(), item: rows }];
    while let Some(pending) = open.pop() {
        let position = tables.len();
        let (table, mut below) = pending.table(position);
        tables.push(table);
        below.reverse();
        open.append(&mut below);
    }
    refuse_doubles(&tables)?;
    Ok(tables)
}

fn refuse_doubles(tables: &[FlatTable]) -> Result<()> {
    let refused = |what: String| {
        Error::new(Kind::Schema, what)
            .advise("give one of the fields another name (--rename), or leave it out")
    };
    let mut names = BTreeSet::new();
    for table in tables {
        let name = table.path.join("_");
        if !names.insert(name.clone()) {
            return Err(refused(format!("two lists would both be the table ..._{name}")));
        }
        let mut columns = BTreeSet::new();
        if let Some(field) = table.schema.fields().iter().find(|field| !columns.insert(field.name())) {
            let place = if name.is_empty() { String::new() } else { format!(" of the table ..._{name}") };
            return Err(refused(format!("two fields would both be the column {:?}{place}", field.name())));
        }
    }
    Ok(())
}

/// A table whose columns are still to be found.
struct PendingTable {
    path: Vec<String>,
    parent: Option<usize>,
    levels: Vec<FieldPath>,
    /// The rows, or the items of its lists.
    item: Field,
}

/// The columns and lists found below an item.
struct ItemColumns {
    fields: Vec<Field>,
    columns: Vec<FlatColumn>,
    below: Vec<PendingTable>,
}

impl PendingTable {
    /// The table at this position, and the tables of its lists.
    fn table(self, position: usize) -> (FlatTable, Vec<PendingTable>) {
        let mut key = vec!["_row".to_owned()];
        key.extend((1..=self.levels.len()).map(|level| match level {
            1 => "_ordinal".to_owned(),
            deeper => format!("_ordinal{deeper}"),
        }));
        let types = [DataType::Int64].into_iter().chain(std::iter::repeat(DataType::Int32));
        let fields =
            key.iter().zip(types).map(|(name, data_type)| Field::new(name, data_type, false)).collect();
        let mut found = ItemColumns { fields, columns: Vec::new(), below: Vec::new() };
        self.add_field(position, &self.item, &mut Vec::new(), &mut Vec::new(), false, &mut found);
        let reads = match self.levels.first().and_then(|place| place.first()) {
            Some(column) => vec![*column],
            None => match self.item.data_type() {
                DataType::Struct(fields) => (0..fields.len()).collect(),
                _ => Vec::new(),
            },
        };
        let table = FlatTable {
            path: self.path,
            parent: self.parent,
            schema: Arc::new(Schema::new(found.fields)),
            key,
            reads,
            levels: self.levels,
            columns: found.columns,
        };
        (table, found.below)
    }

    /// Adds the columns of a field, at `place` and with `names` below the item. `nullable`: a struct around
    /// it can be NULL.
    fn add_field(
        &self,
        position: usize,
        field: &Field,
        place: &mut FieldPath,
        names: &mut Vec<String>,
        nullable: bool,
        found: &mut ItemColumns,
    ) {
        let nullable = nullable || field.is_nullable();
        let named = |suffix: &str| names.join("_") + suffix;
        if let Some(item) = item_of(field) {
            found.fields.push(Field::new(named("_count"), DataType::Int32, nullable));
            found.columns.push(FlatColumn::Count(place.clone()));
            let mut path = self.path.clone();
            if names.is_empty() {
                path.push("item".to_owned());
            } else {
                path.extend_from_slice(names);
            }
            let levels = self.levels.iter().chain([&*place]).cloned().collect();
            found.below.push(PendingTable { path, parent: Some(position), levels, item: item.into_owned() });
            return;
        }
        match field.data_type() {
            DataType::Struct(fields) => {
                if field.is_nullable() {
                    found.fields.push(Field::new(named("_present"), DataType::Boolean, false));
                    found.columns.push(FlatColumn::Present(place.clone()));
                }
                for (i, field) in fields.iter().enumerate() {
                    place.push(i);
                    names.push(field.name().clone());
                    self.add_field(position, field, place, names, nullable, found);
                    names.pop();
                    place.pop();
                }
            }
            _ => {
                let name = if names.is_empty() { "value".to_owned() } else { named("") };
                found.fields.push(field.clone().with_name(name).with_nullable(nullable));
                found.columns.push(FlatColumn::Value(place.clone()));
            }
        }
    }
}

/// The number of each record, from 0, in the order of files, of their row groups, and of the rows in these.
#[derive(Debug)]
pub(crate) struct RecordNumbers {
    /// The number of the first record of each row group, with file and row group.
    groups: Vec<(u64, (u32, u32))>,
}

impl RecordNumbers {
    pub(crate) fn new(source: &dyn Source) -> Self {
        // One unit for a row group.
        let mut units: Vec<Unit> = source.plan(u64::MAX).into_iter().flatten().collect();
        units.sort_unstable_by_key(|unit| unit.key);
        let mut groups: Vec<(u64, (u32, u32))> = Vec::new();
        let mut records = 0;
        for unit in units {
            let group = (unit.key.file, unit.key.row_group);
            if groups.last().is_none_or(|(_, last)| *last != group) {
                groups.push((records, group));
            }
            records += unit.rows;
        }
        Self { groups }
    }

    /// The number of the first record of a row group; 0 if the source lacks it.
    pub(crate) fn of_group(&self, file: u32, row_group: u32) -> u64 {
        let at = self.groups.binary_search_by_key(&(file, row_group), |(_, group)| *group);
        at.ok().and_then(|at| self.groups.get(at)).map_or(0, |(first, _)| *first)
    }

    /// The number of a unit's first record.
    pub(crate) fn of_unit(&self, unit: UnitKey) -> u64 {
        self.of_group(unit.file, unit.row_group) + unit.first_row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Fields;

    fn list(item: DataType) -> DataType {
        DataType::List(Arc::new(Field::new("item", item, true)))
    }

    fn structure(fields: Vec<Field>) -> DataType {
        DataType::Struct(Fields::from(fields))
    }

    fn shown(table: &FlatTable) -> String {
        let columns: Vec<&str> = table.schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("{}: {}", table.path.join("_"), columns.join(" "))
    }

    #[test]
    fn every_level_of_lists_becomes_a_table_with_the_key_of_the_one_above() {
        let phone = structure(vec![
            Field::new("number", DataType::Utf8, true),
            Field::new("tags", list(DataType::Utf8), true),
        ]);
        let schema = Schema::new(vec![
            Field::new("name", DataType::Utf8, true),
            Field::new("home", structure(vec![Field::new("city", DataType::Utf8, false)]), true),
            Field::new("phones", list(phone), true),
            Field::new("matrix", list(list(DataType::Float64)), true),
        ]);
        let tables = flat_tables(&schema).unwrap();
        assert_eq!(
            tables.iter().map(shown).collect::<Vec<_>>(),
            [
                ": _row name home_present home_city phones_count matrix_count",
                "phones: _row _ordinal _present number tags_count",
                "phones_tags: _row _ordinal _ordinal2 value",
                "matrix: _row _ordinal _count",
                "matrix_item: _row _ordinal _ordinal2 value",
            ]
        );
        let parents: Vec<_> = tables.iter().map(|table| table.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(1), Some(0), Some(3)]);
        assert!(tables[0].schema.field_with_name("home_city").unwrap().is_nullable());
    }

    #[test]
    fn names_that_would_come_twice_are_refused() {
        let columns = |fields| flat_tables(&Schema::new(fields)).err().unwrap().what();
        let inner = |data_type| structure(vec![Field::new("b", data_type, true)]);
        let doubled = columns(vec![
            Field::new("a", inner(DataType::Utf8), true),
            Field::new("a_b", DataType::Utf8, true),
        ]);
        assert!(doubled.contains("column \"a_b\""), "{doubled}");
        let doubled = columns(vec![
            Field::new("a", list(inner(list(DataType::Utf8))), true),
            Field::new("a_b", list(DataType::Utf8), true),
        ]);
        assert!(doubled.contains("table ..._a_b"), "{doubled}");
    }

    #[test]
    fn records_are_numbered_across_row_groups_and_files() {
        let numbers = RecordNumbers { groups: vec![(0, (0, 0)), (10, (0, 2)), (15, (1, 0))] };
        let key = |file, row_group, first_row| UnitKey { file, row_group, first_row };
        for (unit, number) in [(key(0, 0, 9), 9), (key(0, 2, 4), 14), (key(1, 0, 0), 15)] {
            assert_eq!(numbers.of_unit(unit), number);
        }
    }
}
