//! The client's side of a connection.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use sawmill_source::{Error, Kind, Result};

use super::fault::Step;
use super::process::Process;
use super::server::Server;

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    /// The server never has it.
    LostBefore,
    /// The server does it, and the answer is lost.
    LostAfter,
    /// The answer is lost, and the server does it later.
    RunsOn,
}

/// A connection of a loader.
pub struct Connection {
    process: Arc<Process>,
    pub id: u64,
    is_lost: Cell<bool>,
}

fn lost() -> Error {
    Error::new(Kind::Connection, "the connection was lost")
}

impl Connection {
    pub fn open(process: &Arc<Process>) -> Result<Self> {
        let world = &process.world;
        let fate = world.step(process, Step::Connect)?;
        let mut state = world.state();
        let now = world.scheduler.elapsed();
        state.server.run_until(now);
        if fate != Fate::Answered || now < state.server.refuses_until {
            return Err(Error::new(Kind::Connection, "the server cannot be reached"));
        }
        process.has_reached.store(true, SeqCst);
        let id = state.server.connect(process.number);
        Ok(Self { process: Arc::clone(process), id, is_lost: Cell::new(false) })
    }

    /// A request, which the server serves at one moment.
    pub fn request<T>(&self, step: Step, work: impl FnOnce(&mut Server, u64) -> Result<T>) -> Result<T> {
        if self.is_lost.get() {
            return Err(lost());
        }
        let world = &self.process.world;
        let fate = world.step(&self.process, step)?;
        let mut state = world.state();
        let now = world.scheduler.elapsed();
        let server = &mut state.server;
        server.run_until(now);
        if !server.is_connected(self.id) {
            self.is_lost.set(true);
            return Err(lost());
        }
        if fate == Fate::RunsOn {
            self.is_lost.set(true);
            server.commit_later(self.id, step == Step::CommitFinish || step == Step::CommitStart, now);
            return Err(lost());
        }
        if fate != Fate::LostBefore && step.writes() && server.without_room > 0 {
            server.without_room -= 1;
            server.rollback(self.id);
            return Err(Error::new(Kind::Server, "no space left on device"));
        }
        let done = match fate {
            Fate::LostBefore => Err(lost()),
            _ => work(server, self.id),
        };
        if fate != Fate::Answered {
            self.is_lost.set(true);
            server.cut(self.id, now);
            return Err(lost());
        }
        if done.is_err() {
            server.rollback(self.id);
        }
        done
    }

    pub fn commit(&self, step: Step) -> Result<()> {
        let durable = step == Step::CommitFinish || step == Step::CommitStart;
        self.request(step, |server, id| server.commit(id, durable))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_lost.get() {
            return;
        }
        let world = &self.process.world;
        let now = world.scheduler.elapsed();
        let mut state = world.state();
        match self.process.is_dead.load(SeqCst) {
            true => state.server.cut(self.id, now),
            false => state.server.disconnect(self.id),
        }
    }
}
