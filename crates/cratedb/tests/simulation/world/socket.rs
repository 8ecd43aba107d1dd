//! A loader's connection to the cluster: bytes of HTTP, and what becomes of each request.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use sawmill_cratedb_standin::{Engine, Request, Served};
use sawmill_profile::turns::{self, Socket};

use super::State;
use super::fault::{Fault, Step};
use super::process::Process;
use super::server::{Ticket, shown};

/// How long a read waits for an answer at once.
const LOOK: Duration = Duration::from_secs(2);

/// A connection.
pub struct Pipe {
    process: Arc<Process>,
    /// Crashes before it was opened.
    epoch: u64,
    /// The request, as far as it has been sent.
    sent: Vec<u8>,
    /// The answer, as far as it has not been read.
    received: Vec<u8>,
    /// The answer that is awaited.
    awaited: Option<Ticket>,
    /// It ends after `received`.
    is_cut: bool,
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Pipe {
    pub fn open(process: Arc<Process>) -> io::Result<Self> {
        let world = Arc::clone(&process.world);
        let fate = world.step_of(&process, Step::Connect, &String::new).map_err(|_| broken())?;
        let mut state = world.state();
        let now = world.catch_up(&mut state);
        if fate.is_some() || process.is_dead.load(SeqCst) || now < state.server.refuses_until {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        process.has_reached.store(true, SeqCst);
        let epoch = state.server.epoch;
        drop(state);
        Ok(Self { process, epoch, sent: Vec::new(), received: Vec::new(), awaited: None, is_cut: false })
    }

    /// The body of the request if all of it has been sent.
    fn body(&self) -> Option<&[u8]> {
        let end = self.sent.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
        let (head, body) = self.sent.split_at(end);
        let head = std::str::from_utf8(head).ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?;
        let length: usize = length.parse().ok()?;
        (body.len() >= length).then_some(body)
    }

    /// The server has the request, or does not.
    fn deliver(&mut self) -> io::Result<()> {
        let Some(body) = self.body() else { return Ok(()) };
        let request = Request::read(body, "doc");
        self.sent.clear();
        let world = Arc::clone(&self.process.world);
        let request = match request {
            Ok(request) => request,
            Err(served) => {
                world
                    .state()
                    .server
                    .audit
                    .violated(format!("the server cannot read a request: {}", served.1));
                return Err(broken());
            }
        };
        let step = Step::of(&request);
        let fate = world.step_of(&self.process, step, &|| shown(&request)).map_err(|_| broken());
        let fate = fate.inspect_err(|_| self.is_cut = true)?;
        let mut state = world.state();
        let now = world.catch_up(&mut state);
        if state.server.epoch != self.epoch {
            self.is_cut = true;
            return Ok(());
        }
        match fate {
            None => {
                let served = state.server.serve(request, self.process.number, now);
                self.receive(served);
            }
            Some(Fault::CutSending) => {
                self.is_cut = true;
                return Err(broken());
            }
            Some(fate) => self.meets(fate, request, &mut state, now),
        }
        if self.process.is_dead.load(SeqCst) {
            self.is_cut = true;
            self.received.clear();
        }
        Ok(())
    }

    fn receive(&mut self, (status, body): Served) {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        self.received = (head + &body).into_bytes();
    }

    /// A request that a fault meets.
    fn meets(&mut self, fate: Fault, request: Request, state: &mut State, now: Duration) {
        let (number, rows) = (self.process.number, request.rows().unwrap_or_default());
        let State { server, draw, .. } = state;
        let later = now + Duration::from_millis(draw.of(&[5, 500, 8_000, 50_000]));
        let refused = |status: u16, code: u32| {
            (status, format!("{{\"error\":{{\"message\":\"not now\",\"code\":{code}}}}}"))
        };
        let mistake = self.process.world.mistake;
        match fate {
            fate if rows > 0 && mistake.is_some_and(|mistake| mistake.ignores(fate)) => {
                let results = vec!["{\"rowcount\":1}"; rows].join(",");
                self.receive((200, format!("{{\"cols\":[],\"duration\":0.1,\"results\":[{results}]}}")));
            }
            Fault::CutBetween => {
                let mut work = server.engine.begin(request);
                server.engine.insert_some(&mut work, draw.below(rows as u64 + 1) as usize);
                server.engine.abandon(work);
                self.is_cut = true;
            }
            Fault::CutAfter => {
                let served = server.serve(request, number, now);
                self.receive(served);
                self.received.truncate(draw.below(self.received.len() as u64) as usize);
                self.is_cut = true;
            }
            Fault::RunsOn => {
                let mut work = server.engine.begin(request);
                server.engine.insert_some(&mut work, draw.below(rows as u64 + 1) as usize);
                server.end_at(later, work, number, None);
                self.is_cut = true;
            }
            Fault::ArrivesLate => {
                server.arrive_at(later, request, number);
                self.is_cut = true;
            }
            Fault::Late => {
                let ticket = server.new_ticket();
                self.awaited = Some(ticket);
                let later = now + Duration::from_millis(draw.of(&[50, 2_000, 20_000, 400_000]));
                if draw.one_in(2) {
                    let served = server.serve(request, number, now);
                    server.answer_at(later, ticket, served);
                } else {
                    let work = server.engine.begin(request);
                    server.end_at(later, work, number, Some(ticket));
                }
            }
            Fault::Doubled => {
                drop(server.serve(request.clone(), number, now));
                let served = server.serve(request, number, now);
                self.receive(served);
            }
            Fault::Echo => {
                match draw.one_in(2) {
                    true => server.arrive_at(later, request.clone(), number),
                    false => {
                        let work = server.engine.begin(request.clone());
                        server.end_at(later, work, number, None);
                    }
                }
                let served = server.serve(request, number, now);
                self.receive(served);
            }
            Fault::Unavailable => self.receive(refused(503, 5030)),
            Fault::Busy => self.receive(refused(429, 4290)),
            Fault::LostShard => {
                self.receive(Engine::lost_shards(&request));
                // A shard that was lost may have taken some of the rows.
                let mut work = server.engine.begin(request);
                server.engine.insert_some(&mut work, draw.below(rows as u64 + 1) as usize);
                server.engine.abandon(work);
            }
            _ => self.is_cut = true,
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_cut || self.process.is_dead.load(SeqCst) {
            return Err(broken());
        }
        self.sent.extend_from_slice(bytes);
        self.deliver()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pipe {
    /// Takes the answer that has arrived; otherwise returns how long to wait for it.
    fn look(&mut self) -> Option<Duration> {
        let world = Arc::clone(&self.process.world);
        let mut state = world.state();
        let now = world.catch_up(&mut state);
        if state.server.epoch != self.epoch || self.process.is_dead.load(SeqCst) {
            self.is_cut = true;
            return None;
        }
        let Some(ticket) = self.awaited else { return Some(LOOK) };
        match state.server.answer(ticket, now) {
            Ok(served) => {
                self.awaited = None;
                self.receive(served);
                None
            }
            Err(at) => Some(at.saturating_sub(now).min(LOOK)),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.received.is_empty()
            && !self.is_cut
            && let Some(time) = self.look()
        {
            turns::sleep(time);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = into.len().min(self.received.len());
        into[..length].copy_from_slice(&self.received[..length]);
        self.received.drain(..length);
        Ok(length)
    }
}

impl Socket for Pipe {
    fn is_open(&self) -> bool {
        !self.is_cut && self.process.world.state().server.epoch == self.epoch
    }
}
