//! Values that depend on the row before of the same parent: one after the other, from the first row of the parent.

use crate::draw::expression::{Numbers, OperandRow, Values};
use crate::draw::misfit::Misfit;
use crate::draw::value_spec::other_rows::fan_out::FanOut;
use crate::shred::leaf_draws::Draws;
use crate::shred::operands::{OperandValues, values};
use crate::shred::value_buffer::ValueBuffer;
use crate::spec::dataset::Leaf;

impl Leaf {
    /// As [`draw`](Self::draw), for the rows of a block, which are children as `fan_out` says. `known` has the
    /// operands of this block, and of this leaf the values of the block before.
    #[must_use]
    pub(crate) fn draw_chain(
        &self,
        draws: &Draws<'_>,
        fan_out: &FanOut,
        known: &[OperandValues],
        out: &mut ValueBuffer,
    ) -> Option<(usize, Misfit)> {
        let mut misfit = None;
        let mut own = known.get(self.index).map_or_else(Values::default, OperandValues::last);
        for (i, child) in fan_out.children(draws.seed, draws.numbers).into_iter().enumerate() {
            let is_first = child.is_none_or(|child| child.number == 0);
            let operands = self.values.operands().iter().zip(draws.operands);
            let here = operands.map(|(operand, values)| match (operand.row, i.checked_sub(1)) {
                (OperandRow::Own | OperandRow::Referred, _) => values.at(&[i as u32]),
                (OperandRow::IsFirst, _) => Values::Numbers(Numbers::Whole(vec![is_first.into()])),
                (OperandRow::Before, _) if operand.leaf == self.index => own.clone(),
                (OperandRow::Before, Some(before)) => values.at(&[before as u32]),
                (OperandRow::Before, None) => {
                    known.get(operand.leaf).map_or_else(Values::default, |known| known.before.clone())
                }
            });
            let here: Vec<Values> = here.collect();
            let one = Draws {
                stream: draws.stream.skip(i as u64),
                n: 1,
                numbers: &draws.numbers[i..=i],
                operands: &here,
                wanted: 0..usize::from(draws.wanted.contains(&i)),
                ..*draws
            };
            misfit = misfit.or(self.draw(&one, out).map(|(_, misfit)| (i, misfit)));
            own = values(self, out, out.len() - 1);
        }
        misfit
    }
}
