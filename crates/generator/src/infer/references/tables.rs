//! Several tables that refer to one another, inferred together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use arrow_schema::DataType;

use crate::draw::lengths::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::infer::fidelity::RelationFidelity;
use crate::infer::notation::{digits, quoted};
use crate::infer::references::found::{Form, PairKey, PairReference, Reference, Role, Roles};
use crate::infer::references::skew::Frequencies;
use crate::infer::references::{Class, Evidence, Key};
use crate::infer::spec::inferred_spec::InferredSpec;
use crate::infer::values::lengths::lengths;
use crate::spec::tables::one_folder;

/// The most orphans of a reference, as a share.
const MAX_ORPHANS: f64 = 0.05;

/// With at most this many orphans, a column whose name agrees is reported as no reference.
const WORTH_SAYING: f64 = 0.5;

/// Keys of a reference are spread over all keys, if its name does not agree with theirs.
const SPREAD: f64 = 0.1;

/// Names agree if they end with the same words of this many bytes.
const SAME_ENDING: usize = 5;

/// Columns with at most this many different numbers are drawn by their weights.
const WEIGHTED: u64 = 50;

/// A table that others refer to is fixed if each has at least as many times its rows.
const TIMES_FIXED: u64 = 20;

/// Tables whose columns refer to one another.
#[derive(Debug)]
pub struct InferredTables {
    pub(super) tables: Vec<InferredSpec>,
    pub(super) found: Vec<Reference>,
    /// What looks like a reference and is none.
    refused: Vec<String>,
    /// Keys of two columns.
    pub(super) pair_keys: Vec<PairKey>,
    /// References of two columns.
    pub(super) pairs: Vec<PairReference>,
}

impl InferredTables {
    /// Finds the references between tables with known key candidates.
    ///
    /// # Errors
    /// Two tables have the same name, but for capitals.
    pub fn new(tables: Vec<InferredSpec>) -> Result<Self> {
        for (i, table) in tables.iter().enumerate() {
            if let Some(what) = tables[..i].iter().find_map(|other| one_folder(other.name(), table.name())) {
                return Err(Error::spec(what, "--like", "rename the files: each gives its table a name"));
            }
        }
        let (found, refused, pair_keys, pairs) = Default::default();
        let mut out = InferredTables { tables, found, refused, pair_keys, pairs };
        for from in 0..out.tables.len() {
            for column in 0..out.tables[from].columns() {
                out.look((from, column));
            }
        }
        // What others refer to is numbered, and refers to nothing itself.
        let referred: Vec<(usize, usize)> = out.found.iter().map(|found| found.to).collect();
        out.found.retain(|found| !referred.contains(&found.from));
        out.let_rows_follow();
        let following = out.found.iter().filter(|found| matches!(found.form, Form::Following(_)));
        let pair_key = |found: &Reference| {
            let spec = &out.tables[found.from.0];
            PairKey::counted(spec, found).or_else(|| PairKey::joined(spec, found, &out.found))
        };
        out.pair_keys = following.filter_map(pair_key).collect();
        let counted = out.pair_keys.iter().filter(|of| of.other.is_none());
        let counted: Vec<(usize, usize)> = counted.map(|of| (of.table, of.column)).collect();
        let numbered = |place: (usize, usize)| counted.contains(&place);
        out.found.retain(|found| !numbered(found.from));
        out.find_pairs();
        Ok(out)
    }

    /// Sets by how much the rows of tables that are not fixed are multiplied.
    #[must_use]
    pub fn with_scale(mut self, scale: f64) -> Self {
        for table in 0..self.tables.len() {
            // The rows of parents vary, so all of them together may be some more.
            let follows =
                |found: &Reference| found.from.0 == table && matches!(found.form, Form::Following(_));
            let more = if self.found.iter().any(follows) { 1.1 } else { 1.0 };
            let factor = if self.is_fixed(table) { 1.0 } else { scale.max(1.0) * more };
            let rows = self.tables[table].rows.unwrap_or(0);
            self.tables[table].set_most_rows((rows as f64 * factor).ceil() as u64);
        }
        self
    }

