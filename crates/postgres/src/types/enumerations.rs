//! The labels of a new table's enumerations: the distinct values of their columns in the loaded rows, ordered
//! by their bytes.
//!
//! These columns are read once before the table is created. The order by bytes does not depend on the order
//! of rows and files; Parquet does not keep the order of a data frame's categories.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use sawmill_loader::{LoadOptions, MAX_LENGTH, Schedule};
use sawmill_pgcopy::{ByteStrings, Nul, ValueOptions, shown};
use sawmill_profile::on_threads;
use sawmill_source::{Control, Error, Kind, Result, Source};

use crate::table::columns::NewTable;
use crate::types::made_types::MadeType;

/// The most labels of an enumeration; the server looks up each value among them.
const MAX_LABELS: usize = 1000;

/// Finds the labels of the enumerations of a new table, if it has any, over as many threads as there are
/// connections.
///
/// # Errors
/// More than 1,000 distinct values, or one longer than a label may be; a source that cannot be read; a raised
/// cancel flag.
pub(crate) fn find_labels(
    new: &mut NewTable,
    source: &dyn Source,
    values: &ValueOptions,
    options: &LoadOptions,
    control: &Control<'_>,
) -> Result<()> {
    let columns: Vec<usize> =
        new.types.iter_mut().filter_map(|made| made.enumeration().map(|(column, _)| column)).collect();
    if columns.is_empty() {
        return Ok(());
    }
    let refused = |column: usize, what: String| {
        let name = source.schema().fields().get(column).map(|field| field.name().clone()).unwrap_or_default();
        Error::new(Kind::Value, what)
            .at(format!("column {name:?}, which becomes an enumeration"))
            .advise("load such columns as text (--enums text)")
    };
    let schedule = Schedule::new(source.plan(options.unit_rows));
    let stop = AtomicBool::new(false);
    let control = control.with_stop(&stop);
    let read = |_| -> Result<Vec<Labels>> {
        let mut reader = source.reader_of(&columns, options.batch_rows);
        let mut labels: Vec<Labels> = columns.iter().map(|_| Labels::new(values.nul)).collect();
        let mut place = None;
        while let Some(unit) = schedule.next(&mut place) {
            reader.start(&unit)?;
            while let Some(batch) = reader.next_batch()? {
                control.check()?;
                for ((labels, array), column) in labels.iter_mut().zip(batch.columns()).zip(&columns) {
                    labels.add(array).map_err(|what| refused(*column, what))?;
                }
            }
        }
        Ok(labels)
    };
    let found = on_threads("labels", 1..options.degree.max(1) + 1, &stop, read)?;
    for (nth, (column, labels)) in new.types.iter_mut().filter_map(MadeType::enumeration).enumerate() {
        let all = found.iter().filter_map(|labels| labels.get(nth));
        let all: BTreeSet<&[u8]> = all.flat_map(|labels| labels.seen.iter().map(AsRef::as_ref)).collect();
        check_number(all.len()).map_err(|what| refused(column, what))?;
        *labels = all.into_iter().map(|label| String::from_utf8_lossy(label).into_owned()).collect();
    }
    Ok(())
}

fn check_number(labels: usize) -> Result<(), String> {
    if labels <= MAX_LABELS { Ok(()) } else { Err(format!("it has more than {MAX_LABELS} distinct values")) }
}

/// The distinct values of a column that one thread has seen.
struct Labels {
    nul: Nul,
    seen: HashSet<Box<[u8]>>,
}

impl Labels {
    fn new(nul: Nul) -> Self {
        Self { nul, seen: HashSet::new() }
    }

    /// Adds the values of an array; for a dictionary, those that a row refers to.
    fn add(&mut self, array: &ArrayRef) -> Result<(), String> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return self.add_values(array, |_| true) };
        let entries = dictionary.values();
        let mut used = vec![false; entries.len()];
        for (row, key) in dictionary.normalized_keys().into_iter().enumerate() {
            if let Some(used) = used.get_mut(key) {
                *used |= array.is_valid(row);
            }
        }
        self.add_values(entries, |entry| used.get(entry).is_some_and(|used| *used))
    }

    fn add_values(&mut self, array: &ArrayRef, wanted: impl Fn(usize) -> bool) -> Result<(), String> {
        let values =
            ByteStrings::bind(array).ok_or_else(|| format!("{} has no labels", array.data_type()))?;
        let mut last: &[u8] = &[];
        let mut first = true;
        for row in (0..array.len()).filter(|row| wanted(*row) && array.is_valid(*row)) {
            let value = values.value(row);
            if first || value != last {
                self.add_value(value)?;
            }
            (first, last) = (false, value);
        }
        Ok(())
    }

    fn add_value(&mut self, value: &[u8]) -> Result<(), String> {
        if self.seen.contains(value) {
            return Ok(());
        }
        if value.contains(&0) {
            // Left out of the value as of all text, or else no label: its row is refused when it is loaded.
            return match self.nul {
                Nul::Error => Ok(()),
                Nul::Strip => {
                    self.add_value(&value.iter().copied().filter(|byte| *byte != 0).collect::<Vec<_>>())
                }
            };
        }
        if value.len() > MAX_LENGTH {
            let text = shown(&String::from_utf8_lossy(value));
            return Err(format!(
                "the value {text} has {} bytes, a label has {MAX_LENGTH} at most",
                value.len()
            ));
        }
        self.seen.insert(value.into());
        check_number(self.seen.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray};

    use super::*;

    fn seen(labels: &Labels) -> Vec<String> {
        let mut seen: Vec<String> =
            labels.seen.iter().map(|label| String::from_utf8_lossy(label).into_owned()).collect();
        seen.sort();
        seen
    }

    #[test]
    fn of_a_dictionary_only_entries_that_a_row_refers_to_are_labels() {
        let keys = Int8Array::from(vec![Some(2), None, Some(0), Some(2)]);
        let values = StringArray::from(vec!["b", "never", "a"]);
        let array: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(values)));
        let mut labels = Labels::new(Nul::Error);
        labels.add(&array).unwrap();
        assert_eq!(seen(&labels), ["a", "b"]);
    }

    #[test]
    fn values_that_the_load_refuses_are_no_labels_and_those_that_it_strips_are_stripped() {
        let array: ArrayRef = Arc::new(StringArray::from(vec!["", "x\0", "x", ""]));
        let mut labels = Labels::new(Nul::Error);
        labels.add(&array).unwrap();
        assert_eq!(seen(&labels), ["", "x"]);
        let array: ArrayRef = Arc::new(StringArray::from(vec!["y\0\0z"]));
        let mut labels = Labels::new(Nul::Strip);
        labels.add(&array).unwrap();
        assert_eq!(seen(&labels), ["yz"]);
    }

    #[test]
    fn labels_are_counted_and_measured() {
        let array = |texts: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        let mut labels = Labels::new(Nul::Error);
        labels.add(&array((0..MAX_LABELS).map(|i| i.to_string()).collect())).unwrap();
        assert!(labels.add(&array(vec!["one more".to_owned()])).unwrap_err().contains("more than 1000"));
        assert!(Labels::new(Nul::Error).add(&array(vec!["x".repeat(63)])).is_ok());
        assert!(Labels::new(Nul::Error).add(&array(vec!["ü".repeat(32)])).unwrap_err().contains("64 bytes"));
    }
}
