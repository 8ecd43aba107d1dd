//! The options that decide how a load stores rows and creates its table, as recorded with it.
//!
//! A command resumes a load, or finds it complete, only if it would create the same table and values. A hash of the
//! `CREATE TABLE` statement and of the columns' encodings shows that; the recorded options only serve to name the
//! difference. An option without effect on the source, such as `--dates` without dates, may differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::encode::form::Form;
use crate::options::CrateOptions;
use crate::table::columns::Plan;

/// Hashes of the stored form of values and table, and the options that decide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Hash of the columns' encodings.
    values: String,
    /// Hash of the `CREATE TABLE` statement; `None` for an append.
    table: Option<String>,
    options: BTreeMap<String, String>,
}

impl Shape {
    /// The shape of a load into a table that this statement creates; without a statement, of an append.
    pub(crate) fn new(options: &CrateOptions, plan: &Plan, create: Option<&str>) -> Self {
        let hash = |text: &str| format!("{:016x}", xxh3_64(text.as_bytes()));
        let forms: Vec<&Form> = plan.columns.iter().map(|column| &column.form).collect();
        let mut given = of_values(options);
        if create.is_some() {
            given.extend(of_table(options));
        }
        Self {
            values: hash(&format!("{forms:?}")),
            table: create.map(hash),
            options: given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// The options in which a recorded load differs from this one: `--timestamps was text and is bigint now`.
    /// `None` if values and table are the same, or if the recorded options do not show the difference.
    pub(crate) fn differs_from(&self, recorded: &Self) -> Option<String> {
        // An append creates no table: only the values count.
        if self.values == recorded.values && (self.table.is_none() || self.table == recorded.table) {
            return None;
        }
        const NOT_GIVEN: &str = "not given";
        let value =
            |of: &Self, name: &String| of.options.get(name).map_or(NOT_GIVEN, String::as_str).to_owned();
        let names = self.options.keys().filter(|name| value(self, name) != value(recorded, name));
        let shown: Vec<String> = names
            .map(|name| format!("{name} was {} and is {} now", value(recorded, name), value(self, name)))
            .collect();
        (!shown.is_empty()).then(|| shown.join("; "))
    }
}

/// The name of an option's value.
fn word(value: &impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}

/// The options that decide how values are stored.
fn of_values(options: &CrateOptions) -> Vec<(&'static str, String)> {
    vec![
        ("--timestamps", word(&options.timestamps)),
        ("--dates", word(&options.dates)),
        ("--times", word(&options.times)),
        ("--binary", word(&options.binary)),
        ("--objects", word(&options.objects)),
    ]
}

/// The options that shape a new table.
fn of_table(options: &CrateOptions) -> Vec<(&'static str, String)> {
    const NOT_GIVEN: &str = "not given";
    let list = |names: &[String]| if names.is_empty() { NOT_GIVEN.to_owned() } else { names.join(",") };
    let given = |value: &Option<String>| value.clone().unwrap_or_else(|| NOT_GIVEN.to_owned());
    let pairs = |pairs: &[(String, String)]| {
        list(&pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
    };
    vec![
        ("--long-text", word(&options.long_text)),
        ("--primary-key", list(&options.primary_key)),
        ("--row-key", given(&options.row_key)),
        ("--loaded-at-column", given(&options.loaded_at)),
        ("--partition-by", given(&options.partition_by)),
        ("--shards", given(&options.shards.map(|shards| shards.to_string()))),
        ("--replicas", given(&options.replicas)),
        ("--with", pairs(&options.with)),
        ("--types", pairs(&options.types)),
        ("--no-index", list(&options.no_index)),
        ("--no-columnstore", if options.no_columnstore { "given".to_owned() } else { NOT_GIVEN.to_owned() }),
    ]
}
