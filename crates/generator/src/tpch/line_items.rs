//! `lineitem`: the columns of line items, drawn as numbers and indices.

use std::ops::Range;
use std::sync::LazyLock;

use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::distribution::{Distribution, Distributions};
use tpchgen::generators::OrderGenerator;
use tpchgen::random::RandomBoundedLong;

use crate::benchmark::rows::ChunkRows;
use crate::benchmark::stream::Stream;
use crate::shred::block::LeafBuffer;
use crate::shred::value_buffer::ValueBuffer;
use crate::tpch::lists::{Lists, WordList};
use crate::tpch::text::Comments;

const MAX_LINES: usize = 7;
/// Days from the first date to the day on which an order may be placed last.
const ORDER_DAYS: u64 = 2557 - 121 - 30;
const PARTS: f64 = 200_000.0;
const SUPPLIERS: f64 = 10_000.0;

/// How many days from the first one are in the past.
static PAST: LazyLock<u32> = LazyLock::new(|| {
    (0..TOTAL_DATE_RANGE).take_while(|day| TPCHDate::is_in_past(MIN_GENERATE_DATE + day)).count() as u32
});

/// Keys from 1 up, equally likely.
#[derive(Debug)]
pub(crate) enum Keys {
    Narrow(Stream, u64),
    /// From scale 30,000 on, or if 32 bits do not hold them.
    Wide(Box<RandomBoundedLong>),
}

impl Keys {
    pub(crate) fn new(seed: u64, scale: f64, base: f64, a_row: usize, row: u64) -> Self {
        let keys = (base * scale) as i64;
        if scale < 30_000.0 && keys <= i64::from(i32::MAX) {
            return Keys::Narrow(Stream::new(seed, a_row, row), keys as u64);
        }
        let wide = scale >= 30_000.0;
        let mut keys = RandomBoundedLong::new_with_seeds_per_row(seed as i64, wide, 1, keys, a_row as i32);
        keys.advance_rows(row as i64);
        Keys::Wide(Box::new(keys))
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> i64 {
        match self {
            Keys::Narrow(stream, keys) => 1 + stream.below_wide(*keys) as i64,
            Keys::Wide(keys) => keys.next_value(),
        }
    }

    #[inline]
    pub(crate) fn next_row(&mut self) {
        match self {
            Keys::Narrow(stream, _) => stream.next_row(),
            Keys::Wide(keys) => keys.row_finished(),
        }
    }
}

/// The random streams behind both the line items and the totals of orders.
#[derive(Debug)]
pub(crate) struct Lines {
    count: Stream,
    date: Stream,
    quantity: Stream,
    discount: Stream,
    tax: Stream,
    part: Keys,
    shipped: Stream,
}

/// The values of a line item that both need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub quantity: u32,
    /// Hundredths.
    pub discount: u32,
    pub tax: u32,
    pub part: i64,
    /// The quantity in hundredths.
    pub price: i64,
    /// Days from the first one.
    pub shipped: u32,
}

impl Lines {
    /// From order `order` on, counted from 0.
    pub(crate) fn new(scale: f64, order: u64) -> Self {
        Lines {
            count: Stream::new(1_434_868_289, 1, order),
            date: Stream::new(1_066_728_069, 1, order),
            quantity: Stream::new(209_208_115, MAX_LINES, order),
            discount: Stream::new(554_590_007, MAX_LINES, order),
            tax: Stream::new(721_958_466, MAX_LINES, order),
            part: Keys::new(1_808_217_256, scale, PARTS, MAX_LINES, order),
            shipped: Stream::new(1_769_349_045, MAX_LINES, order),
        }
    }

    /// The next order: how many line items it has, and its day.
    #[inline]
    pub(crate) fn order(&mut self) -> (u32, u32) {
        (1 + self.count.below(MAX_LINES as u64) as u32, self.date.below(ORDER_DAYS) as u32)
    }

    /// A line item of an order of that day.
    #[inline]
    pub(crate) fn line(&mut self, ordered: u32) -> Line {
        let quantity = 1 + self.quantity.below(50) as u32;
        let (discount, tax) = (self.discount.below(11) as u32, self.tax.below(9) as u32);
        let part = self.part.draw();
        let price = 90_000 + (part / 10) % 20_001 + (part % 1000) * 100;
        let shipped = ordered + 1 + self.shipped.below(121) as u32;
        Line { quantity, discount, tax, part, price: price * i64::from(quantity), shipped }
    }

    #[inline]
    pub(crate) fn next_order(&mut self) {
        for stream in [&mut self.quantity, &mut self.discount, &mut self.tax, &mut self.shipped] {
            stream.next_row();
        }
        self.part.next_row();
    }
}

/// Whether that day, counted from the first one, is in the past.
#[inline]
pub(crate) fn is_past(day: u32) -> bool {
    day < *PAST
}

/// A column of words: the index of a word in the sorted list, for each number that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct WordColumn {
    stream: Stream,
    indices: Vec<u32>,
}

impl WordColumn {
    pub(crate) fn new(seed: u64, words: &Distribution, list: &WordList, a_row: usize, row: u64) -> Self {
        let mut indices = Vec::new();
        for (i, word) in words.get_values().iter().enumerate() {
            indices.resize(words.get_weight(i) as usize, list.index(word));
        }
        WordColumn { stream: Stream::new(seed, a_row, row), indices }
    }

    #[inline]
    pub(crate) fn draw(&mut self) -> u32 {
        self.indices[self.stream.below(self.indices.len() as u64) as usize]
    }

    #[inline]
    pub(crate) fn next_row(&mut self) {
        self.stream.next_row();
    }
}

