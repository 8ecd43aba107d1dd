//! One run: writers with faults, then the same command without, and what must be true after each.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use sawmill_generator::{Error, ErrorKind, Existing};
use sawmill_profile::caught;
use sawmill_store::UploadLimits;
use sawmill_store::simulated::object_store::{Attributes, PutMode};

use super::World;
use super::audit::FOREIGN;
use super::draw::Draw;
use super::fault::{Fault, Step};
use super::mistake::Mistake;
use super::outcome::{Outcome, drawn_faults, starts_twice};
use super::process::Process;
use super::writers::{Command, MANIFEST};

/// Runs the simulation that this seed determines.
pub fn run(seed: u64, mistake: Option<Mistake>, trace: bool) -> Outcome {
    let mut draw = Draw::new(seed);
    let lag = draw.of(&[0, 0, 2, 8]);
    let limits = UploadLimits { part: draw.of(&[70, 200, 1 << 20]), requests: draw.of(&[1, 2]) };
    let converts = draw.one_in(3);
    let command = Command::drawn(&mut draw, converts);
    let world = World::new(Draw::new(draw.next()), lag, mistake, trace);
    let mut run = Run { world, draw, limits, command, others: false };
    run.put_foreign();
    run.play();
    let mut state = run.world.state();
    Outcome {
        violation: state.audit.violation.take(),
        coverage: state.coverage.clone(),
        history: state.history.take().unwrap_or_default(),
        turns: state.bucket.clock,
    }
}

struct Run {
    world: Arc<World>,
    draw: Draw,
    limits: UploadLimits,
    /// The command that is repeated.
    command: Command,
    /// Commands with other options have run.
    others: bool,
}

impl Run {
    /// Puts objects and uploads of other programs into the bucket.
    fn put_foreign(&self) {
        let bucket = &mut self.world.state().bucket;
        for key in FOREIGN {
            let put = bucket.put(key, b"theirs".to_vec(), Attributes::new(), (&PutMode::Overwrite, 0));
            put.expect("it has no condition");
            bucket.begin(key, Attributes::new());
        }
        bucket.appeared.clear();
    }

    fn play(&mut self) {
        self.world.state().audit.commands.push(self.command.whole());
        for _ in 0..self.draw.of(&[0, 1, 1, 2, 2, 3]) {
            self.commands();
            if self.world.state().audit.violation.is_some() {
                return;
            }
        }
        self.quiet();
        let existing = self.draw.of(&[Existing::Resume, Existing::Replace]);
        let mut ended = self.last(existing);
        // The last run may refuse existing objects, and its error says how to replace them: objects of other options,
        // of a complete conversion, or an object that arrived after its run had failed.
        let is_refused = |error: &Error| {
            let may_be =
                self.others || self.command.converts || error.to_string().contains("without a manifest");
            error.kind() == ErrorKind::Spec && may_be
        };
        if ended.as_ref().is_err_and(is_refused) {
            ended = self.last(Existing::Replace);
        }
        if let Err(error) = ended {
            return self.world.state().audit.violated(format!("the same command fails: {error}"));
        }
        let mut state = self.world.state();
        let super::State { bucket, audit, .. } = &mut *state;
        audit.compare_rest(bucket, &|key| key == MANIFEST);
    }

    /// Lets late requests arrive, and lists show all objects.
    fn quiet(&self) {
        let mut state = self.world.state();
        state.tell(|| "all is quiet".to_owned());
        state.bucket.catch_up(true);
        state.look(0);
    }

    /// Starts a writer of this command.
    fn start(
        &self,
        (command, existing): (Command, Existing),
        faults: Vec<(u64, Fault)>,
        rate: u64,
    ) -> Arc<Process> {
        let process = Process::new(&self.world, faults, rate);
        let number = process.number;
        self.world.state().tell(|| format!("writer {number} starts: {command:?} {existing:?}"));
        process
    }

    fn last(&self, existing: Existing) -> Result<(), Error> {
        let process = self.start((self.command, existing), Vec::new(), 0);
        self.write(&process, self.command, existing, true)
    }

    /// Runs the command, perhaps with other options than the last one, perhaps twice at once.
    fn commands(&mut self) {
        self.quiet();
        let (mut faults, rate) = (self.drawn_faults(), self.draw.of(&[0, 0, 0, 30, 150]));
        let twice = starts_twice(&mut faults);
        let (one, how) = self.drawn_command();
        let process = self.start((one, how), faults, rate);
        if !twice {
            let _ = self.write(&process, one, how, true);
            return;
        }
        let (other, other_how) = self.drawn_command();
        let second = self.start((other, other_how), Vec::new(), rate);
        self.world.state().coverage.count(Fault::Twice, Step::List);
        thread::scope(|scope| {
            scope.spawn(|| drop(self.write(&second, other, other_how, false)));
            let _ = self.write(&process, one, how, false);
        });
    }

    fn drawn_faults(&mut self) -> Vec<(u64, Fault)> {
        let steps = self.draw.of(&[6, 15, 30]);
        let number = self.draw.of(&[0, 1, 1, 2, 3]);
        drawn_faults(&mut self.draw, number, steps)
    }

    fn drawn_command(&mut self) -> (Command, Existing) {
        let existing =
            self.draw.of(&[Existing::Refuse, Existing::Resume, Existing::Resume, Existing::Replace]);
        let mut command = self.command;
        if self.draw.one_in(3) {
            command = Command::drawn(&mut self.draw, command.converts);
        }
        if command != self.command {
            self.others = true;
            self.world.state().audit.commands.push(command.whole());
        }
        (command, existing)
    }

    /// Runs a command, and checks its end.
    fn write(
        &self,
        process: &Arc<Process>,
        command: Command,
        existing: Existing,
        is_alone: bool,
    ) -> Result<(), Error> {
        let number = process.number;
        let ended = caught("writer", || command.run(process, self.limits, existing));
        let mut state = self.world.state();
        let is_dead = process.is_dead.load(SeqCst);
        state.tell(|| match &ended {
            _ if is_dead => format!("writer {number} is dead"),
            Ok(()) => format!("writer {number}: exit 0"),
            Err(error) => format!("writer {number}: exit 1: {error}"),
        });
        // Two conversions at once are not kept apart; the first one ends with an error if it notices.
        if ended.is_ok() && !is_dead && (is_alone || !command.converts) {
            let objects = state.seen.get(&number).cloned().unwrap_or_default();
            state.audit.compare(&objects, &command.whole(), (number, is_alone));
        }
        drop(state);
        self.world.leave(number);
        ended
    }
}
