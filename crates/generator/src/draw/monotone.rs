//! Values that grow from row to row (`walk` in specs), such as the timestamps of events.
//!
//! Value *k* depends on *k* and its draw alone, so drawing can start at any row:
//! `start + step * (k + jitter * u) - late`, with u from 0 to 1. A jitter of at most 1 keeps the order; late
//! values break it.

use crate::draw::distribution::quantity;
use crate::draw::expression::Reach;
use crate::draw::misfit::nearest_whole;
use crate::draw::value_spec::reader::numbers::whole_of;
use crate::error::Result;
use crate::random::rng::{Sequence, unit_interval};
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;

/// The parameters of monotone values, in the whole numbers of the leaf's type.
#[derive(Debug)]
pub(crate) struct Monotone {
    pub start: i128,
    pub step: f64,
    /// The share of a step that is random.
    jitter: f64,
    /// The share of values that are late, and the maximum delay.
    late: Option<(f64, f64)>,
}

impl Monotone {
    pub(crate) fn read(node: SpecNode<'_>, kind: &LogicalType) -> Result<Self> {
        let table = node.table("walk", &["start", "step", "jitter", "late"])?;
        let one = kind.one_real();
        let share = |node: SpecNode<'_>, most: f64| {
            let wrong = || node.unfit("{} is not a valid share", format!("use a number from 0 to {most}"));
            node.number_in(0.0..=most).ok_or_else(wrong)
        };
        let start = whole_of(kind, table.need("start", "a walk")?)?;
        let step = quantity(kind, table.need("step", "a walk")?)? * one;
        let jitter = table.get("jitter").map_or(Ok(0.0), |node| share(node, 1000.0))?;
        let late = |node: SpecNode<'_>| -> Result<_> {
            let table = node.table("late", &["share", "by"])?;
            let how_many = share(table.need("share", "late")?, 1.0)?;
            Ok((how_many, quantity(kind, table.need("by", "late")?)? * one))
        };
        Ok(Monotone { start, step, jitter, late: table.get("late").map(late).transpose()? })
    }

    /// Value `k` for its random `draw`; `None` if it has more than 128 bits.
    #[inline]
    pub(crate) fn value(&self, k: u64, draw: u64) -> Option<i128> {
        let mut offset = 0.0;
        if self.jitter > 0.0 {
            offset += self.jitter * self.step * unit_interval(draw);
        }
        if let Some((share, by)) = self.late {
            let mut random = Sequence::new(draw);
            if unit_interval(random.next()) < share {
                offset -= by * unit_interval(random.next());
            }
        }
        // Whole steps stay exact for any k.
        let whole = self.step.trunc();
        let steps = nearest_whole(whole)?.checked_mul(k.into())?;
        let parts = nearest_whole(((self.step - whole) * k as f64).trunc())?;
        let offset = nearest_whole(offset.floor())?;
        self.start.checked_add(steps)?.checked_add(parts)?.checked_add(offset)
    }

    /// The range of its values, in the whole numbers of the type.
    pub(crate) fn reach(&self) -> Reach {
        let (start, by) = (self.start as f64, self.late.map_or(0.0, |(_, by)| by));
        let (back, forth) = (by.max(0.0), by.min(0.0).abs());
        match self.step >= 0.0 {
            true => Reach::new(start - back, f64::INFINITY),
            false => Reach::new(f64::NEG_INFINITY, start + forth),
        }
    }
}
