//! The server's answer to `bulk_args`: one result a row.

use serde::Deserialize;

use crate::connect::client::clip;

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
