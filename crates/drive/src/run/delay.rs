//! Why operations start late: each nanosecond of a wait is the driver's, the server's or the pool's.
//!
//! All connections take operations from one queue, in the order of their intended starts. If a connection is kept
//! from the queue for a while, each operation behind is delayed by at most that time, divided by the number of
//! connections. A pause of the process stops all connections. Such times add up while there is a queue, but never
//! exceed the wait of the next operation: as the queue drains, the shares of driver and server shrink alike. So a
//! cause lasts until its queue has drained. The rest of a wait is the pool's: connections were busy, each as long
//! as usual.

/// Nanoseconds of a wait, by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delay {
    /// This process did not run, its threads woke late, or they were busy themselves.
    pub driver: u64,
    /// Operations took more than twice their usual time.
    pub server: u64,
    /// There were not enough connections.
    pub pool: u64,
}

/// The greatest part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Driver,
    Server,
    Pool,
}

impl Delay {
    pub(crate) fn cause(&self) -> Cause {
        let Self { driver, server, pool } = *self;
        match driver >= server.max(pool) {
            true => Cause::Driver,
            false if server >= pool => Cause::Server,
            false => Cause::Pool,
        }
    }
}

/// How a connection spent its time since it last took an operation from the queue, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    /// Which operation it carried out, and how long that took; `None` before the first.
    pub service: Option<(usize, u64)>,
    /// The rest, without pauses of the process and without waiting for an intended start; before the first operation
    /// all the time since the run's start.
    pub driver: u64,
}

/// The causes of the present queue.
#[derive(Debug)]
pub(crate) struct Causes {
    connections: u64,
    driver: u64,
    server: u64,
    /// Pauses of the process that were counted.
    paused: u64,
    /// The usual time of each operation: its median, approached in small steps.
    usual: Vec<f64>,
}

/// A step towards the median.
const STEP: f64 = 1.05;

impl Causes {
    pub(crate) fn new(connections: usize) -> Self {
        Self { connections: connections.max(1) as u64, driver: 0, server: 0, paused: 0, usual: Vec::new() }
    }

    /// Accounts for the wait of an operation that was due `wait` nanoseconds ago (0 if it is not due yet). `paused`
    /// is how long the process did not run so far.
    pub(crate) fn take(&mut self, wait: u64, spent: Spent, paused: u64) -> Delay {
        let excess = spent.service.map_or(0, |(operation, took)| self.excess(operation, took));
        let pause = paused.saturating_sub(std::mem::replace(&mut self.paused, paused));
        // A connection that only begins now would have been free for this operation, whatever the others did.
        let sharing = if spent.service.is_some() { self.connections } else { 1 };
        self.driver += pause + spent.driver / sharing;
        self.server += excess / self.connections;
        let made = self.driver + self.server;
        if made > wait {
            self.driver = (u128::from(self.driver) * u128::from(wait) / u128::from(made)) as u64;
            self.server = wait - self.driver;
        }
        Delay { driver: self.driver, server: self.server, pool: wait - self.driver - self.server }
    }

    /// How much longer than twice the usual time an operation took.
    fn excess(&mut self, operation: usize, took: u64) -> u64 {
        if self.usual.len() <= operation {
            self.usual.resize(operation + 1, 0.0);
        }
        let usual = &mut self.usual[operation];
        let took_now = took as f64;
        *usual = match *usual {
            0.0 => took_now,
            usual if took_now > usual => usual * STEP,
            usual => usual / STEP,
        };
        took.saturating_sub((*usual * 2.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn served(took: u64) -> Spent {
        Spent { service: Some((0, took)), driver: 0 }
    }

    /// Four connections, an operation each millisecond that takes 1 ms.
    fn warm() -> Causes {
        let mut causes = Causes::new(4);
        for _ in 0..100 {
            causes.take(0, served(MS), 0);
        }
        causes
    }

    #[test]
    fn a_pause_of_the_driver_is_inherited_until_its_queue_has_drained() {
        let mut causes = warm();
        let waits = [399, 300, 200, 100, 2];
        for wait in waits {
            let delay = causes.take(wait * MS, served(MS), 400 * MS);
            assert_eq!((delay.driver, delay.cause()), (wait * MS, Cause::Driver));
        }
        assert_eq!(causes.take(0, served(MS), 400 * MS), Delay::default());
        let later = causes.take(50 * MS, served(MS), 400 * MS);
        assert_eq!((later.driver, later.cause()), (0, Cause::Pool), "the queue had drained");
    }

    #[test]
    fn a_stall_of_the_server_stays_the_servers_beside_a_short_pause_of_the_driver() {
        let mut causes = warm();
        for _ in 0..4 {
            causes.take(990 * MS, served(1000 * MS), 0);
        }
        let waits = [900, 300, 100, 10];
        for wait in waits {
            let delay = causes.take(wait * MS, served(MS), 20 * MS);
            assert_eq!(delay.cause(), Cause::Server, "{delay:?}");
            assert!(delay.driver <= wait * MS / 40 && delay.pool < 5 * MS, "{delay:?}");
        }
    }

    /// On a busy machine each answer is read late: 200 times 2 ms by four connections are 100 ms, a tenth of the stall.
    #[test]
    fn a_stall_of_the_server_stays_the_servers_while_slow_threads_drain_its_queue() {
        let mut causes = warm();
        for _ in 0..4 {
            causes.take(990 * MS, served(1000 * MS), 0);
        }
        let slow = Spent { service: Some((0, MS)), driver: 2 * MS };
        let delays = (0..200).map(|number| causes.take((1000 - 5 * number) * MS, slow, 0));
        let causes: Vec<Cause> = delays.map(|delay| delay.cause()).collect();
        assert!(causes[..190].iter().all(|cause| *cause == Cause::Server), "{causes:?}");
    }

    #[test]
    fn connections_that_begin_late_are_the_drivers_doing() {
        let mut causes = Causes::new(8);
        let beginning = |late: u64| Spent { service: None, driver: late * MS };
        assert_eq!(causes.take(0, beginning(100), 0), Delay::default(), "it waits for the intended start");
        let delay = causes.take(501 * MS, beginning(600), 0);
        assert_eq!((delay, delay.cause()), (Delay { driver: 501 * MS, ..Delay::default() }, Cause::Driver));
        let delay = causes.take(501 * MS, beginning(101), 0);
        assert_eq!(delay.driver, 501 * MS, "the queue has not drained");
        let later = causes.take(0, served(MS), 0);
        assert_eq!(later, Delay::default());
        assert_eq!(causes.take(501 * MS, beginning(50), 0).cause(), Cause::Pool, "busy for longer than that");
    }

    #[test]
    fn too_few_connections_are_the_pools_doing_and_slow_threads_the_drivers() {
        let mut causes = warm();
        let delays: Vec<Delay> = (1..50).map(|wait| causes.take(wait * MS, served(MS), 0)).collect();
        assert!(delays.iter().all(|delay| delay.cause() == Cause::Pool && delay.driver == 0));
        let mut causes = Causes::new(1);
        let busy = Spent { service: Some((0, MS / 10)), driver: 5 * MS };
        let delays: Vec<Delay> = (1..50).map(|wait| causes.take(wait * 4 * MS, busy, 0)).collect();
        assert!(delays.iter().all(|delay| delay.cause() == Cause::Driver), "{delays:?}");
    }
}
