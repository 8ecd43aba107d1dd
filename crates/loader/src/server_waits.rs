//! What the server's side of a load's connections was at, as samples of them say.

use std::fmt;

use serde::Serialize;

/// Shares of the samples, 0 to 1; together they are 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerWaits {
    /// Looks at one connection each.
    pub samples: u64,
    /// It worked.
    pub working: f64,
    /// It wrote the write-ahead log, or waited for those who did.
    pub wal: f64,
    /// It waited to make the table longer.
    pub extend: f64,
    /// It read or wrote other files.
    pub io: f64,
    /// It waited for another lock.
    pub lock: f64,
    /// It waited for us.
    pub client: f64,
    /// It waited for something else.
    pub other: f64,
}

impl fmt::Display for ServerWaits {
    /// What was seen in one sample of a hundred or more.
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
    fn shares_that_were_not_seen_are_left_out_of_the_sentence() {
        let waits = ServerWaits { samples: 20, working: 0.75, wal: 0.25, ..ServerWaits::default() };
        let text = "the server worked 75 %, waited for the write-ahead log 25 % of its time (20 samples)";
        assert_eq!(waits.to_string(), text);
    }
}
