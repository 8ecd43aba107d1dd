//! Keys of two columns: the key of a parent and the number of the row within it, such as the lines of orders, or the key
//! of another table, such as the courses of students; and references of other tables to both.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use crate::infer::fidelity::RelationFidelity;
use crate::infer::notation::quoted;
use crate::infer::references::found::{Form, PairKey, PairReference, Reference, Role, Roles};
use crate::infer::references::key::number_hash;
use crate::infer::references::tables::InferredTables;
use crate::infer::references::{Class, Evidence, Hashes, Key};
use crate::infer::spec::inferred_spec::InferredSpec;

impl PairKey {
    /// With the column that numbers the rows of `found`, which follow one another.
    pub(super) fn counted(spec: &InferredSpec, found: &Reference) -> Option<Self> {
        let numbers = numbers(&spec.ranges, &found.evidence.rows);
        if numbers.iter().flatten().all(|number| *number < 2) {
            return None;
        }
        let hashes: Vec<Option<u64>> = numbers.into_iter().map(|number| number.map(number_hash)).collect();
        let counts = |column: &usize| {
            spec.hashes(*column).is_some_and(|(_, values)| {
                let all = values.class == Class::Whole && values.values.len() == hashes.len();
                all && values
                    .values
                    .iter()
                    .zip(&hashes)
                    .all(|(value, hash)| hash.is_none_or(|hash| hash == *value))
            })
        };
        let column = (0..spec.columns()).find(counts)?;
        Some(PairKey { table: found.from.0, column, by: found.from.1, parent: found.to, other: None })
    }

    /// With the column that refers to another key, evenly, if the rows of `found` follow one another.
    pub(super) fn joined(spec: &InferredSpec, found: &Reference, all: &[Reference]) -> Option<Self> {
        let Form::Following(counts) = &found.form else { return None };
        let (table, by) = found.from;
        let is_even = |other: &&Reference| match &other.form {
            Form::Drawn { frequencies, shuffled, orphans } => {
                let most = counts.keys().next_back().copied().map_or(0, u64::from);
                frequencies.is_even() && !shuffled && *orphans == 0.0 && most <= other.evidence.keys
            }
            _ => false,
        };
        let others = all.iter().filter(|other| other.from.0 == table && other.evidence.orphans == 0);
        let other = others.filter(is_even).find(|other| key(spec, [by, other.from.1]).is_some())?;
        Some(PairKey { table, column: other.from.1, by, parent: found.to, other: Some(other.to) })
    }
}

/// The number of each sampled row within its parent's rows, unless the sample begins within them.
fn numbers(ranges: &[(u64, u64)], parents: &[u32]) -> Vec<Option<i128>> {
    let (mut out, mut next) = (Vec::with_capacity(parents.len()), 0);
    let (mut before, mut number) = (None, Some(0));
    for (first, n) in ranges {
        if *first != next {
            (before, number) = (None, None);
        }
        next = first + n;
        for parent in parents.iter().skip(out.len()).take(*n as usize).copied().collect::<Vec<u32>>() {
            let goes_on = before.is_none_or(|before| before == parent);
            number = if goes_on { number.map(|n| n + 1) } else { Some(1) };
            before = Some(parent);
            out.push(number);
        }
    }
    out
}

/// The sampled pairs of values of two columns without nulls.
fn pairs(spec: &InferredSpec, columns: [usize; 2]) -> Option<Hashes> {
    let [(_, a), (_, b)] = [spec.hashes(columns[0])?, spec.hashes(columns[1])?];
    let rows = spec.sampled_rows() as usize;
    let pair = |(a, b): (&u64, &u64)| xxh3_64([a.to_le_bytes(), b.to_le_bytes()].as_flattened());
    let values: Vec<u64> = a.values.iter().zip(&b.values).map(pair).collect();
    let all = a.values.len() == rows && b.values.len() == rows;
    all.then_some(Hashes { class: Class::Bytes, kind: a.kind.clone(), values })
}

/// The key that two columns are, if all rows are in the sample.
fn key(spec: &InferredSpec, columns: [usize; 2]) -> Option<Key> {
    if spec.rows != Some(spec.sampled_rows()) { None } else { Key::new(&pairs(spec, columns)?) }
}

impl InferredTables {
    /// Finds the pairs of columns that refer to a key of two: one refers to its parent, and the other has the name of the
    /// number, or refers to the same other key.
    pub(super) fn find_pairs(&mut self) {
        for of in &self.pair_keys {
            let (table, columns) = (&self.tables[of.table], [of.by, of.column]);
            let Some(key) = key(table, columns) else { continue };
            for found in self.found.iter().filter(|found| found.to == of.parent) {
                let spec = &self.tables[found.from.0];
                let also = |other: &&Reference| other.from.0 == found.from.0 && Some(other.to) == of.other;
                let number = match of.other {
                    None => spec.column_named(table.column_name(of.column)),
                    Some(_) => self.found.iter().find(also).map(|other| other.from.1),
                };
                let Some(number) = number.filter(|_| found.form != Form::Weighted) else { continue };
                let from = [found.from.1, number];
                let same_types =
                    from.map(|column| spec.kind(column)) == columns.map(|column| table.kind(column));
                let follows = found.from.0 == of.table || matches!(found.form, Form::Following(_));
                let evidence = pairs(spec, from).and_then(|pairs| Evidence::new(&pairs, &key));
                if let Some(evidence) = evidence.filter(|of| of.orphans == 0 && same_types && !follows) {
                    let (from, to) = ((found.from.0, from), (of.table, columns));
                    self.pairs.push(PairReference { from, to, evidence });
                }
            }
        }
        let pairs = &self.pairs;
        let is_of_pair = |(table, column): (usize, usize)| {
            pairs.iter().any(|pair| pair.from.0 == table && pair.from.1.contains(&column))
        };
        self.found.retain(|found| !is_of_pair(found.from));
    }

