//! Which transport carried a load's rows, and why it was that one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use sawmill_profile::format_counted;

/// The transport that a load begins with, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The PostgreSQL wire; what it does not take goes over HTTP.
    Pg,
    /// HTTP, for this reason.
    Http(String),
}

/// Rows that went either way, counted when the server has answered for all of their block.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pg: AtomicU64,
    http: AtomicU64,
    /// Why the first block that was meant for the PostgreSQL wire went over HTTP.
    turned: Mutex<Option<String>>,
}

impl Carried {
    pub(crate) fn by_pg(&self, rows: usize) {
        self.pg.fetch_add(rows as u64, Relaxed);
    }

    pub(crate) fn by_http(&self, rows: usize) {
        self.http.fetch_add(rows as u64, Relaxed);
    }

    /// A block goes over HTTP although the PostgreSQL wire was chosen.
    pub(crate) fn turn(&self, reason: &str) {
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        turned.get_or_insert_with(|| reason.to_owned());
    }

    /// One line for the report; nothing where no row was sent.
    pub(crate) fn report(&self, chosen: &Chosen) -> Option<String> {
        let (pg, http) = (self.pg.load(Relaxed), self.http.load(Relaxed));
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
        carried.by_http(5);
        assert_eq!(
            carried.report(&Chosen::Http("--transport http".to_owned())).unwrap(),
            "transport http: 5 rows; --transport http"
        );
        carried.turn("no cast");
        carried.turn("a later reason");
        assert_eq!(carried.report(&Chosen::Pg).unwrap(), "transport http: 5 rows; no cast");
        carried.by_pg(7);
        assert_eq!(carried.report(&Chosen::Pg).unwrap(), "transport pg: 7 rows, http: 5 rows; no cast");
    }
}
