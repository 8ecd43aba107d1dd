//! Which rows are sampled: short runs, spread evenly over all rows.

use std::ops::Range;

/// The most rows of a run.
const RUN: u64 = 1024;

/// The least number of runs of a sample.
const RUNS: u64 = 64;

/// The ranges of a sample of about `wanted` of `rows` rows.
pub(crate) fn spread(rows: u64, wanted: u64) -> Vec<Range<u64>> {
    if rows <= wanted {
        return std::iter::once(0..rows).filter(|all| !all.is_empty()).collect();
    }
    let run = (wanted / RUNS).clamp(1, RUN);
    let runs = (wanted / run).max(1);
    let start = |i: u64| (u128::from(i) * u128::from(rows - run) / u128::from((runs - 1).max(1))) as u64;
    (0..runs).map(|i| start(i)..start(i) + run).collect()
}

/// The parts of sorted `ranges` within `rows`, counted from its start.
pub(crate) fn within(ranges: &[Range<u64>], rows: &Range<u64>) -> Vec<Range<u64>> {
    let cut = |range: &Range<u64>| {
        let part = range.start.max(rows.start)..range.end.min(rows.end);
        (part.start < part.end).then(|| part.start - rows.start..part.end - rows.start)
    };
    ranges.iter().filter_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_reaches_from_the_first_to_the_last_row() {
        for (rows, wanted) in [(10_000_000, 1_000_000), (1001, 1000), (1_000_000, 5), (70_000, 64)] {
            let ranges = spread(rows, wanted);
            assert_eq!(
                (ranges[0].start, ranges[ranges.len() - 1].end > rows / 2),
                (0, true),
                "{rows} {wanted}"
            );
            assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
            let sampled: u64 = ranges.iter().map(|range| range.end - range.start).sum();
            assert!(sampled <= wanted && sampled * 2 > wanted, "{rows} {wanted}: {sampled}");
        }
        assert_eq!(spread(10, 100).first(), Some(&(0..10)));
    }

    #[test]
    fn ranges_are_cut_at_the_borders_of_files() {
        assert_eq!(within(&[0..4, 8..12], &(2..10)), [0..2, 6..8]);
    }
}
