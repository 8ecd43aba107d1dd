//! Values as the records hold them.

use std::time::{Duration, UNIX_EPOCH};

use arrow_schema::TimeUnit;
use sawmill_loader::{RecordedFiles, Tally};
use sawmill_profile::turns;
use sawmill_source::{Error, Kind, Result};
use serde_json::{Value, json};

/// A tally as it is stored.
pub(super) fn stored(tally: &Tally) -> Value {
    json!([tally.rows, tally.content_sum.to_string(), tally.non_null])
}

/// The files' stamps; an empty text for a file without one.
pub(super) fn stored_stamps(files: &RecordedFiles) -> Value {
    files.stamps.iter().map(|stamp| stamp.as_deref().unwrap_or_default()).collect()
}

/// This moment, UTC, RFC 3339.
pub(super) fn now() -> String {
    ago(Duration::ZERO)
}

/// The moment that is so long past.
pub(crate) fn ago(duration: Duration) -> String {
    let since_1970 = turns::wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_1970 = since_1970.saturating_sub(duration).as_millis();
    let mut text = Vec::new();
    crate::encode::json::write_stamp(since_1970 as i64, TimeUnit::Millisecond, true, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The text by which moments sort. The fraction of a second has no trailing zeros, so that `.5Z` would sort
/// after `.512Z` with its `Z`, and before it without.
pub(crate) fn by_time(moment: &str) -> &str {
    moment.trim_end_matches('Z')
}

pub(super) fn read_stored(text: Option<String>) -> Result<Option<Tally>> {
    let Some(text) = text else { return Ok(None) };
    let (rows, sum, non_null): (u64, String, Vec<u64>) =
        serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    read_tally(rows, &sum, non_null).map(Some)
}

pub(super) fn read_tally(rows: u64, sum: &str, non_null: Vec<u64>) -> Result<Tally> {
    let content_sum = sum.parse().map_err(|_| {
        Error::new(Kind::Server, format!("the record holds the content sum {sum:?}"))
            .advise("forget the load and start it again")
    })?;
    Ok(Tally { rows, content_sum, non_null })
}

/// The error for a value that no load has written.
pub(super) fn unreadable(error: &serde_json::Error) -> Error {
    Error::new(Kind::Server, format!("cannot read the record of the load: {error}"))
        .advise("forget the load and start it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_sort_by_time_whatever_digits_their_fractions_have() {
        let sorted = ["58Z", "59Z", "59.049Z", "59.05Z", "59.051Z", "59.5Z", "59.512Z"]
            .map(|seconds| format!("2026-11-24T18:10:{seconds}"));
        assert!(sorted.is_sorted_by_key(|moment| by_time(moment)));
    }
}
