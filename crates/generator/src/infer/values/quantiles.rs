//! Describes a sample of numbers by its quantiles and by the values that are frequent on their own.

/// Whether a value that `count` of `n` values equal is frequent. One that does not repeat is not, however few there are.
pub(crate) fn is_atom(count: u64, n: u64) -> bool {
    count > 1 && count * 500 >= n
}

/// The shares of values at which quantiles are taken, besides every half percent: the tails have more.
const TAILS: [f64; 6] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.0035];

/// The quantiles of a sample.
#[derive(Debug)]
pub(crate) struct Described<V> {
    /// Frequent values and their shares of all values.
    pub atoms: Vec<(V, f64)>,
    /// The share of the other values below each value.
    pub points: Vec<(f64, V)>,
}

/// The findings about all values beyond the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beyond<V> {
    pub least: V,
    pub greatest: V,
    /// The number of all values.
    pub n: u64,
}

/// Describes `runs`, the values of a sample in their order with their counts, `n` values in all.
pub(crate) fn described<V: Copy + PartialOrd>(
    runs: &[(V, u64)],
    n: u64,
    zero: V,
    beyond: Option<Beyond<V>>,
) -> Described<V> {
    let (atoms, rest): (Vec<_>, Vec<_>) = runs.iter().copied().partition(|run| is_atom(run.1, n));
    let mut atoms: Vec<(V, f64)> = atoms.iter().map(|(v, count)| (*v, *count as f64 / n as f64)).collect();
    let mut points = points(&rest, zero);
    if let Some(beyond) = beyond {
        widen(&mut points, beyond);
    }
    // A single other value has no piece.
    if let [(_, only)] = points[..] {
        atoms.push((only, rest.iter().map(|run| run.1).sum::<u64>() as f64 / n as f64));
        points.clear();
    }
    Described { atoms, points }
}

fn points<V: Copy + PartialOrd>(runs: &[(V, u64)], zero: V) -> Vec<(f64, V)> {
    let n = runs.iter().map(|run| run.1).sum::<u64>() as f64;
    let mut targets: Vec<f64> = (0..200).map(|i| f64::from(i) / 200.0).collect();
    targets.extend(TAILS.iter().flat_map(|share| [*share, 1.0 - share]));
    targets.sort_by(f64::total_cmp);
    let mut targets = targets.into_iter().peekable();
    let mut points: Vec<(f64, V)> = Vec::new();
    let mut below = 0;
    for (i, (value, count)) in runs.iter().enumerate() {
        let share = below as f64 / n;
        let wanted = std::iter::from_fn(|| targets.next_if(|target| *target <= share)).count() > 0;
        // The share of negative values is kept exactly.
        let crosses = *value >= zero && i > 0 && runs[i - 1].0 < zero;
        if crosses && *value > zero {
            points.push((share, zero));
        }
        // An outlier must not stretch the piece of its neighbours.
        let is_outermost_but_one = i == 1 || i + 2 == runs.len();
        if wanted || crosses || is_outermost_but_one {
            points.push((share, *value));
        }
        below += count;
    }
    if let Some((greatest, _)) = runs.last() {
        if points.last().is_some_and(|(_, v)| v == greatest) && points.len() > 1 {
            points.pop();
        }
        points.push((1.0, *greatest));
    }
    points.dedup_by(|b, a| a.1 == b.1 && (a.0 - b.0).abs() < f64::EPSILON);
    points
}

/// Extends the quantiles to values outside of the sample, which are as rare as one value in all.
fn widen<V: Copy + PartialOrd>(points: &mut Vec<(f64, V)>, beyond: Beyond<V>) {
    let rare = 1.0 / beyond.n.max(2) as f64;
    if let [first, second, ..] = points[..]
        && beyond.least < first.1
    {
        points[0].0 = rare.min(second.0 / 2.0);
        points.insert(0, (0.0, beyond.least));
    }
    if let [.., before, last] = points[..]
        && beyond.greatest > last.1
    {
        let end = points.len() - 1;
        points[end].0 = (1.0 - rare).max((before.0 + 1.0) / 2.0);
        points.push((1.0, beyond.greatest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_values_are_atoms_and_negative_values_keep_their_share() {
        let mut runs: Vec<(i64, u64)> = (-13..0).map(|v| (v * 10, 1)).collect();
        runs.extend([(0, 400), (5, 87)]);
        runs.extend((10..510).map(|v| (v, 1)));
        let described = described(&runs, 1000, 0, None);
        assert_eq!(described.atoms, [(0, 0.4), (5, 0.087)]);
        let zero = described.points.iter().find(|(_, v)| *v == 0).unwrap();
        assert!((zero.0 - 13.0 / 513.0).abs() < 1e-12, "{described:?}");
        assert_eq!(described.points.last(), Some(&(1.0, 509)));
        assert_eq!(described.points.first(), Some(&(0.0, -130)));
    }

    #[test]
    fn few_values_that_do_not_repeat_are_no_atoms() {
        let runs: Vec<(i64, u64)> = (1..40).map(|v| (v * v, 1)).chain([(2000, 2)]).collect();
        let described = described(&runs, 41, 0, None);
        assert_eq!(described.atoms, [(2000, 2.0 / 41.0)]);
        assert_eq!((described.points[0], described.points.last()), ((0.0, 1), Some(&(1.0, 1521))));
    }

    #[test]
    fn an_outlier_in_the_sample_is_as_rare_as_it_was() {
        let runs: Vec<(i64, u64)> = (0..100_000).map(|v| (v, 1)).chain([(1_000_000_000, 1)]).collect();
        let points = described(&runs, 100_001, 0, None).points;
        let [.., before, last] = points[..] else { panic!() };
        assert_eq!((before.1, last), (99_999, (1.0, 1_000_000_000)));
        assert!(before.0 > 0.9999, "{before:?}");
    }

    #[test]
    fn the_greatest_value_outside_of_the_sample_is_as_rare_as_one_value() {
        let runs: Vec<(i64, u64)> = (0..1000).map(|v| (v, 1)).collect();
        let beyond = Beyond { least: 0, greatest: 1_000_000, n: 100_000 };
        let points = described(&runs, 1000, 0, Some(beyond)).points;
        let [.., before, last] = points[..] else { panic!() };
        assert_eq!((before.1, last), (999, (1.0, 1_000_000)));
        assert!((before.0 - 0.99999).abs() < 1e-9);
    }
}
