//! How often each fault met each step.

use std::fmt;

use super::fault::{Fault, Step};

/// How often each fault happened at each step.
#[derive(Clone, Debug)]
pub struct Coverage(Vec<u64>);

impl Default for Coverage {
    fn default() -> Self {
        Self(vec![0; Fault::ALL.len() * Step::ALL.len()])
    }
}

impl Coverage {
    pub fn count(&mut self, fault: Fault, step: Step) {
        self.0[fault as usize * Step::ALL.len() + step as usize] += 1;
    }

    pub fn of(&self, fault: Fault, step: Step) -> u64 {
        self.0[fault as usize * Step::ALL.len() + step as usize]
    }

    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own += other);
    }

    /// The pairs that can happen and never did.
    pub fn never(&self) -> Vec<(Fault, Step)> {
        let all = Fault::ALL.into_iter().flat_map(|fault| Step::ALL.map(|step| (fault, step)));
        all.filter(|(fault, step)| fault.happens_at(*step) && self.of(*fault, *step) == 0).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in Fault::ALL {
            let total: u64 = Step::ALL.iter().map(|step| self.of(fault, *step)).sum();
            let possible = Step::ALL.iter().filter(|step| fault.happens_at(**step)).count();
            let never = self.never().into_iter().filter(|(of, _)| *of == fault).map(|(_, step)| step);
            let never: Vec<String> = never.map(|step| format!("{step:?}")).collect();
            write!(
                f,
                "{:<15} {total:>9} times at {} of {possible} steps",
                format!("{fault:?}"),
                possible - never.len()
            )?;
            match never.is_empty() {
                true => writeln!(f)?,
                false => writeln!(f, ", never at {}", never.join(", "))?,
            }
        }
        Ok(())
    }
}
