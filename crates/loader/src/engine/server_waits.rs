//! How the server spent a load's connections, according to samples.

use std::fmt;

use serde::Serialize;

/// Shares of the samples, 0 to 1; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerWaits {
    /// Number of samples; each is one look at one connection.
    pub samples: u64,
    /// The server worked.
    pub working: f64,
    /// The server wrote the write-ahead log or waited for it.
    pub wal: f64,
    /// The server waited to extend the table.
    pub extend: f64,
    /// The server read or wrote other files.
    pub io: f64,
    /// The server waited for another lock.
    pub lock: f64,
    /// The server waited for the loader.
    pub client: f64,
    /// The server waited for something else.
    pub other: f64,
}

/// The fewest samples that make a share meaningful: one of 20 is five percent.
const ENOUGH: u64 = 20;

impl ServerWaits {
    /// Whether there were enough samples for meaningful shares; with one sample each share is 0 or 1.
    pub fn tell_enough(&self) -> bool {
        self.samples >= ENOUGH
    }

    /// The shares of samples that are counted in the order of the fields; `None` without samples.
    pub fn of_counts(counts: [u64; 7]) -> Option<Self> {
        let mut waits = Self { samples: counts.iter().sum(), ..Self::default() };
        let samples = waits.samples as f64;
        for (share, count) in waits.shares_mut().into_iter().zip(counts) {
            *share = count as f64 / samples;
        }
        (samples > 0.0).then_some(waits)
    }

    /// Combines the samples of several loads; `None` without samples.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a ServerWaits>) -> Option<ServerWaits> {
        let mut sum = ServerWaits::default();
        for waits in all {
            let samples = waits.samples as f64;
            sum.samples += waits.samples;
            let mut of = *waits;
            for (share, of) in sum.shares_mut().into_iter().zip(of.shares_mut()) {
                *share += *of * samples;
            }
        }
        let samples = sum.samples as f64;
        sum.shares_mut().into_iter().for_each(|share| *share /= samples);
        (sum.samples > 0).then_some(sum)
    }

    fn shares_mut(&mut self) -> [&mut f64; 7] {
        let Self { samples: _, working, wal, extend, io, lock, client, other } = self;
        [working, wal, extend, io, lock, client, other]
    }
}

impl fmt::Display for ServerWaits {
    /// Names shares of at least 0.5 % of the samples.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [
            (self.working, "worked"),
            (self.client, "waited for rows"),
            (self.wal, "waited for the write-ahead log"),
            (self.extend, "waited to make the table longer"),
            (self.io, "waited for files"),
            (self.lock, "waited for locks"),
            (self.other, "waited for other things"),
        ];
        f.write_str("the server")?;
        let seen = shares.into_iter().filter(|(share, _)| *share >= 0.005);
        for (i, (share, what)) in seen.enumerate() {
            write!(f, "{} {what} {:.0} %", if i > 0 { "," } else { "" }, share * 100.0)?;
        }
        write!(f, " of its time ({} samples)", self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_loads_each_sample_counts_the_same() {
        let waits =
            |samples, working| ServerWaits { samples, working, client: 1.0 - working, ..Default::default() };
        assert_eq!(ServerWaits::together(&[waits(10, 1.0), waits(30, 0.5)]), Some(waits(40, 0.625)));
        assert_eq!(ServerWaits::together(&[]), None);
    }

    #[test]
    fn shares_that_were_not_seen_are_left_out_of_the_sentence() {
        let waits = ServerWaits { samples: 20, working: 0.75, wal: 0.25, ..ServerWaits::default() };
        let text = "the server worked 75 %, waited for the write-ahead log 25 % of its time (20 samples)";
        assert_eq!(waits.to_string(), text);
    }
}
