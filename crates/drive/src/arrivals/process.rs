//! How operations are spread at a given rate.

use std::fmt;
use std::path::PathBuf;

/// The arrival process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At even distances.
    Constant,
    /// Independent of each other: exponentially distributed distances.
    Poisson,
    /// As many at once, at even distances.
    Bursts(u32),
    /// At the moments in a file.
    Trace(PathBuf),
}

impl std::str::FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let refused = || {
            format!(
                "{text:?} is not an arrival process: give constant, poisson, `bursts of 50` or `trace FILE`"
            )
        };
        match words.as_slice() {
            ["constant"] => Ok(Self::Constant),
            ["poisson"] => Ok(Self::Poisson),
            ["bursts", "of", size] | ["bursts", size] => {
                let size = size.parse().ok().filter(|size| (1..=1_000_000).contains(size));
                size.map(Self::Bursts).ok_or_else(refused)
            }
            ["trace", ..] => match text.trim_start().strip_prefix("trace").map(str::trim) {
                Some(file) if !file.is_empty() => Ok(Self::Trace(file.into())),
                _ => Err(refused()),
            },
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Bursts(size) => write!(f, "bursts of {size}"),
            Self::Trace(file) => write!(f, "trace {}", file.display()),
        }
    }
}
