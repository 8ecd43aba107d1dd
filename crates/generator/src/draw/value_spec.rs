//! How the values of a leaf are drawn.

use std::sync::Arc;

use crate::draw::choice::Dictionary;
use crate::draw::distribution::{Counts, Curve, Ranks};
use crate::draw::expression::{Expression, Operand, OperandRow, Reach};
use crate::draw::monotone::Monotone;
use crate::draw::quantiles::Quantiles;
use crate::draw::text::distinct::DistinctStrings;
use crate::draw::text::localized::Localized;
use crate::draw::text::pattern::Pattern;
use crate::draw::text::random_text::RandomText;
use crate::draw::text::template::Template;
use crate::draw::text::uuid::uuid;
use crate::random::permutation::Permutation;
use crate::random::rng::{BLOCK_ROWS, Stream, scale64};
use crate::random::weights::Weights;
use crate::types::int256::Int256;
use crate::types::logical_type::LogicalType;
use crate::types::number::{Number, stored_number};

pub(crate) mod cycle;
pub(crate) mod distinct_numbers;
pub(crate) mod geometry;
pub(crate) mod intervals;
pub(crate) mod other_rows;
pub(crate) mod own;
pub(crate) mod reader;
pub(crate) mod seasonal;
pub(crate) mod weights_by;

use cycle::Cycle;
use distinct_numbers::DistinctNumbers;
use geometry::Shapes;
use intervals::Intervals;
use other_rows::changes::Changes;
use other_rows::fan_out::{Child, FanOut};
use other_rows::of_children::{Children, OfChildren};
use other_rows::other_column::{OtherColumn, RowOf};
use own::OwnDistribution;
use seasonal::Seasonal;
use weights_by::WeightsBy;

/// The source of a leaf's values.
#[derive(Debug)]
pub(crate) enum ValueSpec {
    /// [`crate::draw::text::person_name`] codes.
    PersonName,
    /// Numbers that a template renders.
    Unique(Template),
    /// Indices into a dictionary of values. If they are chosen `by` something, `table` has their mean shares.
    Choice {
        table: Weights,
        dictionary: Dictionary,
        by: Option<Box<ChosenBy>>,
    },
    /// `false` (0) or `true` (1).
    Boolean(Weights),
    /// Ranks from 1 up.
    Zipf(Ranks),
    /// `span` whole numbers from `min` up; a span of 0 means 2^64.
    Integers {
        min: i64,
        span: u64,
    },
    /// `span` whole numbers from `min` up, with more than 64 bits.
    Wide {
        min: i128,
        span: u128,
    },
    /// The same with more than 128 bits.
    Wider {
        min: Int256,
        span: Int256,
    },
    /// Whole numbers that do not repeat.
    DistinctNumbers(DistinctNumbers),
    /// Doubles from `min` to `min + width`.
    Reals {
        min: f64,
        width: f64,
    },
    /// A continuous distribution. Draws outside of the bounds are set to the bound.
    Curve {
        curve: Curve,
        low: f64,
        high: f64,
    },
    /// A distribution of the calling program.
    Own(OwnDistribution),
    /// A distribution by its quantiles.
    Quantiles(Quantiles),
    /// Dates and timestamps by the weights of the calendar.
    Seasonal(Seasonal),
    Intervals(Intervals),
    /// Points or polygons.
    Shapes(Shapes),
    /// Poisson or geometric.
    Counts(Counts),
    /// `start + step * number`, with the number of the row, or of the element in its list.
    Sequence {
        start: i128,
        step: i128,
    },
    Monotone(Monotone),
    Expression(Expression),
    /// A key of another dataset.
    Reference(Reference),
    /// A column of the row that a reference names, or of the parent.
    OtherColumn(OtherColumn),
    /// A sum, a count or an extreme of the row's children, or of the elements of a list.
    OfChildren(OfChildren),
    /// 1, 2, ... for the rows of each parent.
    ChildNumber(Arc<FanOut>),
    /// What each change of a stream does.
    Operation(Arc<Changes>),
    /// From `least` to `most` words.
    Words {
        least: u32,
        most: u32,
    },
    Email,
    /// Names, addresses and the like of a locale.
    Localized(Localized),
    /// Random UUIDs of version 4.
    Uuid,
    Pattern(Pattern),
    /// Strings of patterns that do not repeat.
    Distinct(Arc<DistinctStrings>),
    /// Words or letters of a drawn length.
    Text(RandomText),
    /// Not drawn: the dataset's [`RowMaker`](crate::shred::row_maker::RowMaker) computes them. Of strings, the
    /// average length is known. Values that repeat are stored with a dictionary.
    #[cfg_attr(not(feature = "tpch"), allow(dead_code, reason = "only tables of benchmarks are computed"))]
    Computed {
        mean_bytes: f64,
        repeats: bool,
    },
    /// Random bytes, from `least` to `most` of them.
    Bytes {
        least: u32,
        most: u32,
    },
}

