//! In which order to read rows: sorted by time, through an index on disk.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use clap::Args;
use sawmill_loader::{LoadArranged, LoadReport};
use sawmill_profile::{PhaseReport, Profile, format_counted};
use sawmill_source::{
    Addressed, ByRow, IndexPlace, Order, OrderedRows, PartitionedBy, Period, Source, index_disk_bytes,
};
use serde::Serialize;

use crate::arguments::given::Given;
use crate::arguments::size_arg;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::screen::console::Console;
use crate::screen::phases;

/// In which order to read rows.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Order")]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    given: Given,
    /// Sort the rows by this column of dates or timestamps, within each partition. An index on disk has the
    /// time and the place of each row, and of text sorted copies of the rows. Rows with the same time keep the
    /// order of the input, and rows without a time come last.
    #[arg(long, value_name = "COLUMN")]
    pub sort_by: Option<String>,
    /// The directory for the index, which takes 48 bytes per row while it is built and 24 afterwards; for
    /// text, 12 more and as much as the text [default: the directory of --out; for a load, the system's
    /// temporary directory].
    #[arg(long, value_name = "DIR")]
    pub index_dir: Option<PathBuf>,
    /// The memory for entries and copies while the index is built, over all threads [default: 64MiB].
    #[arg(long, value_name = "BYTES", value_parser = size_arg::bytes, allow_hyphen_values = true)]
    pub index_memory: Option<u64>,
}

/// How the index would be built.
#[derive(Serialize)]
pub(crate) struct IndexPlan {
    pub sort_by: Option<String>,
    pub partition_by: Option<String>,
    pub directory: PathBuf,
    /// While it is built.
    pub disk_bytes: u64,
    pub memory_bytes: u64,
}

impl OrderArgs {
    /// The order of the rows, if they need an index. Rejects options of an index without one.
    pub(crate) fn order(&self, partition_by: Option<PartitionedBy>) -> Result<Option<Order>> {
        if self.sort_by.is_none() && partition_by.is_none() {
            let Some(option) = self.given.first_of::<Self>(&[]) else { return Ok(None) };
            let advice = "add --sort-by or --partition-by, or leave the option out";
            return Err(Error::usage(format!("{option} without an index"), option, advice));
        }
        Ok(Some(Order { sort_by: self.sort_by.clone(), partition_by }))
    }

    /// The same for files that are added to a table, which has its partitions.
    pub(crate) fn of_added(&self) -> Option<Order> {
        self.sort_by.is_some().then(|| Order { sort_by: self.sort_by.clone(), partition_by: None })
    }

    /// Where the index is built; `default` is the directory if none was given.
    pub(crate) fn place(&self, default: &Path) -> IndexPlace {
        IndexPlace {
            directory: self.index_dir.clone().unwrap_or_else(|| default.to_owned()),
            memory: self.index_memory.unwrap_or(IndexPlace::MEMORY),
        }
    }
}

impl IndexPlan {
    pub(crate) fn new(addressed: &dyn Addressed, order: &Order, place: &IndexPlace) -> Self {
        Self {
            sort_by: order.sort_by.clone(),
            partition_by: order.partition_by.as_ref().map(ToString::to_string),
            directory: place.directory.clone(),
            disk_bytes: index_disk_bytes(addressed),
            memory_bytes: place.memory,
        }
    }

    pub(crate) fn lines(&self) -> String {
        let order = match (&self.partition_by, &self.sort_by) {
            (Some(by), Some(column)) => format!("by {by}, sorted by {column}"),
            (Some(by), None) => format!("by {by}, in the order of the input"),
            (None, column) => format!("sorted by {}", column.as_deref().unwrap_or_default()),
        };
        format!(
            "index: {order}; {} of memory, at most {} on disk in {}\n",
            phases::bytes(self.memory_bytes),
            phases::bytes(self.disk_bytes),
            self.directory.display()
        )
    }
}

/// The report about sorted rows, for people and for `--json`.
#[derive(Serialize)]
pub(crate) struct Ordered {
    /// 1 without partitions.
    pub partitions: usize,
    pub index_bytes: u64,
    /// Whether the row groups were in order already, so that there was no index.
    pub in_order: bool,
    /// How rows were gathered.
    pub gathered: String,
}

impl Ordered {
    pub(crate) fn new(rows: &OrderedRows<'_>) -> Self {
        Self {
            partitions: rows.partitions().len(),
            index_bytes: rows.index_bytes(),
            in_order: rows.is_in_order(),
            gathered: rows.way(),
        }
    }

