//! Load tests of real servers: what they report is what happened.

mod chaos;
mod closed_loop;
mod contention;
mod cratedb;
mod own_statements;
mod plans;
mod postgres;
mod truth;
mod variables;
mod workloads;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sawmill_drive::{Address, DriveResult, Driving, Plan, run};
use sawmill_localpg::LocalPg;

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

/// The address of a private server.
pub fn address(server: &LocalPg) -> Address {
    Address::Postgres(Box::new(server.socket_url().parse().unwrap()))
}
