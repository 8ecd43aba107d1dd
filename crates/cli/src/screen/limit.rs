//! What limited the speed of a load, from the measurements of its threads and samples of the server.

use sawmill_loader::ServerWaits;
use sawmill_profile::{Bottleneck, Limit, ThreadReport, bottleneck};

/// A server that waited for rows for a larger share of the time was not the limit.
const WAITED: f64 = 0.5;
/// If the server waited for rows for a smaller share of the time, our side was not the limit.
const BUSY: f64 = 0.1;

/// The samples of the server, if there are enough of them.
pub(crate) fn enough(server: Option<&ServerWaits>) -> Option<&ServerWaits> {
    server.filter(|server| server.tell_enough())
}

/// The bottleneck of a load, which never contradicts the server's samples. If our threads waited for the server and
/// the server waited for rows, the connection is the limit. Two busy sides get no verdict.
pub(crate) fn of_load(threads: &[ThreadReport], server: Option<&ServerWaits>) -> Option<Bottleneck> {
    let found = bottleneck(threads)?;
    let Some(server) = enough(server) else { return Some(found) };
    match found.limit {
        Limit::Server if server.client > WAITED => Some(Bottleneck { limit: Limit::Connection, ..found }),
        Limit::Server => Some(found),
        _ if server.client < BUSY => None,
        _ => Some(found),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sawmill_profile::{SpanReport, WaitKind};

    use super::*;

    fn sender(cpu: u64, network: u64) -> Vec<ThreadReport> {
        let network = SpanReport {
            wait: Some(WaitKind::Network),
            wall: Duration::from_secs(network),
            ..SpanReport::default()
        };
        vec![ThreadReport {
            name: "sender 1".into(),
            wall: Duration::from_secs(10),
            cpu: Duration::from_secs(cpu),
            spans: vec![network],
            ..ThreadReport::default()
        }]
    }

    fn server(samples: u64, client: f64) -> ServerWaits {
        ServerWaits { samples, client, working: 1.0 - client, ..ServerWaits::default() }
    }

    #[test]
    fn a_server_that_waited_for_rows_was_not_the_limit() {
        let limit = |server: Option<ServerWaits>| of_load(&sender(1, 8), server.as_ref()).unwrap();
        assert_eq!(limit(None).limit, Limit::Server);
        assert_eq!(limit(Some(server(40, 0.1))).limit, Limit::Server);
        let way = limit(Some(server(40, 0.9)));
        assert_eq!(
            way.to_string(),
            "the connection to the server was the limit: sender waited for the server 80 % of its time, and the server \
             for sender"
        );
    }

    #[test]
    fn a_single_sample_of_the_server_proves_nothing() {
        let one = server(1, 1.0);
        assert_eq!(enough(Some(&one)), None);
        assert_eq!(of_load(&sender(1, 8), Some(&one)).unwrap().limit, Limit::Server);
    }

    #[test]
    fn if_both_sides_were_busy_there_is_no_verdict() {
        assert_eq!(of_load(&sender(9, 1), Some(&server(40, 0.05))), None);
        assert_eq!(of_load(&sender(9, 1), Some(&server(40, 0.3))).unwrap().limit, Limit::Work);
    }
}
