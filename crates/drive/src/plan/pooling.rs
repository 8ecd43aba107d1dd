//! How long connections are kept, and how operations wait for lost ones.

use std::str::FromStr;
use std::time::{Duration, Instant};

use sawmill_profile::{parse_count, parse_duration};
use sawmill_source::LOOK;

/// How long the connections of a run are kept. They are a pool: each operation takes the next that is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// To the end of the run.
    #[default]
    Kept,
    /// No pool: each operation opens a connection, and its latency includes that.
    None,
    /// For this many operations; then a new one is opened, between two operations.
    Operations(u64),
    /// For this long; then a new one is opened, between two operations.
    For(Duration),
}

/// How an operation waits until a lost connection can be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The total wait; then the operation fails.
    pub within: Duration,
    /// The first delay between attempts.
    pub every: Duration,
    /// The maximum delay. Delays double from attempt to attempt up to this.
    pub up_to: Duration,
}

impl Default for Reconnect {
    fn default() -> Self {
        let every = Duration::from_millis(50);
        Self { within: Duration::from_secs(30), every, up_to: every }
    }
}

impl Reconnect {
    /// The delay that follows `last`.
    pub(crate) fn after(&self, last: Duration) -> Duration {
        if last.is_zero() { self.every } else { (last * 2).min(self.up_to).max(self.every) }
    }
}

/// Waiting for a server that is away.
#[derive(Default)]
pub(crate) struct Away {
    since: Option<Instant>,
    last: Duration,
    /// The end of the last wait.
    until: Option<Instant>,
}

impl Away {
    /// Waits until the next attempt; `false` if the plan allows none, or `is_over`.
    ///
    /// A server that was there for longer than the plan waits for it is away for a new reason.
    pub(crate) fn wait(&mut self, policy: &Reconnect, is_over: &dyn Fn() -> bool) -> bool {
        if self.until.is_some_and(|until| until.elapsed() > policy.within) {
            *self = Self::default();
        }
        let left = policy.within.saturating_sub(self.since.get_or_insert_with(Instant::now).elapsed());
        if left.is_zero() {
            return false;
        }
        self.last = policy.after(self.last);
        let end = Instant::now() + self.last.min(left);
        while !is_over() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.until = Some(Instant::now());
                return true;
            }
            std::thread::sleep(left.min(LOOK));
        }
        false
    }
}

impl FromStr for Pooling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?} is not a pooling: write kept, none (a connection for each operation), `1000 operations` or a time \
                 such as 30s"
            )
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["kept"] => Ok(Self::Kept),
            ["none"] => Ok(Self::None),
            [count, "operations"] => match parse_count(count) {
                Ok(count) if count > 0 => Ok(Self::Operations(count)),
                _ => Err(refused()),
            },
            [time] => match parse_duration(time) {
                Ok(time) if !time.is_zero() => Ok(Self::For(time)),
                _ => Err(refused()),
            },
            _ => Err(refused()),
        }
    }
}

impl FromStr for Reconnect {
    type Err = String;

    /// `never`, `30s`, `30s every 50ms`, `30s every 50ms up to 2s`.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{text:?}: write never, or how long to wait for a connection: 30s, `30s every 100ms`, `30s every 50ms up to \
                 2s`"
            )
        };
        let time = |text: &str| parse_duration(text).map_err(|_| refused());
        let positive = |text: &str| time(text).and_then(|t| if t.is_zero() { Err(refused()) } else { Ok(t) });
        let words: Vec<&str> = text.split_whitespace().collect();
        let default = Self::default();
        match words.as_slice() {
            ["never"] => Ok(Self { within: Duration::ZERO, ..default }),
            [within] => Ok(Self { within: time(within)?, ..default }),
            [within, "every", every] => {
                let every = positive(every)?;
                Ok(Self { within: time(within)?, every, up_to: every })
            }
            [within, "every", every, "up", "to", most] => {
                let (every, up_to) = (positive(every)?, positive(most)?);
                if up_to < every {
                    return Err(refused());
                }
                Ok(Self { within: time(within)?, every, up_to })
            }
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_kept_as_long_as_the_plan_says() {
        let read = |text: &str| text.parse::<Pooling>().unwrap();
        assert_eq!(read("kept"), Pooling::Kept);
        assert_eq!(read("none"), Pooling::None);
        assert_eq!(read("1k operations"), Pooling::Operations(1000));
        assert_eq!(read("30s"), Pooling::For(Duration::from_secs(30)));
        for wrong in ["", "some", "0 operations", "0s", "each operation"] {
            assert!(wrong.parse::<Pooling>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn attempts_to_connect_draw_apart_up_to_a_distance() {
        let policy: Reconnect = "30s every 50ms up to 1s".parse().unwrap();
        let mut waits = vec![policy.after(Duration::ZERO)];
        (0..6).for_each(|_| waits.push(policy.after(waits[waits.len() - 1])));
        let millis: Vec<u128> = waits.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [50, 100, 200, 400, 800, 1000, 1000]);
        let even: Reconnect = "30s every 200ms".parse().unwrap();
        assert_eq!(even.after(even.after(Duration::ZERO)), Duration::from_millis(200));
        assert_eq!("never".parse::<Reconnect>().unwrap().within, Duration::ZERO);
        for wrong in ["", "soon", "30s every", "30s every 0s", "30s every 2s up to 1s"] {
            assert!(wrong.parse::<Reconnect>().is_err(), "{wrong}");
        }
    }
}