    /// Looks for the key that a column refers to.
    fn look(&mut self, from: (usize, usize)) {
        let Some((name, hashes)) = self.tables[from.0].hashes(from.1) else { return };
        let own_key = self.tables[from.0].key(from.1).is_some();
        let mut candidates: Vec<(bool, Evidence, (usize, usize), &Key)> = Vec::new();
        for (table, spec) in self.tables.iter().enumerate().filter(|(table, _)| *table != from.0) {
            for (column, key) in spec.keys() {
                let Some(evidence) = Evidence::new(hashes, key) else { continue };
                let agrees = names_agree(name, spec.name(), spec.column_name(column));
                let spread = evidence.spread <= SPREAD && evidence.distinct > 1;
                // A key that refers to another one has a row for some of its rows, or for all of an earlier table.
                let all_of_later = table > from.0 && evidence.distinct == evidence.keys;
                if own_key && (!agrees || !evidence.is_sorted() || all_of_later) {
                    continue;
                }
                if agrees || spread {
                    candidates.push((agrees, evidence, (table, column), key));
                }
            }
        }
        candidates.sort_by(|a, b| {
            let (orphans_a, orphans_b) = (a.1.orphan_share(), b.1.orphan_share());
            b.0.cmp(&a.0).then(orphans_a.total_cmp(&orphans_b)).then(a.1.spread.total_cmp(&b.1.spread))
        });
        let Some((agrees, evidence, to, key)) = candidates.into_iter().next() else { return };
        let share = evidence.orphan_share();
        let (from_name, to_name) = (self.named(from), self.named(to));
        if share > MAX_ORPHANS {
            if agrees && share <= WORTH_SAYING {
                self.refused.push(format!(
                    "{from_name} does not refer to {to_name}: {:.1} % of its sampled values are no keys, more \
                     than {:.0} %",
                    100.0 * share,
                    100.0 * MAX_ORPHANS
                ));
            }
            return;
        }
        if key.class == Class::Bytes && [from, to].iter().any(|of| !self.tables[of.0].is_uuid(of.1)) {
            self.refused.push(format!(
                "{from_name} looks like a reference to {to_name}, but specs refer only to whole numbers, \
                 strings and UUIDs: both are drawn alone"
            ));
            return;
        }
        // This column becomes weights of its values, which are also the key's values in generated data.
        if key.class == Class::Whole && !key.has_gaps() && key.rows() <= WEIGHTED && evidence.orphans == 0 {
            self.found.push(Reference { from, to, evidence, form: Form::Weighted });
            return;
        }
        let kind = self.tables[from.0].kind(from.1);
        if !has_room(kind, key, 1) {
            self.refused.push(format!(
                "{from_name} does not refer to {to_name}: the type of the column has no room for all keys"
            ));
            return;
        }
        let (frequencies, shuffled) = evidence.frequencies();
        // Orphans have the keys of as many rows again.
        let orphans = if has_room(kind, key, 2) { share } else { 0.0 };
        let form = Form::Drawn { frequencies, shuffled, orphans };
        self.found.push(Reference { from, to, evidence, form });
    }

    /// Of each table, lets the rows of one reference follow one another if they do in the data.
    fn let_rows_follow(&mut self) {
        let mut parents: BTreeMap<usize, usize> = BTreeMap::new();
        for table in 0..self.tables.len() {
            let of_table = |found: &&mut Reference| found.from.0 == table;
            let mut best: Option<&mut Reference> = None;
            for found in self.found.iter_mut().filter(of_table) {
                let spec = &self.tables[table];
                let same_type = spec.kind(found.from.1) == self.tables[found.to.0].kind(found.to.1);
                let sorted = found.evidence.is_sorted() && spec.nulls(found.from.1) == 0;
                let mut ancestor = Some(found.to.0);
                while let Some(at) = ancestor.filter(|at| *at != table) {
                    ancestor = parents.get(&at).copied();
                }
                let better =
                    best.as_ref().is_none_or(|best| best.evidence.distinct < found.evidence.distinct);
                if sorted && same_type && ancestor.is_none() && better {
                    best = Some(found);
                }
            }
            let Some(found) = best else { continue };
            let spec = &self.tables[table];
            if let Some(counts) = rows_a_key(spec, &found.evidence) {
                parents.insert(table, found.to.0);
                found.form = Form::Following(counts);
            }
        }
    }

    pub(super) fn named(&self, (table, column): (usize, usize)) -> String {
        format!("{}.{}", self.tables[table].name(), self.tables[table].column_name(column))
    }

    /// The tables.
    pub fn tables(&self) -> &[InferredSpec] {
        &self.tables
    }

    /// A line for each reference with what speaks for it, and for what looks like one and is none.
    pub fn evidence(&self) -> Vec<String> {
        let found = self.found.iter().map(|found| {
            format!("{} refers to {}: {}", self.named(found.from), self.named(found.to), self.said_of(found))
        });
        found.chain(self.pair_evidence()).chain(self.refused.iter().cloned()).collect()
    }

