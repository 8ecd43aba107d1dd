//! Numbers whose ranks are correlated with an earlier field's: a Gaussian copula on the quantiles of both.
//!
//! The other field's value says which share of its values lies below it. As a normal score, a draw is mixed into
//! it; the share of normal values below the result chooses the quantile. So each field keeps its own distribution.

use std::sync::Arc;

use crate::draw::expression::{Operand, Values};
use crate::draw::quantiles::Quantiles;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::Error;
use crate::random::elementary::ln;
use crate::random::rng::{Sequence, unit_interval};
use crate::random::ziggurat::normal;
use crate::shred::leaf_draws::Draws;
use crate::spec_file::toml_reader::SpecNode;

/// A distribution by its quantiles, whose ranks follow the ranks of another field.
#[derive(Debug)]
pub(crate) struct Correlated {
    pub quantiles: Arc<Quantiles>,
    /// The other field.
    pub operand: [Operand; 1],
    /// Its name in the spec.
    pub field: String,
    /// Its distribution.
    of: Arc<Quantiles>,
    /// The correlation of the normal scores, and the weight of the draw.
    correlation: f64,
    own: f64,
}

impl Correlated {
    /// The draws of the quantiles, one for each value.
    pub(crate) fn draws(&self, draws: &Draws<'_>) -> Vec<u64> {
        let one = self.operand.first().map_or(1.0, |operand| operand.kind.one() as f64);
        let number = |i: usize| match draws.operands.first() {
            Some(Values::Numbers(numbers)) => numbers.get(i).map_or(f64::NAN, |number| number.real() * one),
            _ => f64::NAN,
        };
        (0..draws.n).map(|i| self.draw(number(i), draws.stream.draw(i as u64))).collect()
    }

    /// The draw of the quantiles for the stored number `value` of the other field.
    fn draw(&self, value: f64, draw: u64) -> u64 {
        let mut random = Sequence::new(draw);
        let (below, to) = self.of.shares(value);
        // Among values of the same rank, all shares are equally likely.
        let share = below + (to - below) * unit_interval(random.next());
        let score = self.correlation * normal_quantile(share) + self.own * normal(&mut random);
        let share = 0.5 * libm::erfc(-score * std::f64::consts::FRAC_1_SQRT_2);
        let most = (1u64 << 53) - 1;
        (((share * (1u64 << 53) as f64) as u64).min(most) << 11) | (random.next() >> 53)
    }
}

/// Reads `follows = { field = "NAME", correlation = 0.8 }` of the `quantiles`, if they have it.
pub(crate) fn read(node: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec, Error> {
    let path = around.path;
    let quantiles = Quantiles::read_with(node, around.kind, path, &["follows"])?;
    let Some(follows) = node.any_table(path, "quantiles")?.get("follows") else {
        return Ok(ValueSpec::Quantiles(Arc::new(quantiles)));
    };
    let table = follows.table(path, "follows", &["field", "correlation"])?;
    let field = table.need("field", path, "follows")?;
    let name = field.string().unwrap_or_default();
    let found = (around.tables.distributed)(name);
    let (operand, of) = found.map_err(|(what, advice)| field.error(path, what, advice))?;
    let node = table.need("correlation", path, "follows")?;
    let correlation =
        node.number().filter(|correlation| (-1.0..=1.0).contains(correlation)).ok_or_else(|| {
            node.error(
                path,
                format!("`correlation = {}`", node.described()),
                "use a rank correlation from -1 to 1",
            )
        })?;
    // The correlation of normal scores whose ranks have this correlation.
    let correlation = 2.0 * libm::sin(std::f64::consts::FRAC_PI_6 * correlation);
    let own = (1.0 - correlation * correlation).max(0.0).sqrt();
    let quantiles = Arc::new(quantiles);
    let name = name.to_owned();
    Ok(ValueSpec::Correlated(Box::new(Correlated {
        quantiles,
        operand: [operand],
        field: name,
        of,
        correlation,
        own,
    })))
}

/// The normal value below which a share of values lies, by Acklam's rational approximations (relative error below
/// 1.2e-9).
fn normal_quantile(share: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] =
        [0.007_784_695_709_041_462, 0.322_467_129_070_039_8, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const TAIL: f64 = 0.02425;
    let polynomial = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |share: f64| {
        let q = (-2.0 * ln(share)).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    let share = share.clamp(1e-15, 1.0 - 1e-15);
    if share < TAIL {
        tail(share)
    } else if share > 1.0 - TAIL {
        -tail(1.0 - share)
    } else {
        let q = share - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_tables() {
        for (share, expected) in [
            (0.5, 0.0),
            (0.975, 1.959_963_985),
            (0.01, -2.326_347_874),
            (0.999, 3.090_232_306),
            (1e-6, -4.753_424_309),
        ] {
            assert!((normal_quantile(share) - expected).abs() < 1e-7, "{share}: {}", normal_quantile(share));
        }
    }
}
