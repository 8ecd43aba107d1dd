//! How many line items orders have, and how many of them are returned.

use tpcdsgen::config::Table;
use tpcdsgen::generator::{
    CatalogSalesGeneratorColumn as Catalog, GeneratorColumn, StoreSalesGeneratorColumn as Store,
    WebSalesGeneratorColumn as Web,
};

use crate::benchmark::rows::Chunk;
use crate::benchmark::stream::Stream;

/// The percentage of line items that are returned.
const RETURNED: u64 = 10;

/// The lines of orders that are rows of a table: all of them, or those that are returned.
pub(crate) struct OrderLines {
    /// The table whose rows are counted by orders.
    pub sales: Table,
    /// Draws the number of lines.
    number: Column,
    least: u64,
    most: u64,
    /// Draws for each line whether it is returned, if only those count.
    returned: Option<Column>,
}

/// A column of `tpcdsgen`: its number and how many random numbers it has for each order.
struct Column(u64, usize);

fn column(column: &impl GeneratorColumn) -> Column {
    Column(column.get_global_column_number() as u64, column.get_seeds_per_row() as usize)
}

impl Column {
    /// Its random numbers from order `order` on, counted from 0.
    fn stream(&self, order: u64) -> Stream {
        const SEED: u64 = 19_620_718;
        const COLUMNS: u64 = 799;
        Stream::new(SEED + self.0 * (i32::MAX as u64 / COLUMNS), self.1, order)
    }
}

impl OrderLines {
    /// The lines of a table of sales or returns.
    pub(crate) fn new(table: Table) -> Option<Self> {
        let (sales, number, (least, most), returned) = match table {
            Table::StoreSales | Table::StoreReturns => {
                (Table::StoreSales, column(&Store::SsTicketNumber), (8, 16), column(&Store::SrIsReturned))
            }
            Table::CatalogSales | Table::CatalogReturns => (
                Table::CatalogSales,
                column(&Catalog::CsOrderNumber),
                (4, 14),
                column(&Catalog::CrIsReturned),
            ),
            Table::WebSales | Table::WebReturns => {
                (Table::WebSales, column(&Web::WsOrderNumber), (8, 16), column(&Web::WrIsReturned))
            }
            _ => return None,
        };
        Some(OrderLines { sales, number, least, most, returned: (table != sales).then_some(returned) })
    }

    /// About how many rows `orders` orders have.
    pub(crate) fn expected(&self, orders: i64) -> i64 {
        let lines = orders * (self.least + self.most) as i64 / 2;
        if self.returned.is_some() { lines * RETURNED as i64 / 100 } else { lines }
    }

    /// Counts the rows of some chunks from `first` on.
    pub(crate) fn count(&self, first: Chunk, counts: &mut [u64]) {
        let start = first.keys().start;
        let mut number = self.number.stream(start);
        let mut returned = self.returned.as_ref().map(|column| column.stream(start));
        let mut chunk = first;
        for count in counts {
            for _ in chunk.keys() {
                let lines = self.least + number.remainder(self.most - self.least + 1);
                number.next_row();
                *count += match &mut returned {
                    None => lines,
                    Some(returned) => {
                        (0..lines).filter(|_| returned.remainder(100) < RETURNED).count() as u64
                    }
                };
                returned.iter_mut().for_each(Stream::next_row);
            }
            chunk = chunk.next();
        }
    }
}
