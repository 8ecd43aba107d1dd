//! The prefix of a bulk request: statement and opening brackets.

use crate::encode::json::write_text;
use crate::table::columns::{Key, Plan};
use crate::table::names::CrateTable;

/// The part of a request before the rows, in two pieces with the tag in between.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// The clause that makes a repeated row harmless.
pub(crate) const REPEAT: &str = " ON CONFLICT DO NOTHING";

/// Digits of a tag.
pub(crate) const MAX_TAG_LENGTH: usize = 19;

/// The part of a request before the rows. A tag is a value of the statement: the same for all rows.
pub(crate) fn head(table: &CrateTable, plan: &Plan, clause: &str) -> Head {
    let names = plan.inserted();
    let tagged = matches!(plan.key, Key::Tags(_));
    let marks = vec!["?"; names.len() - usize::from(tagged)].join(",");
    let start = format!("INSERT INTO {} ({}) VALUES ({marks}", table.quoted(), names.join(","));
    let mut before = b"{\"stmt\":".to_vec();
    write_text(start.as_bytes(), &mut before);
    // Drop the closing quote: the text continues.
    before.pop();
    let rest = format!("){}\",\"bulk_args\":[", if tagged { "" } else { clause }).into_bytes();
    if tagged {
        before.push(b',');
        Head { before, after: rest }
    } else {
        Head { before: [before, rest].concat(), after: Vec::new() }
    }
}
