//! The `copula` of a sample: which columns depend on one another, and how.
//!
//! Where two columns depend in a way that correlated normal scores do not have, one depends on the other by a table of
//! counts: these pairs form a forest. The scores of what the tables leave are correlated.

mod axis;
mod fit;
mod forest;
mod scores;

use std::fmt::Write;

use crate::draw::copula::is_even;
use crate::infer::notation::{digits, list, quoted};
pub(crate) use axis::{Axis, Listed, Of};
pub(crate) use fit::Fitted;

/// The most members.
const MAX_MEMBERS: usize = 100;

/// The copula of the columns that depend on some other; `None` if none does.
pub(crate) fn fitted(axes: Vec<Axis>) -> Option<Fitted> {
    let is_few = |axis: &Axis| matches!(axis.of, Of::Rows(rows) if is_even(rows, axes.len()));
    let is_even = axes.first().is_some_and(is_few);
    let related = forest::Relations::new(&axes, is_even);
    let mut strength: Vec<(f64, usize)> = related.strengths().into_iter().zip(0..).collect();
    strength.retain(|(strength, _)| *strength > 0.0);
    strength.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    strength.truncate(MAX_MEMBERS);
    let mut kept: Vec<usize> = strength.into_iter().map(|(_, axis)| axis).collect();
    kept.sort_unstable();
    let order = related.forest(&axes, &kept);
    (!order.is_empty()).then(|| Fitted::new(axes, order))
}

impl Fitted {
    /// Whether it has a member of this kind.
    pub(crate) fn has(&self, of: Of) -> bool {
        self.members().any(|member| member.axis.of == of)
    }

    /// The order of the values of a member, as it is written.
    pub(crate) fn order(&self, of: Of) -> Option<&[String]> {
        self.members().find(|member| member.axis.of == of).map(|member| &member.axis.order[..])
    }

    /// The members as TOML under `path`. `name` names a field.
    pub(crate) fn to_toml(&self, path: &str, name: &dyn Fn(usize) -> String) -> String {
        let key = |of: Of| match of {
            Of::Rows(_) => "rows = true".to_owned(),
            Of::Present => "present = true".to_owned(),
            Of::Field(field) => format!("field = {}", quoted(&name(field))),
            Of::Nulls(field) => format!("nulls = {}", quoted(&name(field))),
        };
        let mut out = String::new();
        for (i, member) in self.members().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n[[{path}]]\n{}\n", key(member.axis.of));
            if !member.axis.order.is_empty() && member.axis.of != Of::Present && member.axis.period == 0 {
                let _ = writeln!(out, "order = {}", list(&member.axis.order));
            }
            if i > 0 {
                let _ = writeln!(out, "with = {}", list(member.with.iter().map(|v| digits(*v, 4))));
            }
            if member.before > 0.0 && member.axis.period == 0 && !matches!(member.axis.of, Of::Rows(_)) {
                let _ = writeln!(out, "autocorrelation = {}", digits(member.before, 4));
                let _ = if member.lag > 1 { writeln!(out, "lag = {}", member.lag) } else { Ok(()) };
            }
            if let Some((by, counts)) = member.by {
                let _ = writeln!(out, "by = {{ {}, counts = {} }}", key(by), list(counts.iter().map(list)));
            }
        }
        out
    }
}