    fn said_of(&self, found: &Reference) -> String {
        let evidence = &found.evidence;
        let orphans = match evidence.orphans {
            0 => format!("all {} sampled values are keys", evidence.values),
            n => format!("all but {n} of {} sampled values are keys", evidence.values),
        };
        let form = match &found.form {
            Form::Weighted => "drawn with the weight of each key".to_owned(),
            Form::Following(counts) => {
                let (least, most) = (counts.keys().next(), counts.keys().next_back());
                let ends =
                    least.zip(most).map_or_else(String::new, |(least, most)| format!("{least} to {most}"));
                format!("its rows follow one another, {ends} for each key")
            }
            Form::Drawn { frequencies, shuffled, orphans } => {
                let skew = match frequencies {
                    Frequencies::Zipf(skew) => format!("s = {}", digits(skew.s, 2)),
                    Frequencies::Runs(_) => "the frequencies of the sample".to_owned(),
                };
                let order = if *shuffled { ", the frequent ones anywhere" } else { "" };
                let lost = match evidence.orphans > 0 && *orphans == 0.0 {
                    true => "; these are left out, as the type has no room for more keys",
                    false => "",
                };
                format!("drawn with {skew}{order}{lost}")
            }
        };
        let gaps = self.tables[found.to.0].key(found.to.1).is_some_and(Key::has_gaps);
        let gaps = if gaps { "; keys have gaps, which become equal" } else { "" };
        format!("{orphans}, {} of {} keys occur; {form}{gaps}", evidence.distinct, evidence.keys)
    }

    /// A spec with all tables as TOML.
    ///
    /// # Errors
    /// A table has no column that a spec can represent.
    pub fn to_toml(&self) -> Result<String> {
        let names: Vec<&str> = self.tables.iter().map(InferredSpec::name).collect();
        let mut out = format!("name = {}\n", quoted(&names.join("_")));
        for table in 0..self.tables.len() {
            let _ = write!(out, "\n{}", self.tables[table].to_table(&self.roles(table))?);
        }
        Ok(out)
    }

    /// Whether `--scale` leaves a table alone: it refers to no table and is much smaller than all that refer to it.
    fn is_fixed(&self, table: usize) -> bool {
        let refers = self.found.iter().any(|found| found.from.0 == table);
        let mut others = self.found.iter().filter(|found| found.to.0 == table).peekable();
        let rows = |table: usize| self.tables[table].rows.unwrap_or(0);
        !refers
            && others.peek().is_some()
            && others.all(|found| rows(found.from.0) / TIMES_FIXED >= rows(table))
    }

    /// What the columns of a table have to do with keys.
    fn roles(&self, table: usize) -> Roles {
        let mut roles = Roles { is_fixed: self.is_fixed(table), ..Roles::default() };
        let referred: BTreeSet<usize> =
            self.found.iter().filter(|found| found.to.0 == table).map(|found| found.to.1).collect();
        for column in referred {
            let role =
                self.tables[table].key_values(column).map(|values| Role { values, is_key: true, said: None });
            roles.columns.extend(role.map(|role| (column, role)));
        }
        for found in self.found.iter().filter(|found| found.from.0 == table) {
            let to = self.named(found.to);
            let said = Some(format!("refers to {}: {}", quoted(&to), self.said_of(found)));
            match &found.form {
                Form::Weighted => {}
                Form::Following(counts) => {
                    let parent = self.tables[found.to.0].name();
                    roles.per =
                        Some(format!("per = {{ table = {}, rows = {} }}\n", quoted(parent), lengths(counts)));
                    let column = quoted(self.tables[found.to.0].column_name(found.to.1));
                    let values = format!("{{ parent = {column} }}");
                    roles.columns.insert(found.from.1, Role { values, is_key: true, said });
                }
                Form::Drawn { frequencies, shuffled, orphans } => {
                    let values = frequencies.reference(&to, found.evidence.keys, *orphans, *shuffled);
                    roles.columns.insert(found.from.1, Role { values, is_key: false, said });
                }
            }
        }
        self.add_pair_roles(table, &mut roles);
        roles
    }

