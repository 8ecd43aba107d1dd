//! `CREATE TABLE` for a load.
//!
//! <https://cratedb.com/docs/crate/reference/en/latest/sql/statements/create-table.html>. A partition
//! column has to be part of the primary key where there is one; a generated column may be.

use sawmill_source::{Error, Kind, Result};

use crate::options::{CrateOptions, LongText};
use crate::table::columns::{Column, Key, LOADED_AT};
use crate::table::crate_type::{CrateType, Layout};
use crate::table::names::{CrateTable, literal, quote};

/// The partitioning of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The column that the partitions go by; for a function a generated one.
    pub column: String,
    /// `date_trunc` part and its column.
    pub generated: Option<(String, String)>,
}

impl Partition {
    /// Parses a column's name or `date_trunc('month', column)`.
    pub(crate) fn parse(text: &str, columns: &[Column]) -> Result<Self> {
        let refused = |what: String| {
            Error::new(Kind::Config, what)
                .at(format!("--partition-by {text:?}"))
                .advise("give a column of the source, or date_trunc('month', COLUMN)")
        };
        let find = |name: &str| columns.iter().find(|column| column.name == name);
        if let Some(column) = find(text) {
            return match column.crate_type.is_nested() {
                true => Err(refused(format!("the type of column {text:?} is nested"))),
                false => Ok(Self { column: text.to_owned(), generated: None }),
            };
        }
        let inner = text.trim().strip_prefix("date_trunc(").and_then(|rest| rest.strip_suffix(')'));
        let Some((part, column)) = inner.and_then(|inner| inner.split_once(',')) else {
            return Err(refused("there is no such column".to_owned()));
        };
        let part = part.trim().trim_matches('\'').to_lowercase();
        let name = column.trim().trim_matches('"');
        // https://cratedb.com/docs/crate/reference/en/latest/general/builtins/scalar-functions.html#date-trunc
        const PARTS: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
        if !PARTS.contains(&part.as_str()) {
            return Err(refused(format!("{part:?} is not one of {}", PARTS.join(", "))));
        }
        match find(name).map(|column| &column.crate_type) {
            Some(CrateType::Timestamp | CrateType::TimestampTz) => {
                Ok(Self { column: format!("{name}_{part}"), generated: Some((part, name.to_owned())) })
            }
            Some(_) => Err(refused(format!("column {name:?} is not a timestamp"))),
            None => Err(refused(format!("there is no column {name:?}"))),
        }
    }
}

/// What a new table is partitioned by.
pub(crate) fn partition(columns: &[Column], options: &CrateOptions) -> Result<Option<Partition>> {
    options.partition_by.as_deref().map(|text| Partition::parse(text, columns)).transpose()
}

/// The columns of a new table's primary key, with that of its partitions.
pub(crate) fn primary_key(key: &Key, partition: Option<&Partition>) -> Vec<String> {
    let mut primary = match key {
        Key::Row(name) => vec![name.clone()],
        Key::Own(names) => names.clone(),
        Key::Tags(_) | Key::None => return Vec::new(),
    };
    primary
        .extend(partition.map(|partition| partition.column.clone()).filter(|name| !primary.contains(name)));
    primary
}

/// The statement that creates the table.
pub(crate) fn create_table(
    table: &CrateTable,
    columns: &[Column],
    key: &Key,
    options: &CrateOptions,
) -> Result<String> {
    let partition = partition(columns, options)?;
    let primary = primary_key(key, partition.as_ref());
    let special = |name: &str| {
        primary.iter().any(|key| key == name)
            || partition.as_ref().is_some_and(|partition| partition.column == name)
    };
    let mut lines = Vec::new();
    if let Key::Row(name) = key {
        lines.push(format!("  {} TEXT NOT NULL", quote(name)));
    }
    for column in columns {
        let plain_text = options.long_text == LongText::Noindex && !special(&column.name);
        let layout = Layout { objects: options.objects, plain_text };
        let mut line = format!("  {} {}", quote(&column.name), column.crate_type.ddl(layout));
        if !column.nullable {
            line += " NOT NULL";
        }
        let storage = column.crate_type.text_storage(layout);
        let object = matches!(column.crate_type.innermost(), CrateType::Object(_));
        if !storage.is_empty() {
            line += storage;
        } else if !special(&column.name) && !object {
            if options.no_index.contains(&column.name) {
                line += " INDEX OFF";
            }
            if options.no_columnstore && column.crate_type.may_leave_columnstore() {
                line += " STORAGE WITH (columnstore = false)";
            }
        }
        lines.push(line);
    }
    if let Some(name) = &options.loaded_at {
        lines.push(format!("  {} {LOADED_AT}", quote(name)));
    }
    if let Key::Tags(name) = key {
        lines.push(format!("  {} BIGINT INDEX OFF", quote(name)));
    }
    if let Some((part, source)) = partition.as_ref().and_then(|partition| partition.generated.as_ref()) {
        let name = partition.as_ref().map(|partition| partition.column.as_str()).unwrap_or_default();
        if columns.iter().any(|column| column.name == name) {
            return Err(Error::new(Kind::Config, format!("the source has a column {name:?} already"))
                .at(format!("table {table}"))
                .advise("rename it: the partitions go by a generated column of that name"));
        }
        lines.push(format!(
            "  {} GENERATED ALWAYS AS date_trunc({}, {})",
            quote(name),
            literal(part),
            quote(source)
        ));
    }
    if !primary.is_empty() {
        let names = primary.iter().map(|name| quote(name)).collect::<Vec<_>>();
        lines.push(format!("  PRIMARY KEY ({})", names.join(", ")));
    }
    let mut ddl = format!("CREATE TABLE {} (\n{}\n)", table.quoted(), lines.join(",\n"));
    if let Some(partition) = &partition {
        ddl += &format!("\nPARTITIONED BY ({})", quote(&partition.column));
    }
    if let Some(shards) = options.shards {
        ddl += &format!("\nCLUSTERED INTO {shards} SHARDS");
    }
    ddl += &parameters(table, options)?;
    Ok(ddl)
}

