//! CPU samples as folded stacks: one line for each stack, `thread;outer;inner count`, the form that
//! flame graph tools read (Gregg, *The Flame Graph*, ACM Queue 14(2), 2016).

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};

/// Stacks and how often each was sampled. The first frame is the thread's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldedStacks {
    stacks: BTreeMap<Vec<String>, u64>,
}

impl FoldedStacks {
    /// Adds samples of a stack, given from the outermost frame.
    pub fn add(&mut self, frames: impl IntoIterator<Item = impl Into<String>>, samples: u64) {
        let frames: Vec<String> = frames.into_iter().map(|frame| clean(&frame.into())).collect();
        if !frames.is_empty() && samples > 0 {
            *self.stacks.entry(frames).or_default() += samples;
        }
    }

    /// The stacks with their samples, ordered by frame names.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], u64)> {
        self.stacks.iter().map(|(frames, samples)| (frames.as_slice(), *samples))
    }

    /// The total number of samples.
    pub fn samples(&self) -> u64 {
        self.stacks.values().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Adds all samples of another set of stacks.
    pub fn merge(&mut self, other: &Self) {
        for (frames, samples) in other.iter() {
            self.add(frames.iter().map(String::as_str), samples);
        }
    }

    /// Parses folded stacks.
    ///
    /// ```
    /// let stacks = sawmill_profile::FoldedStacks::parse("main;work 3\nmain;wait 1\n").unwrap();
    /// assert_eq!(stacks.samples(), 4);
    /// ```
    ///
    /// # Errors
    /// A line does not end in a blank and a number.
    pub fn parse(text: &str) -> Result<Self> {
        let mut stacks = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (frames, samples) = line
                .rsplit_once(' ')
                .and_then(|(frames, samples)| Some((frames, samples.parse().ok()?)))
                .ok_or_else(|| {
                    let advice = "write frames separated by ;, then a blank and the number of samples";
                    Error::failed("this is not a folded stack", format!("line {}", number + 1), advice)
                })?;
            stacks.add(frames.split(';'), samples);
        }
        Ok(stacks)
    }
}

impl fmt::Display for FoldedStacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (frames, samples) in self.iter() {
            writeln!(f, "{} {samples}", frames.join(";"))?;
        }
        Ok(())
    }
}

/// Removes the format's own separators from a frame's name.
fn clean(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_survive_a_round_trip_through_text() {
        let mut stacks = FoldedStacks::default();
        stacks.add(["writer 1", "a;b", "c d"], 2);
        stacks.add(["writer 1", "a;b", "c d"], 1);
        stacks.add(Vec::<String>::new(), 9);
        assert_eq!(stacks.to_string(), "writer 1;a,b;c d 3\n");
        assert_eq!(FoldedStacks::parse(&stacks.to_string()).unwrap(), stacks);
        assert_eq!(FoldedStacks::parse("no number").unwrap_err().place(), "line 1");
    }
}