    /// Each reference in this sample and in one of generated data, whose tables have the same names.
    pub fn compare(&self, generated: &[InferredSpec]) -> Vec<RelationFidelity> {
        let mut out = Vec::new();
        for found in &self.found {
            let of = |place: (usize, usize)| {
                let column = self.tables[place.0].column_name(place.1);
                let table = generated.get(place.0)?;
                Some((table, table.column_named(column)?))
            };
            // Columns that the generated data lack keep no key.
            let theirs = of(found.from).zip(of(found.to)).and_then(|((child, from), (parent, to))| {
                Evidence::new(child.hashes(from)?.1, parent.key(to)?)
            });
            let (from, to) = (self.named(found.from), self.named(found.to));
            out.extend(found.evidence.compared(theirs.as_ref(), &from, &to));
            let generated = theirs.map_or(0.0, |theirs| theirs.top);
            let relation = format!("the most frequent key in {from}");
            out.push(RelationFidelity { relation, source: found.evidence.top, generated });
        }
        self.compare_pairs(generated, &mut out);
        out
    }
}

/// How many keys have how many rows; `None` if a sample does not show it, or a key has too many.
fn rows_a_key(spec: &InferredSpec, evidence: &Evidence) -> Option<BTreeMap<u32, u64>> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let runs = evidence.rows_a_key(&spec.ranges, spec.rows);
    runs.iter().for_each(|n| *counts.entry(*n).or_default() += 1);
    if runs.is_empty() || *counts.keys().next_back()? > MAX_ELEMENTS {
        return None;
    }
    let mean = runs.iter().map(|n| f64::from(*n)).sum::<f64>() / runs.len() as f64;
    let with_rows = spec.rows.unwrap_or(evidence.values) as f64 / mean;
    let without = (evidence.keys as f64 / with_rows - 1.0).max(0.0) * runs.len() as f64;
    // A sample does not know the number of keys with rows exactly.
    if without > 0.005 * runs.len() as f64 {
        counts.insert(0, without.round() as u64);
    }
    Some(counts)
}

/// Whether a column of this type has room for the keys of `times` as many rows.
fn has_room(kind: Option<&DataType>, key: &Key, times: i128) -> bool {
    let (start, step) = key.sequence();
    let last = step.checked_mul(times * key.rows() as i128 - 1).and_then(|n| n.checked_add(start));
    let most: i128 = match kind {
        // Keys have at most 63 bits.
        Some(kind) if kind.is_integer() => {
            let bits = 8 * kind.primitive_width().unwrap_or(8) - usize::from(kind.is_signed_integer());
            (1 << bits.min(63)) - 1
        }
        Some(DataType::Decimal128(precision, _)) => 10i128.pow(u32::from(*precision).min(38)) - 1,
        _ => i64::MAX.into(),
    };
    key.class != Class::Whole || last.is_some_and(|last| last <= most)
}

/// Whether the name of a column looks like the key of a table: `customer_id` and `customers.id`, `l_orderkey`
/// and `orders.o_orderkey`.
fn names_agree(column: &str, table: &str, key: &str) -> bool {
    let (column, table, key) = (column.to_lowercase(), table.to_lowercase(), key.to_lowercase());
    let singular = table.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.unwrap_or_else(|| table.strip_suffix('s').unwrap_or(&table).to_owned());
    // Both end with the same words: after the beginning, or after a character that is neither letter nor digit.
    let words = |name: &str| -> Vec<String> {
        let starts = name.char_indices().filter(|(i, c)| {
            let before = name[..*i].chars().next_back();
            c.is_alphanumeric() && before.is_none_or(|before| !before.is_alphanumeric())
        });
        starts.map(|(i, _)| name[i..].to_owned()).filter(|ending| ending.len() >= SAME_ENDING).collect()
    };
    let endings = words(&key);
    (singular.len() >= 2 && column.contains(&singular))
        || words(&column).iter().any(|end| endings.contains(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_references_agree_with_those_of_keys() {
        for (column, table, key) in [
            ("customer_id", "customers", "id"),
            ("CustomerID", "customer", "ID"),
            ("l_orderkey", "orders", "o_orderkey"),
            ("category", "categories", "code"),
            ("ps_suppkey", "supplier", "s_suppkey"),
        ] {
            assert!(names_agree(column, table, key), "{column} {table}.{key}");
        }
        for (column, table, key) in [
            ("id", "customers", "id"),
            ("l_suppkey", "customer", "c_custkey"),
            ("r_regionkey", "nation", "n_nationkey"),
            ("size", "parts", "number"),
        ] {
            assert!(!names_agree(column, table, key), "{column} {table}.{key}");
        }
    }
}
