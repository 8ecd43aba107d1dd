//! Collects the keys of a dataset before its fields are read: a field may refer to a key that is defined
//! later, such as the manager of an employee.

use std::collections::HashMap;

use crate::draw::value_spec::reader::{OtherTables, Surroundings};
use crate::draw::value_spec::{ReferencedKey, UuidKey, ValueSpec};
use crate::error::Complaint;
use crate::random::rng::purpose;
use crate::spec_file::folder::SpecFolder;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

/// Adds the keys among the fields `specs` of the record, or of its struct at `path`: required fields with
/// `sequence`, `unique` or `uuid` values. `salt` sets the seed of the dataset apart. Fields named in `together` are optional. The reader of the fields reports
/// their faults.
pub(crate) fn collect(
    specs: SpecNode<'_>,
    together: Option<&[String]>,
    path: &str,
    (folder, salt): (&SpecFolder<'_>, u64),
    keys: &mut HashMap<String, ReferencedKey>,
) {
    for spec in specs.array().into_iter().flatten() {
        let Ok(table) = spec.any_table(path, "a field") else { continue };
        let text = |key: &str| table.get(key).and_then(|node| node.string());
        let (Some(name), Some(type_name)) = (text("name"), text("type")) else { continue };
        let optional = table.get("nulls").is_some() || together.is_some_and(|t| t.iter().any(|n| n == name));
        if optional {
            continue;
        }
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match (type_name, table.get("fields")) {
            ("struct", Some(fields)) => {
                let present = super::present(table, fields, &path).ok().and_then(|(names, _)| names);
                collect(fields, present.as_deref(), &path, (folder, salt), keys);
            }
            _ => {
                if let Some(key) = key(table, type_name, &path, (folder, salt)) {
                    keys.insert(path, key);
                }
            }
        }
    }
}

/// The key that a required field is, `None` if its values are not keys.
fn key(
    table: SpecTable<'_>,
    type_name: &str,
    path: &str,
    (folder, salt): (&SpecFolder<'_>, u64),
) -> Option<ReferencedKey> {
    let kind = LogicalType::read(type_name, table, path).ok()??;
    let node = table.get("values")?;
    // Other values cannot be keys.
    let not_here = || -> Complaint { ("not a key".to_owned(), String::new()) };
    let is_key = ["sequence", "unique", "pattern"];
    if node.string() != Some("uuid") {
        let entries = node.any_table(path, "`values`").ok()?;
        entries.entries().next().filter(|(name, _)| is_key.contains(name))?;
    }
    let mut around = Surroundings {
        kind: &kind,
        path,
        folder,
        operand: &mut |_| Err(not_here()),
        key: &mut |_| Err(not_here()),
        tables: OtherTables {
            referring: &|_| Err(not_here()),
            table: &|_, _| Err(not_here()),
            children: &|_| Err(not_here()),
            fan_out: None,
        },
        in_list: false,
        own: None,
    };
    let uuid = UuidKey { salt, draws: purpose(path, "value") };
    ReferencedKey::of_field(&ValueSpec::read(node, &mut around).ok()?, uuid)
}
