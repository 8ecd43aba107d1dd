//! Waiting for a cluster that is unavailable for a while.
//!
//! A node that restarts refuses connections first, then knows neither schemas nor tables (4045, 4041), and
//! then has shards that are not started (4040). All of that passes. A load waits for it by time, not by a
//! number of tries.

use std::time::{Duration, Instant};

use sawmill_profile::turns;
use sawmill_source::{Control, Error, Result};

use crate::connect::client::Cluster;

/// Report waits longer than this.
const SHORT: Duration = Duration::from_secs(1);

/// The state of the cluster as a whole.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Whether any node has ever answered.
    pub reached: bool,
    /// Whether the load has made or found its table: from then on an unknown one is not recovered yet.
    pub table_known: bool,
    /// When a connection was lost last.
    pub lost: Option<Instant>,
    /// Start of the outage that was reported.
    reported: Option<Instant>,
}

impl Outage {
    /// The message for the end of an outage that was reported.
    pub(crate) fn over(&mut self) -> Option<String> {
        let began = self.reported.take()?;
        Some(format!(
            "the server answers again after {:.0} s; the load continues",
            turns::now().saturating_duration_since(began).as_secs_f64()
        ))
    }
}

/// The tries of one request.
pub(crate) struct Waiting {
    retries: u32,
    tries: u32,
    since: Instant,
}

impl Waiting {
    /// Starts without failures. [`pause`](Self::pause) allows at least `retries` new tries, and further ones until
    /// the cluster's patience runs out.
    pub(crate) fn new(retries: u32) -> Self {
        Self { retries, tries: 0, since: turns::now() }
    }

    /// Waits before the next try after a failure that passes.
    ///
    /// # Errors
    /// The failure, once the patience has run out; a raised cancel flag.
    pub(crate) fn pause(&mut self, error: Error, cluster: &Cluster, control: &Control<'_>) -> Result<()> {
        if self.tries == 0 {
            self.since = turns::now();
        }
        let waited = turns::now().saturating_duration_since(self.since);
        if self.tries >= self.retries && waited >= cluster.patience {
            return Err(error);
        }
        if waited >= SHORT && control.has_notices() {
            let mut outage = cluster.outage();
            if outage.reported.is_none() {
                outage.reported = Some(self.since);
                let most = cluster.patience.as_secs();
                control.notice(&format!("{}: waiting for the server, up to {most} s", error.what()));
            }
        }
        control.sleep(cluster.pause(self.tries))?;
        self.tries += 1;
        Ok(())
    }
}
