//! Whether the server can drop the column of the tags, asked before anything is created.

use sawmill_source::{Error, Kind, Result};

use crate::connect::sql::Sql;

/// The first version whose tables can drop a column
/// (<https://cratedb.com/docs/crate/reference/en/latest/sql/statements/alter-table.html>).
const FIRST: (u32, u32) = (5, 5);

/// The first asks all nodes. A user who may not read `sys` gets the version of the node that answers.
const QUESTIONS: [&str; 2] = ["SELECT version['number'] FROM sys.nodes", "SELECT version()"];

/// Refuses a cluster that has a node of an earlier version. If the server does not report its version, the
/// statement that drops the column fails instead.
///
/// # Errors
/// A node of an earlier version; no connection.
pub(crate) fn check_version(sql: &mut Sql<'_>) -> Result<()> {
    let mut versions = Vec::new();
    for question in QUESTIONS {
        if let Ok(answer) = sql.unless_refused(question, &[])? {
            versions = answer.all::<(String,)>()?;
            break;
        }
    }
    let versions = versions.into_iter().map(|(version,)| version);
    let Some(version) = versions.min_by_key(|text| numbers(text).unwrap_or(FIRST)) else { return Ok(()) };
    let version = version.trim_start_matches("CrateDB ").split(' ').next().unwrap_or_default();
    match numbers(version) {
        Some(numbers) if numbers < FIRST => Err(Error::new(
            Kind::Config,
            format!(
                "CrateDB {version} cannot drop columns, which tables can since 5.5: batch tags, by which rows without a key \
                 arrive exactly once, need it"
            ),
        )
        .at(sql.place())
        .advise(
            "give rows a key with --row-key or --primary-key; or accept with --at-least-once that rows of an interrupted \
             batch may be there twice",
        )),
        _ => Ok(()),
    }
}

/// `(5, 4)` of `5.4.8-SNAPSHOT` and of `CrateDB 5.4.8 (built ...`; `None` if the text is not a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let version = version.trim_start_matches("CrateDB ");
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let read = ["5.4.8", "5.10.0-SNAPSHOT", "CrateDB 6.4.3 (built NA)", "next"].map(numbers);
        assert_eq!(read, [Some((5, 4)), Some((5, 10)), Some((6, 4)), None]);
    }
}