    fn pair_named(&self, (table, columns): (usize, [usize; 2])) -> String {
        columns.map(|column| self.named((table, column))).join(", ")
    }

    /// A line for each key of two columns, and for each reference to one.
    pub(super) fn pair_evidence(&self) -> impl Iterator<Item = String> {
        let numbered = self.pair_keys.iter().map(|of| match of.other {
            None => {
                let (column, parent) = (self.named((of.table, of.column)), self.named(of.parent));
                format!("{column} numbers the rows of each {parent}")
            }
            Some(_) => format!("{} are a key together", self.pair_named((of.table, [of.by, of.column]))),
        });
        numbered.chain(self.pairs.iter().map(|pair| {
            let (from, to) = (self.pair_named(pair.from), self.pair_named(pair.to));
            let Evidence { values, distinct, keys, .. } = pair.evidence;
            format!(
                "{from} refer to {to}: all {values} sampled pairs are keys, {distinct} of {keys} keys occur"
            )
        }))
    }

    /// Adds what the columns of a table have to do with keys of two columns.
    pub(super) fn add_pair_roles(&self, table: usize, roles: &mut Roles) {
        for of in self.pair_keys.iter().filter(|of| of.table == table) {
            let parent = self.named(of.parent);
            let (values, said) = match of.other.map(|other| self.named(other)) {
                None => ("\"child_number\"".to_owned(), format!("numbers the rows of each {parent}")),
                Some(to) => {
                    let values = format!("{{ ref = {{ to = {}, distinct = true }} }}", quoted(&to));
                    (values, format!("refers to {}, another key for each row of a {parent}", quoted(&to)))
                }
            };
            roles.columns.insert(of.column, Role { values, is_key: true, said: Some(said) });
        }
        for pair in self.pairs.iter().filter(|pair| pair.from.0 == table) {
            let to = &self.tables[pair.to.0];
            let mut row = format!("{}_row", to.name());
            while self.tables[table].column_named(&row).is_some() {
                row.push('_');
            }
            let (frequencies, shuffled) = pair.evidence.frequencies();
            let values = frequencies.reference(to.name(), pair.evidence.keys, 0.0, shuffled);
            roles.hidden += &format!(
                "\n# The row of {} that {} name.\n[[tables.fields]]\nname = {}\ntype = \"int64\"\nhidden = true\nvalues = {values}\n",
                to.name(),
                self.pair_named(pair.from),
                quoted(&row),
            );
            for (column, key) in pair.from.1.into_iter().zip(pair.to.1) {
                let column_name = quoted(to.column_name(key));
                let values = format!("{{ lookup = {{ by = {}, column = {column_name} }} }}", quoted(&row));
                roles.columns.insert(column, Role { values, is_key: true, said: None });
            }
        }
    }

    /// Adds each key of two columns, and each reference to one, in this sample and in one of generated data that has all rows.
    pub(super) fn compare_pairs(&self, generated: &[InferredSpec], out: &mut Vec<RelationFidelity>) {
        let theirs = |(table, columns): (usize, [usize; 2])| {
            let (ours, theirs) = (&self.tables[table], generated.get(table)?);
            let [a, b] = columns.map(|column| theirs.column_named(ours.column_name(column)));
            Some((theirs, [a?, b?]))
        };
        for (table, columns) in self.pair_keys.iter().map(|of| (of.table, [of.by, of.column])) {
            let found = theirs((table, columns)).and_then(|(table, columns)| pairs(table, columns));
            let generated = found.map_or(1.0, |pairs| {
                let differ: HashSet<u64> = pairs.values.iter().copied().collect();
                1.0 - differ.len() as f64 / pairs.values.len().max(1) as f64
            });
            let relation = format!("equal pairs of {}", self.pair_named((table, columns)));
            out.push(RelationFidelity { relation, source: 0.0, generated });
        }
        for pair in &self.pairs {
            let Some((table, columns)) = theirs(pair.to) else { continue };
            let Some(key) = key(table, columns) else { continue };
            let found = theirs(pair.from).and_then(|(table, columns)| pairs(table, columns));
            let found = found.and_then(|pairs| Evidence::new(&pairs, &key));
            let (from, to) = (self.pair_named(pair.from), self.pair_named(pair.to));
            out.extend(pair.evidence.compared(found.as_ref(), &from, &to));
        }
    }
}