/// A line item: numbers, and indices of the columns' values.
struct LineItem {
    line: Line,
    supplier: i64,
    number: u32,
    flag: u32,
    status: u32,
    committed: u32,
    received: u32,
    instruction: u32,
    mode: u32,
}

#[derive(Debug)]
pub(crate) struct LineItems {
    /// The order of the next line item, counted from 1, and the last one.
    order: i64,
    last: i64,
    /// How many line items it has, how many of them are done, and its day.
    lines: u32,
    done: u32,
    ordered: u32,
    suppliers: i64,
    /// The index of the flag of line items that were not received before today.
    not_received: u32,
    /// The indices of the statuses of line items that are not shipped, and that are.
    statuses: [u32; 2],
    columns: Lines,
    supplier: Stream,
    committed: Stream,
    received: Stream,
    flag: WordColumn,
    instruction: WordColumn,
    mode: WordColumn,
    comments: Comments,
}

impl LineItems {
    /// The line items of these orders, counted from 0.
    pub(crate) fn new(scale: f64, orders: Range<u64>) -> Self {
        let start = orders.start;
        let (known, lists) = (Distributions::static_default(), Lists::get());
        let stream = |seed| Stream::new(seed, MAX_LINES, start);
        let words = |seed, words, list| WordColumn::new(seed, words, list, MAX_LINES, start);
        let mut columns = Lines::new(scale, start);
        let (lines, ordered) = columns.order();
        LineItems {
            order: start as i64 + 1,
            last: orders.end as i64,
            lines,
            done: 0,
            ordered,
            suppliers: (SUPPLIERS * scale) as i64,
            not_received: lists.flags.index("N"),
            statuses: ["O", "F"].map(|status| lists.line_statuses.index(status)),
            columns,
            supplier: stream(2_095_021_727),
            committed: stream(904_914_315),
            received: stream(373_135_028),
            flag: words(717_419_739, known.return_flags(), &lists.flags),
            instruction: words(1_371_272_478, known.ship_instructions(), &lists.instructions),
            mode: words(675_466_456, known.ship_modes(), &lists.modes),
            comments: Comments::new(scale, 1_095_462_486, 27, MAX_LINES, start),
        }
    }

    /// The next line item of the order; also its comment.
    #[inline]
    fn line_item(&mut self) -> LineItem {
        let line = self.columns.line(self.ordered);
        let (part, suppliers) = (line.part, self.suppliers);
        let number = self.supplier.below(4) as i64;
        let received = line.shipped + 1 + self.received.below(30) as u32;
        let item = LineItem {
            line,
            supplier: (part + number * (suppliers / 4 + (part - 1) / suppliers)) % suppliers + 1,
            number: self.done,
            flag: if is_past(received) { self.flag.draw() } else { self.not_received },
            status: self.statuses[usize::from(is_past(line.shipped))],
            committed: self.ordered + 30 + self.committed.below(61) as u32,
            received,
            instruction: self.instruction.draw(),
            mode: self.mode.draw(),
        };
        self.comments.draw();
        self.done += 1;
        item
    }

    fn next_order(&mut self) {
        self.columns.next_order();
        for stream in [&mut self.supplier, &mut self.committed, &mut self.received] {
            stream.next_row();
        }
        for words in [&mut self.flag, &mut self.instruction, &mut self.mode] {
            words.next_row();
        }
        self.comments.next_key();
        self.order += 1;
        self.done = 0;
        (self.lines, self.ordered) = self.columns.order();
    }
}

impl ChunkRows for LineItems {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let [numbers @ .., comment] = leaves else { return 0 };
        let mut rows = numbers.iter_mut().map(|leaf| &mut leaf.values);
        macro_rules! next {
            ($kind:ident) => {
                match rows.next() {
                    Some(ValueBuffer::$kind(values)) => {
                        values.reserve(most);
                        values
                    }
                    _ => return 0,
                }
            };
        }
        let (orders, parts, suppliers) = (next!(Int64), next!(Int64), next!(Int64));
        let (numbers, quantities, prices) = (next!(Indices), next!(Indices), next!(Int64));
        let (discounts, taxes, flags, statuses) =
            (next!(Indices), next!(Indices), next!(Indices), next!(Indices));
        let (shipped, committed, received) = (next!(Indices), next!(Indices), next!(Indices));
        let (instructions, modes) = (next!(Indices), next!(Indices));
        let mut made = 0;
        while made < most && self.order <= self.last {
            let key = OrderGenerator::make_order_key(self.order);
            let count = (self.lines - self.done).min((most - made) as u32);
            for _ in 0..count {
                let item = self.line_item();
                orders.push(key);
                parts.push(item.line.part);
                suppliers.push(item.supplier);
                numbers.push(item.number);
                quantities.push(item.line.quantity - 1);
                prices.push(item.line.price);
                discounts.push(item.line.discount);
                taxes.push(item.line.tax);
                flags.push(item.flag);
                statuses.push(item.status);
                shipped.push(item.line.shipped);
                committed.push(item.committed);
                received.push(item.received);
                instructions.push(item.instruction);
                modes.push(item.mode);
            }
            made += count as usize;
            if self.done == self.lines {
                self.next_order();
            }
        }
        self.comments.append(comment);
        made
    }

    fn skip(&mut self, mut rows: u64) {
        while rows > 0 && self.order <= self.last {
            let left = u64::from(self.lines - self.done);
            if rows < left {
                for _ in 0..rows {
                    self.line_item();
                }
                break;
            }
            rows -= left;
            self.next_order();
        }
        self.comments.forget();
    }
}
