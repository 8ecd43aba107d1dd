//! Values by their quantiles: a distribution as the data had it, without a formula.
//!
//! The inverse of the cumulative distribution is a list of pieces. A draw finds its piece through a guide
//! table and interpolates within it. Values that occur by themselves more often than their neighbours
//! (`atoms`) are pieces of width 0.

pub(crate) mod distinct;

use crate::draw::distribution::quantity;
use crate::draw::expression::Reach;
use crate::draw::value_spec::reader::numbers::{NARROW, whole_of};
use crate::error::Result;
use crate::random::rng::{Sequence, unit_interval};
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::literal::{Literal, real, whole};
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// The most quantiles, and the most atoms.
const MAX_POINTS: usize = 1 << 16;

/// Cells of the guide table for each piece: most draws find their piece at once.
const CELLS: usize = 4;

/// A distribution given by its quantiles.
#[derive(Clone, Debug)]
pub(crate) struct Quantiles {
    /// In the order of their values; NaN comes last.
    pieces: Vec<Piece>,
    /// For each cell of equal probability, the piece of its smallest draw.
    guide: Vec<u32>,
    /// Values are rounded down to multiples of this.
    step: Option<Step>,
    /// The least and the greatest quantile, which rounding does not pass.
    ends: (Number, Number),
}

/// The draws from `from` up to the next piece.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: f64,
    /// 1 / (its probability).
    scale: f64,
    low: Number,
    /// Draws reach from `low` to below `low + width`.
    width: f64,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    whole: i128,
    /// Multiples a unit, if that is a whole number: dividing by it gives the decimal fraction nearest to it.
    a_unit: Option<f64>,
    real: f64,
    /// The share of values that are rounded.
    share: f64,
}

/// A quantile or an atom as read.
type Point = (f64, Number);

impl Quantiles {
    /// Reads the parameters of `quantiles` for a leaf of type `kind`.
    pub(crate) fn read(node: SpecNode<'_>, kind: &LogicalType) -> Result<Self> {
        let keys = ["values", "shares", "atoms", "step", "stepped", "unique"];
        let table = node.table("quantiles", &keys)?;
        if table.flag("unique")? {
            return Err(table.key_error("unique", "unique draws of a formula", "leave unique out"));
        }
        let atoms = atoms(table, kind)?;
        let points = points(table, kind)?;
        let step = step(table, kind)?;
        let alone: f64 = atoms.iter().map(|(share, _)| share).sum();
        if alone > 1.0 + 1e-9 {
            let what = format!("atoms with shares of {alone} in total");
            return Err(table.key_error("atoms", what, "the shares of all atoms sum to at most 1"));
        }
        let rest = (1.0 - alone).max(0.0);
        if points.is_empty() && rest > 1e-9 {
            let what = "quantiles without `values`";
            return Err(table.error(what, "add `values`, or atoms whose shares sum to 1"));
        }
        let unit = match (kind.is_whole(), step) {
            // The last piece includes the greatest value.
            (true, step) => step.map_or(1.0, |step| step.whole as f64),
            (false, Some(step)) => step.real,
            (false, None) => 0.0,
        };
        let within = if rest > 1e-12 { pieces(&points, rest, unit) } else { Vec::new() };
        let none = Number::Whole(0);
        let ends = (points.first().map_or(none, |p| p.1), points.last().map_or(none, |p| p.1));
        Ok(Self::build(merged(within, atoms), step, ends))
    }

    /// Builds the guide table of pieces `(probability, low, width)`.
    fn build(parts: Vec<(f64, Number, f64)>, step: Option<Step>, ends: (Number, Number)) -> Self {
        let total: f64 = parts.iter().map(|(share, ..)| share).sum();
        let mut from = 0.0;
        let mut pieces = Vec::with_capacity(parts.len());
        for (share, low, width) in parts.into_iter().filter(|(share, ..)| *share > 0.0) {
            let share = share / total;
            pieces.push(Piece { from, scale: 1.0 / share, low, width });
            from += share;
        }
        let cells = (pieces.len() * CELLS).next_power_of_two();
        let mut at = 0;
        let guide = (0..cells)
            .map(|cell| {
                let draw = cell as f64 / cells as f64;
                while pieces.get(at + 1).is_some_and(|next: &Piece| next.from <= draw) {
                    at += 1;
                }
                at as u32
            })
            .collect();
        Quantiles { pieces, guide, step, ends }
    }

