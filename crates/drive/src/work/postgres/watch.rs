//! The server's own figures, read once a second over a separate connection.

use std::time::Duration;

use sawmill_pgwire::{BlockingConnection, Server};

use crate::result::second::ServerSample;

/// How long the server may take to report.
const PATIENCE: Duration = Duration::from_millis(800);

pub(super) struct Watch {
    server: Server,
    connection: Option<BlockingConnection>,
    wal: Option<f64>,
    checkpoints: Option<u64>,
}

impl Watch {
    pub(super) fn new(server: &Server) -> Self {
        Self { server: server.clone(), connection: None, wal: None, checkpoints: None }
    }

    /// The sample of the last second; `None` while the server does not answer.
    pub(super) fn sample(&mut self) -> Option<ServerSample> {
        let sample = self.ask();
        if sample.is_none() {
            self.connection = None;
        }
        sample
    }

    fn ask(&mut self) -> Option<ServerSample> {
        if self.connection.is_none() {
            self.connection = BlockingConnection::open(&self.server, &|| false).ok();
            (self.wal, self.checkpoints) = (None, None);
        }
        let connection = self.connection.as_mut()?;
        let version = connection.parameters.iter().find(|(name, _)| name == "server_version");
        let major: u32 = version.and_then(|(_, text)| text.split('.').next()?.parse().ok()).unwrap_or(0);
        let checkpoints = match major {
            17.. => "SELECT num_timed + num_requested FROM pg_stat_checkpointer",
            _ => "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter",
        };
        let waits = connection
            .simple(
                "SELECT coalesce(wait_event_type || ': ' || wait_event, ''), count(*) FROM pg_stat_activity \
                 WHERE state = 'active' AND pid <> pg_backend_pid() GROUP BY 1",
                PATIENCE,
            )
            .ok()?;
        let mut sample = ServerSample { active: Some(0), ..ServerSample::default() };
        for row in waits {
            let mut row = row.into_iter();
            let (Some(Some(event)), Some(Some(count))) = (row.next(), row.next()) else { continue };
            let count = count.parse().unwrap_or(0);
            sample.active = sample.active.map(|active| active + count);
            if !event.is_empty() {
                sample.waits.insert(event, count);
            }
        }
        // A standby writes no WAL, and the user may not be allowed to ask.
        let mut one = |sql: &str| connection.simple(sql, PATIENCE).ok()?.pop()?.pop()?;
        let wal = one("SELECT pg_current_wal_lsn() - '0/0'").and_then(|text| text.parse::<f64>().ok());
        let done = one(checkpoints).and_then(|text| text.parse::<u64>().ok());
        if let (Some(now), Some(before)) = (wal, self.wal) {
            sample.wal = Some((now - before).max(0.0) as u64);
        }
        if let (Some(now), Some(before)) = (done, self.checkpoints) {
            sample.checkpoints = Some(now.saturating_sub(before));
        }
        (self.wal, self.checkpoints) = (wal, done);
        Some(sample)
    }
}
