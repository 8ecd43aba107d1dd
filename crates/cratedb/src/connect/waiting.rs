//! How long a cluster that is away for a while is waited for.
//!
//! A node that restarts refuses connections first, then knows neither schemas nor tables (4045, 4041), and then has
//! shards that are not started (4040). All of that passes. A load waits for it by time, not by a number of tries.

use std::time::{Duration, Instant};

use sawmill_source::{Control, Error, Result};

use crate::connect::client::Cluster;

/// A person learns of waits that are longer than this.
const SHORT: Duration = Duration::from_secs(1);

/// What is known of the cluster as a whole.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Whether any node has ever answered.
    pub reached: bool,
    /// Whether the load has made or found its table: from then on an unknown one is not recovered yet.
    pub table_known: bool,
    /// When a connection was lost last.
    pub lost: Option<Instant>,
    /// When the outage began that a person knows of.
    told: Option<Instant>,
}

impl Outage {
    /// The line for the end of an outage that a person knows of.
    pub(crate) fn over(&mut self) -> Option<String> {
        let began = self.told.take()?;
        Some(format!(
            "the server answers again after {:.0} s; the load goes on",
            began.elapsed().as_secs_f64()
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
    /// Nothing has failed yet. At least so many new tries are made, and for as long as the cluster's patience lasts.
    pub(crate) fn new(retries: u32) -> Self {
        Self { retries, tries: 0, since: Instant::now() }
    }

    /// Waits before the next try after a failure that passes.
    ///
    /// # Errors
    /// The failure, when the patience is at its end; a raised cancel flag.
    pub(crate) fn pause(&mut self, error: Error, cluster: &Cluster, control: &Control<'_>) -> Result<()> {
        if self.tries == 0 {
            self.since = Instant::now();
        }
        let waited = self.since.elapsed();
        if self.tries >= self.retries && waited >= cluster.patience {
            return Err(error);
        }
        if waited >= SHORT && control.is_heard() {
            let mut outage = cluster.outage();
            if outage.told.is_none() {
                outage.told = Some(self.since);
                let most = cluster.patience.as_secs();
                control.say(&format!("{}: waiting for the server, up to {most} s", error.what()));
            }
        }
        control.sleep(cluster.pause(self.tries))?;
        self.tries += 1;
        Ok(())
    }
}