    /// The piece of a draw from 0 to below 1, and the position within it, from 0 to below 1.
    #[inline(always)]
    fn find(&self, draw: f64) -> (&Piece, f64) {
        let mut at = self.guide[(draw * self.guide.len() as f64) as usize] as usize;
        while let Some(next) = self.pieces.get(at + 1)
            && next.from <= draw
        {
            at += 1;
        }
        let piece = &self.pieces[at];
        // Rounding must not reach the next piece.
        (piece, ((draw - piece.from) * piece.scale).min(1.0 - f64::EPSILON))
    }

    /// Whether this draw is rounded, by `step`.
    #[inline(always)]
    fn stepped(&self, draw: u64) -> Option<Step> {
        let step = self.step?;
        (step.share >= 1.0 || unit_interval(Sequence::new(draw).next()) < step.share).then_some(step)
    }

    #[inline(always)]
    pub(crate) fn whole(&self, draw: u64) -> i128 {
        let (piece, within) = self.find(unit_interval(draw));
        let whole = |number: Number| match number {
            Number::Whole(n) => n,
            Number::Real(v) => v as i128,
        };
        let low = whole(piece.low);
        if piece.width == 0.0 {
            return low;
        }
        let offset = within * piece.width;
        // Conversions to 128 bits are slow.
        let offset = if offset < 1e18 { i128::from(offset as i64) } else { offset as i128 };
        let value = low.saturating_add(offset);
        let value = match self.stepped(draw) {
            Some(step) if step.whole > 1 => value - value.rem_euclid(step.whole),
            _ => value,
        };
        value.max(whole(self.ends.0)).min(whole(self.ends.1))
    }

    #[inline(always)]
    pub(crate) fn real(&self, draw: u64) -> f64 {
        let (piece, within) = self.find(unit_interval(draw));
        let low = piece.low.real();
        if piece.width == 0.0 {
            return low;
        }
        let value = low + within * piece.width;
        let Some(step) = self.stepped(draw) else { return value };
        // A little more, because the product of a multiple may come out a little too small.
        let nearby = 1e-9;
        let value = match step.a_unit {
            Some(a_unit) => (value * a_unit + nearby).floor() / a_unit,
            None => (value / step.real + nearby).floor() * step.real,
        };
        value.max(self.ends.0.real()).min(self.ends.1.real())
    }

    /// The smallest and the largest value, in the numbers that the type stores or, if real, as they are.
    pub(crate) fn reach(&self) -> Reach {
        let known = || self.pieces.iter().filter(|piece| !piece.low.real().is_nan());
        match (known().next(), known().next_back()) {
            (Some(first), Some(last)) if known().count() == self.pieces.len() => {
                Reach::new(first.low.real(), last.low.real() + last.width)
            }
            _ => Reach::ANY,
        }
    }

    /// The average value, without infinities and NaN.
    pub(crate) fn mean(&self) -> f64 {
        let finite = || self.pieces.iter().filter(|piece| piece.low.real().is_finite());
        let share: f64 = finite().map(|piece| 1.0 / piece.scale).sum();
        let sum: f64 = finite().map(|piece| (piece.low.real() + piece.width / 2.0) / piece.scale).sum();
        if share > 0.0 { sum / share } else { f64::NAN }
    }

    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }
}

/// A number of the type `kind`, whole if it stores whole numbers.
fn number_of(kind: &LogicalType, literal: &Literal<'_>) -> Option<Number> {
    match kind.is_whole() {
        true => whole(kind, literal).map(Number::Whole),
        // Negative zero is zero.
        false => real(kind, literal).map(|value| Number::Real(value + 0.0)),
    }
}

fn takes(kind: &LogicalType) -> String {
    if kind.is_wide() { NARROW.to_owned() } else { kind.takes() }
}