/// What chooses a value of a list, other than chance alone.
#[derive(Debug)]
pub(crate) enum ChosenBy {
    /// Weights that depend on another field.
    Field(WeightsBy),
    /// The number of the row.
    Row(Cycle),
}

/// The key of row `k` of another dataset; `k` is drawn with Zipfian skew.
#[derive(Debug)]
pub(crate) struct Reference {
    pub ranks: Ranks,
    pub key: ReferencedKey,
    /// How many keys its values may be, also of no row.
    pub keys: u64,
    /// The name of the other dataset.
    pub to: String,
    /// The order of the rows by frequency, if it differs from their numbers.
    pub shuffled: Option<Permutation>,
    /// Keys of no row.
    pub orphans: Option<Orphans>,
    /// The children of one parent refer to different rows, with the same probability.
    pub distinct: Option<DistinctRows>,
}

/// Rows that the children of one parent refer to at most once.
#[derive(Debug)]
pub(crate) struct DistinctRows {
    pub fan_out: Arc<FanOut>,
    /// The rows of the other dataset.
    pub rows: u64,
    /// The purpose of the draws of their order.
    pub order: u64,
}

impl DistinctRows {
    /// The row for each of the child rows `numbers`.
    pub(crate) fn rows(&self, seed: u64, numbers: &[u64]) -> Vec<u64> {
        let children = self.fan_out.children(seed, numbers).into_iter();
        let row = |child: Option<Child>| {
            let Child { parent, number } = child.unwrap_or_default();
            let key = Stream::new(seed, self.order, parent).draw(0);
            Permutation::new(self.rows, key).place(number.min(self.rows.saturating_sub(1)))
        };
        children.map(row).collect()
    }
}

/// The share of references whose key no row has: they name rows after the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orphans {
    /// The share times 2^64.
    pub below: u64,
    /// The number of rows of the other dataset.
    pub rows: u64,
}

impl Reference {
    #[inline(always)]
    pub(crate) fn row(&self, draw: u64) -> u64 {
        let mut draw = draw;
        if let Some(orphans) = &self.orphans {
            let again = Stream::from_draw(draw).draw(0);
            if draw < orphans.below {
                return orphans.rows + scale64(again, orphans.rows);
            }
            draw = again;
        }
        let row = self.ranks.rank(draw) - 1;
        self.shuffled.as_ref().map_or(row, |order| order.place(row))
    }
}

/// How the key of row `k` is computed; rows count from 0.
#[derive(Clone, Debug)]
pub(crate) enum ReferencedKey {
    Sequence { start: i128, step: i128 },
    Unique(Template),
    Distinct(Arc<DistinctStrings>),
    Uuid(UuidKey),
}

/// Where the random UUIDs of a required field of a record come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UuidKey {
    /// Sets the seed of its dataset apart.
    pub salt: u64,
    /// The purpose of its draws.
    pub draws: u64,
}

impl UuidKey {
    pub(crate) fn uuid(&self, seed: u64, row: u64) -> [u8; 16] {
        uuid(Stream::new(seed ^ self.salt, self.draws, row / BLOCK_ROWS).draw(row % BLOCK_ROWS))
    }
}

impl ReferencedKey {
    /// The key of a required field with these values; `None` if they are not keys.
    pub(crate) fn new(values: &ValueSpec) -> Option<Self> {
        match values {
            ValueSpec::Sequence { start, step } => {
                Some(ReferencedKey::Sequence { start: *start, step: *step })
            }
            ValueSpec::Unique(template) => Some(ReferencedKey::Unique(template.clone())),
            ValueSpec::Distinct(strings) => Some(ReferencedKey::Distinct(strings.clone())),
            _ => None,
        }
    }
}

impl ValueSpec {
    /// The fields of the record that its values depend on.
    pub(crate) fn operands(&self) -> &[Operand] {
        match self {
            ValueSpec::Expression(expression) => &expression.operands,
            ValueSpec::Choice { by: Some(by), .. } => match &**by {
                ChosenBy::Field(by) => &by.operand,
                ChosenBy::Row(_) => &[],
            },
            ValueSpec::OtherColumn(OtherColumn { of: RowOf::Key { operand, .. }, .. }) => operand,
            ValueSpec::OfChildren(OfChildren { children: Children::Elements(elements), .. }) => {
                &elements.operand
            }
            _ => &[],
        }
    }