/// The WITH clause. CrateDB silently takes the last of two values for one name; this refuses them.
fn parameters(table: &CrateTable, options: &CrateOptions) -> Result<String> {
    let mut given: Vec<(&str, &str)> = Vec::new();
    let replicas = options.replicas.iter().map(|replicas| ("number_of_replicas", replicas.as_str()));
    let with = options.with.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in replicas.chain(with) {
        if given.iter().any(|(known, _)| *known == name) {
            return Err(Error::new(Kind::Config, format!("the parameter {name} has two values"))
                .at(format!("table {table}"))
                .advise("give each parameter of the table once; --replicas is number_of_replicas"));
        }
        given.push((name, value));
    }
    let written = given.iter().map(|(name, value)| {
        let name = if *name == "number_of_replicas" { (*name).to_owned() } else { quote(name) };
        format!("{name} = {}", literal(value))
    });
    match given.is_empty() {
        true => Ok(String::new()),
        false => Ok(format!("\nWITH ({})", written.collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema, TimeUnit};

    use super::*;
    use crate::table::columns::natural;

    fn ddl(options: &CrateOptions, key: &Key) -> Result<String> {
        let item = Field::new("item", DataType::Int64, true);
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("at", DataType::Timestamp(TimeUnit::Millisecond, None), true),
            Field::new("name", DataType::Utf8View, true),
            Field::new("numbers", DataType::List(item.into()), true),
            Field::new("flag", DataType::Boolean, true),
        ]);
        let table = CrateTable::new("doc", "t").unwrap();
        let columns = natural(&schema, options, &table)?;
        create_table(&table, &columns, key, options)
    }

    #[test]
    fn a_plain_table_has_its_columns_and_nothing_else() {
        let ddl = ddl(&CrateOptions::default(), &Key::None).unwrap();
        let expected = "CREATE TABLE \"doc\".\"t\" (\n  \"id\" BIGINT NOT NULL,\n  \"at\" TIMESTAMP WITHOUT TIME ZONE,\n  \
                        \"name\" TEXT,\n  \"numbers\" ARRAY(BIGINT),\n  \"flag\" BOOLEAN\n)";
        assert_eq!(ddl, expected);
    }

    #[test]
    fn partitions_by_month_get_a_generated_column_that_is_part_of_the_key() {
        let options = CrateOptions {
            partition_by: Some("date_trunc('month', at)".into()),
            shards: Some(6),
            replicas: Some("0-1".into()),
            no_index: vec!["name".into()],
            ..CrateOptions::default()
        };
        let ddl = ddl(&options, &Key::Row("k".into())).unwrap();
        for part in [
            "\"k\" TEXT NOT NULL",
            "\"at_month\" GENERATED ALWAYS AS date_trunc('month', \"at\")",
            "PRIMARY KEY (\"k\", \"at_month\")",
            "PARTITIONED BY (\"at_month\")",
            "CLUSTERED INTO 6 SHARDS",
            "WITH (number_of_replicas = '0-1')",
            "\"name\" TEXT INDEX OFF",
        ] {
            assert!(ddl.contains(part), "{part}: {ddl}");
        }
    }

    #[test]
    fn storage_is_left_out_where_the_type_allows_it() {
        let options =
            CrateOptions { no_columnstore: true, long_text: LongText::Noindex, ..CrateOptions::default() };
        let ddl = ddl(&options, &Key::Own(vec!["id".into()])).unwrap();
        for part in [
            "\"id\" BIGINT NOT NULL,",
            "\"name\" TEXT INDEX OFF STORAGE WITH (columnstore = false)",
            "\"numbers\" ARRAY(BIGINT) STORAGE WITH (columnstore = false)",
            "\"flag\" BOOLEAN,",
        ] {
            assert!(ddl.contains(part), "{part}: {ddl}");
        }
    }

    #[test]
    fn parameters_of_the_table_stand_at_its_end_each_once() {
        let with = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let options = CrateOptions {
            replicas: Some("0".into()),
            with: vec![with("mapping.total_fields.limit", "3000"), with("refresh_interval", "5s")],
            ..CrateOptions::default()
        };
        let expected = "\nWITH (number_of_replicas = '0', \"mapping.total_fields.limit\" = '3000', \"refresh_interval\" = '5s')";
        assert!(ddl(&options, &Key::None).unwrap().ends_with(expected));
        let twice = CrateOptions { with: vec![with("number_of_replicas", "1")], ..options };
        assert!(ddl(&twice, &Key::None).unwrap_err().to_string().contains("two values"));
    }

    #[test]
    fn what_cannot_partition_is_refused() {
        for by in ["nothing", "date_trunc('month', id)", "date_trunc('eon', at)", "numbers"] {
            let options = CrateOptions { partition_by: Some(by.into()), ..CrateOptions::default() };
            assert!(ddl(&options, &Key::None).is_err(), "{by}");
        }
    }
}