fn atoms(table: SpecTable<'_>, kind: &LogicalType) -> Result<Vec<Point>> {
    let Some(node) = table.get("atoms") else { return Ok(Vec::new()) };
    let mut atoms: Vec<Point> = Vec::new();
    for (key, share) in node.any_table("`atoms`")?.entries() {
        let Some(share) = share.number_in(0.0..=1.0) else {
            let what = format!("the share of {key:?} is {}", share.described());
            return Err(share.error(what, "use a number from 0 to 1"));
        };
        let Some(value) = number_of(kind, &Literal::of_key(kind, key)) else {
            return Err(node.error(format!("{key:?} is not {}", kind.a_name()), takes(kind)));
        };
        atoms.push((share, value));
    }
    if atoms.len() > MAX_POINTS {
        return Err(node.error(format!("{} atoms", atoms.len()), format!("use at most {MAX_POINTS}")));
    }
    // NaN sorts last.
    atoms.sort_by(|a, b| match (a.1, b.1) {
        (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
        (a, b) => a.real().is_nan().cmp(&b.real().is_nan()).then(a.real().total_cmp(&b.real())),
    });
    Ok(atoms)
}

/// The quantiles: the share of values below each, and the value.
fn points(table: SpecTable<'_>, kind: &LogicalType) -> Result<Vec<Point>> {
    let Some(node) = table.get("values") else { return Ok(Vec::new()) };
    let list = |node: SpecNode<'_>, key: &str| {
        let what = format!("`{key}` of quantiles is {}", node.described());
        node.error(what, format!("write a list of 2 to {MAX_POINTS}, from the least to the greatest"))
    };
    let mut values = Vec::new();
    for value in node.array().ok_or_else(|| list(node, "values"))? {
        let literal = Literal::new(value);
        let number = literal.and_then(|literal| number_of(kind, &literal));
        let Some(number) = number.filter(|number| number.real().is_finite()) else {
            let what = format!("{} is not a finite {}", value.described(), kind.name());
            return Err(value.error(what, takes(kind)));
        };
        if let Some(before) = values.last()
            && !ordered(*before, number)
        {
            let what = format!("the quantile {} after a greater one", value.described());
            return Err(value.error(what, "sort the values"));
        }
        values.push(number);
    }
    if !(2..=MAX_POINTS).contains(&values.len()) {
        return Err(list(node, "values"));
    }
    let last = (values.len() - 1) as f64;
    let Some(node) = table.get("shares") else {
        return Ok(values.into_iter().enumerate().map(|(i, value)| (i as f64 / last, value)).collect());
    };
    let shares = node.list(SpecNode::number);
    let rising = |shares: &[f64]| {
        let ends = (shares.first(), shares.last()) == (Some(&0.0), Some(&1.0));
        ends && shares.windows(2).all(|pair| pair[0] <= pair[1])
    };
    match shares.filter(|shares| shares.len() == values.len() && rising(shares)) {
        Some(shares) => Ok(shares.into_iter().zip(values).collect()),
        None => {
            let what = "`shares` of quantiles that do not rise from 0 to 1, one for each value";
            Err(node.error(what, "write the share of values below each quantile"))
        }
    }
}

fn ordered(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a <= b,
        (a, b) => a.real() <= b.real(),
    }
}

fn step(table: SpecTable<'_>, kind: &LogicalType) -> Result<Option<Step>> {
    let share =
        table.read("stepped", "use a number from 0 to 1", |node| node.number_in(0.0..=1.0))?.unwrap_or(1.0);
    let Some(node) = table.get("step") else { return Ok(None) };
    let wrong = || node.wrong("step", "use a positive step, in whole units of the type");
    if kind.is_whole() {
        let whole = match kind.is_temporal() {
            true => quantity(kind, node)?.round() as i128,
            false => whole_of(kind, node)?,
        };
        let real = whole as f64;
        return if whole > 0 { Ok(Some(Step { whole, a_unit: None, real, share })) } else { Err(wrong()) };
    }
    let real = node.number().filter(|step| *step > 0.0 && step.is_finite()).ok_or_else(wrong)?;
    let a_unit = (1.0 / real).round();
    let is_fraction = a_unit >= 1.0 && (a_unit * real - 1.0).abs() < 1e-12;
    Ok(Some(Step { whole: 0, a_unit: is_fraction.then_some(a_unit), real, share }))
}

/// The pieces between quantiles, with `rest` as their total probability. The last one is `unit` wider, to
/// include the greatest value.
fn pieces(points: &[Point], rest: f64, unit: f64) -> Vec<(f64, Number, f64)> {
    let between = |low: Number, high: Number| match (low, high) {
        (Number::Whole(low), Number::Whole(high)) => high.wrapping_sub(low) as u128 as f64,
        (low, high) => high.real() - low.real(),
    };
    let rising = || points.windows(2).filter(|pair| pair[0].0 < pair[1].0);
    let last = rising().count();
    rising()
        .enumerate()
        .map(|(i, pair)| {
            let width = between(pair[0].1, pair[1].1);
            let width = if i + 1 == last && width > 0.0 { width + unit } else { width };
            ((pair[1].0 - pair[0].0) * rest, pair[0].1, width)
        })
        .collect()
}

