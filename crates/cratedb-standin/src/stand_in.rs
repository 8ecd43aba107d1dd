//! The cluster as a test sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::cluster::{Shared, bind};
use crate::fault::Faults;
use crate::store::Engine;

/// A cluster that runs until dropped.
pub struct StandIn {
    shared: Arc<Shared>,
    pg_port: u16,
}

impl StandIn {
    /// A cluster of `nodes` nodes with one shared store, at ports chosen by the system.
    pub fn start(nodes: usize) -> Self {
        Self::start_with(nodes, None)
    }

    /// The same with TLS.
    pub fn start_tls(config: Arc<rustls::ServerConfig>) -> Self {
        Self::start_with(1, Some(config))
    }

    fn start_with(nodes: usize, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let shared = Shared::new(tls);
        (0..nodes).for_each(|_| shared.add_node());
        let pg_port = shared.listen_pg();
        Self { shared, pg_port }
    }

    /// The address of all nodes, with the port of the PostgreSQL wire protocol.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.shared.ports().iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let user = self
            .shared
            .credentials()
            .map(|(user, password)| format!("{user}:{password}@"))
            .unwrap_or_default();
        format!("crate://{user}{}/doc?pg_port={}", hosts.join(","), self.pg_port)
    }

    /// The HTTP port of a node.
    pub fn port(&self, node: usize) -> u16 {
        self.shared.port(node)
    }

    /// The port of the PostgreSQL wire protocol.
    pub fn pg_port(&self) -> u16 {
        self.pg_port
    }

    /// Whether a node accepts connections.
    pub fn is_up(&self, node: usize) -> bool {
        self.shared.alive(node)
    }

    /// Faults for batches over HTTP.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Faults for batches over the PostgreSQL wire protocol.
    pub fn pg_faults(&self) -> &Faults {
        &self.shared.pg_faults
    }

    /// The number of requests that run on after their connections, or have yet to arrive.
    pub fn running_on(&self) -> u64 {
        self.shared.running_on.load(Relaxed)
    }

    /// Restarts the server before it runs a statement that contains this text: the server refuses connections
    /// for the first duration, and has not recovered its tables for the second.
    pub fn restart_before(&self, text: &str, away: Duration, recovering: Duration) {
        self.shared.plan_restart(text, away, recovering);
    }

    /// Loses the connection of the next statement that contains this text, and takes so long for it. Then it takes
    /// effect, unless it was killed.
    pub fn orphan(&self, text: &str, time: Duration) {
        self.shared.plan_orphan(text, time);
    }

    /// The store.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Requires a user and a password for every request.
    pub fn require(&self, user: &str, password: &str) {
        self.shared.require(user, password);
    }

    /// Sets `http.max_content_length`.
    pub fn limit(&self, bytes: usize) {
        self.shared.max_content_length.store(bytes, Relaxed);
    }

    /// Makes every row of a batch cost additional CPU time; none by default.
    pub fn work(&self, cost_of_a_row: Duration) {
        self.shared.row_cost.set(cost_of_a_row);
    }

    /// The number of batches received over HTTP.
    pub fn bulks(&self) -> u64 {
        self.shared.bulks.load(Relaxed)
    }

    /// The number of other statements received over HTTP.
    pub fn statements(&self) -> u64 {
        self.shared.statements.load(Relaxed)
    }

    /// The number of batches received over the PostgreSQL wire protocol.
    pub fn unnests(&self) -> u64 {
        self.shared.unnests.load(Relaxed)
    }

    /// The number of compressed bodies received.
    pub fn compressed(&self) -> u64 {
        self.shared.compressed.load(Relaxed)
    }

    /// The size of the largest batch in bytes.
    pub fn largest(&self) -> usize {
        self.shared.largest.load(Relaxed)
    }

    /// The number of connections that a node has accepted.
    pub fn connections(&self, node: usize) -> u64 {
        self.shared.connections(node)
    }

    /// Ends a node: its connections break, and it accepts no new ones.
    pub fn stop(&self, node: usize) {
        self.shared.stop(node);
    }

    /// Starts a node again on its port.
    ///
    /// # Panics
    /// If another process has taken the port: a test cannot run without its node.
    pub fn restart(&self, node: usize) {
        self.shared.listen(node, bind(self.port(node)));
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        (0..self.shared.ports().len()).for_each(|node| self.shared.stop(node));
    }
}
