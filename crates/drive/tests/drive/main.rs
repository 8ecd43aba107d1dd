//! Load tests of real servers: what they report is what happened.

mod chaos;
mod closed_loop;
mod contention;
mod cratedb;
mod own_statements;
mod plans;
mod postgres;
#[path = "../../../localpg/tests/shared/server.rs"]
#[allow(dead_code, reason = "the tests need some of its methods")]
mod shared_server;
mod truth;
mod variables;
mod workloads;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sawmill_drive::{Address, DriveResult, Driving, Observer, Plan, Snapshot, run};
use sawmill_localpg::LocalPg;

use crate::shared_server::SharedDatabase;

/// A plan out of a text.
pub fn plan(text: &str) -> Plan {
    Plan::from_toml(text, "test.toml", Path::new(".")).unwrap()
}

/// Runs a plan on an address, perhaps with a server for its chaos.
pub fn driven(plan: &Plan, address: &Address, server: Option<&mut LocalPg>) -> DriveResult {
    let cancel = AtomicBool::new(false);
    let driving = Driving { address, server, cancel: &cancel, observer: &mut (), command: "test".into() };
    run(plan, driving).unwrap()
}

/// Called once: after the last operation of a run shorter than a second.
struct AfterTheLast<F>(Option<F>);

impl<F: FnOnce() + Send> Observer for AfterTheLast<F> {
    fn second(&mut self, _: &Snapshot<'_>) {
        if let Some(then) = self.0.take() {
            then();
        }
    }
}

/// Inserts some rows into `drive_short`, and calls `then` before they are looked for.
pub fn driven_and_then(address: &Address, then: impl FnOnce() + Send) -> DriveResult {
    let table = "overwrite = true\n[tables.drive_short]\nspec = \"events\"\n";
    let plan =
        plan(&format!("rate = 50\nfor = \"300ms\"\n{table}[[operations]]\ninsert = \"drive_short\"\n"));
    let (cancel, mut observer) = (AtomicBool::new(false), AfterTheLast(Some(then)));
    let observer = &mut observer;
    let driving = Driving { address, server: None, cancel: &cancel, observer, command: String::new() };
    run(&plan, driving).unwrap()
}

/// A server for one test, or its database on the shared one.
pub trait Serves {
    /// Its address over the socket.
    fn socket_url(&self) -> String;
}

impl Serves for LocalPg {
    fn socket_url(&self) -> String {
        self.socket_url()
    }
}

impl Serves for SharedDatabase {
    fn socket_url(&self) -> String {
        self.socket_url()
    }
}

/// The address over its socket.
pub fn address(server: &impl Serves) -> Address {
    Address::Postgres(Box::new(server.socket_url().parse().unwrap()))
}
