//! Files that hold a column which their folders name, too: the file's values are taken, unless they contradict the
//! folder's.

use arrow_schema::{DataType, Schema};
use sawmill_footer::Footer;

use super::FolderName;
use crate::condition::pruning::outlook;
use crate::condition::rows::RowTest;
use crate::condition::{Condition, Literal};

/// Refuses a folder whose value, by the file's statistics, no row of a row group has.
///
/// # Errors
/// Which folder, and what the file has.
pub(crate) fn refuse_contradiction(
    footer: &Footer,
    schema: &Schema,
    folders: &[FolderName],
) -> Result<(), String> {
    for folder in folders {
        let Ok(field) = schema.field_with_name(&folder.column) else { continue };
        let is_null = Condition::is_null(&folder.column);
        let Some(value) = &folder.value else {
            contradicted(footer, schema, &is_null, folder)?;
            continue;
        };
        if RowTest::new(&is_null, schema, &[]).is_err() {
            // Values of such a column cannot be compared.
            continue;
        }
        let literal = match (field.data_type(), value.as_str()) {
            (DataType::Boolean, "true" | "True") => Literal::from(true),
            (DataType::Boolean, "false" | "False") => Literal::from(false),
            _ => Literal::from(value.as_str()),
        };
        contradicted(footer, schema, &Condition::equals(&folder.column, literal), folder)?;
    }
    Ok(())
}

fn contradicted(
    footer: &Footer,
    schema: &Schema,
    condition: &Condition,
    folder: &FolderName,
) -> Result<(), String> {
    let FolderName { column, value } = folder;
    let shown = value.as_ref().map_or_else(|| "null".to_owned(), |value| format!("{value:?}"));
    let differs = |what: String| {
        Err(format!(
            "its folder says that column {column:?} is {shown}, but the file has the column, too: {what}"
        ))
    };
    let test = match RowTest::new(condition, schema, &[]) {
        Ok(test) => test,
        Err(_) if value.is_none() => return Ok(()),
        Err(error) => return differs(error.what()),
    };
    for (number, group) in footer.row_groups().enumerate() {
        if group.num_rows() > 0 && !outlook(&test, footer, group).some {
            return differs(format!("no row of row group {number} has this value"));
        }
    }
    Ok(())
}
