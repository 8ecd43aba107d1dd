//! The reads of one transaction: together they have to fit its isolation level.

/// The rows that the transaction under way has read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Its level shows it the same rows in all its reads.
    snapshot: bool,
    /// Table and number, and the version that was there, if the row was.
    seen: Vec<((usize, u64), Option<i64>)>,
}

impl Reads {
    /// A transaction begins.
    pub(crate) fn begin(&mut self, snapshot: bool) {
        self.snapshot = snapshot;
        self.seen.clear();
    }

    /// Notes a read. `changes`: the transaction may have changed the row between its reads.
    ///
    /// # Errors
    /// How the read contradicts an earlier one.
    pub(crate) fn note(&mut self, row: (usize, u64), now: Option<i64>, changes: bool) -> Result<(), String> {
        let before = self.seen.iter().rfind(|(seen, _)| *seen == row).map(|(_, version)| *version);
        self.seen.push((row, now));
        let fits = match (before, now) {
            (None, _) => true,
            (Some(Some(before)), Some(now)) => {
                before <= now && (!self.snapshot || now.saturating_sub(before) <= i64::from(changes))
            }
            (Some(before), now) => !self.snapshot || changes || before == now,
        };
        let shown = |version: Option<i64>| version.map_or("no row".to_owned(), |it| format!("version {it}"));
        match fits {
            true => Ok(()),
            false => Err(format!("one transaction read {}, then {}", shown(before.flatten()), shown(now))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a transaction may read these versions of one row, one after the other.
    fn fits(snapshot: bool, versions: &[Option<i64>], changes: bool) -> bool {
        let mut reads = Reads::default();
        reads.begin(snapshot);
        reads.note((0, 8), Some(100), false).unwrap();
        versions.iter().all(|version| reads.note((0, 7), *version, changes).is_ok())
    }

    #[test]
    fn the_reads_of_a_transaction_with_a_snapshot_agree() {
        let (other, gone) = ([Some(3), Some(4)], [Some(3), None]);
        for versions in [other, gone, [None, Some(0)]] {
            assert!(!fits(true, &versions, false) && fits(false, &versions, false), "{versions:?}");
            assert!(fits(true, &versions, true), "its own change: {versions:?}");
        }
        assert!(!fits(true, &[Some(3), Some(5)], true), "another's change beside its own");
        assert!(fits(true, &[Some(3), Some(3)], false));
    }

    #[test]
    fn no_transaction_reads_an_older_version_after_a_newer_one() {
        assert!(!fits(false, &[Some(4), Some(3)], false) && !fits(true, &[Some(4), Some(3)], true));
    }
}