    /// Whether its values need the numbers of their rows, if they are not in a list.
    pub(crate) fn counts_rows(&self) -> bool {
        match self {
            ValueSpec::OtherColumn(column) => !matches!(column.of, RowOf::Key { .. }),
            ValueSpec::Choice { .. } => self.cycle().is_some(),
            ValueSpec::Reference(reference) => reference.distinct.is_some(),
            ValueSpec::Sequence { .. }
            | ValueSpec::Distinct(_)
            | ValueSpec::DistinctNumbers(_)
            | ValueSpec::Monotone(_)
            | ValueSpec::ChildNumber(_)
            | ValueSpec::Operation(_) => true,
            ValueSpec::OfChildren(children) => children.elements().is_none(),
            values => values.follows_rows(),
        }
    }

    /// Whether its values depend on the row before.
    pub(crate) fn follows_rows(&self) -> bool {
        matches!(self, ValueSpec::Expression(expression)
            if expression.operands.iter().any(|operand| operand.row == OperandRow::Before))
    }

    /// The order of its values, if these are chosen by the number of the row.
    pub(crate) fn cycle(&self) -> Option<&Cycle> {
        match self {
            ValueSpec::Choice { by: Some(by), .. } => match &**by {
                ChosenBy::Row(cycle) => Some(cycle),
                ChosenBy::Field(_) => None,
            },
            _ => None,
        }
    }

    /// Whether its values are drawn, beyond what their operands and row numbers determine.
    pub(crate) fn draws(&self) -> bool {
        match self {
            ValueSpec::Expression(expression) => expression.is_drawn,
            ValueSpec::OtherColumn(_)
            | ValueSpec::ChildNumber(_)
            | ValueSpec::OfChildren(_)
            | ValueSpec::Operation(_)
            | ValueSpec::Distinct(_)
            | ValueSpec::DistinctNumbers(_)
            | ValueSpec::Sequence { .. } => false,
            ValueSpec::Choice { .. } => self.cycle().is_none(),
            ValueSpec::Reference(reference) => reference.distinct.is_none(),
            _ => true,
        }
    }

    /// The range of these values in the type `kind`, with decimals scaled.
    pub(crate) fn reach(&self, kind: &LogicalType) -> Reach {
        let (one, (low, high)) = (kind.one_real(), kind.real_range());
        // From stored whole numbers.
        let stored = |reach: Reach| Reach::new((reach.low / one).max(low), (reach.high / one).min(high));
        match self {
            ValueSpec::Zipf(ranks) => Reach::new(1.0, ranks.count() as f64),
            ValueSpec::Choice { dictionary: Dictionary { entries, ordered }, .. } => {
                let number = |entry: &Vec<u8>| stored_number(kind, entry).map(Number::real);
                let ends = (entries.first().and_then(number), entries.last().and_then(number));
                match ends {
                    (Some(low), Some(high)) if *ordered == entries.len() => Reach::new(low, high),
                    _ => Reach::ANY,
                }
            }
            ValueSpec::Integers { min, span } if *span > 0 => {
                stored(Reach::new(*min as f64, *min as f64 + (*span - 1) as f64))
            }
            ValueSpec::DistinctNumbers(distinct) => stored(Reach::new(distinct.least.real(), f64::INFINITY)),
            ValueSpec::Reals { min, width } => Reach::new(*min, min + width),
            ValueSpec::Curve { curve, low: least, high: most } => {
                let natural = if matches!(curve, Curve::Normal { .. }) { f64::NEG_INFINITY } else { 0.0 };
                Reach::new(least.max(natural).max(low), most.min(high))
            }
            ValueSpec::Quantiles(quantiles) if kind.is_whole() => stored(quantiles.reach()),
            ValueSpec::Quantiles(quantiles) => quantiles.reach(),
            // It wraps around at the end of the type's range, which only very long datasets reach.
            ValueSpec::Sequence { start, step } if *step >= 0 => {
                stored(Reach::new(*start as f64, f64::INFINITY))
            }
            ValueSpec::Sequence { start, .. } => stored(Reach::new(f64::NEG_INFINITY, *start as f64)),
            ValueSpec::Monotone(monotone) => stored(monotone.reach()),
            ValueSpec::Seasonal(seasonal) => stored(seasonal.reach()),
            ValueSpec::OtherColumn(column) => column.reach,
            ValueSpec::ChildNumber(_) => stored(Reach::new(1.0, f64::INFINITY)),
            ValueSpec::Expression(expression) => {
                let reach = expression.reach().unwrap_or(Reach::ANY);
                Reach::new(reach.low.max(low), reach.high.min(high))
            }
            _ => stored(Reach::ANY),
        }
    }
}
