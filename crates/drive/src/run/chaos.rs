//! Disturbs the server while the test runs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use sawmill_localpg::LocalPg;

use crate::plan::types::{Chaos, ChaosAction};
use crate::result::second::ChaosEvent;

/// Does something to the server every so often, until `is_over`; reports each event.
pub(crate) fn wreak(
    chaos: &Chaos,
    mut server: Option<&mut LocalPg>,
    began: Instant,
    events: &Sender<ChaosEvent>,
    is_over: &dyn Fn() -> bool,
) {
    let mut next = chaos.every;
    loop {
        while began.elapsed() < next {
            if is_over() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20).min(next.saturating_sub(began.elapsed())));
        }
        // An action that takes longer than the time between two is due again at once.
        if is_over() {
            return;
        }
        let at = began.elapsed();
        let done = act(&chaos.action, server.as_deref_mut());
        let took = began.elapsed() - at;
        let event = ChaosEvent {
            at: at.as_secs_f64(),
            took: took.as_secs_f64(),
            what: chaos.action.to_string(),
            error: done.err(),
        };
        // The receiver lives as long as the run.
        let _ = events.send(event);
        next = (next + chaos.every).max(began.elapsed());
    }
}

fn act(action: &ChaosAction, server: Option<&mut LocalPg>) -> Result<(), String> {
    match (action, server) {
        (ChaosAction::Command(command), _) => {
            let output = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).output();
            let output = output.map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or_default();
            if output.status.success() { Ok(()) } else { Err(format!("{}: {last}", output.status)) }
        }
        (ChaosAction::KillServer, Some(server)) => {
            server.kill_and_restart().map_err(|error| error.to_string())
        }
        (ChaosAction::StopServer(time), Some(server)) => {
            server.pause().map_err(|error| error.to_string())?;
            std::thread::sleep(*time);
            server.resume().map_err(|error| error.to_string())
        }
        (_, None) => Err("the server was not started by this command".to_owned()),
    }
}
