//! The server's answer to `bulk_args`: one result a row.

use serde::Deserialize;

use crate::connect::client::clip;
use crate::encode::json::write_text;
use crate::table::columns::{Key, Plan};
use crate::table::names::CrateTable;

/// A row's result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RowResult {
    Inserted,
    /// `ON CONFLICT DO NOTHING` found a row with this key.
    Present,
    /// Refused, with code and reason.
    Refused(u32, String),
    /// Refused; the server states a reason only for the first ten rows of a shard.
    Unexplained,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<OneResult>,
}

#[derive(Deserialize)]
struct OneResult {
    rowcount: i64,
    #[serde(default)]
    error: Option<Reason>,
    /// The reason in older versions.
    #[serde(default)]
    error_message: Option<String>,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    message: String,
}

/// The results of `rows` rows.
pub(crate) fn parse(body: &[u8], rows: usize) -> Result<Vec<RowResult>, String> {
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| format!("the answer to a batch cannot be read: {error}"))?;
    if answer.results.len() != rows {
        return Err(format!("the answer to a batch has {} results for {rows} rows", answer.results.len()));
    }
    let result = |result: OneResult| match (result.rowcount, result.error, result.error_message) {
        (1.., _, _) => RowResult::Inserted,
        (0, _, _) => RowResult::Present,
        (_, Some(reason), _) => RowResult::Refused(reason.code, clip(&reason.message)),
        (_, None, Some(message)) => RowResult::Refused(0, clip(&message)),
        (_, None, None) => RowResult::Unexplained,
    };
    Ok(answer.results.into_iter().map(result).collect())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_result_and_every_result_is_looked_at() {
        let body = br#"{"cols":[],"duration":7.1,"results":[{"rowcount":1},{"rowcount":0},
            {"rowcount":-2,"error":{"code":4091,"message":"DuplicateKeyException[A document]"}},{"rowcount":-2}]}"#;
        let results = parse(body, 4).unwrap();
        assert_eq!(results[0], RowResult::Inserted);
        assert_eq!(results[1], RowResult::Present);
        assert_eq!(results[2], RowResult::Refused(4091, "DuplicateKeyException[A document]".into()));
        assert_eq!(results[3], RowResult::Unexplained);
        assert!(parse(body, 5).is_err());
        assert!(parse(b"{}", 0).is_err());
    }
}
