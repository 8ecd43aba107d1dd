//! The standard normal distribution: the share of values below a score, and the score of a share.

use std::sync::LazyLock;

use crate::random::elementary::ln;

/// Scores beyond this have the shares 0 and 1.
const END: f64 = 8.0;

/// Places of the table for each unit of the score.
const A_UNIT: f64 = 512.0;

/// The shares below scores at equal distances.
static SHARES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let share = |score: f64| 0.5 * libm::erfc(-score * std::f64::consts::FRAC_1_SQRT_2);
    (0..=(2.0 * END * A_UNIT) as usize + 1).map(|i| share(i as f64 / A_UNIT - END)).collect()
});

/// The share of normal values below `score`, from 0 to 1. Between the places of a table it is a line (error below
/// 2e-7), in a tenth of the time of the error function.
#[inline]
pub(crate) fn normal_share(score: f64) -> f64 {
    let at = (score.clamp(-END, END) + END) * A_UNIT;
    let place = at as usize;
    match SHARES.get(place..place + 2) {
        Some([low, high]) => low + (high - low) * (at - place as f64),
        _ => 1.0,
    }
}

/// The normal value below which a share of values lies, by Acklam's rational approximations (relative error below
/// 1.2e-9).
pub(crate) fn normal_quantile(share: f64) -> f64 {
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
    fn the_share_below_the_score_of_a_share_is_that_share() {
        for i in 1..1000 {
            let share = f64::from(i) / 1000.0;
            assert!((normal_share(normal_quantile(share)) - share).abs() < 3e-7, "{share}");
        }
        assert_eq!([normal_share(f64::NEG_INFINITY), normal_share(-9.0)], [normal_share(-8.0); 2]);
        assert!(normal_share(9.0) > 0.999_999_999 && normal_share(9.0) <= 1.0);
    }

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