/// The pieces and the atoms in the order of their values: a piece is cut where an atom lies within it.
fn merged(within: Vec<(f64, Number, f64)>, atoms: Vec<Point>) -> Vec<(f64, Number, f64)> {
    let mut out = Vec::with_capacity(within.len() + 2 * atoms.len());
    let mut atoms = atoms.into_iter().peekable();
    for (mut share, mut low, mut width) in within {
        while let Some((alone, value)) = atoms.next_if(|(_, value)| value.real() < low.real() + width) {
            let before = (value.real() - low.real()).max(0.0);
            if before > 0.0 {
                let cut = share * before / width;
                out.push((cut, low, before));
                (share, low, width) = (share - cut, value, width - before);
            }
            out.push((alone, value, 0.0));
        }
        out.push((share, low, width));
    }
    out.extend(atoms.map(|(alone, value)| (alone, value, 0.0)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::Stream;
    use crate::spec_file::toml_reader::SpecTable;
    use toml::de::DeTable;

    fn read(parameters: &str, kind: &LogicalType) -> Result<Quantiles, String> {
        let text = format!("q = {parameters}");
        let table = DeTable::parse(&text).unwrap();
        let root = SpecTable::root(table.get_ref(), &text);
        Quantiles::read(root.get("q").unwrap(), kind).map_err(|error| error.to_string())
    }

    const INT: LogicalType = LogicalType::Integer { bits: 32, signed: true };

    #[test]
    fn whole_numbers_between_quantiles_are_equally_likely_and_include_both_ends() {
        let quantiles = read("{ values = [0, 10, 13], shares = [0, 0.5, 1] }", &INT).unwrap();
        let mut counts = [0u32; 14];
        let stream = Stream::new(1, 2, 3);
        for i in 0..140_000 {
            counts[quantiles.whole(stream.draw(i)) as usize] += 1;
        }
        for (value, count) in counts.iter().enumerate() {
            let expected = if value < 10 { 7_000.0 } else { 17_500.0 };
            assert!((f64::from(*count) - expected).abs() < 0.05 * expected, "{value}: {counts:?}");
        }
    }

    #[test]
    fn atoms_have_their_shares_and_values_are_multiples_of_the_step() {
        let text = "{ values = [-2.0, 100], atoms = { 0 = 0.3, '5.5' = 0.1, nan = 0.05 }, step = 0.01 }";
        let quantiles = read(text, &LogicalType::Double).unwrap();
        let stream = Stream::new(1, 2, 3);
        let values: Vec<f64> = (0..100_000).map(|i| quantiles.real(stream.draw(i))).collect();
        let share = |test: &dyn Fn(f64) -> bool| values.iter().filter(|v| test(**v)).count() as f64 / 1e5;
        assert!((share(&|v| v == 0.0) - 0.3).abs() < 0.01);
        assert!((share(&|v| v == 5.5) - 0.1).abs() < 0.01);
        assert!((share(&f64::is_nan) - 0.05).abs() < 0.005);
        assert!((share(&|v| v < 0.0) - 0.55 * 2.0 / 102.0).abs() < 0.002);
        assert_eq!(share(&|v| (v * 100.0).round() / 100.0 == v), share(&|v| !v.is_nan()));
        assert!(values.iter().all(|v| v.is_nan() || (-2.0..=100.0).contains(v)));
    }

    #[test]
    fn parameters_that_are_no_distribution_are_refused() {
        for (text, part) in [
            ("{ values = [1] }", "list of 2"),
            ("{ values = [2, 1] }", "sort"),
            ("{ values = [1, 2], shares = [0, 0.5] }", "shares"),
            ("{ atoms = { 1 = 0.5 } }", "without `values`"),
            ("{ values = [1, 2], atoms = { 1 = 0.6, 2 = 0.6 } }", "1.2"),
            ("{ values = [1, 2], step = 0 }", "step"),
            ("{ values = [1, 9999999999] }", "9999999999"),
        ] {
            let error = read(text, &INT).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(read("{ atoms = { 1 = 0.5, 7 = 0.5 } }", &INT).is_ok());
    }
}
