//! `orders`: the columns of orders, drawn as numbers and indices; totals come from the line items.

use std::ops::Range;

use tpchgen::distribution::Distributions;
use tpchgen::generators::OrderGenerator;

use crate::benchmark::rows::ChunkRows;
use crate::benchmark::stream::Stream;
use crate::shred::block::LeafBuffer;
use crate::tpch::line_items::{Keys, Lines, WordColumn, is_past};
use crate::tpch::lists::Lists;
use crate::tpch::tables::{index, int64, numbered};
use crate::tpch::text::Comments;

const CUSTOMERS: f64 = 150_000.0;
const CLERKS: f64 = 1000.0;

#[derive(Debug)]
pub(crate) struct Orders {
    /// The next order, counted from 1, and the last one.
    order: i64,
    last: i64,
    customers: i64,
    clerks: u64,
    /// The indices of the statuses of orders: no line item is shipped, some are, all are.
    statuses: [u32; 3],
    lines: Lines,
    customer: Keys,
    priority: WordColumn,
    clerk: Stream,
    comments: Comments,
}

impl Orders {
    /// These orders, counted from 0.
    pub(crate) fn new(scale: f64, orders: Range<u64>) -> Self {
        let start = orders.start;
        let lists = Lists::get();
        let priorities = Distributions::static_default().order_priority();
        Orders {
            order: start as i64 + 1,
            last: orders.end as i64,
            customers: (CUSTOMERS * scale) as i64,
            clerks: (CLERKS * scale).max(CLERKS) as u64,
            statuses: ["O", "P", "F"].map(|status| lists.statuses.index(status)),
            lines: Lines::new(scale, start),
            customer: Keys::new(851_767_375, scale, CUSTOMERS, 1, start),
            priority: WordColumn::new(591_449_447, priorities, &lists.priorities, 1, start),
            clerk: Stream::new(1_171_034_773, 1, start),
            comments: Comments::new(scale, 276_090_261, 49, 1, start),
        }
    }

    /// A customer; a third of them, those whose key is divisible by 3, have no orders.
    #[inline]
    fn customer(&mut self) -> i64 {
        let mut key = self.customer.draw();
        let mut step = 1;
        while key % 3 == 0 {
            key = (key + step).min(self.customers);
            step = -step;
        }
        self.customer.next_row();
        key
    }

    /// The total price of an order in hundredths, and the index of its status.
    #[inline]
    fn total(&mut self, lines: u32, ordered: u32) -> (i64, u32) {
        let (mut total, mut shipped) = (0, 0);
        for _ in 0..lines {
            let line = self.lines.line(ordered);
            let discounted = line.price * (100 - i64::from(line.discount));
            total += discounted / 100 * (100 + i64::from(line.tax)) / 100;
            shipped += u32::from(is_past(line.shipped));
        }
        let part = if shipped == lines { 2 } else { usize::from(shipped > 0) };
        (total, self.statuses[part])
    }
}

impl ChunkRows for Orders {
    fn append(&mut self, most: usize, leaves: &mut [LeafBuffer]) -> usize {
        let [keys, customers, statuses, totals, dates, priorities, clerks, ship_priorities, comment] = leaves
        else {
            return 0;
        };
        let orders = (self.last + 1 - self.order).clamp(0, most as i64);
        for _ in 0..orders {
            let (lines, ordered) = self.lines.order();
            let (total, status) = self.total(lines, ordered);
            int64(keys, OrderGenerator::make_order_key(self.order));
            int64(customers, self.customer());
            index(statuses, status);
            int64(totals, total);
            index(dates, ordered);
            index(priorities, self.priority.draw());
            numbered(clerks, "Clerk#", 1 + self.clerk.below_wide(self.clerks) as i64);
            index(ship_priorities, 0);
            self.comments.draw();
            self.lines.next_order();
            self.order += 1;
        }
        self.comments.append(comment);
        orders as usize
    }

    fn skip(&mut self, rows: u64) {
        for _ in 0..rows {
            self.lines.order();
            self.lines.next_order();
            self.customer();
            self.priority.draw();
            self.clerk.below(1);
            self.comments.draw();
        }
        self.comments.forget();
        self.order += rows as i64;
    }
}
