//! The cost of each way in which rows can arrive at the server.

use sawmill_loader::Mode;
use serde::Serialize;

use crate::table::columns::Key;

/// A way in which rows can arrive, and its cost.
#[derive(Clone, Debug, Serialize)]
pub struct ExplainedWay {
    /// What makes a repeated row harmless, and the option that asks for it.
    pub way: String,
    /// How often a row can be in the table.
    pub delivery: String,
    /// Thousand rows a second over HTTP; see [`CrateExplanation::measured`](super::CrateExplanation::measured).
    /// `None` if not measured.
    pub over_http: Option<u32>,
    /// The same over the PostgreSQL wire.
    pub over_pg: Option<u32>,
    /// Costs besides the rate.
    pub costs: String,
    /// Whether this load uses this way.
    pub chosen: bool,
}

/// Where the rates come from.
pub(super) const MEASURED: &str = "thousand rows/s of whole loads: 1 M rows of 19 columns, 2 connections, \
    CrateDB 6.4.3 on 2 cores (docs/loading-cratedb.md)";

/// Rates over HTTP and over the PostgreSQL wire.
type Rates = (Option<u32>, Option<u32>);
const TAGS: Rates = (Some(101), Some(121));
const ROW_KEY: Rates = (Some(90), Some(102));
const NOT_MEASURED: Rates = (None, None);

/// The ways of a mode, with the way marked that a load with this key uses.
pub(super) fn ways(mode: Mode, key: &Key) -> Vec<ExplainedWay> {
    let way = |way: &str, delivery: &str, (over_http, over_pg): Rates, costs: &str, chosen: bool| {
        let [way, delivery, costs] = [way, delivery, costs].map(str::to_owned);
        ExplainedWay { way, delivery, over_http, over_pg, costs, chosen }
    };
    let (once, row, own) = ("exactly once", matches!(key, Key::Row(_)), matches!(key, Key::Own(_)));
    let of_key = match mode {
        Mode::Append => [
            way(
                "the table's primary key",
                once,
                NOT_MEASURED,
                "a look-up of each row, as with a row key",
                own,
            ),
            way("--row-key, if the table was made with it", once, ROW_KEY, "a look-up of each row", row),
        ],
        _ => [
            way("--primary-key", once, NOT_MEASURED, "a look-up of each row, as with a row key", own),
            way("--row-key", once, ROW_KEY, "a look-up of each row, and a column that stays", row),
        ],
    };
    let tags = matches!(key, Key::Tags(_));
    let tags = way("batch tags (default)", once, TAGS, "a column while rows gather, and a count", tags);
    let without = way("--at-least-once", "at least once", NOT_MEASURED, "nothing", *key == Key::None);
    let first = (mode != Mode::Append).then_some(tags);
    first.into_iter().chain(of_key).chain([without]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_is_chosen_and_an_append_has_no_tags() {
        let keys = [Key::Tags("t".into()), Key::Row("k".into()), Key::Own(vec!["id".into()]), Key::None];
        for (at, key) in keys.iter().enumerate() {
            let ways = ways(Mode::Create, key);
            let chosen: Vec<usize> = (0..ways.len()).filter(|way| ways[*way].chosen).collect();
            assert_eq!(chosen, [[0], [2], [1], [3]][at]);
        }
        assert!(ways(Mode::Append, &Key::None).iter().all(|way| !way.way.contains("tags")));
    }
}