    /// `12 partitions; boundaries 0.31 s, index 0.52 s, load 2.20 s; gathered ...`
    pub(crate) fn line(&self, phases: &[PhaseReport]) -> String {
        let shown = |phase: &&PhaseReport| phase.depth == 0 || phase.name == "attach";
        let each = phases
            .iter()
            .filter(shown)
            .map(|phase| format!("{} {:.2} s", phase.name, phase.wall.as_secs_f64()));
        let each = each.collect::<Vec<_>>().join(", ");
        let count = phases::thousands(self.partitions as u64);
        let partitions = if self.partitions == 1 { "partition" } else { "partitions" };
        format!("{count} {partitions}; {each}; gathered {}", self.gathered)
    }
}

/// Translates the partitions of a CrateDB table for the index: `date_trunc('day', at)`, or a column. `None` for
/// other parts of a date: then the rows are only sorted.
pub(crate) fn of_crate_db(text: &str) -> Option<PartitionedBy> {
    if let Ok(by) = text.parse() {
        return Some(by);
    }
    let Some(inner) = text.trim().strip_prefix("date_trunc(").and_then(|inner| inner.strip_suffix(')'))
    else {
        return Some(PartitionedBy::List(text.to_owned()));
    };
    let (part, column) = inner.split_once(',')?;
    let part = part.trim().trim_matches('\'').to_lowercase();
    let column = column.trim().trim_matches('"').to_owned();
    let period = [Period::Year, Period::Month, Period::Day, Period::Hour];
    period
        .into_iter()
        .find(|period| period.name() == part)
        .map(|period| PartitionedBy::Period(period, column))
}

/// The same in the notation of CrateDB, in which `day(at)` is `date_trunc('day', at)`.
pub(crate) fn for_crate_db(text: &str) -> String {
    match text.parse() {
        Ok(PartitionedBy::Period(period, column)) => format!("date_trunc('{}', {column})", period.name()),
        Ok(PartitionedBy::List(column)) => column,
        Err(_) => text.to_owned(),
    }
}

/// Sorts the files that are added to a table, those that are loaded together.
pub(crate) struct Sorting<'a> {
    pub order: &'a Order,
    pub place: &'a IndexPlace,
    /// All files.
    pub source: &'a dyn Source,
    /// The same, as they are sorted fastest.
    pub addressed: &'a dyn Addressed,
    pub profile: &'a Profile,
    /// How rows were sorted.
    pub sorted: RefCell<Option<Ordered>>,
}

impl Sorting<'_> {
    /// Sorts a source and loads it.
    pub(crate) fn sort(
        &self,
        source: &dyn Source,
        load: &mut LoadArranged<'_>,
    ) -> sawmill_source::Result<LoadReport> {
        let by_row = ByRow::new(source);
        let addressed: &dyn Addressed = match std::ptr::addr_eq(source, self.source) {
            true => self.addressed,
            false => &by_row,
        };
        let phase = self.profile.phase("index");
        let rows = OrderedRows::open(addressed, self.order, self.place, &interrupt::control(&phase))?;
        phase.finish();
        let report = load(&rows)?;
        *self.sorted.borrow_mut() = Some(Ordered::new(&rows));
        Ok(report)
    }
}

/// Builds the index under a progress bar.
pub(crate) fn ordered<'a>(
    addressed: &'a dyn Addressed,
    order: &Order,
    place: &IndexPlace,
    profile: &Profile,
    console: Console,
) -> Result<(OrderedRows<'a>, PhaseReport)> {
    let phase = profile.phase("index");
    let control = interrupt::control(&phase);
    let open = || OrderedRows::open(addressed, order, place, &control);
    let rows = console.with_bar("index", addressed.source().rows(), &phase, open)?;
    if rows.is_in_order() {
        console.notice("the row groups are in order already: no index was needed");
    }
    let report = phase.finish();
    console.detail(|| {
        format!(
            "index: {} in {:.2} s, {}, {} on disk",
            phases::thousands(rows.rows()),
            report.wall.as_secs_f64(),
            format_counted(rows.partitions().len() as u64, "partition"),
            phases::bytes(rows.index_bytes())
        )
    });
    Ok((rows, report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_cratedb_are_understood_in_both_notations() {
        let day = Some(PartitionedBy::Period(Period::Day, "at".into()));
        assert_eq!(of_crate_db("date_trunc('day', \"at\")"), day);
        assert_eq!(of_crate_db("day(at)"), day);
        assert_eq!(of_crate_db("date_trunc('week', at)"), None);
        assert_eq!(of_crate_db("country"), Some(PartitionedBy::List("country".into())));
        assert_eq!(for_crate_db("day(at)"), "date_trunc('day', at)");
        assert_eq!(for_crate_db("list(country)"), "country");
        assert_eq!(for_crate_db("date_trunc('week', at)"), "date_trunc('week', at)");
    }
}
