//! The transport of a load's rows, and the reason for it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sawmill_profile::format_counted;
use sawmill_source::UnitKey;

/// The transport that a load begins with, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The PostgreSQL wire; blocks that it does not take go over HTTP.
    Pg,
    /// HTTP, for this reason.
    Http(String),
}

/// Rows by transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByTransport {
    pub pg: u64,
    pub http: u64,
}

/// Rows by transport, kept by unit so that rows that are sent again count once.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    units: Mutex<HashMap<UnitKey, ByTransport>>,
    /// Why the first block that was meant for the PostgreSQL wire went over HTTP.
    turned: Mutex<Option<String>>,
}

impl Carried {
    /// A unit's rows are in or refused.
    pub(crate) fn unit(&self, unit: UnitKey, rows: ByTransport) {
        self.units.lock().unwrap_or_else(PoisonError::into_inner).insert(unit, rows);
    }

    /// Notes that a block goes over HTTP although the PostgreSQL wire was chosen.
    pub(crate) fn turn(&self, reason: &str) {
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        turned.get_or_insert_with(|| reason.to_owned());
    }

    /// One line for the report; nothing where no row was sent.
    pub(crate) fn report(&self, chosen: &Chosen) -> Option<String> {
        let units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let (pg, http) = units.values().fold((0, 0), |(pg, http), rows| (pg + rows.pg, http + rows.http));
        let turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match (chosen, turned.as_deref()) {
            (Chosen::Http(reason), _) => reason,
            (Chosen::Pg, Some(reason)) => reason,
            (Chosen::Pg, None) => "the reason was not noted",
        };
        let rows = |count| format_counted(count, "row");
        match (pg, http) {
            (0, 0) => None,
            (pg, 0) => Some(format!("transport pg: {} by UNNEST over the PostgreSQL wire", rows(pg))),
            (0, http) => Some(format!("transport http: {}; {reason}", rows(http))),
            (pg, http) => Some(format!("transport pg: {}, http: {}; {reason}", rows(pg), rows(http))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_what_carried_its_rows_and_why() {
        let carried = Carried::default();
        assert_eq!(carried.report(&Chosen::Pg), None);
        let unit = |first_row| UnitKey { file: 0, row_group: 0, first_row };
        carried.unit(unit(0), ByTransport { pg: 3, http: 2 });
        // Sent again.
        carried.unit(unit(0), ByTransport { pg: 0, http: 5 });
        assert_eq!(
            carried.report(&Chosen::Http("--transport http".to_owned())).unwrap(),
            "transport http: 5 rows; --transport http"
        );
        carried.turn("no cast");
        carried.turn("a later reason");
        assert_eq!(carried.report(&Chosen::Pg).unwrap(), "transport http: 5 rows; no cast");
        carried.unit(unit(5), ByTransport { pg: 7, http: 0 });
        assert_eq!(carried.report(&Chosen::Pg).unwrap(), "transport pg: 7 rows, http: 5 rows; no cast");
    }
}
